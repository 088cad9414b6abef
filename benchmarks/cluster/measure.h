/* Call paths of an MPI program in the virtual time of SimGrid SMPI; see measure.c. */
#ifndef MEASURE_H
#define MEASURE_H

#include <mpi.h>
#include <stddef.h>

/* Compute for so many seconds, with the noise of the machine. */
void compute(double seconds);

/* A number from [0, 1) that depends on the rank and on the arguments, but not on the run. */
double drawn(int rank, int step);

/* Memory for messages. Nobody reads what is in it, and it moves when more bytes are asked for. */
void *bulk(size_t bytes);

/* Exchange blocks by Isend, Irecv and Waitall. Neighbours i and i ^ 1 are opposite, -1 is nobody. */
void exchange(int n, const int *neighbours, const int *bytes_out, const int *bytes_in);

/* The ranks before and after this one along each dimension of a grid, 2 * dimensions numbers. */
void find_neighbours(int dimensions, const int *grid, int periodic, int *neighbours);

#endif
