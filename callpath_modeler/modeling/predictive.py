"""Predictive distributions and prediction bands of models.

Each hypothesis of a row predicts a two-piece log-normal distribution. See
docs/explanation/noise-and-bands.md, 'Prediction and band'.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import HARDLY, LARGEST
from callpath_modeler.modeling.distributions import (
    Mixture,
    Prediction,
    normal_quantile,
    student_quantile,
)
from callpath_modeler.modeling.kernels import kernels
from callpath_modeler.modeling.model_columns import ModelColumns
from callpath_modeler.modeling.shapes import evaluate, peaks
from callpath_modeler.modeling.status import FitStatus


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
