/* Messages in place of collective operations, by `--lower NAME=ALGORITHM`: see functions.c. */
//// scaled
#include <limits.h>

static double scale_bytes = 1; /* factor on all sizes */

/* A size times the factor, rounded up. */
static long scaled(long bytes)
{
    double exact = (double)bytes * scale_bytes;
    long whole = (long)exact;
    return whole + (exact - (double)whole > 1e-9 * exact);
}
//// resize: scaled
/* Make room for scaled sizes, of which each member of a communicator may have one byte more. */
static int resize(void)
{
    if (scale_bytes == 1)
        return 1;
    if ((double)room * scale_bytes + PROCESSES > INT_MAX) {
        if (rank == 0)
            fprintf(stderr, "sizes times %g are more than 2 GiB\n", scale_bytes);
        return 0;
    }
    room = scaled(room) + PROCESSES;
    return 1;
}
//// apart
/* These messages have communicators of their own, so that they match no others. */
typedef void replacement(int comm, long bytes, long root);

static MPI_Comm apart[COMMUNICATORS];

static void make_apart(void)
{
    for (int k = 0; k < COMMUNICATORS; k++)
        if (comms[k] != MPI_COMM_NULL)
            PMPI_Comm_dup(comms[k], &apart[k]);
}
//// put: apart
static void put(int comm, long bytes, int to)
{
    MPI_Send(out, (int)bytes, MPI_BYTE, to, 0, apart[comm]);
}
//// get: apart
static void get(int comm, long bytes, int from)
{
    MPI_Recv(in, (int)bytes, MPI_BYTE, from, 0, apart[comm], MPI_STATUS_IGNORE);
}
//// swap: apart
static void swap(int comm, long bytes, int to, long received, int from)
{
    MPI_Sendrecv(out, (int)bytes, MPI_BYTE, to, 0, in, (int)received, MPI_BYTE, from, 0,
                 apart[comm], MPI_STATUS_IGNORE);
}
//// at_once: apart
/* Post all receives, then all sends, and wait for all of them. */
static void at_once(int comm, long bytes, int receives, int sends, const int *from, const int *to)
{
    MPI_Request *requests = malloc(((size_t)(receives + sends) + 1) * sizeof *requests);
    int n = 0;
    if (!requests)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int k = 0; k < receives; k++)
        MPI_Irecv(in + (receives > 1 ? k * bytes : 0), (int)bytes, MPI_BYTE, from[k], 0,
                  apart[comm], &requests[n++]);
    for (int k = 0; k < sends; k++)
        MPI_Isend(out, (int)bytes, MPI_BYTE, to[k], 0, apart[comm], &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    free(requests);
}
//// others
/* The others, those at distance 1, 2, ... in one direction from a member. */
static int *others(int comm, int member, int direction)
{
    int n = sizes[comm], *found = malloc((size_t)n * sizeof *found);
    if (!found)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (int k = 1; k < n; k++)
        found[k - 1] = (member + direction * k + n) % n;
    return found;
}
//// everybody_p2p: at_once others
static void everybody_p2p(int comm, long bytes, long root)
{
    int me = places[comm][rank], n = sizes[comm];
    int *from = others(comm, me, -1), *to = others(comm, me, 1);
    (void)root;
    at_once(comm, bytes, n - 1, n - 1, from, to);
    free(from);
    free(to);
}
//// from_root_p2p: at_once others
static void from_root_p2p(int comm, long bytes, long root)
{
    int member = (int)root, *to = others(comm, member, 1);
    if (places[comm][rank] == member)
        at_once(comm, bytes, 0, sizes[comm] - 1, NULL, to);
    else
        at_once(comm, bytes, 1, 0, &member, NULL);
    free(to);
}
//// to_root_p2p: at_once others
static void to_root_p2p(int comm, long bytes, long root)
{
    int member = (int)root, *from = others(comm, member, 1);
    if (places[comm][rank] == member)
        at_once(comm, bytes, sizes[comm] - 1, 0, from, NULL);
    else
        at_once(comm, bytes, 0, 1, NULL, &member);
    free(from);
}
//// pairwise: swap
static void pairwise(int comm, long bytes, long root)
{
    int me = places[comm][rank], n = sizes[comm];
    (void)root;
    for (int k = 1; k < n; k++)
        swap(comm, bytes, (me + k) % n, bytes, (me - k + n) % n);
}
//// ring: swap
static void ring(int comm, long bytes, long root)
{
    int me = places[comm][rank], n = sizes[comm];
    (void)root;
    for (int k = 1; k < n; k++)
        swap(comm, bytes, (me + 1) % n, bytes, (me - 1 + n) % n);
}
//// dissemination: swap
static void dissemination(int comm, long bytes, long root)
{
    int me = places[comm][rank], n = sizes[comm];
    (void)root;
    for (int d = 1; d < n; d *= 2)
        swap(comm, bytes, (me + d) % n, bytes, (me - d + n) % n);
}
//// binomial_down: put get
static void binomial_down(int comm, long bytes, long root)
{
    int n = sizes[comm], me = (places[comm][rank] - (int)root + n) % n;
    for (int d = 1; d < n; d *= 2)
        if (me < d && me + d < n)
            put(comm, bytes, (me + d + (int)root) % n);
        else if (d <= me && me < 2 * d)
            get(comm, bytes, (me - d + (int)root) % n);
}
//// binomial_up: put get
static void binomial_up(int comm, long bytes, long root)
{
    int n = sizes[comm], me = (places[comm][rank] - (int)root + n) % n, d = 1;
    while (d < n)
        d *= 2;
    for (d /= 2; d >= 1; d /= 2)
        if (me < d && me + d < n)
            get(comm, bytes, (me + d + (int)root) % n);
        else if (d <= me && me < 2 * d)
            put(comm, bytes, (me - d + (int)root) % n);
}
//// tree: binomial_up binomial_down
static void tree(int comm, long bytes, long root)
{
    (void)root;
    binomial_up(comm, bytes, 0);
    binomial_down(comm, bytes, 0);
}
//// recursive_doubling: put get swap
static void recursive_doubling(int comm, long bytes, long root)
{
    int n = sizes[comm], me = places[comm][rank], core = 1;
    (void)root;
    while (2 * core <= n)
        core *= 2;
    if (me >= core) {
        put(comm, bytes, me - core);
        get(comm, bytes, me - core);
        return;
    }
    if (me < n - core)
        get(comm, bytes, core + me);
    for (int d = 1; d < core; d *= 2)
        swap(comm, bytes, me ^ d, bytes, me ^ d);
    if (me < n - core)
        put(comm, bytes, core + me);
}
//// ring_of_parts: swap
static void ring_of_parts(int comm, long bytes, long root)
{
    int n = sizes[comm], me = places[comm][rank];
    (void)root;
    for (int step = 0; step < 2 * (n - 1); step++) {
        int own = ((me - step) % n + n) % n, other = (own - 1 + n) % n;
        swap(comm, bytes / n + (own < bytes % n), (me + 1) % n, bytes / n + (other < bytes % n),
             (me - 1 + n) % n);
    }
}
//// line: put get
static void line(int comm, long bytes, long root)
{
    int n = sizes[comm], me = places[comm][rank];
    (void)root;
    if (me > 0)
        get(comm, bytes, me - 1);
    if (me < n - 1)
        put(comm, bytes, me + 1);
}
//// takes_scale_bytes: resize
static int takes_scale_bytes(const char *text)
{
    return is_factor(text, &scale_bytes);
}
//// takes_lower: apart
static int is_lowered;

static const struct {
    const char *text;
    replacement **place, *by;
} replacements[] = {
@replacements@};

static int takes_lower(const char *text)
{
    for (size_t k = 0; k < sizeof replacements / sizeof *replacements; k++)
        if (strcmp(text, replacements[k].text) == 0) {
            *replacements[k].place = replacements[k].by;
            return is_lowered = 1;
        }
    return 0;
}
