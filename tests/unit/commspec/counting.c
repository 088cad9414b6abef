/* Counts what a program sends and receives, as Score-P does, through the profiling interface of MPI.
   Prints per rank: rank, messages and bytes sent, messages and bytes received, collective
   operations, bytes sent and received in them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long sent, bytes_sent, received, bytes_received, together, bytes_out, bytes_in;

static struct { MPI_Request request; int is_receive; } posted[4096];
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

static void count_together(long out, long in)
{
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
    { count_sent(n, t); return PMPI_##name(b, n, t, peer, tag, comm); }
#define ISEND(name) \
    int MPI_##name(const void *b, int n, MPI_Datatype t, TO, MPI_Request *r) \
    { count_sent(n, t); return PMPI_##name(b, n, t, peer, tag, comm, r); }
SEND(Send)
SEND(Ssend)
ISEND(Isend)
ISEND(Issend)

int MPI_Recv(void *b, int n, MPI_Datatype t, TO, MPI_Status *ignored)
{
    MPI_Status status;
    (void)ignored;
    int code = PMPI_Recv(b, n, t, peer, tag, comm, &status);
    count_received(&status);
    return code;
}

int MPI_Irecv(void *b, int n, MPI_Datatype t, TO, MPI_Request *r)
{
    int code = PMPI_Irecv(b, n, t, peer, tag, comm, r);
    posted[n_posted].request = *r;
    posted[n_posted++].is_receive = 1;
    return code;
}

int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *ignored)
{
    MPI_Status *statuses = malloc(((size_t)n + 1) * sizeof *statuses);
    char *is_receive = calloc((size_t)n + 1, 1);
    (void)ignored;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < n_posted; j++)
            if (posted[j].request == requests[k]) {
                is_receive[k] = 1;
                posted[j] = posted[--n_posted];
                break;
            }
    int code = PMPI_Waitall(n, requests, statuses);
    for (int k = 0; k < n; k++)
        if (is_receive[k])
            count_received(&statuses[k]);
    free(statuses);
    free(is_receive);
    return code;
}

int MPI_Barrier(MPI_Comm c) { count_together(0, 0); return PMPI_Barrier(c); }

static void from_root(long m, int root, MPI_Comm c)
{
    count_together(root == own(c) ? members(c) * m : 0, m);
}

static void to_all(long m, MPI_Comm c, const void *from)
{
    long n = from == MPI_IN_PLACE ? members(c) - 1 : members(c);
    count_together(n * m, n * m);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
{ from_root(size_of(t, n), root, c); return PMPI_Bcast(b, n, t, root, c); }
int MPI_Ibcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r)
{ from_root(size_of(t, n), root, c); return PMPI_Ibcast(b, n, t, root, c, r); }
int MPI_Ibarrier(MPI_Comm c, MPI_Request *r) { count_together(0, 0); return PMPI_Ibarrier(c, r); }

int MPI_Scatter(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, int root,
                MPI_Comm c)
{ from_root(size_of(u, k), root, c); return PMPI_Scatter(a, n, t, b, k, u, root, c); }

int MPI_Gather(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, int root,
               MPI_Comm c)
{
    count_together(size_of(t, n), root == own(c) ? members(c) * size_of(u, k) : 0);
    return PMPI_Gather(a, n, t, b, k, u, root, c);
}

int MPI_Reduce(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c)
{
    int in_place = a == MPI_IN_PLACE;
    long m = size_of(t, n);
    count_together(in_place ? 0 : m, root == own(c) ? (members(c) - in_place) * m : 0);
    return PMPI_Reduce(a, b, n, t, o, root, c);
}

int MPI_Allreduce(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{ to_all(size_of(t, n), c, a); return PMPI_Allreduce(a, b, n, t, o, c); }
int MPI_Iallreduce(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c,
                   MPI_Request *r)
{ to_all(size_of(t, n), c, a); return PMPI_Iallreduce(a, b, n, t, o, c, r); }
int MPI_Reduce_scatter_block(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{ to_all(size_of(t, n), c, a); return PMPI_Reduce_scatter_block(a, b, n, t, o, c); }
int MPI_Allgather(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, MPI_Comm c)
{ to_all(size_of(t, n), c, a); return PMPI_Allgather(a, n, t, b, k, u, c); }
int MPI_Alltoall(const void *a, int n, MPI_Datatype t, void *b, int k, MPI_Datatype u, MPI_Comm c)
{ to_all(size_of(t, n), c, a); return PMPI_Alltoall(a, n, t, b, k, u, c); }

int MPI_Scan(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
    long m = size_of(t, n);
    count_together((members(c) - own(c)) * m, (own(c) + 1) * m);
    return PMPI_Scan(a, b, n, t, o, c);
}

int MPI_Exscan(const void *a, void *b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
    long m = size_of(t, n);
    count_together((members(c) - own(c) - 1) * m, own(c) * m);
    return PMPI_Exscan(a, b, n, t, o, c);
}

int MPI_Gatherv(const void *a, int n, MPI_Datatype t, void *b, const int *counts, const int *at,
                MPI_Datatype u, int root, MPI_Comm c)
{
    count_together(size_of(t, n), root == own(c) ? size_of(u, sum(members(c), counts)) : 0);
    return PMPI_Gatherv(a, n, t, b, counts, at, u, root, c);
}

int MPI_Scatterv(const void *a, const int *counts, const int *at, MPI_Datatype t, void *b, int n,
                 MPI_Datatype u, int root, MPI_Comm c)
{
    count_together(root == own(c) ? size_of(t, sum(members(c), counts)) : 0, size_of(u, n));
    return PMPI_Scatterv(a, counts, at, t, b, n, u, root, c);
}

int MPI_Allgatherv(const void *a, int n, MPI_Datatype t, void *b, const int *counts, const int *at,
                   MPI_Datatype u, MPI_Comm c)
{
    count_together(members(c) * size_of(t, n), size_of(u, sum(members(c), counts)));
    return PMPI_Allgatherv(a, n, t, b, counts, at, u, c);
}

int MPI_Reduce_scatter(const void *a, void *b, const int *counts, MPI_Datatype t, MPI_Op o,
                       MPI_Comm c)
{
    int n = members(c);
    count_together(size_of(t, sum(n, counts)), n * size_of(t, counts[own(c)]));
    return PMPI_Reduce_scatter(a, b, counts, t, o, c);
}

int MPI_Alltoallv(const void *a, const int *n, const int *at, MPI_Datatype t, void *b,
                  const int *k, const int *bt, MPI_Datatype u, MPI_Comm c)
{
    count_together(size_of(t, sum(members(c), n)), size_of(u, sum(members(c), k)));
    return PMPI_Alltoallv(a, n, at, t, b, k, bt, u, c);
}

int MPI_Finalize(void)
{
    printf("%d %ld %ld %ld %ld %ld %ld %ld\n", own(MPI_COMM_WORLD), sent, bytes_sent, received,
           bytes_received, together, bytes_out, bytes_in);
    fflush(stdout);
    return PMPI_Finalize();
}
