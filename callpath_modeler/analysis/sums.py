"""Bands of sums of call paths.

Errors of call paths have a common part, because all models miss the same effects, and an own part.
The end of a call path's band under the common error alone is a mean over its own error:

    S(z) = E[q(sqrt(r) z + sqrt(1 - r) e)],  e normal, q(z) the quantile at the normal score z

with a correlation r between errors (the one-factor model; Vasicek: *The distribution of loan
portfolio value*, Risk, 2002). Common parts add up linearly, squares of own parts add up:

    end of a sum = sum of m, plus or minus the square root of (sum of a)^2 + sum of (d^2 - a^2)

with the middle m of a call path and its distances a to S(z) and d to the end of its own band. So
the band of one call path is its own. Each further call path raises both ends of a sum, or leaves
them. A sum never has a lower or an upper end below that of a part.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling import Models, Prediction
from callpath_modeler.modeling.distributions import normal_quantile, normal_share

_INNER = 0.3, 0.6
"""Scores of inner quantiles, as fractions of the score of the ends of bands."""

_OUTER, _BEYOND = 3.0, 0.5
"""The outermost score: this one, or this much beyond the ends of the band."""

_SCORES = 2 * len(_INNER) + 5

COLUMNS = 6
"""Additive numbers of each prediction."""

_PARTS = 4
"""Parts of each step between scores; the logarithm of a quantile is linear within a step."""

_NEGLIGIBLE = 1e-12
"""Fraction of the largest quantile below which a quantile has no logarithm of its own."""

_WIDE = 2.0
"""Ratio of the ends of a band above which its shape is used; narrower bands are normal."""

_ALIKE, _DECADES = 0.6, 4.0
"""Correlation of errors of call paths whose bands span decades, in simulated whole programs.

The second number is the logarithm of the ratio of the ends at which a correlation is half way
there.
"""

_LARGEST = 1e150
"""Largest distance that can be squared."""

_CORRELATIONS = 17
"""Correlations with stored weights of quantiles; weights between them are interpolated."""

_CHUNK = 8_192
"""Rows that are processed at a time."""


def scores(confidence: float) -> FloatArray:
    """Return the normal scores of the quantiles of a row, ascending; the middle one is 0.

    The second and the last but one belong to the ends of the band.
    """
    end = _end(confidence)
    outer = max(_OUTER, end + _BEYOND)
    positive = np.array([*(share * end for share in _INNER), end, outer])
    return np.concatenate([-positive[::-1], [0.0], positive])


def addable(models: Models, points: FloatArray, band: Prediction) -> FloatArray:
    """Return the additive numbers of predictions, [n, m, columns]; zeros without a model.

    Parameters
    ----------
    models : n rows
    points : [m] values of the parameter
    band : predictions there, [n, m]; a value without a band is exact
    """
    added = np.empty((len(models), len(points), COLUMNS))
    rows = max(1, _CHUNK // max(1, len(points)))
    for start in range(0, len(models), rows):
        part = slice(start, start + rows)
        value, low, high = band.value[part], band.low[part], band.high[part]
        quantiles = as_normal(value, low, high, models.confidence)
        with np.errstate(over="ignore"):
            wide = np.isfinite(high) & (high > _WIDE * low)
        if models.method != "classic" and wide.any():
            some = models.take(part)
            _shape(quantiles, some, points, wide)
        added[part] = as_addends(quantiles, models.correlation, models.confidence)
    return added


def _shape(quantiles: FloatArray, models: Models, points: FloatArray, wide: BoolArray) -> None:
    """Replace the inner quantiles of wide bands by those of the mixtures."""
    # Of each row and target with some of it, all: targets differ less than rows.
    rows, columns = (np.flatnonzero(wide.any(axis=axis)) for axis in (1, 0))
    at = rows[:, None], columns
    some = models if len(rows) == len(models) else models.take(rows)
    mixture = some.mixture(points[columns])
    inner = [place for place in range(_SCORES) if place not in (1, _SCORES - 2)]
    found = mixture.quantiles(normal_share(scores(models.confidence)[inner]))
    for place, its in zip(inner, found, strict=True):
        quantiles[*at, place] = np.where(wide[at], its, quantiles[*at, place])
    # Both ends stay as they are: the others are between or beyond them.
    np.clip(quantiles[..., :1], 0.0, quantiles[..., 1:2], out=quantiles[..., :1])
    between = quantiles[..., 1:-1]
    np.clip(between, between[..., :1], between[..., -1:], out=between)
    np.maximum.accumulate(quantiles, axis=-1, out=quantiles)


def as_normal(
    value: FloatArray, low: FloatArray, high: FloatArray, confidence: float
) -> FloatArray:
    """Return quantiles of distributions that are normal on either side of a value, [..., scores].

    Parameters
    ----------
    value, low, high : [...] with bands; a value without a band is exact, and NaN is nothing
    confidence : confidence of the bands
    """
    share = scores(confidence) / _end(confidence)
    value, low, high = (column[..., None] for column in (value, low, high))
    with np.errstate(invalid="ignore", over="ignore"):
        # At the ends themselves no digit is to be lost.
        edge = np.where(share < 0, low, high)
        quantiles = np.where(np.abs(share) == 1, edge, value + np.abs(share) * (edge - value))
    quantiles = np.where(np.isnan(quantiles), value, quantiles)
    return np.nan_to_num(np.maximum(quantiles, 0.0), nan=0.0, posinf=np.inf)


def as_addends(quantiles: FloatArray, correlation: float, confidence: float) -> FloatArray:
    """Return additive numbers of rows, [..., columns]: m, a and d^2 - a^2 of lower and upper ends.

    Parameters
    ----------
    quantiles : [..., scores] ascending, zero or above
    correlation : correlation of the errors of two rows with narrow bands, 0 to 1
    confidence : confidence of the bands
    """
    flat = quantiles.reshape(-1, _SCORES)
    low, high = flat[:, 1], flat[:, -2]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        decades = np.nan_to_num(np.log(high / low) / _DECADES, nan=0.0, posinf=np.inf) ** 2
    alike = correlation + max(_ALIKE - correlation, 0.0) * (1 - 1 / (1 + decades))
    found = np.empty((len(flat), COLUMNS))
    for start in range(0, len(flat), _CHUNK):
        part = slice(start, start + _CHUNK)
        _write_addends(found[part], flat[part], alike[part], confidence)
    return found.reshape(*quantiles.shape[:-1], COLUMNS)


def _write_addends(
    found: FloatArray, quantiles: FloatArray, alike: FloatArray, confidence: float
) -> None:
    low, middle, high = quantiles[:, 1], quantiles[:, _SCORES // 2], quantiles[:, -2]
    common = np.stack([low, high], axis=1)
    usable = np.isfinite(quantiles[:, -1])
    if usable.any():
        table, weights = _finely(quantiles[usable]), _weights(confidence)
        place = np.clip(alike[usable], 0.0, 1.0) * (_CORRELATIONS - 1)
        first = np.minimum(place.astype(np.intp), _CORRELATIONS - 2)
        share, every = place - first, np.arange(len(table))
        for end in (0, 1):
            means = table @ weights[end]
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
        linear = np.where(whole > _LARGEST, whole, linear)
        square = np.where(whole > _LARGEST, 0.0, whole**2 - linear**2)
    found[:, :2], found[:, 2:4], found[:, 4:] = centre, linear, np.maximum(square, 0.0)


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


def _end(confidence: float) -> float:
    return float(normal_quantile(0.5 + confidence / 2))


def _between(columns: FloatArray) -> FloatArray:
    """Return columns with linearly interpolated ones between them."""
    share = np.arange(_PARTS) / _PARTS
    start, step = columns[..., :-1, None], np.diff(columns)[..., None]
    inner = (start + share * step).reshape(*columns.shape[:-1], _PARTS * (columns.shape[-1] - 1))
    return np.concatenate([inner, columns[..., -1:]], axis=-1)


def _finely(quantiles: FloatArray) -> FloatArray:
    """Return quantiles at more scores, [n, k], by linear interpolation of logarithms."""
    floor = np.maximum(_NEGLIGIBLE * quantiles[:, -1:], np.finfo(float).tiny)
    return np.asarray(np.exp(_between(np.log(np.maximum(quantiles, floor)))))


@cache
def _weights(confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights of quantiles in S(z) at both ends, each [k, correlations].

    S(z) is the mean of a function of a normal variable that is linear between scores and constant
    beyond them.
    """
    at = _between(scores(confidence))
    found = []
    for score in (-_end(confidence), _end(confidence)):
        columns = []
        for alike in np.linspace(0.0, 1.0, _CORRELATIONS).tolist():
            centre, spread = np.sqrt(alike) * score, max(np.sqrt(1 - alike), 1e-6)
            columns.append(_weights_about(at, centre, spread))
        found.append(np.stack(columns, axis=1))
    return found[0], found[1]


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
