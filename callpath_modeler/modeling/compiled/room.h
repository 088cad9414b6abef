/* Hypotheses that rows are compared with, and working memory for one row; for screen.c. */
#ifndef CALLPATH_MODELER_ROOM_H
#define CALLPATH_MODELER_ROOM_H

#include "fans.h"
#include "memory.h"

/* Hypotheses that rows are compared with. */
typedef struct {
    /* Pairs are those that are tried with every row; shapes fill whole vectors. */
    int64_t points, shapes, pairs, drifts;
    const double *precision, *away; /* [drifts, points], as in `relative_weights` */
    const double *table, *products; /* of shapes and pairs, in blocks */
    const int32_t *first, *second;  /* [pairs], then those of fans */
    const float *falling;           /* [shapes] */
    const float *prior;             /* [1 + 3 shapes + pairs], then those of fans */
    double promise;                 /* as `promise_of_pairs` */
    Fans fans;
    int64_t there, kept_shapes, kept_pairs; /* there: number of shapes */
    double nats;
    int frugal;
    int64_t growing; /* number of pairs, the first ones, without a decreasing shape */
} Known;

/* Working memory for one row. */
typedef struct {
    Look *looks; /* [drifts] */
    Singles singles, other;
    Pairs pairs;
    Opened opened;
    float *bounds, *top;         /* [3, shapes], -inf = left out; [shapes], the best of each */
    float *least, *bare;         /* [shapes] */
    float *ratio;                /* [shapes or pairs]: residual / least residual */
    double *plain, *points;      /* [points]: weights without drift; [drifts, 2, points] */
    double *order;               /* [shapes] */
    double *models;              /* [points, WIDTH] */
} Room;

/* Take `count` numbers of 8 bytes from the memory at `*next`, with the rest of the last line. */
static double *part(double **next, int64_t count)
{
    double *found = *next;
    *next += lines(count);
    return found;
}

/* Largest number of pairs that a row is compared with. */
static int64_t pairs_at_most(const Known *known)
{
    const Fans *fans = &known->fans;
    int64_t widest = 0;
    for (int64_t axis = 0; axis < fans->axes; axis++) {
        int64_t size = fans->ends[axis] - (axis ? fans->ends[axis - 1] : 0);
        widest = size > widest ? size : widest;
    }
    return known->pairs + fans->opened * widest;
}

/* Take memory for as many numbers of single precision; half of it would suffice. */
static float *single_part(double **next, int64_t count) { return (float *)part(next, count); }

/* Copy [count, points] numbers into blocks. */
static const double *blocks_of(double **next, int64_t points, int64_t count, const double *numbers)
{
    double *found = part(next, points * whole(count));
    put_in_blocks(points, count, numbers, found);
    return found;
}

/* Lay out memory for one row and for the hypotheses; return NULL if there is too little. */
static double *make_room(Known *known, Look *looks, float **left, double **sums, Room *room)
{
    /* The pairs that are tried with every row and those of fans each fill up their last vector. */
    const int64_t shapes = known->shapes, pairs = pairs_at_most(known) + 2 * WHOLE;
    const int64_t points = known->points;
    const int64_t longest = shapes > pairs ? shapes : pairs, fans = known->fans.axes * shapes;
    const int64_t products = points * whole(known->pairs);
    const int64_t drifts = known->drifts, levels = drifts * known->fans.axes;
    const int64_t size = drifts * (3 * points + 5 * shapes + 2 * pairs) + 17 * shapes + 15 * pairs
                         + (1 + WIDTH) * points + longest + fans + known->fans.opened
                         + levels * (2 * points + 1) + points * shapes + products
                         + 0;
    const int64_t parts = 8 * drifts + 73;
    double *all = new_lines(size + parts * lines(1)), *next = all;
    if (!all)
        return 0;
    known->table = blocks_of(&next, points, known->there, known->table);
    known->products = blocks_of(&next, points, known->pairs, known->products);
    room->looks = looks;
    for (int64_t l = 0; l < drifts; l++) {
        double **parts[] = {&looks[l].at, &looks[l].square, &looks[l].product, &looks[l].slope,
                            &looks[l].residual};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            *parts[i] = part(&next, shapes);
        looks[l].weights = part(&next, points);
        left[l] = single_part(&next, pairs);
        sums[l] = part(&next, pairs);
    }
    Singles *one = &room->singles, *other = &room->other;
    float **of_shapes[] = {&one->at,   &one->scatter,   &one->about_zero,   &one->slope,
                           &one->constant, &other->at,   &other->scatter, &other->about_zero,
                           &other->slope, &other->constant, &room->least,    &room->bare};
    for (size_t i = 0; i < sizeof of_shapes / sizeof *of_shapes; i++)
        *of_shapes[i] = single_part(&next, shapes);
    room->bounds = single_part(&next, FAMILIES * shapes);
    room->top = single_part(&next, shapes);
    Pairs *two = &room->pairs;
    double **of_pairs[] = {&two->constant, &two->first, &two->second, &two->determinant,
                           &two->free};
    for (size_t i = 0; i < sizeof of_pairs / sizeof *of_pairs; i++)
        *of_pairs[i] = part(&next, pairs);
    int32_t **numbers[] = {&two->one, &two->other, &two->number,   &two->which,
                           &two->near, &two->first_of, &two->second_of};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = (int32_t *)part(&next, pairs);
    two->likely = (int64_t *)part(&next, pairs);
    two->marked = (int64_t *)part(&next, pairs);
    two->bound = single_part(&next, pairs);
    two->left = left, two->sums = sums;
    memset(two->one, 0, (size_t)pairs * sizeof *two->one);
    memset(two->other, 0, (size_t)pairs * sizeof *two->other);
    memset(two->likely, 0, (size_t)pairs * sizeof *two->likely);
    for (int64_t p = 0; p < known->pairs; p++) {
        two->one[p] = known->first[p], two->other[p] = known->second[p], two->number[p] = (int32_t)p;
        two->likely[p] = known->prior[1 + FAMILIES * shapes + p] > -INFINITY;
    }
    room->plain = part(&next, points);
    room->points = part(&next, 2 * drifts * points);
    room->opened.share = part(&next, levels * points);
    room->opened.value = part(&next, levels * points);
    room->opened.total = part(&next, levels);
    room->opened.promise = single_part(&next, fans);
    room->opened.open = (int64_t *)part(&next, known->fans.opened);
    room->order = part(&next, shapes);
    room->models = part(&next, WIDTH * points);
    room->ratio = single_part(&next, longest);
    return all;
}

#endif
