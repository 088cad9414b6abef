/* Measures an MPI program that runs under SimGrid SMPI.
 *
 * A program is compiled with -finstrument-functions, this file is not. Both are linked into one
 * library with -Bsymbolic, of which each rank has a copy. So globals belong to one rank. Each
 * rank has a tree of call paths with visits, exclusive time, bytes and messages. At MPI_Finalize
 * it appends a line for each call path to the file CLUSTER_OUT:
 *
 *     rank  call path  parent  region  visits  time/ns  bytes sent  bytes received  messages
 *
 * Bytes are counted as Score-P counts them: a collective call on n processes sends a copy to each
 * of them. CLUSTER_SEED seeds the noise of the computation. */
#include "measure.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <smpi/smpi.h>

enum { MOST = 512 };

struct call_path {
    const void *function;
    const char *name;
    int parent;
    uint64_t visits, sent, received, messages;
    double seconds;
};

static struct call_path paths[MOST];
static int count, current = -1;
static int me, processes;
static double since;
static uint64_t expected; /* bytes of open Irecv calls */
static uint64_t state;
static double speed = 1;

static void leave_time(void)
{
    double now = PMPI_Wtime();
    if (current >= 0)
        paths[current].seconds += now - since;
    since = now;
}

static void enter(const void *function, const char *name)
{
    leave_time();
    int path = 0;
    while (path < count && (paths[path].function != function || paths[path].parent != current))
        path++;
    if (path == count) {
        if (count == MOST) {
            fprintf(stderr, "more than %d call paths\n", MOST);
            abort();
        }
        Dl_info told;
        if (!name && dladdr(function, &told) && told.dli_sname)
            name = told.dli_sname;
        paths[count++] = (struct call_path){.function = function, .name = name, .parent = current};
    }
    current = path;
    paths[path].visits++;
}

static void leave(void)
{
    leave_time();
    current = paths[current].parent;
}

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    enter(function, NULL);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function, (void)caller;
    if (current >= 0)
        leave();
}

/* ---- noise ---- */

static uint64_t mixed(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double uniform(void)
{
    state = mixed(state);
    return ((double)(state >> 11) + .5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static void seed(void)
{
    const char *told = getenv("CLUSTER_SEED");
    uint64_t number = told ? strtoull(told, NULL, 10) : 0;
    state = mixed(number);
    double run = .01 * normal(); /* the whole run: clock frequency, weather */
    state = mixed(mixed(number) + 1 + (uint64_t)me);
    speed = exp(run + .005 * normal()); /* this core */
}

void compute(double seconds)
{
    double time = seconds * speed * exp(.01 * normal());
    /* The system interrupts ten times a second, for a tenth of a millisecond on average. */
    if (uniform() < 10 * seconds)
        time -= 1e-4 * log(uniform());
    smpi_execute(time);
}

double drawn(int rank, int step)
{
    return (double)(mixed(mixed((uint64_t)rank) + (uint64_t)step) >> 11) / 9007199254740992.0;
}

/* ---- MPI ---- */

static uint64_t size_of(int n, MPI_Datatype type)
{
    int size;
    PMPI_Type_size(type, &size);
    return (uint64_t)n * (uint64_t)size;
}

static uint64_t members(MPI_Comm comm)
{
    int n;
    PMPI_Comm_size(comm, &n);
    return (uint64_t)n;
}

static int is_root(int root, MPI_Comm comm)
{
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank == root;
}

static int returned(int code, uint64_t sent, uint64_t received, uint64_t messages)
{
    struct call_path *path = &paths[current];
    path->sent += sent, path->received += received, path->messages += messages;
    leave();
    return code;
}

#define ENTER(name) enter(name, #name)

int MPI_Init(int *argc, char ***argv)
{
    ENTER(MPI_Init);
    int code = PMPI_Init(argc, argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &me);
    PMPI_Comm_size(MPI_COMM_WORLD, &processes);
    seed();
    return returned(code, 0, 0, 0);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    ENTER(MPI_Isend);
    return returned(PMPI_Isend(data, n, type, to, tag, comm, request), size_of(n, type), 0, 1);
}

int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    ENTER(MPI_Irecv);
    expected += size_of(n, type);
    return returned(PMPI_Irecv(data, n, type, from, tag, comm, request), 0, 0, 0);
}

/* Our programs wait for all requests at once. */
int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
    ENTER(MPI_Waitall);
    int code = PMPI_Waitall(n, requests, statuses);
    uint64_t received = expected;
    expected = 0;
    return returned(code, 0, received, 0);
}

int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    ENTER(MPI_Allreduce);
    uint64_t bytes = size_of(n, type) * members(comm);
    return returned(PMPI_Allreduce(in, out, n, type, op, comm), bytes, bytes, 0);
}

int MPI_Reduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    ENTER(MPI_Reduce);
    uint64_t bytes = size_of(n, type);
    uint64_t received = is_root(root, comm) ? bytes * members(comm) : 0;
    return returned(PMPI_Reduce(in, out, n, type, op, root, comm), bytes, received, 0);
}

int MPI_Bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    ENTER(MPI_Bcast);
    uint64_t bytes = size_of(n, type);
    uint64_t sent = is_root(root, comm) ? bytes * members(comm) : 0;
    return returned(PMPI_Bcast(data, n, type, root, comm), sent, bytes, 0);
}

int MPI_Gather(const void *in, int n, MPI_Datatype type, void *out, int n_out, MPI_Datatype type_out, int root, MPI_Comm comm)
{
    ENTER(MPI_Gather);
    uint64_t bytes = size_of(n, type);
    uint64_t received = is_root(root, comm) ? bytes * members(comm) : 0;
    return returned(PMPI_Gather(in, n, type, out, n_out, type_out, root, comm), bytes, received, 0);
}

int MPI_Scatter(const void *in, int n, MPI_Datatype type, void *out, int n_out, MPI_Datatype type_out, int root, MPI_Comm comm)
{
    ENTER(MPI_Scatter);
    uint64_t bytes = size_of(n_out, type_out);
    uint64_t sent = is_root(root, comm) ? bytes * members(comm) : 0;
    return returned(PMPI_Scatter(in, n, type, out, n_out, type_out, root, comm), sent, bytes, 0);
}

int MPI_Alltoall(const void *in, int n, MPI_Datatype type, void *out, int n_out, MPI_Datatype type_out, MPI_Comm comm)
{
    ENTER(MPI_Alltoall);
    uint64_t bytes = size_of(n, type) * members(comm);
    return returned(PMPI_Alltoall(in, n, type, out, n_out, type_out, comm), bytes, bytes, 0);
}

int MPI_Barrier(MPI_Comm comm)
{
    ENTER(MPI_Barrier);
    return returned(PMPI_Barrier(comm), 0, 0, 0);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    ENTER(MPI_Comm_split);
    return returned(PMPI_Comm_split(comm, color, key, made), 0, 0, 0);
}

static void write_profile(void)
{
    const char *name = getenv("CLUSTER_OUT");
    FILE *out = name ? fopen(name, "a") : NULL;
    if (!out) {
        fprintf(stderr, "CLUSTER_OUT names no file that can be written\n");
        abort();
    }
    for (int path = 0; path < count; path++) {
        const struct call_path *p = &paths[path];
        fprintf(out, "%d %d %d %s %llu %.0f %llu %llu %llu\n", me, path, p->parent, p->name ? p->name : "?",
                (unsigned long long)p->visits, p->seconds * 1e9, (unsigned long long)p->sent,
                (unsigned long long)p->received, (unsigned long long)p->messages);
    }
    fclose(out);
}

/* main() has no costs after this. */
int MPI_Finalize(void)
{
    ENTER(MPI_Finalize);
    PMPI_Barrier(MPI_COMM_WORLD);
    returned(0, 0, 0, 0);
    write_profile();
    current = -1;
    return PMPI_Finalize();
}

void *bulk(size_t bytes)
{
    static void *memory;
    static size_t room;
    if (bytes > room) {
        if (memory)
            SMPI_SHARED_FREE(memory);
        room = bytes;
        memory = SMPI_SHARED_MALLOC(room);
    }
    return memory;
}

static size_t largest(int n, const int *numbers)
{
    int most = 1;
    for (int i = 0; i < n; i++)
        most = numbers[i] > most ? numbers[i] : most;
    return (size_t)most;
}

void exchange(int n, const int *neighbours, const int *bytes_out, const int *bytes_in)
{
    MPI_Request requests[64];
    size_t in = largest(n, bytes_in), out = largest(n, bytes_out);
    void *data = bulk(in > out ? in : out);
    int open = 0;
    for (int i = 0; i < n; i++)
        if (neighbours[i] >= 0)
            MPI_Irecv(data, bytes_in[i], MPI_BYTE, neighbours[i], i, MPI_COMM_WORLD, &requests[open++]);
    for (int i = 0; i < n; i++)
        if (neighbours[i] >= 0)
            MPI_Isend(data, bytes_out[i], MPI_BYTE, neighbours[i], i ^ 1, MPI_COMM_WORLD, &requests[open++]);
    MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
}

void find_neighbours(int dimensions, const int *grid, int periodic, int *neighbours)
{
    for (int d = 0, step = 1; d < dimensions; step *= grid[d++]) {
        int place = me / step % grid[d], n = grid[d];
        for (int side = 0; side < 2; side++) {
            int other = place + 2 * side - 1;
            int inside = other >= 0 && other < n;
            neighbours[2 * d + side] = inside || periodic ? me + ((other + n) % n - place) * step : -1;
        }
    }
}
