"""Constants of the classic method.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

EXCLUDED = 6.0
"""Difference in Akaike's criterion from which on a hypothesis is excluded: exp(-3) is 5 %.

Unit: units of Akaike's criterion. Evidence: by convention.
"""

KEEP_CONSTANT = 4.0
"""F-ratio, about the 5 % level, below which a constant with growing terms is noise.

Unit: ratio. Evidence: by convention.
"""

CLASSIC_ALTERNATIVES = 3
"""Number of alternatives that are kept per row.

Unit: count. Evidence: by convention.
"""

CLASSIC_CHUNK = 1024
"""Rows that are fitted together.

Unit: rows. Evidence: by convention.
"""

COLLINEAR = 1e-9
"""Determinant, relative to the product of the squares, of two terms that are one curve.

Unit: ratio. Evidence: by convention.
"""

SIGN_TOLERANCE = 1e-9
"""Negative value that counts as zero, since it may be rounding.

Unit: ratio. Evidence: by convention.
"""

VALIDATED = 4
"""Number of best pairs that are solved again in full precision and cross-validated.

Unit: count. Evidence: by convention.
"""

HINTS = 7
"""Number of terms that are tried for a hint of growth.

Unit: count. Evidence: by convention.
"""

SECOND_CLASS = 2.0
"""Factor by which the error of a second-class hypothesis has to be smaller.

Unit: ratio. Evidence: by convention.
"""

FULL_LEVERAGE = 1e-8
"""Smallest distance of a leverage from 1, for divisions.

Unit: ratio. Evidence: by convention.
"""

RIDGE = 1e-14
"""Number that is added to the diagonal of scaled normal equations.

Unit: ratio. Evidence: by convention.
"""

SMALLEST = 1e-12
"""Share of the largest value of a row below which all values have the same weight.

Unit: share. Evidence: by convention.
"""

LEVEL = 0.02
"""Largest probability of a false first term, for all hypotheses together.

Unit: probability. Evidence: paper, Hotelling 1939; Johansen and Johnstone 1990.
"""

HINT_LEVEL = 0.2
"""The same for the change that the points before the largest have to show.

Unit: probability. Evidence: by convention.
"""

MORE_LEVEL = 0.005
"""The same for a second and further term: a false one of high power ruins an extrapolation.

Unit: probability. Evidence: by convention.
"""

LACK_LEVEL = 0.05
"""Level of the test for lack of fit.

Unit: probability. Evidence: by convention.
"""

USUAL_SPREAD = 0.1
"""Relative standard deviation of the noise that is assumed without repetitions.

Few programs vary by more than a tenth from run to run.

Unit: ratio. Evidence: by convention.
"""

USUAL_DOF = 1.0
"""Weight of this assumption, in degrees of freedom: that of one residual.

Unit: degrees of freedom. Evidence: by convention.
"""
