/* Predictive distributions and bands of hypotheses: repeats `modeling/model_columns.py`. */
#include "predictions.h"

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
              const double *unit, const double *spread, const double *drift,
              const double *counting, const double *peak, const double *least, const double *most,
              const double *at, const double *beyond, double negligible, const double *ends,
              double *low, double *high)
{
    Models models = {others, shapes, targets, terms, other_terms, numbers, other_numbers, weight,
                     unit, spread, drift, counting, other_weight, root, peak, least, most, at,
                     beyond};
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
                 const double *counting, const double *peak, const double *least,
                 const double *most, const double *at, const double *beyond, double *centre,
                 double *below, double *above, double *share)
{
    Models models = {others, shapes, targets, terms, other_terms, numbers, other_numbers, weight,
                     unit, spread, drift, counting, other_weight, root, peak, least, most, at,
                     beyond};
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
