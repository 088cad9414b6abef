/* Regressions on one shape each and bounds of their evidence, as in oracle/bounds.py: for one
   row and all shapes at once. */
#ifndef CALLPATH_MODELER_BOUNDS_H
#define CALLPATH_MODELER_BOUNDS_H

#include "costs.h"
#include "rows.h"

#define SMALLEST 1e-37f

/* Shapes and pairs fill whole vectors. The last vector is filled up with the last shape, or with
   any pair; these additional ones have no prior. */
enum { WHOLE = LIMITS_WHOLE };

INLINE int64_t whole(int64_t count) { return (count + WHOLE - 1) / WHOLE * WHOLE; }

/* One row: its values and the weights of its points, [points]. */
typedef struct {
    int64_t points;
    const double *values, *weight;
    double variance, dof, used;
} Row;

/* All regressions of one row on one shape each, under one drift: `OneTermRegressions` and
   `Moments`. */
typedef struct {
    double *weights; /* [points] */
    double weight, mean, total, least; /* least: smallest residual of a shape */
    double *at, *square, *product, *slope, *residual; /* [shapes] */
} Look;

/* Regressions as in `OneTermFits32`: in units of the standard error of the mean, in single
   precision. */
typedef struct {
    float unit, mean;
    float *at, *scatter, *about_zero, *slope, *constant; /* [shapes] */
} Singles;

/* Families of hypotheses with one shape, in the order of the priors. */
enum { POSITIVE, OFFSET, BARE, FAMILIES };

/* Put [count, points] numbers of shapes or pairs in blocks, [blocks, points, WHOLE], which are
   read from start to end. The last shape or pair fills up the last block. */
static void put_in_blocks(int64_t points, int64_t count, const double *restrict numbers,
                          double *restrict blocks)
{
    for (int64_t s = 0; s < whole(count); s++) {
        const double *its = numbers + (s < count ? s : count - 1) * points;
        for (int64_t k = 0; k < points; k++)
            blocks[s / WHOLE * WHOLE * points + k * WHOLE + s % WHOLE] = its[k];
    }
}

/* Numbers of one shape or pair in such blocks: that of the first point; points are WHOLE apart. */
INLINE const double *in_blocks(const double *blocks, int64_t points, int64_t s)
{
    return blocks + s / WHOLE * WHOLE * points + s % WHOLE;
}

/* Number of vectors that hold WHOLE numbers. */
enum { VECTORS = WHOLE / WIDTH };
#define EACH_VECTOR _Pragma("GCC unroll 8") for (int v = 0; v < VECTORS; v++)

INLINE void put(double *numbers, const Vector *vectors)
{
    EACH_VECTOR *(Vector *)(numbers + v * WIDTH) = vectors[v];
}

/* Sum a block of shapes with three kinds of weights, [points]. */
static void shape_sums(int64_t points, const double *restrict block, const double *restrict share,
                       const double *restrict weights, const double *restrict products,
                       double *restrict at, double *restrict raw, double *restrict product)
{
    Vector mean[VECTORS] = {{0}}, square[VECTORS] = {{0}}, both[VECTORS] = {{0}};
    for (int64_t k = 0; k < points; k++)
        EACH_VECTOR {
            Vector x = *(const Vector *)(block + k * WHOLE + v * WIDTH);
            mean[v] += x * share[k];
            square[v] += x * x * weights[k];
            both[v] += x * products[k];
        }
    put(at, mean), put(raw, square), put(product, both);
}

/* Sum a row under one drift; `work` [2, points] are shares of weights, and products with them. */
static void begin(const Row *row, Look *seen, double *work)
{
    const int64_t points = row->points;
    double *share = work, *products = work + points;
    const RowSums sums = sums_of_row(points, row->values, seen->weights, products);
    const double per_weight = 1 / sums.weight;
    seen->weight = sums.weight, seen->mean = sums.mean, seen->total = sums.total;
    for (int64_t k = 0; k < points; k++)
        share[k] = seen->weights[k] * per_weight;
}

/* Sum a row with all shapes, under several drifts at once. The weights of `looks` are given,
   `table` is in blocks, and `work` is [drifts, 2, points]. */
static void sum_up(const Row *row, int64_t shapes, const double *table, Look *looks,
                   int64_t drifts, double *work)
{
    const int64_t points = row->points;
    for (int64_t l = 0; l < drifts; l++)
        begin(row, looks + l, work + 2 * l * points);
    for (int64_t s = 0; s < shapes; s += WHOLE)
        for (int64_t l = 0; l < drifts; l++) {
            const Look *seen = looks + l;
            const double *share = work + 2 * l * points, *products = share + points;
            shape_sums(points, table + s * points, share, seen->weights, products, seen->at + s,
                       seen->square + s, seen->product + s);
        }
    for (int64_t l = 0; l < drifts; l++) {
        double *restrict at = looks[l].at, *restrict square = looks[l].square;
        const double weight = looks[l].weight;
#pragma omp simd
        for (int64_t s = 0; s < shapes; s++) {
            double raw = square[s];
            square[s] = larger(raw - at[s] * at[s] * weight, raw * 1e-13 + EVIDENCE_TINY);
        }
    }
}

/* Regress a row on all shapes, with the sums of `sum_up`. */
static void look(int64_t shapes, Look *seen)
{
    double least = INFINITY;
    const double *restrict square = seen->square, *restrict product = seen->product;
    double *restrict slope = seen->slope, *restrict residual = seen->residual;
    const double total = seen->total;
#pragma omp simd reduction(min : least)
    for (int64_t s = 0; s < shapes; s++) {
        slope[s] = product[s] / square[s];
        residual[s] = larger(total - slope[s] * product[s], 0);
        least = smaller(residual[s], least);
    }
    seen->least = least;
}

/* Set the numbers to infinity, the start of a search for the smallest. */
INLINE void unlimited(float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        numbers[i] = INFINITY;
}

INLINE float least_of(const float *numbers, int64_t count)
{
    float least = INFINITY;
#pragma omp simd reduction(min : least)
    for (int64_t i = 0; i < count; i++)
        least = smaller_single(numbers[i], least);
    return least;
}

INLINE float most_of(const float *numbers, int64_t count)
{
    float most = -INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < count; i++)
        most = larger_single(numbers[i], most);
    return most;
}

/* Return an upper bound of a log likelihood: that under the variance that suits `residual` best.
   `per_freedom` is 1 / `freedom` if that is 1 or more. */
INLINE float profile(float residual, float dof, float noise, float freedom, float per_freedom)
{
    float variance = larger_single(residual * per_freedom, noise);
    float tail = log_single(1 + residual / (variance * dof));
    return -0.5f * (freedom * log_single(variance) + (dof + freedom) * tail);
}

/* Return how many of `count` numbers are `most` or less. */
INLINE int64_t up_to(const float *numbers, int64_t count, float most)
{
    int32_t found = 0;
#pragma omp simd reduction(+ : found)
    for (int64_t i = 0; i < count; i++)
        found += numbers[i] <= most;
    return found;
}

/* Return a number up to which there are `kept` of `count` numbers, or more if some are equal. It
   is at most `most`. The numbers are not negative, so their bits are in the order of the numbers. */
static float reach_of(const float *numbers, int64_t count, int64_t kept, float most)
{
    uint32_t low = bits_of_single(1.0f), high = bits_of_single(most);
    if (high <= low || up_to(numbers, count, 1.0f) >= kept)
        low = 0;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        int64_t found = up_to(numbers, count, single_of_bits(middle));
        if (found == kept)
            return single_of_bits(middle);
        if (found > kept)
            high = middle;
        else
            low = middle;
    }
    return single_of_bits(high);
}

/* Convert regressions to single precision. */
static void scale(const Look *seen, int64_t shapes, Singles *found)
{
    const double unit = sqrt(seen->weight), mean = seen->mean * unit;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict slopes = seen->slope, per_weight = 1 / seen->weight;
    float *restrict scatter = found->scatter, *restrict about_zero = found->about_zero;
    float *restrict slope = found->slope, *restrict constant = found->constant;
    float *restrict ats = found->at;
    found->unit = (float)unit, found->mean = (float)mean;
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        /* A constant near zero would lose its digits in single precision. */
        double its = slopes[s] * unit;
        float here = (float)at[s], square_here = (float)(square[s] * per_weight);
        ats[s] = here;
        slope[s] = (float)its;
        constant[s] = (float)(mean - its * at[s]);
        scatter[s] = square_here;
        about_zero[s] = larger_single(here * here + square_here, SMALLEST);
    }
}

/* Lower residuals to those of shapes under one drift, if these are smaller: `least` with a
   constant, `bare` without one, and `ratio`, relative to the smallest of all shapes. */
static void lower(const Look *seen, const Singles *found, int64_t shapes, float *restrict least,
                  float *restrict bare, float *restrict ratio)
{
    const float *restrict constant = found->constant, *restrict scatter = found->scatter;
    const float *restrict about_zero = found->about_zero;
    const double *restrict residual = seen->residual, per_least = 1 / larger(seen->least, HYPOTHESES_ROUNDING);
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        float left = (float)residual[s];
        /* Forcing a constant to zero adds its square, divided by its variance. */
        float forced = left + constant[s] * constant[s] * scatter[s] / about_zero[s];
        least[s] = smaller_single(left, least[s]);
        bare[s] = smaller_single(forced, bare[s]);
        ratio[s] = smaller_single((float)(residual[s] * per_least), ratio[s]);
    }
}

/* `occam_volume` in single precision. */
INLINE float room_single(float share, float known, float folds)
{
    return folds * larger_single(larger_single(share, known), (float)EVIDENCE_LEAST_SHARE);
}

/* The part of the bounds that depends on coefficients, as `OneTermFits32.volumes`; `falling` is 1
   or 0. */
static void volumes(const Singles *found, int64_t shapes, float variance,
                    const float *restrict falling, float *restrict positive,
                    float *restrict offset, float *restrict bare)
{
    const float mean = found->mean, lowest = (float)EVIDENCE_LEAST_LEVEL * mean, sharp = -0.5f / variance;
    const float *restrict at = found->at, *restrict slopes = found->slope;
    const float *restrict constants = found->constant, *restrict scatters = found->scatter;
    const float *restrict about_zero = found->about_zero, two_pi = (float)EVIDENCE_LOG_2PI;
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        float slope = slopes[s], constant = constants[s];
        float scatter = larger_single(scatters[s], SMALLEST), sharpness = scatters[s] * sharp;
        /* The level at the largest shape; below, the distances of the slope from its bounds. */
        float level = larger_single(constant + slope, lowest);
        float edge = constant / larger_single(at[s], 1e-9f);
        float below = smaller_single(slope, 0), beyond = smaller_single(edge, 0);
        float far = falling[s] != 0 ? larger_single(constant, lowest) : level;
        float away = falling[s] != 0 ? slope - below : edge - beyond;
        far *= far;
        offset[s] = two_pi - 0.5f * log_single(far * far * scatter) + away * away * sharpness;
        float known = sqrtf(variance * about_zero[s] / scatter);
        float per_level = 1 / level, share = constant * per_level;
        float rest = room_single(share, known * per_level, (float)EVIDENCE_CONSTANT_FOLDS);
        float room = falling[s] != 0 ? rest * rest : 4 * larger_single(share, (float)EVIDENCE_SHARE_EDGE);
        level *= level;
        positive[s] = two_pi - 0.5f * log_single(level * level * room * scatter)
                      + (below * below + beyond * beyond) * sharpness;
        /* Without a constant, the shape replaces it. */
        float alone = larger_single(slope + constant * at[s] / about_zero[s], lowest);
        float square = larger_single(alone * alone * about_zero[s], SMALLEST);
        bare[s] = 0.5f * two_pi - 0.5f * log_single(square);
    }
}

#endif
