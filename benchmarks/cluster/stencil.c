/* An implicit heat equation on a 3-D grid: conjugate gradients with halo exchange. Weak scaling.
 *
 * Planted: find_owners() compares each boundary with the boxes of all ranks, in every step.
 * gather_output() sends the output of all ranks to the root. */
#include "measure.h"

enum { STEPS = 3, ITERATIONS = 4, DIMENSIONS = 3, FACE = 600000, BOX = 48, OUTPUT = 50000 };

static int p, rank, neighbours[2 * DIMENSIONS], faces[2 * DIMENSIONS];

void read_input(void)
{
    char input[4096] = {0};
    if (rank == 0)
        compute(2e-3);
    MPI_Bcast(input, sizeof input, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void build_grid(void)
{
    int grid[DIMENSIONS] = {0};
    MPI_Dims_create(p, DIMENSIONS, grid);
    find_neighbours(DIMENSIONS, grid, 0, neighbours);
    for (int i = 0; i < 2 * DIMENSIONS; i++)
        faces[i] = FACE;
    compute(6e-3);
}

void gather_boxes(void)
{
    void *boxes = bulk((size_t)p * BOX);
    MPI_Gather(boxes, BOX, MPI_BYTE, boxes, BOX, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(boxes, p * BOX, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void setup(void)
{
    read_input();
    build_grid();
    gather_boxes();
}

void find_owners(void)
{
    compute(14e-6 * p);
}

void assemble(void)
{
    compute(5e-3);
}

void exchange_halo(void)
{
    exchange(2 * DIMENSIONS, neighbours, faces, faces);
}

void apply_operator(void)
{
    compute(2.2e-3);
}

void precondition(void)
{
    compute(1.4e-3);
}

void update_vectors(void)
{
    compute(.6e-3);
}

void dot_products(void)
{
    double own[2] = {1, 1}, all[2];
    compute(.2e-3);
    MPI_Allreduce(own, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

void solve(void)
{
    for (int i = 0; i < ITERATIONS; i++) {
        exchange_halo();
        apply_operator();
        dot_products();
        precondition();
        update_vectors();
    }
}

void gather_output(void)
{
    void *output = bulk(rank == 0 ? (size_t)p * OUTPUT : OUTPUT);
    compute(.5e-3);
    MPI_Gather(output, OUTPUT, MPI_BYTE, output, OUTPUT, MPI_BYTE, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    setup();
    for (int step = 0; step < STEPS; step++) {
        find_owners();
        assemble();
        solve();
    }
    gather_output();
    MPI_Finalize();
    return 0;
}
