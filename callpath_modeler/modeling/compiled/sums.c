/* Quantiles of rows, and their additive numbers: repeats `tests/oracle/bands.py`. */
#include "predictions.h"

enum { SCORES = BANDS_SCORES, STEPS_OF_SCORE = BANDS_STEPS, FINELY = (SCORES - 1) * STEPS_OF_SCORE + 1 };
enum { LOW = 1, MIDDLE = SCORES / 2, HIGH = SCORES - 2, OTHERS = SCORES - 2 };

/* Targets of rows with their bands, [n][targets], and the quantiles of each, [n][targets][SCORES],
   at [SCORES] scores; `probability` is that of the scores without both ends, [OTHERS]. */
typedef struct {
    const double *value, *low, *high, *score, *probability;
    double *found;
} Bands;

/* `is_wide`. */
INLINE int is_wide(double low, double high) { return high < INFINITY && high > BANDS_WIDE * low; }

/* `as_normal`. */
static void as_normal(const Bands *of, int64_t item)
{
    double value = of->value[item], *found = of->found + item * SCORES;
    for (int k = 0; k < SCORES; k++) {
        double share = fabs(of->score[k] / of->score[HIGH]);
        double edge = k < MIDDLE ? of->low[item] : of->high[item];
        double its = k == LOW || k == HIGH ? edge : value + share * (edge - value);
        /* NaN counts as the value, and a value that is NaN as nothing. */
        found[k] = larger(its == its ? its : value, 0);
    }
}

/* Write the quantiles of a mixture, [OTHERS][LANES]. Both ends stay: the others are between or
   beyond them. */
static void put(double *found, const double *quantiles, int64_t lane)
{
    double low = found[LOW], high = found[HIGH];
    found[0] = smaller(larger(quantiles[lane], 0), low);
    for (int k = LOW + 1; k < HIGH; k++) {
        double within = smaller(larger(quantiles[(k - 1) * LANES + lane], low), high);
        found[k] = larger(within, found[k - 1]);
    }
    found[SCORES - 1] = larger(quantiles[(OTHERS - 1) * LANES + lane], high);
}

/* Number of hypotheses of a row up to the last one with a weight; 0 if no band is wide. */
static int64_t asked(const Models *models, int64_t row, const Bands *of)
{
    const float *weight = models->other_weight + row * models->others;
    int64_t wide = 0, count = models->others;
    for (int64_t item = row * models->targets; item < (row + 1) * models->targets; item++)
        wide |= is_wide(of->low[item], of->high[item]);
    while (count > 0 && weight[count - 1] == 0)
        count--;
    return wide ? 1 + count : 0;
}

/* Quantiles of `left` rows in lanes, at the targets where their bands are wide. */
static void shape(const Models *models, const int64_t *rows, int64_t left, int64_t count,
                  const Bands *of, Known *known, Parts *some)
{
    double found[OTHERS * LANES];
    look(models, rows, count, known);
    for (int64_t target = 0; target < models->targets; target++) {
        int64_t items[LANES], lanes[LANES], wide = 0;
        for (int64_t lane = 0; lane < left; lane++) {
            int64_t item = rows[lane] * models->targets + target;
            items[wide] = item, lanes[wide] = lane;
            wide += is_wide(of->low[item], of->high[item]);
        }
        if (!wide)
            continue;
        place(models, known, target, some);
        quantiles_of(some, OTHERS, of->probability, found);
        for (int64_t k = 0; k < wide; k++)
            put(of->found + items[k] * SCORES, found, lanes[k]);
    }
}

/* `quantiles_of_bands`, [n, targets, SCORES]. */
int64_t quantiles_of_bands(int64_t n, int64_t others, int64_t shapes, int64_t targets,
                           const int16_t *terms, const double *numbers, const double *weight,
                           const int16_t *other_terms, const double *other_numbers,
                           const float *other_weight, const float *root, const double *unit,
                           const double *spread, const double *drift, const double *counting,
                           const double *peak, const double *least, const double *most,
                           const double *at, const double *beyond, const double *value,
                           const double *low, const double *high, const double *score,
                           const double *probability, double *found)
{
    Models models = {others, shapes, targets, terms, other_terms, numbers, other_numbers, weight,
                     unit, spread, drift, counting, other_weight, root, peak, least, most, at,
                     beyond};
    Bands of = {value, low, high, score, probability, found};
    Known known;
    Parts some;
    int64_t *counts = new_lines(n);
    int there = allocate_known(&known, 1 + others) & allocate(&some, 1 + others) && counts;
    for (int64_t item = 0; there && item < n * targets; item++)
        as_normal(&of, item);
    for (int64_t row = 0; there && row < n; row++)
        counts[row] = asked(&models, row, &of);
    for (int64_t count = 1; there && count <= 1 + others; count++) {
        int64_t rows[LANES], filled = 0;
        for (int64_t row = 0; row <= n; row++) {
            if (row < n && counts[row] == count)
                rows[filled++] = row;
            if (filled < LANES && !(row == n && filled))
                continue;
            for (int64_t lane = filled; lane < LANES; lane++)
                rows[lane] = rows[0];
            shape(&models, rows, filled, count, &of, &known, &some);
            filled = 0;
        }
    }
    free_known(&known);
    free(some.centre);
    free(counts);
    return there ? 0 : -1;
}

/* Quantiles in lanes, [SCORES][LANES]; unused lanes hold the first row again. */
static void fetch_quantiles(const double *quantiles, const int64_t *rows, double *its)
{
    for (int lane = 0; lane < LANES; lane++)
        for (int k = 0; k < SCORES; k++)
            its[k * LANES + lane] = quantiles[rows[lane] * SCORES + k];
}

/* `_finely`, [FINELY][LANES]. */
static void finely(const double *quantiles, double *table)
{
    double logs[SCORES * LANES];
    for (int k = 0; k < SCORES; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            double least = larger(BANDS_NEGLIGIBLE * quantiles[(SCORES - 1) * LANES + lane], DBL_MIN);
            logs[k * LANES + lane] = log_of(larger(quantiles[k * LANES + lane], least));
        }
    for (int k = 0; k < FINELY; k++) {
        const double *from = logs + k / STEPS_OF_SCORE * LANES;
        const double *to = k < FINELY - 1 ? from + LANES : from;
        double share = k % STEPS_OF_SCORE / (double)STEPS_OF_SCORE;
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            table[k * LANES + lane] = exp_of(from[lane] + share * (to[lane] - from[lane]));
    }
}

/* Where the correlation of a row lies among the stored ones, in steps. */
INLINE double step_of(double low, double high, double correlation)
{
    double decades = log_of(high / low) / BANDS_DECADES;
    decades = decades == decades ? decades * decades : 0;
    double more = larger(BANDS_ALIKE - correlation, 0);
    double alike = correlation + more * (1 - 1 / (1 + decades));
    return smaller(larger(alike, 0), 1) * (BANDS_CORRELATIONS - 1);
}

/* S(z) of a lane at one end, whose weights are [correlations][FINELY]. */
static double end_of(const double *table, int64_t lane, double step, const double *weights)
{
    int64_t first = step < BANDS_CORRELATIONS - 2 ? (int64_t)step : BANDS_CORRELATIONS - 2;
    const double *one = weights + first * FINELY, *two = one + FINELY;
    double share = step - (double)first, here = 0, next = 0;
    for (int64_t k = 0; k < FINELY; k++) {
        here += one[k] * table[k * LANES + lane];
        next += two[k] * table[k * LANES + lane];
    }
    return (1 - share) * here + share * next;
}

/* `addends`, [n, columns]; weights are [2, correlations, FINELY]. */
int64_t addends(int64_t n, const double *quantiles, double correlation, const double *weights,
                double *found)
{
    double its[SCORES * LANES], table[FINELY * LANES];
    for (int64_t start = 0; start < n; start += LANES) {
        int64_t rows[LANES], left = rows_from(start, n, rows);
        fetch_quantiles(quantiles, rows, its);
        finely(its, table);
        for (int64_t lane = 0; lane < left; lane++, found += BANDS_COLUMNS) {
            double low = its[LOW * LANES + lane], high = its[HIGH * LANES + lane];
            double middle = its[MIDDLE * LANES + lane], step = step_of(low, high, correlation);
            double ends[] = {low, high};
            for (int end = 0; end < 2; end++) {
                const double *some = weights + end * BANDS_CORRELATIONS * FINELY;
                double common = ends[end];
                if (its[(SCORES - 1) * LANES + lane] < INFINITY)
                    common = smaller(larger(end_of(table, lane, step, some), low), high);
                /* The mean of what has a long tail may lie on the other side of the middle. Improbable
                   huge values do not raise the lower end, because all parts may be small at once. */
                common = end ? common : smaller(middle, common);
                double centre = end ? smaller(middle, common) : middle;
                double linear = fabs(centre - common), whole = fabs(ends[end] - centre);
                linear = linear == linear ? linear : 0;
                /* What is larger than its square can be is taken as common to all. */
                double square = whole > BANDS_LARGEST ? 0 : whole * whole - linear * linear;
                found[end] = centre;
                found[2 + end] = whole > BANDS_LARGEST ? whole : linear;
                found[4 + end] = square <= 0 ? 0 : square;
            }
        }
    }
    return 0;
}
