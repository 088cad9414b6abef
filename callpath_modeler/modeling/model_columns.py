"""Columns of the models of many rows, the status of a fit, and prediction bands.

They are in single precision, for coefficients of moderate size: those of shapes divided by their
largest magnitude at the points, in the unit of the row. Unlike a covariance, a root stays precise
where coefficients nearly compensate each other. It separates the level and the slope of a
regression on one shape.

Each hypothesis of a row predicts a two-piece log-normal distribution. See
docs/explanation/noise-and-bands.md, 'Prediction and band'.

See docs/explanation/architecture.md, 'Types, in the order of the data flow'.

See docs/explanation/noise-and-bands.md, 'Prediction and band'.

See docs/explanation/modeling.md, 'The method in one page'.

See docs/explanation/architecture.md, 'Processes and threads'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from itertools import combinations_with_replacement
from math import isqrt
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import (
    BoolArray,
    Float32Array,
    FloatArray,
    Int8Array,
    Int16Array,
    IntArray,
    give_back_pages,
    rows_of,
)
from callpath_modeler.modeling.constants.evidence import HARDLY, LARGEST
from callpath_modeler.modeling.distributions import (
    Mixture,
    Prediction,
    normal_quantile,
    student_quantile,
)
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.repetitions import Centre
from callpath_modeler.modeling.shapes import Shapes, evaluate, peaks
from callpath_modeler.modeling.terms import SearchSpace

METHODS = ("mixture", "classic")
"""Methods of modelling: a probability for every hypothesis, or one choice by cross-validation."""

MIN_POINTS = {"mixture": 3, "classic": 4}
"""Smallest number of points with a value that a model of each method needs."""


@dataclass(frozen=True, slots=True, eq=False)
class ModelColumns:
    """Columns of models, one model per row of n; T is the largest number of terms.

    Attributes
    ----------
    space : SearchSpace
        The search space of the models.
    shapes : Shapes
        The shapes that codes stand for, slowest growth first.
    method : str
        One of `METHODS`.
    aggregate : str
        The centre of repetitions that was modelled.
    points : ndarray [K] or [K, D]
        The points of the experiment, ascending. Models in D parameters have values and formulas.
        All other results need a slice, with all parameters but one held, from
        `lines.slices.slice_along`.
    confidence : float
        Confidence of the bands.
    correlation : float
        Correlation between the errors of rows: 0 = independent, 1 = the same.
    odd_scale : tuple of tuple and float, or None
        The point, if any, at which nearly all rows are off by one factor, judged by the other
        points: its value of each parameter (None = all values), and the factor. The point has
        little weight.
    grain : float
        Variance of a measured centre by chance per unit of its expectation, in the unit of the
        metric, for counts by chance such as samples; 0 = none.
    terms : ndarray [n, T] of int16
        Positions in ``shapes``, slowest growth first; -1 = unused.
    coefficients : ndarray [n, T + 1]
        The constant, then one coefficient per term, in the unit of the metric; NaN without a model.
    covariance : ndarray [n, T + 1, T + 1]
        Covariance of the coefficients, in squared units of the metric, with the classic method;
        [n, 0, 0] with the mixture method, which keeps `root`.
    spread : ndarray [n]
        Relative standard deviation of a measured centre about the model, at the largest point; at
        the largest value if `grain` is above 0.
    drift : ndarray [n]
        Relative variance that is added per doubling of the parameter beyond.
    dof : ndarray [n]
        Degrees of freedom of `spread`.
    cv_error : ndarray [n]
        Cross-validated relative error (root mean square), 0.03 = 3 %.
    r2, adjusted_r2, rss : ndarray [n]
        R^2, adjusted R^2 and sum of squares of the relative residuals.
    noise : ndarray [n]
        Relative standard deviation of one repetition; NaN without repetitions.
    status : ndarray [n] of int8
        Codes of `FitStatus`.
    used : ndarray [n] of int16
        Number of points with a value.
    since : ndarray [n]
        First point that follows the model, if an earlier law holds for smaller values of the
        parameter; 0 if the model holds for all values.
    before : ndarray [n] of int16
        The shape of the law before `since`; -1 = none.
    before_coefficients : ndarray [n, 2]
        The constant and the coefficient of that law, in the unit of the metric.
    low_p, high_p : ndarray [n]
        Smallest and largest point with a value; NaN with several parameters.
    weight : ndarray [n]
        Probability of the model; with the classic method its Akaike weight among itself and its
        alternatives.
    alternative_terms, alternative_coefficients, alternative_weight : ndarray [n, A, ...]
        The alternatives, most probable first; a weight of 0 = none. Of D parameters, the first A /
        D belong to slices along the first parameter, and so on; each set represents all hypotheses.
    unit : ndarray [n]
        The unit of `root`: the largest value of each row, in the unit of the metric.
    root : ndarray [n, 1 + A, 6] of float32
        Errors of the coefficients of the model and its alternatives, with the mixture method: roots
        of their covariances, see `roots`; [n, 0, 6] with the classic method.
    """

    space: SearchSpace
    shapes: Shapes
    method: str
    aggregate: Centre
    points: FloatArray
    confidence: float
    correlation: float
    odd_scale: tuple[tuple[float | None, ...], float] | None
    grain: float
    terms: Int16Array
    coefficients: FloatArray
    covariance: FloatArray
    spread: FloatArray
    drift: FloatArray
    dof: FloatArray
    cv_error: FloatArray
    r2: FloatArray
    adjusted_r2: FloatArray
    rss: FloatArray
    noise: FloatArray
    status: Int8Array
    used: Int16Array
    since: FloatArray
    before: Int16Array
    before_coefficients: FloatArray
    low_p: FloatArray
    high_p: FloatArray
    weight: FloatArray
    alternative_terms: Int16Array
    alternative_coefficients: FloatArray
    alternative_weight: npt.NDArray[np.floating]
    unit: FloatArray
    root: Float32Array

    def __post_init__(self) -> None:
        """Make every column read-only."""
        for name in ("points", *column_names()):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.status)

    def take(self, rows: npt.ArrayLike | slice) -> Self:
        """Return the models of some rows.

        Parameters
        ----------
        rows : array_like of int or bool, or slice
            Row numbers or a mask; a slice copies nothing.

        Returns
        -------
        Self
            The models, in this order.
        """
        wanted = rows if isinstance(rows, slice) else np.asarray(rows)
        if not isinstance(wanted, slice) and wanted.size == 0:
            wanted = wanted.astype(np.intp)
        columns: dict[str, Any] = {
            name: rows_of(getattr(self, name), wanted) for name in column_names()
        }
        return replace(self, **columns)

    def give_back(self) -> None:
        """Give the memory of columns in mapped files back to the system, after a pass over them."""
        give_back_pages(getattr(self, name) for name in column_names())

    def spread_at(self, values: FloatArray) -> FloatArray:
        """Return the relative standard deviation of measured centres with expectations, [n].

        Without counts by chance, this is `spread`.
        """
        if not self.grain:
            return self.spread
        more = self.grain * (1 / np.maximum(values, self.grain) - 1 / self.unit)
        return np.asarray(np.sqrt(np.maximum(self.spread**2 + more, 0.0)))

    @property
    def axes(self) -> int:
        """Number of parameters of the models."""
        return 1 if self.points.ndim == 1 else self.points.shape[1]


def column_names() -> tuple[str, ...]:
    """Return the names of the fields of `ModelColumns` that are columns over rows."""
    names = [field.name for field in fields(ModelColumns)]
    return tuple(names[names.index("terms") :])


def numbers_of_root(terms: int) -> int:
    """Return how many numbers the root of a model with `terms` terms has."""
    return (terms + 1) * (terms + 2) // 2


def roots(covariance: FloatArray) -> FloatArray:
    """Return roots [..., E] of covariances [E, ...]: cc, cf, cs, ff, fs, ss for two terms.

    Here c is the constant, f and s are the coefficients of the first and the second shape. A root
    is a lower triangle by rows, in the order f, s, c. The covariance is the root times its
    transpose.
    """
    size = _size(len(covariance))
    places = combinations_with_replacement(range(size), 2)
    upper = dict(zip(places, covariance, strict=True))
    order = (*range(1, size), 0)
    lower: dict[tuple[int, int], FloatArray] = {}
    for j, column in enumerate(order):
        square = upper[column, column]
        for k in range(j):
            square = square - lower[j, k] ** 2
        lower[j, j] = np.sqrt(np.maximum(square, 0.0))
        per = np.divide(1.0, lower[j, j], out=np.zeros_like(square), where=lower[j, j] > 0)
        for i in range(j + 1, size):
            left = upper[min(order[i], column), max(order[i], column)]
            for k in range(j):
                left = left - lower[i, k] * lower[j, k]
            lower[i, j] = left * per
    return np.stack([lower[i, j] for i in range(size) for j in range(i + 1)], axis=-1)


def with_more_terms(root: Float32Array, terms: int) -> Float32Array:
    """Return roots of models with `terms` terms; the added terms have no error."""
    before = _size(root.shape[-1])
    found = np.zeros((*root.shape[:-1], numbers_of_root(terms)), dtype=np.float32)
    row, column = np.tril_indices(before)
    # The constant comes last.
    row = np.where(row == before - 1, terms, row)
    column = np.where(column == before - 1, terms, column)
    found[..., row * (row + 1) // 2 + column] = root
    return found


def _size(numbers: int) -> int:
    """Return how many coefficients belong to a root of so many numbers."""
    return (isqrt(8 * numbers + 1) - 1) // 2


def covariances(root: npt.NDArray[np.floating], codes: Int16Array, peak: FloatArray) -> FloatArray:
    """Return the covariances of roots, [..., T + 1, T + 1], the constant first.

    They belong to coefficients in the unit of the row, of the shapes without scaling.

    Parameters
    ----------
    root : ndarray [..., E]
        The roots.
    codes : ndarray [..., T]
        The shapes.
    peak : ndarray [S + 1]
        Their largest magnitudes at the points, as returned by `peaks`.
    """
    size = codes.shape[-1] + 1
    lower = np.zeros((*root.shape[:-1], size, size))
    lower[..., *np.tril_indices(size)] = root
    lower[..., :-1, :] /= peak[codes][..., None]
    lower = np.roll(lower, 1, axis=-2)
    return np.asarray(lower @ lower.swapaxes(-1, -2))


def roots_of(covariance: FloatArray, codes: Int16Array, peak: FloatArray) -> FloatArray:
    """Return the roots of covariances, the inverse of `covariances`."""
    size = np.ones(covariance.shape[:-1])
    size[..., 1:] = peak[codes]
    scaled = covariance * size[..., None] * size[..., None, :]
    upper = np.triu_indices(codes.shape[-1] + 1)
    return roots(np.moveaxis(scaled[..., *upper], -1, 0))


def rescaled(
    root: Float32Array, codes: Int16Array, before: FloatArray, after: FloatArray
) -> Float32Array:
    """Return roots [..., E] for shapes whose peaks [S + 1] change from `before` to `after`."""
    size = codes.shape[-1] + 1
    factor = np.ones((*codes.shape[:-1], size))
    factor[..., :-1] = (after / before)[codes]
    row, _ = np.tril_indices(size)
    return (root * factor[..., row]).astype(np.float32)


class FitStatus(IntEnum):
    """The status of a fit; every row has one."""

    OK = 0
    CONSTANT = 1
    ZERO = 2
    NOISY = 3
    OUTSIDE = 4
    TOO_FEW_POINTS = 5
    NON_FINITE = 6
    NEGATIVE = 7

    @property
    def sentence(self) -> str:
        """The meaning of the status, for people."""
        return _SENTENCES[self]

    @property
    def modelled(self) -> bool:
        """Whether a row of this status has a model that predicts."""
        return self < FitStatus.TOO_FEW_POINTS


_SENTENCES: Mapping[FitStatus, str] = {
    FitStatus.OK: "Growth that noise does not explain; the errors tell how well the model fits.",
    FitStatus.CONSTANT: "The value does not change with the parameter, as far as noise shows.",
    FitStatus.ZERO: "The value is zero everywhere.",
    FitStatus.NOISY: "Repetitions differ by more than 25 %; growth could hide behind the noise.",
    FitStatus.OUTSIDE: "No model of the class explains the measurements within their noise; "
    "the best one is given.",
    FitStatus.TOO_FEW_POINTS: "Too few points have a value; no model.",
    FitStatus.NON_FINITE: "A value is infinite, or their sum is; no model.",
    FitStatus.NEGATIVE: "A value is below zero; no model.",
}
"""Meaning of each status."""

Part = TypeVar("Part")
Result = TypeVar("Result")


class MapLike(Protocol):
    """The builtin `map`, or a map that works on several parts at a time."""

    def __call__(
        self, function: Callable[[Part], Result], parts: Iterable[Part], /
    ) -> Iterable[Result]:
        """Return the result of `function` for each part, in the order of the parts.

        Parameters
        ----------
        function : keeps no state between parts, and may run in several at a time; it and its
            results can be pickled
        parts : parts that are made on demand
        """
        ...


class LawsBeforeChange(Struct, frozen=True):
    """Values of the earlier laws of some rows.

    Attributes
    ----------
    rows : [r] rows with a change point
    where : [r, m] whether a target lies before the change point
    values : [r, m] values of the earlier laws there, in the unit of the metric; never negative
    """

    rows: IntArray
    where: BoolArray
    values: FloatArray

    @classmethod
    def of(cls, models: ModelColumns, p: FloatArray) -> Self | None:
        """Return the earlier laws at `p` [m]; None if no target lies before a change point."""
        if p.ndim > 1:
            return None
        rows = np.flatnonzero(models.since > p.min(initial=np.inf))
        if not rows.size:
            return None
        constant, slope = models.before_coefficients[rows].T[..., None]
        shape = models.shapes.table(p)[models.before[rows]]
        with np.errstate(invalid="ignore"):
            # A coefficient of zero times an infinite shape is zero.
            part = np.where(slope == 0, 0.0, slope * shape)
        return cls(rows, p < models.since[rows, None], np.maximum(constant + part, 0.0))

    def put(self, column: FloatArray, values: FloatArray) -> None:
        """Write `values`, which broadcast against [r, C, m], into a column [n, C, m] or [n, m]."""
        where = self.where if column.ndim < 3 else self.where[:, None]
        column[self.rows] = np.where(where, values, column[self.rows])


class ShapeTables(Struct, frozen=True):
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
    def of(cls, models: ModelColumns, p: FloatArray) -> ShapeTables:
        """Return the shapes of models at targets `p` [m]."""
        every = models.shapes.table(np.concatenate([models.points, p]))
        inside, at = np.split(every, [len(models.points)], axis=1)
        peak = peaks(inside)
        return cls(peak, np.minimum(at / peak[:, None], LARGEST), inside / peak[:, None])


def predictive_mixture(models: ModelColumns, p: FloatArray) -> Mixture:
    """Return the distributions of all rows at finite `p` [m].

    Each hypothesis predicts a value. Its spread combines the errors of the coefficients within
    their signs, and the deviation of measurements from the law, which grows with the distance.
    """
    found: Mixture = kernels().mixture(models, p, ShapeTables.of(models, p))
    earlier = LawsBeforeChange.of(models, p)
    if earlier is not None:
        earlier.put(found.centre, earlier.values[:, None])
        for spread in (found.below, found.above):
            earlier.put(spread, models.spread[earlier.rows, None, None])
    return found


def prediction_interval(models: ModelColumns, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of the bands of all rows at finite `p` [m], each [n, m].

    Alternatives that together would hardly move an end are left out.
    """
    least = HARDLY * (1 - models.confidence)
    low, high = kernels().bands(models, p, ShapeTables.of(models, p), least)
    earlier = LawsBeforeChange.of(models, p)
    if earlier is not None:
        reach = normal_quantile((1 + models.confidence) / 2) * models.spread[earlier.rows, None]
        earlier.put(low, earlier.values * np.exp(-reach))
        earlier.put(high, earlier.values * np.exp(reach))
    return low, high


def classic_band(models: ModelColumns, p: FloatArray) -> Prediction:
    """Return predictions of n rows with bands, at `p` [m], infinity allowed.

    Alternatives that the data do not exclude widen the bands. The value at the largest point widens
    the band of a row outside the model class, since nothing may change beyond that point.
    """
    value = evaluate(models.shapes, models.terms, models.coefficients, p)
    others = [
        evaluate(
            models.shapes,
            models.alternative_terms[:, slot],
            models.alternative_coefficients[:, slot],
            p,
        )
        for slot in range(models.alternative_weight.shape[1])
    ]
    outside = (models.status == FitStatus.OUTSIDE)[:, None]
    table = models.shapes.table(p)
    shapes = np.concatenate([np.ones((len(models), 1, len(p))), table[models.terms]], axis=1)
    return prediction_band(
        value,
        shapes,
        models.covariance,
        models.spread,
        models.dof,
        np.stack([*others, _halted(models, p)], axis=1),
        np.concatenate([_counted(models), outside], axis=1),
        models.confidence,
    )


def _halted(models: ModelColumns, p: FloatArray) -> FloatArray:
    """Return predictions as if nothing changed beyond the largest point."""
    at_points = evaluate(models.shapes, models.terms, models.coefficients, models.points)
    last = np.searchsorted(models.points, models.high_p).clip(0, len(models.points) - 1)
    end = np.take_along_axis(at_points, last[:, None], axis=1)
    inside = evaluate(models.shapes, models.terms, models.coefficients, p)
    return np.where(p > models.high_p[:, None], end, inside)


def _counted(models: ModelColumns) -> BoolArray:
    """Return which alternatives widen the band, [n, A]."""
    best = np.maximum(models.weight, models.alternative_weight.max(axis=1, initial=0.0))
    # With more confidence, less likely alternatives count.
    likely = models.alternative_weight >= (1 - models.confidence) * best[:, None]
    # A row outside the class has no right model, so every alternative counts.
    likely |= (models.status == FitStatus.OUTSIDE)[:, None]
    return np.asarray(likely & (models.alternative_weight > 0))


def prediction_band(
    value: FloatArray,
    shapes: FloatArray,
    covariance: FloatArray,
    spread: FloatArray,
    dof: FloatArray,
    alternatives: FloatArray,
    counted: BoolArray,
    confidence: float,
) -> Prediction:
    """Return predictions with bands.

    The half width is Student's t times the root of the sum of two variances. One is that of the
    model at the target (its leverage there), the other that of a measured centre about the model.
    The band is then widened to hold the predictions of the alternatives that count.

    Parameters
    ----------
    value : ndarray [n, m]
        Predictions.
    shapes : ndarray [n, q, m]
        Shapes at the targets, which the coefficients multiply.
    covariance : ndarray [n, q, q]
        Covariance of the coefficients.
    spread, dof : ndarray [n]
        Relative standard deviation of a centre, and its degrees of freedom.
    alternatives : ndarray [n, a, m]
        Predictions of the alternatives.
    counted : ndarray [n, a]
        Whether an alternative widens the band.
    confidence : float
        Confidence between 0 and 1.

    Returns
    -------
    Prediction
        Low is clipped at zero.
    """
    quantile = student_quantile(np.maximum(dof, 1.0), 0.5 + confidence / 2)[:, None]
    with np.errstate(invalid="ignore", over="ignore"):
        variance = np.einsum("nqm,nqm->nm", covariance @ shapes, shapes)
        variance = np.maximum(variance, 0.0) + (spread[:, None] * value) ** 2
        reach = quantile * np.sqrt(variance)
        low, high = value - reach, value + reach
    # At infinity the band of a growing model has no upper end, and its lower end is zero.
    low = np.where(np.isfinite(low), low, np.where(np.isnan(value), np.nan, 0.0))
    high = np.where(np.isnan(high) & ~np.isnan(value), np.inf, high)
    seen = counted[..., None]
    low = np.minimum(low, np.where(seen, alternatives, np.inf).min(axis=1, initial=np.inf))
    high = np.maximum(high, np.where(seen, alternatives, -np.inf).max(axis=1, initial=-np.inf))
    return Prediction(value, np.maximum(low, 0.0), high)
