/* Fans of pairs and bounds of their evidence, as in oracle/bounds.py: for one row. */
#ifndef CALLPATH_MODELER_FANS_H
#define CALLPATH_MODELER_FANS_H

#include "pairs.h"


/* `PairGroups` of S shapes with H terms of D parameters; points are ordered by each parameter. */
typedef struct {
    int64_t start, axes, terms, opened;
    const int64_t *ends;          /* [axes] */
    const int64_t *order, *level; /* [axes, points]: points by value; numbers of values */
    const double *table;          /* [points, terms] */
    const float *likely;          /* [axes, shapes]: the most probable pair of each */
} Fans;

/* Work space for one row. */
typedef struct {
    float *promise;        /* [axes, shapes] */
    double *share, *value; /* [drifts, axes, points]: 1 / weight of a level; its relative mean */
    double *total;         /* [drifts, axes]: residuals of levels */
    int64_t *open;         /* [opened]: positions of open fans in `promise` */
    int64_t count;
} Opened;

/* Find the part of a row that free levels of one parameter explain, and the residual. `place` is
   the position of the drift and the parameter. */
static void find_levels(const Row *row, const Look *seen, int64_t axis, int64_t place,
                        const Fans *fans, Opened *found)
{
    const int64_t points = row->points, *order = fans->order + axis * points;
    const int64_t *level = fans->level + axis * points;
    double *share = found->share + place * points, *values = found->value + place * points;
    double total = seen->total, weight = 0, value = 0;
    for (int64_t j = 0; j < points; j++) {
        double its = seen->weights[order[j]];
        weight += its;
        value += its * (row->values[order[j]] - seen->mean);
        if (j + 1 < points && level[j + 1] == level[j])
            continue;
        share[level[j]] = weight > 0 ? 1 / weight : 0;
        values[level[j]] = value * share[level[j]];
        total -= value * values[level[j]];
        weight = value = 0;
    }
    found->total[place] = total;
}

/* Sum a block of shapes level by level; the results are subtracted from the sums of squares and
   products. */
static void level_sums(int64_t points, const double *restrict block,
                       const double *restrict weights, const int64_t *restrict order,
                       const int64_t *restrict level, const double *restrict share,
                       const double *restrict value, double *square, double *product)
{
    Vector at[VECTORS] = {{0}}, squares[VECTORS] = {{0}}, products[VECTORS] = {{0}};
    for (int64_t j = 0; j < points; j++) {
        const double *x = block + order[j] * WHOLE, weight = weights[order[j]];
        EACH_VECTOR at[v] += *(const Vector *)(x + v * WIDTH) * weight;
        if (j + 1 < points && level[j + 1] == level[j])
            continue;
        EACH_VECTOR {
            squares[v] += at[v] * at[v] * share[level[j]];
            products[v] += at[v] * value[level[j]];
            at[v] = (Vector){0};
        }
    }
    put(square, squares), put(product, products);
}

/* Lower `promise` to the residual of each shape with any function of each parameter, if that is
   smaller: block by block, under all drifts and for all parameters. */
static void lower_left(const Row *row, int64_t shapes, int64_t drifts, const double *table,
                       const Fans *fans, const Look *looks, Opened *found)
{
    const int64_t points = row->points;
    for (int64_t place = 0; place < drifts * fans->axes; place++)
        find_levels(row, looks + place / fans->axes, place % fans->axes, place, fans, found);
    for (int64_t s = 0; s < shapes; s += WHOLE)
        for (int64_t place = 0; place < drifts * fans->axes; place++) {
            const int64_t axis = place % fans->axes;
            const Look *seen = looks + place / fans->axes;
            const double total = found->total[place], *restrict ats = seen->at + s;
            const double *restrict scatter = seen->square + s, *restrict both = seen->product + s;
            float *restrict left = found->promise + axis * shapes + s;
            double square[WHOLE] __attribute__((aligned(64)));
            double product[WHOLE] __attribute__((aligned(64)));
            level_sums(points, table + s * points, seen->weights, fans->order + axis * points,
                       fans->level + axis * points, found->share + place * points,
                       found->value + place * points, square, product);
#pragma omp simd
            for (int i = 0; i < WHOLE; i++) {
                double raw = scatter[i] + seen->weight * ats[i] * ats[i], away = raw - square[i];
                double along = larger(both[i] - product[i], 0);
                double explained = away > EVIDENCE_VARIES * raw ? along * along / away : 0;
                left[i] = smaller_single((float)larger(total - explained, 0), left[i]);
            }
        }
}

/* Write upper bounds of the evidence of all fans, without the part that depends on coefficients. */
static void promise_fans(const Row *row, int64_t shapes, int64_t drifts, const double *table,
                         const Fans *fans, const Look *looks, Opened *found)
{
    const float dof = (float)row->dof, noise = (float)row->variance;
    const float free = (float)larger(row->used - 3, 0), per_free = 1 / larger_single(free, 1);
    const float *restrict likely = fans->likely;
    float *restrict promise = found->promise;
    unlimited(promise, fans->axes * shapes);
    lower_left(row, shapes, drifts, table, fans, looks, found);
#pragma omp simd
    for (int64_t i = 0; i < fans->axes * shapes; i++)
        promise[i] = profile(promise[i], dof, noise, free, per_free) + likely[i];
}

/* Open the most promising fans, except those far below the `best` bound of other hypotheses. If
   parameters varied one at a time, thousands are equally promising; then the first ones are
   opened. */
static void open_fans(const Fans *fans, int64_t shapes, float best, Opened *found)
{
    const int64_t count = fans->axes * shapes;
    float *restrict promise = found->promise, top = most_of(promise, count);
    float reach = top - best + HYPOTHESES_OUT_OF_QUESTION;
    found->count = 0;
    if (!(reach >= 0 && reach < INFINITY))
        return;
    /* The distances from the best bound. */
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        promise[i] = top - promise[i];
    float sure = reach, even = reach;
    if (up_to(promise, count, reach) > fans->opened) {
        reach = reach_of(promise, count, fans->opened, reach);
        sure = reach - HYPOTHESES_EVEN, even = reach + HYPOTHESES_EVEN;
    }
    int64_t spare = fans->opened - up_to(promise, count, sure);
    for (int64_t s = 0; s < shapes; s++)
        for (int64_t place = s; place < count; place += shapes)
            if (promise[place] <= sure || (promise[place] <= even && spare-- > 0))
                found->open[found->count++] = place;
}

/* Write the pairs of open fans from position `begin` on; return the end. */
static int64_t put_pairs(const Fans *fans, int64_t shapes, const Opened *opened,
                         const int32_t *first, const int32_t *second, const float *prior,
                         int64_t begin, Pairs *found)
{
    for (int64_t i = 0; i < opened->count; i++) {
        int64_t axis = opened->open[i] / shapes, shape = opened->open[i] % shapes;
        int64_t from = axis ? fans->ends[axis - 1] : 0, size = fans->ends[axis] - from;
        int64_t number = fans->start + shape * fans->terms + from;
        memcpy(found->one + begin, first + number, (size_t)size * sizeof *first);
        memcpy(found->other + begin, second + number, (size_t)size * sizeof *second);
        for (int64_t j = 0; j < size; j++) {
            found->number[begin + j] = (int32_t)(number + j);
            found->likely[begin + j] = prior[number + j] > -INFINITY;
        }
        begin += size;
    }
    return begin;
}

/* Sum products of the shapes of pairs of open fans, which begin at `begin`. This goes level by
   level, since all terms of a parameter are constant within a level. */
static void fan_sums(const Fans *fans, int64_t points, int64_t shapes, const double *table,
                     const double *restrict weights, const Opened *opened, int64_t begin,
                     Pairs *found)
{
    for (int64_t i = 0; i < opened->count; i++) {
        int64_t axis = opened->open[i] / shapes, shape = opened->open[i] % shapes;
        int64_t from = axis ? fans->ends[axis - 1] : 0, size = fans->ends[axis] - from;
        const int64_t *order = fans->order + axis * points, *level = fans->level + axis * points;
        double *restrict both = found->both + begin, of_level = 0;
        const double *of_shape = in_blocks(table, points, shape);
        memset(both, 0, (size_t)size * sizeof *both);
        for (int64_t j = 0; j < points; j++) {
            int64_t k = order[j];
            of_level += weights[k] * of_shape[k * WHOLE];
            if (j + 1 < points && level[j + 1] == level[j])
                continue;
            const double *restrict terms = fans->table + k * fans->terms + from;
#pragma omp simd
            for (int64_t h = 0; h < size; h++)
                both[h] += of_level * terms[h];
            of_level = 0;
        }
        begin += size;
    }
}

#endif
