"""Quantiles of rows, and their additive numbers for bands of sums.

See docs/explanation/noise-and-bands.md, 'Sums'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.bands import (
    ALIKE,
    COLUMNS,
    CORRELATIONS,
    DECADES,
    ENDS,
    LARGEST,
    NEGLIGIBLE,
    SCORES,
    TOGETHER,
)
from callpath_modeler.modeling.distributions import (
    Prediction,
    as_normal,
    between,
    is_wide,
    normal_share,
    scores,
)
from callpath_modeler.modeling.model_columns import ModelColumns
from callpath_modeler.modeling.predictive import ShapeTables
from callpath_modeler.modeling.reference.bands import mixture, quantiles


def quantiles_of_bands(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables, band: Prediction
) -> FloatArray:
    """Return the quantiles of rows at their scores, [n, m, scores], without change points.

    Those of wide bands are of the mixtures, between the ends of the bands and beyond them.
    """
    found, wide = as_normal(band.value, band.low, band.high, models.confidence), is_wide(band)
    others = np.delete(np.arange(SCORES), ENDS)
    its = quantiles(mixture(models, p, shapes), normal_share(scores(models.confidence)[others]))
    for place, each in zip(others, its, strict=True):
        found[..., place] = np.where(wide, each, found[..., place])
    # Both ends stay as they are: the others are between or beyond them.
    np.clip(found[..., :1], 0.0, found[..., 1:2], out=found[..., :1])
    within = found[..., 1:-1]
    np.clip(within, within[..., :1], within[..., -1:], out=within)
    return np.asarray(np.maximum.accumulate(found, axis=-1))


def addends(quantiles: FloatArray, correlation: float, weights: FloatArray) -> FloatArray:
    """Return the additive numbers of quantiles [n, scores], [n, columns], as `sums.as_addends`.

    `weights` are those of the quantiles in S(z), [ends, correlations, k].
    """
    found = np.empty((len(quantiles), COLUMNS))
    for start in range(0, len(quantiles), TOGETHER):
        part = slice(start, start + TOGETHER)
        found[part] = _addends(quantiles[part], correlation, weights)
    return found


def _addends(quantiles: FloatArray, correlation: float, weights: FloatArray) -> FloatArray:
    low, middle, high = quantiles[:, [ENDS[0], SCORES // 2, ENDS[1]]].T
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        decades = np.nan_to_num(np.log(high / low) / DECADES, nan=0.0, posinf=np.inf) ** 2
    alike = correlation + max(ALIKE - correlation, 0.0) * (1 - 1 / (1 + decades))
    common = np.stack([low, high], axis=1)
    usable = np.isfinite(quantiles[:, -1])
    if usable.any():
        table = _finely(quantiles[usable])
        place = np.clip(alike[usable], 0.0, 1.0) * (CORRELATIONS - 1)
        first = np.minimum(place.astype(np.intp), CORRELATIONS - 2)
        share, every = place - first, np.arange(len(table))
        for end in (0, 1):
            means = table @ weights[end].T
            mean = (1 - share) * means[every, first] + share * means[every, first + 1]
            common[usable, end] = np.clip(mean, low[usable], high[usable])
    # The mean of what has a long tail may lie on the other side of the middle. Improbable huge
    # values do not raise the lower end, because all parts may be small at once.
    common[:, 0] = np.minimum(middle, common[:, 0])
    centre = np.stack([middle, np.minimum(middle, common[:, 1])], axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        linear = np.abs(np.nan_to_num(centre - common, nan=0.0, posinf=np.inf, neginf=-np.inf))
        whole = np.stack([centre[:, 0] - low, high - centre[:, 1]], axis=1)
        # What is larger than its square can be is taken as common to all.
        linear = np.where(whole > LARGEST, whole, linear)
        square = np.where(whole > LARGEST, 0.0, whole**2 - linear**2)
    return np.concatenate([centre, linear, np.maximum(square, 0.0)], axis=1)


def _finely(quantiles: FloatArray) -> FloatArray:
    """Return quantiles at more scores, [n, k], by linear interpolation of logarithms."""
    floor = np.maximum(NEGLIGIBLE * quantiles[:, -1:], np.finfo(float).tiny)
    return np.asarray(np.exp(between(np.log(np.maximum(quantiles, floor)))))
