/* Noise of repetitions: repeats `repetition_stats`, `row_spread` and `Pool.noise` of
   `modeling/mixture/scaled_rows.py`, and `row_status` of `modeling/mixture/row_models.py`. */
#include <float.h>

#include "costs.h"
#include "functions.h"
#include "lanes.h"
#include "memory.h"

/* Centres in the order of `CENTRES`. */
enum { MEAN, MEDIAN, TRIMMED, MIDRANGE, FIRST_QUARTILE, LEAST };
enum { FEW = 32 };

static const double WEIGHT_RANGE[2] = NOISE_WEIGHT_RANGE;

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Sort many values in one lane, by way of `row`. */
static void sort_lane(double *sorted, int64_t repetitions, double *row)
{
    for (int64_t k = 0; k < repetitions; k++)
        row[k] = sorted[k * LANES];
    qsort(row, (size_t)repetitions, sizeof *row, compare);
    for (int64_t k = 0; k < repetitions; k++)
        sorted[k * LANES] = row[k];
}

/* Sort few values by exchanging neighbours, in all lanes at once. */
static void sort_lanes(double *sorted, int64_t repetitions)
{
    for (int64_t end = repetitions - 1; end > 0; end--)
        for (int64_t k = 0; k < end; k++) {
            double *one = sorted + k * LANES, *next = one + LANES;
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++) {
                double less = smaller(one[lane], next[lane]);
                next[lane] = larger(one[lane], next[lane]);
                one[lane] = less;
            }
        }
}

/* Fetch the repetitions of points, one point in each lane, [R][LANES], and sort them; missing
   ones are infinite. Write their numbers to `present`. */
static void fetch(const double *y, const int64_t *items, int64_t repetitions, double *sorted,
                  double *row, int64_t *present)
{
    for (int lane = 0; lane < LANES; lane++)
        present[lane] = 0;
    for (int64_t k = 0; k < repetitions; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            double value = y[items[lane] * repetitions + k];
            present[lane] += value == value;
            sorted[k * LANES + lane] = value == value ? value : INFINITY;
        }
    if (repetitions <= FEW)
        sort_lanes(sorted, repetitions);
    else
        for (int lane = 0; lane < LANES; lane++)
            sort_lane(sorted + lane, repetitions, row);
}

/* `_take_logarithms`: replace large `squares` if all finite values are positive. */
static void take_logarithms(const double *sorted, int64_t repetitions, const double *mean,
                            const double *count, double *squares)
{
    double total[LANES] = {0}, positive[LANES] = {0}, found[LANES] = {0};
    for (int64_t k = 0; k < repetitions; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            double value = sorted[k * LANES + lane];
            double there = (double)((value > 0) & (value <= DBL_MAX));
            double log = log_of(value / mean[lane]), part = there > 0 ? log : 0;
            positive[lane] += there;
            total[lane] += part;
        }
    for (int64_t k = 0; k < repetitions; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            double value = sorted[k * LANES + lane];
            int there = (value > 0) & (value <= DBL_MAX);
            double away = there ? log_of(value / mean[lane]) - total[lane] / count[lane] : 0;
            found[lane] += away * away;
        }
    for (int lane = 0; lane < LANES; lane++) {
        int much = squares[lane] > NOISE_LARGE_SPREAD * NOISE_LARGE_SPREAD * count[lane];
        squares[lane] = much && positive[lane] == count[lane] ? found[lane] : squares[lane];
    }
}

/* Means and numbers of finite values, and squared deviations relative to the mean. */
static void sum_lanes(const double *sorted, int64_t repetitions, double *mean, double *count,
                      double *squares)
{
    for (int lane = 0; lane < LANES; lane++)
        mean[lane] = count[lane] = squares[lane] = 0;
    for (int64_t k = 0; k < repetitions; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            double value = sorted[k * LANES + lane];
            double there = (double)(fabs(value) <= DBL_MAX), part = there > 0 ? value : 0;
            count[lane] += there;
            mean[lane] += part;
        }
    for (int lane = 0; lane < LANES; lane++)
        mean[lane] /= count[lane];
    for (int64_t k = 0; k < repetitions; k++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            double value = sorted[k * LANES + lane], away = value / mean[lane] - 1;
            squares[lane] += fabs(value) <= DBL_MAX ? away * away : 0;
        }
    int much = 0;
    for (int lane = 0; lane < LANES; lane++) {
        squares[lane] = ((count[lane] > 1) & (mean[lane] > 0)) ? squares[lane] : 0;
        much |= squares[lane] > NOISE_LARGE_SPREAD * NOISE_LARGE_SPREAD * count[lane];
    }
    if (much)
        take_logarithms(sorted, repetitions, mean, count, squares);
}

/* `centre_of_sorted` except for the mean, of `count` values that are `LANES` apart. */
static double centre_of(const double *sorted, int64_t count, int64_t how)
{
    int64_t last = count - 1;
    double least = sorted[0], most = sorted[last * LANES], total = 0, place, lower, upper;
    switch (how) {
    case MEDIAN:
        lower = sorted[last / 2 * LANES], upper = sorted[(last + 1) / 2 * LANES];
        return lower + (upper - lower) / 2;
    case TRIMMED:
        if (count > 2)
            sorted += LANES, count -= 2;
        for (int64_t k = 0; k < count; k++)
            total += sorted[k * LANES];
        return total / (double)count;
    case MIDRANGE:
        return least + (most - least) / 2;
    case FIRST_QUARTILE:
        place = (double)last / 4;
        lower = sorted[last / 4 * LANES], upper = sorted[(last + 3) / 4 * LANES];
        return lower + (place - floor(place)) * (upper - lower);
    default:
        return least;
    }
}

/* `repetition_stats` of n points y [n, R], repetitions in any order; centre, count, squares [n]. */
int64_t sum_up(int64_t n, int64_t repetitions, int64_t how, const double *y, double *centre,
               double *count, double *squares)
{
    double *sorted = new_lines((repetitions + 1) * (LANES + 1));
    if (!sorted)
        return -1;
    for (int64_t start = 0; start < n; start += LANES) {
        int64_t items[LANES], present[LANES], left = rows_from(start, n, items);
        double mean[LANES], many[LANES], apart[LANES];
        fetch(y, items, repetitions, sorted, sorted + repetitions * LANES, present);
        sum_lanes(sorted, repetitions, mean, many, apart);
        for (int64_t lane = 0; lane < left; lane++) {
            int64_t item = start + lane;
            centre[item] = how == MEAN       ? mean[lane]
                           : !present[lane] ? NAN
                                            : centre_of(sorted + lane, present[lane], how);
            count[item] = many[lane], squares[item] = apart[lane];
        }
    }
    free(sorted);
    return 0;
}

/* `row_status`: ZERO, NEGATIVE, TOO_FEW_POINTS or NON_FINITE, from the four `codes`, or 0; y [n,
   K, R], centre, count [n, K]. */
int64_t state(int64_t n, int64_t points, int64_t repetitions, int64_t enough, const double *y,
              const double *centre, const double *count, const int8_t *codes, int8_t *status)
{
    for (int64_t row = 0; row < n; row++) {
        int64_t used = 0, negative = 0, positive = 0, infinite = 0;
        for (int64_t k = row * points; k < (row + 1) * points; k++) {
            used += count[k] > 0;
            negative += (count[k] > 0) & (centre[k] < 0);
            positive += (count[k] > 0) & (centre[k] != 0);
            /* Sums of very large values may overflow as well. */
            infinite += (count[k] > 0) & (fabs(centre[k]) > DBL_MAX);
        }
        for (int64_t k = row * points * repetitions; k < (row + 1) * points * repetitions; k++)
            infinite += fabs(y[k]) > DBL_MAX;
        int8_t found = positive ? 0 : codes[0];
        found = negative ? codes[1] : found;
        found = used < enough ? codes[2] : found;
        status[row] = infinite ? codes[3] : found;
    }
    return 0;
}

static double freedom_of(double centre, double count)
{
    return centre > 0 && count > 1 ? count - 1 : 0;
}

/* `row_spread` of rows [n, K]: raw, dof, size [n]. */
int64_t spread_of_rows(int64_t n, int64_t points, const double *centre, const double *count,
                       const double *squares, double *raw, double *dof, double *size)
{
    for (int64_t row = 0; row < n; row++) {
        double total = 0, freedom = 0, most = -INFINITY;
        for (int64_t k = row * points; k < (row + 1) * points; k++) {
            double value = count[k] > 0 && centre[k] == centre[k] ? centre[k] : 0;
            total += squares[k];
            freedom += freedom_of(centre[k], count[k]);
            most = larger(most, value);
        }
        raw[row] = total / larger(freedom, 1);
        dof[row] = freedom;
        size[row] = smaller(larger(most, -DBL_MAX), DBL_MAX);
    }
    return 0;
}

/* `Pool.noise` of rows [n, K] with raw, dof, size [n] from `row_spread`: variance, freedom,
   spread [n] and weight [n, K]. `pool` is dof, level, slope, about and the two ends of reach;
   `profile` is [K]. */
int64_t noise_of_rows(int64_t n, int64_t points, const double *centre, const double *count,
                      const double *squares, const double *raw, const double *dof,
                      const double *size, const double *pool, const double *profile,
                      double efficiency,
                      double *variance, double *freedom, double *spread, double *weight)
{
    double borrowed = pool[0], share = smaller(borrowed, NOISE_MOST_DOF);
    for (int64_t row = 0; row < n; row++) {
        double total = 0, used = 0, away = log_of(larger(size[row], DBL_MIN)) - pool[3];
        double prior = exp_of(pool[1] + pool[2] * smaller(larger(away, pool[4]), pool[5]));
        double shrunk = (borrowed * prior + dof[row] * raw[row]) / (borrowed + dof[row]);
        for (int64_t k = row * points; k < (row + 1) * points; k++) {
            total += count[k];
            used += count[k] > 0;
        }
        double effective = larger(total / larger(used, 1), 1);
        int exact = !(borrowed > 0) || (dof[row] > 0 && raw[row] <= NOISE_EXACT_VARIANCE);
        for (int64_t k = row * points; k < (row + 1) * points; k++) {
            double its = freedom_of(centre[k], count[k]), expected = shrunk * profile[k % points];
            /* Two values say almost nothing about the noise of their point. */
            double local = its > 1 ? (share * expected + squares[k]) / (share + its) : expected;
            double ratio = shrunk / larger(local, NOISE_EXACT_VARIANCE);
            ratio = smaller(larger(ratio, WEIGHT_RANGE[0]), WEIGHT_RANGE[1]);
            weight[k] = count[k] / effective * (exact ? 1 : ratio);
        }
        variance[row] = exact ? NOISE_EXACT_VARIANCE
                              : larger(shrunk * efficiency / effective, NOISE_EXACT_VARIANCE);
        freedom[row] = borrowed > 0 ? smaller(borrowed + dof[row], NOISE_MOST_DOF) : NOISE_MOST_DOF;
        spread[row] = dof[row] > 0 ? sqrt(raw[row]) : NAN;
    }
    return 0;
}

/* `point_counts` of outcome.py for rows [n, K] with `count` repetitions: the number of points
   with a value, and the smallest and the largest of these `p` [K]. */
int64_t facts_of_rows(int64_t n, int64_t points, const double *count, const double *p,
                      int16_t *used, double *low, double *high)
{
    for (int64_t row = 0; row < n; row++, count += points) {
        int64_t found = 0;
        double least = INFINITY, most = -INFINITY;
        for (int64_t k = 0; k < points; k++) {
            int there = count[k] > 0;
            found += there;
            least = there ? smaller(p[k], least) : least;
            most = there ? larger(p[k], most) : most;
        }
        used[row] = (int16_t)found, low[row] = least, high[row] = most;
    }
    return 0;
}

/* `data_of` in scaled_rows.py, of rows [n, K]: values in units of the row, and the unit [n]. */
int64_t own_units(int64_t n, int64_t points, const double *centre, const double *weight,
                  double *values, double *unit)
{
    for (int64_t row = 0; row < n; row++, centre += points, weight += points, values += points) {
        double most = weight[0] > 0 ? centre[0] : 0;
        for (int64_t k = 1; k < points; k++)
            most = larger(weight[k] > 0 ? centre[k] : 0, most);
#pragma omp simd
        for (int64_t k = 0; k < points; k++)
            values[k] = (weight[k] > 0 ? centre[k] : 0) / most;
        unit[row] = most;
    }
    return 0;
}
