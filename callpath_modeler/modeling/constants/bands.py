"""Constants of bands: the quantiles that predictions keep, and bands of sums of rows.

See docs/explanation/noise-and-bands.md, 'Sums'.
"""

from __future__ import annotations

COLUMNS = 6
"""Additive numbers of each prediction.

Unit: numbers. Evidence: mathematics, `sums.as_addends`.
"""

INNER = 0.3, 0.6
"""Scores of inner quantiles, as fractions of the score of the ends of bands.

Unit: ratio. Evidence: by convention.
"""

OUTER = 3.0
"""Smallest outermost score.

Unit: standard deviations. Evidence: by convention.
"""

BEYOND = 0.5
"""Smallest distance of the outermost score from the ends of bands.

Unit: standard deviations. Evidence: by convention.
"""

SCORES = 9
"""Quantiles of each row: the middle one, and on each side inner ones, the end and the outermost.

Unit: quantiles. Evidence: mathematics, `distributions.scores`.
"""

ENDS = 1, 7
"""Places of the ends of the band among these quantiles.

Unit: places. Evidence: mathematics, `distributions.scores`.
"""

STEPS = 4
"""Parts of each step between scores; the logarithm of a quantile is linear within a step.

Unit: parts. Evidence: by convention.
"""

NEGLIGIBLE = 1e-12
"""Fraction of the largest quantile below which a quantile has no logarithm of its own.

Unit: ratio. Evidence: by convention.
"""

WIDE = 2.0
"""Ratio of the ends of a band above which its shape is used; narrower bands are normal.

Unit: ratio. Evidence: by convention.
"""

ALIKE = 0.6
"""Correlation of errors of rows whose bands span decades.

Unit: correlation. Evidence: measured, simulated whole programs.
"""

DECADES = 4.0
"""Logarithm of the ratio of the ends at which a correlation is half way to that one.

Unit: natural logarithm. Evidence: measured, simulated whole programs.
"""

LARGEST = 1e150
"""Largest distance that can be squared.

Unit: unit of the metric. Evidence: mathematics, numbers of double precision.
"""

CORRELATIONS = 17
"""Correlations with stored weights of quantiles; weights between them are interpolated.

Unit: correlations. Evidence: by convention.
"""

TOGETHER = 8_192
"""Predictions that are processed at a time.

Unit: predictions. Evidence: by convention.
"""
