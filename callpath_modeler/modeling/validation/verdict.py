"""The honest answer: how probable it is that a growth is within limits, and which run would tell.

The published method chooses one growth and compares it. Here every hypothesis of the mixture counts
with its probability, so that an expectation is kept or broken only where the data say so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.status import FitStatus
from callpath_modeler.modeling.uncertainty import Mixture
from callpath_modeler.modeling.validation.limits import DeviationLimits

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

FURTHEST = 2.0**20
"""How many times the largest point a run is looked for that would decide."""

_PER_DOUBLING = 4
_CHUNK = 256


@dataclass(frozen=True, slots=True, eq=False)
class GrowthVerdicts:
    """What models say of limits of growth, in columns over n rows.

    Attributes
    ----------
    limits : Limits
        What the growth has to be within.
    below, within, above : ndarray [n]
        Probabilities of growth below, within and above the limits; NaN without a model.
    outside : ndarray [n]
        Where the law changes within the measurements, or no law explains them: probabilities are
        then those of laws that are known not to be all there is.
    kept, broken : ndarray [n]
        Where the data say so; where neither, they do not tell.
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
    """Tell which growths are within limits.

    An expectation is kept where the growth is within the limits with a probability of `confidence`
    or more, and broken where it is outside them with as much. Of a row outside the model class it
    is never kept, since the next change of its law is not foreseen; it is broken where it grows too
    fast even so, not because nothing grows beyond a step.

    Parameters
    ----------
    models : Models
        n rows. With the classic method probabilities are Akaike weights among the chosen model and
        its alternatives.
    limits : Limits
        What the growth has to be within.
    confidence : float, optional
        Between 0.5 and 1; by default that of the bands of the models.

    Returns
    -------
    Verdicts
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
    """Return how probable each of ``models.shapes.growths`` is, [n, growths]; 0 without a model."""
    rank, weight = _hypotheses(models)
    table = np.zeros((len(models), len(models.shapes.growths)))
    np.add.at(table, (np.arange(len(models))[:, None], rank), weight)
    return table


def _hypotheses(models: Models) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Return the growth of each hypothesis, a position in `growths`, [n, C]; its probability."""
    others = models.shapes.growth_rank(models.alternative_terms, models.alternative_coefficients)
    rank = np.concatenate([models.growth_rank()[:, None], others], axis=1)
    weight = np.concatenate([models.weight[:, None], models.alternative_weight], axis=1)
    # A row of zeros has no hypotheses to choose among: it is constant.
    weight[weight.sum(axis=1) == 0, 0] = 1.0
    weight = np.where(rank[:, :1] < 0, 0.0, weight)
    return rank, weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _sides(models: Models, limits: DeviationLimits) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Return on which side of the limits each hypothesis is, [n, C], and its probability."""
    rank, weight = _hypotheses(models)
    growths = models.shapes.growths
    side = np.zeros(len(growths), dtype=np.int8)
    # They ascend: as of `DeviationLimits.side`, with few comparisons.
    if limits.low is not None:
        side[: bisect_left(growths, limits.low)] = -1
    if limits.high is not None:
        side[bisect_right(growths, limits.high) :] = 1
    return side[rank], weight


def deciding_run(
    models: Models, limits: DeviationLimits, confidence: float | None = None
) -> FloatArray:
    """Return at which value of the parameter a run would tell whether limits are kept, [n].

    It is the smallest one, in quarters of a doubling, at which the hypotheses on either side of a
    limit predict bands that are apart. Hypotheses count together with those on the same side, and
    where they are as probable as half of what `confidence` leaves.

    Parameters
    ----------
    models : Models
        n rows; some milliseconds each.
    limits : Limits
        What the growth has to be within.
    confidence : float, optional
        As for `judge`; of the bands as well.

    Returns
    -------
    ndarray [n]
        Infinite where no run up to `FURTHEST` times the largest point would tell, as where hardly
        anything is probable but one side; NaN without a model, for rows outside the model class,
        whose law is to be found first, and with the classic method, which has no bands of
        hypotheses.
    """
    sure = models.confidence if confidence is None else confidence
    found = np.full(len(models), np.nan)
    inside = (models.status < FitStatus.TOO_FEW_POINTS) & (models.status != FitStatus.OUTSIDE)
    if models.method == "classic":
        return found
    steps = np.arange(1, int(np.log2(FURTHEST)) * _PER_DOUBLING + 1)
    scales = models.points[-1] * 2.0 ** (steps / _PER_DOUBLING)
    rows = np.flatnonzero(inside)
    for start in range(0, len(rows), _CHUNK):
        some = models.take(rows[start : start + _CHUNK])
        side, _ = _sides(some, limits)
        found[rows[start : start + _CHUNK]] = _deciding(some, side, scales, sure)
    return found


def deciding_run_of_value(
    models: Models, target: float, amount: float, confidence: float
) -> FloatArray:
    """Return at which value of the parameter a run would tell on which side of `amount` they are.

    As `deciding_run`, for the values at a finite target; no run beyond that is looked for.
    """
    found = np.full(len(models), np.nan)
    inside = (models.status < FitStatus.TOO_FEW_POINTS) & (models.status != FitStatus.OUTSIDE)
    steps = np.arange(1, int(np.log2(FURTHEST)) * _PER_DOUBLING + 1)
    scales = models.points[-1] * 2.0 ** (steps / _PER_DOUBLING)
    scales = scales[scales <= target]
    if models.method == "classic" or not len(scales) or not inside.any():
        return found
    some = models.take(inside)
    above = some.mixture(np.array([target])).centre[..., 0] > amount
    found[inside] = _deciding(some, above.astype(np.int8), scales, confidence)
    return found


def _deciding(
    models: Models, side: npt.NDArray[np.int8], scales: FloatArray, sure: float
) -> FloatArray:
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
    """Return the probability of some hypotheses, [n], and the band if they were all, [n, m]."""
    weight = np.where(members, mixture.weight, 0.0)
    share = weight.sum(axis=1)
    alone = replace(mixture, weight=weight / np.where(share > 0, share, 1.0)[:, None])
    return share, *alone.band(confidence)
