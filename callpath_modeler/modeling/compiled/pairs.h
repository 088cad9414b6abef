/* Regressions on two shapes each and bounds of their evidence, as in mixture/pairs.py: of one row,
   for all pairs at once. */
#ifndef CALLPATH_MODELER_PAIRS_H
#define CALLPATH_MODELER_PAIRS_H

#include "bounds.h"

/* Regressions on pairs under the first drift, as `Doubles`; `free` is 1 where the constant is, 0
   where it is left out. */
typedef struct {
    double *constant, *first, *second, *residual, *determinant, *free; /* [pairs] */
    double *both;           /* [pairs]: sums of products of the shapes */
    int32_t *one, *other;   /* [pairs]: these shapes */
    int32_t *number;        /* [pairs]: which of all pairs each is */
    int32_t *listed;        /* [pairs]: whether each is among those that follow */
    int32_t *which;    /* [count]: those with positive coefficients that are not out of question */
    double **left;     /* [drifts, count]: what they leave */
    double *least;     /* [count]: what they leave under any drift */
    double *bound;     /* [count] */
    int64_t count;
} Pairs;

/* Sum up products of shapes, `products` [points, pairs], with the weights of the points. */
static void product_sums(int64_t points, int64_t pairs, const double *restrict products,
                         const double *restrict weights, double *restrict both)
{
    int64_t p = 0;
    for (; p + 2 * WIDTH <= pairs; p += 2 * WIDTH) {
        Eight here = {0}, there = {0};
        for (int64_t k = 0; k < points; k++) {
            const double *x = products + k * pairs + p;
            here += *(const Eight *)x * weights[k];
            there += *(const Eight *)(x + WIDTH) * weights[k];
        }
        *(Eight *)(both + p) = here;
        *(Eight *)(both + p + WIDTH) = there;
    }
    for (; p < pairs; p++) {
        double here = 0;
        for (int64_t k = 0; k < points; k++)
            here += products[k * pairs + p] * weights[k];
        both[p] = here;
    }
}

/* Regress on pairs `begin` to `end` under one drift, as `PairSums.regressions`. */
INLINE void regress_some(const Row *row, const Look *seen, int64_t begin, int64_t end, int frugal,
                         Pairs *found)
{
    const double noise = row->variance, used = row->used;
    const int32_t *restrict one = found->one, *restrict other = found->other;
    const double weight = seen->weight, mean = seen->mean, total = seen->total;
    const double per_weight = 1 / weight;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    double *restrict constants = found->constant, *restrict firsts = found->first;
    double *restrict seconds = found->second, *restrict residuals = found->residual;
    double *restrict determinants = found->determinant, *restrict frees = found->free;
#pragma omp simd
    for (int64_t p = begin; p < end; p++) {
        double at_x = at[one[p]], at_z = at[other[p]], xx = square[one[p]], zz = square[other[p]];
        double x = product[one[p]], z = product[other[p]];
        double xz = both[p] - at_x * at_z * weight, most = xx * zz;
        double determinant = larger(most - xz * xz, most * 1e-12), inverse = 1 / determinant;
        double first = (x * zz - z * xz) * inverse, second = (z * xx - x * xz) * inverse;
        double constant = mean - at_x * first - at_z * second;
        double residual = total - first * x - second * z;
        /* Covariances of the constant with all three coefficients. */
        double cx = (at_z * xz - at_x * zz) * inverse, cz = (at_x * xz - at_z * xx) * inverse;
        double cc = per_weight - at_x * cx - at_z * cz;
        /* As a constant is forced to zero, others follow by their covariance. */
        int free = constant > 0;
        if (frugal) {
            double level = larger(first, 0) + larger(second, 0) + larger(constant, 0) + LEAST_SUM;
            free &= pays(constant, cc, residual, level, noise, used);
        }
        double forced = free ? 0 : constant, pull = forced / cc;
        double normal = weight * determinant;
        constants[p] = free ? constant : 0;
        firsts[p] = first - pull * cx;
        seconds[p] = second - pull * cz;
        residuals[p] = larger(residual + forced * pull, 0);
        determinants[p] = free ? normal : normal * cc;
        frees[p] = free ? 1 : 0;
    }
}

/* The same; what is `frugal` is decided for all. */
static void regress(const Row *row, const Look *seen, int64_t begin, int64_t end, int frugal,
                    Pairs *found)
{
    if (frugal)
        regress_some(row, seen, begin, end, 1, found);
    else
        regress_some(row, seen, begin, end, 0, found);
}

/* List those of pairs `begin` to `end` that are probable at all and have positive coefficients, after
   those that are listed: where one has to be zero, the pair is a hypothesis with one shape, which is
   there. */
static void list_positive(int64_t begin, int64_t end, const double *restrict prior, Pairs *found)
{
    int64_t count = found->count;
    const double *restrict constant = found->constant, *restrict first = found->first;
    const double *restrict second = found->second;
    const int32_t *restrict number = found->number;
    int32_t *restrict listed = found->listed, *restrict which = found->which;
#pragma omp simd
    for (int64_t p = begin; p < end; p++)
        listed[p] = positive_pair(constant[p], first[p], second[p])
                    & (prior[number[p]] > -INFINITY);
    for (int64_t p = begin; p < end; p++) {
        which[count] = (int32_t)p;
        count += listed[p];
    }
    for (int64_t i = found->count; i < count; i++)
        found->left[0][i] = found->least[i] = found->residual[found->which[i]];
    found->count = count;
}

/* Write what pairs that are listed in place `begin` and after leave under another drift, as
   `PairSums.residual`; [count]. From pair `asked` on constants have to pay. */
static void leave(const Look *seen, int64_t begin, int64_t asked, const Pairs *found,
                  double *restrict residuals)
{
    const int32_t *restrict one = found->one, *restrict other = found->other;
    const double weight = seen->weight, mean = seen->mean, total = seen->total;
    const double per_weight = 1 / weight;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    const int32_t *restrict which = found->which;
    const double *restrict free = found->free;
    double *restrict least = found->least;
#pragma omp simd
    for (int64_t i = begin; i < found->count; i++) {
        int32_t p = which[i], a = one[p], b = other[p];
        double at_x = at[a], at_z = at[b], xx = square[a], zz = square[b];
        double x = product[a], z = product[b];
        double xz = both[p] - at_x * at_z * weight, most = xx * zz;
        double inverse = 1 / larger(most - xz * xz, most * 1e-12);
        double first = (x * zz - z * xz) * inverse, second = (z * xx - x * xz) * inverse;
        double constant = mean - at_x * first - at_z * second;
        double forced = (free[p] != 0) | (p < asked) ? smaller(constant, 0) : constant;
        double spread = (at_x * (at_x * zz - 2 * at_z * xz) + at_z * at_z * xx) * inverse;
        double left = total - first * x - second * z + forced * forced / (spread + per_weight);
        residuals[i] = larger(left, 0);
        least[i] = smaller(residuals[i], least[i]);
    }
}

/* Bound the evidence of the pairs that are listed in place `begin` and after, prior included; return
   the best. From pair `growing` on they are beside a decreasing shape. */
static double bound_pairs(const Row *row, const double *restrict prior, int64_t begin,
                          int64_t growing, Pairs *found)
{
    const int32_t *restrict number = found->number;
    const double *restrict constant = found->constant, *restrict first = found->first;
    const double *restrict second = found->second, *restrict determinant = found->determinant;
    const double *restrict free = found->free, *restrict least = found->least;
    const double dof = row->dof, noise = row->variance, used = row->used;
    const int32_t *restrict which = found->which;
    const double per_two = 1 / larger(used - 2, 1), per_three = 1 / larger(used - 3, 1);
    double *restrict bound = found->bound;
#pragma omp simd
    for (int64_t i = begin; i < found->count; i++) {
        int32_t p = which[i];
        double level = first[p] + second[p] + constant[p] + LEAST_SUM;
        double volume = -(2 + free[p]) * log_near(level) + LOG_2PI * (1 + 0.5 * free[p]) + LOG_2
                        - 0.5 * log_near(determinant[p]) + prior[number[p]];
        double room = room_of_share(second[p] / level, 0, GROWING_FOLDS);
        volume -= number[p] >= growing ? log_near(room) : 0;
        double per_freedom = free[p] != 0 ? per_three : per_two;
        bound[i] = volume + profile(least[i], dof, noise, used - 2 - free[p], per_freedom);
    }
    return most_of(bound + begin, found->count - begin);
}

#endif
