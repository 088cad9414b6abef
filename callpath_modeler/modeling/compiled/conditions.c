/* `_likelihoods` in mixture/outlier_scale.py: likelihoods of rows under factors. */
#include "functions.h"
#include "memory.h"

/* Logarithms of normal densities: ``level - sharp / 2 (factor - centre)^2``. */
typedef struct {
    int64_t count;
    const double *centre, *sharp, *level; /* [count]: candidates of one row */
} Said;

INLINE double density_at(const Said *said, int64_t c, double factor)
{
    double away = factor - said->centre[c];
    return said->level[c] - 0.5 * said->sharp[c] * away * away;
}

/* A candidate with NaN has no likelihood. */
INLINE int is_said(const Said *said, int64_t c)
{
    return isfinite(said->centre[c]) && isfinite(said->sharp[c]) && isfinite(said->level[c]);
}

/* Add densities, each sum relative to its largest part; `found` and `sum` are [factors]. */
static void add_up(const Said *said, int64_t factors, const double *restrict factor,
                   double *restrict found, double *restrict sum)
{
    for (int64_t f = 0; f < factors; f++)
        found[f] = -INFINITY, sum[f] = 0;
    for (int64_t c = 0; c < said->count; c++)
        if (is_said(said, c))
#pragma omp simd
            for (int64_t f = 0; f < factors; f++)
                found[f] = larger(density_at(said, c, factor[f]), found[f]);
    for (int64_t c = 0; c < said->count; c++)
        if (is_said(said, c))
#pragma omp simd
            for (int64_t f = 0; f < factors; f++)
                sum[f] += exp_of(density_at(said, c, factor[f]) - found[f]);
#pragma omp simd
    for (int64_t f = 0; f < factors; f++)
        found[f] += log_of(sum[f]);
}

/* Write `found` [rows, factors], -inf without a likelihood. `start` [rows + 1] is the start of
   each row in the other columns. */
int64_t likelihoods(int64_t rows, int64_t factors, const int64_t *start, const double *centre,
                    const double *sharp, const double *level, const double *factor, double *found)
{
    double *sum = new_lines(factors);
    if (!sum)
        return -1;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t begin = start[row];
        Said said = {start[row + 1] - begin, centre + begin, sharp + begin, level + begin};
        add_up(&said, factors, factor, found + row * factors, sum);
    }
    free(sum);
    return 0;
}
