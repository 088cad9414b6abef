"""What many expectations ask alike of single call paths, answered for all of them at once.

An expectation for each call path of a program, as `cpmodel baseline` writes them, asks ten thousand
times the same of one row, where arrays take as long for one row as for a hundred.
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
    criterion : what is expected
    subjects : of which call paths
    target : at which scale; None = in the limit
    confidence : of each verdict
    """

    criterion: Criterion
    subjects: Subjects
    target: float | None
    confidence: float

    @property
    def alike(self) -> Hashable:
        """What is the same in questions that are answered at once; None = asked alone."""
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
    """Answers to questions: numbers of many, and which are those of a question."""

    growths: dict[CriterionQuery, tuple[GrowthCheck, int]] = field(default_factory=dict)
    bounds: dict[CriterionQuery, tuple[BoundCheck, int]] = field(default_factory=dict)

    def growth(self, question: CriterionQuery) -> tuple[GrowthCheck | None, int]:
        """Return models held against a limit, and which of them is asked about."""
        return self.growths.get(question, (None, 0))

    def bound(self, question: CriterionQuery) -> tuple[BoundCheck | None, int]:
        """Return values compared with bounds, and which of them is asked about."""
        return self.bounds.get(question, (None, 0))


def evaluate_batched(questions: Iterable[CriterionQuery]) -> BatchResults:
    """Answer those questions that are alike."""
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
    """Return the subjects of all questions, in their order."""
    rows = [each.subjects.rows for each in group if each.subjects.rows is not None]
    return replace(group[0].subjects, rows=np.concatenate(rows))
