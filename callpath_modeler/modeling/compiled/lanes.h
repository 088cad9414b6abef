/* Rows side by side: equal computations for many rows use arrays [...][LANES] and vector
   instructions. The results of a lane do not depend on the others. */
#ifndef CALLPATH_MODELER_LANES_H
#define CALLPATH_MODELER_LANES_H

#include "functions.h"

enum { LANES = 16 };

/* Put `start` and the rows after it, of `n`, into lanes; unused lanes hold the first one again.
   Return how many lanes are used. */
INLINE int64_t rows_from(int64_t start, int64_t n, int64_t *rows)
{
    int64_t left = n - start < LANES ? n - start : LANES;
    for (int64_t lane = 0; lane < LANES; lane++)
        rows[lane] = start + (lane < left ? lane : 0);
    return left;
}

#endif
