/* Regressions on two shapes each and bounds of their evidence, as in mixture/pairs.py: of one row,
   for all pairs at once. */
#ifndef CALLPATH_MODELER_PAIRS_H
#define CALLPATH_MODELER_PAIRS_H

#include "bounds.h"

/* Pairs one after the other, from `begin` on. Where `from` is not -1 they have the first shape in
   common, and their second ones follow each other in a list, from place `from` on. */
typedef struct {
    int64_t begin, count, from, first;
} Run;

/* Pairs, and regressions on those that may have positive coefficients, under the first drift, as
   `Doubles`; `free` is 1 where the constant is, 0 where it is left out. */
typedef struct {
    double **sums, *both; /* [drifts, pairs]: of products of the shapes; those of the drift in hand */
    int32_t *one, *other; /* [pairs]: these shapes */
    int32_t *number;      /* [pairs]: which of all pairs each is */
    int64_t *likely;      /* [pairs]: whether they are probable at all */
    int64_t *marked;      /* [pairs]: whether coefficients may be positive besides */
    Run *runs;            /* [ran]: of those that are tried with every row */
    int32_t *in_turn;     /* [turns]: second shapes, as runs have them */
    int64_t ran, turns;
    double *turn_at, *turn_square, *turn_product; /* [turns]: what a look has of these */
    int64_t count, close; /* how many there are, and how many of these are near the best */
    int32_t *which, *near; /* [count]: which they are; [close]: places of those in the list */
    int32_t *first_of, *second_of; /* [count]: their shapes */
    double *constant, *first, *second, *determinant, *free; /* [count] */
    float **left;          /* [drifts, count]: what they leave */
    float *bound;          /* [count] */
} Pairs;

/* Sum up products of shapes, `products` in blocks, with the weights of the points: under all drifts. */
static void product_sums(int64_t points, int64_t pairs, const double *restrict products,
                         const Look *looks, int64_t drifts, const Pairs *found)
{
    for (int64_t p = 0; p < pairs; p += WHOLE)
        for (int64_t l = 0; l < drifts; l++) {
            const double *restrict weights = looks[l].weights;
            Vector both[VECTORS] = {{0}};
            for (int64_t k = 0; k < points; k++) {
                const double *x = products + p * points + k * WHOLE;
                EACH_VECTOR both[v] += *(const Vector *)(x + v * WIDTH) * weights[k];
            }
            put(found->sums[l] + p, both);
        }
}

/* A constant pays by its square over its variance, and is sure to where that is larger. */
#define SURE 80.0

/* Of the product of the squares of two shapes, what is left where these are one at all points. */
#define PARALLEL 1e-10

/* Of fewer than so many pairs it pays to look for the shapes of each. */
enum { SHORT = 4 };

/* Return where a shape is among those in turn; -1 if nowhere. */
static int64_t turn_of(const Pairs *found, int32_t shape)
{
    for (int64_t i = 0; i < found->turns; i++)
        if (found->in_turn[i] == shape)
            return i;
    return -1;
}

/* Divide `pairs` into runs; none goes beyond pair `asked`. In turn are the second shapes of the most pairs
   one after the other, `most` at most, that have the first in common. */
static void divide_into_runs(int64_t pairs, int64_t asked, int64_t most, Pairs *found)
{
    const int32_t *one = found->one, *other = found->other;
    int64_t longest = 0, start = 0;
    for (int64_t p = 0, begin = 0; p < pairs; p++) {
        begin = p && one[p] == one[p - 1] ? begin : p;
        if (p + 1 - begin > longest && p + 1 - begin <= most)
            longest = p + 1 - begin, start = begin;
    }
    for (int64_t i = 0; i < longest; i++)
        found->in_turn[i] = other[start + i];
    found->turns = longest, found->ran = 0;
    for (int64_t p = 0; p < pairs;) {
        int64_t from = turn_of(found, other[p]), count = 1, end = p < asked ? asked : pairs;
        if (from >= 0)
            while (p + count < end && one[p + count] == one[p] && from + count < longest
                   && other[p + count] == found->in_turn[from + count])
                count++;
        Run *last = found->ran ? found->runs + found->ran - 1 : NULL;
        if (count < SHORT && last && last->from < 0 && p != asked)
            last->count += count;
        else
            found->runs[found->ran++] = (Run){p, count, count < SHORT ? -1 : from, one[p]};
        p += count;
    }
}

/* What tells whether coefficients may be positive beside the sums of two shapes. */
typedef struct {
    double noise, total, weight, mean, per_weight, per_freedom;
    int frugal;
} Marks;

/* Tell whether a pair may have positive coefficients, by their signs and without a division. */
INLINE int may_be_positive(const Marks *marks, double at_x, double at_z, double xx, double zz,
                           double x, double z, double both)
{
    const double weight = marks->weight, mean = marks->mean;
    double xz = both - at_x * at_z * weight, most = xx * zz;
    double determinant = larger(most - xz * xz, most * 1e-12);
    double first = x * zz - z * xz, second = z * xx - x * xz;
    double constant = mean * determinant - at_x * first - at_z * second;
    /* Without the constant. */
    double cx = at_z * xz - at_x * zz, cz = at_x * xz - at_z * xx;
    double cc = determinant * marks->per_weight - at_x * cx - at_z * cz;
    int free = (constant > 0) & (first > 0) & (second > 0);
    int forced = (first * cc > constant * cx) & (second * cc > constant * cz);
    double residual = (marks->total * determinant - first * x - second * z) * marks->per_freedom;
    double variance = cc * larger(marks->noise * determinant, residual);
    int worth = (constant > 0) & (!marks->frugal | (constant * constant > SURE * variance));
    /* Where points are missing, a shape may be the same at all that are left. */
    int two = (most - xz * xz > PARALLEL * most) & (xx > ALIKE * at_x * at_x * weight)
              & (zz > ALIKE * at_z * at_z * weight);
    return two & (free | (forced & !worth));
}

/* Mark pairs `begin` to `end`, whatever their shapes. */
static void mark_some(const Marks *marks, const Look *seen, int64_t begin, int64_t end, Pairs *found)
{
    const int32_t *restrict one = found->one, *restrict other = found->other;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    const int64_t *restrict likely = found->likely;
    int64_t *restrict marked = found->marked;
#pragma omp simd
    for (int64_t p = begin; p < end; p++) {
        int may = may_be_positive(marks, at[one[p]], at[other[p]], square[one[p]],
                                  square[other[p]], product[one[p]], product[other[p]], both[p]);
        marked[p] = may & likely[p];
    }
}

/* Mark a run; up to a vector beyond it comes to nothing, since what is there is marked later. */
static void mark_run(const Marks *marks, const Look *seen, const Run *run, Pairs *found)
{
    const double at = seen->at[run->first], square = seen->square[run->first];
    const double product = seen->product[run->first];
    const double *restrict ats = found->turn_at + run->from;
    const double *restrict squares = found->turn_square + run->from;
    const double *restrict products = found->turn_product + run->from;
    const double *restrict both = found->both + run->begin;
    const int64_t *restrict likely = found->likely + run->begin;
    int64_t *restrict marked = found->marked + run->begin;
    for (int64_t i = 0; i < run->count; i += WIDTH)
#pragma omp simd
        for (int64_t j = i; j < i + WIDTH; j++) {
            int may = may_be_positive(marks, at, ats[j], square, squares[j], product, products[j],
                                      both[j]);
            marked[j] = may & likely[j];
        }
}

/* Mark the pairs that may have positive coefficients: those that are tried with every row, or if they are
   `opened`, pairs `begin` to `end`. From pair `asked` on constants may be left out though they are
   positive. */
static void mark_positive(const Row *row, const Look *seen, int opened, int64_t begin, int64_t asked,
                          int64_t end, Pairs *found)
{
    Marks marks = {row->variance, seen->total, seen->weight, seen->mean, 1 / seen->weight,
                   1 / larger(row->used - 3, 1), 0};
    if (opened) {
        const int64_t middle = begin + (asked - begin) / WHOLE * WHOLE;
        mark_some(&marks, seen, begin, middle, found);
        marks.frugal = 1;
        mark_some(&marks, seen, middle, middle + whole(end - middle), found);
        return;
    }
    for (int64_t i = 0; i < found->turns; i++) {
        const int32_t shape = found->in_turn[i];
        found->turn_at[i] = seen->at[shape];
        found->turn_square[i] = seen->square[shape];
        found->turn_product[i] = seen->product[shape];
    }
    for (int64_t r = 0; r < found->ran; r++) {
        const Run *run = found->runs + r;
        marks.frugal = run->begin >= asked;
        if (run->from >= 0)
            mark_run(&marks, seen, run, found);
        else
            mark_some(&marks, seen, run->begin, run->begin + whole(run->count), found);
    }
}

/* List those of pairs `begin` to `end` that are marked, after those that are listed. */
static void list_pairs(int64_t begin, int64_t end, Pairs *found)
{
    const int64_t listed = found->count;
    const int64_t *restrict marked = found->marked;
    int32_t *restrict which = found->which;
    int64_t count = listed;
    /* Without branches, which nobody could foresee. */
    for (int64_t p = begin; p < end; p++) {
        which[count] = (int32_t)p;
        count += marked[p];
    }
    /* Fill the last vector up. */
    const int64_t last = listed + whole(count - listed);
    for (int64_t i = count; i < last; i++)
        which[i] = 0;
    for (int64_t i = listed; i < last; i++)
        found->first_of[i] = found->one[which[i]], found->second_of[i] = found->other[which[i]];
    found->count = count;
}

/* Regress on the pairs that are listed in places `begin` to `end` under one drift, as
   `PairSums.regressions`; if some are `asked`, from pair `until` on constants have to pay, beside
   work that is `shared` or not. */
INLINE void regress_some(const Row *row, const Look *seen, int64_t begin, int64_t end, int asked,
                         int32_t until, int shared, Pairs *found)
{
    const double used = row->used, noise = row->variance, per_freedom = 1 / larger(used - 3, 1);
    const int32_t *restrict one = found->first_of, *restrict other = found->second_of;
    const int32_t *restrict which = found->which;
    const double weight = seen->weight, mean = seen->mean, total = seen->total;
    const double per_weight = 1 / weight;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    double *restrict constants = found->constant, *restrict firsts = found->first;
    double *restrict seconds = found->second, *restrict determinants = found->determinant;
    double *restrict frees = found->free;
    float *restrict left = found->left[0];
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        double at_x = at[one[i]], at_z = at[other[i]], xx = square[one[i]], zz = square[other[i]];
        double x = product[one[i]], z = product[other[i]];
        double xz = both[which[i]] - at_x * at_z * weight, most = xx * zz;
        double determinant = larger(most - xz * xz, most * 1e-12), inverse = 1 / determinant;
        double first = (x * zz - z * xz) * inverse, second = (z * xx - x * xz) * inverse;
        double constant = mean - at_x * first - at_z * second;
        double residual = total - first * x - second * z;
        /* Covariances of the constant with all three coefficients. */
        double cx = (at_z * xz - at_x * zz) * inverse, cz = (at_x * xz - at_z * xx) * inverse;
        double cc = per_weight - at_x * cx - at_z * cz;
        /* As a constant is forced to zero, others follow by their covariance. */
        int free = constant > 0;
        if (asked) {
            double level = larger(first, 0) + larger(second, 0) + larger(constant, 0) + LEAST_SUM;
            int worth = pays(constant, cc, residual * per_freedom, level, noise, shared);
            free &= (which[i] < until) | worth;
        }
        double forced = free ? 0 : constant, pull = forced / cc;
        double normal = weight * determinant;
        constant = free ? constant : 0, first -= pull * cx, second -= pull * cz;
        constants[i] = constant, firsts[i] = first, seconds[i] = second;
        /* Where one has to be zero, the pair is a hypothesis with one shape, which is there; a point
           has to be left that tells whether it fits. */
        int there = positive_pair(constant, first, second) & (used > 2 + free);
        left[i] = there ? (float)larger(residual + forced * pull, 0) : INFINITY;
        determinants[i] = free ? normal : normal * cc;
        frees[i] = free ? 1 : 0;
    }
}

/* Regress on the pairs that are listed in place `begin` and after; from pair `asked` on constants have
   to pay, beside work that is `shared` or not. */
static void regress(const Row *row, const Look *seen, int64_t begin, int64_t asked, int shared,
                    Pairs *found)
{
    const int32_t until = (int32_t)asked;
    int64_t before = 0;
    for (int64_t i = begin; i < found->count; i++)
        before += found->which[i] < until;
    const int64_t middle = begin + before / WHOLE * WHOLE;
    const int64_t end = middle + whole(found->count - middle);
    regress_some(row, seen, begin, middle, 0, until, shared, found);
    regress_some(row, seen, middle, end, 1, until, shared, found);
}

/* Write what pairs that are listed in place `begin` and after leave under another drift, as
   `PairSums.residual`. From pair `asked` on constants have to pay. */
static void leave(const Look *seen, int64_t begin, int64_t asked, const Pairs *found,
                  float *restrict left)
{
    const int32_t *restrict one = found->first_of, *restrict other = found->second_of;
    const int32_t *restrict which = found->which, until = (int32_t)asked;
    const int64_t end = begin + whole(found->count - begin);
    const double weight = seen->weight, mean = seen->mean, total = seen->total;
    const double per_weight = 1 / weight;
    const double *restrict at = seen->at, *restrict square = seen->square;
    const double *restrict product = seen->product, *restrict both = found->both;
    const double *restrict free = found->free;
    const float *restrict first_left = found->left[0];
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        double at_x = at[one[i]], at_z = at[other[i]], xx = square[one[i]], zz = square[other[i]];
        double x = product[one[i]], z = product[other[i]];
        double xz = both[which[i]] - at_x * at_z * weight, most = xx * zz;
        double inverse = 1 / larger(most - xz * xz, most * 1e-12);
        double first = (x * zz - z * xz) * inverse, second = (z * xx - x * xz) * inverse;
        double constant = mean - at_x * first - at_z * second;
        double forced = (free[i] != 0) | (which[i] < until) ? smaller(constant, 0) : constant;
        double spread = (at_x * (at_x * zz - 2 * at_z * xz) + at_z * at_z * xx) * inverse;
        double whole = total - first * x - second * z + forced * forced / (spread + per_weight);
        left[i] = first_left[i] < INFINITY ? (float)larger(whole, 0) : INFINITY;
    }
}

/* Bound the evidence of the pairs that are listed in place `begin` and after, prior included; return
   the best. From pair `growing` on they are beside a decreasing shape. */
static float bound_pairs(const Row *row, const float *restrict prior, int64_t drifts, int64_t begin,
                         int64_t growing, Pairs *found)
{
    const int32_t *restrict number = found->number, *restrict which = found->which;
    const double *restrict constant = found->constant, *restrict first = found->first;
    const double *restrict second = found->second, *restrict determinant = found->determinant;
    const double *restrict free = found->free;
    const float dof = (float)row->dof, noise = (float)row->variance, used = (float)row->used;
    const float per_two = 1 / larger_single(used - 2, 1), per_three = 1 / larger_single(used - 3, 1);
    const float two_pi = (float)LOG_2PI, two = (float)LOG_2;
    const float folds = (float)PAIR_FOLDS;
    float *restrict bound = found->bound;
    const int64_t end = begin + whole(found->count - begin);
    for (int64_t i = begin; i < end; i++)
        bound[i] = found->left[0][i];
    for (int64_t l = 1; l < drifts; l++) {
        const float *restrict left = found->left[l];
#pragma omp simd
        for (int64_t i = begin; i < end; i++)
            bound[i] = smaller_single(left[i], bound[i]);
    }
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        int32_t its = number[which[i]];
        double whole = first[i] + second[i] + constant[i] + LEAST_SUM;
        float kept = (float)free[i], level = (float)whole, share = (float)(second[i] / whole);
        float volume = -(2 + kept) * log_single(level) + two_pi * (1 + 0.5f * kept) + two
                       - 0.5f * (float)log_near(determinant[i]) + prior[its];
        float room = room_single(share, 0, folds);
        room *= kept != 0 ? room_single((float)(constant[i] / whole), 0, folds) : 1;
        volume -= its >= growing ? log_single(room) : 0;
        float per_freedom = kept != 0 ? per_three : per_two;
        float best = volume + profile(bound[i], dof, noise, used - 2 - kept, per_freedom);
        bound[i] = bound[i] < INFINITY ? best : -INFINITY;
    }
    return most_of(bound + begin, found->count - begin);
}

#endif
