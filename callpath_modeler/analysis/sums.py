"""Bands of sums of call paths.

A call path is a mixture of what hypotheses say of it, often over decades and with several peaks, so
widths about a value do not tell what sums of it may be. Quantiles do. Were all call paths wrong
alike, quantiles of a sum would be sums of quantiles. They are not, and errors in part cancel: what
a sum is, given how far everything is wrong alike, is a mean over what each may be by itself.

With one normal score z common to all rows, and a correlation r between any two (the one-factor
model; Vasicek: *The distribution of loan portfolio value*, Risk, 2002), many rows together are

    S(z) = E[C(sqrt(r) z + sqrt(1 - r) e)],  e normal, C(z) the sum of all quantiles at score z.

Few rows are as many whose correlation is larger: as much as makes the deviation of their sum right,
1 for a single row, whose band is its own. All of this is made of columns that add up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.modeling import Models, Prediction
from callpath_modeler.modeling.distributions import normal_quantile, normal_share

Values = NDArray[np.float64]

_INNER = 0.3, 0.6
"""Scores at which quantiles add up, between the middle and the ends of bands, against these."""

_OUTER, _BEYOND = 3.0, 0.5
"""The outermost: this one, or as much beyond the ends. There is nothing further out."""

_SCORES = 2 * len(_INNER) + 5

COLUMNS = _SCORES + 4
"""How many numbers add up of each prediction."""

_PARTS = 4
"""Of each step between scores; within steps the logarithm of a sum is a line."""

_NEGLIGIBLE = 1e-12
"""Against the largest quantile, one that has no logarithm of its own."""

_WIDE = 2.0
"""Ends of a band by more than this factor apart: its shape counts. Others are as normal."""

_ALIKE, _DECADES = 0.6, 4.0
"""Rows whose bands span decades are in doubt for the same reason, and wrong alike: of simulated
whole programs such errors correlate by a half. The logarithm of the ends' ratio at which a
correlation is half way there."""

_CHUNK = 8_192
"""Rows and sums that are worked on at once."""


def scores(confidence: float) -> Values:
    """Return the normal scores at which quantiles add up, ascending; the middle one is 0.

    Those of the ends of bands are the second and the last but one.
    """
    end = _end(confidence)
    outer = max(_OUTER, end + _BEYOND)
    positive = np.array([*(share * end for share in _INNER), end, outer])
    return np.concatenate([-positive[::-1], [0.0], positive])


def addable(models: Models, points: Values, band: Prediction) -> Values:
    """Return what adds up where predictions of rows do, [n, m, columns].

    Quantiles at all scores, then for deviations downwards and upwards each: what is common to all
    rows, and the square of what is not. Rows without a model add nothing.

    Parameters
    ----------
    models : n rows
    points : [m] values of the parameter
    band : what the models predict there, [n, m]; sure where there is no band
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
            some = models.take(np.arange(start, min(start + rows, len(models))))
            _shape(quantiles, some, points, wide)
        added[part] = with_deviations(quantiles, models.correlation)
    return added


def _shape(quantiles: Values, models: Models, points: Values, wide: NDArray[np.bool_]) -> None:
    """Put quantiles of mixtures where bands are wide; their ends are there already."""
    # Of each row and target with some of it, all: targets differ less than rows.
    rows, columns = (np.flatnonzero(wide.any(axis=axis)) for axis in (1, 0))
    at = rows[:, None], columns
    mixture = models.take(rows).mixture(points[columns])
    for place, score in enumerate(scores(models.confidence)):
        if place not in (1, _SCORES - 2):
            found = mixture.quantile(float(normal_share(score)))
            quantiles[*at, place] = np.where(wide[at], found, quantiles[*at, place])
    np.maximum.accumulate(quantiles, axis=-1, out=quantiles)


def as_normal(value: Values, low: Values, high: Values, confidence: float) -> Values:
    """Return quantiles of what is normal on either side of a value, [..., scores].

    Parameters
    ----------
    value, low, high : [...] with bands; a value without a band is sure, one that is NaN is nothing
    confidence : of the bands
    """
    share = scores(confidence) / _end(confidence)
    value, low, high = (column[..., None] for column in (value, low, high))
    with np.errstate(invalid="ignore", over="ignore"):
        # At the ends themselves no digit is to be lost.
        edge = np.where(share < 0, low, high)
        quantiles = np.where(np.abs(share) == 1, edge, value + np.abs(share) * (edge - value))
    quantiles = np.where(np.isnan(quantiles), value, quantiles)
    return np.nan_to_num(np.maximum(quantiles, 0.0), nan=0.0, posinf=np.inf)


def with_deviations(quantiles: Values, correlation: float) -> Values:
    """Return what adds up of rows, given their quantiles [..., scores].

    Parameters
    ----------
    correlation : between the errors of any two rows with narrow bands, 0 to 1
    """
    low, middle, high = quantiles[..., 1], quantiles[..., _SCORES // 2], quantiles[..., -2]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        decades = np.nan_to_num(np.log(high / low) / _DECADES, nan=0.0, posinf=np.inf) ** 2
        doubt = 1 - 1 / (1 + decades)
        alike = correlation + max(_ALIKE - correlation, 0.0) * doubt
        deviation = np.nan_to_num(np.stack([middle - low, high - middle], axis=-1), posinf=np.inf)
        common = np.sqrt(alike)[..., None] * deviation
        alone = (1 - alike)[..., None] * deviation**2
    return np.concatenate([quantiles, common, np.nan_to_num(alone, posinf=np.inf)], axis=-1)


def ends_of_sums(value: Values, added: Values, confidence: float) -> tuple[Values, Values]:
    """Return low and high of sums of predictions, which hold the value.

    Parameters
    ----------
    value : [...] sums of values
    added : [..., columns] sums of what `addable` returns of them
    confidence : of the bands
    """
    shape = np.shape(value)
    flat, columns = np.ravel(value), added.reshape(-1, added.shape[-1])
    low, high = np.empty((2, len(flat)))
    for start in range(0, len(flat), _CHUNK):
        part = slice(start, start + _CHUNK)
        below, above = _ends(columns[part], confidence)
        low[part], high[part] = np.minimum(below, flat[part]), np.maximum(above, flat[part])
    return low.reshape(shape), high.reshape(shape)


def _ends(added: Values, confidence: float) -> tuple[Values, Values]:
    """Return the outer quantiles of sums, [n]."""
    quantiles = np.maximum(added[:, :_SCORES], 0.0)
    usable = np.isfinite(quantiles).all(axis=1) & (quantiles[:, -1] > 0)
    end, ends = _end(confidence), []
    for which, (place, score) in enumerate(((1, -end), (_SCORES - 2, end))):
        common, alone = added[:, _SCORES + which], added[:, _SCORES + 2 + which]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            whole = np.abs(quantiles[:, place] - quantiles[:, _SCORES // 2])
            alike = np.nan_to_num((common**2 + alone) / whole**2, nan=1.0, posinf=1.0)
        found = quantiles[:, place].copy()
        several = usable & (alike < 1 - _NEGLIGIBLE)
        if several.any():
            alike = alike[several]
            at, table = _finely(scores(confidence), quantiles[several])
            centre, spread = np.sqrt(alike) * score, np.sqrt(1 - alike)
            found[several] = _mean_about(at, table, centre, spread)
        ends.append(found)
    return ends[0], ends[1]


def _end(confidence: float) -> float:
    return float(normal_quantile(0.5 + confidence / 2))


def _finely(at: Values, quantiles: Values) -> tuple[Values, Values]:
    """Return more scores, and the quantiles there, [n, scores], as lines of their logarithms."""
    share = np.arange(_PARTS) / _PARTS
    logs = np.log(np.maximum(quantiles, _NEGLIGIBLE * quantiles[:, -1:]))

    def between(columns: Values) -> Values:
        start, step = columns[..., :-1, None], np.diff(columns)[..., None]
        inner = (start + share * step).reshape(*columns.shape[:-1], _PARTS * (_SCORES - 1))
        return np.concatenate([inner, columns[..., -1:]], axis=-1)

    return between(at), np.exp(between(logs))


def _mean_about(at: Values, table: Values, centre: Values, spread: Values) -> Values:
    """Return means of tabled functions of a normal variable, [n].

    Functions are lines between the scores, and constant beyond.

    Parameters
    ----------
    at, table : [k] scores, and [n, k] functions there
    centre, spread : [n] mean and deviation of the variable, which is not 0
    """
    distance = (at - centre[:, None]) / spread[:, None]
    below, density = normal_share(distance), np.exp(-0.5 * distance**2) / np.sqrt(2 * np.pi)
    slope = np.diff(table) / np.diff(at)
    level = table[:, :-1] + slope * (centre[:, None] - at[:-1])
    inside = level * np.diff(below) - slope * spread[:, None] * np.diff(density)
    outside = table[:, 0] * below[:, 0] + table[:, -1] * (1 - below[:, -1])
    return np.asarray(inside.sum(axis=1) + outside)
