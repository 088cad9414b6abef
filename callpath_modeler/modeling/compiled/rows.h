/* One row of `ScaledRows` with the weights of its points, the input of every regression. */
#ifndef CALLPATH_MODELER_ROWS_H
#define CALLPATH_MODELER_ROWS_H

#include "functions.h"

/* `error_unit` in mixture/scaled_rows.py; arrays are [K]; `least` comes from `floor_of` there. */
INLINE void error_unit(int64_t points, double least, const double *fitted, double *unit)
{
#pragma omp simd
    for (int64_t k = 0; k < points; k++)
        unit[k] = larger(fitted[k], least);
}

/* Number of points with a value. */
INLINE double used_of(int64_t points, const double *weight)
{
    double used = 0;
#pragma omp simd reduction(+ : used)
    for (int64_t k = 0; k < points; k++)
        used += weight[k] > 0 ? 1.0 : 0.0;
    return used;
}

/* Write the weights of points without a drift; errors are relative to `unit`; arrays are [K]. */
INLINE void plain_weights(int64_t points, const double *weight, const double *unit, double *plain)
{
#pragma omp simd
    for (int64_t k = 0; k < points; k++)
        plain[k] = weight[k] / (unit[k] * unit[k]);
}

/* `relative_weights` in mixture/scaled_rows.py, under one drift, from `plain` weights; arrays are
   [K].

   `precision` and `away` come from `precisions` in candidates.py: factors if every point has a value,
   and logarithms that give their level if some points have none. */
INLINE void relative_weights(int64_t points, const double *plain, const double *precision,
                             const double *away, double *weights)
{
    double used = 0, level = 0;
#pragma omp simd reduction(+ : used, level)
    for (int64_t k = 0; k < points; k++) {
        double there = plain[k] > 0 ? 1.0 : 0.0;
        used += there;
        level += there * away[k];
    }
    double factor = used < (double)points ? exp_of(level / larger(used, 1)) : 1;
#pragma omp simd
    for (int64_t k = 0; k < points; k++)
        weights[k] = plain[k] * precision[k] * factor;
}

/* Sums of one row under one drift, as in `Moments`. */
typedef struct {
    double weight, mean, total;
} RowSums;

/* Return the sums of a row, and write its weights times its values about their mean, [K]. */
INLINE RowSums sums_of_row(int64_t points, const double *values, const double *weights,
                           double *products)
{
    double weight = 0, sum = 0, total = 0;
#pragma omp simd reduction(+ : weight, sum)
    for (int64_t k = 0; k < points; k++) {
        weight += weights[k];
        sum += weights[k] * values[k];
    }
    double mean = sum / weight;
#pragma omp simd reduction(+ : total)
    for (int64_t k = 0; k < points; k++) {
        double centred = values[k] - mean;
        products[k] = weights[k] * centred;
        total += products[k] * centred;
    }
    return (RowSums){weight, mean, total};
}

#endif
