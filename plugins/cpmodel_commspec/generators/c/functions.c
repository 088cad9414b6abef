/* Parts of the programs that are written: each from its name, and what it needs, to the next. */
//// begin
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = @processes@, COMMUNICATORS = @communicators@ };

static int rank;
static MPI_Comm comms[COMMUNICATORS];
static int sizes[COMMUNICATORS];
static int members[COMMUNICATORS][PROCESSES]; /* world ranks, by rank in the communicator */
static int places[COMMUNICATORS][PROCESSES];  /* ranks in the communicator, by world rank */
static char *out, *in;                        /* what is sent, and where it is received */
static long room = @room@;

static void keep(int comm, MPI_Comm made)
{
    MPI_Group all, own;
    comms[comm] = made;
    if (made == MPI_COMM_NULL)
        return;
    PMPI_Comm_size(made, &sizes[comm]);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Comm_group(made, &own);
    for (int k = 0; k < PROCESSES; k++) {
        PMPI_Group_translate_ranks(all, 1, &k, own, &places[comm][k]);
        if (places[comm][k] != MPI_UNDEFINED)
            members[comm][places[comm][k]] = k;
    }
    PMPI_Group_free(&all);
    PMPI_Group_free(&own);
}
//// divide
static void divide(int comm, int color, int key)
{
    MPI_Comm made;
    PMPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : color, key, &made);
    keep(comm, made);
}
//// begin_handle
/* The run makes and frees communicators here. The program uses its own, which it made before. */
static MPI_Comm handle(int comm)
{
    MPI_Comm made;
    PMPI_Comm_dup(comms[comm], &made);
    return made;
}
//// duplicate
static void duplicate(int comm)
{
    MPI_Comm made;
    MPI_Comm_dup(comms[comm], &made);
    PMPI_Comm_free(&made);
}
//// split
static void split(int comm)
{
    MPI_Comm made;
    MPI_Comm_split(comms[comm], 0, 0, &made);
    PMPI_Comm_free(&made);
}
//// create
static void create(int comm)
{
    MPI_Comm made;
    MPI_Group group;
    PMPI_Comm_group(comms[comm], &group);
    MPI_Comm_create(comms[comm], group, &made);
    PMPI_Group_free(&group);
    PMPI_Comm_free(&made);
}
//// cart_create
static void cart_create(int comm, int n, const int *sizes, const int *periodic)
{
    MPI_Comm made;
    MPI_Cart_create(comms[comm], n, sizes, periodic, 0, &made);
    if (made != MPI_COMM_NULL)
        PMPI_Comm_free(&made);
}
//// cart_sub
static void cart_sub(int comm)
{
    MPI_Comm line, made;
    PMPI_Cart_create(comms[comm], 1, &sizes[comm], (int[]){0}, 0, &line);
    MPI_Cart_sub(line, (int[]){1}, &made);
    PMPI_Comm_free(&made);
    PMPI_Comm_free(&line);
}
//// free_handle: begin_handle
static void free_handle(int comm)
{
    MPI_Comm made = handle(comm);
    MPI_Comm_free(&made);
}
//// disconnect: begin_handle
static void disconnect(int comm)
{
    MPI_Comm made = handle(comm);
    MPI_Comm_disconnect(&made);
}
//// neighbour
/* The rank at a distance on a grid whose ends meet, given by the rank that is there from rank 0;
   sizes end with 0, and ranks count up the first dimension first. */
static int neighbour(int place, long number, const int *size)
{
    int found = 0;
    for (int unit = 1; *size; size++) {
        found += (int)((place + number) % *size) * unit;
        place /= *size;
        number /= *size;
        unit *= *size;
    }
    return found;
}
//// started
/* Operations under way, the oldest first. */
enum kind { SEND, RECEIVE, COLLECTIVE };
struct operation { MPI_Request request; enum kind kind; char *in; int is_taken; };
static struct operation *started;
static int n_started;
//// start: started
static MPI_Request *start(enum kind kind, long bytes)
{
    static int most_started;
    if (n_started == most_started) {
        most_started = most_started ? 2 * most_started : 64;
        started = realloc(started, (size_t)most_started * sizeof *started);
        if (!started)
            MPI_Abort(MPI_COMM_WORLD, 3);
    }
    struct operation *one = &started[n_started++];
    one->kind = kind;
    one->is_taken = 0;
    one->in = kind == SEND ? NULL : malloc(bytes ? (size_t)bytes : 1);
    return &one->request;
}
//// take: started
/* Take operations off the list, by their places, and return their requests. */
static char **buffers;
static int *indices, n_taken;

static MPI_Request *take(int n, const int *chosen)
{
    MPI_Request *requests = malloc(((size_t)n + 1) * sizeof *requests);
    int left = 0;
    buffers = malloc(((size_t)n + 1) * sizeof *buffers);
    indices = malloc(((size_t)n + 1) * sizeof *indices);
    n_taken = n;
    requests[n] = MPI_REQUEST_NULL;
    for (int k = 0; k < n; k++) {
        requests[k] = started[chosen[k]].request;
        buffers[k] = started[chosen[k]].in;
        started[chosen[k]].is_taken = 1;
    }
    for (int k = 0; k < n_started; k++)
        if (!started[k].is_taken)
            started[left++] = started[k];
    n_started = left;
    return requests;
}

static void release(MPI_Request *requests)
{
    for (int k = 0; k < n_taken; k++)
        free(buffers[k]);
    free(buffers);
    free(indices);
    free(requests);
}
//// until_complete
/* Wait without a call that counts, so that one call of the run's function completes them all. */
static void until_complete(int n, MPI_Request *requests)
{
    for (int k = 0, done = 0; k < n; k += done)
        PMPI_Request_get_status(requests[k], &done, MPI_STATUS_IGNORE);
}
//// places_of: started
/* The places of all sends, of all receives, or of all operations, which is -1. */
static int n_places;

static int *places_of(int kind)
{
    int *found = malloc(((size_t)n_started + 1) * sizeof *found);
    n_places = 0;
    for (int k = 0; k < n_started; k++)
        if (kind < 0 || started[k].kind == (enum kind)kind)
            found[n_places++] = k;
    return found;
}
//// attach: scaled
/* Room for buffered sends, each of which rounds its size up. */
static void attach(long bytes, long messages)
{
    long size = scaled(bytes) + messages * (MPI_BSEND_OVERHEAD + 1);
    if (size > INT_MAX)
        MPI_Abort(MPI_COMM_WORLD, 3);
    PMPI_Buffer_attach(malloc((size_t)size), (int)size);
}
//// receive: scaled
static void receive(int comm, long bytes, int peer, long tag)
{
    bytes = scaled(bytes);
    MPI_Recv(in, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm],
             MPI_STATUS_IGNORE);
}
//// start_to_receive: start scaled
static void start_to_receive(int comm, long bytes, int peer, long tag)
{
    bytes = scaled(bytes);
    MPI_Request *request = start(RECEIVE, bytes);
    MPI_Irecv(started[n_started - 1].in, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag,
              comms[comm], request);
}
//// exchange: scaled
/* A partner below zero is MPI_PROC_NULL. */
static void exchange(int comm, long bytes, int peer, long tag, long received, int source,
                     long source_tag)
{
    bytes = scaled(bytes);
    received = scaled(received);
    MPI_Sendrecv(out, (int)bytes, MPI_BYTE, peer < 0 ? MPI_PROC_NULL : places[comm][peer], (int)tag,
                 in, (int)received, MPI_BYTE, source < 0 ? MPI_PROC_NULL : places[comm][source],
                 (int)source_tag, comms[comm], MPI_STATUS_IGNORE);
}
//// exchange_replace: scaled
static void exchange_replace(int comm, long bytes, int peer, long tag, long received, int source,
                             long source_tag)
{
    bytes = scaled(bytes);
    received = scaled(received);
    MPI_Sendrecv_replace(in, (int)(bytes > received ? bytes : received), MPI_BYTE,
                         peer < 0 ? MPI_PROC_NULL : places[comm][peer], (int)tag,
                         source < 0 ? MPI_PROC_NULL : places[comm][source], (int)source_tag,
                         comms[comm], MPI_STATUS_IGNORE);
}
//// unequal: scaled
/* What each member of a communicator sends and receives in all. */
static long sent[PROCESSES], received[PROCESSES];
#define EACH_MEMBER(comm) \
    for (int k = 0, other; k < sizes[comm] && (other = members[comm][k]) >= 0; k++)

static int *zeros(int n)
{
    return calloc(n > 0 ? (size_t)n : 1, sizeof(int));
}

static int *offsets(int n, const int *counts)
{
    int *found = zeros(n);
    for (int k = 1; k < n; k++)
        found[k] = found[k - 1] + counts[k - 1];
    return found;
}
//// counts_of: unequal
static int *counts_of(int n, const long *bytes, long divisor)
{
    int *found = zeros(n);
    for (int k = 0; k < n; k++)
        found[k] = (int)scaled(bytes[k] / divisor);
    return found;
}
//// scale_sums: unequal
/* Scale what each member sends. What members receive are shares of the sum, by the running sum, so
   that rounding cancels. */
static void scale_sums(int n)
{
    long all = 0, scaled_all = 0, before = 0;
    if (scale_bytes == 1)
        return;
    for (int k = 0; k < n; k++) {
        all += received[k];
        sent[k] = scaled(sent[k]);
        scaled_all += sent[k];
    }
    for (int k = 0, done = 0; k < n && all; k++) {
        before += received[k];
        int end = (int)((unsigned long long)before * (unsigned long long)scaled_all
                        / (unsigned long long)all);
        received[k] = end - done;
        done = end;
    }
}
//// spread: scale_sums
/* Sizes for every pair that add up to what each member sends and receives: in proportion, and what
   rounding leaves from the first to the last. */
static void spread(int n, int me, int *to, int *from)
{
    static long more[PROCESSES], less[PROCESSES];
    double total = 0;
    scale_sums(n);
    for (int k = 0; k < n; k++) {
        total += (double)sent[k];
        more[k] = sent[k];
        less[k] = received[k];
    }
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            double share = total > 0 ? (double)sent[a] * ((double)received[b] / total) : 0;
            long bytes = (long)(share * (1 - 1e-12));
            more[a] -= bytes;
            less[b] -= bytes;
            if (a == me)
                to[b] = (int)bytes;
            if (b == me)
                from[a] = (int)bytes;
        }
    for (int a = 0, b = 0; a < n && b < n;) {
        long bytes = more[a] < less[b] ? more[a] : less[b];
        if (a == me)
            to[b] += (int)bytes;
        if (b == me)
            from[a] += (int)bytes;
        more[a] -= bytes;
        less[b] -= bytes;
        if (more[a] == 0)
            a++;
        else
            b++;
    }
}
//// alltoallv: spread
static void alltoallv(int comm)
{
    int n = sizes[comm], *to = zeros(n), *from = zeros(n);
    spread(n, places[comm][rank], to, from);
    int *to_at = offsets(n, to), *from_at = offsets(n, from);
    MPI_Alltoallv(out, to, to_at, MPI_BYTE, in, from, from_at, MPI_BYTE, comms[comm]);
    free(to);
    free(from);
    free(to_at);
    free(from_at);
}
//// alltoallw: spread
static void alltoallw(int comm)
{
    int n = sizes[comm], *to = zeros(n), *from = zeros(n);
    spread(n, places[comm][rank], to, from);
    int *to_at = offsets(n, to), *from_at = offsets(n, from);
    MPI_Datatype *types = malloc(((size_t)n + 1) * sizeof *types);
    for (int k = 0; k < n; k++)
        types[k] = MPI_BYTE;
    MPI_Alltoallw(out, to, to_at, types, in, from, from_at, types, comms[comm]);
    free(types);
    free(to);
    free(from);
    free(to_at);
    free(from_at);
}
//// gatherv: counts_of
static void gatherv(int comm, long root)
{
    int n = sizes[comm], *counts = counts_of(n, sent, 1), *at = offsets(n, counts);
    MPI_Gatherv(out, counts[places[comm][rank]], MPI_BYTE, in, counts, at, MPI_BYTE, (int)root,
                comms[comm]);
    free(counts);
    free(at);
}
//// scatterv: counts_of
static void scatterv(int comm, long root)
{
    int n = sizes[comm], *counts = counts_of(n, received, 1), *at = offsets(n, counts);
    MPI_Scatterv(out, counts, at, MPI_BYTE, in, counts[places[comm][rank]], MPI_BYTE, (int)root,
                 comms[comm]);
    free(counts);
    free(at);
}
//// allgatherv: counts_of
static void allgatherv(int comm)
{
    int n = sizes[comm], *counts = counts_of(n, sent, n), *at = offsets(n, counts);
    MPI_Allgatherv(out, counts[places[comm][rank]], MPI_BYTE, in, counts, at, MPI_BYTE,
                   comms[comm]);
    free(counts);
    free(at);
}
//// reduce_scatter: counts_of
static void reduce_scatter(int comm)
{
    int n = sizes[comm], *counts = counts_of(n, received, n);
    MPI_Reduce_scatter(out, in, counts, MPI_BYTE, MPI_BOR, comms[comm]);
    free(counts);
}
//// options
static double scale_compute = 1; /* factor on all computation */

static int is_factor(const char *text, double *found)
{
    char *end;
    double factor = strtod(text, &end);
    if (end == text || *end || !(factor >= 0 && factor <= 1e9))
        return 0;
    *found = factor;
    return 1;
}

static int takes_scale_compute(const char *text)
{
    return is_factor(text, &scale_compute);
}

@takes@static const struct argument {
    const char *name, *values;
    int (*takes)(const char *); /* whether a text is such a value; then the value is kept */
} arguments[] = {
    {"--scale-compute", "a factor from 0 to 1e9", takes_scale_compute},
@arguments@};

/* Read the arguments. If the program does not know one, return 0; rank 0 says so. */
static int understands(int argc, char **argv)
{
    const size_t count = sizeof arguments / sizeof *arguments;
    for (int k = 1; k < argc; k += 2) {
        size_t n = 0;
        while (n < count && strcmp(argv[k], arguments[n].name) != 0)
            n++;
        if (n < count && k + 1 < argc && arguments[n].takes(argv[k + 1]))
            continue;
        if (rank == 0 && n < count)
            fprintf(stderr, "%s needs %s\n", arguments[n].name, arguments[n].values);
        else if (rank == 0) {
            fprintf(stderr, "no option %s: the options are", argv[k]);
            for (n = 0; n < count; n++)
                fprintf(stderr, " %s", arguments[n].name);
            fprintf(stderr, "\n");
        }
        return 0;
    }
    return 1;
}
//// computation
/* Computation before each line. Ranks of a share have a common histogram: its bins are in ascending
   order, and each has the number of seconds up to its end. A rank takes the seconds of a round by a
   pseudo-random permutation, so that the sum of all rounds is that of the trace. */
struct bin {
    long end;
    double seconds;
};

struct share {
    int line, is_first;             /* is_first: of the first rounds of the innermost loop */
    int from, to, place, ranks;     /* a part of the ranks of the share, the place of its first */
    int is_common;                  /* in the order of rounds that all such shares have */
    int begin, bins;                /* the histogram */
    unsigned long long key;
};
//// timers
enum { END = @end@ }; /* the line of what comes after the last operation */

static struct {
    const struct share *share;
    long place, round;
} draws[END + 1][2];

static double computing[END + 1], calling[END + 1]; /* seconds of each line */
static double begin, now;                           /* of the program, and of the last timer */

static unsigned long long mixed(unsigned long long number, unsigned long long key)
{
    number += 0x9E3779B97F4A7C15ull * (key + 1);
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9ull;
    number = (number ^ (number >> 27)) * 0x94D049BB133111EBull;
    return number ^ (number >> 31);
}

/* The place of a number below a count in a pseudo-random order of them all. */
static long permuted(long number, long count, unsigned long long key)
{
    int half = 1;
    for (long rest = (count - 1) / 2; rest > 0; rest /= 2)
        half++;
    half = (half + 1) / 2;
    const unsigned long long mask = (1ull << half) - 1;
    unsigned long long place = (unsigned long long)number;
    do {
        unsigned long long left = place >> half, right = place & mask;
        for (unsigned turn = 0; turn < 4; turn++) {
            unsigned long long last = right;
            right = left ^ (mixed(right, key * 4 + turn) & mask);
            left = last;
        }
        place = left << half | right;
    } while (place >= (unsigned long long)count);
    return (long)place;
}

static double next_seconds(int line, int is_first)
{
    const struct share *share = draws[line][is_first].share;
    const struct bin *bin = &bins[share->begin];
    long place = draws[line][is_first].place, round = draws[line][is_first].round++;
    if (share->bins == 1)
        return bin->seconds;
    long count = bin[share->bins - 1].end;
    if (share->is_common) {
        long level = permuted(round, count / share->ranks, share->key);
        place = level * share->ranks + (level + place) % share->ranks;
    } else
        place = permuted(place * (count / share->ranks) + round, count, share->key);
    while (bin->end <= place)
        bin++;
    return bin->seconds;
}

/* Compute before a line. What the program itself does between two calls is part of it. */
static void compute(int line, int is_first)
{
    double seconds = scale_compute * next_seconds(line, is_first), end;
    static double owed;
#ifdef SMPI_H
    /* SMPI leaves out what takes less than a microsecond. */
    owed += seconds;
    if (owed > 2e-6) {
        smpi_execute(owed);
        owed = 0;
    }
    end = PMPI_Wtime();
#else
    /* A clock has ticks. What one computation takes too long, the next ones take less; but not the
       time in which the process did not run. */
    double until = now + seconds - owed;
    do
        end = PMPI_Wtime();
    while (end < until);
    owed = end - until < 2e-5 ? end - until : 2e-5;
#endif
    computing[line] += end - now;
    now = end;
}

static void called(int line)
{
    double end = PMPI_Wtime();
    calling[line] += end - now;
    now = end;
}

#define LINE(line, is_first, ...) \
    do { \
        compute(line, is_first); \
        __VA_ARGS__ \
        called(line); \
    } while (0)

static void start_timers(void)
{
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++)
        if (shares[k].from <= rank && rank <= shares[k].to) {
            draws[shares[k].line][shares[k].is_first].share = &shares[k];
            draws[shares[k].line][shares[k].is_first].place =
                shares[k].place + rank - shares[k].from;
        }
    PMPI_Barrier(MPI_COMM_WORLD);
    begin = now = PMPI_Wtime();
}

static void print_times(void)
{
    static double sums[2][END + 1];
    double seconds = now - begin, longest, of_trace[2] = {0, 0}, of_program[2] = {0, 0};
    PMPI_Reduce(computing, sums[0], END + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(calling, sums[1], END + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    printf("seconds of a rank, mean of all      computation             calls\n");
    /* Without a measured run time, the seconds of the specification are predictions. */
    const char *told = run_time > 0 ? "trace" : "predicted";
    printf("line %-24s %9s %11s %9s %11s\n", "", told, "program", told, "program");
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        double mean[2];
        for (int part = 0; part < 2; part++) {
            mean[part] = sums[part][lines[k].line] / PROCESSES;
            of_trace[part] += lines[k].seconds[part];
            of_program[part] += mean[part];
        }
        if (lines[k].line == END)
            printf("     %-24s", lines[k].call);
        else
            printf("%4d %-24s", lines[k].line, lines[k].call);
        printf(" %9.6f %11.6f %9.6f %11.6f\n", lines[k].seconds[0], mean[0], lines[k].seconds[1],
               mean[1]);
    }
    printf("     %-24s %9.6f %11.6f %9.6f %11.6f\n", "all lines", of_trace[0], of_program[0],
           of_trace[1], of_program[1]);
    if (scale_compute != 1)
        printf("computation of the program: %g of the trace\n", scale_compute);
    printf("run time: ");
    if (run_time > 0)
        printf("%.6f s of the trace, ", run_time);
    printf("%.6f s of the program\n", longest);
}
//// end
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!understands(argc, argv)) {
        MPI_Finalize();
        return 2;
    }
    if (size != PROCESSES) {
        if (rank == 0)
            fprintf(stderr, "needs %d processes, not %d\n", PROCESSES, size);
        /* An abort of another rank could end rank 0 before it prints. */
        MPI_Finalize();
        return 2;
    }
@resize@    out = calloc((size_t)room, 1);
    in = calloc((size_t)room, 1);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 3);
    make_communicators();
@make_apart@@attach@@start_timers@    communicate();
@print_times@    MPI_Finalize();
    return 0;
}
