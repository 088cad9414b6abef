"""Requirements of a call path, and the part of its time that they explain."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.imbalance_sources import ImbalanceSources
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.requirements import Requirements
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.layout import aligned
from callpath_modeler.report.ranking_table import growth_text
from callpath_modeler.report.text_style import DEFAULT_STYLE, TextStyle
from callpath_modeler.units import factor_text, parameter_value, percent

_ALL = 0.9
"""Part of the time from which requirements explain it."""
_NAMED = 2
"""Largest number of call paths that are named."""
_AS_MUCH = 1.1
"""Factor below which a requirement counts as constant."""


def requirement_lines(
    ranking: Ranking, row: int, found: Requirements, *, style: TextStyle
) -> list[str]:
    """Return a table of time and requirements at both ends of the data, and its conclusion."""
    head, *rows = requirement_rows(ranking, row, found, style=style)
    lines = aligned([head, *((f"  {name}", *cells) for name, *cells in rows)], numbers=True)
    return [*lines, verdict(ranking, row, found), ""]


def requirement_rows(
    ranking: Ranking, row: int, found: Requirements, *, style: TextStyle = DEFAULT_STYLE
) -> list[tuple[str, ...]]:
    """Return the header and the rows of the table, the time first."""
    fitted = ranking.fitted
    scales = [float(found.points[found.base]), float(found.points[-1])]
    if scales[-1] < ranking.target < np.inf:
        scales.append(ranking.target)
    growth = growth_text(ranking, row, pretty=not style.ascii_only)
    lines = [(fitted.metric, found.time, found.time_at_target, growth)]
    for need in found.needs:
        growth = "-"
        if need.growth is not None:
            growth = need.growth.text(fitted.parameter, pretty=not style.ascii_only)
        lines.append((need.metric, need.values, need.at_target, growth))
    titles = [f"{fitted.parameter}={parameter_value(scale)}" for scale in scales]
    rows = [("requirements", *titles[:2], "change", "growth", *titles[2:])]
    for metric, values, at_target, growth in lines:
        amounts = [float(values[found.base]), float(values[-1]), at_target][: len(scales)]
        texts = [style.amount(amount, metric.unit) for amount in amounts]
        change = f"× {factor_text(found.times(values))}"
        rows.append((metric.name, *texts[:2], change, growth, *texts[2:]))
    return rows


def verdict(ranking: Ranking, row: int, found: Requirements) -> str:
    """Return the part of the time that requirements explain, and possible causes of the rest."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    last = f"{fitted.parameter} = {parameter_value(float(found.points[-1]))}"
    most = max(found.needs, key=lambda need: found.times(need.values))
    if found.share >= _ALL:
        if found.times(most.values) < _AS_MUCH:
            return f"Neither its requirements nor its time have grown up to {last}."
        times = factor_text(found.times(most.values))
        return f"The time is explained by {most.metric.name}, which grew by a factor of {times}."
    parts = [f"{_at_most(found.share)} of the time at {last}"]
    if ranking.target > found.points[-1] and not np.isnan(found.share_at_target):
        parts.append(f"{_at_most(found.share_at_target)} at {parameter_value(ranking.target)}")
    names = ", ".join(need.metric.name for need in found.needs)
    waits = tree.regions[tree.region[row]].call_class.waits
    rest = "waiting or slower calls" if waits else "more work in each call, imbalance or contention"
    return f"At fixed unit costs, {names} explain {' and '.join(parts)}; the rest is {rest}."


def imbalance_facts(
    sources: ImbalanceSources | None, row: int, *, style: TextStyle = DEFAULT_STYLE
) -> list[tuple[str, str]]:
    """Return the computation whose imbalance may cause a call path to wait, if it is known."""
    found = None if sources is None else sources.near(row)
    if sources is None or found is None:
        return []
    fitted = sources.fitted
    tree, unit = fitted.experiment.tree, fitted.metric.unit

    def name(one: int) -> str:
        return short_name(tree.name(one))

    def time(value: float) -> str:
        return style.amount(value, unit)

    first = zip(found.rows[:_NAMED].tolist(), found.above, found.ratio, strict=False)
    most = ", ".join(f"{name(one)} by {time(above)} (× {ratio:.3g})" for one, above, ratio in first)
    where = f"{fitted.parameter} = {parameter_value(float(fitted.points[-1]))}"
    times = found.total / found.wait
    part = f"{percent(times)} of" if times < 1 else f"{factor_text(times)} ×"
    text = (
        f"{where}: below {name(found.caller)}, the slowest process computes at most "
        f"{time(found.total)} longer than the mean, {part} the time here; {most}"
    )
    return [("delay", text)]


def _at_most(share: float) -> str:
    text = percent(share)
    return text if text.startswith("<") else f"at most {text}"
