/* Times of nine MPI collectives and of 15 mock-ups of PGMPI, one line each: name, bytes, seconds.
 *
 *     smpicc -O2 -o mock_ups mock_ups.c
 *     smpirun -np 8 -platform fat_tree.xml -hostfile hosts ./mock_ups
 *
 * Messages are bytes, and the operation is MPI_BOR. The size is the block of a process for functions
 * that gather or scatter, and the whole buffer for others. A time is the largest one of all
 * processes, after a barrier.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WORLD MPI_COMM_WORLD
#define BYTE MPI_BYTE

static const int SIZES[] = {8, 64, 256, 1024, 2048, 4096, 10240, 16384, 32768, 65536};
enum { NUMBER_OF_SIZES = sizeof SIZES / sizeof SIZES[0], LARGEST = 65536 };

static int processes, *counts, *places;
static char *in, *out, *beside;

static int part(int m) { return (m + processes - 1) / processes; }
static int whole(int m) { return m * processes; }

static void allgather(int m) { MPI_Allgather(in, m, BYTE, out, m, BYTE, WORLD); }
static void allreduce(int m) { MPI_Allreduce(in, out, m, BYTE, MPI_BOR, WORLD); }
static void alltoall(int m) { MPI_Alltoall(in, m, BYTE, out, m, BYTE, WORLD); }
static void bcast(int m) { MPI_Bcast(in, m, BYTE, 0, WORLD); }
static void gather(int m) { MPI_Gather(in, m, BYTE, out, m, BYTE, 0, WORLD); }
static void reduce(int m) { MPI_Reduce(in, out, m, BYTE, MPI_BOR, 0, WORLD); }
static void scatter(int m) { MPI_Scatter(in, m, BYTE, out, m, BYTE, 0, WORLD); }
static void scan(int m) { MPI_Scan(in, out, m, BYTE, MPI_BOR, WORLD); }
static void reduce_scatter_block(int m) {
  MPI_Reduce_scatter_block(in, out, m, BYTE, MPI_BOR, WORLD);
}
static void reduce_scatter(int m) {
  for (int k = 0; k < processes; k++) counts[k] = m;
  MPI_Reduce_scatter(in, out, counts, BYTE, MPI_BOR, WORLD);
}
static void whole_allreduce(int m) { allreduce(whole(m)); }
static void whole_bcast(int m) { bcast(whole(m)); }
static void whole_reduce(int m) { reduce(whole(m)); }
static void gather_bcast(int m) { gather(m), bcast(whole(m)); }
static void reduce_bcast(int m) { reduce(m), bcast(m); }
static void scatter_allgather(int m) { scatter(part(m)), allgather(part(m)); }
static void block_allgather(int m) { reduce_scatter_block(part(m)), allgather(part(m)); }
static void block_gather(int m) { reduce_scatter_block(part(m)), gather(part(m)); }
static void reduce_then_scatter(int m) { reduce(whole(m)), scatter(m); }
static void reduce_then_scatterv(int m) {
  reduce(whole(m));
  for (int k = 0; k < processes; k++) counts[k] = m, places[k] = k * m;
  MPI_Scatterv(in, counts, places, BYTE, out, m, BYTE, 0, WORLD);
}
static void exscan_reduce_local(int m) {
  MPI_Exscan(in, out, m, BYTE, MPI_BOR, WORLD);
  MPI_Reduce_local(in, beside, m, BYTE, MPI_BOR);
}

static const struct {
  const char *name;
  void (*call)(int);
} FUNCTIONS[] = {
    {"MPI_Allgather", allgather},
    {"MPI_Allreduce", allreduce},
    {"MPI_Bcast", bcast},
    {"MPI_Gather", gather},
    {"MPI_Reduce", reduce},
    {"MPI_Reduce_scatter", reduce_scatter},
    {"MPI_Reduce_scatter_block", reduce_scatter_block},
    {"MPI_Scan", scan},
    {"MPI_Scatter", scatter},
    {"GL_Allgather_as_Allreduce", whole_allreduce},
    {"GL_Allgather_as_Alltoall", alltoall},
    {"GL_Allgather_as_GatherBcast", gather_bcast},
    {"GL_Allreduce_as_ReduceBcast", reduce_bcast},
    {"GL_Allreduce_as_ReducescatterblockAllgather", block_allgather},
    {"GL_Bcast_as_ScatterAllgather", scatter_allgather},
    {"GL_Gather_as_Allgather", allgather},
    {"GL_Gather_as_Reduce", whole_reduce},
    {"GL_Reduce_as_Allreduce", allreduce},
    {"GL_Reduce_as_ReducescatterblockGather", block_gather},
    {"GL_Reduce_scatter_as_Allreduce", whole_allreduce},
    {"GL_Reduce_scatter_as_ReduceScatterv", reduce_then_scatterv},
    {"GL_Reduce_scatter_block_as_ReduceScatter", reduce_then_scatter},
    {"GL_Scan_as_ExscanReducelocal", exscan_reduce_local},
    {"GL_Scatter_as_Bcast", whole_bcast},
};
enum { NUMBER_OF_FUNCTIONS = sizeof FUNCTIONS / sizeof FUNCTIONS[0], CALLS = 3 };

static void *buffer(size_t bytes) {
  void *made = calloc(bytes, 1);
  if (made == NULL) MPI_Abort(WORLD, 1);
  return made;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &processes);
  size_t bytes = (size_t)LARGEST * (size_t)(processes + 1);
  in = buffer(bytes), out = buffer(bytes), beside = buffer(bytes);
  counts = buffer((size_t)processes * sizeof *counts);
  places = buffer((size_t)processes * sizeof *places);
  for (int s = 0; s < NUMBER_OF_SIZES; s++)
    for (int f = 0; f < NUMBER_OF_FUNCTIONS; f++)
      for (int k = 1; k <= CALLS; k++) {
        MPI_Barrier(WORLD);
        double start = MPI_Wtime();
        FUNCTIONS[f].call(SIZES[s]);
        double mine = MPI_Wtime() - start, longest = 0;
        MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, WORLD);
        if (rank == 0 && k == CALLS)
          printf("%s %d %.10f\n", FUNCTIONS[f].name, SIZES[s], longest);
      }
  MPI_Finalize();
  return 0;
}
