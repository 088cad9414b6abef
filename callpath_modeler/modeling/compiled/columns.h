/* How models lie in columns. */
#ifndef CALLPATH_MODELER_COLUMNS_H
#define CALLPATH_MODELER_COLUMNS_H

/* Shapes of a model, its coefficients, and the elements of their covariance or of its root. */
enum { TERMS = 2, NUMBERS = 3, ELEMENTS = 6 };

#endif
