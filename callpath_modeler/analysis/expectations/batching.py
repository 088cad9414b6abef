"""Evaluation of many similar expectations at once.

A file of `cpmodel baseline` has an expectation for each call path. Ten thousand evaluations of one
row each take ten thousand times as long as one evaluation of all rows. Expectations of subtrees
and of the whole program need models of sums, which are made together as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from callpath_modeler.analysis.expectations.bound_check import BoundCheck, Bounded
from callpath_modeler.analysis.expectations.expectation import (
    Bound,
    Criterion,
    CriterionKind,
    GrowthLimit,
)
from callpath_modeler.analysis.expectations.growth_check import GrowthCheck
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.sum_models import SumModels
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.arrays import IntArray
from callpath_modeler.modeling.validation import DeviationLimits


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
    def evaluation(self) -> Hashable:
        """Key of the evaluation that the criterion needs; that of one call path serves others.

        All other subjects need some work of their own.
        """
        criterion, subjects = self.criterion, self.subjects
        if subjects.rows is None or len(subjects) > 1 or subjects.inclusive:
            return self
        if isinstance(criterion, GrowthLimit):
            return subjects.measured, criterion.limits, self.confidence
        if isinstance(criterion, Bound):
            return subjects.measured, criterion.kind, self.target, self.confidence
        return self


def evaluations(questions: Iterable[CriterionQuery]) -> int:
    """Return the number of evaluations that criteria need."""
    return len({each.evaluation for each in questions})


_About = tuple[Measured, bool, bool]
"""Kind of subjects: models, whether the subject is the whole program, whether with callees."""
_Limit = tuple[_About, DeviationLimits, float]
_Number = tuple[_About, CriterionKind, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class BatchResults:
    """Results of many criteria, with the places of the subjects of each."""

    growths: dict[CriterionQuery, tuple[GrowthCheck, IntArray]] = field(default_factory=dict)
    numbers: dict[CriterionQuery, tuple[Bounded, IntArray]] = field(default_factory=dict)
    bounds: dict[CriterionQuery, tuple[BoundCheck, IntArray]] = field(default_factory=dict)

    def growth(self, question: CriterionQuery) -> tuple[GrowthCheck, IntArray]:
        """Return models compared with a limit, and the places of the subjects among them."""
        return self.growths[question]

    def bound(self, question: CriterionQuery) -> tuple[BoundCheck, IntArray]:
        """Return values compared with bounds, and the places of the subjects among them."""
        if question in self.bounds:
            return self.bounds[question]
        number, places = self.numbers[question]
        assert isinstance(question.criterion, Bound)
        return number.take(places).compared([question.criterion]), np.arange(len(places))


def evaluate_batched(
    questions: Iterable[CriterionQuery], sums_of: Callable[[Measured], SumModels]
) -> BatchResults:
    """Return the results of growth limits and bounds, evaluated together.

    Parameters
    ----------
    questions : criteria with at least one subject
    sums_of : function that returns models of sums
    """
    limits: dict[_Limit, list[CriterionQuery]] = defaultdict(list)
    numbers: dict[_Number, list[CriterionQuery]] = defaultdict(list)
    for question in questions:
        criterion, subjects = question.criterion, question.subjects
        about = subjects.measured, subjects.rows is None, subjects.inclusive
        if isinstance(criterion, GrowthLimit):
            limits[about, criterion.limits, question.confidence].append(question)
        elif isinstance(criterion, Bound):
            assert question.target is not None
            key = about, criterion.kind, question.target, question.confidence
            numbers[key].append(question)
    results = BatchResults()
    subjects_of = {key: _all(group) for key, group in limits.items()}
    # All sums are announced before the first model is made.
    for every in subjects_of.values():
        sums_of(every.measured).announce(every)
    for limited, group in limits.items():
        every, (_, limit, confidence) = subjects_of[limited], limited
        check = GrowthCheck.of(every, sums_of(every.measured).of_subjects(every), limit, confidence)
        results.growths.update((each, (check, _places(every, each))) for each in group)
    for (_, kind, target, confidence), group in numbers.items():
        every = _all(group)
        number = Bounded.of(every, kind, target, confidence)
        places = [_places(every, each) for each in group]
        results.numbers.update(
            (each, (number, its)) for each, its in zip(group, places, strict=True)
        )
        _compare_singles(results, group, number, places)
    return results


def _compare_singles(
    results: BatchResults,
    group: Sequence[CriterionQuery],
    number: Bounded,
    places: Sequence[IntArray],
) -> None:
    """Compare the numbers of single subjects with their bounds at once."""
    single = [k for k, its in enumerate(places) if len(its) == 1]
    if not single:
        return
    bounds = [each.criterion for each in (group[k] for k in single)]
    chosen = number.take(np.concatenate([places[k] for k in single]))
    compared = chosen.compared([each for each in bounds if isinstance(each, Bound)])
    for place, k in enumerate(single):
        results.bounds[group[k]] = compared, np.array([place])


def _all(group: Sequence[CriterionQuery]) -> Subjects:
    """Return the subjects of all criteria, each once."""
    rows = [each.subjects.rows for each in group if each.subjects.rows is not None]
    first = group[0].subjects
    return replace(first, rows=np.unique(np.concatenate(rows))) if rows else first


def _places(every: Subjects, question: CriterionQuery) -> IntArray:
    """Return the places of the subjects of a criterion among those of all."""
    rows = question.subjects.rows
    if every.rows is None or rows is None:
        return np.zeros(1, np.intp)
    return np.searchsorted(every.rows, rows)
