"""Evaluation of many similar expectations at once.

A file of `cpmodel baseline` has an expectation for each call path. Ten thousand evaluations of one
row each take ten thousand times as long as one evaluation of all rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from callpath_modeler.analysis.expectations.bound_check import BoundCheck
from callpath_modeler.analysis.expectations.expectation import (
    Bound,
    Criterion,
    CriterionKind,
    GrowthLimit,
)
from callpath_modeler.analysis.expectations.growth_check import GrowthCheck
from callpath_modeler.analysis.expectations.subjects import Subjects


@dataclass(frozen=True, slots=True, eq=False)
class CriterionQuery:
    """One criterion of an expectation.

    Attributes
    ----------
    criterion : growth limit or bound
    subjects : subjects in one metric
    target : scale; None = at infinity
    confidence : confidence of each verdict
    """

    criterion: Criterion
    subjects: Subjects
    target: float | None
    confidence: float

    @property
    def alike(self) -> Hashable:
        """Key of criteria that can be evaluated together; None = evaluated alone."""
        subjects, criterion = self.subjects, self.criterion
        if len(subjects) != 1 or subjects.rows is None or subjects.inclusive:
            return None
        if isinstance(criterion, GrowthLimit):
            return subjects.measured, criterion.limits, self.confidence
        if isinstance(criterion, Bound) and criterion.kind is CriterionKind.VALUE:
            return subjects.measured, self.target, self.confidence
        return None


@dataclass(frozen=True, slots=True, eq=False)
class BatchResults:
    """Results of many criteria, with the position of each."""

    growths: dict[CriterionQuery, tuple[GrowthCheck, int]] = field(default_factory=dict)
    bounds: dict[CriterionQuery, tuple[BoundCheck, int]] = field(default_factory=dict)

    def growth(self, question: CriterionQuery) -> tuple[GrowthCheck | None, int]:
        """Return models compared with a limit, and the index of the first subject."""
        return self.growths.get(question, (None, 0))

    def bound(self, question: CriterionQuery) -> tuple[BoundCheck | None, int]:
        """Return values compared with bounds, and the index of the first subject."""
        return self.bounds.get(question, (None, 0))


def evaluate_batched(questions: Iterable[CriterionQuery]) -> BatchResults:
    """Return the results of criteria that can be evaluated together."""
    groups: dict[Hashable, list[CriterionQuery]] = defaultdict(list)
    for question in questions:
        if (alike := question.alike) is not None:
            groups[alike].append(question)
    known = BatchResults()
    for group in groups.values():
        if isinstance(group[0].criterion, GrowthLimit):
            held = _held(group)
            known.growths.update((each, (held, k)) for k, each in enumerate(group))
        else:
            compared = _compared(group)
            known.bounds.update((each, (compared, k)) for k, each in enumerate(group))
    return known


def _held(group: Sequence[CriterionQuery]) -> GrowthCheck:
    first = group[0]
    assert isinstance(first.criterion, GrowthLimit)
    return GrowthCheck.of(_all(group).models(), first.criterion.limits, first.confidence)


def _compared(group: Sequence[CriterionQuery]) -> BoundCheck:
    first, subjects = group[0], _all(group)
    assert first.target is not None
    bounds = [each.criterion for each in group if isinstance(each.criterion, Bound)]
    band = subjects.band(CriterionKind.VALUE, first.target, first.confidence)
    return BoundCheck.with_bounds(bounds, subjects, band)


def _all(group: Sequence[CriterionQuery]) -> Subjects:
    """Return the subjects of all criteria, in their order."""
    rows = [each.subjects.rows for each in group if each.subjects.rows is not None]
    return replace(group[0].subjects, rows=np.concatenate(rows))
