"""Bands of sums of rows.

Errors of rows have a common part, because all models miss the same effects, and an own part. The
end of a row's band under the common error alone is a mean over its own error:

    S(z) = E[q(sqrt(r) z + sqrt(1 - r) e)],  e normal, q(z) the quantile at the normal score z

with a correlation r between errors (the one-factor model; Vasicek: *The distribution of loan
portfolio value*, Risk, 2002). Common parts add up linearly, squares of own parts add up:

    end of a sum = sum of m, plus or minus the square root of (sum of a)^2 + sum of (d^2 - a^2)

with the middle m of a row and its distances a to S(z) and d to the end of its own band. So the band
of one row is its own. Each further row raises both ends of a sum, or leaves them. A sum never has a
lower or an upper end below that of a part.

See docs/explanation/noise-and-bands.md, 'Sums'.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.bands import COLUMNS, CORRELATIONS, TOGETHER
from callpath_modeler.modeling.distributions import (
    Prediction,
    as_normal,
    between,
    end_score,
    is_wide,
    normal_share,
    scores,
)
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.model_columns import LawsBeforeChange, ShapeTables
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.shapes import targets


def addable(models: Models, points: FloatArray, band: Prediction) -> FloatArray:
    """Return the additive numbers of predictions, [n, m, columns]; zeros without a model.

    Parameters
    ----------
    models : n rows
    points : [m] values of the parameter
    band : predictions there, [n, m]; a value without a band is exact
    """
    wanted = targets(points)
    added = np.empty((len(models), len(wanted), COLUMNS))
    rows = max(1, TOGETHER // max(1, len(wanted)))
    for start in range(0, len(models), rows):
        part = slice(start, start + rows)
        here = Prediction(band.value[part], band.low[part], band.high[part])
        quantiles = _quantiles(models.take(part), wanted, here)
        added[part] = as_addends(quantiles, models.correlation, models.confidence)
    return added


def _quantiles(models: Models, points: FloatArray, band: Prediction) -> FloatArray:
    """Return the quantiles of rows, [n, m, scores]."""
    some = is_wide(band).any(axis=0) & (models.method != "classic")
    if some.all():
        return _shaped(models, points, band)
    found = as_normal(band.value, band.low, band.high, models.confidence)
    if some.any():
        there = Prediction(band.value[:, some], band.low[:, some], band.high[:, some])
        found[:, some] = _shaped(models, points[some], there)
    return found


def _shaped(models: Models, points: FloatArray, band: Prediction) -> FloatArray:
    """Return the quantiles of rows, of which those of wide bands are of mixtures."""
    shapes = ShapeTables.of(models, points)
    found: FloatArray = kernels().quantiles_of_bands(models, points, shapes, band)
    earlier = LawsBeforeChange.of(models, points)
    if earlier is not None:
        spread = models.spread[earlier.rows, None, None]
        its = earlier.values[..., None] * np.exp(scores(models.confidence) * spread)
        where = earlier.where & is_wide(band)[earlier.rows]
        found[earlier.rows] = np.where(where[..., None], its, found[earlier.rows])
    return found


def as_addends(quantiles: FloatArray, correlation: float, confidence: float) -> FloatArray:
    """Return additive numbers of rows, [..., columns]: m, a and d^2 - a^2 of lower and upper ends.

    Parameters
    ----------
    quantiles : [..., scores] ascending, zero or above
    correlation : correlation of the errors of two rows with narrow bands, 0 to 1
    confidence : confidence of the bands
    """
    flat = quantiles.reshape(-1, quantiles.shape[-1])
    found: FloatArray = kernels().addends(flat, correlation, _weights(confidence))
    return found.reshape(*quantiles.shape[:-1], COLUMNS)


def ends_of_sums(value: FloatArray, added: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends of sums of predictions; the band contains the value.

    Parameters
    ----------
    value : [...] sums of values
    added : [..., columns] sums of the results of `addable`
    """
    middle, common, own = added[..., :2], added[..., 2:4], added[..., 4:6]
    with np.errstate(invalid="ignore", over="ignore"):
        reach = np.hypot(common, np.sqrt(np.maximum(own, 0.0)))
        low, high = middle[..., 0] - reach[..., 0], middle[..., 1] + reach[..., 1]
    low = np.maximum(np.nan_to_num(low, nan=0.0, posinf=np.inf, neginf=0.0), 0.0)
    high = np.nan_to_num(high, nan=np.inf, posinf=np.inf)
    return np.minimum(low, value), np.maximum(high, value)


@cache
def _weights(confidence: float) -> FloatArray:
    """Return the weights of quantiles in S(z) at both ends, [ends, correlations, k].

    S(z) is the mean of a function of a normal variable that is linear between scores and constant
    beyond them.
    """
    at = between(scores(confidence))
    found = np.empty((2, CORRELATIONS, len(at)))
    for which, score in enumerate((-end_score(confidence), end_score(confidence))):
        for place, alike in enumerate(np.linspace(0.0, 1.0, CORRELATIONS).tolist()):
            centre, spread = np.sqrt(alike) * score, max(np.sqrt(1 - alike), 1e-6)
            found[which, place] = _weights_about(at, centre, spread)
    return found


def _weights_about(at: FloatArray, centre: float, spread: float) -> FloatArray:
    """Return the weights of a function's values at [k] scores in its mean."""
    distance = (at - centre) / spread
    below, density = normal_share(distance), np.exp(-0.5 * distance**2) / np.sqrt(2 * np.pi)
    share, mean = np.diff(below), centre * np.diff(below) - spread * np.diff(density)
    step = np.diff(at)
    weights = np.zeros(len(at))
    weights[:-1] += (at[1:] * share - mean) / step
    weights[1:] += (mean - at[:-1] * share) / step
    weights[0] += below[0]
    weights[-1] += 1 - below[-1]
    return weights
