/* What hypotheses predict, how far that may be off, and the quantiles of their mixtures: repeats
   `modeling/reach.py` and `modeling/uncertainty.py`. Of the
   mixture of one row in each lane, arrays are [parts][LANES]. */
#include <float.h>
#include <stdlib.h>

#include "lanes.h"

static const double LEAST_SPREAD = 1e-9, SETTLED = 1e-10, NEGLIGIBLE = 1e-6;
static const double OUTER = 0.975, DEVIATES = 1.959963984540054, EDGE = 1e-12;
enum { STEPS = 80, TERMS = 2, NUMBERS = 3, ROOT = 6 };

/* `Mixture` of as many rows as there are lanes at one target. */
typedef struct {
    int64_t count;
    double *centre, *below, *above, *weight;
} Parts;

/* Where the parts have their quantiles: bounds of that of the mixture. */
static void bracket(const Parts *of, double deviate, double *low, double *high)
{
    const double *side = deviate < 0 ? of->below : of->above;
    for (int lane = 0; lane < LANES; lane++)
        low[lane] = INFINITY, high[lane] = -INFINITY;
    for (int64_t part = 0; part < of->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            double each = of->centre[k] + deviate * side[k];
            low[lane] = of->weight[k] > 0 ? smaller(each, low[lane]) : low[lane];
            high[lane] = of->weight[k] > 0 ? larger(each, high[lane]) : high[lane];
        }
}

/* `_apart_quantile`: the part in which the quantile would be, if the parts did not overlap, is the
   least one that has the probability with all below it. */
static void apart_quantile(const Parts *of, double probability, double *at)
{
    double best[LANES];
    for (int lane = 0; lane < LANES; lane++)
        best[lane] = INFINITY, at[lane] = 0;
    for (int64_t part = 0; part < of->count; part++) {
        double running[LANES] = {0};
        for (int64_t other = 0; other < of->count; other++)
#pragma omp simd
            for (int lane = 0; lane < LANES; lane++) {
                double its = of->centre[other * LANES + lane];
                double mine = of->centre[part * LANES + lane];
                int before = (its < mine) | ((its == mine) & (other <= part));
                running[lane] += before ? of->weight[other * LANES + lane] : 0;
            }
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            double its = of->weight[k], share = (probability - running[lane] + its) / its;
            double z = normal_quantile(smaller(larger(share, 1e-9), 1 - 1e-9));
            double here = of->centre[k] + z * (z < 0 ? of->below[k] : of->above[k]);
            int enough = (its > 0) & (running[lane] >= probability) & (running[lane] < best[lane]);
            at[lane] = enough ? here : at[lane];
            best[lane] = enough ? running[lane] : best[lane];
        }
    }
}

/* Share of the mixtures below `at`, and their density there but for the factor of all normal ones.
 */
static void share_below(const Parts *of, const double *at, double *share, double *density)
{
    for (int lane = 0; lane < LANES; lane++)
        share[lane] = density[lane] = 0;
    for (int64_t part = 0; part < of->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            double distance = at[lane] - of->centre[k];
            double spread = distance < 0 ? of->below[k] : of->above[k];
            double z = distance / spread, bell = normal_bell(z);
            share[lane] += of->weight[k] * normal_share_of(z, bell);
            density[lane] += of->weight[k] * bell / spread;
        }
}

/* `_quantile`, of `centre` in logarithms, for lanes that are `going`. */
static void quantile_of(const Parts *of, double probability, int64_t *going, double *at)
{
    double low[LANES], high[LANES], share[LANES], density[LANES], last[LANES], before[LANES];
    double deviate = probability <= 0   ? -INFINITY
                     : probability >= 1 ? INFINITY
                                        : normal_quantile(probability);
    bracket(of, deviate, low, high);
    apart_quantile(of, probability, at);
    for (int lane = 0; lane < LANES; lane++) {
        at[lane] = smaller(larger(at[lane], low[lane]), high[lane]);
        last[lane] = before[lane] = INFINITY;
    }
    for (int step = 0; step < STEPS; step++) {
        int64_t any = 0;
        share_below(of, at, share, density);
#pragma omp simd reduction(| : any)
        for (int lane = 0; lane < LANES; lane++) {
            int is_short = share[lane] < probability;
            low[lane] = is_short ? at[lane] : low[lane];
            high[lane] = is_short ? high[lane] : at[lane];
            double here = normal_quantile(share[lane]);
            double after = at[lane] + (deviate - here) * normal_bell(here) / density[lane];
            /* What is no number is not between them. */
            int good = (after >= low[lane]) & (after <= high[lane])
                       & (fabs(after - at[lane]) <= before[lane] / 2);
            after = good ? after : (low[lane] + high[lane]) / 2;
            before[lane] = last[lane];
            last[lane] = fabs(after - at[lane]);
            int moves = (last[lane] > SETTLED) & (high[lane] - low[lane] > SETTLED);
            at[lane] = going[lane] ? after : at[lane];
            going[lane] = going[lane] & moves;
            any |= going[lane];
        }
        if (!any)
            return;
    }
}

/* Turns centres into logarithms; tells what quantiles are where there is nothing to look for, and
   in which lanes there is. */
static void prepare(const Parts *of, double *otherwise, int64_t *usable)
{
    double largest[LANES] = {0};
    int64_t fits[LANES], any[LANES] = {0};
    for (int lane = 0; lane < LANES; lane++)
        fits[lane] = 1;
    for (int64_t part = 0; part < of->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            int64_t there = of->weight[k] > 0;
            double centre = there ? of->centre[k] : 1;
            fits[lane] &= (centre > 0) & (centre < INFINITY);
            any[lane] |= there;
            /* Also what is no number is not nothing. */
            largest[lane] = there & !(centre <= largest[lane]) ? centre : largest[lane];
            of->centre[k] = log_of(centre);
            of->below[k] = of->below[k] > LEAST_SPREAD ? of->below[k] : LEAST_SPREAD;
            of->above[k] = of->above[k] > LEAST_SPREAD ? of->above[k] : LEAST_SPREAD;
        }
    for (int lane = 0; lane < LANES; lane++) {
        usable[lane] = fits[lane] & any[lane];
        otherwise[lane] = largest[lane] == 0 ? 0 : INFINITY;
    }
}

/* `Mixture.quantile` at each of some probabilities, [probabilities][LANES]. */
static void quantiles_of(const Parts *of, int64_t probabilities, const double *probability,
                         double *found)
{
    double otherwise[LANES];
    int64_t usable[LANES];
    prepare(of, otherwise, usable);
    for (int64_t which = 0; which < probabilities; which++, found += LANES) {
        int64_t going[LANES];
        memcpy(going, usable, sizeof going);
        quantile_of(of, probability[which], going, found);
        for (int lane = 0; lane < LANES; lane++)
            found[lane] = usable[lane] ? exp_of(found[lane]) : otherwise[lane];
    }
}

static int allocate(Parts *of, int64_t count)
{
    *of = (Parts){.count = count};
    of->centre = calloc(4 * (size_t)count * LANES + 1, sizeof(double));
    if (!of->centre)
        return 0;
    of->below = of->centre + count * LANES;
    of->above = of->below + count * LANES;
    of->weight = of->above + count * LANES;
    return 1;
}

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
                /* Where prediction and threshold are both zero, neither exceeds the other. */
                distance = distance == distance ? distance : 0;
                double spread = distance > 0 ? below[column] : above[column];
                found[column] += share * normal_share(distance / larger(spread, LEAST_SPREAD));
            }
            centre += columns, below += columns, above += columns;
        }
    }
    return 0;
}

/* Columns of `Models` with the mixture method: `others` alternatives, and what shapes are. The last
   shape, of code -1, is none. */
typedef struct {
    int64_t others, shapes, targets;
    const int16_t *terms, *other_terms;
    const double *numbers, *other_numbers, *weight, *unit, *spread, *drift;
    const float *other_weight, *root;
    const double *peak, *least, *most, *at, *beyond;
} Models;

/* What is known of the hypotheses of rows in lanes before there is a target, [parts][LANES]. */
typedef struct {
    int64_t count;
    int64_t *first, *second, *alone;
    double *weight, *constant, *slope, *other, *root, *mean, *low, *high, *level;
    double unit[LANES], spread[LANES], drift[LANES];
} Known;

/* Columns of doubles; `root` is the last, of `ROOT` entries. */
enum { KNOWN = 8 + ROOT };

static int allocate_known(Known *known, int64_t count)
{
    size_t each = (size_t)count * LANES;
    *known = (Known){.count = count};
    known->weight = calloc(KNOWN * each, sizeof(double));
    known->first = malloc(3 * each * sizeof(int64_t));
    if (!known->weight || !known->first)
        return 0;
    known->second = known->first + each;
    known->alone = known->second + each;
    double **columns[] = {&known->constant, &known->slope, &known->other, &known->mean,
                          &known->low, &known->high, &known->level, &known->root};
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
        *columns[k] = known->weight + (k + 1) * each;
    return 1;
}

static void free_known(Known *known)
{
    free(known->weight);
    free(known->first);
}

/* Fetches a hypothesis of a row, in the unit of the row and of shapes with peaks of 1. */
static void fetch(const Models *models, int64_t row, int64_t part, Known *known, int64_t k)
{
    int64_t other = row * models->others + part - 1, size = known->count * LANES;
    const int16_t *codes = part ? models->other_terms + TERMS * other : models->terms + TERMS * row;
    const double *numbers =
        part ? models->other_numbers + NUMBERS * other : models->numbers + NUMBERS * row;
    const float *root = models->root + ROOT * (row * (1 + models->others) + part);
    int64_t first = codes[0] < 0 ? models->shapes - 1 : codes[0];
    int64_t second = codes[1] < 0 ? models->shapes - 1 : codes[1];
    known->first[k] = first, known->second[k] = second;
    known->alone[k] = codes[0] >= 0 && codes[1] < 0;
    known->weight[k] = part ? models->other_weight[other] : models->weight[row];
    known->constant[k] = numbers[0] / models->unit[row];
    known->slope[k] = numbers[1] / models->unit[row] * models->peak[first];
    known->other[k] = numbers[2] / models->unit[row] * models->peak[second];
    for (int64_t entry = 0; entry < ROOT; entry++)
        known->root[entry * size + k] = root[entry];
}

/* `_by_slope` and `_level_spread`: between which slopes a model with one shape is, given its sign.
 */
INLINE void slopes(Known *known, int64_t k, double least, double most)
{
    int64_t size = known->count * LANES;
    double constant = known->constant[k], slope = known->slope[k];
    double spread = larger(known->root[k], FLT_MIN);
    double mean = -known->root[3 * size + k] / spread;
    double level = constant + slope * mean, rounding = 1e-9 * fabs(level);
    double no_constant = mean > 0 ? level / mean : INFINITY;
    double steepest = mean > least ? level / (mean - least) : INFINITY;
    double to_zero = most > mean ? -level / (most - mean) : -INFINITY;
    int offset = constant < -rounding, falling = slope < 0;
    double lowest = falling ? to_zero : (offset ? no_constant : 0);
    double highest = falling ? 0 : (offset ? steepest : no_constant);
    double below = normal_share((lowest - slope) / spread);
    double above = normal_share((highest - slope) / spread);
    double low = below + (1 - OUTER) * (above - below), high = below + OUTER * (above - below);
    low = slope + spread * normal_quantile(smaller(larger(low, EDGE), 1 - EDGE));
    high = slope + spread * normal_quantile(smaller(larger(high, EDGE), 1 - EDGE));
    known->low[k] = smaller(larger(low, lowest), highest);
    known->high[k] = smaller(larger(high, lowest), highest);
    known->mean[k] = mean;
    known->level[k] = level > 0 ? known->root[5 * size + k] / level : 0;
    known->alone[k] &= known->level[k] < 1;
}

/* Looks at the first `count` hypotheses of `rows`, each in a lane. */
static void look(const Models *models, const int64_t *rows, int64_t count, Known *known)
{
    double total[LANES] = {0};
    known->count = count;
    for (int64_t part = 0; part < count; part++) {
        double least[LANES], most[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            fetch(models, rows[lane], part, known, k);
            total[lane] += known->weight[k];
            least[lane] = models->least[known->first[k]];
            most[lane] = models->most[known->first[k]];
        }
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++)
            slopes(known, part * LANES + lane, least[lane], most[lane]);
    }
    for (int64_t k = 0; k < count * LANES; k++)
        known->weight[k] /= larger(total[k % LANES], DBL_MIN);
    for (int lane = 0; lane < LANES; lane++) {
        known->unit[lane] = models->unit[rows[lane]];
        known->spread[lane] = models->spread[rows[lane]];
        known->drift[lane] = models->drift[rows[lane]];
    }
}

/* `_log_distance`. */
INLINE double log_distance(double centre, double edge)
{
    double distance = fabs(log_of(larger(edge, NEGLIGIBLE * centre) / centre));
    return (distance < INFINITY ? distance : 0) / DEVIATES;
}

/* `_mixture` of one hypothesis at a target where its shapes are x and z: its centre is there
   already. */
INLINE void spread_out(const Known *known, int64_t k, double x, double z, double scatter,
                       const Parts *of)
{
    int64_t size = known->count * LANES;
    const double *root = known->root + k;
    double centre = of->centre[k];
    double a = root[0] * x + root[size] * z + root[3 * size];
    double b = root[2 * size] * z + root[4 * size], c = root[5 * size];
    double variance = a * a + b * b + c * c;
    double relative = centre > 0 ? variance / (centre * centre) : 0;
    /* Below a step there may be next to nothing: its error is as large as numbers go. */
    double whole = log1p_of(smaller(relative, DBL_MAX));
    double mean = known->mean[k], level = known->constant[k] + known->slope[k] * mean;
    double one = level + known->low[k] * (x - mean), two = level + known->high[k] * (x - mean);
    double below = log_distance(centre, smaller(one, two));
    double above = log_distance(centre, larger(one, two));
    double own = known->level[k] * known->level[k];
    below = known->alone[k] ? below * below + own : whole;
    above = known->alone[k] ? above * above + own : whole;
    of->below[k] = sqrt(below + scatter);
    of->above[k] = sqrt(above + scatter);
}

/* What the parts predict at a target where shapes are `at`, and the largest of it, or what is no
   number. */
static void predict(const Known *known, const double *at, double *centre, double *largest)
{
    for (int lane = 0; lane < LANES; lane++)
        largest[lane] = 0;
    for (int64_t part = 0; part < known->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            centre[k] = known->constant[k] + known->slope[k] * at[known->first[k]]
                        + known->other[k] * at[known->second[k]];
            int stays = (largest[lane] >= centre[k]) | (largest[lane] != largest[lane]);
            largest[lane] = stays ? largest[lane] : centre[k];
        }
}

/* `_mixture` at a target. */
static void place(const Models *models, const Known *known, int64_t target, Parts *of)
{
    double least[LANES], scatter[LANES];
    const double *at = models->at + target * models->shapes;
    of->count = known->count;
    predict(known, at, of->centre, least);
    for (int lane = 0; lane < LANES; lane++) {
        least[lane] *= NEGLIGIBLE;
        scatter[lane] = known->spread[lane] * known->spread[lane]
                        + known->drift[lane] * models->beyond[target];
    }
    for (int64_t part = 0; part < known->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            double centre = of->centre[k] >= least[lane] ? of->centre[k] : least[lane];
            of->centre[k] = least[lane] == least[lane] ? centre : least[lane];
            spread_out(known, k, at[known->first[k]], at[known->second[k]], scatter[lane], of);
            of->centre[k] *= known->unit[lane];
            of->weight[k] = known->weight[k];
        }
}

/* How many runners-up of a row are asked: one of few numbers, so that rows go together. */
static int64_t asked(const Models *models, int64_t row, double negligible)
{
    const float *weight = models->other_weight + row * models->others;
    float left = 0;
    int64_t counted = 0;
    for (int64_t other = models->others - 1; other >= 0; other--) {
        left += weight[other];
        counted += left > (float)negligible;
    }
    int64_t some = counted <= 1 ? counted : (counted <= 3 ? 3 : models->others);
    return some < models->others ? some : models->others;
}

/* Both ends of the bands of rows in lanes, `left` of them, at all targets. */
static void bands_of(const Models *models, const int64_t *rows, int64_t left, int64_t count,
                     const double *ends, Known *known, Parts *some, double *low, double *high)
{
    double found[2 * LANES];
    look(models, rows, count, known);
    for (int64_t target = 0; target < models->targets; target++) {
        place(models, known, target, some);
        quantiles_of(some, 2, ends, found);
        for (int64_t lane = 0; lane < left; lane++) {
            low[rows[lane] * models->targets + target] = found[lane];
            high[rows[lane] * models->targets + target] = found[LANES + lane];
        }
    }
}

/* `band_at`, [n, targets], of tables [targets, shapes] `at`; `ends` are two probabilities. */
int64_t bands(int64_t n, int64_t others, int64_t shapes, int64_t targets, const int16_t *terms,
              const double *numbers, const double *weight, const int16_t *other_terms,
              const double *other_numbers, const float *other_weight, const float *root,
              const double *unit, const double *spread, const double *drift, const double *peak,
              const double *least, const double *most, const double *at, const double *beyond,
              double negligible, const double *ends, double *low, double *high)
{
    Models models = {others, shapes, targets, terms, other_terms, numbers, other_numbers, weight,
                     unit, spread, drift, other_weight, root, peak, least, most, at, beyond};
    Known known;
    Parts some;
    int there = allocate_known(&known, 1 + others) & allocate(&some, 1 + others);
    int64_t sizes[] = {0, others < 1 ? others : 1, others < 3 ? others : 3, others};
    for (int which = 0; there && which < 4; which++) {
        int64_t rows[LANES], filled = 0;
        if (which && sizes[which] == sizes[which - 1])
            continue;
        for (int64_t row = 0; row <= n; row++) {
            if (row < n && asked(&models, row, negligible) == sizes[which])
                rows[filled++] = row;
            if (filled == LANES || (row == n && filled)) {
                for (int64_t lane = filled; lane < LANES; lane++)
                    rows[lane] = rows[0];
                bands_of(&models, rows, filled, 1 + sizes[which], ends, &known, &some, low, high);
                filled = 0;
            }
        }
    }
    free_known(&known);
    free(some.centre);
    return there ? 0 : -1;
}

/* `mixture_at`: centre, below, above [n, 1 + others, targets], share [n, 1 + others]. */
int64_t mixtures(int64_t n, int64_t others, int64_t shapes, int64_t targets, const int16_t *terms,
                 const double *numbers, const double *weight, const int16_t *other_terms,
                 const double *other_numbers, const float *other_weight, const float *root,
                 const double *unit, const double *spread, const double *drift,
                 const double *peak, const double *least, const double *most, const double *at,
                 const double *beyond, double *centre, double *below, double *above, double *share)
{
    Models models = {others, shapes, targets, terms, other_terms, numbers, other_numbers, weight,
                     unit, spread, drift, other_weight, root, peak, least, most, at, beyond};
    Known known;
    Parts some;
    int64_t parts = 1 + others;
    int there = allocate_known(&known, parts) & allocate(&some, parts);
    for (int64_t start = 0; there && start < n; start += LANES) {
        int64_t rows[LANES];
        rows_from(start, n, rows);
        look(&models, rows, parts, &known);
        for (int64_t target = 0; target < targets; target++) {
            place(&models, &known, target, &some);
            for (int64_t item = 0; item < parts * LANES; item++) {
                int64_t lane = item % LANES, to = rows[lane] * parts + item / LANES;
                centre[to * targets + target] = some.centre[item];
                below[to * targets + target] = some.below[item];
                above[to * targets + target] = some.above[item];
                share[to] = some.weight[item];
            }
        }
    }
    free_known(&known);
    free(some.centre);
    return there ? 0 : -1;
}
