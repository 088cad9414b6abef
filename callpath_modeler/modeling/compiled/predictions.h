/* Predictive distributions of hypotheses: repeats `mixture` of `tests/oracle/bands.py`. Rows
   are in lanes. */
#ifndef CALLPATH_MODELER_PREDICTIONS_H
#define CALLPATH_MODELER_PREDICTIONS_H

#include <float.h>

#include "columns.h"
#include "mixtures.h"

static const double EDGE = 1e-12;

/* Columns of `Models` with the mixture method, with `others` alternatives, and the shapes. The
   last shape (code -1) stands for none. */
typedef struct {
    int64_t others, shapes, targets;
    const int16_t *terms, *other_terms;
    const double *numbers, *other_numbers, *weight, *unit, *spread, *drift, *counting;
    const float *other_weight, *root;
    const double *peak, *least, *most, *at, *beyond;
} Models;

/* Hypotheses of the rows in lanes, as far as they do not depend on a target, [parts][LANES]. */
typedef struct {
    int64_t count;
    int64_t *first, *second, *alone;
    double *weight, *constant, *slope, *other, *root, *mean, *low, *high, *level;
    double unit[LANES], spread[LANES], drift[LANES], counting[LANES];
} Known;

/* Number of columns of doubles; the last one, `root`, has `ELEMENTS` entries. */
enum { KNOWN = 8 + ELEMENTS };

static int allocate_known(Known *known, int64_t count)
{
    size_t each = (size_t)count * LANES;
    *known = (Known){.count = count};
    known->weight = new_zeros((int64_t)(KNOWN * each));
    known->first = new_lines((int64_t)(3 * each));
    if (!known->weight || !known->first)
        return 0;
    known->second = known->first + each;
    known->alone = known->second + each;
    double **columns[] = {&known->constant, &known->slope, &known->other, &known->mean,
                          &known->low, &known->high, &known->level, &known->root};
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        *columns[k] = known->weight + (k + 1) * each;
    return 1;
}

static void free_known(Known *known)
{
    free(known->weight);
    free(known->first);
}

/* Fetch a hypothesis of a row, in the unit of the row, with shapes that have peaks of 1. */
static void fetch(const Models *models, int64_t row, int64_t part, Known *known, int64_t k)
{
    int64_t other = row * models->others + part - 1, size = known->count * LANES;
    const int16_t *codes = part ? models->other_terms + TERMS * other : models->terms + TERMS * row;
    const double *numbers =
        part ? models->other_numbers + NUMBERS * other : models->numbers + NUMBERS * row;
    const float *root = models->root + ELEMENTS * (row * (1 + models->others) + part);
    int64_t first = codes[0] < 0 ? models->shapes - 1 : codes[0];
    int64_t second = codes[1] < 0 ? models->shapes - 1 : codes[1];
    known->first[k] = first, known->second[k] = second;
    known->alone[k] = codes[0] >= 0 && codes[1] < 0;
    known->weight[k] = part ? models->other_weight[other] : models->weight[row];
    known->constant[k] = numbers[0] / models->unit[row];
    known->slope[k] = numbers[1] / models->unit[row] * models->peak[first];
    known->other[k] = numbers[2] / models->unit[row] * models->peak[second];
    for (int64_t entry = 0; entry < ELEMENTS; entry++)
        known->root[entry * size + k] = root[entry];
}

/* `_by_slope` and `_level_spread`: the bounds of the slope of a model with one shape, by its
   sign. */
INLINE void slopes(Known *known, int64_t k, double least, double most)
{
    int64_t size = known->count * LANES;
    double constant = known->constant[k], slope = known->slope[k];
    double spread = larger(known->root[k], FLT_MIN);
    double mean = -known->root[3 * size + k] / spread;
    double level = constant + slope * mean, rounding = 1e-9 * fabs(level);
    double no_constant = mean > 0 ? level / mean : INFINITY;
    double steepest = mean > least ? level / (mean - least) : INFINITY;
    double to_zero = most > mean ? -level / (most - mean) : -INFINITY;
    int offset = constant < -rounding, falling = slope < 0;
    double lowest = falling ? to_zero : (offset ? no_constant : 0);
    double highest = falling ? 0 : (offset ? steepest : no_constant);
    double below = normal_share((lowest - slope) / spread);
    double above = normal_share((highest - slope) / spread);
    double low = below + (1 - EVIDENCE_OUTER) * (above - below), high = below + EVIDENCE_OUTER * (above - below);
    low = slope + spread * normal_quantile(smaller(larger(low, EDGE), 1 - EDGE));
    high = slope + spread * normal_quantile(smaller(larger(high, EDGE), 1 - EDGE));
    known->low[k] = smaller(larger(low, lowest), highest);
    known->high[k] = smaller(larger(high, lowest), highest);
    known->mean[k] = mean;
    known->level[k] = level > 0 ? known->root[5 * size + k] / level : 0;
}

/* Prepare the first `count` hypotheses of `rows`, each row in a lane. */
static void look(const Models *models, const int64_t *rows, int64_t count, Known *known)
{
    double total[LANES] = {0};
    known->count = count;
    for (int64_t part = 0; part < count; part++) {
        double least[LANES], most[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            fetch(models, rows[lane], part, known, k);
            total[lane] += known->weight[k];
            least[lane] = models->least[known->first[k]];
            most[lane] = models->most[known->first[k]];
        }
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            slopes(known, part * LANES + lane, least[lane], most[lane]);
    }
    for (int64_t k = 0; k < count * LANES; k++) {
        known->weight[k] /= larger(total[k % LANES], DBL_MIN);
        /* In the loop above, this would prevent vector instructions. */
        known->alone[k] &= known->level[k] < 1;
    }
    for (int lane = 0; lane < LANES; lane++) {
        known->unit[lane] = models->unit[rows[lane]];
        known->spread[lane] = models->spread[rows[lane]];
        known->drift[lane] = models->drift[rows[lane]];
        known->counting[lane] = models->counting[rows[lane]];
    }
}

/* `_log_distance`. */
INLINE double log_distance(double centre, double edge)
{
    double distance = fabs(log_of(larger(edge, EVIDENCE_NEGLIGIBLE * centre) / centre));
    return (distance < INFINITY ? distance : 0) / EVIDENCE_DEVIATES;
}

/* `_mixture` of one hypothesis at a target, where its shapes are x and z; its centre is known. */
INLINE void spread_out(const Known *known, int64_t k, double x, double z, double scatter,
                       const Parts *of)
{
    int64_t size = known->count * LANES;
    const double *root = known->root + k;
    double centre = of->centre[k];
    double a = root[0] * x + root[size] * z + root[3 * size];
    double b = root[2 * size] * z + root[4 * size], c = root[5 * size];
    double variance = a * a + b * b + c * c;
    double relative = centre > 0 ? variance / (centre * centre) : 0;
    /* A prediction near zero below a step has the largest possible error. */
    double whole = log1p_of(smaller(relative, DBL_MAX));
    double mean = known->mean[k], level = known->constant[k] + known->slope[k] * mean;
    double one = level + known->low[k] * (x - mean), two = level + known->high[k] * (x - mean);
    double below = log_distance(centre, smaller(one, two));
    double above = log_distance(centre, larger(one, two));
    double own = known->level[k] * known->level[k];
    below = known->alone[k] ? below * below + own : whole;
    above = known->alone[k] ? above * above + own : whole;
    of->below[k] = sqrt(below + scatter);
    of->above[k] = sqrt(above + scatter);
}

/* `_counted`: the squared deviation of a measurement from a law that predicts `centre`, in units of
   the largest value of the row, to which `scatter` belongs. */
INLINE double counted(double scatter, double counting, double centre)
{
    double more = counting * (1 / larger(centre, EVIDENCE_NEGLIGIBLE) - 1);
    return counting > 0 ? log1p_of(larger(scatter + more, 0)) : scatter;
}

/* Predictions of the parts at a target, where shapes are `at`; the largest one, or NaN. */
static void predict(const Known *known, const double *at, double *centre, double *largest)
{
    for (int lane = 0; lane < LANES; lane++)
        largest[lane] = 0;
    for (int64_t part = 0; part < known->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            centre[k] = known->constant[k] + known->slope[k] * at[known->first[k]]
                        + known->other[k] * at[known->second[k]];
            int stays = (largest[lane] >= centre[k]) | (largest[lane] != largest[lane]);
            largest[lane] = stays ? largest[lane] : centre[k];
        }
}

/* `_mixture` at a target. */
static void place(const Models *models, const Known *known, int64_t target, Parts *of)
{
    double least[LANES], scatter[LANES];
    const double *at = models->at + target * models->shapes;
    of->count = known->count;
    predict(known, at, of->centre, least);
    for (int lane = 0; lane < LANES; lane++) {
        least[lane] *= EVIDENCE_NEGLIGIBLE;
        scatter[lane] = known->spread[lane] * known->spread[lane]
                        + known->drift[lane] * models->beyond[target];
    }
    for (int64_t part = 0; part < known->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            double centre = of->centre[k] >= least[lane] ? of->centre[k] : least[lane];
            of->centre[k] = least[lane] == least[lane] ? centre : least[lane];
            double its = counted(scatter[lane], known->counting[lane], of->centre[k]);
            spread_out(known, k, at[known->first[k]], at[known->second[k]], its, of);
            of->centre[k] *= known->unit[lane];
            of->weight[k] = known->weight[k];
        }
}

#endif
