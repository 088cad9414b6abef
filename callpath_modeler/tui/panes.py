"""Panes around the table: the head with the target, the description of the node, the status."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.pair_forecast import PairForecast
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.headline import beyond, fastest_at, known_by, off_by, omissions
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle, shorten, wrap
from callpath_modeler.report.losses_text import wanted
from callpath_modeler.report.node import FormulaNodeReport, NodeReport
from callpath_modeler.report.outlined_view import short_names
from callpath_modeler.tui.services import SourceFiles
from callpath_modeler.tui.session import Session
from callpath_modeler.units import counted, parameter_value, percent, setting_text

if TYPE_CHECKING:
    from callpath_modeler.report.difference_view import DifferenceReport

    AnyReport = NodeReport | DifferenceReport
    """Description of a node in one experiment, or in two."""

_FURTHEST = 64
"""End of the slider as a multiple of the largest run, unless the target is further."""
_SLIDER = 24
_SOURCE_LINES, _LEAST_SOURCE = 5, 3
_LEAST_TITLE = 40
"""Least width of a call path next to other text, in cells; else it has its own line."""
_NOISE_UNKNOWN = "noise not known: no repetitions, no models"
_LEAST_NAME = 6
"""Least width of the name of an experiment, in cells."""


def head(
    session: Session, target: float, width: int, *, style: TextStyle = DEFAULT_STYLE
) -> list[Text]:
    """Return two lines: the experiment and the view, and the target with its prediction.

    Parameters
    ----------
    session : the session
    target : the requested target; the predictions may still be for an earlier one
    width : width in terminal cells
    style : width, length of names, and characters of text
    """
    say = style.say
    forecast, fitted = session.forecast, session.forecast.fitted
    kinds = _kinds(session)
    values = "inclusive" if session.leads_inclusive else "exclusive"
    shown = f"{fitted.metric.name}, {values}"
    if isinstance(forecast, PairForecast):
        if cell_len(_pair_title(forecast, shown)) > width - len(kinds) - 3:
            kinds = _kinds(session, brief=True)
        room = width - len(kinds) - 3
        what = _pair_title(forecast, shown, room)
    else:
        room = width - len(kinds) - 3
        what = shorten([f"{fitted.experiment.name} · {shown}"], room, "…")
    first = Text(say(f" {set_cell_size(what, max(room, 0))} "), style="bold")
    first.append(say(kinds), "not bold")
    line = Text(f" {_at(session, target)} ", style="bold")
    if forecast.has_models:
        room = width // (8 if isinstance(forecast, PairForecast) else 4)
        line.append(slider(session, target, min(_SLIDER, room), style=style), "not bold")
    if isinstance(forecast, PairForecast):
        parts = _pair_answer(forecast, target, style=style)
    else:
        parts = [*_answer(forecast, target, style=style), *omissions(fitted.experiment)]
    for part in parts:
        if cell_len(f"{line.plain}  {say(part)}") <= width:
            line.append(f"  {say(part)}", "not bold")
    return [first[:width], line[:width]]


def _kinds(session: Session, *, brief: bool = False) -> str:
    """Return the views with their keys; `brief` = only the keys of the other views."""
    return ("  ", " ")[brief].join(
        f"[{k} {kind}]" if kind is session.kind else str(k) if brief else f"{k} {kind}"
        for k, kind in enumerate(ViewKind, start=1)
    )


def _at(session: Session, target: float) -> str:
    """Return the target, or the two scales that are compared."""
    forecast = session.forecast
    fitted = forecast.fitted
    if fitted.has_unknown_scale:
        return "unknown scale"
    if isinstance(forecast, PairForecast):
        scales = [forecast.scale if target == forecast.target else target]
    else:
        scales = [forecast.base, target] if forecast.is_comparison else [target]
    return f"{fitted.parameter} = {' and '.join(map(parameter_value, scales))}"


def _answer(forecast: Answer, target: float, *, style: TextStyle) -> list[str]:
    """Return the prediction at the target and its extrapolation factor, most important first."""
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
    value = amount_text(total, low, high, unit, style=style)
    how = known_by(forecast)[::-1]  # measured costs show that it is inside the data
    if forecast.is_comparison:
        excess = f"excess {percent(forecast.total_excess)}"
        how[:0] = [f"{excess}, {ideal_of(forecast.fitted).meaning}"]
    elif forecast.repetitions and not forecast.fitted.is_measured_only:
        how.append(f"models: {off_by(forecast)}")
    if forecast.fitted.ideal is not None and not forecast.is_comparison:
        how.append(f"excess: {forecast.fitted.ideal.meaning}")
    value = f"run time {value}" if run_time else value
    if not forecast.has_bands:
        value += " (band: working …)"
    return [value, *how]


def _pair_title(forecast: PairForecast, shown: str, room: int | None = None) -> str:
    """Return the names of both experiments and the shown values.

    Parameters
    ----------
    forecast : the two experiments
    shown : the shown values
    room : width in terminal cells, for which the longer name is shortened first; None = any
    """
    names = list(forecast.inputs.names)
    whole = f"base {names[0]} · new {names[1]} · {shown}"
    if room is None or cell_len(whole) <= room:
        return whole
    free = room - cell_len(f"base  · new  · {shown}")
    for this, other in ((0, 1), (1, 0)):
        least = max(_LEAST_NAME, free // 2, free - cell_len(names[other]))
        names[this] = shorten([names[this]], least, "…")
    return f"base {names[0]} · new {names[1]} · {shown}"


def _pair_answer(forecast: PairForecast, target: float, *, style: TextStyle) -> list[str]:
    """Return the totals of both and their difference, the leading scale first."""
    if forecast.target != target:
        return ["working …"]
    # One experiment needs none of the modules that compare two.
    from callpath_modeler.report.diff_text import known_by, total_texts

    found, parts = forecast.found[0], list[str]()
    for changes in found.answers:
        amounts, by, band = total_texts(found, changes, style)
        how = known_by(found, changes, style)
        if parts:
            parts.append(f"at {setting_text(changes.at)}: {amounts}, {by} ({how})")
        else:
            parts += [amounts, how, by, *([f"({band})"] if band else [])]
    return parts


def _pair_notes(forecast: PairForecast) -> list[str]:
    """Return the meaning of marks, and what the totals leave out."""
    found, notes = forecast.found[0], list[str]()
    left_out = int(found.left_out.sum()) if found.changes is found.predicted else 0
    if left_out:
        notes.append(f"{counted(left_out, 'call path')} not predicted, in neither total")
    return [*notes, "~ noise may explain it" if found.can_tell else _NOISE_UNKNOWN]


def slider(session: Session, target: float, width: int, *, style: TextStyle = DEFAULT_STYLE) -> str:
    """Return a slider of the parameter with the end of the data and the target."""
    points = session.forecast.fitted.points
    first, last = float(points[0]), float(points[-1])
    track, edge, mark, left, right = "-|X<>" if style.ascii_only else "─┊◆◂▸"
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


def report_of(session: Session, *, style: TextStyle = DEFAULT_STYLE) -> AnyReport | None:
    """Return the description of the node under the cursor, or None."""
    if not len(session.outline):
        return None
    nodes, forecast = session.outline.line(session.cursor).nodes, session.forecast
    if isinstance(forecast, PairForecast):
        # The comparison of experiments needs many modules, and one experiment none of them.
        from callpath_modeler.report.difference_view import DifferenceReport

        return DifferenceReport(forecast, session.view, nodes, session.leads_inclusive, style)
    kind = NodeReport if forecast.fitted.formula is None else FormulaNodeReport
    return kind(forecast, session.view, nodes, session.leads_inclusive, style)


@dataclass(frozen=True, slots=True)
class PaneText:
    """The description of a node, of which a pane shows a part.

    Attributes
    ----------
    title : lines that always stay
    lines : lines that scroll
    code : lines of the source that always stay, below the others
    chart : lines that stay at the right of the others; empty = the chart is among the others
    left : width of the lines that scroll, in terminal cells
    height : height of the pane
    style : characters of text
    """

    title: Sequence[Text]
    lines: Sequence[Text]
    code: Sequence[Text]
    chart: Sequence[str]
    left: int
    height: int
    style: TextStyle

    @property
    def room(self) -> int:
        """Number of lines that scroll and fit the pane."""
        return max(0, self.height - len(self.title) - len(self.code))

    @property
    def furthest(self) -> int:
        """The first line of the last part."""
        return max(0, len(self.lines) - self.room)

    def part(self, first: int) -> list[Text]:
        """Return the lines of the pane from line `first` on; marks tell that more lines follow."""
        first = min(max(first, 0), self.furthest)
        room = self.room
        shown = [line.copy() for line in self.lines[first : first + room]]
        if first + room < len(self.lines) and shown:
            mark = self.style.say(" …")
            row = shown[-1].plain
            if cell_len(row + mark) > self.left:
                row = set_cell_size(row, self.left - cell_len(mark))
            shown[-1] = Text(row + mark)
        chart = self.chart[: self.room]
        if chart:
            shown = [
                Text(f"{set_cell_size(a, self.left)}  {b}".rstrip())
                for a, b in zip_longest((row.plain for row in shown), chart, fillvalue="")
            ]
        return [*self.title, *shown, *self.code][: self.height]

    @property
    def text(self) -> str:
        """All lines as plain text."""
        lines = [*self.title, *self.lines, *self.code, *map(Text, self.chart)]
        return "\n".join(line.plain.rstrip() for line in lines)


def pane(
    report: AnyReport,
    width: int,
    height: int,
    *,
    beside: bool,
    source: Callable[[AnyReport, int], Sequence[Text]] | None = None,
    note: str = "",
) -> PaneText | None:
    """Return the description of a node; None = the pane is too small.

    Parameters
    ----------
    report : the node
    width, height : size of the pane in terminal cells
    beside : whether the pane is next to the table, and high; else it is below it, and wide
    source : returns at most a number of lines about the source of a node
    note : note of a bookmark; "" = none
    """
    if width < 20 or height < 2:
        return None
    say = report.style.say
    title = [] if beside else _title_and_imbalance(report, width)
    title = title or [
        Text(row.plain, style="bold") for row in wrap(say(report.title()), width, indent="  ")
    ]
    title = title[:height]
    room = height - len(title)
    code: Sequence[Text] = []
    if source is not None and report.has_losing_line:
        code = source(report, max(_LEAST_SOURCE, room // 4))
        room -= len(code)
    chart, left = report.chart(width, min(18, room // 3)), width
    text = [*report.model(), "", *chart, ""]
    if not beside:
        of_chart = max(36, width * 2 // 5)
        chart = report.chart(of_chart, room)
        left = width - of_chart - 2 if chart else width
        text = list(report.model())
    text = [*([f"note: {note}"] if note else []), *report.chain(), *text]
    text += [*report.alternatives(), *report.facts()]
    lines = [row for one in text for row in wrap(say(one), left, indent="  ")]
    code = [_cut(row, width) for row in code]
    if source is not None and not report.has_losing_line:
        lines += [_cut(row, left) for row in source(report, _SOURCE_LINES)]
    beside_lines = [] if beside else [say(row) for row in chart]
    return PaneText(title, lines, code, beside_lines, left, height, report.style)


def _cut(row: Text, width: int) -> Text:
    row.truncate(width)
    return row


def _title_and_imbalance(report: AnyReport, width: int) -> list[Text]:
    """Return both in one line, because a pane below the table has no more room; else nothing."""
    uneven = report.imbalance()
    room = width - cell_len(uneven) - 2
    if not uneven or room < _LEAST_TITLE:
        return []
    title = report.title(room)
    if cell_len(title) > room:
        return []
    say = report.style.say
    return [Text.assemble((set_cell_size(say(title), room + 2), "bold"), say(uneven))]


def source_lines(report: AnyReport, count: int, *, files: SourceFiles) -> list[Text]:
    """Return at most `count` lines of the source, with the losing line and values in the margin.

    Without values of lines, they are those at the start of the function. Without the source, they
    are the numbers of the losing lines.
    """
    say = report.style.say
    losses = report.line_losses if isinstance(report, NodeReport) else None
    if not isinstance(report, NodeReport) or losses is None or losses.worst is None:
        return _first_lines(report, count, files)
    file, worst = losses.worst
    values = {line: value for (other, line), value in losses.values.items() if other == file}
    text = files.lines(file)
    numbers = sorted(values, key=lambda line: -values[line])[: count - 1]
    around = (line for near in range(1, count) for line in (worst - near, worst + near))
    context = [line for line in around if 0 < line <= len(text) and line not in numbers]
    rows = []
    for number in sorted(numbers + context[: count - 1 - len(numbers)]):
        value = percent(values[number]) if number in values else ""
        row = text[number - 1] if 0 < number <= len(text) else ""
        mark = ">" if number == worst else " "
        style = "bold" if number == worst else "dim"
        rows.append(Text(say(f"{mark}{value:>6} {number:>5} {row}".rstrip()), style=style))
    return [Text(say(report.lines_title(file, known=bool(text))), style="dim"), *rows]


def _first_lines(report: AnyReport, count: int, files: SourceFiles) -> list[Text]:
    """Return the numbered lines of the source at the start of a function, if it can be read."""
    region = report.regions[0] if report.regions else None
    if region is None or region.line < 1:
        return []
    start = max(1, region.line - 1)
    rows = enumerate(files.lines(region.file)[start - 1 : start - 1 + count], start)
    return [Text(report.style.say(f"{number:>5} {row}"), style="dim") for number, row in rows]


def status(session: Session, message: str, width: int, *, style: TextStyle = DEFAULT_STYLE) -> Text:
    """Return one line: a message, or the filters of the view."""
    say = style.say
    count = len(session.outline)
    parts = [f"{session.cursor + 1 if count else 0}/{count}"]
    parts += [_found(session)] if session.found.text else []
    start = session.tree_cursor.start
    if start != ROOT:
        parts.append(f"zoomed to {shorten(short_names(session.view.names(start)), 40)}")
    parts += [f"filter {session.pattern}"] if session.pattern else []
    parts += [_sorted_by(session)] if _sorted_by(session) else []
    parts += [f"hidden: below {percent(session.least)}"] if session.hides else []
    forecast, known = session.forecast, session.forecast.inputs
    if isinstance(forecast, Answer) and (turning := forecast.turning):
        parts.append(f"fastest {fastest_at(forecast.fitted, turning)}")
    if isinstance(forecast, PairForecast):
        parts += _pair_notes(forecast)
    elif known.fitted.is_measured_only:
        parts.append(wanted(known.fitted, "press b"))
    elif len(known.unmodelled):
        share = percent(known.unmodelled_share)
        parts.append(f"{len(known.unmodelled)} without a model ({share} of today's cost)")
    text = Text(say(f" {message or ' · '.join(parts)}"), style="reverse" if message else "dim")
    text.truncate(width, overflow="crop")
    return text


def _found(session: Session) -> str:
    """Return the text of the search, and the number of the hit under the cursor."""
    found = session.found
    number, count = found.number(session.node), len(found.nodes)
    where = f"{number} of {count}" if number else f"{count} found"
    return f"{shorten([found.text], 20)}: {where}{' (n N next, previous)' * (count > 1)}"


def _sorted_by(session: Session) -> str:
    """Return the order of siblings, unless it is the default."""
    if session.sort is session.forecast.usual_sort and not session.reverse:
        return ""
    return f"by {session.sort}{', smallest first' if session.reverse else ''}"
