"""Two experiments in one of the three views: columns, text, tables, and single nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.cause import NOTHING
from callpath_modeler.analysis.changes import Changes
from callpath_modeler.analysis.difference import ExperimentDifference, causes_of
from callpath_modeler.analysis.excess_work import NOTICEABLE
from callpath_modeler.analysis.measured import sum_over
from callpath_modeler.analysis.pair_forecast import NodeDifferences, PairForecast
from callpath_modeler.analysis.pairing import AlignedExperiment
from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.groups import Rows
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.curve import sketch
from callpath_modeler.report.diff_table import VERDICTS, comparison_header
from callpath_modeler.report.diff_text import (
    NOISE_UNKNOWN,
    context,
    growth_cells,
    known_by,
    sums_note,
    verdict,
)
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.losses_text import GAIN, LOSS
from callpath_modeler.report.node import ViewNode, fact_text, formula_lines
from callpath_modeler.report.outlined_view import (
    ViewOfForecast,
    node_columns,
    sum_check_text,
    view_header,
)
from callpath_modeler.report.ranking_columns import with_lines_below
from callpath_modeler.report.table_formats import Table
from callpath_modeler.studies.comparison import Compared, compared_in
from callpath_modeler.units import as_option, percent, setting_text, significant


def difference_cells(
    forecast: PairForecast,
    own: NodeDifferences,
    whole: NodeDifferences,
    rows: Sequence[int | None],
    *,
    inclusive: bool,
    style: TextStyle,
) -> dict[str, TextColumn]:
    """Return the values of lines as text, by name of the column.

    Parameters
    ----------
    forecast : the two experiments
    own, whole : exclusive and inclusive values of the lines
    rows : call path of each line; None = several
    inclusive : whether inclusive values lead
    style : width, length of names, and characters of text

    Returns
    -------
    dict
        ``base``, ``new``, ``difference``, ``ratio``, ``interval``; ``own_difference`` if inclusive
        values lead; ``growth`` with models of both; ``at_common`` with both values at the largest
        common scale, if another scale leads.
    """
    main = whole if inclusive else own
    unit, found = forecast.inputs.pair.metric.unit, forecast.found[1 if inclusive else 0]
    titles = [scale_title(forecast, changes) for changes in forecast.answers]

    def texts(values: FloatArray) -> list[str]:
        return [style.amount(value, unit) for value in values.tolist()]

    columns = {
        "base": TextColumn(f"base {titles[0]}".rstrip(), texts(main.base)),
        "new": TextColumn(f"new {titles[0]}".rstrip(), texts(main.new)),
        "difference": _differences("difference", main, unit, style),
        "ratio": TextColumn("ratio", ratio_texts(main)),
    }
    if inclusive:
        columns["own_difference"] = _differences("own diff.", own, unit, style)
    if not np.isnan(main.low).all():
        pairs = zip(main.low.tolist(), main.high.tolist(), strict=True)
        columns["interval"] = TextColumn(
            f"{found.confidence:.0%} interval", [ratio_interval(*ends) for ends in pairs]
        )
    if found.growth is not None:
        known = np.array([row for row in rows if row is not None], np.intp)
        written = iter(growth_cells(found, known, style))
        cells = ["" if row is None else next(written) for row in rows]
        columns["growth"] = TextColumn("growth", cells, right=False)
    if len(titles) > 1:
        pairs = zip(texts(main.other_base), texts(main.other_new), strict=True)
        columns["at_common"] = TextColumn(titles[1], [" → ".join(pair) for pair in pairs])
    return columns


def scale_title(forecast: PairForecast, changes: Changes) -> str:
    """Return the scale of differences as a title: ``p=64``; "" = it is not known."""
    pair = forecast.inputs.pair
    if pair.has_unknown_scale:
        return ""
    return as_option({pair.parameter: changes.scale})


def _differences(title: str, values: NodeDifferences, unit: str, style: TextStyle) -> TextColumn:
    """Return the column of differences; losses and gains have colours."""
    pairs = zip(values.change.tolist(), values.is_doubted.tolist(), strict=True)
    cells = [
        "~" * doubted + difference_text_of(change, unit, style=style) for change, doubted in pairs
    ]
    return TextColumn(title, cells, styles=difference_styles(values))


def difference_text_of(change: float, unit: str, *, style: TextStyle) -> str:
    """Return a difference with its sign: ``+1.20 s``; ``-`` = not known."""
    return ("+" if change > 0 else "") + style.amount(change, unit)


def difference_styles(values: NodeDifferences) -> list[str]:
    """Return the colour of each difference.

    With known noise, differences beyond noise have colours. Otherwise, differences of a noticeable
    part of the total have.
    """
    marks = np.where(
        np.isnan(values.p),
        np.sign(np.nan_to_num(values.share)) * (np.abs(values.share) >= NOTICEABLE),
        values.mark,
    )
    return [{1: LOSS, -1: GAIN}.get(mark, "") for mark in marks.astype(int).tolist()]


def ratio_texts(values: NodeDifferences) -> list[str]:
    """Return new over base as text; ``new`` and ``gone`` = occurs in one experiment only."""
    columns = (values.ratio, values.in_base, values.in_new)
    return [
        _number(ratio) if in_base == in_new else "gone" if in_base else "new"
        for ratio, in_base, in_new in zip(*(c.tolist() for c in columns), strict=True)
    ]


def ratio_interval(low: float, high: float) -> str:
    """Return an interval of ratios as text; "" without one."""
    return "" if np.isnan(low) else f"{_number(low)} … {_number(high)}"


def _number(ratio: float) -> str:
    return significant(ratio) if np.isfinite(ratio) else "-"


_SHOWN = (
    *("base", "new", "difference", "ratio", "interval", "own_difference", "growth"),
    "at_common",
)
"""Columns from left to right, as in the browser."""


@dataclass(frozen=True, eq=False)
class DifferenceView(ViewOfForecast[NodeDifferences]):
    """Two experiments in one of the three views.

    Attributes
    ----------
    forecast : the values of both
    request : view, depth, filter and zoom
    """

    forecast: PairForecast
    request: ViewRequest

    @cached_property
    def compared(self) -> Compared:
        """The comparison of all call paths, with its findings."""
        return compared_in(self.forecast, inclusive=self.inclusive)

    @property
    def found(self) -> ExperimentDifference:
        """Differences of the call paths, exclusive or inclusive as the values that lead."""
        return self.forecast.found[1 if self.inclusive else 0]

    def columns(self, style: TextStyle) -> list[TextColumn]:
        """Return the columns of values, and the hot path of the loss."""
        forecast, (own, whole) = self.forecast, self.values
        cells = difference_cells(
            forecast, own, whole, self.outline.single_rows(), inclusive=self.inclusive, style=style
        )
        totals: dict[str, str] = {}
        if self.outline.start == ROOT:
            unit = forecast.inputs.pair.metric.unit
            base, new, *others = forecast.costs.total.tolist()
            change = difference_text_of(new - base, unit, style=style)
            totals = {
                "base": style.amount(base, unit),
                "new": style.amount(new, unit),
                "difference": change,
                "own_difference": change,
                "at_common": " → ".join(style.amount(value, unit) for value in others),
            }
        made = with_lines_below(cells, [totals])
        return [*(made[name] for name in _SHOWN if name in made), self.flags]

    def sentences(self, style: TextStyle) -> list[str]:
        """Return the answer of the comparison."""
        return [verdict(self.found, style)]

    def context(self, _style: TextStyle) -> list[str]:
        """Return a description of both experiments."""
        return [context(self.found)]

    def notes(self, _shown: Sequence[TextColumn], _header: str, style: TextStyle) -> list[str]:
        """Return the meaning of values and signs, and whether the lines add up."""
        kind = "inclusive" if self.inclusive else "exclusive"
        notes = [f"values: {kind}; difference: new minus base; > is the hot path of the loss"]
        can_tell = self.found.can_tell
        notes.append("~: noise may explain the difference" if can_tell else NOISE_UNKNOWN)
        unit = self.forecast.inputs.pair.metric.unit
        sums = [
            " and ".join(style.amount(value, unit) for value in values[:2].tolist())
            for values in (self.check.counted, self.check.total)
        ]
        sum_check = sum_check_text(self.outline, self.check, sums)
        return [*notes, *sums_note(self.found, style), sum_check]

    def table(self, _findings: Sequence[Finding] = ()) -> Table:
        """Return a table with one row per line of the view; its findings are those of both."""
        metric = self.forecast.inputs.pair.metric
        columns = node_columns(self.outline)
        columns["metric"] = [metric.name] * len(self.outline)
        names = ("base", "new", "change", "ratio", "low", "high", "p")
        own, whole = self.values
        for kind, values in (("inclusive", whole), ("exclusive", own)):
            columns |= {f"{name}_{kind}": getattr(values, name).tolist() for name in names}
            columns[f"verdict_{kind}"] = [
                None if np.isnan(p) else VERDICTS[mark]
                for p, mark in zip(values.p.tolist(), values.mark.tolist(), strict=True)
            ]
        columns["is_hot"] = self.is_hot.tolist()
        units = dict.fromkeys(
            (name for name in columns if name.startswith(("base_", "new_", "change_"))), metric.unit
        )
        header = {
            **comparison_header(self.compared),
            "view": str(self.request.kind),
            **view_header(self),
        }
        return Table(columns, units, header)


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
            at_target = (np.nan,) * 3
            curve = sketch(
                fitted,
                rows[rows >= 0],
                self.forecast.target,
                at_target,
                measured=False,
                count=2 * room,
            )
            drawn = self.drawn(curve, fitted, room=room, height=each - 3)
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
        return [*lines, *map(fact_text, self.surroundings(self.forecast.decides))]

    def _measured(self, name: str, side: AlignedExperiment) -> str:
        """Return the measured values of one experiment; "" without any."""
        pair = self.forecast.inputs.pair
        values = sum_over(centre(side.values[self.rows], pair.centre))
        if pair.has_unknown_scale or np.isnan(values).all():
            return ""
        texts = self.series(side.points, values.tolist(), pair.metric.unit)
        return fact_text((f"{name} measured", f"{pair.parameter} = {texts}"))

    @property
    def has_losing_line(self) -> bool:
        """False, because lines of the source are not compared."""
        return False
