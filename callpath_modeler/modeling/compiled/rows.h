/* One row of `Data`, with the weights of its points: what every regression begins with. */
#ifndef CALLPATH_MODELER_ROWS_H
#define CALLPATH_MODELER_ROWS_H

#include "functions.h"

/* `error_unit` in mixture/data.py; all [K]; `least` of `floor_of` there. */
INLINE void error_unit(int64_t points, double least, const double *fitted, double *unit)
{
#pragma omp simd
    for (int64_t k = 0; k < points; k++)
        unit[k] = larger(fitted[k], least);
}

/* How many points have a value. */
INLINE double used_of(int64_t points, const double *weight)
{
    double used = 0;
#pragma omp simd reduction(+ : used)
    for (int64_t k = 0; k < points; k++)
        used += weight[k] > 0 ? 1.0 : 0.0;
    return used;
}

/* Weigh points where nothing drifts, by the `unit` that errors are relative to; all [K]. */
INLINE void plain_weights(int64_t points, const double *weight, const double *unit, double *plain)
{
#pragma omp simd
    for (int64_t k = 0; k < points; k++)
        plain[k] = weight[k] / (unit[k] * unit[k]);
}

/* `relative_weights` in mixture/data.py, under one drift, of `plain` ones; all [K].

   `precision` and `away` are those of `precisions` in drifts.py: weights where every point has a
   value, and what their level follows where some have none. */
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

/* Sums of one row under one drift, as of `Moments`. */
typedef struct {
    double weight, mean, total;
} RowSums;

/* Sum up a row, and write the products of its weights with its values about their mean, [K]. */
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
