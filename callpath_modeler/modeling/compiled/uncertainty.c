/* Mixtures, each of one row at one target: repeats `Mixture` of `modeling/uncertainty.py`. */
#include "mixtures.h"

/* `Mixture.quantile` of centre, below, above [rows, parts, columns], weight [rows, parts]. */
int64_t quantiles(int64_t rows, int64_t parts, int64_t columns, const double *centre,
                  const double *below, const double *above, const double *weight,
                  double probability, double *found)
{
    Parts some;
    if (!allocate(&some, parts))
        return -1;
    for (int64_t start = 0; start < rows * columns; start += LANES) {
        int64_t items[LANES], left = rows_from(start, rows * columns, items);
        double here[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            int64_t item = items[lane], row = item / columns;
            for (int64_t part = 0; part < parts; part++) {
                int64_t from = (row * parts + part) * columns + item % columns;
                some.centre[part * LANES + lane] = centre[from];
                some.below[part * LANES + lane] = below[from];
                some.above[part * LANES + lane] = above[from];
                some.weight[part * LANES + lane] = weight[row * parts + part];
            }
        }
        quantiles_of(&some, 1, &probability, here);
        for (int64_t lane = 0; lane < left; lane++)
            found[items[lane]] = here[lane];
    }
    free(some.centre);
    return 0;
}

/* `Mixture.exceedance` of a value [rows, columns]. */
int64_t exceedances(int64_t rows, int64_t parts, int64_t columns, const double *centre,
                    const double *below, const double *above, const double *weight,
                    const double *value, double *found)
{
    for (int64_t row = 0; row < rows; row++, value += columns, found += columns) {
        for (int64_t column = 0; column < columns; column++)
            found[column] = 0;
        for (int64_t part = 0; part < parts; part++, weight++) {
            double share = *weight;
#pragma omp simd
            for (int64_t column = 0; column < columns; column++) {
                double distance = log_of(centre[column]) - log_of(value[column]);
                /* If prediction and threshold are both zero, neither exceeds the other. */
                distance = distance == distance ? distance : 0;
                double spread = distance > 0 ? below[column] : above[column];
                found[column] += share * normal_share(distance / larger(spread, BANDS_LEAST_SPREAD));
            }
            centre += columns, below += columns, above += columns;
        }
    }
    return 0;
}
