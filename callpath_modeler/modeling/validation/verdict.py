"""Verdicts on limits of growth with their probabilities, and the run that would decide.

The published method chooses one growth and compares it. Here every hypothesis of the mixture counts
with its probability. So an expectation is kept or broken only if the data decide.

See docs/explanation/expectations.md, 'The verdict'.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, Int64Array
from callpath_modeler.modeling.constants.validation import FURTHEST, PER_DOUBLING, VERDICT_CHUNK
from callpath_modeler.modeling.distributions import Mixture
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.validation.limits import DeviationLimits


@dataclass(frozen=True, slots=True, eq=False)
class GrowthVerdicts:
    """Verdicts on limits of growth, in columns over n rows.

    Attributes
    ----------
    limits : DeviationLimits
        The limits of the growth.
    below, within, above : ndarray [n]
        Probabilities of growth below, within and above the limits; NaN without a model.
    outside : ndarray [n]
        Whether the law changes within the measurements, or no law explains them. The probabilities
        are then those of incomplete laws.
    kept, broken : ndarray [n]
        Whether the limits are kept, and whether they are broken; if neither, the data do not
        decide.
    """

    limits: DeviationLimits
    below: FloatArray
    within: FloatArray
    above: FloatArray
    outside: BoolArray
    kept: BoolArray
    broken: BoolArray

    def __post_init__(self) -> None:
        """Make every column read-only."""
        for name in ("below", "within", "above", "outside", "kept", "broken"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.kept)


def judge(
    models: Models, limits: DeviationLimits, confidence: float | None = None
) -> GrowthVerdicts:
    """Return verdicts on the growths of models.

    An expectation is kept if the growth is within the limits with a probability of at least
    `confidence`. It is broken if the growth is outside of the limits with at least that
    probability. It is never kept for a row outside the model class, since the next change of its
    law is unknown. It is broken for such a row if the growth is too fast even so, but not because
    nothing grows beyond a step.

    Parameters
    ----------
    models : Models
        Models of n rows. With the classic method, probabilities are Akaike weights among the chosen
        model and its alternatives.
    limits : DeviationLimits
        The limits of the growth.
    confidence : float, optional
        Confidence between 0.5 and 1; by default that of the bands of the models.

    Returns
    -------
    GrowthVerdicts
        Rows without a model are neither kept nor broken.
    """
    sure = models.confidence if confidence is None else confidence
    side, weight = _sides(models, limits)
    modelled = models.status < FitStatus.TOO_FEW_POINTS
    below, within, above = (
        np.where(modelled, np.where(side == which, weight, 0.0).sum(axis=1), np.nan)
        for which in (-1, 0, 1)
    )
    outside = models.status == FitStatus.OUTSIDE
    kept = (within >= sure) & ~outside
    broken = np.where(outside, above, below + above) >= sure
    return GrowthVerdicts(limits, below, within, above, outside, kept, broken)


def growth_probabilities(models: Models) -> FloatArray:
    """Return the probability of each growth in ``models.shapes.growths``, [n, growths].

    A row without a model has probabilities of 0.
    """
    rank, weight = _hypotheses(models)
    table = np.zeros((len(models), len(models.shapes.growths)))
    np.add.at(table, (np.arange(len(models))[:, None], rank), weight)
    return table


def _hypotheses(models: Models) -> tuple[Int64Array, FloatArray]:
    """Return the growth of each hypothesis (a position in `growths`) and its weight, [n, C]."""
    others = models.shapes.growth_rank(models.alternative_terms, models.alternative_coefficients)
    rank = np.concatenate([models.growth_rank()[:, None], others], axis=1)
    weight = np.concatenate([models.weight[:, None], models.alternative_weight], axis=1)
    # A row of zeros has no hypotheses; it is constant.
    weight[weight.sum(axis=1) == 0, 0] = 1.0
    weight = np.where(rank[:, :1] < 0, 0.0, weight)
    return rank, weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _sides(models: Models, limits: DeviationLimits) -> tuple[Int8Array, FloatArray]:
    """Return the side of the limits of each hypothesis, and its probability, [n, C]."""
    rank, weight = _hypotheses(models)
    growths = models.shapes.growths
    side = np.zeros(len(growths), dtype=np.int8)
    # Growths ascend, so this is `DeviationLimits.side` with few comparisons.
    if limits.low is not None:
        side[: bisect_left(growths, limits.low)] = -1
    if limits.high is not None:
        side[bisect_right(growths, limits.high) :] = 1
    return side[rank], weight


def deciding_run(
    models: Models, limits: DeviationLimits, confidence: float | None = None
) -> FloatArray:
    """Return the value of the parameter at which a run would decide whether limits are kept, [n].

    It is the smallest value, in quarters of a doubling, at which the bands of hypotheses on either
    side of a limit do not overlap. Hypotheses on the same side count together, if they have at
    least half of the probability outside of `confidence`.

    Parameters
    ----------
    models : Models
        Models of n rows; some milliseconds each.
    limits : DeviationLimits
        The limits of the growth.
    confidence : float, optional
        As for `judge`; also the confidence of the bands.

    Returns
    -------
    ndarray [n]
        Infinite if no run up to `FURTHEST` times the largest point would decide, for example if
        only one side is probable. NaN for rows without a model, and for rows outside the model
        class, whose law has to be found first. NaN with the classic method, which has no bands of
        hypotheses.
    """
    sure = models.confidence if confidence is None else confidence
    found = np.full(len(models), np.nan)
    inside = (models.status < FitStatus.TOO_FEW_POINTS) & (models.status != FitStatus.OUTSIDE)
    if models.method == "classic":
        return found
    steps = np.arange(1, int(np.log2(FURTHEST)) * PER_DOUBLING + 1)
    scales = models.points[-1] * 2.0 ** (steps / PER_DOUBLING)
    rows = np.flatnonzero(inside)
    for start in range(0, len(rows), VERDICT_CHUNK):
        some = models.take(rows[start : start + VERDICT_CHUNK])
        side, _ = _sides(some, limits)
        found[rows[start : start + VERDICT_CHUNK]] = _deciding(some, side, scales, sure)
    return found


def deciding_run_of_value(
    models: Models, target: float, amount: float, confidence: float
) -> FloatArray:
    """Return the value of the parameter at which a run would decide whether rows exceed `amount`.

    As `deciding_run`, for the values at a finite target; runs beyond the target are not considered.
    """
    found = np.full(len(models), np.nan)
    inside = (models.status < FitStatus.TOO_FEW_POINTS) & (models.status != FitStatus.OUTSIDE)
    steps = np.arange(1, int(np.log2(FURTHEST)) * PER_DOUBLING + 1)
    scales = models.points[-1] * 2.0 ** (steps / PER_DOUBLING)
    scales = scales[scales <= target]
    if models.method == "classic" or not len(scales) or not inside.any():
        return found
    some = models.take(inside)
    above = some.mixture(np.array([target])).centre[..., 0] > amount
    found[inside] = _deciding(some, above.astype(np.int8), scales, confidence)
    return found


def _deciding(models: Models, side: Int8Array, scales: FloatArray, sure: float) -> FloatArray:
    mixture = models.mixture(scales)
    bands = [_band_of(mixture, side == which, sure) for which in (-1, 0, 1)]
    apart = np.ones((len(models), len(scales)), dtype=np.bool_)
    contested = np.zeros(len(models), dtype=np.bool_)
    for first, second in ((0, 1), (1, 2), (0, 2)):
        (one, one_low, one_high), (other, other_low, other_high) = bands[first], bands[second]
        both = np.minimum(one, other) >= (1 - sure) / 2
        apart &= (one_high < other_low) | (other_high < one_low) | ~both[:, None]
        contested |= both
    told = contested & apart.any(axis=1)
    return np.where(told, scales[apart.argmax(axis=1)], np.inf)


def _band_of(
    mixture: Mixture, members: BoolArray, confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probability of some hypotheses, [n], and the band of these alone, [n, m]."""
    weight = np.where(members, mixture.weight, 0.0)
    share = weight.sum(axis=1)
    alone = structs.replace(mixture, weight=weight / np.where(share > 0, share, 1.0)[:, None])
    return share, *alone.band(confidence)
