/* Costs of coefficients, as in mixture/regressions.py. */
#ifndef CALLPATH_MODELER_COSTS_H
#define CALLPATH_MODELER_COSTS_H

#include "constants.h"
#include "functions.h"

#define PI 3.1415926535897932

/* `TwoTermFits.positive`. */
INLINE int positive_pair(double constant, double first, double second)
{
    double least = EVIDENCE_NO_PART * (fabs(first) + fabs(second) + constant);
    return (first > least) & (second > least);
}

/* `occam_volume` */
INLINE double room_of_share(double share, double known, double folds)
{
    return folds * larger(larger(share, known), EVIDENCE_LEAST_SHARE);
}

/* `InterceptPenalty.accepts`: whether a constant explains more than it costs. `spread` is its
   variance for a variance of 1 per point, `left` the residual with it per degree of freedom,
   `level` the sum of positive coefficients. `shared` is true with shared work. */
INLINE int pays(double constant, double spread, double left, double level, double noise, int shared)
{
    double variance = larger(spread * larger(noise, left), EVIDENCE_TINY);
    double room = level * (shared ? room_of_share(constant / level, 0, EVIDENCE_PAIR_FOLDS) : 1);
    return constant * constant > variance * log_of(room * room / (2 * PI * variance));
}

#endif
