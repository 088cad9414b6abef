"""One call path in full: formula, chart, what else it could be, excess work, neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.excess import measured_excess, scaling_over
from callpath_modeler.analysis.predict import predict_sum
from callpath_modeler.analysis.rank import FIRST, Ranking
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import FitStatus, summarise
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.chart import Curve, draw
from callpath_modeler.report.ranking import at_text, formula_text, growth_text
from callpath_modeler.units import (
    counted,
    interval,
    parameter_value,
    percent,
    quantity,
    setting_text,
)

_WORTH_A_WORD = 0.01
"""Relative weight from which on another hypothesis is listed."""
_GRID = 400
"""Points at which the curve is evaluated: more than any terminal has columns."""


def model_text(
    ranking: Ranking, row: int, *, width: int, linear: bool, ascii_only: bool
) -> list[str]:
    """Return the lines of `cpmodel show` for the call path in `row`, predicted at the target."""
    fitted = ranking.fitted
    tree = fitted.experiment.tree
    region = tree.regions[tree.region[row]]
    place = f"{region.file}:{region.line}" if region.line >= 0 else region.file
    origin = " · ".join(part for part in (region.paradigm, place) if part)
    lines = [f"{tree.path(row)}   @{tree.ids()[row]}   {origin}".rstrip()]
    if ranking.leader[row] < 0:
        status = FitStatus(int(fitted.models.status[row]))
        return [*lines, f"no model: {status.sentence}", "", *_values(ranking, row)]
    lines += [
        *_whole_formula(ranking, row, ascii_only=ascii_only),
        _formula(ranking, row, ascii_only=ascii_only),
        "",
    ]
    curve = _curve(ranking, row, linear=linear)
    lines += draw(
        curve,
        fitted.metric.unit,
        parameter=fitted.parameter,
        width=max(30, min(72, width - 18)),
        linear=linear,
        ascii_only=ascii_only,
    )
    legend = "o measured  * model  : band  | end of data  X target"
    if not ascii_only:
        legend = "● measured  ⣀ model  ░ band  ┊ end of the data  ◆ target"
    lines += [f"    {legend}", "", *_quality(ranking, row, ascii_only=ascii_only), ""]
    return [*lines, *_excess(ranking, row), "", *_values(ranking, row), "", *_kin(ranking, row)]


def _whole_formula(ranking: Ranking, row: int, *, ascii_only: bool) -> list[str]:
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


def _formula(ranking: Ranking, row: int, *, ascii_only: bool) -> str:
    unit = ranking.fitted.metric.unit
    pretty = not ascii_only
    growth = growth_text(ranking, row, pretty=pretty)
    formula = formula_text(ranking, row, pretty=pretty)
    fitted = ranking.fitted
    held = "".join(f", {name}={parameter_value(value)}" for name, value in fitted.held.items())
    text = f"{fitted.metric.name}({fitted.parameter}{held}) = {formula}"
    text += f"  [{unit}]" if unit != "1" else ""
    if np.isfinite(ranking.target):
        value = quantity(float(ranking.value[row]), unit, ascii_only=ascii_only)
        band = interval(
            float(ranking.low[row]), float(ranking.high[row]), unit, ascii_only=ascii_only
        )
        text += f"   at {at_text(fitted, ranking.target)}: {value} ({band})"
    return f"{text}   growth {growth}"


def _curve(ranking: Ranking, row: int, *, linear: bool) -> Curve:
    return curve_of(ranking.fitted, _rows(ranking, row), ranking.target, linear=linear)


def curve_of(
    fitted: Fitted,
    rows: NDArray[np.integer],
    target: float,
    *,
    linear: bool = False,
    count: int = _GRID,
    banded: bool = True,
) -> Curve:
    """Return the chart of what some call paths cost together, up to the target.

    Parameters
    ----------
    count : points at which the curve is evaluated
    banded : whether it has a band, which takes long where call paths are many
    """
    last = float(fitted.points[-1])
    end = max(last, target) if np.isfinite(target) else last
    start = min(float(fitted.points[0]), end)
    grid = np.linspace(start, end, count) if linear else np.geomspace(start, end, count)
    if banded:
        value, low, high = predict_sum(fitted, rows, grid)
    else:
        value = fitted.models.sum_values(rows[fitted.modelled[rows]], grid)
        low = high = np.full(count, np.nan)
    measured = measured_of(fitted, rows)
    return Curve(
        points=fitted.points,
        # What was measured elsewhere is not on this curve.
        measured=measured if fitted.held == fitted.measured_at else measured * np.nan,
        grid=grid,
        value=value,
        low=low,
        high=high,
        end_of_data=last,
        target=target if np.isfinite(target) else None,
    )


def measured_of(fitted: Fitted, rows: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return what some call paths cost together at each point, [K]; NaN = none occurred."""
    total = np.full(len(fitted.points), np.nan)
    for point in range(len(total)):  # one after the other: of many call paths, all are large
        values = fitted.measured[rows, point]
        if not np.isnan(values).all():
            total[point] = np.nansum(values)
    return total


def _rows(ranking: Ranking, row: int) -> NDArray[np.intp]:
    """Return the call paths that a ranked value is made of."""
    end = ranking.fitted.experiment.tree.end[row] if ranking.inclusive else row + 1
    return np.arange(row, end)


def _sum_of(ranking: Ranking, row: int) -> list[str]:
    """Say what an inclusive prediction is the sum of."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    parts = int(fitted.modelled[row : tree.end[row]].sum())
    leader = int(ranking.leader[row])
    who = tree.path(leader) if leader != row else "its own part"
    return [f"sum of   {counted(parts, 'model')}; fastest growing: {who}"]


def _quality(ranking: Ranking, row: int, *, ascii_only: bool) -> list[str]:
    if ranking.inclusive:
        return _sum_of(ranking, row)
    fitted, models = ranking.fitted, ranking.fitted.models
    status = FitStatus(int(models.status[row]))
    noise = models.noise[row]
    parts = [
        f"cross-validated error {_error(float(models.cv_error[row]))}",
        "noise unknown: no repetitions" if np.isnan(noise) else f"noise {noise:.1%}",
        f"adjusted R^2 {models.adjusted_r2[row]:.4f}",
        f"|1 - R^2| {abs(1 - models.r2[row]):.2g}",
        f"{int(models.used[row])} points",
    ]
    lines = ["quality   " + "   ".join(parts), f"status    {fitted.status(row)}: {status.sentence}"]
    lines += _control(ranking, row)
    others = [
        other
        for other in models.alternatives(row, fitted.parameter)
        if other.weight >= _WORTH_A_WORD
    ]
    if models.method != "classic":
        lines.append(
            f"model     probability {float(models.weight[row]):.0%}{_chance(ranking, row)}"
        )
    if not others:
        return [*lines, "could also be: nothing else fits the data nearly as well"]
    at = at_text(fitted, ranking.target)
    classic = models.method == "classic"
    title = "could also be" if classic else "could also be (or much like)"
    lines.append(f"{title:<46} {'weight' if classic else 'prob. '} at {at}")
    for other in others:
        value = float(other.values([ranking.target])[0])
        text = quantity(value, fitted.metric.unit, ascii_only=ascii_only)
        lines.append(f"  {other.formula:<44} {other.weight:>6.0%} {text}")
    return lines


def _chance(ranking: Ranking, row: int) -> str:
    if np.isnan(ranking.first[row]):
        return ""
    return f"; among the {FIRST} costliest at the target with {ranking.first[row]:.0%}"


def _control(ranking: Ranking, row: int) -> list[str]:
    """Return the statistical quality control of the repetitions, where it has something to say."""
    fitted = ranking.fitted
    _, values = fitted.line.by_point(fitted.metric.name, fitted.parameter)
    repetitions = summarise(values[[row]], "mean", float(fitted.settings["confidence"]))
    if not repetitions.indistinct[0]:
        return []
    what = "one value lies in the confidence interval of every point"
    return [f"control   {what}: the repetitions alone could explain the differences"]


def _excess(ranking: Ranking, row: int) -> list[str]:
    """Return excess work between neighbouring scales, and at the target."""
    fitted, experiment = ranking.fitted, ranking.fitted.line
    if not fitted.metric.additive:
        return ["excess work: this metric does not add up over call paths"]
    scaling = scaling_over(experiment, fitted.parameter)
    lines = [f"{f'excess work ({scaling} scaling)':<32}  inclusive  exclusive  efficiency"]
    base = float(fitted.points[0])
    for point in fitted.points[1:]:
        excess = measured_excess(
            experiment, fitted.metric.name, fitted.parameter, base, float(point)
        )
        what = f"{parameter_value(base)} → {parameter_value(point)}"
        lines.append(_excess_line(what, float(excess.inclusive[row]), float(excess.exclusive[row])))
    if ranking.target > fitted.points[-1]:
        what = f"{parameter_value(base)} → {parameter_value(ranking.target)} predicted"
        own, below = ranking.excess.exclusive[row], ranking.excess.inclusive[row]
        lines.append(_excess_line(what, float(below), float(own)))
    return lines


def _excess_line(what: str, inclusive: float, exclusive: float) -> str:
    return f"  {what:<30}{inclusive:>11.1%}{exclusive:>11.1%}{1 - inclusive:>12.1%}"


def _values(ranking: Ranking, row: int) -> list[str]:
    fitted = ranking.fitted
    pairs = zip(fitted.points, measured_of(fitted, _rows(ranking, row)), strict=True)
    cells = [
        f"{parameter_value(point)}: {quantity(float(value), fitted.metric.unit)}"
        for point, value in pairs
    ]
    at = f", {setting_text(fitted.measured_at)}" if fitted.measured_at else ""
    lines = [f"measured  {fitted.parameter} = " + "   ".join(cells) + at]
    uneven = imbalance_cells(fitted, row)
    if uneven:
        own = ", of its own cost" if len(_rows(ranking, row)) > 1 else ""
        what = f"   (largest / mean of the processes{own})"
        lines.append(f"imbalance {fitted.parameter} = " + "   ".join(uneven) + at + what)
    return lines


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


def _kin(ranking: Ranking, row: int) -> list[str]:
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
    return [f"called by {above}", f"calls     {', '.join(named) or 'nothing'}{more}"]


def _part(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _error(error: float) -> str:
    return "> 100 %" if error > 1 else f"{error:.1%}"
