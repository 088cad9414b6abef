/* A spectral code on pencils: transposes in rows and columns of ranks, and a coarse solve.
 * Weak scaling: each rank holds as many points at every scale.
 *
 * Planted: the root alone solves the coarse system, whose costs grow as p^(3/2). The blocks of
 * exchange_spectra() shrink with p, so that the MPI library changes its algorithm. */
#include "measure.h"

#include <math.h>

enum { STEPS = 1, DIMENSIONS = 2, PENCIL = 8000000, SPECTRUM = 24000, COARSE = 256, PARAMETERS = 2048 };

static int p, rank, width;
static MPI_Comm row, column;

void read_parameters(void)
{
    if (rank == 0)
        compute(1e-3);
    MPI_Bcast(bulk(PARAMETERS), PARAMETERS, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void build_pencils(void)
{
    int grid[DIMENSIONS] = {0};
    MPI_Dims_create(p, DIMENSIONS, grid);
    width = grid[0];
    MPI_Comm_split(MPI_COMM_WORLD, rank / width, rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % width, rank, &column);
    compute(3e-3);
}

void plan_transforms(void)
{
    compute(2e-3);
}

void setup(void)
{
    read_parameters();
    build_pencils();
    plan_transforms();
}

/* Lines get longer with the grid: n log n. */
void transform(void)
{
    compute(1.2e-3 * (1 + .1 * log2(p)));
}

void transpose(MPI_Comm comm, int bytes)
{
    int n;
    MPI_Comm_size(comm, &n);
    void *data = bulk((size_t)bytes);
    MPI_Alltoall(data, bytes / n, MPI_BYTE, data, bytes / n, MPI_BYTE, comm);
}

void forward(void)
{
    transform();
    transpose(row, PENCIL);
    transform();
    transpose(column, PENCIL);
    transform();
}

void backward(void)
{
    transform();
    transpose(column, PENCIL);
    transform();
    transpose(row, PENCIL);
    transform();
}

void products(void)
{
    compute(4e-3);
}

void exchange_spectra(void)
{
    transpose(row, SPECTRUM);
}

void coarse_solve(void)
{
    void *system = bulk((size_t)p * COARSE);
    MPI_Gather(system, COARSE, MPI_BYTE, system, COARSE, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        compute(.3e-3 + .25e-6 * p * sqrt(p));
    MPI_Scatter(system, COARSE, MPI_BYTE, system, COARSE, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void time_step(void)
{
    double own = 1, all;
    compute(.3e-3);
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    setup();
    for (int step = 0; step < STEPS; step++) {
        time_step();
        forward();
        products();
        exchange_spectra();
        backward();
        coarse_solve();
    }
    MPI_Finalize();
    return 0;
}
