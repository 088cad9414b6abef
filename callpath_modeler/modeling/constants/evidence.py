"""Constants of evidence of hypotheses.

See docs/explanation/hypotheses.md, 'Evidence'.
"""

from __future__ import annotations

import math

SHARE_EDGE = 1e-3
"""Smallest distance of a share from one: a smaller constant cannot be distinguished from none.

Unit: share. Evidence: by convention.
"""

FAR_OUT = 1e-280
"""Normal probability below which only its logarithm can be represented.

Unit: probability. Evidence: by convention.
"""

LOG_2PI = float(math.log(2 * math.pi))
"""Logarithm of 2 pi.

Unit: nats. Evidence: mathematics, natural logarithms.
"""

LOG_2 = float(math.log(2))
"""Logarithm of 2.

Unit: nats. Evidence: mathematics, natural logarithms.
"""

LEAST_LEVEL = 0.05
"""Smallest level of a hypothesis relative to the mean; the level of an offset may be near zero.

Unit: ratio. Evidence: by convention.
"""

TINY = 1e-300
"""Smallest sum or divisor, which stands for zero.

Unit: ratio. Evidence: by convention.
"""

LEAST = 1e-40
"""Smallest level; its powers are still above zero.

Unit: ratio. Evidence: by convention.
"""

NO_PART = 1e-9
"""Coefficient, relative to the level, that is zero except for rounding.

Unit: ratio. Evidence: by convention.
"""

CONSTANT_FOLDS, PAIR_FOLDS = 6.0, 12.0
"""Powers of e over which the share of a term with shared work is uniform in its logarithm.

The first number holds for a constant alone, the second one for all terms in pairs.

Unit: powers of e. Evidence: by convention.
"""

LEAST_SHARE = 1e-4
"""Smallest share in this prior, which replaces smaller shares.

Unit: share. Evidence: by convention.
"""

ALIKE = 1e-12
"""Relative squared variation of a shape over the points of a row that is only rounding.

Unit: ratio. Evidence: by convention.
"""

PARALLEL = 1e-10
"""Determinant of two shapes that are equal at all points, relative to the product of squares.

Unit: ratio. Evidence: by convention.
"""

ROUNDING = 1e-13
"""Size of a sum of products, relative to its parts, below which it is only rounding.

Unit: ratio. Evidence: by convention.
"""

LITTLE = 1e-6
"""Residual, relative to the total sum of squares, that has too few digits as a difference.

Unit: ratio. Evidence: by convention.
"""

LARGE_MISFIT = 0.01
"""Relative misfit (root mean square) from which on logarithms replace relative errors.

Unit: ratio. Evidence: by convention.
"""

LEAST_RATIO = 1e-3
"""Smallest ratio of a model to the value; smaller models have the error of this ratio.

Unit: ratio. Evidence: by convention.
"""

VARIES = 1e-10
"""Share of the square of a shape below which it does not vary besides others.

Unit: share. Evidence: by convention.
"""
