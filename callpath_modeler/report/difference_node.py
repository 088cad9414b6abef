"""Description of a node in two experiments: both values, the difference, both models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.causes import NOTHING
from callpath_modeler.analysis.changed_causes import causes_of
from callpath_modeler.analysis.diff import ExperimentDifference
from callpath_modeler.analysis.measured import sum_over
from callpath_modeler.analysis.pair_forecast import NodeDifferences, PairForecast
from callpath_modeler.analysis.pairing import AlignedExperiment
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre
from callpath_modeler.profile.groups import Rows
from callpath_modeler.report.diff import NOISE_UNKNOWN, growth_cells, known_by
from callpath_modeler.report.diff_table import VERDICTS
from callpath_modeler.report.difference_columns import (
    difference_text_of,
    ratio_interval,
    ratio_texts,
)
from callpath_modeler.report.node import formula_lines
from callpath_modeler.report.view_node import ViewNode
from callpath_modeler.units import percent, setting_text

_AXIS = 18
"""Width around the plotting area of a chart, in cells: labels and the parameter's name."""
_LEAST_CHART, _LEAST_AREA = 6, 12
"""Least height of a chart with its heading, in lines, and least width of its area, in cells."""


@dataclass(frozen=True, eq=False)
class DifferenceReport(ViewNode[NodeDifferences]):
    """The description of a node with its values in two experiments."""

    forecast: PairForecast

    @property
    def found(self) -> ExperimentDifference:
        """Differences of the call paths, exclusive or inclusive as the values."""
        return self.forecast.found[1 if self.inclusive else 0]

    def model(self) -> list[str]:
        """Return values and differences at both scales, and both models."""
        main, other = self.main, self.values[0 if self.inclusive else 1]
        kind = "exclusive" if self.inclusive else "inclusive"
        amounts, others = (self._amounts(v.base, v.new) for v in (main, other))
        lines = [f"{self._where(0)}: {amounts}"]
        lines.append(f"{self._difference(main)}: {self._verdict(main)}")
        if others != amounts:  # a node without callees has the same values twice
            lines.append(f"{kind}: {others}")
            verdict = self._verdict(other)
            is_same = verdict == self._verdict(main)
            lines.append(self._difference(other) + f": {verdict}" * (not is_same))
        if len(self.forecast.answers) > 1:
            lines.append(f"{self._where(1)}: {self._amounts(main.other_base, main.other_new)}")
        for name, side in self._sides():
            if side.fitted is not None:
                lines += [f"{name}: {line}" for line in self._formulas(side.fitted, side)]
        return [*lines, *self._growth()]

    def _where(self, place: int) -> str:
        """Return the scale of an answer, and whether values there are measured."""
        changes = self.forecast.answers[place]
        how = known_by(self.found, self.found.answers[place], self.style)
        if self.forecast.inputs.pair.has_unknown_scale:
            return how
        return f"at {setting_text(changes.at)}, {how}"

    def _amounts(self, base: FloatArray, new: FloatArray) -> str:
        unit = self.forecast.inputs.pair.metric.unit
        before, after = (self.style.amount(float(value[0]), unit) for value in (base, new))
        return f"{before} in base, {after} in new"

    def _difference(self, values: NodeDifferences) -> str:
        """Return the difference, the ratio, and its interval."""
        unit = self.forecast.inputs.pair.metric.unit
        ratio = ratio_texts(values)[0]
        said = f"difference {difference_text_of(float(values.change[0]), unit, style=self.style)}"
        if values.in_base[0] and values.in_new[0]:
            ends = ratio_interval(float(values.low[0]), float(values.high[0]))
            said += f", ratio {ratio}{f' ({ends})' if ends else ''}"
        return said

    def _verdict(self, values: NodeDifferences) -> str:
        """Return whether a difference is beyond noise."""
        if not (values.in_base[0] or values.in_new[0]):
            return "occurs in neither at these scales"
        if values.in_base[0] != values.in_new[0]:
            return f"occurs only in {'base' if values.in_base[0] else 'new'}"
        if values.mark[0]:
            return f"{VERDICTS[int(values.mark[0])]}, beyond noise"
        if not np.isnan(values.p[0]):
            return "no difference is shown, because noise may explain it"
        if len(self.nodes) > 1:
            return "not tested, because several nodes share this line"
        return "not tested" if self.found.can_tell else NOISE_UNKNOWN

    def _sides(self) -> Iterator[tuple[str, AlignedExperiment]]:
        return zip(("base", "new"), self.forecast.inputs.pair.sides, strict=True)

    def _parts(self, fitted: Fitted, side: AlignedExperiment) -> Rows:
        """Return the call paths of one experiment that contribute and have a model."""
        own = side.own_rows()[self.rows]
        own = own[own >= 0]
        return own[fitted.modelled[own]]

    def _formulas(self, fitted: Fitted, side: AlignedExperiment) -> list[str]:
        parts = self._parts(fitted, side)
        if len(parts):
            return formula_lines(fitted, parts, self.style)
        return ["no model"] if (side.own_rows()[self.rows] >= 0).any() else []

    def _growth(self) -> list[str]:
        """Return the growth before and after, for one call path."""
        if self.found.growth is None or self.alone is None:
            return []
        (text,) = growth_cells(self.found, np.array([self.alone]), self.style)
        return [f"growth {text}"] if text else []

    def chart(self, width: int, height: int) -> list[str]:
        """Return a chart of each experiment, one below the other.

        Parameters
        ----------
        width, height : size with labels, in terminal cells; there is no chart if it is too small
            for both
        """
        each, room = height // 2, width - _AXIS
        if each < _LEAST_CHART or room < _LEAST_AREA or not self.forecast.inputs.has_models:
            return []
        lines: list[str] = []
        for name, side in self._sides():
            fitted = side.fitted
            if fitted is None or not len(self._parts(fitted, side)):
                continue
            rows = side.own_rows()[self.rows]
            drawn = self.drawn(
                fitted, rows[rows >= 0], self.forecast.target, room=room, height=each - 3
            )
            lines += [name, *drawn] if drawn else []
        return lines

    def alternatives(self) -> list[str]:
        """Return no lines, because alternative models describe a single experiment."""
        return []

    def imbalance(self) -> str:
        """Return no text, because imbalance describes a single experiment."""
        return ""

    def facts(self) -> list[str]:
        """Return measured values, causes of growth, neighbours, and the place in the source."""
        lines = [text for name, side in self._sides() if (text := self._measured(name, side))]
        total = self.forecast.costs.total
        main = self.main
        shares = [
            f"{percent(float(value / whole))} of {name}"
            for name, value, whole in zip(
                ("base", "new"), (main.base[0], main.new[0]), total[:2], strict=True
            )
            if whole > 0 and not np.isnan(value)
        ]
        lines += [", ".join(shares)] if shares else []
        if self.alone is not None:
            (causes,) = causes_of(self.forecast.found[0], np.array([self.alone]))
            lines += [
                f"cause of the growth in {name}: {label}"
                for name, label in (("base", causes.base), ("new", causes.new))
                if label != NOTHING
            ]
        return [*lines, *self.surroundings(self.forecast.decides)]

    def _measured(self, name: str, side: AlignedExperiment) -> str:
        """Return the measured values of one experiment; "" without any."""
        pair = self.forecast.inputs.pair
        values = sum_over(centre(side.values[self.rows], pair.centre))
        if pair.has_unknown_scale or np.isnan(values).all():
            return ""
        texts = self.series(side.points, values.tolist(), pair.metric.unit)
        return f"{name} measured at {pair.parameter} = {texts}"

    @property
    def has_losing_line(self) -> bool:
        """False, because lines of the source are not compared."""
        return False
