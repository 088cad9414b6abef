/* Residuals of models at the points, and the status of each row: repeats `_write_quality` and
   `_status` of `modeling/mixture/row_models.py`. */
#include "columns.h"
#include "lanes.h"
#include "memory.h"
#include "rows.h"

static const double LEAST_LEFT = 1e-6;

/* The regression of one row in each lane, [K][LANES]: relative values, inverse values, columns of
   the design, and leverages of the points. */
typedef struct {
    int64_t points;
    double *relative, *per_value, *design[NUMBERS], *pull;
} Regression;

static int allocate(Regression *of, int64_t points)
{
    size_t each = (size_t)points * LANES;
    *of = (Regression){.points = points};
    of->relative = new_lines((int64_t)((3 + NUMBERS) * each));
    if (!of->relative)
        return 0;
    of->per_value = of->relative + each;
    of->pull = of->per_value + each;
    for (int k = 0; k < NUMBERS; k++)
        of->design[k] = of->pull + (size_t)(1 + k) * each;
    return 1;
}

/* Put rows into lanes. Errors are relative; a point without a value has none. */
static void fill(Regression *of, const int64_t *rows, const double *values, const double *weight,
                 const double *floor, const double *table, const int64_t *codes)
{
    for (int lane = 0; lane < LANES; lane++) {
        const double *its = values + rows[lane] * of->points, *there = weight + (its - values);
        double least = floor[rows[lane]];
        for (int64_t k = 0; k < of->points; k++) {
            int64_t to = k * LANES + lane;
            double per_value = there[k] > 0 ? 1 / larger(its[k], least) : 0;
            of->per_value[to] = of->design[0][to] = per_value;
            of->relative[to] = per_value * its[k];
            for (int64_t term = 0; term < TERMS; term++) {
                int64_t code = codes[term * LANES + lane];
                of->design[1 + term][to] = code < 0 ? 0 : per_value * table[code * of->points + k];
            }
        }
    }
}

/* The sum over the points of the products of two columns. */
INLINE void product(const Regression *of, const double *one, const double *other, double *sum)
{
    for (int lane = 0; lane < LANES; lane++)
        sum[lane] = 0;
    for (int64_t k = 0; k < of->points; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            sum[lane] += one[k * LANES + lane] * other[k * LANES + lane];
}

/* `_leverage`, by the Gram-Schmidt process on the columns with nonzero `numbers`, which become
   the basis. */
static void find_pull(Regression *of, const double *numbers)
{
    for (int64_t item = 0; item < of->points * LANES; item++)
        of->pull[item] = 0;
    for (int column = 0; column < NUMBERS; column++) {
        double size[LANES], square[LANES], along[LANES], *left = of->design[column];
        product(of, left, left, size);
        for (int other = 0; other < column; other++) {
            product(of, of->design[other], left, along);
            for (int64_t k = 0; k < of->points; k++)
#pragma omp simd
                for (int lane = 0; lane < LANES; lane++)
                    left[k * LANES + lane] -= of->design[other][k * LANES + lane] * along[lane];
        }
        product(of, left, left, square);
        for (int64_t k = 0; k < of->points; k++)
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++) {
                /* A rest that is only rounding has no direction. */
                int tells = (square[lane] > OUTCOME_PARALLEL * size[lane])
                            & (numbers[column * LANES + lane] != 0);
                double here = tells ? left[k * LANES + lane] / sqrt(square[lane]) : 0;
                left[k * LANES + lane] = here;
                of->pull[k * LANES + lane] += here * here;
            }
    }
}

/* Sums of squares of the residuals of the models, `rss`, of those of a mean, `total`, and of the
   leave-one-out residuals; `design` is overwritten. */
static void leave(Regression *of, const double *numbers, double *rss, double *total,
                  double *left_out)
{
    double mean[LANES], once[LANES] = {0}, twice[LANES];
    product(of, of->per_value, of->per_value, twice);
    for (int64_t k = 0; k < of->points; k++)
        for (int lane = 0; lane < LANES; lane++)
            once[lane] += of->per_value[k * LANES + lane];
    for (int lane = 0; lane < LANES; lane++)
        mean[lane] = once[lane] / twice[lane];
    for (int64_t k = 0; k < of->points; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t item = k * LANES + lane;
            double about = of->relative[item] - of->per_value[item] * mean[lane];
            total[lane] += about * about;
            for (int column = 0; column < NUMBERS; column++)
                of->relative[item] -= numbers[column * LANES + lane] * of->design[column][item];
            rss[lane] += of->relative[item] * of->relative[item];
        }
    find_pull(of, numbers);
    for (int64_t k = 0; k < of->points; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            double apart = larger(1 - smaller(of->pull[k * LANES + lane], 1), LEAST_LEFT);
            double left = of->relative[k * LANES + lane] / apart;
            left_out[lane] += left * left;
        }
}

/* Write measures of the fit of n models to `rows` of the columns of their names.

   values, weight [n, K] of `ScaledRows`; table [S, K]; terms [columns, 2] of the models, with
   coefficients `scaled` [n, 3] in the units of both. */
int64_t measure_quality(int64_t n, int64_t points, const int64_t *rows, const double *values,
                        const double *weight, const double *floor, const double *table,
                        const double *scaled,
                        const int16_t *terms, double *rss, double *cv_error, double *r2,
                        double *adjusted_r2)
{
    Regression of;
    if (!allocate(&of, points))
        return -1;
    for (int64_t start = 0; start < n; start += LANES) {
        int64_t some[LANES], codes[TERMS * LANES], left = rows_from(start, n, some);
        double numbers[NUMBERS * LANES];
        double squares[LANES] = {0}, total[LANES] = {0}, left_out[LANES] = {0};
        for (int lane = 0; lane < LANES; lane++) {
            for (int k = 0; k < NUMBERS; k++)
                numbers[k * LANES + lane] = scaled[some[lane] * NUMBERS + k];
            for (int k = 0; k < TERMS; k++)
                codes[k * LANES + lane] = terms[rows[some[lane]] * TERMS + k];
        }
        fill(&of, some, values, weight, floor, table, codes);
        leave(&of, numbers, squares, total, left_out);
        for (int64_t lane = 0; lane < left; lane++) {
            double used = used_of(points, weight + some[lane] * points), size = 0;
            for (int k = 0; k < NUMBERS; k++)
                size += numbers[k * LANES + lane] != 0;
            double told = 1 - (total[lane] > 0 ? squares[lane] / total[lane] : 0);
            told = smaller(larger(told, 0), 1);
            int64_t row = rows[some[lane]];
            rss[row] = squares[lane];
            cv_error[row] = sqrt(left_out[lane] / used);
            r2[row] = told;
            adjusted_r2[row] = 1 - (1 - told) * (used - 1) / larger(used - size, 1);
        }
    }
    free(of.relative);
    return 0;
}

/* `looks_exact` for one row, in the unit of the metric; `first` is the first parameter. */
static int is_exact(int64_t points, const double *first, const double *values, double unit,
                    double noise)
{
    int whole = 1;
    if (!isnan(noise))
        return noise <= NOISE_EXACT;
    for (int64_t k = 0; k < points; k++) {
        double value = values[k] * unit, total = value * first[k];
        whole &= (fabs(total - rint(total)) <= NOISE_EXACT * fabs(total)) & (value < NOISE_LARGEST_COUNT);
    }
    return whole;
}

/* Write the status of n rows to `rows` of their column, as `_status`.

   values, weight [n, K], unit, variance [n] of `ScaledRows`; spread [n] of the posterior, and its
   share with breaks; exactly [n] and `most` of `MisfitBaseline`; noise, rss, terms are columns.
   `codes` are CONSTANT, OK, OUTSIDE, NOISY. */
int64_t name_outcomes(int64_t n, int64_t points, const int64_t *rows, const double *first,
                      const double *values, const double *weight, const double *unit,
                      const double *variance, const double *deviation, const double *broken,
                      const double *exactly, double most, const double *noise, const double *rss, const int16_t *terms,
                      const int8_t *codes, int8_t *status)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t row = rows[k], size = (terms[row * TERMS] >= 0) + (terms[row * TERMS + 1] >= 0);
        double used = larger(used_of(points, weight + k * points), 1);
        double enough = OUTCOME_FAR_BEYOND_NOISE * sqrt(variance[k]), spread = sqrt(deviation[k]);
        /* With few points the prior determines the deviation, so the residual has to show it,
           too. */
        double left = sqrt(rss[row] / larger(used - 1 - (double)size, 1));
        int beyond = isnan(noise[row]) ? left > most
                                       : spread > enough && spread > OUTCOME_MISFIT && left > enough;
        int outside = broken[k] > 0.5 || beyond
                      || (is_exact(points, first, values + k * points, unit[k], noise[row])
                          && sqrt(rss[row] / used) > exactly[k]);
        int noisy = !size && noise[row] > OUTCOME_NOISY_SPREAD;
        status[row] = noisy ? codes[3] : (outside ? codes[2] : (size ? codes[1] : codes[0]));
    }
    return 0;
}
