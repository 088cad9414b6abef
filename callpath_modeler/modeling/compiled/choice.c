/* Candidates that represent all those of a row, and their coefficients in the unit of the metric:
   repeats `write_models` of `modeling/mixture/row_models.py` up to the quality of the model. */
#include "columns.h"
#include "functions.h"
#include "memory.h"

enum { ALTERNATIVES = OUTCOME_ALTERNATIVES, RUN = 16 };

static const double PER_AGREED = 4 / OUTCOME_AGREES;
static const double PREDICTED[2] = OUTCOME_PREDICTED;
static const double MORE = 1 + OUTCOME_TIED;
static const double TAILS[ALTERNATIVES - 1] = OUTCOME_TAILS;

/* The parts of `Posterior`, `Hypotheses` and the tables far beyond the points that are used here. */
typedef struct {
    int64_t count, shapes, places;
    const int64_t *chosen, *first, *second;
    const double *weight, *coefficients, *covariance, *scale, *far;
} Found;

/* Work space for the candidates of one row, and the chosen ones. */
typedef struct {
    double *log, *rest, *place, *whole;
    int64_t *order, *merged, *kept;
    double *share;
} Space;

/* `Hypotheses.codes`; no shape has the code `shapes`. */
static void codes_of(const Found *found, int64_t candidate, int64_t *codes)
{
    int64_t which = found->chosen[candidate] - 1, pair = which - 3 * found->shapes;
    codes[0] = which < 0 ? found->shapes : (pair < 0 ? which % found->shapes : found->first[pair]);
    codes[1] = pair < 0 ? found->shapes : found->second[pair];
}

/* `logarithms` of `far_values` for candidates `start` to `end`. */
static void predict_far(const Found *found, int64_t start, int64_t end, int64_t place, double *log)
{
    const double *numbers = found->coefficients, *at = found->far + place * (found->shapes + 1);
    for (int64_t k = start; k < end; k++) {
        int64_t codes[TERMS];
        codes_of(found, k, codes);
        log[k - start] = numbers[k] + numbers[found->count + k] * at[codes[0]]
                         + numbers[2 * found->count + k] * at[codes[1]];
    }
#pragma omp simd
    for (int64_t k = 0; k < end - start; k++)
        log[k] = (log_of(smaller(larger(log[k], PREDICTED[0]), PREDICTED[1])) + OUTCOME_COARSE) - OUTCOME_COARSE;
}

/* Merge two sorted runs; of equal keys, the first run comes first. */
static void merge(const double *key, const int64_t *from, int64_t middle, int64_t end, int64_t *to)
{
    for (int64_t a = 0, b = middle, k = 0; k < end; k++)
        to[k] = b >= end || (a < middle && !(key[from[b]] < key[from[a]])) ? from[a++] : from[b++];
}

/* Find the stable order of keys; most rows have few. */
static void sort_by(const double *key, int64_t count, Space *space)
{
    int64_t *order = space->order;
    for (int64_t k = 0; k < count; k++) {
        int64_t at = k;
        for (; at % RUN && key[k] < key[order[at - 1]]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
    for (int64_t run = RUN; run < count; run *= 2) {
        for (int64_t start = 0; start < count; start += 2 * run) {
            int64_t end = count - start < 2 * run ? count - start : 2 * run;
            merge(key, order + start, end < run ? end : run, end, space->merged + start);
        }
        int64_t *sorted = space->merged;
        space->merged = order, space->order = order = sorted;
    }
}

/* `minimum_expected_loss`: the model of a row of `count` candidates, ordered by prediction. */
static int64_t agreed(const double *weight, int64_t count, const Space *space)
{
    const double *log = space->log;
    const int64_t *order = space->order;
    double *restrict place = space->place, *restrict whole = space->whole, most = 0, best = 0;
    double last = -1, centre = 0;
    int64_t places = 0, found = 0;
    for (int64_t k = 0; k < count; k++) {
        double part = floor((log[order[k]] - log[order[0]]) * PER_AGREED);
        if (part > last)
            place[places] = log[order[k]], whole[places++] = 0, last = part;
        whole[places - 1] += weight[order[k]];
    }
    for (int64_t k = 0; k < places; k++) {
        double close = 0;
#pragma omp simd reduction(+ : close)
        for (int64_t j = 0; j < places; j++)
            close += whole[j] * log_of(OUTCOME_FAR_APART / (OUTCOME_AGREES + fabs(place[j] - place[k])));
        if (close > most * MORE)
            most = close, centre = place[k];
    }
    for (int64_t k = 0; k < count; k++)
        if (fabs(log[k] - centre) <= OUTCOME_AGREES && weight[k] > best * MORE)
            best = weight[k], found = k;
    return found;
}

/* `_quantile_representatives`: one for each part of the candidates ordered by prediction,
   [ALTERNATIVES]. */
static void standing(int64_t count, Space *space, int64_t *kept, double *share)
{
    double most[ALTERNATIVES], whole = 0, running = 0;
    int64_t part = 0;
    for (int64_t k = 0; k < ALTERNATIVES; k++)
        kept[k] = 0, share[k] = 0, most[k] = 0;
    for (int64_t k = 0; k < count; k++)
        whole += space->rest[space->order[k]];
    for (int64_t k = 0; k < count && whole > 0; k++) {
        double weight = space->rest[space->order[k]], middle = (running + weight / 2) / whole;
        while (part < ALTERNATIVES - 1 && TAILS[part] < middle)
            part++;
        running += weight;
        share[part] += weight;
        if (weight > most[part] * MORE)
            most[part] = weight, kept[part] = space->order[k];
    }
    for (int64_t k = 1; k < ALTERNATIVES; k++)
        for (int64_t at = k; at && share[at] > share[at - 1]; at--) {
            double its = share[at];
            int64_t which = kept[at];
            share[at] = share[at - 1], kept[at] = kept[at - 1];
            share[at - 1] = its, kept[at - 1] = which;
        }
}

/* `_kept`: the candidates from `start` to `end` that represent all, the model first, and their
   weights. */
static int64_t keep(const Found *found, int64_t start, int64_t end, Space *space)
{
    int64_t count = end - start, kept = 1;
    predict_far(found, start, end, 0, space->log);
    sort_by(space->log, count, space);
    int64_t model = agreed(found->weight + start, count, space);
    memcpy(space->rest, found->weight + start, (size_t)count * sizeof(double));
    space->kept[0] = model, space->share[0] = space->rest[model];
    space->rest[model] = 0;
    for (int64_t place = found->places > 1; place < found->places; place++) {
        if (place) {
            predict_far(found, start, end, place, space->log);
            sort_by(space->log, count, space);
        }
        standing(count, space, space->kept + kept, space->share + kept);
        kept += ALTERNATIVES;
    }
    double total = 0;
    for (int64_t k = 0; k < 1 + ALTERNATIVES; k++)
        total += space->share[k];
    for (int64_t k = 0; k < kept; k++)
        space->share[k] /= total;
    return kept;
}

/* `roots`. */
static void root_of(const double *covariance, int64_t apart, float *root)
{
    double cc = covariance[0], cf = covariance[apart], cs = covariance[2 * apart];
    double ff = covariance[3 * apart], fs = covariance[4 * apart], ss = covariance[5 * apart];
    double first = sqrt(larger(ff, 0)), per_first = first > 0 ? 1 / first : 0;
    fs *= per_first, cf *= per_first;
    double second = sqrt(larger(ss - fs * fs, 0)), per_second = second > 0 ? 1 / second : 0;
    cs = (cs - cf * fs) * per_second;
    double third = sqrt(larger(cc - cf * cf - cs * cs, 0));
    double entries[] = {first, fs, second, cf, cs, third};
    for (int64_t k = 0; k < ELEMENTS; k++)
        root[k] = (float)entries[k];
}

/* Terms and coefficients of a candidate, in units of the row with shapes of magnitude 1, and in
   the unit of the metric. A term with a coefficient of zero is dropped. */
static void describe(const Found *found, int64_t candidate, double least, double unit,
                     int16_t *terms, double *scaled, double *numbers)
{
    int64_t codes[TERMS];
    codes_of(found, candidate, codes);
    for (int64_t k = 0; k < NUMBERS; k++) {
        double number = found->coefficients[k * found->count + candidate];
        scaled[k] = fabs(number) > OUTCOME_ROUNDING * least ? number : 0;
        int64_t none = !k || scaled[k] == 0 || codes[k - 1] == found->shapes;
        if (k)
            terms[k - 1] = none ? -1 : (int16_t)codes[k - 1];
        numbers[k] = scaled[k] * ((none ? 1 : 1 / found->scale[codes[k - 1]]) * unit);
    }
}

static int allocate(Space *space, int64_t most, int64_t kept)
{
    size_t size = (size_t)most + 1, others = (size_t)kept;
    *space = (Space){0};
    space->log = new_zeros((int64_t)(4 * size + others));
    space->order = new_zeros((int64_t)(4 * size + others));
    if (!space->log || !space->order)
        return 0;
    space->rest = space->log + size;
    space->place = space->rest + size;
    space->whole = space->place + size;
    space->share = space->whole + size;
    space->merged = space->order + size;
    space->kept = space->merged + size;
    return 1;
}

/* Write models and alternatives of n rows to `rows` of the columns of their names. Write the
   coefficients of the models, in the units of `describe`, to `scaled` [n, 3].

   Row k has candidates `start[k]` to `start[k + 1]` of `count`; `least` [n] is the smallest value
   above zero. The shapes far beyond the points are `far` [places, shapes + 1]. */
int64_t choose(int64_t n, int64_t count, int64_t shapes, int64_t places, int64_t others,
               const int64_t *rows, const int64_t *start, const int64_t *chosen,
               const double *probability, const double *found_coefficients,
               const double *covariance, const int64_t *first, const int64_t *second,
               const double *scale, const double *far, const double *unit, const double *least,
               int16_t *terms, double *coefficients, double *weight, int16_t *other_terms,
               double *other_coefficients, float *other_weight, float *root, double *scaled)
{
    Found found = {count, shapes, places, chosen, first, second, probability,
                   found_coefficients, covariance, scale, far};
    Space space;
    int64_t most = 0;
    for (int64_t k = 0; k < n; k++)
        most = start[k + 1] - start[k] > most ? start[k + 1] - start[k] : most;
    int there = allocate(&space, most, 1 + others);
    /* Sorting exchanges these arrays. */
    int64_t *orders = space.order;
    for (int64_t k = 0; there && k < n; k++) {
        int64_t row = rows[k];
        /* A row with NaN has no candidate. */
        if (start[k] == start[k + 1])
            continue;
        int64_t kept = keep(&found, start[k], start[k + 1], &space);
        double nowhere[NUMBERS];
        for (int64_t which = 0; which < kept; which++) {
            int64_t candidate = start[k] + space.kept[which], to = row * others + which - 1;
            int16_t *its = which ? other_terms + TERMS * to : terms + TERMS * row;
            double *numbers =
                which ? other_coefficients + NUMBERS * to : coefficients + NUMBERS * row;
            if (!(space.share[which] > 0))
                continue;
            describe(&found, candidate, least[k], unit[k], its,
                     which ? nowhere : scaled + NUMBERS * k, numbers);
            root_of(covariance + candidate, count, root + ELEMENTS * (row + to + 1));
            if (which)
                other_weight[to] = (float)space.share[which];
        }
        weight[row] = space.share[0];
    }
    free(space.log);
    free(orders);
    return there ? 0 : -1;
}
