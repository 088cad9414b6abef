"""Bounds of numbers: broken if the whole band is beyond, met if the whole band is within."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.bands import Band, propagate_errors
from callpath_modeler.analysis.expectations.expectation import Bound, Criterion, CriterionKind
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.verdicts import (
    Crossing,
    Judgement,
    SubjectVerdicts,
    Verdict,
)
from callpath_modeler.analysis.scales import scale_to_run
from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.modeling.validation import deciding_run_of_value

_ROUNDING = 1e-6
"""Relative difference that breaks no bound, about the width of bands of exact counts."""

UNCLEAR = 0.02
"""Share of a cost without a model above which the cost cannot meet a bound."""

_FURTHEST = 2.0**20
"""Largest extrapolation factor in the search for the scale that breaks a bound."""

_PER_DOUBLING = 4
_FINER = 65


@dataclass(frozen=True, slots=True, eq=False)
class BoundSides:
    """Two sides of a comparison, and their difference; all of one shape.

    Attributes
    ----------
    left, right : the two sides
    beyond : their difference, positive if the bound is broken
    """

    left: Band
    right: Band
    beyond: Band

    @classmethod
    def of_bounds(cls, left: Band, amount: FloatArray, at_most: BoolArray | bool) -> BoundSides:
        """Return the sides of one bound for each value."""
        right, sign = Band(amount, amount, amount), np.where(at_most, 1.0, -1.0)
        return cls(left, right, propagate_errors(lambda parts: sign * (parts[0] - amount), [left]))

    @classmethod
    def of_bound(cls, left: Band, bound: Bound) -> BoundSides:
        """Return the sides of one bound for all values."""
        return cls.of_bounds(left, np.full_like(left.value, bound.amount), bound.at_most)

    @property
    def _slack(self) -> FloatArray:
        return _ROUNDING * np.maximum(np.abs(self.left.value), np.abs(self.right.value))

    @property
    def broken(self) -> BoolArray:
        """True if the whole band is beyond the bound; False without a model."""
        return np.asarray(self.beyond.low > self._slack)

    @property
    def kept(self) -> BoolArray:
        """True if the whole band is within the bound; False without a model."""
        return np.asarray(self.beyond.high <= self._slack)

    @property
    def verdict(self) -> Verdict:
        """The verdict on all comparisons."""
        if self.broken.any():
            return Verdict.BROKEN
        return Verdict.KEPT if self.kept.all() else Verdict.UNSURE


@dataclass(frozen=True, slots=True, eq=False)
class BoundCheck:
    """Comparisons at a target with their results, [n].

    Attributes
    ----------
    sides : the two sides
    measured : True if both sides are measured
    unmodelled : share of the cost without model or measurement
    broken, kept : verdicts; if both are False, the data do not decide
    """

    sides: BoundSides
    measured: BoolArray
    unmodelled: FloatArray
    broken: BoolArray
    kept: BoolArray

    @classmethod
    def of(cls, sides: BoundSides, subjects: Subjects, at_most: BoolArray | bool) -> BoundCheck:
        """Return the results of comparisons, [subjects]."""
        measured = np.broadcast_to(sides.beyond.measured, len(subjects))
        # What was measured needs no model.
        unmodelled = np.zeros(len(subjects))
        if not measured.all():
            unmodelled = np.where(measured, 0.0, subjects.unmodelled())
        kept = sides.kept & (~np.asarray(at_most) | (unmodelled <= UNCLEAR))
        return cls(sides, measured, unmodelled, sides.broken, kept)

    @classmethod
    def with_bounds(cls, bounds: Sequence[Bound], subjects: Subjects, band: Band) -> BoundCheck:
        """Return the results for subjects with one bound each."""
        amount = np.array([bound.amount for bound in bounds])
        at_most = np.array([bound.at_most for bound in bounds])
        return cls.of(BoundSides.of_bounds(band, amount, at_most), subjects, at_most)


def judge_bound(
    bound: Bound,
    subjects: Subjects,
    target: float,
    confidence: float,
    compared: BoundCheck | None = None,
    first: int = 0,
) -> Judgement:
    """Return the judgement of a bound on value, share, excess work or loss at a finite target.

    Parameters
    ----------
    compared : results of the comparison, if they exist already
    first : index of the first of these subjects among them
    """
    if compared is None:
        sides = BoundSides.of_bound(subjects.band(bound.kind, target, confidence), bound)
        compared = BoundCheck.of(sides, subjects, bound.at_most)
    found = _concluded(bound, compared, subjects, first, target=target, unit=bound.unit)
    if found.verdict is Verdict.KEPT or bound.kind not in {
        CriterionKind.VALUE,
        CriterionKind.SHARE,
    }:
        return found
    if found.verdict is Verdict.UNSURE and found.measured:
        found = replace(found, repetitions=_repetitions(found, bound, subjects))
    if bound.kind is not CriterionKind.VALUE:
        return found

    def beyond(points: FloatArray) -> Band:
        curve = subjects.curve(found.worst, points, confidence)
        return BoundSides.of_bound(curve, bound).beyond

    models, decides = subjects.fitted.models, None
    is_open = found.verdict is Verdict.UNSURE and not found.measured
    if is_open and found.worst is not None and not subjects.inclusive:
        worst = models.take([found.worst])
        run = float(deciding_run_of_value(worst, target, bound.amount, confidence)[0])
        # Beyond the target nobody runs to know what is there.
        decides = min(scale_to_run(models.points, run), target) if np.isfinite(run) else None
    return replace(
        found,
        crossing=crossing(beyond, subjects.fitted.points),
        decides=decides,
    )


def _repetitions(found: Judgement, bound: Bound, subjects: Subjects) -> int | None:
    """Return the number of repetitions at the target that would decide."""
    assert found.target is not None
    assert found.found is not None
    point = subjects.measured.point(found.target)
    assert point is not None, "what is measured was repeated there"
    return subjects.measured.deciding_repetitions(point, found.found, bound.amount)


def judge_sides(
    criterion: Criterion,
    sides: BoundSides,
    subjects: Subjects,
    *,
    target: float,
    unit: str,
    at_most: bool,
) -> Judgement:
    """Return the judgement of two sides, [subjects], at a finite target."""
    compared = BoundCheck.of(sides, subjects, at_most)
    return _concluded(criterion, compared, subjects, 0, target=target, unit=unit)


def _concluded(
    criterion: Criterion,
    compared: BoundCheck,
    subjects: Subjects,
    first: int,
    *,
    target: float,
    unit: str,
) -> Judgement:
    """Return the judgement of subjects from results in which they begin at `first`."""
    here, sides = slice(first, first + len(subjects)), compared.sides
    is_value = isinstance(criterion, Bound) and criterion.kind is CriterionKind.VALUE
    broken = compared.broken[here]
    unsure, worst = ~(broken | compared.kept[here]), 0
    if len(subjects) > 1:
        far = np.nan_to_num(sides.beyond.value[here], nan=-np.inf)
        worst = int(np.lexsort((far, unsure, broken))[-1])
    verdict = Verdict.BROKEN if broken.any() else Verdict.UNSURE if unsure.any() else Verdict.KEPT
    at = first + worst
    return Judgement(
        criterion,
        verdict,
        subjects.row(worst),
        judged=len(subjects),
        broken=int(broken.sum()),
        unsure=int(unsure.sum()),
        unmodelled=float(compared.unmodelled[at]),
        measured=bool(compared.measured[at]),
        found=sides.left.at(at),
        expected=sides.right.at(at),
        unit=unit,
        target=target,
        meaning=subjects.meaning(worst) if is_value else "",
        each=SubjectVerdicts(subjects.rows, broken, unsure),
    )


def crossing(beyond: Callable[[FloatArray], Band], points: FloatArray) -> Crossing:
    """Return the scale from which on a bound is probably broken, and the first one with certainty.

    Parameters
    ----------
    beyond : function that returns the difference of both sides at many scales
    points : measured scales, ascending
    """
    doublings = np.log2(_FURTHEST * points[-1] / points[0])
    grid = np.geomspace(points[0], _FURTHEST * points[-1], int(doublings * _PER_DOUBLING) + 2)
    found = beyond(grid)
    # Exponentials end where no number holds them.
    end = len(grid) if np.isfinite(found.value).all() else int(np.isfinite(found.value).argmin())
    within = np.flatnonzero(~(found.value[:end] > 0))
    first = int(within[-1]) + 1 if len(within) else 0
    if first == end:
        return Crossing(None, None)
    # Bands widen without end: what is sure at a scale is not sure at all that follow.
    surely = np.flatnonzero(found.low[first:end] > 0)
    return Crossing(
        _refined(grid, first, lambda p: beyond(p).value),
        _refined(grid, first + int(surely[0]), lambda p: beyond(p).low) if len(surely) else None,
    )


def _refined(grid: FloatArray, first: int, beyond: Callable[[FloatArray], FloatArray]) -> float:
    """Return the first scale beyond the bound, between two neighbours of the grid."""
    finer = np.geomspace(grid[max(first - 1, 0)], grid[first], _FINER)
    return float(finer[np.argmax(beyond(finer) > 0)])
