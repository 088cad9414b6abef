/* Regressions on one shape each and bounds of their evidence, as in mixture/bounds.py: of one row,
   for all shapes at once. */
#ifndef CALLPATH_MODELER_BOUNDS_H
#define CALLPATH_MODELER_BOUNDS_H

#include "constants.h"
#include "rows.h"

#define SMALLEST 1e-37
#define ALIKE 1e-12
#define ROUNDING 1e-12
#define TIED 1e-5

/* Eight shapes at a time. */
#define WIDTH 8
typedef double Eight __attribute__((vector_size(64), aligned(8)));

/* One row: its values and the weights of its points, [points]. */
typedef struct {
    int64_t points;
    const double *values, *weight;
    double variance, dof, used;
} Row;

/* All regressions of one row on one shape each, under one drift; as `Look` and `Moments`. */
typedef struct {
    double *weights; /* [points] */
    double weight, mean, total;
    double *at, *square, *product, *slope, *residual; /* [shapes] */
} Look;

/* The regressions of a look as `Singles` has them: in units of what the mean is known to. */
typedef struct {
    double unit, mean;
    double *scatter, *about_zero, *slope, *constant; /* [shapes] */
} Singles;

/* The families of hypotheses with one shape, in the order of the priors. */
enum { POSITIVE, OFFSET, BARE, FAMILIES };

/* Sum up shapes with three kinds of weights, [points]; `table` is [points, shapes]. */
static void shape_sums(int64_t points, int64_t shapes, const double *restrict table,
                       const double *restrict share, const double *restrict weights,
                       const double *restrict products, double *restrict at, double *restrict raw,
                       double *restrict product)
{
    int64_t s = 0;
    for (; s + WIDTH <= shapes; s += WIDTH) {
        Eight mean = {0}, square = {0}, both = {0};
        for (int64_t k = 0; k < points; k++) {
            Eight x = *(const Eight *)(table + k * shapes + s);
            mean += x * share[k];
            square += x * x * weights[k];
            both += x * products[k];
        }
        *(Eight *)(at + s) = mean;
        *(Eight *)(raw + s) = square;
        *(Eight *)(product + s) = both;
    }
    for (; s < shapes; s++) {
        double mean = 0, square = 0, both = 0;
        for (int64_t k = 0; k < points; k++) {
            double x = table[k * shapes + s];
            mean += x * share[k];
            square += x * x * weights[k];
            both += x * products[k];
        }
        at[s] = mean, raw[s] = square, product[s] = both;
    }
}

/* Return the inner product of two vectors. */
static double inner(const double *restrict one, const double *restrict other, int64_t count)
{
    Eight sums = {0};
    double found = 0;
    int64_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH)
        sums += *(const Eight *)(one + i) * *(const Eight *)(other + i);
    for (; i < count; i++)
        found += one[i] * other[i];
    for (int j = 0; j < WIDTH; j++)
        found += sums[j];
    return found;
}

/* Regress a row on all shapes; `seen->weights` are there already, `work` is [2, points]. */
static void look(const Row *row, int64_t shapes, const double *table, Look *seen, double *work)
{
    const int64_t points = row->points;
    double *share = work, *products = work + points;
    const RowSums sums = sums_of_row(points, row->values, seen->weights, products);
    const double weight = sums.weight, total = sums.total;
    seen->weight = weight, seen->mean = sums.mean, seen->total = total;
    for (int64_t k = 0; k < points; k++)
        share[k] = seen->weights[k] / weight;
    shape_sums(points, shapes, table, share, seen->weights, products, seen->at, seen->square,
               seen->product);
    double *restrict at = seen->at, *restrict square = seen->square;
    double *restrict product = seen->product, *restrict slope = seen->slope;
    double *restrict residual = seen->residual;
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        double raw = square[s];
        square[s] = larger(raw - at[s] * at[s] * weight, raw * 1e-13 + TINY);
        slope[s] = product[s] / square[s];
        residual[s] = larger(total - slope[s] * product[s], 0);
    }
}

/* Begin to look for what is least. */
INLINE void unlimited(double *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        numbers[i] = INFINITY;
}

INLINE double least_of(const double *numbers, int64_t count)
{
    double least = INFINITY;
#pragma omp simd reduction(min : least)
    for (int64_t i = 0; i < count; i++)
        least = smaller(numbers[i], least);
    return least;
}

INLINE double most_of(const double *numbers, int64_t count)
{
    double most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < count; i++)
        most = larger(numbers[i], most);
    return most;
}

/* Bound a log likelihood from above: under the variance that suits `residual` best; `per_freedom` is
   one over the freedom, if that is 1 or more. */
INLINE double profile(double residual, double dof, double noise, double freedom,
                      double per_freedom)
{
    double variance = larger(residual * per_freedom, noise);
    double tail = log_near(1 + residual / (variance * dof));
    return -0.5 * (freedom * log_near(variance) + (dof + freedom) * tail);
}

/* How many of `count` numbers are `most` or less. */
INLINE int64_t up_to(const double *numbers, int64_t count, double most)
{
    int64_t found = 0;
#pragma omp simd reduction(+ : found)
    for (int64_t i = 0; i < count; i++)
        found += numbers[i] <= most;
    return found;
}

/* Return a number up to which there are `kept` of `count` numbers, or more if some are equal; it is
   `most` or less, and the numbers are 0 or more. Bits of such are in the order of the numbers. */
static double reach_of(const double *numbers, int64_t count, int64_t kept, double most)
{
    uint64_t low = bits_of(1.0), high = bits_of(most);
    if (high <= low || up_to(numbers, count, 1.0) >= kept)
        low = 0;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        int64_t found = up_to(numbers, count, of_bits(middle));
        if (found == kept)
            return of_bits(middle);
        if (found > kept)
            high = middle;
        else
            low = middle;
    }
    return of_bits(high);
}

/* Lower `ratio` to what residuals under one drift are against the least of them, if that is less. */
static void lower_ratio(const double *restrict residual, int64_t count, double *restrict ratio)
{
    double per_least = 1 / larger(least_of(residual, count), ROUNDING);
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        ratio[i] = smaller(residual[i] * per_least, ratio[i]);
}

/* Scale a look down. */
static void scale(const Look *seen, int64_t shapes, Singles *found)
{
    const double unit = sqrt(seen->weight), mean = seen->mean * unit;
    const double *restrict at = seen->at, *restrict square = seen->square;
    double *restrict scatter = found->scatter, *restrict about_zero = found->about_zero;
    double *restrict slope = found->slope, *restrict constant = found->constant;
    const double per_weight = 1 / seen->weight;
    found->unit = unit, found->mean = mean;
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        slope[s] = seen->slope[s] * unit;
        constant[s] = mean - slope[s] * at[s];
        scatter[s] = square[s] * per_weight;
        about_zero[s] = larger(at[s] * at[s] + scatter[s], SMALLEST);
    }
}

/* Lower `bare` to what each shape leaves without a constant, if that is less. */
static void lower_bare(const Look *seen, const Singles *found, int64_t shapes,
                       double *restrict bare)
{
    const double *restrict constant = found->constant, *restrict scatter = found->scatter;
    const double *restrict about_zero = found->about_zero;
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        /* As a constant is forced to zero, residuals grow by its square over its variance. */
        double left = seen->residual[s] + constant[s] * constant[s] * scatter[s] / about_zero[s];
        bare[s] = smaller(left, bare[s]);
    }
}

/* Slope of a shape without a constant: it makes up for what the constant was. */
INLINE double bare_slope(const Look *seen, const Singles *found, int64_t s)
{
    return found->slope[s] + found->constant[s] * seen->at[s] / found->about_zero[s];
}

/* The part of the bounds that depends on coefficients, as `Singles.volumes`; `falling` is 1 or 0. */
static void volumes(const Look *seen, const Singles *found, int64_t shapes, double variance,
                    const double *restrict falling, double *restrict positive,
                    double *restrict offset, double *restrict bare)
{
    const double mean = found->mean, lowest = LEAST_LEVEL * mean, sharp = -0.5 / variance;
    const double *restrict at = seen->at, *restrict slopes = found->slope;
    const double *restrict constants = found->constant, *restrict scatters = found->scatter;
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        double slope = slopes[s], constant = constants[s];
        double scatter = larger(scatters[s], SMALLEST), sharpness = scatters[s] * sharp;
        /* The models at both ends of a slope. */
        double level = larger(constant + slope, lowest);
        double edge = constant / larger(at[s], 1e-9);
        double below = smaller(slope, 0), beyond = smaller(edge, 0);
        double far = falling[s] != 0 ? larger(constant, lowest) : level;
        double away = falling[s] != 0 ? slope - below : edge - beyond;
        far *= far;
        offset[s] = LOG_2PI - 0.5 * log_near(far * far * scatter) + away * away * sharpness;
        double known = sqrt(variance * found->about_zero[s] / scatter);
        double rest = room_of_share(constant / level, known / level, CONSTANT_FOLDS);
        double room = falling[s] != 0 ? rest * rest : 4 * larger(constant / level, SHARE_EDGE);
        level *= level;
        positive[s] = LOG_2PI - 0.5 * log_near(level * level * room * scatter)
                      + (below * below + beyond * beyond) * sharpness;
        double alone = larger(bare_slope(seen, found, s), lowest);
        double square = larger(alone * alone * found->about_zero[s], SMALLEST);
        bare[s] = LOG_2PI / 2 - 0.5 * log_near(square);
    }
}

#endif
