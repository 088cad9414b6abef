"""Bounds of numbers: broken if the whole band is beyond, met if the whole band is within."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.bands import Band, Total, propagate_errors
from callpath_modeler.analysis.expectations.budget import EvaluationBudget
from callpath_modeler.analysis.expectations.expectation import Bound, Criterion, CriterionKind
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.verdicts import (
    Judgement,
    SubjectVerdicts,
    Verdict,
)
from callpath_modeler.analysis.scales import scale_to_run
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.validation import deciding_run_of_value

_ROUNDING = 1e-6
"""Relative difference that breaks no bound, about the width of bands of exact counts."""

UNCLEAR = 0.02
"""Share of a cost without a model above which the cost cannot meet a bound."""


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


@dataclass(frozen=True, eq=False)
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
    def of(cls, sides: BoundSides, unmodelled: FloatArray, at_most: BoolArray | bool) -> BoundCheck:
        """Return the results of comparisons.

        Parameters
        ----------
        sides : the two sides, [n]
        unmodelled : [n] share of the cost of each subject without a model
        at_most : whether the bounds are upper ones
        """
        measured = np.broadcast_to(sides.beyond.measured, len(unmodelled))
        # What was measured needs no model.
        unmodelled = np.where(measured, 0.0, unmodelled)
        kept = sides.kept & (~np.asarray(at_most) | (unmodelled <= UNCLEAR))
        return cls(sides, measured, unmodelled, sides.broken, kept)

    @cached_property
    def is_open(self) -> BoolArray:
        """True if the data do not decide, [n]."""
        return ~(self.broken | self.kept)

    @cached_property
    def rows(self) -> list[tuple[Total, Total, float, bool]]:
        """Both sides, the share without a model, and whether they are measured, of each subject.

        A file has up to 10^5 bounds of one call path each: lists are read faster than arrays.
        """
        both = self.sides.left.rows(), self.sides.right.rows()
        return [*zip(*both, self.unmodelled.tolist(), self.measured.tolist(), strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """Numbers of subjects at a finite target, which bounds limit.

    Attributes
    ----------
    band : the numbers, [n]
    unmodelled : share of the cost of each subject without a model, [n]
    """

    band: Band
    unmodelled: FloatArray

    @classmethod
    def of(
        cls, subjects: Subjects, kind: CriterionKind, target: float, confidence: float
    ) -> Bounded:
        """Return numbers of subjects."""
        band = subjects.band(kind, target, confidence)
        if np.all(band.measured):
            return cls(band, np.zeros(len(subjects)))
        return cls(band, subjects.unmodelled())

    def take(self, places: IntArray) -> Bounded:
        """Return the numbers at some places."""
        return Bounded(self.band[places], self.unmodelled[places])

    def compared(self, bounds: Sequence[Bound]) -> BoundCheck:
        """Return comparisons with one bound for each number, or with one bound for all."""
        size = len(self.unmodelled)
        amount = np.broadcast_to(np.array([bound.amount for bound in bounds]), size)
        at_most = np.broadcast_to(np.array([bound.at_most for bound in bounds]), size)
        return BoundCheck.of(
            BoundSides.of_bounds(self.band, amount, at_most), self.unmodelled, at_most
        )


def judge_bound(
    bound: Bound,
    subjects: Subjects,
    target: float,
    confidence: float,
    compared: BoundCheck,
    places: IntArray,
    budget: EvaluationBudget,
) -> Judgement:
    """Return the judgement of a bound on value, share, excess work or loss at a finite target.

    Parameters
    ----------
    compared : results of comparisons, these subjects among them
    places : their places in it
    budget : work that the file may cause
    """
    found = _concluded(bound, compared, subjects, places, target=target, unit=bound.unit)
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
        curve = budget.curve(subjects, found.worst, points, confidence)
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
        crossing=budget.crossing(beyond, subjects.fitted.points),
        decides=decides,
    )


def _repetitions(found: Judgement, bound: Bound, subjects: Subjects) -> int | None:
    """Return the number of repetitions at the target that would decide."""
    assert found.target is not None
    assert found.found is not None
    point = subjects.measured.point(found.target)
    assert point is not None, "what is measured was run there"
    return subjects.measured.deciding_repetitions(point, found.found, bound.amount)


def judge_sides(
    criterion: Criterion,
    sides: BoundSides,
    subjects: Subjects,
    unmodelled: FloatArray,
    *,
    target: float,
    unit: str,
    at_most: bool,
) -> Judgement:
    """Return the judgement of two sides, [subjects], at a finite target.

    Parameters
    ----------
    unmodelled : [subjects] share of the cost without a model
    """
    compared = BoundCheck.of(sides, unmodelled, at_most)
    places = np.arange(len(subjects))
    return _concluded(criterion, compared, subjects, places, target=target, unit=unit)


def _concluded(
    criterion: Criterion,
    compared: BoundCheck,
    subjects: Subjects,
    places: IntArray,
    *,
    target: float,
    unit: str,
) -> Judgement:
    """Return the judgement of subjects from results in which they have some places."""
    broken, unsure, worst = compared.broken[places], compared.is_open[places], 0
    is_value = isinstance(criterion, Bound) and criterion.kind is CriterionKind.VALUE
    if len(subjects) > 1:
        far = np.nan_to_num(compared.sides.beyond.value[places], nan=-np.inf)
        worst = int(np.lexsort((far, unsure, broken))[-1])
    verdict = Verdict.BROKEN if broken.any() else Verdict.UNSURE if unsure.any() else Verdict.KEPT
    found, expected, unmodelled, measured = compared.rows[places[worst]]
    return Judgement(
        criterion,
        verdict,
        subjects.row(worst),
        judged=len(subjects),
        broken=int(broken.sum()),
        unsure=int(unsure.sum()),
        unmodelled=unmodelled,
        measured=measured,
        found=found,
        expected=expected,
        unit=unit,
        target=target,
        meaning=subjects.meaning(worst) if is_value else "",
        each=SubjectVerdicts(subjects.rows, broken, unsure),
    )
