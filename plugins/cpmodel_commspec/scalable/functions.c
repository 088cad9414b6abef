/* Parts of programs for any number of processes; others are those of generators/c/functions.c. */
//// scalable_begin
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMUNICATORS = @communicators@ };
static int rank;
static long p, x, y, z; /* processes, and the grid that they fill */
static long ix, iy, iz; /* own place: rank == ix + x * (iy + y * iz) */
static MPI_Comm comms[COMMUNICATORS];
static char *out, *in; /* what is sent, and where it is received */
static long room = 1;
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
/* n / d as whole elements of some bytes. If it is none, it is rounded down or refused. */
static long whole(long n, long d, long unit, int rounds, int line)
{
    if (!rounds && n % (d * unit))
        refuse(line, WHOLE);
    return n / (d * unit) * unit;
}
//// portion: reasons
/* n / d, which has to be above or at zero. */
static long portion(long n, long d, int line)
{
    if (n < 0)
        refuse(line, WHOLE);
    return n / d;
}
//// logarithm: reasons
/* Rounded up or down if `rounding` is above or below 0. */
static long logarithm(long n, int rounding, int line)
{
    long k = 0;
    while (1L << (k + 1) <= n)
        k++;
    if (1L << k == n)
        return k;
    if (!rounding)
        refuse(line, POWER);
    return k + (rounding > 0);
}
//// root: reasons
/* The square root, rounded up or down if `rounding` is above or below 0. */
static long root(long n, int rounding, int line)
{
    long k = 0;
    while ((k + 1) * (k + 1) <= n)
        k++;
    if (k * k == n)
        return k;
    if (!rounding)
        refuse(line, WHOLE);
    return k + (rounding > 0);
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
//// children: zero_bits
/* The children of the rank in a binomial tree. */
static long children(void)
{
    long k = 0, most = zero_bits();
    while (k < most && rank + (1L << k) < p)
        k++;
    return k;
}
//// block_up
/* The elements at a place if blocks have n / size elements, rounded up. */
static long block_up(long n, long size, long place)
{
    long length = (n + size - 1) / size, rest = n - place * length;
    return rest < 0 ? 0 : rest < length ? rest : length;
}
//// neighbours
/* The number of neighbours on the grid, whose ends do not meet. */
static long neighbours(void)
{
    return (ix > 0) + (ix < x - 1) + (iy > 0) + (iy < y - 1) + (iz > 0) + (iz < z - 1);
}
//// is_at
/* Whether the place of the rank is one of a mask: a digit of base 3 for each dimension of the grid,
   0 at its beginning, 2 at its end, and 1 between them. */
static int is_at(unsigned long mask)
{
    long place = (ix > 0) + (ix > 0 && ix == x - 1);
    place += 3 * ((iy > 0) + (iy > 0 && iy == y - 1));
    place += 9 * ((iz > 0) + (iz > 0 && iz == z - 1));
    return mask >> place & 1;
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
/* Predicted seconds of computation before lines, in a round of a rank, at 1, 2, 4, 8, ...
   processes. */
enum { POINTS = @points@ };
static const double seconds_at[][POINTS] = {
@rows@};
static double predicted[sizeof seconds_at / sizeof *seconds_at];

/* Between these numbers, times that fall do so as 1 / p, and others in proportion. */
static void predict(void)
{
    long low = 1;
    int n = 0;
    for (; 2 * low <= p && n < POINTS - 1; n++)
        low *= 2;
    double share = n < POINTS - 1 ? (double)(p - low) / (double)low : 0;
    for (size_t k = 0; k < sizeof predicted / sizeof *predicted; k++) {
        double one = seconds_at[k][n], other = share > 0 ? seconds_at[k][n + 1] : one;
        predicted[k] = one > other && other > 0 ? 1 / ((1 - share) / one + share / other)
                                                : (1 - share) * one + share * other;
    }
}
//// scalable_understands
static double scale_compute = 1; /* factor on all computation */

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
    for (int k = 1; k < argc; k += 2) {
        char *last = NULL;
        if (k + 1 < argc && !strcmp(argv[k], "--grid"))
            text = argv[k + 1];
        else if (k + 1 < argc && !strcmp(argv[k], "--scale-compute"))
            scale_compute = strtod(argv[k + 1], &last);
        else
            return 0;
        if (last && (*last || last == argv[k + 1] || !(scale_compute >= 0 && scale_compute <= 1e9)))
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

/* Tell whether the program can run: every formula has a value. If not, rank 0 says why. */
static int understands(int argc, char **argv, int size)
{
    long worst;
    p = size;
    if (!read_grid(argc, argv)) {
        if (rank == 0)
            fprintf(stderr, "give the grid of all %ld processes: --grid @axes@; other options: "
                            "--scale-compute FACTOR\n", p);
        return 0;
    }
    ix = rank % x;
    iy = rank / x % y;
    iz = rank / (x * y);
@check@    PMPI_Allreduce(&wrong, &worst, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    if (worst && rank == 0)
        fprintf(stderr, "%ld processes (%ld x %ld x %ld): line %ld: %s\n", p, x, y, z,
                (worst - 1) / REASONS, reasons[(worst - 1) % REASONS]);
    return !worst;
}
