"""Predictive distributions, prediction bands, and quantiles of rows.

See docs/explanation/noise-and-bands.md, 'Prediction and band' and 'Sums'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr, ndtri

from callpath_modeler.arrays import FloatArray, Int16Array
from callpath_modeler.modeling.constants.bands import (
    ALIKE,
    COLUMNS,
    CORRELATIONS,
    DECADES,
    ENDS,
    LARGEST,
    SCORES,
    TOGETHER,
)
from callpath_modeler.modeling.constants.bands import (
    NEGLIGIBLE as NEGLIGIBLE_SHARE,
)
from callpath_modeler.modeling.constants.evidence import (
    DEVIATES,
    LEAST_SPREAD,
    NEGLIGIBLE,
    OUTER,
    STEPS,
)
from callpath_modeler.modeling.distributions import (
    Mixture,
    Prediction,
    as_normal,
    between,
    is_wide,
    normal_share,
    scores,
)
from callpath_modeler.modeling.model_columns import ModelColumns, ShapeTables


def exceedance(mixture: Mixture, value: FloatArray) -> FloatArray:
    """Return as `distributions.Mixture.exceedance`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.log(mixture.centre) - np.log(np.atleast_1d(value))[..., None, :]
    # If prediction and threshold are both zero, neither exceeds the other.
    return _share(mixture, np.where(np.isnan(distance), 0.0, distance), 1.0)


def _share(mixture: Mixture, distance: FloatArray, side: float) -> FloatArray:
    """Return the probability on one side of points, [n, m]: above (1) or below them (-1).

    `distance` [n, C, m] is that of the centres above the points, in logarithms.
    """
    spread = np.where(distance > 0, mixture.below, mixture.above)
    share = ndtr(side * distance / np.fmax(spread, LEAST_SPREAD))
    return np.asarray(np.einsum("nc,ncm->nm", mixture.weight, share))


def quantiles(mixture: Mixture, probabilities: FloatArray) -> FloatArray:
    """Return as `distributions.Mixture.quantiles`."""
    return np.stack([_quantile(mixture, each) for each in probabilities.tolist()])


def _quantile(mixture: Mixture, probability: float) -> FloatArray:
    """Return a quantile, [n, m].

    The quantile lies between the smallest and the largest quantile of all parts. This interval is
    halved until only rounding remains.
    """
    there = np.asarray(mixture.weight > 0)[..., None]
    centre = np.where(there, mixture.centre, 0.0)
    nothing = centre.max(axis=1, initial=0.0) == 0
    usable = np.asarray((np.isfinite(centre) & (centre > 0) | ~there).all(axis=1))
    usable &= there.any(axis=1)
    log = np.log(np.where(usable[:, None] & there, centre, 1.0))
    deviates = ndtri(probability)
    spread = np.fmax(mixture.below if deviates < 0 else mixture.above, LEAST_SPREAD)
    each = log + deviates * spread
    low = np.where(there, each, np.inf).min(axis=1)
    high = np.where(there, each, -np.inf).max(axis=1)
    for _ in range(STEPS if np.isfinite(deviates) else 0):
        with np.errstate(invalid="ignore"):
            middle = low + (high - low) / 2
        short = _share(mixture, log - middle[:, None], -1.0) < probability
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    found = np.exp(low)
    return np.where(nothing, 0.0, np.where(usable, found, np.inf))


def mixture(models: ModelColumns, p: FloatArray, shapes: ShapeTables) -> Mixture:
    """Return as `model_columns.predictive_mixture`, without change points."""
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
    centre = np.maximum(centre, NEGLIGIBLE * largest)
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
    scatter = models.spread[:, None] ** 2 + models.drift[:, None] * beyond
    scatter = np.sqrt(_counted(scatter[:, None], models.grain / models.unit, centre))
    return Mixture(
        centre * models.unit[:, None, None],
        np.hypot(below, scatter),
        np.hypot(above, scatter),
        weight,
    )


def _counted(scatter: FloatArray, counting: FloatArray, centre: FloatArray) -> FloatArray:
    """Return the squared deviation of measurements, [n, C, m], from laws that predict `centre`.

    `scatter` [n, 1, m] belongs to the largest value of a row, where chance contributes `counting`.
    """
    counting = counting[:, None, None]
    more = counting * (1 / np.maximum(centre, NEGLIGIBLE) - 1)
    return np.where(counting > 0, np.log1p(np.maximum(scatter + more, 0.0)), scatter)


def bands(
    models: ModelColumns, p: FloatArray, shapes: ShapeTables, least: float
) -> tuple[FloatArray, FloatArray]:
    """Return as `model_columns.prediction_interval`, without change points."""
    weight = models.alternative_weight
    counted = (weight[:, ::-1].cumsum(axis=1)[:, ::-1] > least).sum(axis=1)
    # The library gives few numbers of alternatives to a row, so that rows can share vectors.
    sizes = np.array(sorted({0, 1, 3, weight.shape[1]}))
    some = sizes[np.searchsorted(sizes, counted)]
    kept = np.arange(weight.shape[1]) < some[:, None]
    few = replace(
        models,
        alternative_weight=np.where(kept, weight, 0.0),
        alternative_coefficients=np.where(kept[..., None], models.alternative_coefficients, 0.0),
    )
    tail = (1 - models.confidence) / 2
    found = mixture(few, p, shapes)
    low, high = quantiles(found, np.array([tail, 1 - tail]))
    return low, high


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
    spread = np.sqrt(np.log1p(np.fmin(relative, np.finfo(float).max)))
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
    bounds = [ndtr((bound - slope) / spread) for bound in (lowest, highest)]
    edges = []
    for tail in (1 - OUTER, OUTER):
        share = bounds[0] + tail * (bounds[1] - bounds[0])
        edge = slope + spread * ndtri(np.clip(share, 1e-12, 1 - 1e-12))
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
        distance = np.abs(np.log(np.maximum(edge, NEGLIGIBLE * centre) / centre))
    return np.where(np.isfinite(distance), distance, 0.0) / DEVIATES


def _level_spread(numbers: FloatArray, root: FloatArray) -> FloatArray:
    """Return the relative error of the level of models with one shape, [n, C]."""
    level = numbers[..., 0] + numbers[..., 1] * _about(root)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(level > 0, root[5] / level, 0.0)


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
    floor = np.maximum(NEGLIGIBLE_SHARE * quantiles[:, -1:], np.finfo(float).tiny)
    return np.asarray(np.exp(between(np.log(np.maximum(quantiles, floor)))))
