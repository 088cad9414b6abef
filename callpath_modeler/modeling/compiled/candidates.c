/* `candidates` in mixture/candidates.py: the hypotheses worth a look, with their evidence. */
#include <float.h>
#include <stdlib.h>

#include "evidence.h"
#include "rows.h"

/* A relative misfit from which on logarithms say something else; and as good as zero, against the
   value: `_MUCH` and `_NOTHING` in mixture/misfit.py. */
static const double MUCH = 0.01, NOTHING = 1e-3;

enum { CONSTANT, POSITIVE, OFFSET, BARE, PAIR, FAMILIES };

/* Rows, what their regressions are made of, and the shapes. */
typedef struct {
    int64_t count, points, drifts, shapes; /* n, K, L, S */
    const double *values, *variance, *dof; /* [n, K], [n], [n] */
    const double *typical;                 /* [n]: roughly the variance of a point */
    const double *table;                   /* [S + 1, K]; the last shape is none */
    const double *least, *most, *falling;  /* [S] */
    const int64_t *first_of, *second_of;   /* [P]: the shapes of pairs */
    double *used, *unit;                   /* [n], [n, K] */
    double *weights;                       /* [n, L, K] */
    double *weight, *mean, *total;         /* [n, L] */
    double *relative;                      /* [n, L]: what misses by the size of values leave */
} Rows;

/* What is found of M candidates, ordered by row. */
typedef struct {
    int64_t count;
    int64_t *row, *chosen;                   /* [M] */
    double *log_evidence;                    /* [M, D] */
    double *coefficients, *covariance;       /* [M, L, 3], [M, L, 6] */
    double *residual, *evidence, *size;      /* [M, L] */
    int64_t *start;                          /* [n + 1]: where rows begin */
    int64_t *family, ends[FAMILIES];         /* [M] family by family; where each ends */
} Results;

/* Deviations that are looked at together, and all of them: [D] and more to a multiple of that. */
enum { TOGETHER = 8 };
typedef struct {
    int64_t count, padded;
    double *square;                    /* [D] */
    int64_t *drift;                    /* [D] */
    double *log_variance, *precision;  /* [D] of a row: of a point, and that over its freedom */
    double *found;                     /* [D] of a candidate */
} Cells;

/* LANES candidates; the last one again where there are fewer. */
typedef struct {
    int size;
    int64_t candidate[LANES], row[LANES], first[LANES], second[LANES];
    double *values, *unit, *first_at, *second_at; /* [K, LANES]: at points, of shapes there */
    double *weights, *x, *z; /* [K, LANES]: of points; shapes about their means */
} Block;

/* Weigh the points of all rows and sum them up; `products` [K] is room to work in. */
static void weigh(Rows *rows, const double *weight, const double *fitted, const double *precision,
                  const double *away, double *products)
{
    int64_t points = rows->points;
    for (int64_t row = 0; row < rows->count; row++) {
        const double *values = rows->values + row * points, *of_points = weight + row * points;
        double *unit = rows->unit + row * points;
        error_unit(points, values, fitted + row * points, unit);
        rows->used[row] = used_of(points, of_points);
        for (int64_t drift = 0; drift < rows->drifts; drift++) {
            int64_t place = row * rows->drifts + drift;
            double *weights = rows->weights + place * points, relative = 0;
            relative_weights(points, of_points, unit, precision + drift * points,
                             away + drift * points, weights);
            RowSums sums = sums_of_row(points, values, weights, products);
            for (int64_t k = 0; k < points; k++)
                relative += weights[k] * (unit[k] * unit[k]);
            rows->weight[place] = sums.weight;
            rows->mean[place] = sums.mean;
            rows->total[place] = sums.total;
            rows->relative[place] = relative;
        }
    }
}

/* Order candidates, [M], by row; as they come within it. */
static void put_in_order(const int64_t *row, const int64_t *chosen, int64_t rows, Results *out)
{
    int64_t *start = out->start;
    for (int64_t i = 0; i <= rows; i++)
        start[i] = 0;
    for (int64_t i = 0; i < out->count; i++)
        start[row[i]]++;
    for (int64_t i = 1; i <= rows; i++)
        start[i] += start[i - 1];
    for (int64_t i = out->count - 1; i >= 0; i--) {
        int64_t place = --start[row[i]];
        out->row[place] = row[i];
        out->chosen[place] = chosen[i];
    }
}

static int family_of(int64_t chosen, int64_t shapes)
{
    return (chosen > 0) + (chosen > shapes) + (chosen > 2 * shapes) + (chosen > 3 * shapes);
}

/* List candidates family by family. */
static void list_families(int64_t shapes, Results *out)
{
    int64_t *ends = out->ends, next[FAMILIES] = {0};
    for (int64_t i = 0; i < out->count; i++)
        next[family_of(out->chosen[i], shapes)]++;
    for (int family = 0; family < FAMILIES; family++) {
        ends[family] = next[family] + (family ? ends[family - 1] : 0);
        next[family] = ends[family] - next[family];
    }
    for (int64_t i = 0; i < out->count; i++)
        out->family[next[family_of(out->chosen[i], shapes)]++] = i;
}

/* Look up what a block needs whatever the drift. */
static void look_up(const Rows *rows, Block *block)
{
    int64_t points = rows->points;
    for (int64_t k = 0; k < points; k++)
        EACH_LANE {
            int64_t place = k * LANES + c;
            block->values[place] = rows->values[block->row[c] * points + k];
            block->unit[place] = rows->unit[block->row[c] * points + k];
            block->first_at[place] = rows->table[block->first[c] * points + k];
            block->second_at[place] = rows->table[block->second[c] * points + k];
            block->x[place] = block->z[place] = 0;
        }
}

/* Fill a block from a list of candidates. */
static void fill(const Rows *rows, const Results *out, const int64_t *list, int64_t size,
                 Block *block)
{
    int64_t shapes = rows->shapes;
    block->size = size < LANES ? (int)size : LANES;
    for (int c = 0; c < LANES; c++) {
        int64_t candidate = list[c < block->size ? c : block->size - 1];
        int64_t chosen = out->chosen[candidate], pair = chosen - 1 - 3 * shapes;
        block->candidate[c] = candidate;
        block->row[c] = out->row[candidate];
        block->first[c] = pair >= 0 ? rows->first_of[pair]
                          : chosen  ? (chosen - 1) % shapes
                                    : shapes;
        block->second[c] = pair >= 0 ? rows->second_of[pair] : shapes;
    }
    look_up(rows, block);
}

/* `_Sums.of`: sums of a block with one shape each, `raw`, which is `away` from its mean. */
static void sum_shape(const Block *block, int64_t points, const double *raw, const double *weight,
                      const double *mean, double *away, double *at, double *square,
                      double *product)
{
    const double *weights = block->weights, *values = block->values;
    Lanes level = {0}, with_values = {0}, scatter = {0};
    for (int64_t k = 0; k < points * LANES; k += LANES)
        EACH_LANE level[c] += weights[k + c] * raw[k + c];
    EACH_LANE level[c] /= weight[c];
    for (int64_t k = 0; k < points * LANES; k += LANES)
        EACH_LANE {
            double here = raw[k + c] - level[c], weighted = weights[k + c] * here;
            scatter[c] += weighted * here;
            with_values[c] += weighted * (values[k + c] - mean[c]);
            away[k + c] = here;
        }
    EACH_LANE {
        at[c] = level[c];
        square[c] = larger(scatter[c], TINY);
        product[c] = with_values[c];
    }
}

/* What a block of models ``level + first x + second z`` says of point `k`. */
INLINE double model_at(const Block *block, int64_t k, int c, const double *level,
                       const double *first, const double *second)
{
    int64_t place = k * LANES + c;
    return level[c] + first[c] * block->x[place] + second[c] * block->z[place];
}

/* `_sum_up_little`, for all: what models leave. */
static void sum_up_left(const Block *block, int64_t points, const double *level,
                        const double *first, const double *second, double *residual)
{
    Lanes sum = {0};
    for (int64_t k = 0; k < points; k++)
        EACH_LANE {
            double left = block->values[k * LANES + c]
                          - model_at(block, k, c, level, first, second);
            sum[c] += block->weights[k * LANES + c] * left * left;
        }
    EACH_LANE residual[c] = sum[c];
}

/* `_misfits`: what much is left of is measured in logarithms, as in mixture/misfit.py. */
static void correct_misfit(const Rows *rows, const int64_t *place, const Block *block, Found *found)
{
    Lanes plain = {0}, in_logarithms = {0}, much;
    int any = 0;
#pragma omp simd reduction(| : any)
    for (int c = 0; c < LANES; c++) {
        much[c] = MUCH * MUCH * rows->relative[place[c]];
        any |= found->residual[c] > much[c];
    }
    if (!any)
        return;
    for (int64_t k = 0; k < rows->points; k++)
        EACH_LANE {
            double value = block->values[k * LANES + c], unit = block->unit[k * LANES + c];
            double model = model_at(block, k, c, found->level, found->first, found->second);
            double square = (model - value) * (model - value);
            /* Where bounds let a model touch zero, rounding decides on which side of it. */
            double ratio = larger(model, NOTHING * value) / value;
            double relative = log_of(ratio) * unit;
            relative *= relative;
            /* Of a value of zero there is no logarithm. */
            relative = ratio <= DBL_MAX && relative <= DBL_MAX ? relative : square;
            plain[c] += square * block->weights[k * LANES + c];
            in_logarithms[c] += relative * block->weights[k * LANES + c];
        }
    EACH_LANE {
        double factor = in_logarithms[c] / larger(plain[c], DBL_MIN);
        found->residual[c] *= found->residual[c] > much[c] ? factor : 1;
    }
}

/* `_constant_part`, `_single_parts`: a block with at most one shape each, under one drift. */
static void regress_one(const Rows *rows, const int64_t *place, Block *block, int family,
                        Found *found)
{
    Slopes sums;
    Lanes variance, product;
    EACH_LANE {
        sums.weight[c] = rows->weight[place[c]];
        sums.mean[c] = rows->mean[place[c]];
        variance[c] = rows->typical[block->row[c]];
        found->size[c] = family == POSITIVE || family == OFFSET ? 2 : 1;
    }
    if (family == CONSTANT) {
        constant_evidence(&sums, found);
        EACH_LANE {
            found->residual[c] = rows->total[place[c]];
            found->constant[c] = found->level[c] = sums.mean[c];
            found->cc[c] = 1 / sums.weight[c];
        }
        return;
    }
    sum_shape(block, rows->points, block->first_at, sums.weight, sums.mean, block->x, sums.at,
              sums.square, product);
    EACH_LANE sums.slope[c] = product[c] / sums.square[c];
    if (family == BARE) {
        bare_evidence(&sums, found);
        EACH_LANE found->level[c] = found->first[c] * sums.at[c];
        sum_up_left(block, rows->points, found->level, found->first, found->second,
                    found->residual);
        return;
    }
    /* Of the regression, whose coefficients may be bounded afterwards. */
    sum_up_left(block, rows->points, sums.mean, sums.slope, found->second, found->residual);
    if (family == POSITIVE)
        positive_evidence(&sums, variance, found);
    else {
        Lanes least, most, falling;
        EACH_LANE {
            least[c] = rows->least[block->first[c]];
            most[c] = rows->most[block->first[c]];
            falling[c] = rows->falling[block->first[c]];
        }
        offset_evidence(&sums, least, most, falling, variance, found);
    }
    slope_covariance(&sums, found);
    EACH_LANE {
        found->constant[c] = sums.mean[c] - found->first[c] * sums.at[c];
        found->level[c] = sums.mean[c];
    }
}

/* `_pair_part`: a block of pairs, under one drift. */
static void regress_two(const Rows *rows, const int64_t *place, Block *block, Found *found)
{
    PairSums sums;
    Lanes variance, normal;
    EACH_LANE {
        sums.weight[c] = rows->weight[place[c]];
        sums.mean[c] = rows->mean[place[c]];
        variance[c] = rows->typical[block->row[c]];
        sums.xz[c] = 0;
    }
    sum_shape(block, rows->points, block->first_at, sums.weight, sums.mean, block->x, sums.at_x,
              sums.xx, sums.x);
    sum_shape(block, rows->points, block->second_at, sums.weight, sums.mean, block->z, sums.at_z,
              sums.zz, sums.z);
    for (int64_t k = 0; k < rows->points * LANES; k += LANES)
        EACH_LANE sums.xz[c] += block->weights[k + c] * block->x[k + c] * block->z[k + c];
    regress_pairs(&sums, found, normal);
    EACH_LANE found->level[c] = found->constant[c] + found->first[c] * sums.at_x[c]
                                + found->second[c] * sums.at_z[c];
    sum_up_left(block, rows->points, found->level, found->first, found->second, found->residual);
    pair_evidence(normal, variance, found);
}

static void keep(const Block *block, int64_t drift, int64_t drifts, const Found *found,
                 Results *out)
{
    for (int c = 0; c < block->size; c++) {
        int64_t place = block->candidate[c] * drifts + drift;
        double *numbers = out->coefficients + 3 * place, *elements = out->covariance + 6 * place;
        out->residual[place] = found->residual[c];
        out->evidence[place] = found->evidence[c];
        out->size[place] = found->size[c];
        numbers[0] = found->constant[c];
        numbers[1] = found->first[c];
        numbers[2] = found->second[c];
        elements[0] = found->cc[c];
        elements[1] = found->cx[c];
        elements[2] = found->cz[c];
        elements[3] = found->xx[c];
        elements[4] = found->xz[c];
        elements[5] = found->zz[c];
    }
}

/* Regress all candidates, block by block, under every drift. */
static void regress(const Rows *rows, const double *of_first, Block *block, Results *out)
{
    int64_t points = rows->points, begin = 0;
    for (int family = 0; family < FAMILIES; begin = out->ends[family], family++)
        for (int64_t i = begin; i < out->ends[family]; i += LANES) {
            fill(rows, out, out->family + i, out->ends[family] - i, block);
            for (int64_t drift = 0; drift < rows->drifts; drift++) {
                int64_t place[LANES];
                Found found = {0};
                EACH_LANE place[c] = block->row[c] * rows->drifts + drift;
                for (int64_t k = 0; k < points; k++)
                    EACH_LANE block->weights[k * LANES + c] = rows->weights[place[c] * points + k];
                if (family == PAIR)
                    regress_two(rows, place, block, &found);
                else
                    regress_one(rows, place, block, family, &found);
                correct_misfit(rows, place, block, &found);
                /* A point of much variance is improbable wherever it is. */
                EACH_LANE found.evidence[c] -= of_first[drift];
                keep(block, drift, rows->drifts, &found, out);
            }
        }
}

/* `likelihood` in mixture/evidence.py, of one candidate in every cell; returns the largest. */
static double explain(const Rows *rows, const Cells *cells, int64_t row, int64_t candidate,
                      Results *out)
{
    int64_t place = candidate * rows->drifts;
    const double *residual = out->residual + place, *evidence = out->evidence + place;
    const double *size = out->size + place;
    double used = rows->used[row], dof = rows->dof[row], top = -INFINITY;
    double *log_evidence = out->log_evidence + candidate * cells->count;
    /* Without a point to spare only a constant or a slope can be told. */
    double told = used > size[0] - (size[0] == 1) ? 0 : INFINITY;
    for (int64_t begin = 0; begin < cells->padded; begin += TOGETHER) {
        const int64_t *drift = cells->drift + begin;
        const double *log_variance = cells->log_variance + begin;
        const double *precision = cells->precision + begin;
        double *found = cells->found + begin;
#pragma omp simd
        for (int d = 0; d < TOGETHER; d++) {
            double freedom = larger(used - size[drift[d]], 0);
            double tail = log_of(1 + residual[drift[d]] * precision[d]);
            found[d] = evidence[drift[d]] - told
                       - 0.5 * (freedom * log_variance[d] + (dof + freedom) * tail);
        }
    }
#pragma omp simd reduction(max : top)
    for (int64_t d = 0; d < cells->count; d++) {
        log_evidence[d] = cells->found[d];
        top = larger(cells->found[d], top);
    }
    return top;
}

/* Write the evidence of all candidates in every cell, against the best of their row. */
static void explain_rows(const Rows *rows, const Cells *cells, Results *out)
{
    for (int64_t row = 0; row < rows->count; row++) {
        double variance = rows->variance[row], dof = rows->dof[row], top = -INFINITY;
        for (int64_t begin = 0; begin < cells->padded; begin += TOGETHER)
#pragma omp simd
            for (int64_t d = begin; d < begin + TOGETHER; d++) {
                double whole = variance + cells->square[d];
                cells->log_variance[d] = log_of(whole);
                cells->precision[d] = 1 / (dof * whole);
            }
        for (int64_t i = out->start[row]; i < out->start[row + 1]; i++)
            top = larger(explain(rows, cells, row, i, out), top);
        double *found = out->log_evidence + out->start[row] * cells->count;
        int64_t size = (out->start[row + 1] - out->start[row]) * cells->count;
#pragma omp simd
        for (int64_t i = 0; i < size; i++)
            found[i] -= top;
    }
}

/* Take `count` numbers of 8 bytes from what is at `base`, if anything is there yet. */
static void *take(char *base, int64_t *used, int64_t count)
{
    void *found = base ? base + *used : NULL;
    *used += (count + 7) / 8 * 64;
    return found;
}

/* Divide up memory at `base`; returns how much is needed. */
static int64_t divide(char *base, Rows *rows, Cells *cells, Block *block, Results *out)
{
    int64_t used = 0, points = rows->points, seen = rows->count * rows->drifts;
    int64_t found = out->count * rows->drifts;
    rows->used = take(base, &used, rows->count);
    rows->unit = take(base, &used, rows->count * points);
    rows->weights = take(base, &used, seen * points);
    rows->weight = take(base, &used, seen);
    rows->mean = take(base, &used, seen);
    rows->total = take(base, &used, seen);
    rows->relative = take(base, &used, seen);
    cells->square = take(base, &used, cells->padded);
    cells->drift = take(base, &used, cells->padded);
    cells->log_variance = take(base, &used, cells->padded);
    cells->precision = take(base, &used, cells->padded);
    cells->found = take(base, &used, cells->padded);
    block->values = take(base, &used, points * LANES);
    block->unit = take(base, &used, points * LANES);
    block->first_at = take(base, &used, points * LANES);
    block->second_at = take(base, &used, points * LANES);
    block->weights = take(base, &used, points * LANES);
    block->x = take(base, &used, points * LANES);
    block->z = take(base, &used, points * LANES);
    out->residual = take(base, &used, found);
    out->evidence = take(base, &used, found);
    out->size = take(base, &used, found);
    out->start = take(base, &used, rows->count + 1);
    out->family = take(base, &used, out->count);
    return used;
}

/* All arguments are as of the types above; `of_first` [L] is half the logarithm of what makes the
   first point apart. Candidates come as `row_in` and `chosen_in`, in any order. */
int64_t candidates(int64_t count, int64_t points, int64_t drifts, int64_t shapes, int64_t deviations,
                   int64_t size, const double *values, const double *weight, const double *variance,
                   const double *dof, const double *typical, const double *fitted,
                   const double *table, const double *least, const double *most,
                   const double *falling, const int64_t *first_of, const int64_t *second_of,
                   const double *precision, const double *away, const double *of_first,
                   const double *square, const int64_t *drift, const int64_t *row_in, const int64_t *chosen_in,
                   int64_t *row, int64_t *chosen, double *log_evidence, double *coefficients,
                   double *covariance)
{
    Rows rows = {.count = count, .points = points, .drifts = drifts, .shapes = shapes,
                 .values = values, .variance = variance, .dof = dof, .typical = typical,
                 .table = table, .least = least, .most = most, .falling = falling,
                 .first_of = first_of, .second_of = second_of};
    Cells cells = {.count = deviations,
                   .padded = (deviations + TOGETHER - 1) / TOGETHER * TOGETHER};
    Results out = {.count = size, .row = row, .chosen = chosen, .log_evidence = log_evidence,
                   .coefficients = coefficients, .covariance = covariance};
    Block block;
    char *memory = aligned_alloc(64, (size_t)divide(NULL, &rows, &cells, &block, &out));
    if (!memory)
        return -1;
    divide(memory, &rows, &cells, &block, &out);
    for (int64_t d = 0; d < cells.padded; d++) {
        cells.square[d] = square[d < deviations ? d : 0];
        cells.drift[d] = drift[d < deviations ? d : 0];
    }
    weigh(&rows, weight, fitted, precision, away, block.weights);
    put_in_order(row_in, chosen_in, count, &out);
    list_families(shapes, &out);
    regress(&rows, of_first, &block, &out);
    explain_rows(&rows, &cells, &out);
    free(memory);
    return 0;
}
