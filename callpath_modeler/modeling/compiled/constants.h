/* Constants and functions that several of these files use. All but the first number come from
   mixture/evidence.py and mixture/regressions.py. */
#ifndef CALLPATH_MODELER_CONSTANTS_H
#define CALLPATH_MODELER_CONSTANTS_H

#include "functions.h"

/* `EXACT_VARIANCE` in mixture/repetition_noise.py. */
#define EXACT_VARIANCE 1e-14
#define LEAST_SUM 1e-40
#define LOG_2PI 1.8378770664093453
#define PI 3.1415926535897932
#define LOG_2 0.69314718055994531
#define TINY 1e-300
#define SHARE_EDGE 1e-3
#define CONSTANT_FOLDS 6.0
#define PAIR_FOLDS 12.0
#define LEAST_SHARE 1e-4
#define LEAST_LEVEL 0.05
#define NO_PART 1e-9

/* `TwoTermFits.positive`. */
INLINE int positive_pair(double constant, double first, double second)
{
    double least = NO_PART * (fabs(first) + fabs(second) + constant);
    return (first > least) & (second > least);
}

/* `occam_volume` */
INLINE double room_of_share(double share, double known, double folds)
{
    return folds * larger(larger(share, known), LEAST_SHARE);
}

/* `InterceptPenalty.accepts`: whether a constant explains more than it costs. `spread` is its
   variance for a variance of 1 per point, `left` the residual with it per degree of freedom,
   `level` the sum of positive coefficients. `shared` is true with shared work. */
INLINE int pays(double constant, double spread, double left, double level, double noise, int shared)
{
    double variance = larger(spread * larger(noise, left), TINY);
    double room = level * (shared ? room_of_share(constant / level, 0, PAIR_FOLDS) : 1);
    return constant * constant > variance * log_of(room * room / (2 * PI * variance));
}

#endif
