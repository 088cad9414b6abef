/* Screening of the hypotheses of each row, as in oracle/bounds.py, row by row. */
#include "room.h"


/* Distance from the best bound, in nats, beyond which a hypothesis has no weight in an average in
   single precision. */
#define NOTHING 16.0f

typedef struct {
    int64_t *row, *shape, *families, *pair_row, *pair; /* screened hypotheses */
    int64_t singles, pairs;                            /* numbers of both */
} Worthy;

/* Keep a fit within reach of the values. */
static void smooth(const Row *row, double floor, double *fitted)
{
    for (int64_t k = 0; k < row->points; k++) {
        double value = row->values[k];
        double near = smaller(larger(fitted[k], value * (1 / HYPOTHESES_WITHIN)), value * HYPOTHESES_WITHIN);
        fitted[k] = value > 0 ? near : larger(fitted[k], floor);
    }
}

/* Write the best hypothesis with one shape: a constant, unless a shape leaves much less. */
static void fit_roughly(const Row *row, const Known *known, double floor, Room *room,
                        double *fitted)
{
    Look *seen = room->looks;
    /* Without a drift, the weights are those of the values. */
    for (int64_t k = 0; k < row->points; k++) {
        double unit = larger(row->values[k], floor);
        seen->weights[k] = row->weight[k] / (unit * unit);
    }
    sum_up(row, known->shapes, known->table, seen, 1, room->points);
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, mean = seen->mean;
    double *restrict residual = seen->residual, *restrict slopes = seen->slope, least = INFINITY;
#pragma omp simd reduction(min : least)
    for (int64_t s = 0; s < known->shapes; s++) {
        /* The slope is at most that without a constant; one division replaces two. */
        double here = larger(at[s], EVIDENCE_TINY), per_both = 1 / (square[s] * here);
        double slope = smaller(larger(product[s] * here * per_both, 0), mean * square[s] * per_both);
        slopes[s] = slope;
        residual[s] = (square[s] * slope - 2 * product[s]) * slope;
        least = smaller(residual[s], least);
    }
    int64_t best = 0;
    while (best < known->shapes - 1 && residual[best] != least)
        best++;
    double slope = -least > (1 - HYPOTHESES_UNEXPLAINED) * seen->total ? slopes[best] : 0;
    const double *of_best = in_blocks(known->table, row->points, best);
    for (int64_t k = 0; k < row->points; k++)
        fitted[k] = seen->mean + slope * (of_best[k * WHOLE] - seen->at[best]);
    smooth(row, floor, fitted);
}

/* Return the largest `ratio` [count] of the `kept` closest regressions; a ratio is relative to
   the closest one. `bound` [count] is the best of their bounds. Regressions far below the best of
   all are not counted. */
static float reach_of_kept(const float *restrict bound, const float *restrict ratio, int64_t count,
                           int64_t kept, float best)
{
    const float least = best - NOTHING;
    float reach = 0, last = 0;
#pragma omp simd reduction(max : reach)
    for (int64_t i = 0; i < count; i++)
        reach = larger_single(bound[i] >= least ? ratio[i] : 0, reach);
    if (up_to(ratio, count, reach) <= kept)
        return INFINITY;
    reach = reach_of(ratio, count, kept, reach);
#pragma omp simd reduction(max : last)
    for (int64_t i = 0; i < count; i++)
        last = larger_single(ratio[i] <= reach ? ratio[i] : 0, last);
    /* Rounding must not choose among equals. */
    return (1 + HYPOTHESES_TIED) * last;
}

/* Leave out shapes that are not among the closest under any drift; return the best bound. */
static float leave_shapes_out(const Known *known, float constant, Room *room)
{
    const int64_t shapes = known->shapes;
    float *restrict positive = room->bounds, *restrict offset = positive + shapes;
    float *restrict bare = offset + shapes, *restrict top = room->top;
    const float *restrict ratio = room->ratio;
    float best = larger_single(most_of(top, shapes), constant);
    if (known->kept_shapes >= known->there)
        return best;
    float reach = reach_of_kept(top, ratio, shapes, known->kept_shapes, best);
    if (reach < INFINITY)
#pragma omp simd
        for (int64_t s = 0; s < shapes; s++) {
            int far = ratio[s] > reach;
            positive[s] = far ? -INFINITY : positive[s];
            offset[s] = far ? -INFINITY : offset[s];
            bare[s] = far ? -INFINITY : bare[s];
            top[s] = far ? -INFINITY : top[s];
        }
    return larger_single(most_of(top, shapes), constant);
}

/* Write upper bounds of the evidence of hypotheses with one shape; return that of the constant. */
static float bound_singles(const Row *row, const Known *known, double variance, Room *room)
{
    const int64_t shapes = known->shapes;
    const float *restrict prior = known->prior;
    float *restrict least = room->least, *restrict bare = room->bare;
    float *restrict positive = room->bounds, *restrict offset = positive + shapes;
    float *restrict alone = offset + shapes, *restrict top = room->top;
    double total = INFINITY;
    unlimited(least, shapes);
    unlimited(bare, shapes);
    unlimited(room->ratio, shapes);
    for (int64_t l = 0; l < known->drifts; l++) {
        const Look *seen = room->looks + l;
        Singles *scaled = l ? &room->other : &room->singles;
        scale(seen, shapes, scaled);
        lower(seen, scaled, shapes, least, bare, room->ratio);
        total = smaller(seen->total, total);
    }
    for (int64_t s = known->there; s < shapes; s++)
        room->ratio[s] = INFINITY;
    volumes(&room->singles, shapes, (float)variance, known->falling, positive, offset, alone);
    /* Where points are missing, a shape may be the same at all that are left. */
    const float alike = row->used < (double)row->points ? EVIDENCE_ALIKE : -1;
    const float *restrict scatter = room->singles.scatter;
    const float *restrict about_zero = room->singles.about_zero;
    const float dof = (float)row->dof, noise = (float)row->variance, used = (float)row->used;
    const float per_one = 1 / larger_single(used - 1, 1), per_two = 1 / larger_single(used - 2, 1);
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        float both = profile(least[s], dof, noise, used - 2, per_two);
        float one = profile(bare[s], dof, noise, used - 1, per_one);
        int same = scatter[s] <= alike * about_zero[s];
        float first = same ? -INFINITY : positive[s] + both + prior[1 + s];
        float second = same ? -INFINITY : offset[s] + both + prior[1 + shapes + s];
        float third = same ? -INFINITY : alone[s] + one + prior[1 + 2 * shapes + s];
        positive[s] = first, offset[s] = second, alone[s] = third;
        top[s] = larger_single(larger_single(first, second), third);
    }
    double mean = larger(room->looks->mean, EVIDENCE_TINY);
    double volume = 0.5 * (EVIDENCE_LOG_2PI - log_of(room->looks->weight)) - log_of(mean);
    return (float)volume + prior[0] + profile((float)total, dof, noise, used - 1, per_one);
}

/* Regress on pairs `begin` to `end`: those of open fans, or, without fans, those that are tried
   with every row. Return the best bound. */
static float try_pairs(const Row *row, const Known *known, const Opened *opened, int64_t begin,
                       int64_t end, Room *room)
{
    const float *prior = known->prior + 1 + 3 * known->shapes;
    const int64_t points = known->points, listed = room->pairs.count;
    Pairs *found = &room->pairs;
    int64_t asked = known->frugal ? begin : known->growing;
    asked = asked < begin ? begin : asked > end ? end : asked;
    if (!opened)
        product_sums(points, whole(end), known->products, room->looks, known->drifts, found);
    for (int64_t l = 0; l < known->drifts; l++) {
        const Look *seen = room->looks + l;
        found->both = found->sums[l];
        if (opened)
            fan_sums(&known->fans, points, known->shapes, known->table, seen->weights, opened,
                     begin, found);
        if (l > 1 && row->used <= HYPOTHESES_FEWEST_FOR_PAIRS) {
            /* If p = 1 has no weight, any pair fits the other two points. */
            memcpy(found->left[l] + listed, found->left[0] + listed,
                   (size_t)whole(found->count - listed) * sizeof **found->left);
            continue;
        }
        if (l) {
            leave(seen, listed, asked, found, found->left[l]);
            continue;
        }
        mark_positive(row, seen, begin, asked, end, found);
        list_pairs(begin, end, found);
        regress(row, seen, listed, asked, !known->frugal, found);
    }
    return bound_pairs(row, prior, known->drifts, listed, known->growing, found);
}

/* Leave out pairs that are not among the closest. */
static void leave_pairs_out(const Known *known, float best, Room *room)
{
    Pairs *found = &room->pairs;
    float *restrict ratio = room->ratio;
    const int64_t all = whole(found->count);
    if (found->count <= known->kept_pairs)
        return;
    unlimited(ratio, all);
    for (int64_t i = found->count; i < all; i++)
        found->bound[i] = -INFINITY;
    for (int64_t l = 0; l < known->drifts; l++) {
        const float *restrict left = found->left[l];
        float per_least = 1 / larger_single(least_of(left, found->count), (float)HYPOTHESES_ROUNDING);
#pragma omp simd
        for (int64_t i = 0; i < found->count; i++)
            ratio[i] = smaller_single(left[i] * per_least, ratio[i]);
    }
    float reach = reach_of_kept(found->bound, ratio, all, known->kept_pairs, best);
    for (int64_t i = 0; i < all; i++)
        found->bound[i] = ratio[i] > reach ? -INFINITY : found->bound[i];
}

/* Return whether pairs may be near the best hypothesis with at most one shape, as
   `rows_for_pairs`. */
static int may_be_near(const Row *row, const Known *known, const Look *seen, const double *fitted,
                       float best)
{
    double least = INFINITY, level = EVIDENCE_TINY;
    for (int64_t k = 0; k < row->points; k++) {
        least = smaller(seen->weights[k], least);
        level = larger(fitted[k], level);
    }
    /* The level is the largest value of the model. Pairs are assumed to fit to within the noise. */
    const float volume = (float)(known->promise - 3 * log_of(level) - 1.5 * log_of(least));
    const float freedom = (float)row->used - 3, noise = (float)row->variance;
    const float per_freedom = 1 / larger_single(freedom, 1);
    float bound = volume + profile(noise * freedom, (float)row->dof, noise, freedom, per_freedom);
    return bound >= best - (float)known->nats || row->used <= HYPOTHESES_FEWEST_FOR_PAIRS
           || fitted[row->points - 1] < HYPOTHESES_FALLS * level;
}

/* Write upper bounds of the evidence of pairs if one shape does not explain the row; return the
   best one. `fitted` [points] is a rough fit. */
static float bound_doubles(const Row *row, const Known *known, double left, const double *fitted,
                           float best, Room *room)
{
    const int64_t pairs = known->pairs, shapes = known->shapes;
    const Fans *fans = &known->fans;
    Pairs *found = &room->pairs;
    /* A residual that is only rounding needs no second shape. */
    found->count = found->close = 0;
    if (row->used < HYPOTHESES_FEWEST_FOR_PAIRS + known->frugal || !(left > NOISE_EXACT_VARIANCE))
        return -INFINITY;
    if (!may_be_near(row, known, room->looks, fitted, best))
        return -INFINITY;
    /* With so few points, only pairs with shared work are tried. */
    const int64_t begin = row->used > HYPOTHESES_FEWEST_FOR_PAIRS ? 0 : known->growing;
    if (begin < pairs)
        best = larger_single(try_pairs(row, known, NULL, begin, pairs, room), best);
    if (fans->axes) {
        promise_fans(row, shapes, known->drifts, known->table, fans, room->looks, &room->opened);
        open_fans(fans, shapes, best, &room->opened);
        int64_t end = put_pairs(fans, shapes, &room->opened, known->first, known->second,
                                known->prior + 1 + 3 * shapes, pairs, found);
        best = larger_single(try_pairs(row, known, &room->opened, pairs, end, room), best);
    }
    leave_pairs_out(known, best, room);
    for (int64_t i = 0; i < found->count; i++) {
        found->near[found->close] = (int32_t)i;
        found->close += found->bound[i] >= best - NOTHING;
    }
    return most_of(found->bound, found->count);
}

/* Add slopes times shapes, [shapes], at the points; `work` is [points, WIDTH]. */
static void add_up(int64_t points, int64_t shapes, const double *restrict table,
                   const double *restrict slopes, double *restrict work, double *restrict found)
{
    memset(work, 0, (size_t)(points * WIDTH) * sizeof *work);
    for (int64_t s = 0; s < shapes; s += WHOLE) {
        for (int64_t k = 0; k < points; k++) {
            const double *x = table + s * points + k * WHOLE;
            Vector sum = *(Vector *)(work + k * WIDTH);
            EACH_VECTOR {
                const int j = v * WIDTH;
                sum += *(const Vector *)(x + j) * *(const Vector *)(slopes + s + j);
            }
            *(Vector *)(work + k * WIDTH) = sum;
        }
    }
    for (int64_t k = 0; k < points; k++) {
        found[k] = 0;
        for (int j = 0; j < WIDTH; j++)
            found[k] += work[k * WIDTH + j];
    }
}

/* Write the mean of all models, weighted by their bounds, as `_averaged`. */
static void average(const Row *row, const Known *known, float alone, float best, Room *room,
                    double *restrict fitted)
{
    const int64_t shapes = known->shapes;
    const Singles *singles = &room->singles;
    const float *restrict positive = room->bounds, *restrict offset = positive + shapes;
    const float *restrict bare = offset + shapes, *restrict ats = singles->at;
    const float mean = singles->mean;
    const float *restrict its = singles->slope, *restrict constants = singles->constant;
    const float *restrict about_zero = singles->about_zero;
    double *restrict slopes = room->order;
    float weight = exp_single(alone - best), without = 0, at = 0;
#pragma omp simd reduction(+ : weight, without, at)
    for (int64_t s = 0; s < shapes; s++) {
        float of_positive = exp_single(positive[s] - best), of_offset = exp_single(offset[s] - best);
        float of_bare = exp_single(bare[s] - best), slope = its[s];
        float steepest = mean / larger_single(ats[s], 1e-9f);
        float sum = of_positive * smaller_single(larger_single(slope, 0), steepest) + of_offset * slope;
        at += sum * ats[s];
        weight += of_positive + of_offset;
        without += of_bare;
        slopes[s] = sum + of_bare * (slope + constants[s] * ats[s] / about_zero[s]);
    }
    double constant = weight * mean - at, whole = weight + without;
    const Pairs *pairs = &room->pairs;
    for (int64_t j = 0; j < pairs->close; j++) {
        int32_t i = pairs->near[j], p = pairs->which[i];
        double share = exp_single(pairs->bound[i] - best), scaled = share * singles->unit;
        whole += share;
        constant += scaled * pairs->constant[i];
        slopes[pairs->one[p]] += scaled * pairs->first[i];
        slopes[pairs->other[p]] += scaled * pairs->second[i];
    }
    const double per_unit = 1 / (whole * singles->unit);
    add_up(row->points, shapes, known->table, slopes, room->models, fitted);
    for (int64_t k = 0; k < row->points; k++)
        fitted[k] = (constant + fitted[k]) * per_unit;
}

/* Note the hypotheses whose bound is near the best. */
static void note(int64_t number, const Known *known, float least, const Room *room, Worthy *worthy)
{
    const int64_t shapes = known->shapes;
    const float *bounds = room->bounds, *top = room->top;
    int64_t *restrict shape = worthy->shape + worthy->singles, count = 0;
    for (int64_t s = 0; s < known->there; s++) {
        shape[count] = s;
        count += top[s] >= least;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t s = shape[i], families = (bounds[s] >= least) << POSITIVE;
        families |= (bounds[shapes + s] >= least) << OFFSET;
        families |= (bounds[2 * shapes + s] >= least) << BARE;
        worthy->row[worthy->singles] = number;
        worthy->families[worthy->singles++] = families;
    }
    const Pairs *pairs = &room->pairs;
    for (int64_t j = 0; j < pairs->close; j++) {
        int64_t i = pairs->near[j];
        if (pairs->bound[i] >= least) {
            worthy->pair_row[worthy->pairs] = number;
            worthy->pair[worthy->pairs++] = pairs->number[pairs->which[i]];
        }
    }
}

/* Screen one row; return a rough variance of a point. */
static double screen_row(const Row *row, int64_t number, double floor, const Known *known,
                         Room *room, double *fitted, Worthy *worthy)
{
    const int64_t points = row->points;
    fit_roughly(row, known, floor, room, fitted);
    error_unit(points, floor, fitted, room->plain);
    plain_weights(points, row->weight, room->plain, room->plain);
    for (int64_t l = 0; l < known->drifts; l++) {
        relative_weights(points, room->plain, known->precision + l * points,
                         known->away + l * points, room->looks[l].weights);
    }
    sum_up(row, known->shapes, known->table, room->looks, known->drifts, room->points);
    for (int64_t l = 0; l < known->drifts; l++)
        look(known->shapes, room->looks + l);
    double left = room->looks->least / larger(row->used - 2, 1);
    double variance = larger(larger(left, NOISE_EXACT_VARIANCE), row->variance);
    float alone = bound_singles(row, known, variance, room);
    float best = leave_shapes_out(known, alone, room);
    best = larger_single(bound_doubles(row, known, left, fitted, best, room), best);
    if (variance <= HYPOTHESES_SCATTERED * HYPOTHESES_SCATTERED) {
        average(row, known, alone, best, room, fitted);
        smooth(row, floor, fitted);
    }
    note(number, known, best - (float)known->nats, room, worthy);
    return variance;
}

/* Screen `rows` as long as the results have room for all hypotheses of a row; return -1 without
   memory.

   The results are `row`, `shape` and `families` (a bit for each) [most] of `counts[0]` hypotheses
   with one shape, `pair_row` and `pair` [most_pairs] of `counts[1]` pairs, and `variances` [rows]
   and `fitted` [rows, points] of `counts[2]` rows. */
int64_t screen(int64_t rows, int64_t points, int64_t shapes, int64_t there, int64_t pairs,
               int64_t drifts,
               const double *values, const double *weight, const double *variance,
               const double *dof, const double *floor, const double *precision,
               const double *away, const double *table, const double *products, const int32_t *first,
               const int32_t *second, const float *falling, const float *prior, double promise,
               int64_t kept_shapes, int64_t kept_pairs, double nats, int64_t frugal, int64_t growing,
               int64_t axes, int64_t terms, int64_t opened, const int64_t *ends, const int64_t *order,
               const int64_t *level, const double *of_terms, const float *likely, int64_t most,
               int64_t most_pairs, int64_t *row, int64_t *shape, int64_t *families,
               int64_t *pair_row, int64_t *pair, int64_t *counts, double *variances,
               double *fitted)
{
    Known known = {points, shapes,  pairs, drifts,      precision,  away,   table, products,
                         first,  second,  falling, prior,      promise,
                         {pairs, axes, terms, opened, ends, order, level, of_terms, likely},
                         there, kept_shapes, kept_pairs, nats, frugal != 0, growing};
    Worthy worthy = {row, shape, families, pair_row, pair, 0, 0};
    Look *looks = malloc((size_t)drifts * sizeof *looks);
    float **left = malloc((size_t)drifts * sizeof *left);
    double **sums = malloc((size_t)drifts * sizeof *sums);
    Room room;
    double *all = looks && left && sums ? make_room(&known, looks, left, sums, &room) : 0;
    const int64_t last = most - there, last_pair = most_pairs - pairs_at_most(&known);
    int64_t i = 0;
    for (; all && i < rows && worthy.singles <= last && worthy.pairs <= last_pair; i++) {
        Row one = {points, values + i * points, weight + i * points, variance[i], dof[i], 0};
        one.used = used_of(points, one.weight);
        variances[i] = screen_row(&one, i, floor[i], &known, &room, fitted + i * points, &worthy);
    }
    counts[0] = worthy.singles, counts[1] = worthy.pairs, counts[2] = i;
    free(all);
    free(sums);
    free(left);
    free(looks);
    return all ? 0 : -1;
}
