/* `candidates` in mixture/candidates.py: the screened hypotheses with their evidence. */
#include "memory.h"
#include "regressions.h"

/* Results for M candidates, ordered by row. */
typedef struct {
    int64_t count;
    int64_t *row, *chosen;                   /* [M] */
    double *log_evidence;                    /* [M, D] */
    double *coefficients, *covariance;       /* [M, L, 3], [M, L, 6] */
    double *residual, *evidence, *size;      /* [M, L] */
    int64_t *start;                          /* [n + 1]: where rows begin */
    int64_t *family, ends[FAMILIES];         /* [M] by family; end of each */
} Results;

/* Deviations are evaluated TOGETHER at a time: arrays of [D] are filled up to a multiple of it.
   There are at most as many drifts. */
enum { TOGETHER = 8 };
typedef double Numbers __attribute__((vector_size(8 * TOGETHER), aligned(8)));
typedef int64_t Places __attribute__((vector_size(8 * TOGETHER), aligned(8)));
#if defined(__clang__)
#define PICKED(numbers, places) __builtin_shufflevector(numbers, places)
#else
#define PICKED(numbers, places) __builtin_shuffle(numbers, places)
#endif
typedef struct {
    int64_t count, padded;
    double *square;                    /* [D] */
    int64_t *drift;                    /* [D] */
    double *log_variance, *precision;  /* [D] of a row: variance of a point; 1 / (it * dof) */
    double *found;                     /* [D] of a candidate */
} Cells;

/* Order candidates, [M], by row; their order within a row stays. */
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

/* Regress a block under one drift; `of_first` is as in `candidates`. */
static void regress_block(const Rows *rows, int64_t drift, double of_first, int family,
                          Block *block, Found *found)
{
    int64_t place[LANES], points = rows->points;
    EACH_LANE place[c] = block->row[c] * rows->drifts + drift;
    for (int64_t k = 0; k < points; k++)
        EACH_LANE block->weights[k * LANES + c] = rows->weights[place[c] * points + k];
    if (family == PAIR)
        regress_two(rows, place, block, found);
    else
        regress_one(rows, place, block, family, found);
    correct_misfit(rows, place, block, found);
    /* The probability density of a point falls with its variance, wherever the point is. */
    EACH_LANE found->evidence[c] -= of_first;
    /* If p = 1 has no weight, any pair fits the other two points. */
    if (family == PAIR && of_first > 0)
        EACH_LANE found->evidence[c] -= rows->used[block->row[c]] > 3 ? 0 : INFINITY;
}

/* Regress all candidates under every drift, block by block of one family. */
static void regress(const Rows *rows, const double *of_first, Block *block, Results *out)
{
    int64_t begin = 0;
    for (int family = 0; family < FAMILIES; begin = out->ends[family], family++)
        for (int64_t i = begin; i < out->ends[family]; i += LANES) {
            fill(rows, out, out->family + i, out->ends[family] - i, block);
            for (int64_t drift = 0; drift < rows->drifts; drift++) {
                Found found = {0};
                regress_block(rows, drift, of_first[drift], family, block, &found);
                keep(block, drift, rows->drifts, &found, out);
            }
        }
}

/* `likelihood` in mixture/regressions.py, for one candidate in every cell; return the largest one. */
static double explain(const Rows *rows, const Cells *cells, int64_t row, int64_t candidate,
                      Results *out)
{
    const int64_t place = candidate * rows->drifts;
    const double used = rows->used[row], dof = rows->dof[row], *size = out->size + place;
    double top = -INFINITY, *log_evidence = out->log_evidence + candidate * cells->count;
    /* A law needs one point more than coefficients, except one coefficient on one point. */
    const double against = used > size[0] - (size[0] == 1) ? 0 : INFINITY;
    /* One number for each drift; entries beyond the last drift are not used. */
    const Numbers residuals = *(const Numbers *)(out->residual + place);
    const Numbers evidences = *(const Numbers *)(out->evidence + place) - against;
    const Numbers freedoms = used - *(const Numbers *)size;
    for (int64_t begin = 0; begin < cells->padded; begin += TOGETHER) {
        const Places drift = *(const Places *)(cells->drift + begin);
        const Numbers residual = PICKED(residuals, drift);
        const Numbers evidence = PICKED(evidences, drift);
        const Numbers spare = PICKED(freedoms, drift);
        const double *log_variance = cells->log_variance + begin;
        const double *precision = cells->precision + begin;
        double *found = cells->found + begin;
#pragma omp simd
        for (int d = 0; d < TOGETHER; d++) {
            double freedom = larger(spare[d], 0);
            double tail = log_of(1 + residual[d] * precision[d]);
            found[d] = evidence[d] - 0.5 * (freedom * log_variance[d] + (dof + freedom) * tail);
        }
    }
#pragma omp simd reduction(max : top)
    for (int64_t d = 0; d < cells->count; d++) {
        log_evidence[d] = cells->found[d];
        top = larger(cells->found[d], top);
    }
    return top;
}

/* Write the evidence of all candidates in every cell, relative to the best one of their row unless
   it is `absolute`. */
static void explain_rows(const Rows *rows, const Cells *cells, int64_t absolute, Results *out)
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
        if (absolute)
            continue;
        double *found = out->log_evidence + out->start[row] * cells->count;
        int64_t size = (out->start[row + 1] - out->start[row]) * cells->count;
#pragma omp simd
        for (int64_t i = 0; i < size; i++)
            found[i] -= top;
    }
}

/* Take `count` numbers of 8 bytes from the memory at `base`, unless that is NULL. */
static void *take(char *base, int64_t *used, int64_t count)
{
    void *found = base ? base + *used : NULL;
    *used += 8 * lines(count);
    return found;
}

/* Divide the memory at `base`; return how much is needed. */
static int64_t divide(char *base, Rows *rows, Cells *cells, Block *block, Results *out)
{
    int64_t used = 0, points = rows->points, seen = rows->count * rows->drifts;
    int64_t found = out->count * rows->drifts + TOGETHER;
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

/* Arguments are as in the types above. `of_first` [L] is half the logarithm of the variance that
   separates the first point. Candidates come as `row_in` and `chosen_in`, in any order. */
int64_t candidates(int64_t count, int64_t points, int64_t drifts, int64_t shapes,
                   int64_t deviations, int64_t size, int64_t frugal, int64_t absolute,
                   const double *values, const double *weight, const double *variance,
                   const double *dof, const double *floor, const double *typical,
                   const double *fitted,
                   const double *table, const double *least, const double *most,
                   const double *falling, const int64_t *first_of, const int64_t *second_of,
                   const double *precision, const double *away, const double *of_first,
                   const double *square, const int64_t *drift, const int64_t *row_in,
                   const int64_t *chosen_in, int64_t *row, int64_t *chosen, double *log_evidence,
                   double *coefficients, double *covariance)
{
    Rows rows = {.count = count, .points = points, .drifts = drifts, .shapes = shapes,
                 .frugal = frugal != 0,
                 .values = values, .variance = variance, .dof = dof, .typical = typical,
                 .table = table, .least = least, .most = most, .falling = falling,
                 .first_of = first_of, .second_of = second_of};
    Cells cells = {.count = deviations,
                   .padded = (deviations + TOGETHER - 1) / TOGETHER * TOGETHER};
    Results out = {.count = size, .row = row, .chosen = chosen, .log_evidence = log_evidence,
                   .coefficients = coefficients, .covariance = covariance};
    Block block;
    char *memory = new_lines(divide(NULL, &rows, &cells, &block, &out) / 8);
    if (!memory)
        return -1;
    divide(memory, &rows, &cells, &block, &out);
    for (int64_t d = 0; d < cells.padded; d++) {
        cells.square[d] = square[d < deviations ? d : 0];
        cells.drift[d] = drift[d < deviations ? d : 0];
    }
    weigh(&rows, weight, floor, fitted, precision, away, block.weights);
    put_in_order(row_in, chosen_in, count, &out);
    list_families(shapes, &out);
    regress(&rows, of_first, &block, &out);
    explain_rows(&rows, &cells, absolute, &out);
    free(memory);
    return 0;
}
