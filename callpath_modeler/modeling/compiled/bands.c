/* Predictive distributions and bands of hypotheses: repeats `modeling/predictive.py`. */
#include <float.h>

#include "columns.h"
#include "mixtures.h"

static const double EDGE = 1e-12;

/* Columns of `Models` with the mixture method, with `others` alternatives, and the shapes. The
   last shape (code -1) stands for none. */
typedef struct {
    int64_t others, shapes, targets;
    const int16_t *terms, *other_terms;
    const double *numbers, *other_numbers, *weight, *unit, *spread, *drift;
    const float *other_weight, *root;
    const double *peak, *least, *most, *at, *beyond;
} Models;

/* Hypotheses of the rows in lanes, as far as they do not depend on a target, [parts][LANES]. */
typedef struct {
    int64_t count;
    int64_t *first, *second, *alone;
    double *weight, *constant, *slope, *other, *root, *mean, *low, *high, *level;
    double unit[LANES], spread[LANES], drift[LANES];
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
    double low = below + (1 - BANDS_OUTER) * (above - below), high = below + BANDS_OUTER * (above - below);
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
    }
}

/* `_log_distance`. */
INLINE double log_distance(double centre, double edge)
{
    double distance = fabs(log_of(larger(edge, BANDS_NEGLIGIBLE * centre) / centre));
    return (distance < INFINITY ? distance : 0) / BANDS_DEVIATES;
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
        least[lane] *= BANDS_NEGLIGIBLE;
        scatter[lane] = known->spread[lane] * known->spread[lane]
                        + known->drift[lane] * models->beyond[target];
    }
    for (int64_t part = 0; part < known->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            double centre = of->centre[k] >= least[lane] ? of->centre[k] : least[lane];
            of->centre[k] = least[lane] == least[lane] ? centre : least[lane];
            spread_out(known, k, at[known->first[k]], at[known->second[k]], scatter[lane], of);
            of->centre[k] *= known->unit[lane];
            of->weight[k] = known->weight[k];
        }
}

/* Number of alternatives of a row that count: one of few numbers, so that rows can share lanes. */
static int64_t asked(const Models *models, int64_t row, double negligible)
{
    const float *weight = models->other_weight + row * models->others;
    float left = 0;
    int64_t counted = 0;
    for (int64_t other = models->others - 1; other >= 0; other--) {
        left += weight[other];
        counted += left > (float)negligible;
    }
    int64_t some = counted <= 1 ? counted : (counted <= 3 ? 3 : models->others);
    return some < models->others ? some : models->others;
}

/* Both ends of the bands of `left` rows in lanes, at all targets. */
static void bands_of(const Models *models, const int64_t *rows, int64_t left, int64_t count,
                     const double *ends, Known *known, Parts *some, double *low, double *high)
{
    double found[2 * LANES];
    look(models, rows, count, known);
    for (int64_t target = 0; target < models->targets; target++) {
        place(models, known, target, some);
        quantiles_of(some, 2, ends, found);
        for (int64_t lane = 0; lane < left; lane++) {
            low[rows[lane] * models->targets + target] = found[lane];
            high[rows[lane] * models->targets + target] = found[LANES + lane];
        }
    }
}

/* `prediction_interval`, [n, targets], with tables [targets, shapes] `at`; `ends` are two
   probabilities. */
int64_t bands(int64_t n, int64_t others, int64_t shapes, int64_t targets, const int16_t *terms,
              const double *numbers, const double *weight, const int16_t *other_terms,
              const double *other_numbers, const float *other_weight, const float *root,
              const double *unit, const double *spread, const double *drift, const double *peak,
              const double *least, const double *most, const double *at, const double *beyond,
              double negligible, const double *ends, double *low, double *high)
{
    Models models = {others, shapes, targets, terms, other_terms, numbers, other_numbers, weight,
                     unit, spread, drift, other_weight, root, peak, least, most, at, beyond};
    Known known;
    Parts some;
    int there = allocate_known(&known, 1 + others) & allocate(&some, 1 + others);
    int64_t sizes[] = {0, others < 1 ? others : 1, others < 3 ? others : 3, others};
    for (int which = 0; there && which < 4; which++) {
        int64_t rows[LANES], filled = 0;
        if (which && sizes[which] == sizes[which - 1])
            continue;
        for (int64_t row = 0; row <= n; row++) {
            if (row < n && asked(&models, row, negligible) == sizes[which])
                rows[filled++] = row;
            if (filled == LANES || (row == n && filled)) {
                for (int64_t lane = filled; lane < LANES; lane++)
                    rows[lane] = rows[0];
                bands_of(&models, rows, filled, 1 + sizes[which], ends, &known, &some, low, high);
                filled = 0;
            }
        }
    }
    free_known(&known);
    free(some.centre);
    return there ? 0 : -1;
}

/* `predictive_mixture`: centre, below, above [n, 1 + others, targets], share [n, 1 + others]. */
int64_t mixtures(int64_t n, int64_t others, int64_t shapes, int64_t targets, const int16_t *terms,
                 const double *numbers, const double *weight, const int16_t *other_terms,
                 const double *other_numbers, const float *other_weight, const float *root,
                 const double *unit, const double *spread, const double *drift,
                 const double *peak, const double *least, const double *most, const double *at,
                 const double *beyond, double *centre, double *below, double *above, double *share)
{
    Models models = {others, shapes, targets, terms, other_terms, numbers, other_numbers, weight,
                     unit, spread, drift, other_weight, root, peak, least, most, at, beyond};
    Known known;
    Parts some;
    int64_t parts = 1 + others;
    int there = allocate_known(&known, parts) & allocate(&some, parts);
    for (int64_t start = 0; there && start < n; start += LANES) {
        int64_t rows[LANES];
        rows_from(start, n, rows);
        look(&models, rows, parts, &known);
        for (int64_t target = 0; target < targets; target++) {
            place(&models, &known, target, &some);
            for (int64_t item = 0; item < parts * LANES; item++) {
                int64_t lane = item % LANES, to = rows[lane] * parts + item / LANES;
                centre[to * targets + target] = some.centre[item];
                below[to * targets + target] = some.below[item];
                above[to * targets + target] = some.above[item];
                share[to] = some.weight[item];
            }
        }
    }
    free_known(&known);
    free(some.centre);
    return there ? 0 : -1;
}
