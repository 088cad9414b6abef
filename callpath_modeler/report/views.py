"""Predictions at a target in one of the three views: for people and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.forecast import SHARE, Forecast, Foreseen
from callpath_modeler.analysis.trust import MARKS
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import Costs, Values
from callpath_modeler.profile.outline import Line, Wanted
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.formats import Cell, Table, json_number, provenance
from callpath_modeler.report.layout import Column, wrap
from callpath_modeler.report.outlines import (
    Shown,
    check_text,
    node_columns,
    tree_lines,
)
from callpath_modeler.report.ranking import fit_settings
from callpath_modeler.units import counted, interval, parameter_value, percent, quantity, to_ascii

_GREY = "dim"


@dataclass(frozen=True, eq=False)
class ForecastView(Shown):
    """A forecast in one of the three views.

    Attributes
    ----------
    forecast : what is shown
    wanted : which view, and how much of it
    """

    forecast: Forecast
    wanted: Wanted

    @property
    def tree(self) -> CallTree:
        """The call paths."""
        return self.forecast.fitted.experiment.tree

    @property
    def costs(self) -> Costs:
        """The columns of the forecast."""
        return self.forecast.costs

    @property
    def column(self) -> int:
        """Shares at the target decide."""
        return SHARE

    @cached_property
    def values(self) -> tuple[Foreseen, Foreseen]:
        """Exclusive and inclusive values, each [lines]."""
        return self.forecast.of_lines(*self.outline.values(self.forecast.costs))

    def leader(self, line: Line, *, inclusive: bool) -> int:
        """Return the call path that grows fastest of those a line is about, or -1."""
        rows = np.concatenate([self.view.rows(node) for node in line.nodes.tolist()])
        return self.forecast.leader(rows, inclusive=inclusive)

    def growth(self, line: Line, *, inclusive: bool, pretty: bool = False) -> str | None:
        """Return the fastest growth of what a line is about."""
        leader = self.leader(line, inclusive=inclusive)
        fitted = self.forecast.fitted
        if leader < 0:
            return None
        return fitted.models.growth(leader).text(fitted.parameter, pretty=pretty)


def views_table(shown: ForecastView, findings: Sequence[Finding] = ()) -> Table:
    """Return one row per line of the view."""
    fitted, lines = shown.forecast.fitted, shown.outline.lines
    columns = node_columns(shown.outline)
    columns["metric"] = [fitted.metric.name] * len(lines)
    for kind, inclusive in (("inclusive", True), ("exclusive", False)):
        columns[f"growth_{kind}"] = [shown.growth(line, inclusive=inclusive) for line in lines]
    numbers: dict[str, list[Cell]] = {}
    own, whole = shown.values
    for kind, values in (("inclusive", whole), ("exclusive", own)):
        named = {
            "value_at_largest": values.at_largest,
            "value_at_target": values.value,
            "low": values.low,
            "high": values.high,
            "share_at_largest": values.share_at_largest,
            "share_at_target": values.share,
            "excess": values.excess,
        }
        numbers |= {f"{name}_{kind}": column.tolist() for name, column in named.items()}
        numbers[f"trust_{kind}"] = [int(t) if t >= 0 else None for t in values.trust]
    flags: dict[str, list[Cell]] = {"is_hot": list(shown.is_hot)}
    united = [name for name in numbers if name.startswith(("value", "low", "high"))]
    units = dict.fromkeys(united, fitted.metric.unit)
    return Table({**columns, **numbers, **flags}, units, _header(shown, findings))


def _header(shown: ForecastView, findings: Sequence[Finding]) -> dict[str, object]:
    ranking, fitted = shown.forecast.ranking, shown.forecast.fitted
    total, low, high = (json_number(number) for number in ranking.total)
    check = shown.check
    return {
        **provenance(fitted.experiment, findings),
        "metric": fitted.metric.name,
        "parameter": fitted.parameter,
        "points": [float(point) for point in fitted.points],
        "target": json_number(ranking.target),
        "base": ranking.base,
        "view": str(shown.wanted.kind),
        "total": {
            "at_largest": json_number(ranking.total_at_largest),
            "at_target": total,
            "low": low,
            "high": high,
        },
        "unmodelled": {
            "callpaths": len(ranking.unmodelled),
            "share": ranking.unmodelled_share,
        },
        "hot_path": [shown.view.name(node) for node in shown.hot],
        "hidden_callpaths": len(shown.outline.hidden),
        "sum_check": {
            "lines": [json_number(float(value)) for value in check.counted[:2]],
            "total": [json_number(float(value)) for value in check.total[:2]],
            "holds": check.holds,
        },
        "fit": fit_settings(fitted),
    }


def views_text(
    shown: ForecastView,
    *,
    width: int | None,
    full_names: bool,
    ascii_only: bool,
    again: tuple[str, str] = ("EXP", ""),
) -> list[Text]:
    """Return the view for people: the answer first, then the tree, then what is not in it.

    Parameters
    ----------
    width : of the terminal; None = nothing is cut
    full_names : functions with return type and arguments
    again : sources and options that ask for the same
    """
    say = to_ascii if ascii_only else str
    columns = _columns(shown, ascii_only=ascii_only)
    body = tree_lines(
        shown.outline, columns, width=width, full_names=full_names, ascii_only=ascii_only
    )
    head = wrap(say(_verdict(shown, ascii_only=ascii_only)), width, "bold")
    lines = [*head, *wrap(say(_context(shown)), width, _GREY), Text(""), *body, Text("")]
    for line in _footer(shown, again, ascii_only=ascii_only):
        lines += wrap(say(line), width, _GREY, indent="  ")
    return lines


def _verdict(shown: ForecastView, *, ascii_only: bool) -> str:
    """Answer the question: how long, how sure, and where."""
    ranking, fitted = shown.forecast.ranking, shown.forecast.fitted
    at = f"{fitted.parameter} = {parameter_value(ranking.target)}"
    if not len(ranking.order):
        return f"At {at}: nothing could be predicted."
    if not shown.hot:
        return f"At {at}: {fitted.metric.name} is predicted to be zero."
    unit, (total, low, high) = fitted.metric.unit, ranking.total
    answer = f"As {fitted.parameter} grows without end, "
    if np.isfinite(ranking.target):
        amount = quantity(total, unit, ascii_only=ascii_only)
        answer = f"At {at}: {amount} ({interval(low, high, unit, ascii_only=ascii_only)}); "
    node, name = shown.culprit
    end, inclusive = np.array([node]), shown.inclusive
    own, whole = shown.forecast.of_nodes(shown.view, end)
    share = percent(float((whole if inclusive else own).share[0]))
    line = Line(end, 0, is_rest=False, is_closed=False)
    growth = shown.growth(line, inclusive=inclusive, pretty=not ascii_only)
    top_down = shown.wanted.kind is ViewKind.TOP_DOWN
    where = f"the hot path leads to {name}" if top_down else f"most is in {name}"
    return f"{answer}{where}: {share}{'' if inclusive else ' by itself'}, {growth}."


def _context(shown: ForecastView) -> str:
    fitted, experiment = shown.forecast.fitted, shown.forecast.fitted.experiment
    spread = f"{parameter_value(fitted.points[0])} … {parameter_value(fitted.points[-1])}"
    return (
        f"{experiment.name} · {fitted.metric.name}, {experiment.reduction} over processes · "
        f"{fitted.parameter} = {spread} ({len(fitted.points)} points, "
        f"{len(experiment.runs)} runs) · {experiment.scaling} scaling"
    )


def _columns(shown: ForecastView, *, ascii_only: bool) -> list[Column]:
    ranking, fitted, unit = shown.forecast.ranking, shown.forecast.fitted, _unit(shown)
    own, whole = shown.values
    main, other = (whole, own) if shown.inclusive else (own, whole)

    def texts(values: Values, *last: float) -> list[str]:
        return [quantity(float(v), unit, ascii_only=ascii_only) for v in (*values, *last)]

    total = ranking.total
    bands = [
        "-" if np.isnan(low) else interval(float(low), float(high), unit, ascii_only=ascii_only)
        for low, high in zip([*main.low, total[1]], [*main.high, total[2]], strict=True)
    ]
    shares = [
        f"{percent(before)} → {percent(after)}"
        for before, after in zip(
            np.nan_to_num(main.share_at_largest).tolist(), main.share.tolist(), strict=True
        )
    ]
    lines = shown.outline.lines
    inclusive, pretty = shown.inclusive, not ascii_only
    growth = [shown.growth(li, inclusive=inclusive, pretty=pretty) or "" for li in lines]
    flags = [">" * is_hot for is_hot in shown.is_hot]
    largest, target = (
        f"{fitted.parameter}={parameter_value(v)}" for v in (fitted.points[-1], ranking.target)
    )
    total_excess = float(np.nansum(ranking.excess.exclusive))
    columns = [
        Column(largest, texts(main.at_largest, ranking.total_at_largest)),
        Column(target, texts(main.value, ranking.total[0])),
        Column(f"{float(fitted.settings['confidence']):.0%} band", bands),
        Column("with callees" if other is whole else "own", [*texts(other.value), ""], droppable=5),
        Column("share", [*shares, ""], droppable=3),
        Column("excess", [percent(v) for v in (*main.excess, total_excess)], droppable=4),
        Column("growth", [*growth, ""], right=False, droppable=1),
        Column("trust", [*(_marks(int(t)) for t in main.trust), ""], droppable=2),
        Column("", [*flags, ""]),
    ]
    finite = np.isfinite(ranking.target)
    return columns if finite else [c for c in columns if not c.header.endswith("band")]


def _unit(shown: ForecastView) -> str:
    return shown.forecast.fitted.metric.unit


def _marks(trust: int) -> str:
    return "●" * trust + "○" * (MARKS - trust) if trust >= 0 else ""


def _footer(shown: ForecastView, again: tuple[str, str], *, ascii_only: bool) -> list[str]:
    ranking, unit = shown.forecast.ranking, _unit(shown)
    lines = []
    kind = "with callees" if shown.inclusive else "by themselves"
    lines.append(f"values: {kind}; growth: the fastest in the value; > is the hot path")
    if len(ranking.unmodelled):
        lines.append(
            f"not modelled: {counted(len(ranking.unmodelled), 'call path')}, "
            f"{percent(ranking.unmodelled_share)} of the total at the largest scale"
        )
    column = 1 if np.isfinite(ranking.target) else 0
    sums = [
        quantity(float(values[column]), unit, ascii_only=ascii_only)
        for values in (shown.check.counted, shown.check.total)
    ]
    lines.append(check_text(shown.outline, shown.check, sums))
    sources, options = again
    if shown.wanted.kind is ViewKind.TOP_DOWN:
        lines.append(f"next: cpmodel views {sources} --view bottom-up {options}".rstrip())
    return lines
