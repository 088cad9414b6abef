/* Evidence of some candidates at a time; repeats mixture/regressions.py, which explains the method.

   All arrays are [LANES], with one candidate of any row in each lane. */
#ifndef CALLPATH_MODELER_EVIDENCE_H
#define CALLPATH_MODELER_EVIDENCE_H

#include <float.h>

#include "costs.h"
#include "lanes.h"

#define EACH_LANE _Pragma("omp simd") for (int c = 0; c < LANES; c++)

typedef double Lanes[LANES] __attribute__((aligned(64)));


/* Standard deviations beyond which a normal variable has no probability in double precision. */
static const double NEVER = 9;

/* Regressions on one shape each under one drift: rows and shapes, as in `Moments`. */
typedef struct {
    Lanes weight, mean, at, square, slope;
} Slopes;

/* Regressions on two shapes each under one drift, as in `PairSums`. */
typedef struct {
    Lanes weight, mean, total, used, at_x, at_z, xx, xz, zz, x, z;
} PairSums;

/* Results for candidates under one drift; `level` is the model at the mean of the shapes. */
typedef struct {
    Lanes residual, evidence, size;
    Lanes constant, first, second, level;
    Lanes cc, cx, cz, xx, xz, zz;
} Found;

/* Natural logarithm; zero and tiny numbers count as the smallest number with all digits. */
INLINE double finite_log(double x) { return log_of(larger(x, DBL_MIN)); }

/* Log probabilities of standard normal variables between bounds. */
INLINE void log_between(const double *below, const double *above, double *found)
{
    Lanes low, high, share;
    int sure = 1, far = 0;
#pragma omp simd reduction(& : sure)
    for (int c = 0; c < LANES; c++) {
        int flipped = below[c] > 0;
        low[c] = flipped ? -above[c] : below[c];
        high[c] = flipped ? -below[c] : above[c];
        sure &= low[c] < -NEVER && high[c] > NEVER;
    }
    if (sure) {
        EACH_LANE found[c] = 0;
        return;
    }
#pragma omp simd reduction(| : far)
    for (int c = 0; c < LANES; c++) {
        share[c] = normal_share(high[c]) - normal_share(low[c]);
        found[c] = log_of(larger(share[c], EVIDENCE_FAR_OUT));
        far |= share[c] < EVIDENCE_FAR_OUT;
    }
    if (far)
        EACH_LANE {
            double most = log_normal_share(high[c]);
            double less = smaller(log_normal_share(low[c]) - most, -1e-12);
            double tail = most + log_of(1 - exp_of(less));
            found[c] = share[c] < EVIDENCE_FAR_OUT ? tail : found[c];
        }
}

INLINE void slope_covariance(const Slopes *sums, Found *found)
{
    EACH_LANE {
        double per_square = 1 / sums->square[c], at = sums->at[c];
        found->cc[c] = 1 / sums->weight[c] + at * at * per_square;
        found->cx[c] = -at * per_square;
        found->xx[c] = per_square;
    }
}

INLINE void constant_evidence(const Slopes *sums, Found *found)
{
    EACH_LANE found->evidence[c] = 0.5 * (EVIDENCE_LOG_2PI - finite_log(sums->weight[c]))
                                   - finite_log(larger(sums->mean[c], EVIDENCE_TINY));
}

/* Write evidence and slope; `falling` marks decreasing shapes. */
INLINE void positive_evidence(const Slopes *sums, const double *falling, const double *variance,
                              Found *found)
{
    Lanes below, above, away;
    EACH_LANE {
        double mean = sums->mean[c], at = sums->at[c], slope = sums->slope[c];
        double no_constant = mean / larger(at, EVIDENCE_TINY), growing = larger(slope, 0);
        double level = larger(mean - slope * at, 0) + growing + EVIDENCE_LEAST, square = level * level;
        double share = smaller(growing / level, 1 - EVIDENCE_SHARE_EDGE);
        double known = sqrt(variance[c] * (1 / sums->weight[c] + at * at / sums->square[c]));
        double rest = room_of_share((mean - slope * at) / level, known / level, EVIDENCE_CONSTANT_FOLDS);
        double room = falling[c] > 0 ? rest * rest : 4 * (1 - share);
        found->evidence[c] = EVIDENCE_LOG_2PI - 0.5 * finite_log(sums->weight[c] * sums->square[c]
                                                        * (square * square) * room);
        double spread = sqrt(variance[c] / sums->square[c]);
        below[c] = (0 - slope) / spread;
        above[c] = (no_constant - slope) / spread;
        found->first[c] = smaller(growing, no_constant);
    }
    log_between(below, above, away);
    EACH_LANE found->evidence[c] += away[c];
}

/* Write evidence and slope; `least`, `most` and `falling` belong to the shapes. */
INLINE void offset_evidence(const Slopes *sums, const double *least, const double *most,
                            const double *falling, const double *variance, Found *found)
{
    Lanes below, above, away;
    EACH_LANE {
        double mean = sums->mean[c], at = sums->at[c];
        double no_constant = mean / larger(at, EVIDENCE_TINY);
        double steepest = mean / larger(at - least[c], 1e-9);
        double to_zero = -mean / larger(most[c] - at, 1e-9);
        double low = falling[c] > 0 ? to_zero : no_constant;
        double high = falling[c] > 0 ? 0 : steepest;
        double slope = smaller(larger(sums->slope[c], low), high);
        double far = mean + slope * ((falling[c] > 0 ? 0 : 1) - at);
        double level = larger(far, EVIDENCE_LEAST_LEVEL * mean), square = level * level;
        found->evidence[c]
            = EVIDENCE_LOG_2PI - 0.5 * finite_log(sums->weight[c] * sums->square[c] * (square * square));
        double spread = sqrt(variance[c] / sums->square[c]);
        below[c] = (low - sums->slope[c]) / spread;
        above[c] = (high - sums->slope[c]) / spread;
        found->first[c] = slope;
    }
    log_between(below, above, away);
    EACH_LANE found->evidence[c] += away[c];
}

/* Write evidence, slope and its variance, without a constant. */
INLINE void bare_evidence(const Slopes *sums, Found *found)
{
    EACH_LANE {
        double mean = sums->mean[c], weight = sums->weight[c];
        double level = weight * sums->at[c];
        double square = sums->square[c] + level * sums->at[c];
        double forced = level * mean, product = sums->slope[c] * sums->square[c] + forced;
        /* Values and shapes are positive, and so is their product; a tiny one is only rounding. */
        double slope = (product > EVIDENCE_ROUNDING * forced ? product : 0) / square;
        found->evidence[c]
            = 0.5 * (EVIDENCE_LOG_2PI - finite_log(square)) - finite_log(larger(slope, EVIDENCE_LEAST_LEVEL * mean));
        found->first[c] = slope;
        found->xx[c] = 1 / square;
    }
}

/* `PairSums.regressions` and `PairSums.covariance` without the residual; `normal` is the
   determinant. Constants of pairs that are `asked` have to pay; `falling` is as in
   `pair_evidence`. */
INLINE void regress_pairs(const PairSums *sums, const double *asked, const double *falling,
                          const double *noise, Found *found, double *normal)
{
    EACH_LANE {
        double weight = sums->weight[c], at_x = sums->at_x[c], at_z = sums->at_z[c];
        double xx = sums->xx[c], xz = sums->xz[c], zz = sums->zz[c];
        double both = xx * zz, least = both * 1e-12;
        double inverse = 1 / larger(both - xz * xz, least);
        double first = (sums->x[c] * zz - sums->z[c] * xz) * inverse;
        double second = (sums->z[c] * xx - sums->x[c] * xz) * inverse;
        double constant = sums->mean[c] - at_x * first - at_z * second;
        double cx = (at_z * xz - at_x * zz) * inverse;
        double cz = (at_x * xz - at_z * xx) * inverse;
        double cc = 1 / weight - at_x * cx - at_z * cz;
        double left = sums->total[c] - first * sums->x[c] - second * sums->z[c];
        double whole = larger(first, 0) + larger(second, 0) + larger(constant, 0) + EVIDENCE_LEAST;
        int worth = pays(constant, cc, left / larger(sums->used[c] - 3, 1), whole, noise[c],
                         falling[c] > 0);
        int free = (constant > 0) & ((asked[c] == 0) | worth);
        /* Forcing a constant to zero changes the others by their covariance. */
        double part = (free ? 0 : constant) / cc;
        found->constant[c] = free ? constant : 0;
        found->first[c] = first - part * cx;
        found->second[c] = second - part * cz;
        found->size[c] = free ? 3 : 2;
        normal[c] = weight / inverse * (free ? 1 : cc);
        /* Without a constant, sums are about zero. */
        double level = free ? 0 : weight;
        xx += level * (at_x * at_x);
        zz += level * (at_z * at_z);
        xz += level * at_x * at_z;
        double determinant = larger(xx * zz - xz * xz, 1e-12 * xx * zz);
        double of_first = zz / determinant, of_second = xx / determinant;
        double of_both = -xz / determinant;
        cx = free ? -(at_x * of_first + at_z * of_both) : 0;
        cz = free ? -(at_x * of_both + at_z * of_second) : 0;
        found->cc[c] = free ? 1 / weight - at_x * cx - at_z * cz : 0;
        found->cx[c] = cx;
        found->cz[c] = cz;
        found->xx[c] = of_first;
        found->xz[c] = of_both;
        found->zz[c] = of_second;
    }
}

/* Log probability that a normal variable with mean `number` is above zero. */
INLINE double log_positive(double number, double spread)
{
    double z = number / spread;
    return z > NEVER ? 0 : log_normal_share(z);
}

/* Write the evidence of the results of `regress_pairs`; `falling` marks pairs with a decreasing
   shape. */
INLINE void pair_evidence(const double *normal, const double *falling, const double *variance,
                          Found *found)
{
    EACH_LANE {
        int free = found->size[c] > 2;
        double first = found->first[c], second = found->second[c];
        double level = larger(first, 0) + larger(second, 0) + found->constant[c] + EVIDENCE_LEAST;
        double evidence = finite_log(level) * (free ? -3 : -2);
        evidence += free ? 1.5 * EVIDENCE_LOG_2PI + EVIDENCE_LOG_2 : EVIDENCE_LOG_2PI + EVIDENCE_LOG_2;
        evidence -= 0.5 * finite_log(normal[c]);
        double spread = sqrt(variance[c]), known = spread * sqrt(found->zz[c]);
        double room = room_of_share(second / level, known / level, EVIDENCE_PAIR_FOLDS);
        double apart = spread * sqrt(found->cc[c]) / level;
        room *= free ? room_of_share(found->constant[c] / level, apart, EVIDENCE_PAIR_FOLDS) : 1;
        evidence -= falling[c] > 0 ? finite_log(room) : 0;
        evidence += log_positive(first, spread * sqrt(found->xx[c]));
        evidence += log_positive(second, known);
        double away = log_positive(found->constant[c], spread * sqrt(free ? found->cc[c] : 1));
        evidence += free ? away : 0;
        int positive = positive_pair(found->constant[c], first, second);
        found->evidence[c] = positive ? evidence : -INFINITY;
    }
}

#endif
