/* Times of MPI collectives and of mock-ups, in the output format of ReproMPI.
 *
 *     mpicc -O2 -o collectives collectives.c
 *     mpirun -n 4 ./collectives 50 > mpi_bench_r0.dat
 *
 * The argument is the number of repetitions. Each run is one mpirun. Messages are bytes, and the
 * operation is MPI_BOR. The size is the block of a process for functions that gather or scatter,
 * and the whole buffer for others. A time is the largest one of all processes, after a barrier.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int SIZES[] = {8, 64, 512, 1024, 4096, 16384, 65536};
enum { NUMBER_OF_SIZES = sizeof SIZES / sizeof SIZES[0], LARGEST = 65536 };

static int processes;
static char *in, *out, *beside;

static void allgather(int m) {
  MPI_Allgather(in, m, MPI_BYTE, out, m, MPI_BYTE, MPI_COMM_WORLD);
}
static void allreduce(int m) { MPI_Allreduce(in, out, m, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD); }
static void bcast(int m) { MPI_Bcast(in, m, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void gather(int m) {
  MPI_Gather(in, m, MPI_BYTE, out, m, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void reduce(int m) { MPI_Reduce(in, out, m, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD); }
static void scatter(int m) {
  MPI_Scatter(in, m, MPI_BYTE, out, m, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void reduce_scatter_block(int m) {
  MPI_Reduce_scatter_block(in, out, m, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}
static void allgather_as_gather_bcast(int m) {
  gather(m);
  MPI_Bcast(out, m * processes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void allreduce_as_reduce_bcast(int m) {
  reduce(m);
  MPI_Bcast(out, m, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void reduce_scatter_block_as_reduce_scatter(int m) {
  MPI_Reduce(in, beside, m * processes, MPI_BYTE, MPI_BOR, 0, MPI_COMM_WORLD);
  MPI_Scatter(beside, m, MPI_BYTE, out, m, MPI_BYTE, 0, MPI_COMM_WORLD);
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
    {"MPI_Reduce_scatter_block", reduce_scatter_block},
    {"MPI_Scatter", scatter},
    {"GL_Allgather_as_GatherBcast", allgather_as_gather_bcast},
    {"GL_Allreduce_as_ReduceBcast", allreduce_as_reduce_bcast},
    {"GL_Reduce_scatter_block_as_ReduceScatter", reduce_scatter_block_as_reduce_scatter},
};
enum { NUMBER_OF_FUNCTIONS = sizeof FUNCTIONS / sizeof FUNCTIONS[0], WARM_UP = 5 };

static char *buffer(void) {
  char *made = calloc((size_t)LARGEST * (size_t)processes, 1);
  if (made == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return made;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  int repetitions = argc > 1 ? atoi(argv[1]) : 50;
  in = buffer(), out = buffer(), beside = buffer();
  if (rank == 0) {
    printf("#@datatype=MPI_BYTE\n#@datatype_size_bytes=1\n#@nprocs=%d\n", processes);
    printf("%50s %10s %12s %14s\n", "test", "nrep", "msize_bytes", "runtime_sec");
  }
  for (int f = 0; f < NUMBER_OF_FUNCTIONS; f++)
    for (int s = 0; s < NUMBER_OF_SIZES; s++)
      for (int k = -WARM_UP; k < repetitions; k++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        FUNCTIONS[f].call(SIZES[s]);
        double mine = MPI_Wtime() - start, longest = 0;
        MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && k >= 0)
          printf("%50s %10d %12d %14.10f\n", FUNCTIONS[f].name, k, SIZES[s], longest);
      }
  if (rank == 0) printf("# Execution finished\n");
  MPI_Finalize();
  return 0;
}
