/* Records what a program sends and receives, as Score-P does, through the profiling interface of MPI.
   Each rank writes two files into the folder COUNTING: N.calls has a line for each call: function,
   partner, tag and bytes as the call has them; N.totals has messages and bytes sent, messages and
   bytes received, collective operations, bytes sent and received in them. MPI_Pcontrol(0) stops the
   record, and MPI_Pcontrol(1) goes on. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *calls;
static int is_off;

int MPI_Pcontrol(const int level, ...)
{
    is_off = level == 0;
    return MPI_SUCCESS;
}

static FILE *opened(const char *what)
{
    char path[4096];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/%d.%s", getenv("COUNTING"), rank, what);
    FILE *file = fopen(path, "w");
    if (!file)
        PMPI_Abort(MPI_COMM_WORLD, 9);
    return file;
}

static int world_rank(MPI_Comm comm, int rank)
{
    MPI_Group own, all;
    int found;
    if (rank < 0)
        return -1;
    PMPI_Comm_group(comm, &own);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_translate_ranks(own, 1, &rank, all, &found);
    PMPI_Group_free(&own);
    PMPI_Group_free(&all);
    return found;
}

static void log_call(const char *name)
{
    if (is_off)
        return;
    if (!calls)
        calls = opened("calls");
    fprintf(calls, "%s\n", name);
}

static void log_message(const char *name, MPI_Comm comm, int peer, int tag, long bytes)
{
    if (!calls)
        calls = opened("calls");
    fprintf(calls, "%s %d %d %ld\n", name, world_rank(comm, peer), tag, bytes);
}

static long sent, bytes_sent, received, bytes_received, together, bytes_out, bytes_in;

static MPI_Request posted[1 << 16];
static int n_posted;

static long size_of(MPI_Datatype type, long count)
{
    int size;
    PMPI_Type_size(type, &size);
    return size * count;
}

static int members(MPI_Comm comm)
{
    int n;
    PMPI_Comm_size(comm, &n);
    return n;
}

static int own(MPI_Comm comm)
{
    int k;
    PMPI_Comm_rank(comm, &k);
    return k;
}

static void count_sent(int count, MPI_Datatype type)
{
    sent++;
    bytes_sent += size_of(type, count);
}

static void count_received(MPI_Status *status)
{
    int count;
    PMPI_Get_count(status, MPI_BYTE, &count);
    received++;
    bytes_received += count;
}

static void count_together(const char *name, long out, long in)
{
    log_message(name, MPI_COMM_WORLD, -1, (int)out, in);
    together++;
    bytes_out += out;
    bytes_in += in;
}

static long sum(int n, const int *counts)
{
    long total = 0;
    for (int k = 0; k < n; k++)
        total += counts[k];
    return total;
}

#define TO int peer, int tag, MPI_Comm comm
#define SEND(name) \
    int MPI_##name(const void *b, int n, MPI_Datatype t, TO) \
    { log_message("MPI_" #name, comm, peer, tag, size_of(t, n)); \
      count_sent(n, t); return PMPI_##name(b, n, t, peer, tag, comm); }
#define ISEND(name) \
    int MPI_##name(const void *b, int n, MPI_Datatype t, TO, MPI_Request *r) \
    { log_message("MPI_" #name, comm, peer, tag, size_of(t, n)); \
      count_sent(n, t); return PMPI_##name(b, n, t, peer, tag, comm, r); }
SEND(Send)
SEND(Ssend)
SEND(Bsend)
ISEND(Isend)
ISEND(Issend)
ISEND(Ibsend)

int MPI_Recv(void *b, int n, MPI_Datatype t, TO, MPI_Status *ignored)
{
    MPI_Status status;
    (void)ignored;
    log_message("MPI_Recv", comm, peer, tag, size_of(t, n));
    int code = PMPI_Recv(b, n, t, peer, tag, comm, &status);
    count_received(&status);
    return code;
}

int MPI_Irecv(void *b, int n, MPI_Datatype t, TO, MPI_Request *r)
{
    log_message("MPI_Irecv", comm, peer, tag, size_of(t, n));
    int code = PMPI_Irecv(b, n, t, peer, tag, comm, r);
    posted[n_posted++] = *r;
    return code;
}

static void count_exchange(const char *name, MPI_Comm comm, int to, int tag, long bytes, int from,
                           int from_tag, MPI_Status *status)
{
    int got = 0;
    if (from != MPI_PROC_NULL)
        PMPI_Get_count(status, MPI_BYTE, &got);
    if (to == MPI_PROC_NULL)
        to = tag = -1, bytes = 0;
    if (from == MPI_PROC_NULL)
        from = from_tag = -1;
    log_message(name, comm, to, tag, bytes);
    fprintf(calls, "%d %d %d\n", world_rank(comm, from), from_tag, got);
    sent += to >= 0;
    bytes_sent += bytes;
    received += from >= 0;
    bytes_received += got;
}

int MPI_Sendrecv(const void *a, int n, MPI_Datatype t, int to, int tag, void *b, int k,
                 MPI_Datatype u, int from, int from_tag, MPI_Comm c, MPI_Status *ignored)
{
    MPI_Status status;
    (void)ignored;
    int code = PMPI_Sendrecv(a, n, t, to, tag, b, k, u, from, from_tag, c, &status);
    count_exchange("MPI_Sendrecv", c, to, tag, size_of(t, n), from, from_tag, &status);
    return code;
}

int MPI_Sendrecv_replace(void *b, int n, MPI_Datatype t, int to, int tag, int from, int from_tag,
                         MPI_Comm c, MPI_Status *ignored)
{
    MPI_Status status;
    (void)ignored;
    int code = PMPI_Sendrecv_replace(b, n, t, to, tag, from, from_tag, c, &status);
    count_exchange("MPI_Sendrecv_replace", c, to, tag, size_of(t, n), from, from_tag, &status);
    return code;
}

/* Requests that a call may complete: those before it, to find afterwards which are gone. */
static void count_completed(int n, const MPI_Request *before, const MPI_Request *after,
                            MPI_Status *statuses, int is_in_order)
{
    for (int k = 0, done = 0; k < n; k++) {
        if (before[k] == MPI_REQUEST_NULL || after[k] != MPI_REQUEST_NULL)
            continue;
        for (int j = 0; j < n_posted; j++)
            if (posted[j] == before[k]) {
                count_received(&statuses[is_in_order ? k : done]);
                posted[j] = posted[--n_posted];
                break;
            }
        done++;
    }
}

#define COMPLETING(name, parameters, call, n, requests, in_order) \
    int MPI_##name parameters \
    { \
        MPI_Status *statuses = malloc(((size_t)(n) + 1) * sizeof *statuses); \
        MPI_Request *before = malloc(((size_t)(n) + 1) * sizeof *before); \
        (void)ignored; \
        for (int k = 0; k < (n); k++) \
            before[k] = (requests)[k]; \
        log_call("MPI_" #name); \
        int code = PMPI_##name call; \
        count_completed(n, before, requests, statuses, in_order); \
        free(before); \
        free(statuses); \
        return code; \
    }
COMPLETING(Wait, (MPI_Request *r, MPI_Status *ignored), (r, statuses), 1, r, 1)
COMPLETING(Waitall, (int n, MPI_Request *r, MPI_Status *ignored), (n, r, statuses), n, r, 1)
COMPLETING(Waitany, (int n, MPI_Request *r, int *i, MPI_Status *ignored), (n, r, i, statuses), n, r, 0)
COMPLETING(Waitsome, (int n, MPI_Request *r, int *m, int *i, MPI_Status *ignored),
           (n, r, m, i, statuses), n, r, 0)
COMPLETING(Test, (MPI_Request *r, int *f, MPI_Status *ignored), (r, f, statuses), 1, r, 1)
COMPLETING(Testall, (int n, MPI_Request *r, int *f, MPI_Status *ignored), (n, r, f, statuses), n, r, 1)
COMPLETING(Testany, (int n, MPI_Request *r, int *i, int *f, MPI_Status *ignored),
           (n, r, i, f, statuses), n, r, 0)
COMPLETING(Testsome, (int n, MPI_Request *r, int *m, int *i, MPI_Status *ignored),
           (n, r, m, i, statuses), n, r, 0)

int MPI_Comm_dup(MPI_Comm c, MPI_Comm *made) { log_call("MPI_Comm_dup"); return PMPI_Comm_dup(c, made); }
int MPI_Comm_split(MPI_Comm c, int color, int key, MPI_Comm *made)
{ log_call("MPI_Comm_split"); return PMPI_Comm_split(c, color, key, made); }
int MPI_Comm_create(MPI_Comm c, MPI_Group g, MPI_Comm *made)
{ log_call("MPI_Comm_create"); return PMPI_Comm_create(c, g, made); }
int MPI_Comm_free(MPI_Comm *c) { log_call("MPI_Comm_free"); return PMPI_Comm_free(c); }
int MPI_Cart_create(MPI_Comm c, int n, const int *sizes, const int *periodic, int reorder, MPI_Comm *made)
{
    log_call("MPI_Cart_create");
    for (int k = -1; k < n && !is_off; k++)
        if (k < 0)
            fprintf(calls, "%d", n);
        else
            fprintf(calls, " %d %d", sizes[k], periodic[k]);
    if (!is_off)
        fprintf(calls, "\n");
    return PMPI_Cart_create(c, n, sizes, periodic, reorder, made);
}
int MPI_Cart_sub(MPI_Comm c, const int *kept, MPI_Comm *made)
{ log_call("MPI_Cart_sub"); return PMPI_Cart_sub(c, kept, made); }

int MPI_Barrier(MPI_Comm c) { count_together("MPI_Barrier", 0, 0); return PMPI_Barrier(c); }

static void from_root(const char *name, long m, int root, MPI_Comm c)
{
    count_together(name, root == own(c) ? members(c) * m : 0, m);
}

static void to_all(const char *name, long m, MPI_Comm c, const void *from)
{
    long n = from == MPI_IN_PLACE ? members(c) - 1 : members(c);
    count_together(name, n * m, n * m);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
{ from_root("MPI_Bcast", size_of(t, n), root, c); return PMPI_Bcast(b, n, t, root, c); }
int MPI_Ibcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r)
{ from_root("MPI_Ibcast", size_of(t, n), root, c); return PMPI_Ibcast(b, n, t, root, c, r); }
int MPI_Ibarrier(MPI_Comm c, MPI_Request *r) { count_together("MPI_Ibarrier", 0, 0); return PMPI_Ibarrier(c, r); }

int MPI_Scatter(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, int root,
                MPI_Comm c)
{ from_root("MPI_Scatter", size_of(u, k), root, c); return PMPI_Scatter(a, n, t, b, k, u, root, c); }

int MPI_Gather(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, int root,
               MPI_Comm c)
{
    count_together("MPI_Gather", size_of(t, n), root == own(c) ? members(c) * size_of(u, k) : 0);
    return PMPI_Gather(a, n, t, b, k, u, root, c);
}

int MPI_Reduce(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c)
{
    int in_place = a == MPI_IN_PLACE;
    long m = size_of(t, n);
    count_together("MPI_Reduce", in_place ? 0 : m, root == own(c) ? (members(c) - in_place) * m : 0);
    return PMPI_Reduce(a, b, n, t, o, root, c);
}

int MPI_Allreduce(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{ to_all("MPI_Allreduce", size_of(t, n), c, a); return PMPI_Allreduce(a, b, n, t, o, c); }
int MPI_Iallreduce(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c,
                   MPI_Request *r)
{ to_all("MPI_Iallreduce", size_of(t, n), c, a); return PMPI_Iallreduce(a, b, n, t, o, c, r); }
int MPI_Reduce_scatter_block(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{ to_all("MPI_Reduce_scatter_block", size_of(t, n), c, a); return PMPI_Reduce_scatter_block(a, b, n, t, o, c); }
int MPI_Allgather(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, MPI_Comm c)
{ to_all("MPI_Allgather", size_of(t, n), c, a); return PMPI_Allgather(a, n, t, b, k, u, c); }
int MPI_Alltoall(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, MPI_Comm c)
{ to_all("MPI_Alltoall", size_of(t, n), c, a); return PMPI_Alltoall(a, n, t, b, k, u, c); }

int MPI_Scan(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
    long m = size_of(t, n);
    count_together("MPI_Scan", (members(c) - own(c)) * m, (own(c) + 1) * m);
    return PMPI_Scan(a, b, n, t, o, c);
}

int MPI_Exscan(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
    long m = size_of(t, n);
    count_together("MPI_Exscan", (members(c) - own(c) - 1) * m, own(c) * m);
    return PMPI_Exscan(a, b, n, t, o, c);
}

int MPI_Gatherv(const void *a, int n, MPI_Datatype t, void *b, const int *counts, const int *at,
                MPI_Datatype u, int root, MPI_Comm c)
{
    count_together("MPI_Gatherv", size_of(t, n), root == own(c) ? size_of(u, sum(members(c), counts)) : 0);
    return PMPI_Gatherv(a, n, t, b, counts, at, u, root, c);
}

int MPI_Scatterv(const void *a, const int *counts, const int *at, MPI_Datatype t, void *b, int n,
                 MPI_Datatype u, int root, MPI_Comm c)
{
    count_together("MPI_Scatterv", root == own(c) ? size_of(t, sum(members(c), counts)) : 0, size_of(u, n));
    return PMPI_Scatterv(a, counts, at, t, b, n, u, root, c);
}

int MPI_Allgatherv(const void *a, int n, MPI_Datatype t, void *b, const int *counts, const int *at,
                   MPI_Datatype u, MPI_Comm c)
{
    count_together("MPI_Allgatherv", members(c) * size_of(t, n), size_of(u, sum(members(c), counts)));
    return PMPI_Allgatherv(a, n, t, b, counts, at, u, c);
}

int MPI_Reduce_scatter(const void *a, void *b, const int *counts, MPI_Datatype t, MPI_Op o,
                       MPI_Comm c)
{
    int n = members(c);
    count_together("MPI_Reduce_scatter", size_of(t, sum(n, counts)), n * size_of(t, counts[own(c)]));
    return PMPI_Reduce_scatter(a, b, counts, t, o, c);
}

int MPI_Alltoallw(const void *a, const int *n, const int *at, const MPI_Datatype *t, void *b,
                  const int *k, const int *bt, const MPI_Datatype *u, MPI_Comm c)
{
    count_together("MPI_Alltoallw", size_of(t[0], sum(members(c), n)), size_of(u[0], sum(members(c), k)));
    return PMPI_Alltoallw(a, n, at, t, b, k, bt, u, c);
}

int MPI_Alltoallv(const void *a, const int *n, const int *at, MPI_Datatype t, void *b,
                  const int *k, const int *bt, MPI_Datatype u, MPI_Comm c)
{
    count_together("MPI_Alltoallv", size_of(t, sum(members(c), n)), size_of(u, sum(members(c), k)));
    return PMPI_Alltoallv(a, n, at, t, b, k, bt, u, c);
}

int MPI_Finalize(void)
{
    FILE *totals = opened("totals");
    fprintf(totals, "%ld %ld %ld %ld %ld %ld %ld\n", sent, bytes_sent, received, bytes_received,
            together, bytes_out, bytes_in);
    fclose(totals);
    if (calls)
        fclose(calls);
    return PMPI_Finalize();
}
