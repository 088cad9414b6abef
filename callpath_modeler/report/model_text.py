"""Description of one call path: formula, chart, alternatives, excess work, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.cells import cell_len, set_cell_size

from callpath_modeler.analysis.answer import FIRST, Ranking
from callpath_modeler.analysis.cause import Cause
from callpath_modeler.analysis.ensemble import measured_excess_of
from callpath_modeler.analysis.excess_work import no_excess
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.uncertain import Total
from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.tree_views import TopDown
from callpath_modeler.report.cause_text import cause_json, cause_lines
from callpath_modeler.report.curve import curve_of, draw
from callpath_modeler.report.headline import cost_text
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.report.losses_text import OVERLAP_NOTE, comparison_note, scales_note
from callpath_modeler.report.model_formulas import formula_from_text, from_text, hypotheses
from callpath_modeler.report.node import Fact, NodeReport, equation, formula_text, origin
from callpath_modeler.report.ranking_table import ranking_table
from callpath_modeler.report.table_formats import Table
from callpath_modeler.units import parameter_value, percent, quantity

_WIDTH = 100
"""Columns for the chart where the style sets no width."""
_GRID = 400
"""Number of points at which the curve is evaluated: more than a terminal has columns."""
_LABEL = 10
"""Width of the label of a fact, in cells."""
_LEGEND = "● measured  ⣀ model  ░ band  ┊ end of the data  ◆ target"
_LEGEND_ASCII = "o measured  * model  : band  | end of data  X target"


class CallPathReport(NodeReport):
    """Facts of a ranked call path."""

    forecast: Ranking

    @classmethod
    def of(cls, ranking: Ranking, row: int, style: TextStyle = DEFAULT_STYLE) -> CallPathReport:
        """Return the facts of the call path in `row`."""
        return cls(ranking, TopDown(ranking.tree), np.array([row]), ranking.inclusive, style)

    @property
    def predicted(self) -> Total:
        """The prediction at the target with its band, also where it was run."""
        said, row = self.forecast.predicted, int(self.nodes[0])
        return float(said.value[row]), float(said.low[row]), float(said.high[row])

    @property
    def chance(self) -> str:
        """The probability to be among the costliest call paths, as a clause; "" = not known."""
        first = self.forecast.first[int(self.nodes[0])]
        if np.isnan(first):
            return ""
        return f"; {percent(first)} to be among the {FIRST} costliest at the target"

    def program(self) -> list[Fact]:
        """Return the run time of the program at the target, and the share of the call path."""
        ranking = self.forecast
        if np.isinf(ranking.target) or not self.fitted.metric.additive:
            return []
        share = float(self.main.share[0])
        is_share_known = not np.isnan(share) and not ranking.is_unknown
        part = f". This call path takes {percent(share)} of it" if is_share_known else ""
        return [("program", f"{cost_text(ranking, style=self.style)}{part}.")]


def model_text(
    ranking: Ranking,
    row: int,
    *,
    linear: bool,
    style: TextStyle,
    cause: Cause | None = None,
) -> list[str]:
    """Return the lines of `cpmodel show` for the call path in `row` at the target.

    `cause` tells why it grows, if that is known.
    """
    fitted, tree = ranking.fitted, ranking.tree
    report = CallPathReport.of(ranking, row, style)
    place = origin(tree.regions[tree.region[row]])
    lines = [f"{tree.path(row)}   @{tree.id_of(row)}   {place}".rstrip(), *report.measured()]
    delay = [] if ranking.inclusive else report.delay()
    measured = _dressed([*report.values_facts(), *delay])
    callers, callees = report.neighbours(ranking.inputs.at_largest)
    beside = _dressed([("called by", callers), ("calls", callees), *report.program()])
    if fitted.is_measured_only:
        lines += ["", *([*_excess(ranking, row), ""] if ranking.is_comparison else [])]
        lines += [*measured, *_dressed(other_metrics(ranking, row)), "", *beside]
        lines += [comparison_note(fitted)] if ranking.is_comparison else []
        is_doubted = any(bool(each[row]) for each in ranking.doubted)
        lines += [OVERLAP_NOTE] if ranking.is_comparison and is_doubted else []
        return [*lines, scales_note(fitted)]
    if report.leader < 0:
        return [*lines, report.no_model(), "", *_dressed(report.values_facts())]
    since = formula_from_text(fitted, report.rows)
    formula = formula_text(fitted, report.parts, pretty=report.pretty)
    said = [equation(fitted, formula + since)]
    said += [report.prediction()] if np.isfinite(ranking.target) else []
    # The formula may already contain the start.
    said += [f"growth {report.growth}{'' if since else from_text(fitted, report.leader)}"]
    lines += [*report.whole_formula(), "   ".join(said), ""]
    seen = report.total if ranking.repetitions else None
    curve = curve_of(fitted, report.rows, ranking.target, linear=linear, count=_GRID, seen=seen)
    chart = draw(
        curve,
        fitted.metric.unit,
        parameter=fitted.parameter,
        width=max(30, min(72, (style.width or _WIDTH) - 18)),
        linear=linear,
        style=style,
    )
    lines += [*chart, f"    {_LEGEND_ASCII if style.ascii_only else _LEGEND}", ""] if chart else []
    return [
        *lines,
        *_dressed(report.quality()),
        *_others(report),
        "",
        *_excess(ranking, row),
        "",
        *(cause_lines(ranking, cause, style=style) if cause and cause.has_needs else ()),
        *measured,
        "",
        *beside,
    ]


def other_metrics(ranking: Ranking, row: int) -> list[Fact]:
    """Return the exclusive values of other metrics at the target: visits, bytes and so on."""
    fitted = ranking.fitted
    here = fitted.line.settings([fitted.parameter])[:, 0] == ranking.target
    cells = []
    for name, column in fitted.line.columns.items():
        values = column.exclusive[row, here]
        values = values[~np.isnan(values)]
        middle = float(np.median(values)) if len(values) else 0.0
        if name != fitted.metric.name and middle:
            cells.append(f"{name} {quantity(middle, column.metric.unit)}")
    return [("others", "   ".join(cells))] if cells else []


def _dressed(facts: Sequence[Fact]) -> list[str]:
    return [f"{label:<{_LABEL}}{text}" for label, text in facts]


def _others(report: CallPathReport) -> list[str]:
    """Return the table of other models that fit."""
    head, *others = report.others() or [("", "", "")]
    if not others:
        return [head[0]] * bool(head[0])
    title, weight, at = head
    width = max(cell_len(title) - 2, *(cell_len(formula) for formula, _, _ in others))
    lines = [f"{title:<{width + 2}} {weight.replace('probability', 'prob. ')} {at}"]
    for formula, weight, value in others:
        lines.append(f"  {set_cell_size(formula, width)} {weight:>6} {value}")
    return lines


@dataclass(frozen=True, slots=True, eq=False)
class ExcessStep:
    """Excess work of every call path between two scales.

    Attributes
    ----------
    title : names of the two scales, or of their ensemble
    predicted : whether the cost at the larger scale is predicted; else it is measured
    inclusive, exclusive : [call paths] fractions of the total at the larger scale
    efficiency : [call paths] expected inclusive cost, divided by the cost
    """

    title: str
    predicted: bool
    inclusive: FloatArray
    exclusive: FloatArray
    efficiency: FloatArray


def excess_steps(ranking: Ranking) -> list[ExcessStep]:
    """Return excess work between the base and each larger scale, and at the target.

    Further steps are the other chosen pairs of scales, and the mean over all pairs.

    The result is empty for a metric that does not add up over call paths.
    """
    fitted = ranking.fitted
    if not fitted.metric.additive:
        return []
    chosen = fitted.pairs if not fitted.is_measured_only else fitted.pairs[:-1]
    steps = []
    for found in measured_excess_of(fitted, chosen):
        shares = found.inclusive, found.exclusive
        title = _step(found.base, found.scale)
        steps.append(ExcessStep(title, False, *shares, found.efficiency))
    if ranking.target > fitted.points[-1]:
        ahead = ranking.excess
        title = f"{_step(ranking.base, ranking.target)} predicted"
        steps.append(ExcessStep(title, True, ahead.inclusive, ahead.exclusive, ahead.efficiency))
    ensemble = ranking.ensemble
    if ensemble.count > 1:
        shares = ensemble.costs.inclusive[:, 0], ensemble.costs.exclusive[:, 0]
        nothing = np.full(len(shares[0]), np.nan)
        steps.append(ExcessStep(f"mean of {ensemble.count} pairs", False, *shares, nothing))
    return steps


def _step(base: float, scale: float) -> str:
    return f"{parameter_value(base)} → {parameter_value(scale)}"


def _excess(ranking: Ranking, row: int) -> list[str]:
    fitted = ranking.fitted
    if not fitted.metric.additive:
        return ["excess work: this metric does not add up over call paths"]
    ideal = ideal_of(fitted)
    if ideal.scaling is None and (reason := no_excess(fitted, ranking.target)):
        return [f"excess work: {reason}"]
    title = f"excess work ({ideal.meaning})"
    steps = excess_steps(ranking)
    width = max(len(title) - 2, *(len(step.title) for step in steps))
    kept = "efficiency" if ideal.scaling else "  expected"
    lines = [f"{title:<{width + 2}}  inclusive  exclusive  {kept}"]
    for step in steps:
        shares = step.inclusive[row], step.exclusive[row], step.efficiency[row]
        inclusive, exclusive, left = (percent(float(share), 1) for share in shares)
        if ranking.is_comparison and step is steps[0]:
            own, whole = ("~" * bool(each[row]) for each in ranking.doubted)
            inclusive, exclusive = whole + inclusive, own + exclusive
        lines.append(f"  {step.title:<{width}}{inclusive:>11}{exclusive:>11}{left:>12}")
    return lines


def call_path_table(
    ranking: Ranking, row: int, cause: Cause | None, findings: Sequence[Finding] = ()
) -> Table:
    """Return one call path as a table: its row of the ranking; the header has the rest.

    Parameters
    ----------
    ranking : the ranking
    row : number of the call path
    cause : why it grows; None = not known
    findings : findings for JSON
    """
    fitted, table = ranking.fitted, ranking_table(ranking, np.array([row]), findings)
    header = {**table.header, "probability": None, "alternatives": [], "cause": None}
    if ranking.has_models and fitted.modelled[row]:
        found = hypotheses(fitted, row, float(ranking.target), style=TextStyle(ascii_only=True))
        header["probability"] = found.weight
        header["alternatives"] = [
            {
                "growth": other.growth.text(fitted.parameter),
                "model": other.formula,
                "probability": other.weight,
            }
            for other in found.others
        ]
    if cause is not None:
        header["cause"] = cause_json(ranking, cause)
    return replace(table, header=header)
