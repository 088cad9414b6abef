/* Layout of models in columns. */
#ifndef CALLPATH_MODELER_COLUMNS_H
#define CALLPATH_MODELER_COLUMNS_H

#include "constants.h"

/* Number of shapes of a model, of its coefficients, and of the elements of their covariance or
   root. */
enum { TERMS = LIMITS_TERMS, NUMBERS = LIMITS_NUMBERS, ELEMENTS = LIMITS_ELEMENTS };

#endif
