"""Excess of guidelines at numbers of processes that were not measured.

The excess is the logarithm of the left side over the right side. Along log2 p it is a random walk:
each doubling adds a step, and the steps so far say nothing about the next one. Messages of similar
size have similar steps, and so have all guidelines about one function. So the excess at a target is
that at the largest measured p, smoothed over message sizes and guidelines (a Gaussian process).

The constants are those that predict best on pairs of campaigns, from one to four numbers of
processes to the next one: Open MPI on two cores, and three libraries in SMPI
(`benchmarks/guideline_predictions.py`). Twice or half of each constant predicts nearly as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.changes import SampleComparison
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.distributions import normal_quantile, normal_share
from cpmodel_guidelines.checks import GuidelineCheck, Setting, without
from cpmodel_guidelines.judge import GuidelineVerdicts

_BEND = 0.5
"""Excess up to which the scale is nearly linear. Beyond, it is nearly logarithmic, so that a factor
of 30 does not smooth into its neighbours."""
_LEVEL, _STEP = 0.13, 0.05
"""Variance of the excess at the smallest p, and of a step, shared with similar message sizes."""
_OWN_LEVEL, _OWN_STEP = 0.02, 0.02
"""The same for a single message size of a guideline."""
_REACH = 8.0
"""Distance of message sizes, in doublings, at which they share 37 % of the variance."""
_BY_MESSAGE = 0.4
"""Share of the variance that depends on the message of a process. The rest depends on that of all
processes: libraries select algorithms by one or the other."""
_ROUNDING = 1e-3
"""Least variance of a measured excess."""
_MOST_CELLS = 1000
"""Largest number of measured checks of one function: those at the largest p are kept. As many are
predicted at a time."""

LIKELY = (0.5, 0.8)
"""Probabilities from which a predicted violation is called likely, and very likely."""
_MARGIN = 2.0
"""Models of both sides decide if their error is smaller by this factor: bands of models over few
numbers of processes do not know of other algorithms."""
_FORESEEN, _LEAST, _SHARPNESS = 0.92, 0.46, 1.6
"""Probability of a violation by the distance of its excess, in errors: see `violation_chance`."""
_ONE_SIDED = 1.645


@dataclass(frozen=True, slots=True, eq=False)
class Excess:
    """Predicted excess of checks, [C]; NaN = unknown.

    Attributes
    ----------
    middle, low, high : median and ends of the band
    error : standard error of `middle` on the bent scale
    """

    middle: FloatArray
    low: FloatArray
    high: FloatArray
    error: FloatArray

    @classmethod
    def of_bent(cls, middle: FloatArray, error: FloatArray, confidence: float) -> Excess:
        """Return the excess with a normal distribution on the bent scale."""
        reach = float(normal_quantile(0.5 + confidence / 2)) * error
        return cls(unbent(middle), unbent(middle - reach), unbent(middle + reach), error)

    @classmethod
    def of_models(cls, found: SampleComparison, confidence: float) -> Excess:
        """Return the excess that models of both sides predict."""
        width = bent(found.high) - bent(found.low)
        error = width / 2 / float(normal_quantile(0.5 + confidence / 2))
        return cls(found.difference, found.low, found.high, error)

    def with_models(self, models: Excess) -> tuple[Excess, BoolArray]:
        """Return the excess, by models where they are clearly sharper, and where they are, [C]."""
        wins = models.error * _MARGIN < np.where(np.isnan(self.error), np.inf, self.error)
        columns = [(getattr(models, each.name), getattr(self, each.name)) for each in fields(self)]
        return Excess(*(np.where(wins, *pair) for pair in columns)), wins

    def verdicts(
        self,
        noise: FloatArray,
        tolerance: float,
        can_break: BoolArray,
        can_hold: BoolArray,
    ) -> GuidelineVerdicts:
        """Return the verdicts: violated if that is likelier than not, else as measured ones.

        Parameters
        ----------
        noise : [C] standard error of an excess that is measured; NaN = unknown
        tolerance : slowdown that is not a violation, as a fraction
        can_break, can_hold : [C] whether a check can show a violation, or that a guideline holds
        """
        with np.errstate(over="ignore"):
            factor, low, high = (np.exp(each) for each in (self.middle, self.low, self.high))
        share = np.where(can_break, self.violation_chance(noise, tolerance), np.nan)
        violated = share > LIKELY[0]
        holds = can_hold & (high <= 1 + tolerance) & ~violated
        rate = np.full_like(share, np.nan)
        return GuidelineVerdicts(factor, low, high, 1 - share, rate, violated, holds)

    def violation_chance(self, noise: FloatArray, tolerance: float) -> FloatArray:
        """Return the probability that a measurement shows a violation, [C].

        It has to be slower by the tolerance, and not by chance (one test at 5 %). Eight percent of
        the outcomes follow no prediction, such as another algorithm of the library. The shape was
        fitted to the same pairs of campaigns. Without the predicted machine, it is nearly the same.
        """
        shown = bent(np.fmax(np.log1p(tolerance), _ONE_SIDED * noise))
        distance = (bent(self.middle) - shown) / np.hypot(self.error, np.nan_to_num(noise))
        foreseen = normal_share(_SHARPNESS * (distance - _LEAST))
        return (1 - _FORESEEN) / 2 + _FORESEEN * foreseen


def bent(excess: FloatArray) -> FloatArray:
    """Return an excess on the bent scale."""
    return np.asarray(_BEND * np.arcsinh(excess / _BEND), float)


def unbent(excess: FloatArray) -> FloatArray:
    """Return an excess from the bent scale."""
    return np.asarray(_BEND * np.sinh(excess / _BEND), float)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Checks of one function as columns.

    Attributes
    ----------
    guideline : number of the guideline
    size, scale : logarithms of the message size and of the number of processes, to the base 2
    """

    guideline: NDArray[np.integer]
    size: FloatArray
    scale: FloatArray

    def take(self, rows: NDArray[np.integer]) -> _Cells:
        """Return the checks at `rows`."""
        return _Cells(*(getattr(self, each.name)[rows] for each in fields(self)))

    def covariance(self, other: _Cells, origin: float) -> FloatArray:
        """Return the covariance of the excess with that of other checks."""
        steps = np.minimum(self.scale[:, None], other.scale) - origin
        apart = np.abs(self.size[:, None] - other.size)
        whole = np.abs((self.size + self.scale)[:, None] - (other.size + other.scale))
        near = _BY_MESSAGE * np.exp(-apart / _REACH)
        near += (1 - _BY_MESSAGE) * np.exp(-whole / _REACH)
        same = self.guideline[:, None] == other.guideline
        own = (same & (apart == 0)) * (_OWN_LEVEL + _OWN_STEP * steps)
        found: FloatArray = (1 + same) / 2 * near * (_LEVEL + _STEP * steps) + own
        return found


def pooled_excess(
    measured: Sequence[GuidelineCheck],
    verdicts: GuidelineVerdicts,
    checks: Sequence[GuidelineCheck],
    axes: tuple[int, int | None],
    confidence: float,
) -> tuple[Excess, FloatArray]:
    """Return the excess of checks at numbers of processes that were not measured, and its noise.

    A guideline has to be measured with the same message size at another number of processes.

    Parameters
    ----------
    measured : measured checks
    verdicts : verdicts on them, with their intervals
    checks : predicted checks
    axes : index of the number of processes, and of the message size, in settings
    confidence : level of the intervals
    """
    every = [*measured, *checks]
    functions = _numbers([(c.group, c.left.row, _others(c.left.setting, axes)) for c in every])
    cells = _Cells(
        _numbers([(c.guideline, c.group) for c in every]),
        np.log2([max(_value(c.left.setting, axes[1]), 0.5) for c in every]),
        np.log2([_value(c.left.setting, axes[0]) for c in every]),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(verdicts.factor)
        reach = np.log(verdicts.high / verdicts.low) / 2
    variance = (reach / float(normal_quantile(0.5 + confidence / 2))) ** 2
    known = np.flatnonzero(np.isfinite(excess) & np.isfinite(variance))
    targets = np.arange(len(measured), len(every))
    middle, error, noise = np.full((3, len(checks)), np.nan)
    if not len(known) or not len(targets):
        return Excess.of_bent(middle, error, confidence), noise
    pairs = _numbers(list(zip(cells.guideline, cells.size, strict=True)))
    targets = targets[np.isin(pairs[targets], pairs[known])]
    origin, mean = float(cells.scale.min()), float(np.median(bent(excess[known])))
    for function in np.unique(functions[targets]):
        there = targets[functions[targets] == function]
        here = known[functions[known] == function]
        here = here[np.argsort(-cells.scale[here], kind="stable")][:_MOST_CELLS]
        of = cells.take(here)
        own = of.covariance(of, origin)
        own += np.diag(variance[here] / (1 + (excess[here] / _BEND) ** 2) + _ROUNDING)
        for part in np.array_split(there, 1 + len(there) // _MOST_CELLS):
            at, rows = cells.take(part), part - len(measured)
            common = of.covariance(at, origin)
            weights = np.linalg.solve(own, common)
            middle[rows] = mean + weights.T @ (bent(excess[here]) - mean)
            alone = _LEVEL + _OWN_LEVEL + (_STEP + _OWN_STEP) * (at.scale - origin)
            error[rows] = np.sqrt(np.maximum(alone - (weights * common).sum(axis=0), 0.0))
    # A check is about as noisy as at the largest measured p: the geometric mean of its own noise
    # there and of the typical one.
    last = known[cells.scale[known] == cells.scale[known].max()]
    typical = float(np.median(variance[last]))
    own_noise = np.full(int(pairs.max()) + 1, typical)
    own_noise[pairs[last]] = variance[last]
    noise = (own_noise[pairs[len(measured) :]] * typical) ** 0.25
    return Excess.of_bent(middle, error, confidence), noise


def _numbers(keys: Sequence[object]) -> NDArray[np.integer]:
    """Return a number for each key, equal for equal keys."""
    order = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    return np.array([order[key] for key in keys], np.intp)


def _value(setting: Setting, axis: int | None) -> float:
    return 1.0 if axis is None else setting[axis]


def _others(setting: Setting, axes: tuple[int, int | None]) -> Setting:
    """Return the values of the other parameters."""
    for axis in sorted((each for each in axes if each is not None), reverse=True):
        setting = without(setting, axis)
    return setting
