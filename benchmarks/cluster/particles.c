/* Particles in a periodic 2-D box: push, migrate, deposit, solve; rebalanced once. Weak scaling.
 *
 * Planted: the root alone draws the particles of all ranks in draw_particles(). agree_on_buffers()
 * calls a reduction over all ranks once for each neighbour. */
#include "measure.h"

enum { STEPS = 4, REBALANCED = 2, DIMENSIONS = 2, SIDES = 4, PARTICLE = 64, PARTICLES = 200000, HALO = 200000, DRAWN = 4096, CUT = 16 };

static int p, rank, neighbours[SIDES], halos[SIDES], leaving[SIDES], coming[SIDES];
static double load = 1;

void draw_particles(void)
{
    void *drawn_there = bulk(rank == 0 ? (size_t)p * DRAWN : DRAWN);
    if (rank == 0)
        compute(2e-3 + 40e-6 * p);
    MPI_Scatter(drawn_there, DRAWN, MPI_BYTE, drawn_there, DRAWN, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void build_cells(void)
{
    int grid[DIMENSIONS] = {0};
    MPI_Dims_create(p, DIMENSIONS, grid);
    find_neighbours(DIMENSIONS, grid, 1, neighbours);
    for (int i = 0; i < SIDES; i++)
        halos[i] = HALO;
    compute(4e-3);
}

void setup(void)
{
    draw_particles();
    build_cells();
}

void push(int step)
{
    load *= 1 + .06 * (drawn(rank, step) - .5);
    compute(12e-3 * load);
}

/* About a hundredth of the particles leaves on each side. */
void count_leaving(int step)
{
    for (int i = 0; i < SIDES; i++) {
        int share = (int)(PARTICLES / 100 * (.8 + .4 * drawn(rank, 1000 + 10 * step + i)));
        leaving[i] = share * PARTICLE;
        share = (int)(PARTICLES / 100 * (.8 + .4 * drawn(neighbours[i], 1000 + 10 * step + (i ^ 1))));
        coming[i] = share * PARTICLE;
    }
    compute(.6e-3 * load);
}

void agree_on_buffers(void)
{
    for (int i = 0; i < SIDES; i++) {
        int most;
        MPI_Allreduce(&leaving[i], &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
}

void sort_particles(void)
{
    compute(1.5e-3 * load);
}

void migrate(int step)
{
    count_leaving(step);
    agree_on_buffers();
    exchange(SIDES, neighbours, leaving, coming);
    sort_particles();
}

void deposit(void)
{
    compute(5e-3 * load);
    exchange(SIDES, neighbours, halos, halos);
}

void relax(void)
{
    compute(2e-3);
    exchange(SIDES, neighbours, halos, halos);
}

void solve_field(void)
{
    double own = 1, all;
    relax();
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* The root cuts the curve through all cells, and tells everybody. */
void rebalance(void)
{
    void *table = bulk((size_t)p * CUT);
    MPI_Gather(&load, 1, MPI_DOUBLE, table, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        compute(3e-6 * p);
    MPI_Bcast(table, CUT * p, MPI_BYTE, 0, MPI_COMM_WORLD);
    exchange(SIDES, neighbours, halos, halos);
    load = 1;
}

void write_energy(void)
{
    double own = load, all;
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        compute(.2e-3);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    setup();
    for (int step = 0; step < STEPS; step++) {
        push(step);
        migrate(step);
        deposit();
        solve_field();
        if (step % REBALANCED == REBALANCED - 1)
            rebalance();
        write_energy();
    }
    MPI_Finalize();
    return 0;
}
