/* Which hypotheses of each row are worth a look, as in mixture/screen.py: row by row. */
#include "room.h"

#define WITHIN 3.0
#define UNEXPLAINED 0.4
#define MUCH 0.1
#define FEWEST_FOR_PAIRS 4

/* Against the best, in nats: a hypothesis below it has no part in what is averaged. */
#define NOTHING 25.0

typedef struct {
    int64_t *row, *shape, *families, *pair_row, *pair; /* what is worth a look */
    int64_t singles, pairs;                            /* how many there are */
} Worthy;

/* Keep a model within reach of the values. */
static void smooth(const Row *row, double floor, double *fitted)
{
    for (int64_t k = 0; k < row->points; k++) {
        double value = row->values[k];
        double near = smaller(larger(fitted[k], value / WITHIN), value * WITHIN);
        fitted[k] = value > 0 ? near : larger(fitted[k], floor);
    }
}

/* Write what the best hypothesis with one shape says: a constant, unless a shape leaves much less. */
static void fit_roughly(const Row *row, const Known *known, double floor, Room *room,
                        double *fitted)
{
    Look *seen = room->looks;
    /* Where nothing drifts, weights are those of the values. */
    for (int64_t k = 0; k < row->points; k++) {
        double unit = larger(row->values[k], floor);
        seen->weights[k] = row->weight[k] / (unit * unit);
    }
    look(row, known->shapes, known->table, seen, room->points);
    double *restrict residual = seen->residual, *restrict slopes = seen->slope;
#pragma omp simd
    for (int64_t s = 0; s < known->shapes; s++) {
        double steepest = seen->mean / larger(seen->at[s], TINY);
        double slope = smaller(larger(slopes[s], 0), steepest);
        slopes[s] = slope;
        residual[s] = (seen->square[s] * slope - 2 * seen->product[s]) * slope;
    }
    double least = least_of(residual, known->shapes);
    int64_t best = 0;
    while (best < known->shapes - 1 && residual[best] != least)
        best++;
    double slope = -least > (1 - UNEXPLAINED) * seen->total ? slopes[best] : 0;
    for (int64_t k = 0; k < row->points; k++) {
        double x = known->table[k * known->shapes + best];
        fitted[k] = seen->mean + slope * (x - seen->at[best]);
    }
    smooth(row, floor, fitted);
}

/* Leave out what is not among the `kept` closest under any drift: `bounds` [families, count], where
   `room->ratio` [count] says how close. What is far below the best needs no such look. */
static void leave_far_out(double *restrict bounds, int families, int64_t count, int64_t kept,
                          double best, Room *room)
{
    const double *restrict ratio = room->ratio, least = best - NOTHING;
    if (count <= kept)
        return;
    double reach = 0;
    for (int family = 0; family < families; family++) {
        const double *restrict bound = bounds + family * count;
#pragma omp simd reduction(max : reach)
        for (int64_t i = 0; i < count; i++)
            reach = larger(bound[i] >= least ? ratio[i] : 0, reach);
    }
    if (up_to(ratio, count, reach) <= kept)
        return;
    reach = reach_of(ratio, count, kept, reach);
    double last = 0;
#pragma omp simd reduction(max : last)
    for (int64_t i = 0; i < count; i++)
        last = larger(ratio[i] <= reach ? ratio[i] : 0, last);
    /* Rounding does not choose among equals. */
    reach = (1 + TIED) * last;
    for (int family = 0; family < families; family++) {
        double *restrict bound = bounds + family * count;
#pragma omp simd
        for (int64_t i = 0; i < count; i++)
            bound[i] = ratio[i] > reach ? -INFINITY : bound[i];
    }
}

/* Bound the evidence of hypotheses with one shape; return that of the constant. */
static double bound_singles(const Row *row, const Known *known, double variance, Room *room)
{
    const int64_t shapes = known->shapes;
    const double *prior = known->prior;
    double *restrict least = room->least, *restrict bare = room->bare;
    double *restrict positive = room->bounds, *restrict offset = positive + shapes;
    double *restrict alone = offset + shapes, total = INFINITY;
    unlimited(least, shapes);
    unlimited(bare, shapes);
    unlimited(room->ratio, shapes);
    for (int64_t l = 0; l < known->drifts; l++) {
        const Look *seen = room->looks + l;
        Singles *scaled = l ? &room->other : &room->singles;
        scale(seen, shapes, scaled);
        lower_bare(seen, scaled, shapes, bare);
        lower_ratio(seen->residual, shapes, room->ratio);
#pragma omp simd
        for (int64_t s = 0; s < shapes; s++)
            least[s] = smaller(seen->residual[s], least[s]);
        total = smaller(seen->total, total);
    }
    volumes(room->looks, &room->singles, shapes, variance, known->falling, positive, offset, alone);
    /* Where points are missing, a shape may be the same at all that are left. */
    double alike = row->used < (double)row->points ? ALIKE : -1;
    const double *restrict scatter = room->singles.scatter;
    const double *restrict about_zero = room->singles.about_zero;
    const double dof = row->dof, noise = row->variance, used = row->used;
    const double per_one = 1 / larger(used - 1, 1), per_two = 1 / larger(used - 2, 1);
#pragma omp simd
    for (int64_t s = 0; s < shapes; s++) {
        double both = profile(least[s], dof, noise, used - 2, per_two);
        double one = profile(bare[s], dof, noise, used - 1, per_one);
        int same = scatter[s] <= alike * about_zero[s];
        positive[s] = same ? -INFINITY : positive[s] + both + prior[1 + s];
        offset[s] = same ? -INFINITY : offset[s] + both + prior[1 + shapes + s];
        alone[s] = same ? -INFINITY : alone[s] + one + prior[1 + 2 * shapes + s];
    }
    double mean = larger(room->looks->mean, TINY);
    double constant = 0.5 * (LOG_2PI - log_of(room->looks->weight)) - log_of(mean) + prior[0]
                      + profile(total, dof, noise, used - 1, per_one);
    double best = larger(most_of(positive, FAMILIES * shapes), constant);
    leave_far_out(positive, FAMILIES, shapes, known->kept_shapes, best, room);
    return constant;
}

/* Regress on pairs `begin` to `end`: those of open fans, or without any those that are tried with every
   row. Returns the best bound. */
static double try_pairs(const Row *row, const Known *known, const Opened *opened, int64_t begin,
                        int64_t end, Room *room)
{
    const double *prior = known->prior + 1 + 3 * known->shapes;
    const int64_t points = known->points, listed = room->pairs.count;
    Pairs *found = &room->pairs;
    for (int64_t l = 0; l < known->drifts; l++) {
        const Look *seen = room->looks + l;
        if (opened)
            fan_sums(&known->fans, points, known->shapes, known->table, seen->weights, opened,
                     begin, found);
        else
            product_sums(points, end, known->products, seen->weights, found->both);
        if (l) {
            leave(seen, listed, known->frugal ? 0 : known->growing, found, found->left[l]);
            continue;
        }
        int64_t asked = known->frugal ? begin : known->growing;
        asked = asked < begin ? begin : asked > end ? end : asked;
        regress(row, seen, begin, asked, 0, found);
        regress(row, seen, asked, end, 1, found);
        list_positive(begin, end, prior, found);
    }
    return bound_pairs(row, prior, listed, known->growing, found);
}

/* Bound the evidence of pairs, where one shape does not explain the row; return the best. */
static double bound_doubles(const Row *row, const Known *known, double left, double best,
                            Room *room)
{
    const int64_t pairs = known->pairs, shapes = known->shapes;
    const Fans *fans = &known->fans;
    Pairs *found = &room->pairs;
    /* What rounding leaves asks for no second shape. */
    found->count = 0;
    if (row->used < FEWEST_FOR_PAIRS || !(left > EXACT_VARIANCE))
        return -INFINITY;
    if (pairs)
        best = larger(try_pairs(row, known, NULL, 0, pairs, room), best);
    if (fans->axes) {
        promise_fans(row, shapes, known->drifts, known->table, fans, room->looks, &room->opened);
        open_fans(fans, shapes, best, &room->opened);
        int64_t end = put_pairs(fans, shapes, &room->opened, known->first, known->second, pairs,
                                found);
        best = larger(try_pairs(row, known, &room->opened, pairs, end, room), best);
    }
    unlimited(room->ratio, found->count);
    for (int64_t l = 0; l < known->drifts; l++)
        lower_ratio(found->left[l], found->count, room->ratio);
    leave_far_out(found->bound, 1, found->count, known->kept_pairs, best, room);
    int64_t near = 0;
    for (int64_t i = 0; i < found->count; i++) {
        found->which[near] = found->which[i];
        found->bound[near] = found->bound[i];
        near += found->bound[i] >= best - NOTHING;
    }
    found->count = near;
    return most_of(found->bound, near);
}

/* List the shapes that have a hypothesis which is not far below the best. */
static void list_near(int64_t shapes, double best, Room *room)
{
    const double *restrict positive = room->bounds, *restrict offset = positive + shapes;
    const double *restrict bare = offset + shapes;
    int64_t count = 0;
    for (int64_t s = 0; s < shapes; s++) {
        room->which[count] = (int32_t)s;
        count += larger(larger(positive[s], offset[s]), bare[s]) >= best - NOTHING;
    }
    room->count = count;
}

/* Write the mean of all models, each as probable as its bound says, as `_averaged`. */
static void average(const Row *row, const Known *known, double alone, double best, Room *room,
                    double *restrict fitted)
{
    const int64_t shapes = known->shapes;
    const Look *seen = room->looks;
    const Singles *singles = &room->singles;
    const double *restrict positive = room->bounds, *restrict offset = positive + shapes;
    const double *restrict bare = offset + shapes, mean = singles->mean;
    const int32_t *restrict which = room->which;
    double *restrict slopes = room->order;
    double weight = exp_of(alone - best), without = 0, at = 0;
    memset(slopes, 0, (size_t)shapes * sizeof *slopes);
#pragma omp simd reduction(+ : weight, without, at)
    for (int64_t i = 0; i < room->count; i++) {
        int32_t s = which[i];
        double of_positive = exp_of(positive[s] - best), of_offset = exp_of(offset[s] - best);
        double of_bare = exp_of(bare[s] - best), slope = singles->slope[s];
        double steepest = mean / larger(seen->at[s], 1e-9);
        double sum = of_positive * smaller(larger(slope, 0), steepest) + of_offset * slope;
        at += sum * seen->at[s];
        weight += of_positive + of_offset;
        without += of_bare;
        slopes[s] = sum + of_bare * bare_slope(seen, singles, s);
    }
    double constant = weight * mean - at;
    weight += without;
    const Pairs *pairs = &room->pairs;
    double *restrict shares = pairs->least;
#pragma omp simd
    for (int64_t i = 0; i < pairs->count; i++)
        shares[i] = exp_of(pairs->bound[i] - best);
    for (int64_t i = 0; i < pairs->count; i++) {
        int32_t p = pairs->which[i];
        double scaled = shares[i] * singles->unit;
        weight += shares[i];
        constant += scaled * pairs->constant[p];
        slopes[pairs->one[p]] += scaled * pairs->first[p];
        slopes[pairs->other[p]] += scaled * pairs->second[p];
    }
    const double per_unit = 1 / (weight * singles->unit);
    for (int64_t k = 0; k < row->points; k++)
        fitted[k] = (constant + inner(known->table + k * shapes, slopes, shapes)) * per_unit;
}

/* Note what is not much worse than the best. */
static void note(int64_t number, const Known *known, double least, const Room *room, Worthy *worthy)
{
    const int64_t shapes = known->shapes;
    const double *bounds = room->bounds;
    for (int64_t i = 0; i < room->count; i++) {
        int64_t s = room->which[i];
        int64_t families = (bounds[s] >= least) << POSITIVE
                           | (bounds[shapes + s] >= least) << OFFSET
                           | (bounds[2 * shapes + s] >= least) << BARE;
        if (families) {
            worthy->row[worthy->singles] = number;
            worthy->shape[worthy->singles] = s;
            worthy->families[worthy->singles++] = families;
        }
    }
    for (int64_t i = 0; i < room->pairs.count; i++)
        if (room->pairs.bound[i] >= least) {
            worthy->pair_row[worthy->pairs] = number;
            worthy->pair[worthy->pairs++] = room->pairs.number[room->pairs.which[i]];
        }
}

/* Screen one row; return roughly the variance of a point. */
static double screen_row(const Row *row, int64_t number, const Known *known, Room *room,
                         double *fitted, Worthy *worthy)
{
    const int64_t points = row->points;
    const double floor = floor_of(points, row->values);
    fit_roughly(row, known, floor, room, fitted);
    error_unit(points, row->values, fitted, room->unit);
    for (int64_t l = 0; l < known->drifts; l++) {
        relative_weights(points, row->weight, room->unit, known->precision + l * points,
                         known->away + l * points, room->looks[l].weights);
        look(row, known->shapes, known->table, room->looks + l, room->points);
    }
    double left = least_of(room->looks->residual, known->shapes) / larger(row->used - 2, 1);
    double variance = larger(larger(left, EXACT_VARIANCE), row->variance);
    double alone = bound_singles(row, known, variance, room);
    double best = larger(most_of(room->bounds, FAMILIES * known->shapes), alone);
    best = larger(bound_doubles(row, known, left, best, room), best);
    list_near(known->shapes, best, room);
    if (variance <= MUCH * MUCH) {
        average(row, known, alone, best, room, fitted);
        smooth(row, floor, fitted);
    }
    note(number, known, best - known->nats, room, worthy);
    return variance;
}

/* Screen `rows`; return -1 without memory.

   Written are `row`, `shape` and `families` (a bit for each) of hypotheses with one shape, as many
   as `counts[0]` says, `pair_row` and `pair` as many as `counts[1]` says, and `variances` [rows] and
   `fitted` [rows, points]. */
int64_t screen(int64_t rows, int64_t points, int64_t shapes, int64_t pairs, int64_t drifts,
               const double *values, const double *weight, const double *variance,
               const double *dof, const double *precision, const double *away,
               const double *table, const double *products, const int32_t *first,
               const int32_t *second, const double *falling, const double *prior,
               int64_t kept_shapes, int64_t kept_pairs, double nats, int64_t frugal, int64_t growing,
               int64_t axes, int64_t terms, int64_t opened, const int64_t *ends, const int64_t *order,
               const int64_t *level, const double *of_terms, const double *likely, int64_t *row,
               int64_t *shape, int64_t *families, int64_t *pair_row, int64_t *pair,
               int64_t *counts, double *variances, double *fitted)
{
    const Known known = {points, shapes,  pairs, drifts,      precision,  away,   table, products,
                         first,  second,  falling, prior,
                         {pairs, axes, terms, opened, ends, order, level, of_terms, likely},
                         kept_shapes, kept_pairs, nats, frugal != 0, growing};
    Worthy worthy = {row, shape, families, pair_row, pair, 0, 0};
    Look *looks = malloc((size_t)drifts * sizeof *looks);
    double **left = malloc((size_t)drifts * sizeof *left);
    Room room;
    double *all = looks && left ? make_room(&known, looks, left, &room) : 0;
    for (int64_t i = 0; all && i < rows; i++) {
        Row one = {points, values + i * points, weight + i * points, variance[i], dof[i], 0};
        one.used = used_of(points, one.weight);
        variances[i] = screen_row(&one, i, &known, &room, fitted + i * points, &worthy);
    }
    counts[0] = worthy.singles, counts[1] = worthy.pairs;
    free(all);
    free(left);
    free(looks);
    return all ? 0 : -1;
}
