/* Regressions of some candidates at a time, for any rows: repeats `_constant_part`,
   `_single_parts`, `_pair_part` and `_misfits` of mixture/candidates.py. */
#ifndef CALLPATH_MODELER_REGRESSIONS_H
#define CALLPATH_MODELER_REGRESSIONS_H

#include <float.h>

#include "evidence.h"
#include "rows.h"

/* Relative misfit from which on logarithms replace relative errors, and smallest ratio of model
   to value: `_MUCH` and `_NOTHING` in mixture/residuals.py. */

enum { CONSTANT, POSITIVE, OFFSET, BARE, PAIR, FAMILIES };

/* Rows, the input of their regressions, and the shapes. */
typedef struct {
    int64_t count, points, drifts, shapes; /* n, K, L, S */
    int frugal;
    const double *values, *variance, *dof; /* [n, K], [n], [n] */
    const double *typical;                 /* [n]: rough variance of a point */
    const double *table;                   /* [S + 1, K]; the last one stands for no shape */
    const double *least, *most, *falling;  /* [S] */
    const int64_t *first_of, *second_of;   /* [P]: shapes of pairs */
    double *used, *unit;                   /* [n], [n, K] */
    double *weights;                       /* [n, L, K] */
    double *weight, *mean, *total;         /* [n, L] */
    double *relative;                      /* [n, L]: sums of squares for misfits of 1 */
} Rows;

/* LANES candidates; if there are fewer, the last one is repeated. */
typedef struct {
    int size;
    int64_t candidate[LANES], row[LANES], first[LANES], second[LANES];
    double *values, *unit, *first_at, *second_at; /* [K, LANES]: at the points */
    double *weights, *x, *z; /* [K, LANES]: weights; shapes about their means */
} Block;

/* Compute the weights of the points of all rows, and their sums; `work` [2, K] is working memory. */
static void weigh(Rows *rows, const double *weight, const double *floor, const double *fitted,
                  const double *precision, const double *away, double *work)
{
    int64_t points = rows->points;
    double *plain = work, *products = work + points;
    for (int64_t row = 0; row < rows->count; row++) {
        const double *values = rows->values + row * points, *of_points = weight + row * points;
        double *unit = rows->unit + row * points;
        error_unit(points, floor[row], fitted + row * points, unit);
        rows->used[row] = used_of(points, of_points);
        plain_weights(points, of_points, unit, plain);
        for (int64_t drift = 0; drift < rows->drifts; drift++) {
            int64_t place = row * rows->drifts + drift;
            double *weights = rows->weights + place * points, relative = 0;
            relative_weights(points, plain, precision + drift * points, away + drift * points,
                             weights);
            RowSums sums = sums_of_row(points, values, weights, products);
            for (int64_t k = 0; k < points; k++)
                relative += weights[k] * (unit[k] * unit[k]);
            rows->weight[place] = sums.weight;
            rows->mean[place] = sums.mean;
            rows->total[place] = sums.total;
            rows->relative[place] = relative;
        }
    }
}

/* Look up the input of a block that does not depend on the drift. */
static void look_up(const Rows *rows, Block *block)
{
    int64_t points = rows->points;
    for (int64_t k = 0; k < points; k++)
        EACH_LANE {
            int64_t place = k * LANES + c;
            block->values[place] = rows->values[block->row[c] * points + k];
            block->unit[place] = rows->unit[block->row[c] * points + k];
            block->first_at[place] = rows->table[block->first[c] * points + k];
            block->second_at[place] = rows->table[block->second[c] * points + k];
            block->x[place] = block->z[place] = 0;
        }
}

/* `_Sums.of`: sums of a block with one shape each, `raw`; `away` is the shape about its mean. */
static void sum_shape(const Block *block, int64_t points, const double *raw, const double *weight,
                      const double *mean, double *away, double *at, double *square,
                      double *product)
{
    const double *weights = block->weights, *values = block->values;
    Lanes level = {0}, with_values = {0}, scatter = {0};
    for (int64_t k = 0; k < points * LANES; k += LANES)
        EACH_LANE level[c] += weights[k + c] * raw[k + c];
    EACH_LANE level[c] /= weight[c];
    for (int64_t k = 0; k < points * LANES; k += LANES)
        EACH_LANE {
            double here = raw[k + c] - level[c], weighted = weights[k + c] * here;
            scatter[c] += weighted * here;
            with_values[c] += weighted * (values[k + c] - mean[c]);
            away[k + c] = here;
        }
    EACH_LANE {
        at[c] = level[c];
        square[c] = larger(scatter[c], EVIDENCE_TINY);
        product[c] = with_values[c];
    }
}

/* The values of a block of models ``level + first x + second z`` at point `k`. */
INLINE double model_at(const Block *block, int64_t k, int c, const double *level,
                       const double *first, const double *second)
{
    int64_t place = k * LANES + c;
    return level[c] + first[c] * block->x[place] + second[c] * block->z[place];
}

/* `_sum_up_little` for all candidates: the residuals. */
static void sum_up_left(const Block *block, int64_t points, const double *level,
                        const double *first, const double *second, double *residual)
{
    Lanes sum = {0};
    for (int64_t k = 0; k < points; k++)
        EACH_LANE {
            double left = block->values[k * LANES + c]
                          - model_at(block, k, c, level, first, second);
            sum[c] += block->weights[k * LANES + c] * left * left;
        }
    EACH_LANE residual[c] = sum[c];
}

/* `_misfits`: large residuals come from logarithms, as in mixture/residuals.py. */
static void correct_misfit(const Rows *rows, const int64_t *place, const Block *block, Found *found)
{
    Lanes plain = {0}, in_logarithms = {0}, much;
    int any = 0;
#pragma omp simd reduction(| : any)
    for (int c = 0; c < LANES; c++) {
        much[c] = EVIDENCE_LARGE_MISFIT * EVIDENCE_LARGE_MISFIT * rows->relative[place[c]];
        any |= found->residual[c] > much[c];
    }
    if (!any)
        return;
    for (int64_t k = 0; k < rows->points; k++)
        EACH_LANE {
            double value = block->values[k * LANES + c], unit = block->unit[k * LANES + c];
            double model = model_at(block, k, c, found->level, found->first, found->second);
            double square = (model - value) * (model - value);
            /* A bounded model may touch zero, and rounding decides on which side. */
            double ratio = larger(model, EVIDENCE_LEAST_RATIO * value) / value;
            double relative = log_of(ratio) * unit;
            relative *= relative;
            /* A value of zero has no logarithm. */
            relative = ratio <= DBL_MAX && relative <= DBL_MAX ? relative : square;
            plain[c] += square * block->weights[k * LANES + c];
            in_logarithms[c] += relative * block->weights[k * LANES + c];
        }
    EACH_LANE {
        double factor = in_logarithms[c] / larger(plain[c], DBL_MIN);
        found->residual[c] *= found->residual[c] > much[c] ? factor : 1;
    }
}

/* `_constant_part`, `_single_parts`: a block with at most one shape each, under one drift. */
static void regress_one(const Rows *rows, const int64_t *place, Block *block, int family,
                        Found *found)
{
    Slopes sums;
    Lanes variance, product;
    EACH_LANE {
        sums.weight[c] = rows->weight[place[c]];
        sums.mean[c] = rows->mean[place[c]];
        variance[c] = rows->typical[block->row[c]];
        found->size[c] = family == POSITIVE || family == OFFSET ? 2 : 1;
    }
    if (family == CONSTANT) {
        constant_evidence(&sums, found);
        EACH_LANE {
            found->residual[c] = rows->total[place[c]];
            found->constant[c] = found->level[c] = sums.mean[c];
            found->cc[c] = 1 / sums.weight[c];
        }
        return;
    }
    sum_shape(block, rows->points, block->first_at, sums.weight, sums.mean, block->x, sums.at,
              sums.square, product);
    EACH_LANE sums.slope[c] = product[c] / sums.square[c];
    if (family == BARE) {
        bare_evidence(&sums, found);
        EACH_LANE found->level[c] = found->first[c] * sums.at[c];
        sum_up_left(block, rows->points, found->level, found->first, found->second,
                    found->residual);
        return;
    }
    /* These residuals belong to the regression; its coefficients may be bounded afterwards. */
    sum_up_left(block, rows->points, sums.mean, sums.slope, found->second, found->residual);
    Lanes falling;
    EACH_LANE falling[c] = rows->falling[block->first[c]];
    if (family == POSITIVE)
        positive_evidence(&sums, falling, variance, found);
    else {
        Lanes least, most;
        EACH_LANE {
            least[c] = rows->least[block->first[c]];
            most[c] = rows->most[block->first[c]];
        }
        offset_evidence(&sums, least, most, falling, variance, found);
    }
    slope_covariance(&sums, found);
    EACH_LANE {
        found->constant[c] = sums.mean[c] - found->first[c] * sums.at[c];
        found->level[c] = sums.mean[c];
    }
}

/* `_pair_part`: a block of pairs, under one drift. */
static void regress_two(const Rows *rows, const int64_t *place, Block *block, Found *found)
{
    PairSums sums;
    Lanes variance, noise, normal, falling, asked;
    EACH_LANE {
        noise[c] = rows->variance[block->row[c]];
        sums.used[c] = rows->used[block->row[c]];
        sums.total[c] = rows->total[place[c]];
        sums.weight[c] = rows->weight[place[c]];
        sums.mean[c] = rows->mean[place[c]];
        variance[c] = rows->typical[block->row[c]];
        falling[c] = rows->frugal ? 0 : rows->falling[block->first[c]];
        asked[c] = rows->frugal ? 1 : falling[c];
        sums.xz[c] = 0;
    }
    sum_shape(block, rows->points, block->first_at, sums.weight, sums.mean, block->x, sums.at_x,
              sums.xx, sums.x);
    sum_shape(block, rows->points, block->second_at, sums.weight, sums.mean, block->z, sums.at_z,
              sums.zz, sums.z);
    for (int64_t k = 0; k < rows->points * LANES; k += LANES)
        EACH_LANE sums.xz[c] += block->weights[k + c] * block->x[k + c] * block->z[k + c];
    regress_pairs(&sums, asked, falling, noise, found, normal);
    EACH_LANE found->level[c] = found->constant[c] + found->first[c] * sums.at_x[c]
                                + found->second[c] * sums.at_z[c];
    sum_up_left(block, rows->points, found->level, found->first, found->second, found->residual);
    pair_evidence(normal, falling, variance, found);
}

#endif
