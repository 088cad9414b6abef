/* Regressions on two shapes each and bounds of their evidence, as in oracle/bounds.py: for one
   row and all pairs at once. */
#ifndef CALLPATH_MODELER_PAIRS_H
#define CALLPATH_MODELER_PAIRS_H

#include "bounds.h"

/* Pairs, and regressions on those that may have positive coefficients, under the first drift, as
   `TwoTermFits`. `free` is 1 if the constant is free, 0 if it is left out. */
typedef struct {
    double **sums, *both; /* [drifts, pairs]: sums of products; those of one drift */
    int32_t *one, *other; /* [pairs]: shapes */
    int32_t *number;      /* [pairs]: number among all pairs */
    int64_t *likely;      /* [pairs]: whether there is a prior */
    int64_t *marked;      /* [pairs]: the same, and possibly positive */
    int64_t count, close; /* number of listed pairs, and of those near the best */
    int32_t *which, *near; /* [count]: pairs; [close]: positions of close ones */
    int32_t *first_of, *second_of; /* [count]: shapes */
    double *constant, *first, *second, *determinant, *free; /* [count] */
    float **left;          /* [drifts, count]: residuals */
    float *bound;          /* [count] */
} Pairs;

/* Sum products of shapes, `products` in blocks, with the weights of the points, under all drifts. */
static void product_sums(int64_t points, int64_t pairs, const double *restrict products,
                         const Look *looks, int64_t drifts, const Pairs *found)
{
    for (int64_t p = 0; p < pairs; p += WHOLE)
        for (int64_t l = 0; l < drifts; l++) {
            const double *restrict weights = looks[l].weights;
            Vector both[VECTORS] = {{0}};
            for (int64_t k = 0; k < points; k++) {
                const double *x = products + p * points + k * WHOLE;
                EACH_VECTOR both[v] += *(const Vector *)(x + v * WIDTH) * weights[k];
            }
            put(found->sums[l] + p, both);
        }
}

/* A constant pays by its square over its variance; above this ratio it always pays. */
#define SURE 80.0

/* Sums of one shape, about the mean and without a constant. */
typedef struct {
    double at, square, product, whole_square, whole_product;
} One;

/* Further numbers that show whether the coefficients of two shapes may be positive. */
typedef struct {
    double noise, total, weight, mean, per_weight, per_freedom;
} Marks;

INLINE One one_of(const Marks *marks, double at, double square, double product)
{
    double level = at * marks->weight;
    return (One){at, square, product, square + at * level, product + marks->mean * level};
}

/* Return whether a pair may have positive coefficients, from signs and without a division. */
INLINE int may_be_positive(const Marks *marks, One x, One z, double both, int frugal)
{
    double xz = both - x.at * z.at * marks->weight, most = x.square * z.square;
    double determinant = most - xz * xz;
    double first = x.product * z.square - z.product * xz;
    double second = z.product * x.square - x.product * xz;
    double constant = marks->mean * determinant - x.at * first - z.at * second;
    int free = (constant > 0) & (first > 0) & (second > 0), worth = constant > 0;
    if (frugal) {
        double cx = z.at * xz - x.at * z.square, cz = x.at * xz - z.at * x.square;
        double cc = determinant * marks->per_weight - x.at * cx - z.at * cz;
        double left = marks->total * determinant - first * x.product - second * z.product;
        double variance = cc * larger(marks->noise * determinant, left * marks->per_freedom);
        worth &= constant * constant > SURE * variance;
    }
    int forced = (x.whole_product * z.whole_square > z.whole_product * both)
                 & (z.whole_product * x.whole_square > x.whole_product * both);
    /* If points are missing, a shape may be constant over the remaining ones. */
    int two = (determinant > EVIDENCE_PARALLEL * most) & (x.square > EVIDENCE_ALIKE * x.whole_square)
              & (z.square > EVIDENCE_ALIKE * z.whole_square);
    return two & (free | (forced & !worth));
}

/* Mark pairs `begin` to `end`, for any shapes. */
INLINE void mark_some(const Marks *marks, const Look *seen, int64_t begin, int64_t end, int frugal,
                      Pairs *found)
{
    const int32_t *restrict one = found->one, *restrict other = found->other;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    const int64_t *restrict likely = found->likely;
    int64_t *restrict marked = found->marked;
#pragma omp simd
    for (int64_t p = begin; p < end; p++) {
        One x = one_of(marks, at[one[p]], square[one[p]], product[one[p]]);
        One z = one_of(marks, at[other[p]], square[other[p]], product[other[p]]);
        marked[p] = may_be_positive(marks, x, z, both[p], frugal) & likely[p];
    }
}

/* Mark those of pairs `begin` to `end` that may have positive coefficients; from pair `asked` on
   constants have to pay. Marks beyond the end, up to a vector, do not matter, since they are set
   later. */
static void mark_positive(const Row *row, const Look *seen, int64_t begin, int64_t asked,
                          int64_t end, Pairs *found)
{
    const Marks marks = {row->variance, seen->total, seen->weight, seen->mean, 1 / seen->weight,
                         1 / larger(row->used - 3, 1)};
    mark_some(&marks, seen, begin, begin + whole(asked - begin), 0, found);
    mark_some(&marks, seen, asked, asked + whole(end - asked), 1, found);
}

/* Append the marked ones of pairs `begin` to `end` to the list. */
static void list_pairs(int64_t begin, int64_t end, Pairs *found)
{
    const int64_t listed = found->count;
    const int64_t *restrict marked = found->marked;
    int32_t *restrict which = found->which;
    int64_t count = listed;
    /* There is no branch, because processors could not predict it. */
    for (int64_t p = begin; p < end; p++) {
        which[count] = (int32_t)p;
        count += marked[p];
    }
    /* Fill up the last vector. */
    const int64_t last = listed + whole(count - listed);
    for (int64_t i = count; i < last; i++)
        which[i] = 0;
    for (int64_t i = listed; i < last; i++)
        found->first_of[i] = found->one[which[i]], found->second_of[i] = found->other[which[i]];
    found->count = count;
}

/* Regress on the pairs at positions `begin` to `end` of the list under one drift, as
   `PairSums.regressions`. If some are `asked`, constants have to pay from pair `until` on, with
   `shared` work or without. */
INLINE void regress_some(const Row *row, const Look *seen, int64_t begin, int64_t end, int asked,
                         int32_t until, int shared, Pairs *found)
{
    const double used = row->used, noise = row->variance, per_freedom = 1 / larger(used - 3, 1);
    const int32_t *restrict one = found->first_of, *restrict other = found->second_of;
    const int32_t *restrict which = found->which;
    const double weight = seen->weight, mean = seen->mean, total = seen->total;
    const double per_weight = 1 / weight;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    double *restrict constants = found->constant, *restrict firsts = found->first;
    double *restrict seconds = found->second, *restrict determinants = found->determinant;
    double *restrict frees = found->free;
    float *restrict left = found->left[0];
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        double at_x = at[one[i]], at_z = at[other[i]], xx = square[one[i]], zz = square[other[i]];
        double x = product[one[i]], z = product[other[i]];
        double xz = both[which[i]] - at_x * at_z * weight, most = xx * zz;
        double determinant = larger(most - xz * xz, most * 1e-12), inverse = 1 / determinant;
        double first = (x * zz - z * xz) * inverse, second = (z * xx - x * xz) * inverse;
        double constant = mean - at_x * first - at_z * second;
        double residual = total - first * x - second * z;
        /* Covariances of the constant with all three coefficients. */
        double cx = (at_z * xz - at_x * zz) * inverse, cz = (at_x * xz - at_z * xx) * inverse;
        double cc = per_weight - at_x * cx - at_z * cz;
        /* Forcing a constant to zero changes the others by their covariance. */
        int free = constant > 0;
        if (asked) {
            double level = larger(first, 0) + larger(second, 0) + larger(constant, 0) + EVIDENCE_LEAST;
            int worth = pays(constant, cc, residual * per_freedom, level, noise, shared);
            free &= (which[i] < until) | worth;
        }
        double forced = free ? 0 : constant, pull = forced / cc;
        double normal = weight * determinant;
        constant = free ? constant : 0, first -= pull * cx, second -= pull * cz;
        constants[i] = constant, firsts[i] = first, seconds[i] = second;
        /* A pair with a coefficient of zero is a hypothesis with one shape, which is tried
           separately. One point more than coefficients is needed. */
        int there = positive_pair(constant, first, second) & (used > 2 + free);
        left[i] = there ? (float)larger(residual + forced * pull, 0) : INFINITY;
        determinants[i] = free ? normal : normal * cc;
        frees[i] = free ? 1 : 0;
    }
}

/* Regress on the pairs from position `begin` of the list on; from pair `asked` on constants have
   to pay, with `shared` work or without. */
static void regress(const Row *row, const Look *seen, int64_t begin, int64_t asked, int shared,
                    Pairs *found)
{
    const int32_t until = (int32_t)asked;
    int64_t before = 0;
    for (int64_t i = begin; i < found->count; i++)
        before += found->which[i] < until;
    const int64_t middle = begin + before / WHOLE * WHOLE;
    const int64_t end = middle + whole(found->count - middle);
    regress_some(row, seen, begin, middle, 0, until, shared, found);
    regress_some(row, seen, middle, end, 1, until, shared, found);
}

/* Write the residuals under another drift of the pairs from position `begin` of the list on, as
   `PairSums.residual`. From pair `asked` on constants have to pay. */
static void leave(const Look *seen, int64_t begin, int64_t asked, const Pairs *found,
                  float *restrict left)
{
    const int32_t *restrict one = found->first_of, *restrict other = found->second_of;
    const int32_t *restrict which = found->which, until = (int32_t)asked;
    const int64_t end = begin + whole(found->count - begin);
    const double weight = seen->weight, mean = seen->mean, total = seen->total;
    const double per_weight = 1 / weight;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    const double *restrict free = found->free;
    const float *restrict first_left = found->left[0];
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        double at_x = at[one[i]], at_z = at[other[i]], xx = square[one[i]], zz = square[other[i]];
        double x = product[one[i]], z = product[other[i]];
        double xz = both[which[i]] - at_x * at_z * weight, most = xx * zz;
        double inverse = 1 / larger(most - xz * xz, most * 1e-12);
        double first = (x * zz - z * xz) * inverse, second = (z * xx - x * xz) * inverse;
        double constant = mean - at_x * first - at_z * second;
        double forced = ((free[i] != 0) | (which[i] < until)) ? smaller(constant, 0) : constant;
        double spread = (at_x * (at_x * zz - 2 * at_z * xz) + at_z * at_z * xx) * inverse;
        double whole = total - first * x - second * z + forced * forced / (spread + per_weight);
        left[i] = first_left[i] < INFINITY ? (float)larger(whole, 0) : INFINITY;
    }
}

/* Write upper bounds of the evidence of the pairs from position `begin` of the list on, prior
   included; return the best one. From pair `growing` on they have a decreasing shape. */
static float bound_pairs(const Row *row, const float *restrict prior, int64_t drifts, int64_t begin,
                         int64_t growing, Pairs *found)
{
    const int32_t *restrict number = found->number, *restrict which = found->which;
    const double *restrict constant = found->constant, *restrict first = found->first;
    const double *restrict second = found->second, *restrict determinant = found->determinant;
    const double *restrict free = found->free;
    const float dof = (float)row->dof, noise = (float)row->variance, used = (float)row->used;
    const float per_two = 1 / larger_single(used - 2, 1), per_three = 1 / larger_single(used - 3, 1);
    const float two_pi = (float)EVIDENCE_LOG_2PI, two = (float)EVIDENCE_LOG_2;
    const float folds = (float)EVIDENCE_PAIR_FOLDS;
    float *restrict bound = found->bound;
    const int64_t end = begin + whole(found->count - begin);
    for (int64_t i = begin; i < end; i++)
        bound[i] = found->left[0][i];
    for (int64_t l = 1; l < drifts; l++) {
        const float *restrict left = found->left[l];
#pragma omp simd
        for (int64_t i = begin; i < end; i++)
            bound[i] = smaller_single(left[i], bound[i]);
    }
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        int32_t its = number[which[i]];
        double whole = first[i] + second[i] + constant[i] + EVIDENCE_LEAST;
        float kept = (float)free[i], level = (float)whole, share = (float)(second[i] / whole);
        float volume = -(2 + kept) * log_single(level) + two_pi * (1 + 0.5f * kept) + two
                       - 0.5f * (float)log_near(determinant[i]) + prior[its];
        float room = room_single(share, 0, folds);
        room *= kept != 0 ? room_single((float)(constant[i] / whole), 0, folds) : 1;
        volume -= its >= growing ? log_single(room) : 0;
        float per_freedom = kept != 0 ? per_three : per_two;
        float best = volume + profile(bound[i], dof, noise, used - 2 - kept, per_freedom);
        bound[i] = bound[i] < INFINITY ? best : -INFINITY;
    }
    return most_of(bound + begin, found->count - begin);
}

#endif
