"""Bounds of numbers: the work they may cause, their evaluation, and the scales that break them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.expectations.check_result import (
    Crossing,
    Judgement,
    SubjectVerdicts,
    Verdict,
)
from callpath_modeler.analysis.expectations.expectation import Bound, Criterion, CriterionKind
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.scales import scale_to_run
from callpath_modeler.analysis.uncertain import Band, Total, propagate_errors
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.expected_growth import deciding_run_of_value
from callpath_modeler.support import expression
from callpath_modeler.support.input_limits import InputLimits, Work

_FURTHEST = 2.0**20
"""Largest extrapolation factor in the search for the scale that breaks a bound."""

_PER_DOUBLING = 4
_FINER = 65


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


_SEARCHED = 0.2
"""Searches for the scale that breaks a bound, as a share of the evaluations."""

_SPLIT = "split the file"


@dataclass(eq=False)
class EvaluationBudget:
    """Work that the expectations of a file may cause, by the size of the file.

    Attributes
    ----------
    limits : limits of the file
    """

    limits: InputLimits
    _evaluations: int = 0
    _searches: int = 0
    _curves: dict[tuple[object, ...], Band] = field(default_factory=dict, repr=False)

    def spend(self, evaluations: int) -> None:
        """Count evaluations of criteria that share no evaluation with others.

        Raises
        ------
        InputError
            If the file causes too many of them.
        """
        self._evaluations += evaluations
        self.limits.check(Work.EVALUATIONS, self._evaluations, _SPLIT)

    def crossing(self, beyond: Callable[[FloatArray], Band], points: FloatArray) -> Crossing | None:
        """Return the scale from which on a bound is broken, as `crossing` does.

        None = the file has caused too many searches.
        """
        self._searches += 1
        if self._searches > _SEARCHED * self.limits.most(Work.EVALUATIONS):
            return None
        return crossing(beyond, points)

    def curve(
        self, subjects: Subjects, row: int | None, points: FloatArray, confidence: float
    ) -> Band:
        """Return predictions of one subject, as `Subjects.curve` does, from earlier ones if any."""
        key = subjects.measured, subjects.inclusive, row, confidence, points.tobytes()
        if key not in self._curves:
            self._curves[key] = subjects.curve(row, points, confidence)
        return self._curves[key]


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
    def is_broken(self) -> list[bool]:
        """True if the bound is broken, [n]."""
        return list(self.broken.tolist())

    @cached_property
    def is_open(self) -> list[bool]:
        """True if the data do not decide, [n]."""
        return list((~(self.broken | self.kept)).tolist())

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
        amount = np.full_like(curve.value, bound.amount)
        return BoundSides.of_bounds(curve, amount, bound.at_most).beyond

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
    its: list[int] = places.tolist()
    broken, unsure, worst = (
        [compared.is_broken[k] for k in its],
        [compared.is_open[k] for k in its],
        0,
    )
    is_value = isinstance(criterion, Bound) and criterion.kind is CriterionKind.VALUE
    if len(subjects) > 1:
        far = np.nan_to_num(compared.sides.beyond.value[places], nan=-np.inf)
        worst = int(np.lexsort((far, np.array(unsure), np.array(broken)))[-1])
    verdict = Verdict.BROKEN if any(broken) else Verdict.UNSURE if any(unsure) else Verdict.KEPT
    found, expected, unmodelled, measured = compared.rows[its[worst]]
    return Judgement(
        criterion,
        verdict,
        subjects.row(worst),
        judged=len(subjects),
        broken=sum(broken),
        unsure=sum(unsure),
        unmodelled=unmodelled,
        measured=measured,
        found=found,
        expected=expected,
        unit=unit,
        target=target,
        meaning=subjects.meaning(worst) if is_value else "",
        each=SubjectVerdicts(subjects.rows, broken, unsure),
    )


def names_in(comparison: expression.Comparison) -> list[str]:
    """Return the names of numbers and metrics, each once, in their order."""
    sides = (comparison.left, comparison.right)
    found = (
        leaf.text
        for side in sides
        for leaf in expression.leaves(side)
        if isinstance(leaf, expression.NameNode)
    )
    return list(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """A comparison with the values of its names.

    Attributes
    ----------
    comparison : the parsed text
    numbers : numbers by name, in SI base units, with their units
    metrics : the same call paths in each metric, by name of the metric
    parameter : name of the parameter of scales
    """

    comparison: expression.Comparison
    numbers: Mapping[str, tuple[float, str]]
    metrics: Mapping[str, Subjects]
    parameter: str

    def unit(self) -> str:
        """Return the unit of both sides.

        Raises
        ------
        ComparisonError
            If numbers of different units are added or compared.
        """
        text = self.comparison.text
        left, right = (
            expression.units_of(text, side, self._unit_of)
            for side in (self.comparison.left, self.comparison.right)
        )
        expression.check_same_unit(text, left, right)
        return expression.unit_text(left)

    def _unit_of(self, leaf: expression.Leaf) -> expression.Units:
        name = leaf.text if isinstance(leaf, expression.NameNode) else ""
        if name in self.metrics:
            return expression.as_units(self.metrics[name].fitted.metric.unit)
        return expression.as_units(self.numbers[name][1] if name in self.numbers else "1")

    def judge(self, target: float, confidence: float, budget: EvaluationBudget) -> Judgement:
        """Return the verdict at a finite target."""
        first = next(iter(self.metrics.values()))
        bands = {
            k: one.band(CriterionKind.VALUE, target, confidence) for k, one in self.metrics.items()
        }
        found = judge_sides(
            self.comparison,
            self._sides(bands, np.asarray(target)),
            first,
            first.unmodelled(),
            target=target,
            unit=self.unit(),
            at_most=self.comparison.at_most,
        )

        def beyond(points: FloatArray) -> Band:
            curves = {
                k: budget.curve(one, found.worst, points, confidence)
                for k, one in self.metrics.items()
            }
            return self._sides(curves, points).beyond

        return replace(found, crossing=budget.crossing(beyond, first.fitted.points))

    def _sides(self, bands: Mapping[str, Band], scale: FloatArray) -> BoundSides:
        shape = next(iter(bands.values())).value.shape

        def of(node: expression.Node, parts: Sequence[FloatArray]) -> FloatArray:
            metrics = dict(zip(bands, parts, strict=True))

            def value_of(leaf: expression.Leaf) -> FloatArray:
                name = leaf.text if isinstance(leaf, expression.NameNode) else ""
                if name in metrics:
                    return metrics[name]
                return np.asarray(self.numbers[name][0]) if name in self.numbers else scale

            return np.broadcast_to(expression.evaluate(node, value_of), shape)

        sides = (self.comparison.left, self.comparison.right)
        first, second = sides if self.comparison.at_most else reversed(sides)
        parts = list(bands.values())
        return BoundSides(
            propagate_errors(lambda values: of(sides[0], values), parts),
            propagate_errors(lambda values: of(sides[1], values), parts),
            propagate_errors(lambda values: of(first, values) - of(second, values), parts),
        )
