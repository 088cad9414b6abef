/* Parts of programs for any number of processes; others are those of generators/c/functions.c. */
//// scalable_begin
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMUNICATORS = @communicators@ };

static int rank;
static long p, x, y, z;    /* processes, and the grid that they fill */
static long ix, iy, iz;    /* own place: rank == ix + x * (iy + y * iz) */
static MPI_Comm comms[COMMUNICATORS];
static int sizes[COMMUNICATORS];
static int *members[COMMUNICATORS]; /* world ranks, by rank in the communicator */
static int *places[COMMUNICATORS];  /* ranks in the communicator, by world rank */
static char *out, *in;              /* what is sent, and where it is received */
static long room = 1;
static double scale_compute = 1;    /* factor on all computation */

static void keep(int comm, MPI_Comm made)
{
    MPI_Group all, own;
    comms[comm] = made;
    members[comm] = calloc((size_t)p, sizeof(int));
    places[comm] = calloc((size_t)p, sizeof(int));
    if (made == MPI_COMM_NULL)
        return;
    PMPI_Comm_size(made, &sizes[comm]);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Comm_group(made, &own);
    for (int k = 0; k < p; k++) {
        PMPI_Group_translate_ranks(all, 1, &k, own, &places[comm][k]);
        if (places[comm][k] != MPI_UNDEFINED)
            members[comm][places[comm][k]] = k;
    }
    PMPI_Group_free(&all);
    PMPI_Group_free(&own);
}
//// reasons
/* Why the program has no meaning at this number of processes: a line, and a reason. */
enum { WHOLE, POWER, DIFFERENT, TRANSPOSED, LARGE, REASONS };
static const char *const reasons[] = {
    "a formula has no whole value", "a size is no power of two",
    "two formulas that fit all traces differ", "x is no multiple of y",
    "a message or a buffer has more than 2 GiB"};
static long wrong;

static void refuse(int line, int reason)
{
    if (!wrong)
        wrong = (long)line * REASONS + reason + 1;
}
//// whole: reasons
/* n / d. Sizes are whole elements of some bytes, rounded down; other numbers have to be whole. */
static long whole(long n, long d, long unit, int line)
{
    if (n % d == 0)
        return n / d;
    if (!unit)
        refuse(line, WHOLE);
    return unit ? n / (d * unit) * unit : n / d;
}
//// logarithm: reasons
static long logarithm(long n, int line)
{
    long k = 0;
    while (1L << (k + 1) <= n)
        k++;
    if (1L << k != n)
        refuse(line, POWER);
    return k;
}
//// same: reasons
static void same(long one, long other, int line)
{
    if (one != other)
        refuse(line, DIFFERENT);
}
//// need: reasons
/* Make buffers that hold so many bytes. */
static void need(long bytes, long times, int line)
{
    if (bytes < 0 || bytes > 2147483647L / times)
        refuse(line, LARGE);
    else if (bytes * times > room)
        room = bytes * times;
}
//// turn
/* The remainder of a division, which is never below zero. */
static long turn(long n, long d)
{
    return (n % d + d) % d;
}
//// rank_at: turn
/* The rank at a place of the grid, whose ends meet. */
static int rank_at(long a, long b, long c)
{
    return (int)(turn(a, x) + x * (turn(b, y) + y * turn(c, z)));
}
//// within
/* A partner, which has to exist. */
static int within(long peer, int line)
{
    if (peer < 0 || peer >= p) {
        fprintf(stderr, "line %d: rank %d has no partner with %ld processes\n", line, rank, p);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return (int)peer;
}
//// transposed: reasons
/* The place with x and y exchanged; groups of x / y ranks stay together. */
static int transposed(void)
{
    long r = x / y;
    return (int)(r * (ix / r * y + iy) + ix % r);
}
//// zero_bits
/* Trailing zero bits of the rank; of rank 0, those that all ranks have. */
static long zero_bits(void)
{
    long k = 0;
    while (rank ? !(rank >> k & 1) : 1L << k < p)
        k++;
    return k;
}
//// bits
static long bits(void)
{
    long k = 0;
    while (rank >> k)
        k++;
    return k;
}
//// neighbours
/* The number of neighbours on the grid, whose ends do not meet. */
static long neighbours(void)
{
    return (ix > 0) + (ix < x - 1) + (iy > 0) + (iy < y - 1) + (iz > 0) + (iz < z - 1);
}
//// receive_any
static void receive_any(int comm, long tag)
{
    MPI_Recv(in, (int)room, MPI_BYTE, MPI_ANY_SOURCE, (int)tag, comms[comm], MPI_STATUS_IGNORE);
}
//// start_to_receive_any: start
static void start_to_receive_any(int comm, long tag)
{
    MPI_Request *request = start(RECEIVE, room);
    MPI_Irecv(started[n_started - 1].in, (int)room, MPI_BYTE, MPI_ANY_SOURCE, (int)tag, comms[comm],
              request);
}
//// predicted_times
/* Predicted seconds of computation before each line, in a round of a rank, at @points@ numbers of
   processes: 1, and then each @per_doubling@th root of 2 times the one before. */
enum { LINES = @lines@, POINTS = @points@ };
static const double seconds_at[][POINTS] = {
@rows@};
static double predicted[sizeof seconds_at / sizeof *seconds_at];

/* In proportion between the numbers of processes of the table. */
static void predict(void)
{
    for (size_t k = 0; k < sizeof predicted / sizeof *predicted; k++) {
        double low = 1, high = 1;
        int n = 0;
        while (n < POINTS - 1 && high < (double)p) {
            low = high;
            high *= @root@;
            n++;
        }
        double share = n && high > (double)p ? ((double)p - low) / (high - low) : 1;
        predicted[k] = scale_compute * (seconds_at[k][n] * share
                                        + (n ? seconds_at[k][n - 1] * (1 - share) : 0));
    }
}

static double computing[LINES + 1], asked[LINES + 1]; /* seconds of each line */
static double begun, now;

/* Compute before a line. What one computation takes too long, the next ones take less. */
static void compute(int line, double seconds)
{
    static double owed;
    double end, until = now + seconds - owed;
#ifdef SMPI_H
    owed += seconds;
    if (owed > 2e-6) {
        smpi_execute(owed);
        owed = 0;
    }
    (void)until;
    end = PMPI_Wtime();
#else
    do
        end = PMPI_Wtime();
    while (end < until);
    owed = end - until < 2e-5 ? end - until : 2e-5;
#endif
    asked[line] += seconds;
    computing[line] += end - now;
    now = end;
}

#define LINE(line, row, ...) \
    do { \
        compute(line, predicted[row]); \
        __VA_ARGS__ \
        now = PMPI_Wtime(); \
    } while (0)

static void start_timers(void)
{
    predict();
    PMPI_Barrier(MPI_COMM_WORLD);
    begun = now = PMPI_Wtime();
}

static void print_times(void)
{
    static double sums[2][LINES + 1];
    double seconds = now - begun, longest;
    PMPI_Reduce(asked, sums[0], LINES + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(computing, sums[1], LINES + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    printf("seconds of computation of a rank, mean of all\n");
    printf("line   predicted     program\n");
    for (int k = 0; k <= LINES; k++)
        if (sums[0][k] > 0)
            printf("%4d %11.6f %11.6f\n", k, sums[0][k] / (double)p, sums[1][k] / (double)p);
    printf("run time of the program: %.6f s\n", longest);
}
//// scalable_end
/* The most even grid: the largest size is as small as it can be, then the next. */
static void choose_grid(void)
{
    long a = p, b = 1, c = 1;
@even@    (void)b;
    (void)c;
@order@}

static int read_grid(int argc, char **argv)
{
    long given[3] = {1, 1, 1};
    char end;
    const char *text = NULL;
    for (int k = 1; k < argc; k++) {
        if (!strcmp(argv[k], "--grid") && k + 1 < argc)
            text = argv[++k];
        else if (!strncmp(argv[k], "--grid=", 7))
            text = argv[k] + 7;
        else if (!strcmp(argv[k], "--scale-compute") && k + 1 < argc) {
            char *last;
            scale_compute = strtod(argv[++k], &last);
            if (*last || last == argv[k] || !(scale_compute >= 0 && scale_compute <= 1e9))
                return 0;
        } else
            return 0;
    }
    choose_grid();
    if (!text)
        return @has_rule@;
    if (sscanf(text, "@scan@%c", @given@, &end) != @dimensions@)
        return 0;
    x = given[0];
    y = given[1];
    z = given[2];
    return x > 0 && y > 0 && z > 0 && x <= p && y <= p && z <= p && x * y * z == p;
}

int main(int argc, char **argv)
{
    int size, status = 0;
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    p = size;
    if (!read_grid(argc, argv)) {
        if (rank == 0)
            fprintf(stderr, "give the grid of all %ld processes: --grid @axes@; other options: "
                            "--scale-compute FACTOR\n", p);
        MPI_Finalize();
        return 2;
    }
    ix = rank % x;
    iy = rank / x % y;
    iz = rank / (x * y);
    status = check();
    if (status) {
        MPI_Finalize();
        return status;
    }
    out = calloc((size_t)room, 1);
    in = calloc((size_t)room, 1);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 3);
    make_communicators();
@start_timers@    communicate();
@print_times@    MPI_Finalize();
    return 0;
}
