"""Constants of screening of hypotheses.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

TIED = 1e-5
"""Largest relative difference of residuals that are equal except for rounding.

Unit: ratio. Evidence: by convention.
"""

ROUNDING = 1e-12
"""Residual below which only rounding remains: an exact fit under one drift is exact under all.

Unit: ratio. Evidence: by convention.
"""

FEWEST_FOR_PAIRS = 3
"""Points needed for pairs with shared work in one parameter; all other pairs need one more.

Unit: points. Evidence: by convention.
"""

FALLS = 0.5
"""Ratio of the last to the largest value below which the pairs of a row are always tried.

With shared work even the smallest shares are probable.

Unit: ratio. Evidence: by convention.
"""

OUT_OF_QUESTION = 25.0
"""Distance of the bound of a fan from the best one, in nats, beyond which no pair of it matters.

Unit: nats. Evidence: by convention.
"""

EVEN = 1e-3
"""Largest difference of the bounds of fans that are equal except for rounding, in nats.

Unit: nats. Evidence: by convention.
"""

WITHIN = 3.0
"""Largest factor between fitted and measured value where weights come from fitted values.

Unit: ratio. Evidence: by convention.
"""

UNEXPLAINED = 0.4
"""Share of the variation that a shape may leave unexplained if weights come from it.

Unit: share. Evidence: by convention.
"""

SCATTERED = 0.1
"""Relative deviation of measurements from models above which weights are uncertain.

Unit: ratio. Evidence: by convention.
"""

EVERY = 10**6
"""Number of closest shapes that are kept where all are kept.

Unit: shapes. Evidence: by convention.
"""

CLOSEST_WHILE_LEARNING = 100
"""Number of closest shapes that are kept while priors are learnt in one parameter.

Unit: shapes. Evidence: measured, the error for real programs is 7.5 to 7.7 % with 55 to 75 shapes.
"""

CLOSEST_PAIRS = 7
"""Number of closest pairs with positive coefficients that are kept, per point.

The more places breaks have, the more pairs fit by chance.

Unit: pairs per point. Evidence: by convention.
"""

NATS = 6.2
"""Distance from the best bound beyond which a hypothesis is left out.

Unit: nats. Evidence: measured, with 7 models take a tenth longer, and bands are an eighth wider.
"""
