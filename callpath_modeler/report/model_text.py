"""Description of one call path: formula, chart, alternatives, excess work, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len, set_cell_size

from callpath_modeler.analysis.answer import FIRST, Ranking
from callpath_modeler.analysis.cause import Cause
from callpath_modeler.analysis.ensemble import measured_excess_of
from callpath_modeler.analysis.excess_work import no_excess
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.run_time import ImbalanceSources
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import FitStatus, summarise
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.cause_text import cause_lines, imbalance_facts
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import Curve, curve_of, draw, measured_of, sketch
from callpath_modeler.report.headline import at_text, cost_text, is_lowered, target_text
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.report.losses_text import OVERLAP_NOTE, comparison_note, scales_note
from callpath_modeler.report.model_formulas import (
    NO_OTHER,
    compared_text,
    formula_from_text,
    formula_text,
    from_text,
    growth_range_text,
    hypotheses,
    law_text,
)
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    quantity,
    setting_text,
    signed_percent,
)

_WIDTH = 100
"""Columns for the chart where the style sets no width."""
_GRID = 400
"""Number of points at which the curve is evaluated: more than a terminal has columns."""
_LABEL = 10
"""Width of the label of a fact, in cells."""
_TWO_LAWS = "The law changes between two scales; beyond them the other law holds."
"""Status of call paths whose model has a change point."""
_GONE = "It does not occur at the largest scale; nothing is predicted."
"""Status of call paths that only have a model of smaller scales."""
_LEGEND = "● measured  ⣀ model  ░ band  ┊ end of the data  ◆ target"
_LEGEND_ASCII = "o measured  * model  : band  | end of data  X target"

Fact = tuple[str, str]
"""A label and a text about a call path."""


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
    fitted = ranking.fitted
    tree = fitted.experiment.tree
    lines = [f"{tree.path(row)}   @{tree.id_of(row)}   {origin(ranking.fitted, row)}".rstrip()]
    lines += measured_line(ranking, row, style=style)
    if fitted.is_measured_only:
        return [*lines, *_measured_only(ranking, row, style=style)]
    if ranking.leader[row] < 0:
        return [*lines, no_model(ranking, row), "", *_dressed(value_facts(ranking, row))]
    lines += [
        *whole_formula(ranking, row, style=style),
        _formula(ranking, row, style=style),
        "",
    ]
    rows = rows_of(ranking, row)
    uneven = None if ranking.inclusive else ImbalanceSources.of(fitted)
    seen = ranking.total_of(row) if ranking.repetitions else None
    curve = curve_of(fitted, rows, ranking.target, linear=linear, count=_GRID, seen=seen)
    chart = draw(
        curve,
        fitted.metric.unit,
        parameter=fitted.parameter,
        width=max(30, min(72, (style.width or _WIDTH) - 18)),
        linear=linear,
        style=style,
    )
    lines += [*chart, f"    {_LEGEND_ASCII if style.ascii_only else _LEGEND}", ""] if chart else []
    lines += [
        *_dressed(quality_facts(ranking, row)),
        *_others(ranking, row, style=style),
        "",
        *_excess(ranking, row),
        "",
        *(cause_lines(ranking, cause, style=style) if cause and cause.has_needs else ()),
        *_dressed(value_facts(ranking, row)),
        *_dressed(imbalance_facts(uneven, row, style=style)),
        "",
    ]
    program = program_facts(ranking, row, style=style)
    return [*lines, *_dressed(neighbour_facts(ranking, row)), *_dressed(program)]


def _measured_only(ranking: Ranking, row: int, *, style: TextStyle) -> list[str]:
    """Return the lines of a call path without models, below its measured value."""
    fitted = ranking.fitted
    uneven = None if ranking.inclusive else ImbalanceSources.of(fitted)
    return [
        "",
        *([*_excess(ranking, row), ""] if ranking.is_comparison else []),
        *_dressed(value_facts(ranking, row)),
        *_dressed(imbalance_facts(uneven, row, style=style)),
        *_dressed(other_metrics(ranking, row)),
        "",
        *_dressed(neighbour_facts(ranking, row)),
        *_dressed(program_facts(ranking, row, style=style)),
        *([comparison_note(fitted)] if ranking.is_comparison else []),
        *([OVERLAP_NOTE] if ranking.is_comparison and _is_doubted(ranking, row) else []),
        scales_note(fitted),
    ]


def _is_doubted(ranking: Ranking, row: int) -> bool:
    return any(bool(each[row]) for each in ranking.doubted)


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


def no_model(ranking: Ranking, row: int) -> str:
    """Return the reason why a call path has no model."""
    status = FitStatus(int(ranking.fitted.models.status[row]))
    return f"no model: {_GONE if status.modelled else status.sentence}"


def origin(fitted: Fitted, row: int) -> str:
    """Return the place of a call path in the source code, as far as it is known."""
    tree = fitted.experiment.tree
    region = tree.regions[tree.region[row]]
    place = f"{region.file}:{region.line}" if region.line >= 0 else region.file
    return " · ".join(part for part in (region.paradigm, place) if part)


def _dressed(facts: Sequence[Fact]) -> list[str]:
    return [f"{label:<{_LABEL}}{text}" for label, text in facts]


def whole_formula(ranking: Ranking, row: int, *, style: TextStyle) -> list[str]:
    """Return the model in all parameters; the model along one parameter is a slice of it."""
    fitted, surface = ranking.fitted, ranking.fitted.surface
    if surface is None or ranking.inclusive:
        return []
    names = ", ".join(surface.parameters)
    lines = [f"{fitted.metric.name}({names}) = {surface.formula(row, pretty=not style.ascii_only)}"]
    if fitted.of_line.size and fitted.of_line[row]:
        at = setting_text(fitted.held)
        lines.append(f"a separate model of the runs at {at} fits them better:")
    return lines


def measured_line(ranking: Ranking, row: int, *, style: TextStyle) -> list[str]:
    """Return the measured cost at the target, if it was run."""
    if not ranking.repetitions:
        return []
    unit, where = ranking.fitted.metric.unit, f"at {target_text(ranking)}"
    if np.isnan(ranking.value[row]):
        return [f"{where}: it did not occur"]
    return [f"{where}: {amount_text(*ranking.total_of(row), unit, style=style)}"]


def predicted_text(ranking: Ranking, row: int, *, style: TextStyle = DEFAULT_STYLE) -> str:
    """Return the prediction at a finite target with its band, and its error if it is known."""
    fitted, unit, said = ranking.fitted, ranking.fitted.metric.unit, ranking.predicted
    value, low, high = (float(each[row]) for each in (said.value, said.low, said.high))
    amount = amount_text(value, low, high, unit, style=style)
    text = f"at {at_text(fitted, ranking.target)}: {amount}"
    rows, where = rows_of(ranking, row), np.array([ranking.target])
    by_models = float(fitted.models.sum_values(rows[fitted.modelled[rows]], where)[0])
    if is_lowered(by_models, value):
        alone = style.amount(by_models, unit)
        text += f"; the formula gives {alone}, but all formulas together exceed the run time"
    off = float(ranking.deviation[row])
    if not ranking.repetitions or np.isnan(off):
        return text
    return f"{text}, error {signed_percent(off)}"


def _formula(ranking: Ranking, row: int, *, style: TextStyle) -> str:
    fitted, pretty = ranking.fitted, not style.ascii_only
    growth = growth_range_text(ranking, row, pretty=pretty)
    since = formula_from_text(fitted, rows_of(ranking, row))
    text = equation(fitted, formula_text(ranking, row, pretty=pretty) + since)
    if np.isfinite(ranking.target):
        text += f"   {predicted_text(ranking, row, style=style)}"
    # The formula may already contain it.
    growth += "" if since else from_text(fitted, int(ranking.leader[row]))
    return f"{text}   growth {growth}"


def equation(fitted: Fitted, formula: str) -> str:
    """Return a formula with its left side and its unit: ``time(p, n=50) = 2 p  [s]``."""
    held = "".join(f", {name}={parameter_value(value)}" for name, value in fitted.held.items())
    unit = fitted.metric.unit
    text = f"{fitted.metric.name}({fitted.parameter}{held}) = {formula}"
    return text + f"  [{unit}]" * (unit != "1")


def sketch_of(ranking: Ranking, row: int, count: int) -> Curve:
    """Return the chart of a ranked call path, as `sketch` does."""
    return sketch(
        ranking.fitted,
        rows_of(ranking, row),
        ranking.target,
        ranking.total_of(row),
        measured=ranking.repetitions > 0,
        count=count,
    )


def rows_of(ranking: Ranking, row: int) -> IntArray:
    """Return the call paths that contribute to a ranked value."""
    end = ranking.fitted.experiment.tree.end[row] if ranking.inclusive else row + 1
    return np.arange(row, end)


def _sum_of(ranking: Ranking, row: int) -> str:
    """Return the parts of an inclusive prediction."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    parts = int(fitted.modelled[row : tree.end[row]].sum())
    leader = int(ranking.leader[row])
    who = tree.path(leader) if leader != row else "its exclusive part"
    return f"{counted(parts, 'model')}; fastest growing: {who}"


def quality_facts(ranking: Ranking, row: int) -> list[Fact]:
    """Return the quality of a model; for a sum, the parts of the sum."""
    if ranking.leader[row] < 0:
        return []
    if ranking.inclusive:
        return [("sum of", _sum_of(ranking, row))]
    fitted, models = ranking.fitted, ranking.fitted.models
    status = FitStatus(int(models.status[row]))
    laws = law_text(fitted, row, pretty=True)
    sentence = _TWO_LAWS if laws and status is FitStatus.OUTSIDE else status.sentence
    stands = ("status", f"{fitted.status(row)}: {sentence}")
    if status is FitStatus.ZERO:
        return [stands]
    noise = models.noise[row]
    parts = [
        f"cross-validated error {_error(float(models.cv_error[row]))}",
        "noise unknown: no repetitions" if np.isnan(noise) else f"noise {percent(noise, 1)}",
        f"adjusted R^2 {models.adjusted_r2[row]:.4f}",
        f"|1-R^2| {abs(1 - models.r2[row]):.2g}",
        f"{int(models.used[row])} points",
    ]
    facts = [("quality", "   ".join(parts)), stands]
    facts += [("laws", laws)] if laws else []
    facts += _control(ranking, row)
    if models.method != "classic":
        known = hypotheses(fitted, row, ranking.target, style=TextStyle(ascii_only=True))
        facts.append(("model", f"{known.sentence}{_chance(ranking, row)}"))
    return facts


def _others(ranking: Ranking, row: int, *, style: TextStyle) -> list[str]:
    if ranking.inclusive:
        return []
    fitted = ranking.fitted
    others = hypotheses(fitted, row, ranking.target, style=style).others
    if not others:
        return [f"could also be: {NO_OTHER} ({compared_text(fitted)})"]
    at = at_text(fitted, ranking.target)
    classic = fitted.models.method == "classic"
    title = "could also be" if classic else "could also be (or similar)"
    width = max(cell_len(title) - 2, *(cell_len(other.formula) for other in others))
    lines = [f"{title:<{width + 2}} {'weight' if classic else 'prob. '} at {at}"]
    for other in others:
        value = float(other.values([ranking.target])[0])
        text = style.amount(value, fitted.metric.unit)
        lines.append(f"  {set_cell_size(other.formula, width)} {percent(other.weight):>6} {text}")
    return lines


def _chance(ranking: Ranking, row: int) -> str:
    if np.isnan(ranking.first[row]):
        return ""
    return f"; {percent(ranking.first[row])} to be among the {FIRST} costliest at the target"


def _control(ranking: Ranking, row: int) -> list[Fact]:
    """Return the statistical quality control of the repetitions, if it has a result."""
    fitted = ranking.fitted
    _, values = fitted.line.by_point(fitted.metric.name, fitted.parameter, rows=np.array([row]))
    repetitions = summarise(values, "mean", float(fitted.settings["confidence"]))
    if not repetitions.indistinct[0]:
        return []
    what = "a constant lies in the confidence intervals of all points"
    return [("control", f"{what}: the repetitions alone could explain the differences")]


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
        shares = ranking.excess.inclusive, ranking.excess.exclusive
        efficiency = ranking.excess.efficiency
        title = f"{_step(ranking.base, ranking.target)} predicted"
        steps.append(ExcessStep(title, True, *shares, efficiency))
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


def value_facts(ranking: Ranking, row: int) -> list[Fact]:
    """Return the measured values and the imbalance of processes."""
    fitted, rows = ranking.fitted, rows_of(ranking, row)
    pairs = zip(fitted.points, measured_of(fitted, rows), strict=True)
    cells = [
        f"{parameter_value(point)}: {quantity(float(value), fitted.metric.unit)}"
        for point, value in pairs
    ]
    at = f", {setting_text(fitted.measured_at)}" if fitted.measured_at else ""
    facts = [("measured", f"{fitted.parameter} = " + "   ".join(cells) + at)]
    uneven = imbalance_cells(fitted, row)
    if uneven:
        own = ", of the exclusive cost" if len(rows) > 1 else ""
        what = f"   (largest / mean of the processes{own})"
        facts.append(("imbalance", f"{fitted.parameter} = " + "   ".join(uneven) + at + what))
    return facts


def imbalances(fitted: Fitted, row: int) -> list[tuple[float, float]]:
    """Return points and the imbalance of the exclusive cost there, where it is known."""
    metric, known = fitted.metric.name, []
    for point in fitted.points.tolist():
        at = {**fitted.measured_at, fitted.parameter: point}
        ratio = fitted.experiment.imbalance(metric, row, at)
        if not np.isnan(ratio):
            known.append((point, ratio))
    return known


def imbalance_cells(fitted: Fitted, row: int) -> list[str]:
    """Return `imbalances` as texts."""
    known = imbalances(fitted, row)
    return [f"{parameter_value(point)}: {ratio:.2f}" for point, ratio in known]


def neighbour_facts(ranking: Ranking, row: int) -> list[Fact]:
    """Return the caller and the callees of a call path, with measured parts of what adds up."""
    tree = ranking.fitted.experiment.tree
    inclusive = ranking.inclusive_at_largest
    caller = int(tree.parent[row])
    above = short_name(tree.name(caller)) if caller != ROOT else "nothing"
    below = sorted(tree.children(row), key=lambda child: -inclusive[child])
    named = [short_name(tree.name(child)) for child in below[:6]]
    if ranking.fitted.metric.additive:
        parts = (percent(_part(inclusive[child], inclusive[row])) for child in below[:6])
        named = [f"{name} ({part})" for name, part in zip(named, parts, strict=True)]
    more = f", {len(below) - 6} more" if len(below) > 6 else ""
    return [("called by", above), ("calls", f"{', '.join(named) or 'nothing'}{more}")]


def program_facts(ranking: Ranking, row: int, *, style: TextStyle = DEFAULT_STYLE) -> list[Fact]:
    """Return the run time of the program at the target, and the share of the call path."""
    fitted = ranking.fitted
    if np.isinf(ranking.target) or not fitted.metric.additive:
        return []
    share = float(ranking.share[row])
    is_share_known = not np.isnan(share) and not ranking.is_unknown
    part = f". This call path takes {percent(share)} of it" if is_share_known else ""
    return [("program", f"{cost_text(ranking, style=style)}{part}.")]


def _part(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _error(error: float) -> str:
    return "> 100 %" if error > 1 else percent(error, 1)
