"""Evaluation of expectations against models.

A bound is broken only if the whole band is beyond it, and met only if the whole band is within.
Otherwise the data do not decide. The confidence applies to a whole expectation. If it selects many
call paths, each is judged at a higher confidence (Bonferroni). So many call paths of an unchanged
program do not break an expectation by chance.

A file of `cpmodel baseline` has an expectation for each call path. Ten thousand evaluations of one
row each take ten thousand times as long as one evaluation of all rows. Expectations of subtrees
and of the whole program need models of sums, which are made together as well.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np

from callpath_modeler.analysis.expectations.bounds import (
    Arithmetic,
    BoundCheck,
    Bounded,
    EvaluationBudget,
    judge_bound,
    names_in,
)
from callpath_modeler.analysis.expectations.check_result import (
    Judgement,
    KeptJudgements,
    Outcome,
    Verdict,
    status_of,
    verdict_of,
)
from callpath_modeler.analysis.expectations.expectation import (
    EXAMPLES,
    Bound,
    Criterion,
    CriterionKind,
    Expectation,
    Expectations,
    GrowthLimit,
    RuleText,
)
from callpath_modeler.analysis.expectations.growth_check import GrowthCheck, judge_growth, unnamed
from callpath_modeler.analysis.expectations.rules import Rule, bind
from callpath_modeler.analysis.expectations.subjects import Subjects, SumModels
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth, Method, SearchSpace, default_space
from callpath_modeler.modeling.expected_growth import DeviationLimits, space_with
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.pattern import Patterns
from callpath_modeler.profile.runs import main_parameter
from callpath_modeler.support.expression import CallPathsNode, Comparison, ComparisonError, leaves
from callpath_modeler.support.input_limits import InputLimits
from callpath_modeler.units import quantity, setting_text


@dataclass(frozen=True, slots=True, eq=False)
class CriterionQuery:
    """One criterion of an expectation.

    Attributes
    ----------
    criterion : growth limit or bound
    subjects : subjects in one metric
    target : scale; None = at infinity
    confidence : confidence of each verdict
    in_rankings : the subjects with the models of rankings, if an expected growth needs other ones
    """

    criterion: Criterion
    subjects: Subjects
    target: float | None
    confidence: float
    in_rankings: Subjects | None = None

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
_Limit = tuple[_About, DeviationLimits, Growth | None, float]
Procedure = Literal["mixture", "published"]
"""How growths are compared with limits: by probabilities, or by the choice of the publication."""
_Number = tuple[_About, CriterionKind, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class BatchResults:
    """Results of many criteria, with the places of the subjects of each.

    Attributes
    ----------
    growths : models compared with growth limits
    numbers : numbers of subjects, which bounds limit
    bounds : bounds of one subject each, compared
    kept : criteria of one subject each that are met
    """

    growths: dict[CriterionQuery, tuple[GrowthCheck, IntArray]] = field(default_factory=dict)
    numbers: dict[CriterionQuery, tuple[Bounded, IntArray]] = field(default_factory=dict)
    bounds: dict[CriterionQuery, tuple[BoundCheck, IntArray]] = field(default_factory=dict)
    kept: set[CriterionQuery] = field(default_factory=set)

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
    questions: Iterable[CriterionQuery],
    sums_of: Callable[[Measured], SumModels],
    procedure: Procedure = "mixture",
) -> BatchResults:
    """Return the results of growth limits and bounds, evaluated together.

    Parameters
    ----------
    questions : criteria with at least one subject
    sums_of : function that returns models of sums
    procedure : how growths are compared with limits
    """
    limits: dict[_Limit, list[CriterionQuery]] = defaultdict(list)
    numbers: dict[_Number, list[CriterionQuery]] = defaultdict(list)
    for question in questions:
        criterion, subjects = question.criterion, question.subjects
        about = subjects.measured, subjects.rows is None, subjects.inclusive
        if isinstance(criterion, GrowthLimit):
            # Probabilities depend on the limits alone, and growths are slow to hash.
            expected = criterion.expected if procedure == "published" else None
            limits[about, criterion.limits, expected, question.confidence].append(question)
        elif isinstance(criterion, Bound):
            assert question.target is not None
            key = about, criterion.kind, question.target, question.confidence
            numbers[key].append(question)
    results = BatchResults()
    subjects_of = {key: _all(group) for key, group in limits.items()}
    # All sums are announced before the first model is made.
    for every in subjects_of.values() if procedure == "mixture" else ():
        sums_of(every.measured).announce(every)
    for limited, group in limits.items():
        every, (_, within, expected, confidence) = subjects_of[limited], limited
        if expected is None:
            models = sums_of(every.measured).of_subjects(every)
            check = GrowthCheck.of(every, models, within, confidence)
        else:
            check = GrowthCheck.published(every, expected, within)
        places = _places(every, group)
        results.growths.update(
            (each, (check, its)) for each, its in zip(group, places, strict=True)
        )
        single = [k for k, its in enumerate(places) if len(its) == 1]
        if single:
            is_kept = check.is_kept(np.concatenate([places[k] for k in single]), confidence)
            results.kept.update(group[k] for k, its in zip(single, is_kept, strict=True) if its)
    for (_, kind, target, confidence), group in numbers.items():
        every = _all(group)
        number = Bounded.of(every, kind, target, confidence)
        places = _places(every, group)
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
    its = np.arange(len(single))
    for place, k in enumerate(single):
        results.bounds[group[k]] = compared, its[place : place + 1]
    is_kept = (compared.kept & ~compared.broken).tolist()
    results.kept.update(group[k] for k, kept in zip(single, is_kept, strict=True) if kept)


def _all(group: Sequence[CriterionQuery]) -> Subjects:
    """Return the subjects of all criteria, each once."""
    rows = [each.subjects.rows for each in group if each.subjects.rows is not None]
    first = group[0].subjects
    return replace(first, rows=np.unique(np.concatenate(rows))) if rows else first


def _places(every: Subjects, group: Sequence[CriterionQuery]) -> list[IntArray]:
    """Return the places of the subjects of each criterion among those of all."""
    rows = [each.subjects.rows for each in group if each.subjects.rows is not None]
    if every.rows is None or len(rows) < len(group):
        return [np.zeros(1, np.intp) for _ in group]
    places = np.searchsorted(every.rows, np.concatenate(rows))
    ends = [0, *accumulate(map(len, rows))]
    return [places[begin:end] for begin, end in pairwise(ends)]


_OF_SLICE = 10
"""Evaluations that cost as much as a slice of models in several parameters."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Evaluation of the expectations of a file against models.

    Attributes
    ----------
    expectations : expectations of one file
    models_of : function that returns the models of a metric; None = the first duration
    target : values of parameters by name, instead of those of the file
    wider : function that returns models of a metric in another space; None = there are none
    procedure : how growths are compared with limits
    """

    expectations: Expectations
    models_of: Callable[[str | None], Fitted]
    target: Mapping[str, float] = field(default_factory=dict)
    wider: Callable[[str | None, SearchSpace], Fitted] | None = None
    procedure: Procedure = "mixture"
    _held: dict[tuple[object, ...], Fitted] = field(default_factory=dict, repr=False)
    _sliced: dict[tuple[object, ...], Fitted] = field(default_factory=dict, repr=False)
    _measured: dict[Fitted, Measured] = field(default_factory=dict, repr=False)
    _sums: dict[Measured, SumModels] = field(default_factory=dict, repr=False)
    _patterns: dict[Fitted, Patterns] = field(default_factory=dict, repr=False)
    _free: dict[Fitted, BoolArray] = field(default_factory=dict, repr=False)
    _rows: dict[tuple[Fitted, str], IntArray] = field(default_factory=dict, repr=False)
    _spaces: dict[tuple[Fitted, str, DeviationLimits], SearchSpace | None] = field(
        default_factory=dict, repr=False
    )

    @cached_property
    def _budget(self) -> EvaluationBudget:
        return EvaluationBudget(InputLimits.of(Path(self.expectations.written.path)))

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return the outcome of every expectation, in the order of the file.

        Raises
        ------
        InputError
            If an expectation cannot be evaluated: unknown metric, wrong unit, or no target.
        """
        asked = [self._asked(each) for each in self.expectations.expectations]
        questions = [each for one in asked for each in one.questions if len(each.subjects)]
        self._budget.spend(evaluations(questions))
        known = evaluate_batched(questions, self._sums_of, self.procedure)
        return tuple(self._outcome(one, known) for one in asked)

    def _asked(self, expectation: Expectation) -> _Asked:
        """Return an expectation with its models, call paths and criteria."""
        fitted = self._models_of(expectation, expectation.metric, "metric")
        if isinstance(expectation.criteria[0], RuleText):
            return self._bound(expectation, expectation.criteria[0], fitted)
        subjects = self._subjects(expectation, fitted)
        if subjects is None or len(subjects) < expectation.at_least:
            return _Asked(expectation, fitted, len(subjects) if subjects is not None else 0)
        questions = (self._question(expectation, one, subjects) for one in expectation.criteria)
        return _Asked(expectation, fitted, len(subjects), tuple(questions))

    def _outcome(self, asked: _Asked, results: BatchResults) -> Outcome:
        """Return the outcome of one expectation."""
        expectation, fitted = asked.expectation, asked.fitted
        if asked.rule is not None:
            return self._concluded(expectation, fitted, 1, (self._ruled(expectation, asked.rule),))

        def judgements() -> tuple[Judgement, ...]:
            return tuple(self._judged(expectation, one, results) for one in asked.questions)

        if not (asked.questions and results.kept.issuperset(asked.questions)):
            return self._concluded(expectation, fitted, asked.matched, judgements(), asked.missing)
        for one in asked.questions:
            if isinstance(one.criterion, Bound):
                self._check_unit(expectation, one.criterion, fitted)
        line = self.expectations.written.line(expectation.place)
        status = status_of(Verdict.KEPT, expectation)
        targets = tuple(one.target for one in asked.questions)
        kept = KeptJudgements(targets, judgements)
        return Outcome(expectation, fitted, line, status, asked.matched, kept)

    def _concluded(
        self,
        expectation: Expectation,
        fitted: Fitted,
        matched: int,
        judgements: tuple[Judgement, ...],
        missing: str = "",
    ) -> Outcome:
        line = self.expectations.written.line(expectation.place)
        if not matched and not missing and expectation.at_least:
            missing = expectation.callpath or ""
        meant = self._patterns_of(fitted).nearest(missing) if missing else ""
        verdict = verdict_of(expectation, matched, judgements)
        status = status_of(verdict, expectation)
        return Outcome(expectation, fitted, line, status, matched, judgements, missing, meant)

    def _bound(self, expectation: Expectation, rule: RuleText, fitted: Fitted) -> _Asked:
        """Return a rule with its call paths; a rule without call paths is broken."""
        comparison = rule.comparison
        self._refuse_sums(expectation, fitted)
        rows_of = cache(partial(self._matching, expectation, "rule", fitted))
        for leaf in (*leaves(comparison.left), *leaves(comparison.right)):
            if isinstance(leaf, CallPathsNode) and not len(rows_of(leaf.pattern)):
                return _Asked(expectation, fitted, missing=leaf.pattern)
        measured = self._measured_of(fitted)
        try:
            bound = bind(
                comparison,
                measured,
                self._numbers(fitted),
                inclusive=expectation.inclusive,
                confidence=expectation.confidence,
                sums=self._sums_of(measured),
                rows_of=rows_of,
            )
        except (ComparisonError, UsageError) as cause:
            message = f"rule = {comparison.text!r}: {cause.message}"
            self._refuse(expectation, "rule", message, f"e.g. {EXAMPLES['rule']}")
        self._budget.spend(bound.evaluations)
        return _Asked(expectation, fitted, 1, rule=bound)

    def _ruled(self, expectation: Expectation, rule: Rule) -> Judgement:
        """Return the judgement of a rule across functions."""
        text, fitted = expectation.criteria[0], rule.fitted
        assert isinstance(text, RuleText)
        target = self._scale(expectation, fitted) or float(fitted.points[-1])
        if not np.isfinite(target):
            target = float(fitted.points[-1])
        return judge_rule(text, rule, target)

    def _scale(self, expectation: Expectation, fitted: Fitted) -> float | None:
        """Return the target along the parameter of the models; None = there is no target."""
        return self.target.get(fitted.parameter, expectation.target.get(fitted.parameter))

    def _numbers(self, fitted: Fitted) -> dict[str, tuple[float, str]]:
        """Return the values of names: numbers of the file, and parameters with fixed values."""
        held = {name: (value, "1") for name, value in fitted.held.items()}
        return held | {**self.expectations.numbers}

    def _refuse(self, expectation: Expectation, key: str, message: str, hint: str) -> NoReturn:
        self.expectations.written.refuse((*expectation.place, key), message, hint)

    def _models_of(
        self,
        expectation: Expectation,
        metric: str | None,
        key: str,
        space: SearchSpace | None = None,
    ) -> Fitted:
        """Return models along the parameter of an expectation, with the others at its target."""
        # Most expectations of a file share their target and their parameter.
        said = metric, expectation.parameter, space, *expectation.target.items()
        if said not in self._sliced:
            self._sliced[said] = self._slice_of(expectation, metric, key, space)
        return self._sliced[said]

    def _slice_of(
        self, expectation: Expectation, metric: str | None, key: str, space: SearchSpace | None
    ) -> Fitted:
        """Return models along the parameter of an expectation, made at their first use."""
        try:
            if space is None or self.wider is None:
                fitted = self.models_of(metric)
            else:
                self._budget.spend(_OF_SLICE)
                fitted = self.wider(metric, space)
        except UsageError as cause:
            self._refuse(expectation, key, cause.message, cause.hint or "see `cpmodel info`")
        self._check_parameters(expectation, fitted)
        at = {**expectation.target, **self.target}
        parameter = fitted.parameter
        if expectation.parameter in fitted.parameters:
            parameter = expectation.parameter
        elif at and parameter not in at:
            parameter = main_parameter(at) or parameter
        held = {name: value for name, value in at.items() if name != parameter}
        if not np.isfinite([*held.values()]).all():
            what = f"{setting_text(held)}: a parameter is held at a finite value"
            self._refuse(expectation, "target", what, "give it one")
        which = (metric, parameter, space, *held.items())
        if which not in self._held:
            # Each slice of models in several parameters is made for itself.
            self._budget.spend(_OF_SLICE * (fitted.surface is not None))
            self._held[which] = fitted.holding(held, parameter)
        return self._held[which]

    def _measured_of(self, fitted: Fitted) -> Measured:
        return self._measured.setdefault(fitted, Measured(fitted))

    def _sums_of(self, measured: Measured) -> SumModels:
        return self._sums.setdefault(measured, SumModels(measured.fitted))

    def _check_parameters(self, expectation: Expectation, fitted: Fitted) -> None:
        """Raise an error for parameters that the models do not have."""
        known = fitted.parameters
        functions = f"the models are functions of {' and '.join(known)}"
        for named in (self.expectations.parameter, *expectation.target):
            if named is not None and named not in known:
                hint = (
                    f"target = {{ {fitted.parameter} = ... }}, or --parameter {shell_word(named)}"
                )
                self._refuse(expectation, "target", f"a target of {named}; {functions}", hint)
        named = expectation.parameter
        if named is not None and named not in known:
            what = f"a growth in {named}; {functions}"
            self._refuse(expectation, "growth", what, f'e.g. growth = "<= O({known[0]})"')

    def _subjects(self, expectation: Expectation, fitted: Fitted) -> Subjects | None:
        """Return the subjects of an expectation; None = its pattern selects nothing."""
        if expectation.callpath is None:
            self._refuse_sums(expectation, fitted)
            return Subjects(self._measured_of(fitted), None)
        rows = self._named(expectation, fitted)
        if expectation.others:
            rows = rows[self._unnamed(expectation, fitted)[rows]]
        if expectation.inclusive:
            self._refuse_sums(expectation, fitted)
        found = Subjects(self._measured_of(fitted), rows, expectation.inclusive)
        return found if len(rows) else None

    def _unnamed(self, expectation: Expectation, fitted: Fitted) -> BoolArray:
        """Return the call paths that no expectation of the same metric names."""
        if fitted not in self._free:
            metric = self._metric(expectation)
            self._free[fitted] = unnamed(
                self.expectations,
                len(fitted.experiment.tree),
                lambda other: self._metric(other) == metric,
                lambda other: self._named(other, fitted),
            )
        return self._free[fitted]

    def _metric(self, expectation: Expectation) -> str:
        return expectation.metric or self.models_of(None).metric.name

    def _named(self, expectation: Expectation, fitted: Fitted) -> IntArray:
        return self._matching(expectation, "callpath", fitted, expectation.callpath or "**")

    def _patterns_of(self, fitted: Fitted) -> Patterns:
        if fitted not in self._patterns:
            patterns = Patterns.of(fitted.experiment.tree)
            patterns.prepare([each.callpath or "" for each in self.expectations.expectations])
            self._patterns[fitted] = patterns
        return self._patterns[fitted]

    def _matching(
        self, expectation: Expectation, key: str, fitted: Fitted, pattern: str
    ) -> IntArray:
        """Return the call paths that a pattern selects."""
        # ``others`` needs the call paths of all expectations a second time.
        if (fitted, pattern) not in self._rows:
            try:
                self._rows[fitted, pattern] = self._patterns_of(fitted).rows(pattern)
            except UsageError as cause:
                self._refuse(expectation, key, cause.message, cause.hint or "")
        return self._rows[fitted, pattern]

    def _refuse_sums(self, expectation: Expectation, fitted: Fitted) -> None:
        if not fitted.metric.additive:
            self._refuse(
                expectation,
                "metric",
                f"{fitted.metric.name} does not add up over call paths",
                "select exclusive values: callpath = ..., without inclusive",
            )

    def _question(
        self, expectation: Expectation, criterion: Criterion, subjects: Subjects
    ) -> CriterionQuery:
        is_growth, target = isinstance(criterion, GrowthLimit), None
        if not is_growth:
            target = self._bounded_at(expectation, criterion, subjects.fitted)
        # What is gone at the largest scale costs nothing beyond it, and keeps every bound; so does
        # what does not occur at a target that was run.
        subjects = subjects.occurring(target)
        parts = len(expectation.criteria) * max(len(subjects), 1)
        confidence = 1 - (1 - expectation.confidence) / parts
        if is_growth and self.procedure == "published":
            return CriterionQuery(criterion, subjects, target, confidence, in_rankings=subjects)
        wide = self._in_wider_space(expectation, criterion, subjects)
        if wide is None:
            return CriterionQuery(criterion, subjects, target, confidence)
        return CriterionQuery(criterion, wide, target, confidence, in_rankings=subjects)

    def _in_wider_space(
        self, expectation: Expectation, criterion: Criterion, subjects: Subjects
    ) -> Subjects | None:
        """Return subjects with models that can have an expected growth; None = they have them."""
        if self.wider is None or not isinstance(criterion, GrowthLimit) or not len(subjects):
            return None
        # Most expectations of a file share their limits.
        key = subjects.fitted, criterion.text, criterion.limits
        if key not in self._spaces:
            self._spaces[key] = _wider_space(subjects.fitted, criterion)
        space = self._spaces[key]
        if space is None:
            return None
        models = self._models_of(expectation, expectation.metric, "metric", space)
        return replace(subjects, measured=self._measured_of(models))

    def _judged(
        self, expectation: Expectation, question: CriterionQuery, results: BatchResults
    ) -> Judgement:
        criterion, subjects = question.criterion, question.subjects
        target, confidence = question.target, question.confidence
        if not len(subjects):
            seen = target is not None and subjects.measured.point(target) is not None
            where = target if seen else None
            return Judgement(criterion, Verdict.KEPT, None, 0, 0, 0, measured=seen, target=where)
        if isinstance(criterion, GrowthLimit):
            found = judge_growth(criterion, subjects, confidence, *results.growth(question))
            return self._with_growth_in_rankings(found, question.in_rankings)
        assert target is not None
        if isinstance(criterion, Bound):
            self._check_unit(expectation, criterion, subjects.fitted)
            return judge_bound(
                criterion, subjects, target, confidence, *results.bound(question), self._budget
            )
        assert isinstance(criterion, Comparison)
        return self._judge_comparison(expectation, criterion, subjects, target, confidence)

    def _with_growth_in_rankings(self, found: Judgement, ranked: Subjects | None) -> Judgement:
        """Return a judgement with the growth that rankings state, if it is another one."""
        if ranked is None or not found.growths:
            return found
        its = ranked if found.worst is None else replace(ranked, rows=np.array([found.worst]))
        models = self._sums_of(its.measured).of_subjects(its)
        place = int(models.growth_rank()[0])
        if place < 0 or models.shapes.growths[place] == found.growths[0][0]:
            return found
        assert isinstance(found.criterion, GrowthLimit)
        missing = "exponentials" if found.criterion.expected.rate else "fractional powers of log"
        without = f"without {missing}" if self.procedure == "mixture" else "by its own method"
        return replace(found, in_rankings=models.shapes.growths[place], ranked=without)

    def _bounded_at(self, expectation: Expectation, criterion: Criterion, fitted: Fitted) -> float:
        """Return the finite scale of a bound."""
        target = self._scale(expectation, fitted)
        if target is None or not math.isfinite(target):
            key = criterion.kind if isinstance(criterion, Bound) else "bound"
            what = "no target" if target is None else "nothing is bounded at infinity"
            self._refuse(expectation, key, what, "target = { p = 4096 }, or --target 4096")
        return target

    def _check_unit(self, expectation: Expectation, bound: Bound, fitted: Fitted) -> None:
        metric = fitted.metric
        if bound.kind in {CriterionKind.VALUE, CriterionKind.LOSS} and bound.unit != metric.unit:
            unit = "a plain number" if metric.unit == "1" else f"in {metric.unit}"
            given = "a plain number" if bound.unit == "1" else f"in {bound.unit}"
            self._refuse(
                expectation,
                bound.kind,
                f"{bound.kind} = {bound.text!r} is {given}, {metric.name} is {unit}",
                f'e.g. {bound.kind} = "<= {quantity(bound.amount, metric.unit, ascii_only=True)}"',
            )
        if bound.kind is not CriterionKind.VALUE and not metric.additive:
            self._refuse(
                expectation,
                bound.kind,
                f"no {bound.kind}: {metric.name} does not add up over call paths",
                "bound its value",
            )

    def _judge_comparison(
        self,
        expectation: Expectation,
        comparison: Comparison,
        subjects: Subjects,
        target: float,
        confidence: float,
    ) -> Judgement:
        numbers, parameter = self._numbers(subjects.fitted), subjects.fitted.parameter
        metrics = {
            name: replace(
                subjects, measured=self._measured_of(self._models_of(expectation, name, "bound"))
            )
            for name in names_in(comparison)
            if name not in numbers and name != parameter
        }
        if not metrics:
            message = f"no metric is part of {comparison.text!r}"
            self._refuse(expectation, "bound", message, f"e.g. {EXAMPLES['bound']}")
        arithmetic = Arithmetic(comparison, numbers, metrics, parameter)
        try:
            return arithmetic.judge(target, confidence, self._budget)
        except ComparisonError as cause:
            message = f"bound = {comparison.text!r}: {cause.message}"
            self._refuse(expectation, "bound", message, f"e.g. {EXAMPLES['bound']}")


def _wider_space(fitted: Fitted, limit: GrowthLimit) -> SearchSpace | None:
    """Return the space of models that can have an expected growth; None = that of `fitted`.

    A space that the user chose stays.
    """
    several = len(fitted.parameters) > 1
    method: Method = "classic" if fitted.models.method == "classic" else "mixture"
    space = default_space(method, several=several)
    wide = space_with(space, limit.expected, limit.limits)
    # Models in several parameters have no exponentials.
    is_same = wide == space or fitted.models.space != space
    return None if is_same or (several and wide.exponential) else wide


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """One expectation with its models, its call paths and its criteria.

    Attributes
    ----------
    expectation : the expectation or the rule
    fitted : its models
    matched : number of selected call paths
    questions : criteria; empty = too few call paths, or a rule
    rule : the rule with its call paths; None = no rule, or a pattern selects nothing
    missing : pattern of a rule that selects nothing
    """

    expectation: Expectation
    fitted: Fitted
    matched: int = 0
    questions: tuple[CriterionQuery, ...] = ()
    rule: Rule | None = None
    missing: str = ""


def judge_rule(text: RuleText, rule: Rule, target: float) -> Judgement:
    """Return the judgement of a rule at a finite scale.

    If values at the scale are predicted, the largest run can break the rule as well.
    """
    broken_at = tuple(float(scale) for scale in rule.broken_at())
    sides, ends = rule.sides(target), rule.in_the_end()
    is_measured = bool(np.all(sides.beyond.measured))
    seen = rule.fitted.held == rule.fitted.measured_at and rule.fitted.points[-1] in broken_at
    verdict = Verdict.BROKEN if seen and not is_measured else sides.verdict
    return Judgement(
        text,
        verdict,
        None,
        judged=1,
        broken=int(verdict is Verdict.BROKEN),
        unsure=int(verdict is Verdict.UNSURE),
        unmodelled=float(not (is_measured or rule.modelled.all())),
        measured=is_measured,
        found=sides.left.at(0),
        expected=sides.right.at(0),
        unit=rule.unit,
        target=target,
        crossing=rule.crossing(),
        broken_at=broken_at,
        in_the_end=None if ends is None else (ends[0].growth, ends[1].growth),
    )
