/* Rows side by side: what is computed for each of many rows alike goes through arrays [...][LANES],
   in vector instructions. What a lane holds does not depend on the others. */
#ifndef CALLPATH_MODELER_LANES_H
#define CALLPATH_MODELER_LANES_H

#include "functions.h"

enum { LANES = 16 };

/* `start` and the rows after it, of `n`; lanes that are left over hold the first one again. Returns
   how many are not. */
INLINE int64_t rows_from(int64_t start, int64_t n, int64_t *rows)
{
    int64_t left = n - start < LANES ? n - start : LANES;
    for (int64_t lane = 0; lane < LANES; lane++)
        rows[lane] = start + (lane < left ? lane : 0);
    return left;
}

#endif
