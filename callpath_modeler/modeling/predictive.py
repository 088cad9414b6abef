"""Predictive distributions and prediction bands of models.

Each hypothesis of a row predicts a two-piece log-normal distribution. See
docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.arrays import FloatArray, Int16Array, IntArray
from callpath_modeler.modeling.compiled import bands as compiled_bands
from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.distributions import normal_quantile
from callpath_modeler.modeling.evaluation import peaks
from callpath_modeler.modeling.laws_before_change import LawsBeforeChange
from callpath_modeler.modeling.uncertainty import Mixture

if TYPE_CHECKING:
    from callpath_modeler.modeling.models import Models


_OUTER = 0.975
"""Quantile of the slope that gives the spread of a prediction."""
_DEVIATES = 1.959963984540054
"""Normal score of that quantile."""
_LARGEST = 1e100
"""Largest value of an exponential, which counts as infinite; its square is still a number."""

_CHUNK = 8192
"""Rows whose bands are computed together; their intermediate results stay in the cache."""

_HARDLY = 0.01
"""Total probability of hypotheses that hardly move a band, relative to that outside of it."""

_NEGLIGIBLE = 1e-6
"""Prediction of a hypothesis, relative to the largest one of the row, that counts as zero."""


def predictive_mixture(models: Models, p: FloatArray) -> Mixture:
    """Return the distributions of all rows at finite `p` [m].

    Each hypothesis predicts a value. Its spread combines the errors of the coefficients within
    their signs, and the deviation of measurements from the law, which grows with the distance.
    """
    shapes = _Shapes.of(models, p)
    if compiled():
        parts = compiled_bands.mixtures(models, p, (shapes.peak, shapes.at, shapes.inside))
        found = Mixture(*parts)
    else:
        found = _mixture(models, p, shapes)
    earlier = LawsBeforeChange.of(models, p)
    if earlier is not None:
        earlier.put(found.centre, earlier.values[:, None])
        for spread in (found.below, found.above):
            earlier.put(spread, models.spread[earlier.rows, None, None])
    return found


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Tables of the shapes, which all rows of an experiment share.

    Attributes
    ----------
    peak : [S + 1] largest magnitudes at the points
    at, inside : [S + 1, m] and [S + 1, K] shapes at the targets and at the points, relative to
        these
    """

    peak: FloatArray
    at: FloatArray
    inside: FloatArray

    @classmethod
    def of(cls, models: Models, p: FloatArray) -> _Shapes:
        every = models.shapes.table(np.concatenate([models.points, p]))
        inside, at = np.split(every, [len(models.points)], axis=1)
        peak = peaks(inside)
        return cls(peak, np.minimum(at / peak[:, None], _LARGEST), inside / peak[:, None])


def _mixture(models: Models, p: FloatArray, shapes: _Shapes) -> Mixture:
    codes = np.concatenate([models.terms[:, None, :2], models.alternative_terms], axis=1)
    numbers = np.concatenate([models.coefficients[:, None, :3], models.alternative_coefficients], 1)
    weight = np.concatenate([models.weight[:, None], models.alternative_weight], axis=1)
    weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    # Coefficients belong to shapes with peaks of 1, in the unit of the row, as errors do.
    numbers = numbers / models.unit[:, None, None]
    numbers[..., 1:] *= shapes.peak[codes]
    x, z = shapes.at[codes[..., 0]], shapes.at[codes[..., 1]]
    centre = numbers[..., :1] + numbers[..., 1:2] * x + numbers[..., 2:3] * z
    largest = centre.max(axis=1, initial=0.0)[:, None]
    centre = np.maximum(centre, _NEGLIGIBLE * largest)
    root = np.moveaxis(models.root, -1, 0).astype(np.float64)
    below, above = _by_covariance(centre, root, x, z)
    low, high = _by_slope(numbers, root, codes[..., 0], shapes.inside, x)
    level = _level_spread(numbers, root)[..., None]
    # Two shapes that are equal along a slice have no regression about a mean.
    alone = ((codes[..., 0] >= 0) & (codes[..., 1] < 0))[..., None] & (level < 1)
    below, above = (
        np.where(alone, np.hypot(_log_distance(centre, edge), level), whole)
        for edge, whole in ((low, below), (high, above))
    )
    beyond = np.log2(np.maximum(p / models.points[-1], 1.0))
    scatter = np.sqrt(models.spread[:, None] ** 2 + models.drift[:, None] * beyond)[:, None]
    centre *= models.unit[:, None, None]
    return Mixture(centre, np.hypot(below, scatter), np.hypot(above, scatter), weight)


def prediction_interval(models: Models, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of the bands of all rows at finite `p` [m], each [n, m].

    Alternatives that together would hardly move an end are left out.
    """
    low, high = _bands(models, p)
    earlier = LawsBeforeChange.of(models, p)
    if earlier is not None:
        reach = normal_quantile((1 + models.confidence) / 2) * models.spread[earlier.rows, None]
        earlier.put(low, earlier.values * np.exp(-reach))
        earlier.put(high, earlier.values * np.exp(reach))
    return low, high


def _bands(models: Models, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return as `prediction_interval`, with the laws beyond change points at all targets."""
    shapes, least = _Shapes.of(models, p), _HARDLY * (1 - models.confidence)
    if compiled():
        return compiled_bands.bands(models, p, (shapes.peak, shapes.at, shapes.inside), least)
    low, high = np.empty((2, len(models), len(p)))
    for start in range(0, len(models), _CHUNK):
        weight = models.alternative_weight[start : start + _CHUNK]
        counted = (weight[:, ::-1].cumsum(axis=1)[:, ::-1] > least).sum(axis=1)
        before = -1
        for count in sorted({0, 1, 3, weight.shape[1]}):
            rows = start + np.flatnonzero((counted > before) & (counted <= count))
            if rows.size:
                found = _mixture(_few(models, rows, count), p, shapes)
                low[rows], high[rows] = found.band(models.confidence)
            before = count
    return low, high


def _few(models: Models, rows: IntArray, count: int) -> Models:
    """Return the models of some rows with their first `count` alternatives."""
    some = models.take(rows)
    return replace(
        some,
        alternative_terms=some.alternative_terms[:, :count],
        alternative_coefficients=some.alternative_coefficients[:, :count],
        alternative_weight=some.alternative_weight[:, :count],
        root=some.root[:, : 1 + count],
    )


def _by_covariance(
    centre: FloatArray, root: FloatArray, x: FloatArray, z: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the spread of a linear combination of coefficients, as of a log-normal variable."""
    xx, xz, zz, xc, zc, cc = root[..., None]
    variance = (xx * x + xz * z + xc) ** 2 + (zz * z + zc) ** 2 + cc**2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = np.where(centre > 0, variance / centre**2, 0.0)
    # A prediction near zero below a step has the largest possible error. So has an error that is
    # NaN, or the band would be narrow.
    np.fmin(relative, np.finfo(float).max, out=relative)
    spread = np.sqrt(np.log1p(relative))
    return spread, spread


def _by_slope(
    numbers: FloatArray,
    root: FloatArray,
    code: Int16Array,
    inside: FloatArray,
    x: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return outer predictions of models with one shape, whose slope keeps its signs, [n, C, m].

    A regression is ``level + slope (x - at)`` with independent level and slope. The slope is normal
    between its bounds, which come from positive coefficients, or from positive values at all
    points.
    """
    constant, slope = numbers[..., 0], numbers[..., 1]
    at, spread = _about(root)
    level = constant + slope * at
    least, most = inside.min(axis=1)[code], inside.max(axis=1)[code]
    with np.errstate(divide="ignore", invalid="ignore"):
        no_constant = np.where(at > 0, level / at, np.inf)
        steepest = np.where(at > least, level / (at - least), np.inf)
        to_zero = np.where(most > at, -level / (most - at), -np.inf)
    rounding = 1e-9 * np.abs(level)
    offset, rising = constant < -rounding, slope < 0
    lowest = np.where(rising, to_zero, np.where(offset, no_constant, 0.0))
    highest = np.where(rising, 0.0, np.where(offset, steepest, no_constant))
    from scipy import special

    bounds = [special.ndtr((bound - slope) / spread) for bound in (lowest, highest)]
    edges = []
    for tail in (1 - _OUTER, _OUTER):
        share = bounds[0] + tail * (bounds[1] - bounds[0])
        edge = slope + spread * special.ndtri(np.clip(share, 1e-12, 1 - 1e-12))
        edge = np.minimum(np.maximum(edge, lowest), highest)
        # A slice may have no shape and a constant that is only rounding; these values are not used.
        with np.errstate(invalid="ignore"):
            edges.append(level[..., None] + edge[..., None] * (x - at[..., None]))
    return np.minimum(*edges), np.maximum(*edges)


def _about(root: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the shape of models with one shape, and the error of its slope, [n, C]."""
    spread = np.maximum(root[0], np.finfo(np.float32).tiny)
    return -root[3] / spread, spread


def _log_distance(centre: FloatArray, edge: FloatArray) -> FloatArray:
    """Return the standard deviation of the logarithm that puts `edge` at the outer quantile."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(np.log(np.maximum(edge, _NEGLIGIBLE * centre) / centre))
    return np.where(np.isfinite(distance), distance, 0.0) / _DEVIATES


def _level_spread(numbers: FloatArray, root: FloatArray) -> FloatArray:
    """Return the relative error of the level of models with one shape, [n, C]."""
    level = numbers[..., 0] + numbers[..., 1] * _about(root)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(level > 0, root[5] / level, 0.0)
