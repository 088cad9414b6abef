"""Bands of models of the classic method.

See docs/explanation/modeling.md, 'The classic method'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.modeling.model_columns import ModelColumns
from callpath_modeler.modeling.shapes import evaluate
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.uncertainty import Prediction


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
