/* Quantiles of mixtures: repeats `quantiles` of `tests/oracle/bands.py`.
   Each lane has the mixture of one row; arrays are [parts][LANES]. */
#ifndef CALLPATH_MODELER_MIXTURES_H
#define CALLPATH_MODELER_MIXTURES_H

#include "constants.h"
#include "lanes.h"
#include "memory.h"

/* Error of the logarithm of a quantile. */
static const double SETTLED = 1e-10;
enum { STEPS = 80 };

/* `Mixture` at one target, with one row in each lane. `run_up` writes `running`. */
typedef struct {
    int64_t count;
    double *centre, *below, *above, *weight, *running;
} Parts;

/* The smallest and the largest quantile of the parts, which bracket that of the mixture. */
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

/* The weight of all parts up to each one, in the order of their centres. */
static void run_up(const Parts *of)
{
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
        memcpy(of->running + part * LANES, running, sizeof running);
    }
}

/* If the parts did not overlap, the quantile would be in the smallest part that reaches the
   probability together with all parts below it. */
static void apart_quantile(const Parts *of, double probability, double *at)
{
    double best[LANES], weight[LANES], centre[LANES], below[LANES], above[LANES];
    for (int lane = 0; lane < LANES; lane++)
        best[lane] = INFINITY, weight[lane] = 1, centre[lane] = below[lane] = above[lane] = 0;
    for (int64_t part = 0; part < of->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            double its = of->weight[k], running = of->running[k];
            int enough = (its > 0) & (running >= probability) & (running < best[lane]);
            best[lane] = enough ? running : best[lane];
            weight[lane] = enough ? its : weight[lane];
            centre[lane] = enough ? of->centre[k] : centre[lane];
            below[lane] = enough ? of->below[k] : below[lane];
            above[lane] = enough ? of->above[k] : above[lane];
        }
#pragma omp simd
    for (int lane = 0; lane < LANES; lane++) {
        double share = (probability - best[lane] + weight[lane]) / weight[lane];
        double z = normal_quantile(smaller(larger(share, 1e-9), 1 - 1e-9));
        double here = centre[lane] + z * (z < 0 ? below[lane] : above[lane]);
        at[lane] = best[lane] < INFINITY ? here : 0;
    }
}

/* Share of the mixtures below `at`, and their density there without the factor 1 / sqrt(2 pi). */
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

/* `_quantile`, with `centre` in logarithms, for the lanes that are `going`. A step of Newton's method
   up to `short_step` is the last one. */
static void quantile_of(const Parts *of, double probability, const double *short_step,
                        int64_t *going, double *at)
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
            /* NaN is not between the bounds. */
            int good = (after >= low[lane]) & (after <= high[lane])
                       & (fabs(after - at[lane]) <= before[lane] / 2);
            after = good ? after : (low[lane] + high[lane]) / 2;
            before[lane] = last[lane];
            last[lane] = fabs(after - at[lane]);
            double enough = good ? short_step[lane] : SETTLED;
            int moves = (last[lane] > enough) & (high[lane] - low[lane] > SETTLED);
            at[lane] = going[lane] ? after : at[lane];
            going[lane] = going[lane] & moves;
            any |= going[lane];
        }
        if (!any)
            return;
    }
}

/* Replace centres by their logarithms. Write the lanes that need a search, the quantiles of the
   others, and the length of a last step: the error after a step of Newton's method is about the
   square of the step, relative to the smallest spread. */
static void prepare(const Parts *of, double *otherwise, int64_t *usable, double *short_step)
{
    double largest[LANES] = {0}, least[LANES];
    int64_t fits[LANES], any[LANES] = {0};
    for (int lane = 0; lane < LANES; lane++)
        fits[lane] = 1, least[lane] = INFINITY;
    for (int64_t part = 0; part < of->count; part++)
#pragma omp simd
        for (int lane = 0; lane < LANES; lane++) {
            int64_t k = part * LANES + lane;
            int64_t there = of->weight[k] > 0;
            double centre = there ? of->centre[k] : 1;
            fits[lane] &= (centre > 0) & (centre < INFINITY);
            any[lane] |= there;
            /* NaN is not zero, either. */
            largest[lane] = (there & !(centre <= largest[lane])) ? centre : largest[lane];
            of->centre[k] = log_of(centre);
            of->below[k] = of->below[k] > EVIDENCE_LEAST_SPREAD ? of->below[k] : EVIDENCE_LEAST_SPREAD;
            of->above[k] = of->above[k] > EVIDENCE_LEAST_SPREAD ? of->above[k] : EVIDENCE_LEAST_SPREAD;
            double spread = smaller(of->below[k], of->above[k]);
            least[lane] = there ? smaller(spread, least[lane]) : least[lane];
        }
    for (int lane = 0; lane < LANES; lane++) {
        usable[lane] = fits[lane] & any[lane];
        otherwise[lane] = largest[lane] == 0 ? 0 : INFINITY;
        short_step[lane] = sqrt(SETTLED * smaller(least[lane], 1));
    }
}

/* `Mixture.quantile` at several probabilities, [probabilities][LANES]. */
static void quantiles_of(const Parts *of, int64_t probabilities, const double *probability,
                         double *found)
{
    double otherwise[LANES], short_step[LANES];
    int64_t usable[LANES];
    prepare(of, otherwise, usable, short_step);
    run_up(of);
    for (int64_t which = 0; which < probabilities; which++, found += LANES) {
        int64_t going[LANES];
        memcpy(going, usable, sizeof going);
        quantile_of(of, probability[which], short_step, going, found);
        for (int lane = 0; lane < LANES; lane++)
            found[lane] = usable[lane] ? exp_of(found[lane]) : otherwise[lane];
    }
}

static int allocate(Parts *of, int64_t count)
{
    *of = (Parts){.count = count};
    of->centre = new_zeros(5 * count * LANES);
    if (!of->centre)
        return 0;
    of->below = of->centre + count * LANES;
    of->above = of->below + count * LANES;
    of->weight = of->above + count * LANES;
    of->running = of->weight + count * LANES;
    return 1;
}

#endif
