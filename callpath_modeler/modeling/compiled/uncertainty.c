/* Mixtures, each of one row at one target: repeats `Mixture` of `modeling/distributions.py`. */
#include "mixtures.h"

/* Number of parts of a row up to the last one with a weight. */
static int64_t parts_of(const double *weight, int64_t parts)
{
    while (parts > 0 && weight[parts - 1] == 0)
        parts--;
    return parts;
}

/* `Mixture.quantiles` of centre, below, above [rows, parts, columns], weight [rows, parts];
   [probabilities, rows, columns]. Rows with equal numbers of parts share lanes. */
int64_t quantiles(int64_t rows, int64_t parts, int64_t columns, const double *centre,
                  const double *below, const double *above, const double *weight,
                  int64_t probabilities, const double *probability, double *found)
{
    Parts some;
    double *here = new_lines(probabilities * LANES);
    int64_t *counts = new_lines(rows), items[LANES], filled = 0, all = rows * columns;
    int there = allocate(&some, parts) && here && counts;
    for (int64_t row = 0; there && row < rows; row++)
        counts[row] = parts_of(weight + row * parts, parts);
    for (int64_t count = 0; there && count <= parts; count++)
        for (int64_t item = 0; item <= all; item++) {
            if (item < all && counts[item / columns] == count)
                items[filled++] = item;
            if (filled < LANES && !(item == all && filled))
                continue;
            some.count = count;
            for (int lane = 0; lane < LANES; lane++) {
                int64_t its = items[lane < filled ? lane : 0], row = its / columns;
                for (int64_t part = 0; part < count; part++) {
                    int64_t from = (row * parts + part) * columns + its % columns;
                    some.centre[part * LANES + lane] = centre[from];
                    some.below[part * LANES + lane] = below[from];
                    some.above[part * LANES + lane] = above[from];
                    some.weight[part * LANES + lane] = weight[row * parts + part];
                }
            }
            quantiles_of(&some, probabilities, probability, here);
            for (int64_t which = 0; which < probabilities; which++)
                for (int64_t lane = 0; lane < filled; lane++)
                    found[which * all + items[lane]] = here[which * LANES + lane];
            filled = 0;
        }
    free(some.centre);
    free(counts);
    free(here);
    return there ? 0 : -1;
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
                found[column] += share * normal_share(distance / larger(spread, EVIDENCE_LEAST_SPREAD));
            }
            centre += columns, below += columns, above += columns;
        }
    }
    return 0;
}
