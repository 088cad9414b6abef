"""What stands around the table: the head with the target, the pane of the node, and status."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.answer import beyond, fastest_at, known_by, off_by, omissions
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.layout import shorten, wrap
from callpath_modeler.report.node import NodeReport
from callpath_modeler.report.outlined_view import short_names
from callpath_modeler.tui.session import Session
from callpath_modeler.units import parameter_value, percent, to_ascii

_FURTHEST = 64
"""The slider ends at this multiple of the largest run, or at the target if that is further."""
_SLIDER = 24
_SOURCE_LINES = 5
_LEAST_TITLE = 40
"""Cells of a call path that has its line to itself if there are fewer."""
_LARGEST_SOURCE = 2_000_000


def head(session: Session, target: float, width: int, *, ascii_only: bool = False) -> list[Text]:
    """Return two lines: what is shown, and the target with what is predicted there.

    Parameters
    ----------
    target : that was asked for; what is shown may be still of another
    """
    say: Callable[[str], str] = to_ascii if ascii_only else str
    fitted = session.forecast.fitted
    kinds = "  ".join(
        f"[{k} {kind}]" if kind is session.kind else f"{k} {kind}"
        for k, kind in enumerate(ViewKind, start=1)
    )
    values = "inclusive" if session.leads_inclusive else "exclusive"
    room = width - len(kinds) - 3
    what = shorten([f"{fitted.experiment.name} · {fitted.metric.name}, {values}"], room, "…")
    first = Text(say(f" {set_cell_size(what, max(room, 0))} "), style="bold")
    first.append(say(kinds), "not bold")
    at = f" {fitted.parameter} = {parameter_value(target)} "
    line = Text(at, style="bold")
    line.append(
        slider(session, target, min(_SLIDER, width // 4), ascii_only=ascii_only), "not bold"
    )
    answer = _answer(session, target, ascii_only=ascii_only)
    for part in (*answer, *omissions(fitted.experiment)):
        if cell_len(f"{line.plain}  {say(part)}") <= width:
            line.append(f"  {say(part)}", "not bold")
    return [first[:width], line[:width]]


def _answer(session: Session, target: float, *, ascii_only: bool) -> list[str]:
    """Return what is predicted at the target and how far that is, the first first."""
    forecast = session.forecast
    if forecast.target != target:
        where = beyond(forecast.fitted, target) if np.isfinite(target) else "growth alone"
        return [f"{where}: working …"]
    unit = forecast.fitted.metric.unit
    run_time = forecast.run_time
    total, low, high = run_time.total if run_time else forecast.total
    if np.isinf(target):
        return ["shares in the limit"]
    if not forecast.has_bands:
        low = high = math.nan
    value = amount_text(total, low, high, unit, ascii_only=ascii_only)
    how = known_by(forecast)[::-1]  # what runs there took says that it is inside the data, too
    if forecast.repetitions:
        how.append(f"models: {off_by(forecast)}")
    value = f"run time {value}" if run_time else value
    if not forecast.has_bands:
        value += " (band: working …)"
    return [value, *how]


def slider(session: Session, target: float, width: int, *, ascii_only: bool = False) -> str:
    """Draw the parameter: where the data end, and where the target is."""
    points = session.forecast.fitted.points
    first, last = float(points[0]), float(points[-1])
    track, edge, mark, left, right = "-|X<>" if ascii_only else "─┊◆◂▸"
    end = max(last * _FURTHEST, target if np.isfinite(target) else 0.0)
    start = min(first, target)

    def place(value: float) -> int:
        if math.isinf(value):
            return width - 1
        return round((width - 1) * math.log(value / start) / math.log(end / start))

    cells = [track] * width
    cells[place(last)] = edge
    cells[place(target)] = mark
    return f"{left}{parameter_value(start)} {''.join(cells)} {right}"


def report_of(session: Session, *, ascii_only: bool = False) -> NodeReport | None:
    """Return what there is to know of the node under the cursor; None where there is none."""
    if not len(session.outline):
        return None
    nodes = session.outline.line(session.cursor).nodes
    return NodeReport(session.forecast, session.view, nodes, session.leads_inclusive, ascii_only)


def pane(
    report: NodeReport,
    width: int,
    height: int,
    *,
    beside: bool,
    source: Callable[[Region, int], Sequence[str]] | None = None,
) -> list[Text]:
    """Return what there is to know of a node, at most `height` lines.

    Parameters
    ----------
    report : the node
    beside : the pane is beside the table, and high; else below it, and wide
    source : gives the lines of the source about a region, so many at most
    """
    if width < 20 or height < 2:
        return []
    say: Callable[[str], str] = to_ascii if report.ascii_only else str
    title = [] if beside else _title_and_imbalance(report, width)
    title = title or [
        Text(row.plain, style="bold") for row in wrap(say(report.title()), width, indent="  ")
    ]
    height -= len(title)
    if beside:
        chart = report.chart(width, min(18, height // 3))
        text = [*report.model(), "", *chart, "", *report.alternatives(), *report.facts()]
        lines = _first(text, width, height, say)
    else:
        room = max(36, width * 2 // 5)
        chart = report.chart(room, height)
        left = width - room - 2 if chart else width
        text = [*report.model(), *report.alternatives(), *report.facts()]
        parts = [row.plain for row in _first(text, left, height, say)]
        lines = [
            Text(f"{set_cell_size(a, left)}  {b}".rstrip())
            for a, b in zip_longest(parts, [say(row) for row in chart], fillvalue="")
        ]
    if source is not None and report.regions and len(lines) < height - 1:
        room = min(_SOURCE_LINES, height - len(lines))
        code = source(report.regions[0], room)
        lines += [Text(say(row.expandtabs(4))[:width], style="dim") for row in code]
    return [*title, *lines[:height]]


def _first(text: Sequence[str], width: int, height: int, say: Callable[[str], str]) -> list[Text]:
    """Wrap text, at most `height` lines; where the last is not the end of its own, it says so."""
    lines: list[Text] = []
    for one in text:
        parts, room = wrap(say(one), width, indent="  "), height - len(lines)
        lines += parts[:room]
        if len(parts) > room > 0:
            mark = say(" …")
            row = lines[-1].plain
            row = row if cell_len(row + mark) <= width else set_cell_size(row, width - len(mark))
            lines[-1] = Text(row + mark)
        if len(lines) >= height:
            break
    return lines


def _title_and_imbalance(report: NodeReport, width: int) -> list[Text]:
    """Return both in one line, which there is no other for below the table; none if none fits."""
    uneven = report.imbalance()
    room = width - cell_len(uneven) - 2
    if not uneven or room < _LEAST_TITLE:
        return []
    title = report.title(room)
    if cell_len(title) > room:
        return []
    say: Callable[[str], str] = to_ascii if report.ascii_only else str
    return [Text.assemble((set_cell_size(say(title), room + 2), "bold"), say(uneven))]


def source_about(region: Region, count: int) -> list[str]:
    """Return the lines of the source that a region begins in, numbered, where it can be read."""
    path = Path(region.file)
    try:
        if region.line < 1 or not path.is_file() or path.stat().st_size > _LARGEST_SOURCE:
            return []
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []
    start = max(0, region.line - 2)
    return [f"{k:>5} {row}" for k, row in enumerate(lines[start : start + count], start + 1)]


def status(session: Session, message: str, width: int, *, ascii_only: bool = False) -> Text:
    """Return one line: what narrows the view, or what there is to say."""
    say: Callable[[str], str] = to_ascii if ascii_only else str
    count = len(session.outline)
    parts = [f"{session.cursor + 1 if count else 0}/{count}"]
    start = session.tree_cursor.start
    if start != ROOT:
        parts.append(f"zoomed to {shorten(short_names(session.view.names(start)), 40)}")
    parts += [f"filter {session.pattern}"] if session.pattern else []
    parts += [_sorted_by(session)] if _sorted_by(session) else []
    parts += [f"hidden: below {percent(session.least)}"] if session.hides else []
    turning = session.forecast.turning
    parts += [f"fastest {fastest_at(session.forecast.fitted, turning)}"] if turning else []
    known = session.forecast.inputs
    if len(known.unmodelled):
        share = percent(known.unmodelled_share)
        parts.append(f"{len(known.unmodelled)} without a model ({share} of today)")
    text = Text(say(f" {message or ' · '.join(parts)}"), style="reverse" if message else "dim")
    text.truncate(width, overflow="crop")
    return text


def _sorted_by(session: Session) -> str:
    """Say what siblings are ordered by, where that is not the value."""
    if session.sort is Sort.VALUE and not session.reverse:
        return ""
    return f"by {session.sort}{', smallest first' if session.reverse else ''}"
