"""Rules across functions: ``{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}``.

A function that could be composed of others should not cost more than they do. Measured violations
are reported at measured scales. Violations at other scales are predicted: the models of both sides
are combined, and compared numerically at a scale and by their leading terms at infinity (Shudler,
Berens, Calotoiu, Hoefler, Strube, Wolf, TPDS 30(8), 2019).

A rule is a comparison of `expression`. Braces, and names that are neither numbers nor the
parameter, are sums over the call paths of a pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from callpath_modeler.analysis.expectations.bounds import BoundSides, crossing
from callpath_modeler.analysis.expectations.check_result import Crossing
from callpath_modeler.analysis.expectations.subjects import SumKey, SumModels
from callpath_modeler.analysis.measured import Measured, sum_over
from callpath_modeler.analysis.uncertain import Band, propagate_errors
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth, Models
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.pattern import Patterns, unmatched
from callpath_modeler.support import expression

Numbers = Mapping[str, tuple[float, str]]

_AT_ONCE = 16
"""Patterns times names of a rule that cost as much as one evaluation."""


@dataclass(frozen=True, slots=True)
class Leading:
    """Leading term of a function: a coefficient times a growth.

    Attributes
    ----------
    growth : the growth
    coefficient : in the unit of the metric; 0 = nothing, or terms that cancel
    """

    growth: Growth
    coefficient: float

    def __mul__(self, other: Leading) -> Leading:
        return Leading(self.growth * other.growth, self.coefficient * other.coefficient)

    def __truediv__(self, other: Leading) -> Leading:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.divide(self.coefficient, other.coefficient)
        return Leading(self.growth / other.growth, float(ratio))

    def __neg__(self) -> Leading:
        return Leading(self.growth, -self.coefficient)

    def __add__(self, other: Leading) -> Leading:
        first, second = sorted((self, other), key=lambda each: (each.coefficient != 0, each.growth))
        if first.growth != second.growth or first.coefficient == 0:
            return second
        return Leading(first.growth, first.coefficient + second.coefficient)

    def exceeds(self, other: Leading) -> bool:
        """Return True if it is larger at infinity, beyond rounding errors."""
        least = 1e-9 * max(abs(self.coefficient), abs(other.coefficient))
        return (self + -other).coefficient > least


def leading(node: expression.Node, of_leaf: Callable[[expression.Leaf], Leading]) -> Leading:
    """Return the leading term of a side, from those of its names."""
    match node:
        case expression.NumberNode():
            return Leading(CONSTANT_GROWTH, node.value)
        case expression.NameNode() | expression.CallPathsNode():
            return of_leaf(node)
        case expression.SumNode():
            terms = [leading(term, of_leaf) for term in node.terms]
            total = Leading(CONSTANT_GROWTH, 0.0)
            for term, negative in zip(terms, node.negative, strict=True):
                total = total + (-term if negative else term)
            return total
        case expression.ProductNode():
            product = Leading(CONSTANT_GROWTH, 1.0)
            for factor, divides in zip(node.factors, node.divides, strict=True):
                of_factor = leading(factor, of_leaf)
                product = product / of_factor if divides else product * of_factor
            return product
        case expression.ExtremeNode():
            first, *others = (leading(part, of_leaf) for part in node.parts)
            for other in others:
                first = other if other.exceeds(first) == node.largest else first
            return first


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule about the functions of an experiment.

    Attributes
    ----------
    comparison : the parsed rule
    runs : models of the experiment, with measured values
    rows : call paths of each pattern
    sums : models of sums over call paths
    keys : names of the sums of the patterns in `sums`; None = each pattern selects one call path
    confidence : confidence of bands
    numbers : values of other names, in SI base units, with their units
    """

    comparison: expression.Comparison
    runs: Measured
    rows: Mapping[str, IntArray]
    sums: SumModels
    keys: Sequence[SumKey] | None
    confidence: float
    numbers: Numbers

    @cached_property
    def models(self) -> Models:
        """Summed cost of the call paths of each pattern, one row per pattern."""
        if self.keys is None:
            found = self.fitted.models.take(np.concatenate([*self.rows.values()]))
        else:
            found = self.sums.of(self.keys)
        return replace(found, confidence=self.confidence)

    @property
    def fitted(self) -> Fitted:
        """Models of the experiment."""
        return self.runs.fitted

    @property
    def evaluations(self) -> int:
        """Work of the rule: each pattern moves both sides, which have all names."""
        sides = (self.comparison.left, self.comparison.right)
        names = sum(1 for side in sides for _ in expression.leaves(side))
        return 1 + len(self.rows) * names // _AT_ONCE

    @property
    def unit(self) -> str:
        """Unit of both sides."""
        return expression.unit_text(
            expression.units_of(
                self.comparison.text,
                self.comparison.left,
                lambda leaf: _unit_of(leaf, self.rows, self.fitted.metric.unit, self.numbers),
            )
        )

    def at(self, points: FloatArray) -> BoundSides:
        """Return the predictions of both sides at finite scales, [points]."""
        found = self.models.predict(points)
        columns = (found.value, found.low, found.high)
        bands = zip(*(np.where(self.modelled[:, None], c, np.nan) for c in columns), strict=True)
        return self._sides([Band(*band) for band in bands], points)

    def measured(self) -> BoundSides:
        """Return both sides at the measured points, [K]."""
        return self._sides([*self._measured_bands()], self.fitted.points)

    def _measured_bands(self) -> Iterator[Band]:
        """Return the summed cost of the call paths of each pattern, [K] each."""
        band = self.runs.everywhere(
            lambda columns: _sums(self.rows.values(), columns), self.models.confidence
        )
        return (band[k] for k in range(len(self.rows)))

    def broken_at(self) -> FloatArray:
        """Return the measured points at which the whole band breaks the rule."""
        return self.fitted.points[self.measured().broken]

    def crossing(self) -> Crossing:
        """Return the scale from which on the rule is probably broken, and the first certain one."""
        return crossing(lambda points: self.at(points).beyond, self.fitted.points)

    def sides(self, target: float) -> BoundSides:
        """Return both sides at a finite scale, [1]: measured if it was run, or predicted."""
        point, scale = self.runs.point(target), np.array([target])
        if point is None:
            return self.at(scale)
        here = slice(point, point + 1)
        return self._sides([band[here] for band in self._measured_bands()], scale)

    def in_the_end(self) -> tuple[Leading, Leading] | None:
        """Return the leading terms of both sides; None = a model is missing."""
        if not self.modelled.all():
            return None
        rank, number = self.models.growth_rank(), self.models.leading_coefficient()
        growths = self.models.shapes.growths
        of_pattern = {
            pattern: Leading(growths[rank[row]], float(number[row]))
            for row, pattern in enumerate(self.rows)
        }

        def of_leaf(leaf: expression.Leaf) -> Leading:
            if _text(leaf) in of_pattern:
                return of_pattern[_text(leaf)]
            if _text(leaf) in self.numbers:
                return Leading(CONSTANT_GROWTH, self.numbers[_text(leaf)][0])
            return Leading(Growth(Fraction(1), 0), 1.0)

        sides = (self.comparison.left, self.comparison.right)
        left, right = (leading(side, of_leaf) for side in sides)
        return left, right

    @property
    def modelled(self) -> BoolArray:
        """Patterns with a model that still occur at the largest scale, [patterns]."""
        return (self.models.growth_rank() >= 0) & ~np.isnan(self._measured()[:, -1])

    def _measured(self) -> FloatArray:
        """Return the summed cost of the call paths of each pattern, [patterns, K]."""
        return _sums(self.rows.values(), self.fitted.measured)

    def _sides(self, bands: Sequence[Band], points: FloatArray) -> BoundSides:
        comparison, sign = self.comparison, 1.0 if self.comparison.at_most else -1.0

        def of(node: expression.Node, values: Sequence[FloatArray]) -> FloatArray:
            of_pattern = dict(zip(self.rows, values, strict=True))

            def value_of(leaf: expression.Leaf) -> FloatArray:
                if _text(leaf) in of_pattern:
                    return of_pattern[_text(leaf)]
                number = self.numbers.get(_text(leaf))
                return points if number is None else np.asarray(number[0])

            return np.broadcast_to(expression.evaluate(node, value_of), points.shape)

        def beyond(values: Sequence[FloatArray]) -> FloatArray:
            return sign * (of(comparison.left, values) - of(comparison.right, values))

        left, right = (
            propagate_errors(partial(of, side), bands)
            for side in (comparison.left, comparison.right)
        )
        return BoundSides(left, right, propagate_errors(beyond, bands))


def bind(
    comparison: expression.Comparison,
    runs: Measured,
    numbers: Numbers | None = None,
    *,
    inclusive: bool = False,
    confidence: float | None = None,
    sums: SumModels | None = None,
    rows_of: Callable[[str], IntArray] | None = None,
) -> Rule:
    """Return a rule with the call paths of an experiment.

    Parameters
    ----------
    comparison : from `parse_comparison`
    runs : models of an additive metric, with measured values
    numbers : values of names that are no call paths, in SI base units, with their units
    inclusive : include callees
    confidence : confidence of bands; None = that of the models
    sums : models of sums of the same models, which rules share; None = of this rule alone
    rows_of : function that returns the call paths of a pattern; None = it is made

    Raises
    ------
    ComparisonError
        If the rule selects no call path, or if numbers of different units are added or compared.
    UsageError
        If a pattern is invalid or selects no call path.
    """
    known: Numbers = numbers or {}
    fitted, text = runs.fitted, comparison.text
    tree, parameter = fitted.experiment.tree, fitted.parameter
    matching = rows_of or Patterns.of(tree).rows
    both = [*expression.leaves(comparison.left), *expression.leaves(comparison.right)]
    named = dict.fromkeys(_text(leaf) for leaf in both if _is_pattern(leaf, parameter, known))
    if not named:
        raise expression.ComparisonError(text, 0, "no call path is part of the rule")

    def unit_of(leaf: expression.Leaf) -> expression.Units:
        return _unit_of(leaf, named, fitted.metric.unit, known)

    sides = (comparison.left, comparison.right)
    expression.check_same_unit(text, *(expression.units_of(text, side, unit_of) for side in sides))
    rows = {each: _named(tree, each, matching(each), inclusive=inclusive) for each in named}
    shared, keys = sums or SumModels(fitted), None
    if any(len(each) > 1 for each in rows.values()):
        keys = shared.functions(rows.values())
    sure = fitted.models.confidence if confidence is None else confidence
    return Rule(comparison, runs, rows, shared, keys, sure, known)


def _unit_of(
    leaf: expression.Leaf, patterns: Container[str], unit: str, numbers: Numbers
) -> expression.Units:
    """Return the unit of a leaf: of costs, of a number, or of the parameter."""
    if _text(leaf) in patterns:
        return expression.as_units(unit)
    return expression.as_units(numbers[_text(leaf)][1] if _text(leaf) in numbers else "1")


def _text(leaf: expression.Leaf) -> str:
    return leaf.pattern if isinstance(leaf, expression.CallPathsNode) else leaf.text


def _is_pattern(leaf: expression.Leaf, parameter: str, numbers: Numbers) -> bool:
    return isinstance(leaf, expression.CallPathsNode) or (
        leaf.text != parameter and leaf.text not in numbers
    )


def _named(tree: CallTree, pattern: str, rows: IntArray, *, inclusive: bool) -> IntArray:
    """Return the call paths of a pattern; inclusive: with their callees, each once."""
    if not len(rows):
        raise unmatched(tree, pattern)
    if not inclusive:
        return rows
    steps = np.zeros(len(tree) + 1, np.intp)
    np.add.at(steps, rows, 1)
    np.add.at(steps, tree.end[rows], -1)
    return np.flatnonzero(steps.cumsum()[:-1] > 0)


def _sums(functions: Iterable[IntArray], values: FloatArray) -> FloatArray:
    """Return sums over functions of columns [call paths, ...], [functions, ...]."""
    return np.array([sum_over(values[rows]) for rows in functions])
