"""What a call path needs, and how much of its time that explains, as lines."""

from __future__ import annotations

import numpy as np
from rich.cells import cell_len

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.requirements import Requirements
from callpath_modeler.report.ranking_table import growth_text
from callpath_modeler.units import factor_text, parameter_value, percent, quantity

_ALL = 0.9
"""From this part of the time on, what is needed explains it."""
_AS_MUCH = 1.1
"""What has become more by less than this factor is as much as before."""
_WAIT = frozenset({"mpi", "shmem", "openmp", "pthread"})
"""Paradigms whose functions wait for others."""


def requirement_lines(
    ranking: Ranking, row: int, found: Requirements, *, ascii_only: bool
) -> list[str]:
    """Return a table of time and needs at both ends of the data, and what follows from it."""
    lines = _cells(ranking, row, found, ascii_only=ascii_only)
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    padded = [
        [" " * (w - cell_len(t)) for t, w in zip(cells, widths, strict=True)] for cells in lines
    ]
    table = [
        "  ".join(
            [name + pads[0], *(pad + text for pad, text in zip(pads[1:], numbers, strict=True))]
        )
        for (name, *numbers), pads in zip(lines, padded, strict=True)
    ]
    return [*table, verdict(ranking, row, found), ""]


def _cells(ranking: Ranking, row: int, found: Requirements, *, ascii_only: bool) -> list[list[str]]:
    """Return the header and the rows of the table, the time first."""
    fitted, is_beyond = ranking.fitted, ranking.fitted.points[-1] < ranking.target < np.inf
    parameter, metric = fitted.parameter, fitted.metric
    needs = [
        (
            need.metric,
            need.values,
            need.at_target,
            "-" if need.growth is None else need.growth.text(parameter, pretty=not ascii_only),
        )
        for need in found.needs
    ]
    time = (
        metric,
        found.time,
        found.time_at_target,
        growth_text(ranking, row, pretty=not ascii_only),
    )
    scales = [*found.points[[found.base, -1]], *([ranking.target] if is_beyond else [])]
    titles = [f"{parameter}={parameter_value(float(scale))}" for scale in scales]
    lines = [["requirements", *titles[:2], "change", "growth", *titles[2:]]]
    for what, values, at_target, growth in (time, *needs):
        amounts = [float(values[found.base]), float(values[-1]), at_target][: len(scales)]
        texts = [quantity(amount, what.unit, ascii_only=ascii_only) for amount in amounts]
        change = f"× {factor_text(found.times(values))}"
        lines.append([f"  {what.name}", *texts[:2], change, growth, *texts[2:]])
    return lines


def verdict(ranking: Ranking, row: int, found: Requirements) -> str:
    """Say how much of the time is explained by what is needed, and what the rest may be."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    last = f"{fitted.parameter} = {parameter_value(float(found.points[-1]))}"
    most = max(found.needs, key=lambda need: found.times(need.values))
    if found.share >= _ALL:
        if found.times(most.values) < _AS_MUCH:
            return f"It has no more to do at {last}, and takes no longer for it."
        times = factor_text(found.times(most.values))
        return f"That {most.metric.name} are {times} times as many explains it."
    parts = [f"{_at_most(found.share)} of the time at {last}"]
    if ranking.target > found.points[-1] and not np.isnan(found.explained_at_target):
        share = found.explained_at_target / found.time_at_target
        parts.append(f"{_at_most(share)} at {parameter_value(ranking.target)}")
    names = ", ".join(need.metric.name for need in found.needs)
    waits = tree.regions[tree.region[row]].paradigm in _WAIT
    rest = "waiting or slower calls" if waits else "more work in each call, imbalance or contention"
    return f"At fixed costs {names} explain {' and '.join(parts)}; the rest is {rest}."


def _at_most(share: float) -> str:
    text = percent(share)
    return text if text.startswith("<") else f"at most {text}"
