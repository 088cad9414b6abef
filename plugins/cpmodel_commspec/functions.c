/* Parts of the programs that are written: each from its name, and what it needs, to the next. */
//// begin
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROCESSES = @processes@, COMMUNICATORS = @communicators@ };

static int rank;
static MPI_Comm comms[COMMUNICATORS];
static int sizes[COMMUNICATORS];
static int members[COMMUNICATORS][PROCESSES]; /* world ranks, by rank in the communicator */
static int places[COMMUNICATORS][PROCESSES];  /* ranks in the communicator, by world rank */
static char *out, *in;                        /* what is sent, and where it is received */
static const long room = @room@;

static void keep(int comm, MPI_Comm made)
{
    MPI_Group all, own;
    comms[comm] = made;
    if (made == MPI_COMM_NULL)
        return;
    MPI_Comm_size(made, &sizes[comm]);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(made, &own);
    for (int k = 0; k < PROCESSES; k++) {
        MPI_Group_translate_ranks(all, 1, &k, own, &places[comm][k]);
        if (places[comm][k] != MPI_UNDEFINED)
            members[comm][places[comm][k]] = k;
    }
    MPI_Group_free(&all);
    MPI_Group_free(&own);
}
//// divide
static void divide(int comm, int color, int key)
{
    MPI_Comm made;
    MPI_Comm_split(MPI_COMM_WORLD, color < 0 ? MPI_UNDEFINED : color, key, &made);
    keep(comm, made);
}
//// make_handle
/* Where the run made a communicator: those that it uses are all there from the begin. */
static void make_handle(int comm)
{
    MPI_Comm made;
    MPI_Comm_dup(comms[comm], &made);
    MPI_Comm_free(&made);
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
struct operation { MPI_Request request; enum kind kind; char *in; };
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
    one->in = kind == SEND ? NULL : malloc(bytes ? (size_t)bytes : 1);
    return &one->request;
}
//// finish: started
/* Wait for those that are marked, and take them out of the list. */
static void finish(const char *marked)
{
    MPI_Request *requests = malloc(((size_t)n_started + 1) * sizeof *requests);
    int chosen = 0, left = 0;
    for (int k = 0; k < n_started; k++)
        if (marked[k])
            requests[chosen++] = started[k].request;
    MPI_Waitall(chosen, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < n_started; k++) {
        if (marked[k])
            free(started[k].in);
        else
            started[left++] = started[k];
    }
    n_started = left;
    free(requests);
}
//// wait_for: finish
/* Wait for some of those under way, by their places. */
static void wait_for(int n, const int *chosen)
{
    char *marked = calloc((size_t)n_started + 1, 1);
    for (int k = 0; k < n; k++)
        marked[chosen[k]] = 1;
    finish(marked);
    free(marked);
}
//// wait_for_all: finish
static void wait_for_all(void)
{
    char *marked = calloc((size_t)n_started + 1, 1);
    for (int k = 0; k < n_started; k++)
        marked[k] = 1;
    finish(marked);
    free(marked);
}
//// wait_for_kind: finish
static void wait_for_kind(enum kind kind)
{
    char *marked = calloc((size_t)n_started + 1, 1);
    for (int k = 0; k < n_started; k++)
        marked[k] = started[k].kind == kind;
    finish(marked);
    free(marked);
}
//// wait_for_sends: wait_for_kind
static void wait_for_sends(void)
{
    wait_for_kind(SEND);
}
//// wait_for_receives: wait_for_kind
static void wait_for_receives(void)
{
    wait_for_kind(RECEIVE);
}
//// send
static void send(int comm, long bytes, int peer, long tag)
{
    MPI_Send(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm]);
}
//// send_synchronously
static void send_synchronously(int comm, long bytes, int peer, long tag)
{
    MPI_Ssend(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm]);
}
//// send_and_forget
static void send_and_forget(int comm, long bytes, int peer, long tag)
{
    MPI_Request request;
    MPI_Isend(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm], &request);
    MPI_Request_free(&request);
}
//// receive
static void receive(int comm, long bytes, int peer, long tag)
{
    MPI_Recv(in, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm],
             MPI_STATUS_IGNORE);
}
//// start_to_send: start
static void start_to_send(int comm, long bytes, int peer, long tag)
{
    MPI_Isend(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm],
              start(SEND, 0));
}
//// start_to_send_synchronously: start
static void start_to_send_synchronously(int comm, long bytes, int peer, long tag)
{
    MPI_Issend(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm],
               start(SEND, 0));
}
//// start_to_receive: start
static void start_to_receive(int comm, long bytes, int peer, long tag)
{
    MPI_Request *request = start(RECEIVE, bytes);
    MPI_Irecv(started[n_started - 1].in, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag,
              comms[comm], request);
}
//// exchanged
static MPI_Request exchanged = MPI_REQUEST_NULL;
//// send_exchanged: exchanged
static void send_exchanged(int comm, long bytes, int peer, long tag)
{
    MPI_Isend(out, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm], &exchanged);
}
//// receive_exchanged: exchanged
static void receive_exchanged(int comm, long bytes, int peer, long tag)
{
    MPI_Recv(in, (int)bytes, MPI_BYTE, places[comm][peer], (int)tag, comms[comm],
             MPI_STATUS_IGNORE);
    MPI_Waitall(1, &exchanged, MPI_STATUSES_IGNORE);
}
//// unequal
/* What each member of a communicator sends and receives in all. */
static long sent[PROCESSES], received[PROCESSES];
#define EACH_MEMBER(comm) \
    for (int k = 0, other; k < sizes[comm] && (other = members[comm][k], 1); k++)

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
    static long more[PROCESSES], less[PROCESSES];
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
//// end
int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != PROCESSES) {
        if (rank == 0)
            fprintf(stderr, "needs %d processes, not %d\n", PROCESSES, size);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    out = calloc((size_t)room, 1);
    in = calloc((size_t)room, 1);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 3);
    make_communicators();
    communicate();
    MPI_Finalize();
    return 0;
}
