"""Bounds computed from several metrics and numbers, such as a limit of memory or bandwidth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.bands import Band, propagate_errors
from callpath_modeler.analysis.expectations.bound_check import BoundSides, judge_sides
from callpath_modeler.analysis.expectations.budget import EvaluationBudget
from callpath_modeler.analysis.expectations.expectation import CriterionKind
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.verdicts import Judgement
from callpath_modeler.arrays import FloatArray
from callpath_modeler.expression import (
    Comparison,
    Leaf,
    NameNode,
    Node,
    Units,
    as_units,
    check_same_unit,
    evaluate,
    leaves,
    unit_text,
    units_of,
)


def names_in(comparison: Comparison) -> list[str]:
    """Return the names of numbers and metrics, each once, in their order."""
    sides = (comparison.left, comparison.right)
    found = (leaf.text for side in sides for leaf in leaves(side) if isinstance(leaf, NameNode))
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

    comparison: Comparison
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
            units_of(text, side, self._unit_of)
            for side in (self.comparison.left, self.comparison.right)
        )
        check_same_unit(text, left, right)
        return unit_text(left)

    def _unit_of(self, leaf: Leaf) -> Units:
        name = leaf.text if isinstance(leaf, NameNode) else ""
        if name in self.metrics:
            return as_units(self.metrics[name].fitted.metric.unit)
        return as_units(self.numbers[name][1] if name in self.numbers else "1")

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

        def of(node: Node, parts: Sequence[FloatArray]) -> FloatArray:
            metrics = dict(zip(bands, parts, strict=True))

            def value_of(leaf: Leaf) -> FloatArray:
                name = leaf.text if isinstance(leaf, NameNode) else ""
                if name in metrics:
                    return metrics[name]
                return np.asarray(self.numbers[name][0]) if name in self.numbers else scale

            return np.broadcast_to(evaluate(node, value_of), shape)

        sides = (self.comparison.left, self.comparison.right)
        first, second = sides if self.comparison.at_most else reversed(sides)
        parts = list(bands.values())
        return BoundSides(
            propagate_errors(lambda values: of(sides[0], values), parts),
            propagate_errors(lambda values: of(sides[1], values), parts),
            propagate_errors(lambda values: of(first, values) - of(second, values), parts),
        )
