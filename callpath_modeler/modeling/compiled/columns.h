/* Layout of models in columns. */
#ifndef CALLPATH_MODELER_COLUMNS_H
#define CALLPATH_MODELER_COLUMNS_H

/* Number of shapes of a model, of its coefficients, and of the elements of their covariance or
   root. */
enum { TERMS = 2, NUMBERS = 3, ELEMENTS = 6 };

#endif
