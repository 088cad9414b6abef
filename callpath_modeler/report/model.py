"""One call path in full: formula, chart, what else it could be, excess work, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.cells import cell_len, set_cell_size

from callpath_modeler.analysis.excess import measured_excess, scaling_over
from callpath_modeler.analysis.imbalance_sources import ImbalanceSources
from callpath_modeler.analysis.rank import FIRST, Ranking
from callpath_modeler.analysis.requirements import Requirements
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import FitStatus, summarise
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.answer import at_text, cost_text, target_text
from callpath_modeler.report.change_points import formula_from_text, from_text, law_text
from callpath_modeler.report.chart import draw
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.curve import curve_of, measured_of
from callpath_modeler.report.hypotheses import NO_OTHER, compared_text, hypotheses
from callpath_modeler.report.ranking_table import formula_text, growth_range_text
from callpath_modeler.report.requirements import imbalance_facts, requirement_lines
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    quantity,
    setting_text,
    signed_percent,
)

_GRID = 400
"""Points at which the curve is evaluated: more than any terminal has columns."""
_LABEL = 10
"""Cells of the word that a fact begins with."""
_TWO_LAWS = "The law changes between two scales; beyond them the other law holds."
"""Of call paths whose model has a change point."""
_GONE = "It does not occur at the largest scale; nothing is predicted."
"""Of call paths that have a model of the smaller scales."""
_LEGEND = "● measured  ⣀ model  ░ band  ┊ end of the data  ◆ target"
_LEGEND_ASCII = "o measured  * model  : band  | end of data  X target"

Fact = tuple[str, str]
"""Something to say of a call path: a word, and the text."""


def model_text(
    ranking: Ranking,
    row: int,
    *,
    width: int,
    linear: bool,
    ascii_only: bool,
    needs: Requirements | None = None,
) -> list[str]:
    """Return the lines of `cpmodel show` for the call path in `row`, at the target.

    `needs` are what it needs beside time, if that is known.
    """
    fitted = ranking.fitted
    tree = fitted.experiment.tree
    lines = [f"{tree.path(row)}   @{tree.ids()[row]}   {origin(ranking.fitted, row)}".rstrip()]
    lines += measured_line(ranking, row, ascii_only=ascii_only)
    if ranking.leader[row] < 0:
        return [*lines, no_model(ranking, row), "", *_dressed(value_facts(ranking, row))]
    lines += [
        *whole_formula(ranking, row, ascii_only=ascii_only),
        _formula(ranking, row, ascii_only=ascii_only),
        "",
    ]
    rows = rows_of(ranking, row)
    uneven = None if ranking.inclusive else ImbalanceSources.of(fitted)
    at = float(ranking.value[row]), float(ranking.low[row]), float(ranking.high[row])
    seen = at if ranking.repetitions else None
    curve = curve_of(fitted, rows, ranking.target, linear=linear, count=_GRID, seen=seen)
    chart = draw(
        curve,
        fitted.metric.unit,
        parameter=fitted.parameter,
        width=max(30, min(72, width - 18)),
        linear=linear,
        ascii_only=ascii_only,
    )
    lines += [*chart, f"    {_LEGEND_ASCII if ascii_only else _LEGEND}", ""] if chart else []
    lines += [
        *_dressed(quality_facts(ranking, row)),
        *_others(ranking, row, ascii_only=ascii_only),
        "",
        *_excess(ranking, row),
        "",
        *(requirement_lines(ranking, row, needs, ascii_only=ascii_only) if needs else ()),
        *_dressed(value_facts(ranking, row)),
        *_dressed(imbalance_facts(uneven, row, ascii_only=ascii_only)),
        "",
    ]
    program = program_facts(ranking, row, ascii_only=ascii_only)
    return [*lines, *_dressed(neighbour_facts(ranking, row)), *_dressed(program)]


def no_model(ranking: Ranking, row: int) -> str:
    """Say why a call path has no model."""
    status = FitStatus(int(ranking.fitted.models.status[row]))
    return f"no model: {_GONE if status.modelled else status.sentence}"


def origin(fitted: Fitted, row: int) -> str:
    """Say where the code of a call path is, as far as that is known."""
    tree = fitted.experiment.tree
    region = tree.regions[tree.region[row]]
    place = f"{region.file}:{region.line}" if region.line >= 0 else region.file
    return " · ".join(part for part in (region.paradigm, place) if part)


def _dressed(facts: Sequence[Fact]) -> list[str]:
    return [f"{label:<{_LABEL}}{text}" for label, text in facts]


def whole_formula(ranking: Ranking, row: int, *, ascii_only: bool) -> list[str]:
    """Return the model in all parameters, which the one along one parameter is a slice of."""
    fitted, surface = ranking.fitted, ranking.fitted.surface
    if surface is None or ranking.inclusive:
        return []
    names = ", ".join(surface.parameters)
    lines = [f"{fitted.metric.name}({names}) = {surface.formula(row, pretty=not ascii_only)}"]
    if fitted.of_line.size and fitted.of_line[row]:
        at = setting_text(fitted.held)
        lines.append(f"closer to the runs at {at} is a model of these alone:")
    return lines


def measured_line(ranking: Ranking, row: int, *, ascii_only: bool) -> list[str]:
    """Say what was measured at the target, if it was run two times or more."""
    if not ranking.repetitions:
        return []
    unit, value = ranking.fitted.metric.unit, float(ranking.value[row])
    where = f"at {target_text(ranking)}"
    if np.isnan(value):
        return [f"{where}: it did not occur"]
    low, high = float(ranking.low[row]), float(ranking.high[row])
    return [f"{where}: {amount_text(value, low, high, unit, ascii_only=ascii_only)}"]


def predicted_text(ranking: Ranking, row: int, *, ascii_only: bool = False) -> str:
    """Write what the model says at a finite target, with its band; and how far that is off."""
    fitted, unit, said = ranking.fitted, ranking.fitted.metric.unit, ranking.predicted
    value, low, high = (float(each[row]) for each in (said.value, said.low, said.high))
    amount = amount_text(value, low, high, unit, ascii_only=ascii_only)
    text = f"at {at_text(fitted, ranking.target)}: {amount}"
    off = float(ranking.deviation[row])
    if not ranking.repetitions or np.isnan(off):
        return text
    return f"{text}, {signed_percent(off)} against what was measured"


def _formula(ranking: Ranking, row: int, *, ascii_only: bool) -> str:
    unit = ranking.fitted.metric.unit
    pretty = not ascii_only
    growth = growth_range_text(ranking, row, pretty=pretty)
    fitted = ranking.fitted
    formula = formula_text(ranking, row, pretty=pretty)
    since = formula_from_text(fitted, rows_of(ranking, row))
    formula += since
    held = "".join(f", {name}={parameter_value(value)}" for name, value in fitted.held.items())
    text = f"{fitted.metric.name}({fitted.parameter}{held}) = {formula}"
    text += f"  [{unit}]" if unit != "1" else ""
    if np.isfinite(ranking.target):
        text += f"   {predicted_text(ranking, row, ascii_only=ascii_only)}"
    # Where the formula says it, the growth need not.
    growth += "" if since else from_text(fitted, int(ranking.leader[row]))
    return f"{text}   growth {growth}"


def rows_of(ranking: Ranking, row: int) -> IntArray:
    """Return the call paths that a ranked value is made of."""
    end = ranking.fitted.experiment.tree.end[row] if ranking.inclusive else row + 1
    return np.arange(row, end)


def _sum_of(ranking: Ranking, row: int) -> str:
    """Say what an inclusive prediction is the sum of."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    parts = int(fitted.modelled[row : tree.end[row]].sum())
    leader = int(ranking.leader[row])
    who = tree.path(leader) if leader != row else "its own part"
    return f"{counted(parts, 'model')}; fastest growing: {who}"


def quality_facts(ranking: Ranking, row: int) -> list[Fact]:
    """Say how good a model is; of a sum, what it is the sum of."""
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
        known = hypotheses(fitted, row, ranking.target, ascii_only=True)
        facts.append(("model", f"{known.sentence}{_chance(ranking, row)}"))
    return facts


def _others(ranking: Ranking, row: int, *, ascii_only: bool) -> list[str]:
    if ranking.inclusive:
        return []
    fitted = ranking.fitted
    others = hypotheses(fitted, row, ranking.target, ascii_only=ascii_only).others
    if not others:
        return [f"could also be: {NO_OTHER} ({compared_text(fitted)})"]
    at = at_text(fitted, ranking.target)
    classic = fitted.models.method == "classic"
    title = "could also be" if classic else "could also be (or much like)"
    width = max(cell_len(title) - 2, *(cell_len(other.formula) for other in others))
    lines = [f"{title:<{width + 2}} {'weight' if classic else 'prob. '} at {at}"]
    for other in others:
        value = float(other.values([ranking.target])[0])
        text = quantity(value, fitted.metric.unit, ascii_only=ascii_only)
        lines.append(f"  {set_cell_size(other.formula, width)} {percent(other.weight):>6} {text}")
    return lines


def _chance(ranking: Ranking, row: int) -> str:
    if np.isnan(ranking.first[row]):
        return ""
    return f"; to be among the {FIRST} costliest at the target {percent(ranking.first[row])}"


def _control(ranking: Ranking, row: int) -> list[Fact]:
    """Return the statistical quality control of the repetitions, where it has something to say."""
    fitted = ranking.fitted
    _, values = fitted.line.by_point(fitted.metric.name, fitted.parameter)
    repetitions = summarise(values[[row]], "mean", float(fitted.settings["confidence"]))
    if not repetitions.indistinct[0]:
        return []
    what = "one value lies in the confidence interval of every point"
    return [("control", f"{what}: the repetitions alone could explain the differences")]


@dataclass(frozen=True, slots=True, eq=False)
class ExcessStep:
    """Excess work between two scales, of every call path.

    Attributes
    ----------
    base, scale : values of the parameter
    predicted : whether the cost at the larger one is predicted, else measured
    inclusive, exclusive : [call paths] fractions of the total at the larger scale
    efficiency : [call paths] cost under perfect scaling over the cost, with callees
    """

    base: float
    scale: float
    predicted: bool
    inclusive: FloatArray
    exclusive: FloatArray
    efficiency: FloatArray

    @property
    def title(self) -> str:
        """Name the two scales."""
        steps = f"{parameter_value(self.base)} → {parameter_value(self.scale)}"
        return steps + " predicted" * self.predicted


def excess_steps(ranking: Ranking) -> list[ExcessStep]:
    """Return excess work between the smallest scale and each other one, and at the target.

    There is none of a metric that does not add up over call paths.
    """
    fitted, base = ranking.fitted, float(ranking.fitted.points[0])
    if not fitted.metric.additive:
        return []
    between = partial(measured_excess, fitted.line, fitted.metric.name, fitted.parameter, base)
    steps = []
    for point in map(float, fitted.points[1:]):
        found = between(point, aggregate=fitted.models.aggregate)
        shares = found.inclusive, found.exclusive
        steps.append(ExcessStep(base, point, False, *shares, found.efficiency))
    if ranking.target > fitted.points[-1]:
        shares = ranking.excess.inclusive, ranking.excess.exclusive
        efficiency = ranking.excess.efficiency
        steps.append(ExcessStep(base, ranking.target, True, *shares, efficiency))
    return steps


def _excess(ranking: Ranking, row: int) -> list[str]:
    fitted = ranking.fitted
    if not fitted.metric.additive:
        return ["excess work: this metric does not add up over call paths"]
    title = f"excess work ({scaling_over(fitted.line, fitted.parameter)} scaling)"
    steps = excess_steps(ranking)
    width = max(len(title) - 2, *(len(step.title) for step in steps))
    lines = [f"{title:<{width + 2}}  inclusive  exclusive  efficiency"]
    for step in steps:
        shares = step.inclusive[row], step.exclusive[row], step.efficiency[row]
        inclusive, exclusive, left = (percent(float(share), 1) for share in shares)
        lines.append(f"  {step.title:<{width}}{inclusive:>11}{exclusive:>11}{left:>12}")
    return lines


def value_facts(ranking: Ranking, row: int) -> list[Fact]:
    """Say what was measured, and how evenly processes shared it."""
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
        own = ", of its own cost" if len(rows) > 1 else ""
        what = f"   (largest / mean of the processes{own})"
        facts.append(("imbalance", f"{fitted.parameter} = " + "   ".join(uneven) + at + what))
    return facts


def imbalances(fitted: Fitted, row: int) -> list[tuple[float, float]]:
    """Return points and the imbalance of the exclusive cost of a call path there, where known."""
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
    """Say what calls a call path, and what it calls, with the measured parts of its cost."""
    tree = ranking.fitted.experiment.tree
    inclusive = tree.inclusive(np.nan_to_num(ranking.fitted.measured[:, -1]))
    caller = int(tree.parent[row])
    above = short_name(tree.name(caller)) if caller != ROOT else "nothing"
    below = sorted(tree.children(row), key=lambda child: -inclusive[child])
    named = [
        f"{short_name(tree.name(child))} ({percent(_part(inclusive[child], inclusive[row]))})"
        for child in below[:6]
    ]
    more = f", {len(below) - 6} more" if len(below) > 6 else ""
    return [("called by", above), ("calls", f"{', '.join(named) or 'nothing'}{more}")]


def program_facts(ranking: Ranking, row: int, *, ascii_only: bool = False) -> list[Fact]:
    """Say how long the program runs at the target, as the ranking does, and the share of it."""
    fitted = ranking.fitted
    if np.isinf(ranking.target) or not fitted.metric.additive:
        return []
    share = float(ranking.share[row])
    part = "" if np.isnan(share) else f". This call path takes {percent(share)} of the total"
    return [("program", f"{cost_text(ranking, ascii_only=ascii_only)}{part}.")]


def _part(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _error(error: float) -> str:
    return "> 100 %" if error > 1 else percent(error, 1)
