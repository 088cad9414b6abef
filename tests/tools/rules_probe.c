/* Prints where a rule of Open MPI selects an algorithm that does not exist.
 *
 * Such a call returns an error. So the errors show how the library reads a file of rules: one line
 * "FUNCTION PROCESSES BYTES" for each failed call. Communicators have 2 to all processes. The
 * sizes are in the convention of the project: blocks for functions that gather or scatter.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 4096 };
static char in[LARGEST * 64], out[LARGEST * 64];

static int call(int function, int m, int p, MPI_Comm comm) {
  int counts[64];
  for (int k = 0; k < p; k++) counts[k] = m;
  switch (function) {
    case 0: return MPI_Allgather(in, m, MPI_BYTE, out, m, MPI_BYTE, comm);
    case 1: return MPI_Allreduce(in, out, m, MPI_BYTE, MPI_BOR, comm);
    case 2: return MPI_Alltoall(in, m, MPI_BYTE, out, m, MPI_BYTE, comm);
    case 3: return MPI_Bcast(in, m, MPI_BYTE, 0, comm);
    case 4: return MPI_Reduce(in, out, m, MPI_BYTE, MPI_BOR, 0, comm);
    case 5: return MPI_Reduce_scatter(in, out, counts, MPI_BYTE, MPI_BOR, comm);
    case 6: return MPI_Reduce_scatter_block(in, out, m, MPI_BYTE, MPI_BOR, comm);
    case 7: return MPI_Scan(in, out, m, MPI_BYTE, MPI_BOR, comm);
    default: return MPI_Gather(in, m, MPI_BYTE, out, m, MPI_BYTE, 0, comm);
  }
}

int main(int argc, char **argv) {
  static const char *names[] = {"Allgather", "Allreduce", "Alltoall", "Bcast", "Reduce",
                                "Reduce_scatter", "Reduce_scatter_block", "Scan", "Gather"};
  int rank, processes;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  for (int p = 2; p <= processes; p++) {
    MPI_Comm some;
    MPI_Comm_split(MPI_COMM_WORLD, rank < p ? 0 : MPI_UNDEFINED, rank, &some);
    if (some == MPI_COMM_NULL) continue;
    MPI_Comm_set_errhandler(some, MPI_ERRORS_RETURN);
    for (int f = 0; f < 9; f++)
      for (int k = 1; k < argc; k++)
        if (call(f, atoi(argv[k]), p, some) != MPI_SUCCESS && rank == 0)
          printf("%s %d %s\n", names[f], p, argv[k]);
    MPI_Comm_free(&some);
  }
  MPI_Finalize();
  return 0;
}
