/* Parts of the programs that are written: each from its name, and what it needs, to the next. */
//// begin
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { p = @processes@, COMMUNICATORS = @communicators@ };
static int rank;
static MPI_Comm comms[COMMUNICATORS];
static char *out, *in; /* what is sent, and where it is received */
static const long room = @room@;
//// find_places
static int sizes[COMMUNICATORS];
static int *members[COMMUNICATORS]; /* world ranks, by rank in the communicator */
static int *places[COMMUNICATORS];  /* ranks in the communicator, by world rank */

static void find_places(void)
{
    MPI_Group all, own;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    for (int comm = 0; comm < COMMUNICATORS; comm++) {
        members[comm] = calloc((size_t)p, sizeof(int));
        places[comm] = calloc((size_t)p, sizeof(int));
        if (comms[comm] == MPI_COMM_NULL)
            continue;
        PMPI_Comm_size(comms[comm], &sizes[comm]);
        PMPI_Comm_group(comms[comm], &own);
        for (int k = 0; k < p; k++) {
            PMPI_Group_translate_ranks(all, 1, &k, own, &places[comm][k]);
            if (places[comm][k] != MPI_UNDEFINED)
                members[comm][places[comm][k]] = k;
        }
        PMPI_Group_free(&own);
    }
    PMPI_Group_free(&all);
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
#define LAST started[n_started - 1]
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
//// until_complete: take
/* Wait without a call that counts, so that one call of the run's function completes them all. */
static void until_complete(MPI_Request *requests)
{
    for (int k = 0, done = 0; k < n_taken; k += done)
        PMPI_Request_get_status(requests[k], &done, MPI_STATUS_IGNORE);
}
//// all_of: take
/* Take all sends, all receives, or all operations, which is -1. */
static MPI_Request *all_of(int kind)
{
    int n = 0, *found = malloc(((size_t)n_started + 1) * sizeof *found);
    for (int k = 0; k < n_started; k++)
        if (kind < 0 || started[k].kind == (enum kind)kind)
            found[n++] = k;
    MPI_Request *requests = take(n, found);
    free(found);
    return requests;
}
//// attach
/* Room for buffered sends, each of which rounds its size up. */
static void attach(long bytes, long messages)
{
    long size = bytes + messages * (MPI_BSEND_OVERHEAD + 1);
    if (size > 2147483647L)
        MPI_Abort(MPI_COMM_WORLD, 3);
    PMPI_Buffer_attach(malloc((size_t)size), (int)size);
}
//// receive
static void receive(int comm, long bytes, int peer, long tag)
{
    MPI_Recv(in, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm],
             MPI_STATUS_IGNORE);
}
//// start_to_receive: start
static void start_to_receive(int comm, long bytes, int peer, long tag)
{
    MPI_Request *request = start(RECEIVE, bytes);
    MPI_Irecv(LAST.in, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag,
              comms[comm], request);
}
//// exchange
/* A partner below zero is MPI_PROC_NULL. */
static void exchange(int comm, long bytes, int peer, long tag, long received, int source,
                     long source_tag)
{
    MPI_Sendrecv(out, (int)bytes, MPI_BYTE, peer < 0 ? MPI_PROC_NULL : places[comm][peer], (int)tag,
                 in, (int)received, MPI_BYTE, source < 0 ? MPI_PROC_NULL : places[comm][source],
                 (int)source_tag, comms[comm], MPI_STATUS_IGNORE);
}
//// exchange_replace
static void exchange_replace(int comm, long bytes, int peer, long tag, long received, int source,
                             long source_tag)
{
    MPI_Sendrecv_replace(in, (int)(bytes > received ? bytes : received), MPI_BYTE,
                         peer < 0 ? MPI_PROC_NULL : places[comm][peer], (int)tag,
                         source < 0 ? MPI_PROC_NULL : places[comm][source], (int)source_tag,
                         comms[comm], MPI_STATUS_IGNORE);
}
//// unequal
/* What each member of a communicator sends and receives in all. */
static long sent[p], received[p];
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
        found[k] = (int)(bytes[k] / divisor);
    return found;
}
//// spread: unequal
/* Sizes for every pair that add up to what each member sends and receives: in proportion, and what
   rounding leaves from the first to the last. */
static void spread(int n, int me, int *to, int *from)
{
    static long more[p], less[p];
    double total = 0;
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
//// understands
static double scale_compute = 1; /* factor on all computation */

/* Tell whether the program can run; if not, rank 0 says why. */
static int understands(int argc, char **argv, int size)
{
    char *end = NULL;
    if (argc == 3 && strcmp(argv[1], "--scale-compute") == 0)
        scale_compute = strtod(argv[2], &end);
    int is_wrong = argc > 1 && (!end || end == argv[2] || *end);
    if (is_wrong || !(scale_compute >= 0 && scale_compute <= 1e9))
        is_wrong = rank || fprintf(stderr, "the only option is --scale-compute, from 0 to 1e9\n");
    else if (size != p)
        is_wrong = rank || fprintf(stderr, "needs %d processes, not %d\n", p, size);
    return !is_wrong;
}
//// means
/* Seconds before lines in which ranks differ, and the letter of those that a rank takes. */
#define MEAN(n) seconds##n[of##n[rank] - 'a']
//// drawn
/* Ranks of a share have a common histogram: its bins are in ascending order, and each has the
   number of seconds up to its end. A rank takes the seconds of a round by a pseudo-random
   permutation, so that the sum of all rounds is that of the trace. */
static const struct bin {
    long end;
    double seconds;
} bins[] = {
@bins@};
static const struct share {
    int ranks, is_common; /* is_common: in the order of rounds that all such shares have */
    int begin, bins;      /* the histogram */
    unsigned long long key;
} shares[] = {
@shares@};
static const int share_of[][p] = { /* by the number of the draw, and by rank */
@ranks@};

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

/* The seconds of the next round. */
static double drawn(int draw)
{
    static struct {
        long place, round;
    } states[sizeof share_of / sizeof *share_of];
    const int *of = share_of[draw];
    const struct share *share = &shares[of[rank]];
    const struct bin *bin = &bins[share->begin];
    long count = bin[share->bins - 1].end, rounds = count / share->ranks, place;
    long round = states[draw].round++;
    for (int k = 0; round == 0 && k < rank; k++)
        states[draw].place += of[k] == of[rank];
    if (share->is_common) {
        long level = permuted(round, rounds, share->key);
        place = level * share->ranks + (level + states[draw].place) % share->ranks;
    } else
        place = permuted(states[draw].place * rounds + round, count, share->key);
    while (bin->end <= place)
        bin++;
    return bin->seconds;
}
//// timers
enum { END = @end@, ALL }; /* the line of what comes after the last operation, and all lines */
static const struct { const char *call; double seconds; /* in it, mean of all ranks */ } lines[] = {
@lines@};
static double spent[3][ALL + 1]; /* seconds of computation to do, of computation, of calls */
static double begun, now;        /* of the program, and of the last timer */

static void lap(int part, int line)
{
    double seconds = PMPI_Wtime() - now;
    spent[part][line] += seconds;
    spent[part][ALL] += seconds;
    now += seconds;
}

/* Compute before a line. What the program itself does between two calls is part of it. */
static void compute(int line, double seconds)
{
    static double owed; /* what one computation took too long, the next ones take less */
    spent[0][line] += seconds;
    spent[0][ALL] += seconds;
    owed += scale_compute * seconds;
#ifdef SMPI_H
    for (; owed > 2e-6; owed = 0) /* SMPI leaves out what takes less than a microsecond */
        smpi_execute(owed);
#else
    for (double until = now + owed; (owed = until - PMPI_Wtime()) > 0;)
        ;
    owed = owed < -2e-5 ? -2e-5 : owed; /* but not the time in which the process did not run */
#endif
    lap(1, line);
}

#define LINE(line, seconds, ...) do { compute(line, seconds); __VA_ARGS__ lap(2, line); } while (0)

static void print_times(void)
{
    static double sums[3][ALL + 1];
    double seconds = now - begun, longest;
    PMPI_Reduce(spent, sums, 3 * (ALL + 1), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    printf("seconds of a rank, mean of all      computation             calls\n"
           "line %-24s %9s %11s %9s %11s\n", "", "@told@", "program", "@told@", "program");
    for (int k = 1; k <= ALL; k++)
        if (lines[k].call)
            printf("%4.0d %-24s %9.6f %11.6f %9.6f %11.6f\n", k < END ? k : 0, lines[k].call,
                   sums[0][k] / p, sums[1][k] / p, lines[k].seconds, sums[2][k] / p);
    printf("run time: @run_time@%.6f s of the program\n", longest);
}
//// main
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!understands(argc, argv, size)) {
        MPI_Finalize(); /* an abort of another rank could end rank 0 before it prints */
        return 2;
    }
    if (!(out = calloc((size_t)room, 2)))
        MPI_Abort(MPI_COMM_WORLD, 3);
    in = out + room;
@prepare@    communicate();
@print_times@    MPI_Finalize();
    return 0;
}
