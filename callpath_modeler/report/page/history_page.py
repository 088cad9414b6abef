"""The page of a history of commits, and the page of scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.history.judgement import HistoryChange
from callpath_modeler.history.predictions import Scoreboard
from callpath_modeler.report.curve import Axes
from callpath_modeler.report.history_text import (
    PROGRAM_BESIDE_CONTROL,
    HistoryEntry,
    basis,
    efficiency_rows,
    efficiency_title,
    headline,
)
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.page import markup
from callpath_modeler.report.page.document import document
from callpath_modeler.report.scores import (
    case_text,
    marks_columns,
    path_columns,
    score_remarks,
    score_rows,
    score_verdict,
)
from callpath_modeler.report.table_formats import shown_columns
from callpath_modeler.units import parameter_value, quantity, signed_percent

_WIDTH, _HEIGHT = 560, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 20, 12, 34
_MOST_CHARTS = 40
_STYLE = """
.history {
  display: grid; grid-template-columns: repeat(auto-fill, minmax(min(28rem, 100%), 1fr)); gap: 1rem;
}
#changes td { white-space: normal; min-width: 6rem; }
.worse { color: var(--bad); } .better { color: var(--good); } .past { color: var(--quiet); }
.suspected, .joint, .common { color: var(--unsure); }
.point.new { fill: var(--target); stroke: var(--target); }
"""


def history_page(history: CommitHistory, found: Sequence[HistoryEntry], source: str) -> str:
    """Return an HTML document that needs no other file.

    Parameters
    ----------
    source : name of the history's file
    """
    lede = markup.joined(
        markup.tag("h1", headline(history, found)),
        markup.tag("p", basis(history), class_="aside"),
    )
    sections = {"changes": ("Changes", _changes(found))}
    rows_of_factors = efficiency_rows(history)
    if rows_of_factors:
        told = efficiency_title(history)
        note = markup.tag("p", told, class_="aside")
        sections["efficiency"] = (
            "Efficiency",
            markup.joined(note, markup.plain_table(rows_of_factors, told)),
        )
    rows = list(dict.fromkeys(each.row for each in found if each.row is not None))
    costly = np.argsort(-np.nan_to_num(np.nanmax(history.values[:, -1, -1], axis=-1)))
    listed = [*rows, *(row for row in costly.tolist() if row not in rows)]
    shared = "What all call paths share" if history.control is None else "Control and program"
    sections["common"] = (shared, _common(history, found))
    sections["callpaths"] = ("Call paths", _cards(history, found, listed[:_MOST_CHARTS]))
    title = f"{source}: {history.newest.metric} at commit {history.newest.commit}"
    return document(title, lede, sections, style=_STYLE)


def _changes(found: Sequence[HistoryEntry]) -> markup.Html:
    if not found:
        return markup.tag("p", "No call path changed.")
    rows = [
        markup.tag(
            "tr",
            markup.cell(str(each.status), kind=str(each.status)),
            *map(markup.cell, (each.name, each.said, each.dated)),
        )
        for each in found
    ]
    titles = [markup.head(text) for text in ("status", "call path", "change", "commit")]
    return markup.table(titles, rows, caption="Changes of the history")


def _common(history: CommitHistory, found: Sequence[HistoryEntry]) -> markup.Html:
    levels, control = history.found.levels, history.control is not None
    who = "the call paths of the control" if control else "all call paths"
    label = f"Factor that {who} of a record share at the largest scale"
    title = markup.tag("h3", "the control") if control else ""
    chart = _chart(history, levels.common[:, -1], [], "common", label)
    cards = [markup.tag("div", title, chart, class_="card")]
    if levels.program is not None:
        mine = [each for each in found if each.name == PROGRAM_BESIDE_CONTROL]
        said = [markup.tag("p", each.said, class_=str(each.status)) for each in mine]
        label = "Cost of all other call paths at the largest scale, relative to the control"
        chart = _chart(history, levels.program[:, -1], mine, "program", label)
        cards.append(
            markup.tag("div", markup.tag("h3", PROGRAM_BESIDE_CONTROL), *said, chart, class_="card")
        )
    return markup.tag("div", *cards, class_="history")


def _cards(
    history: CommitHistory, found: Sequence[HistoryEntry], rows: Sequence[int]
) -> markup.Html:
    cards = []
    for row in rows:
        mine = [each for each in found if each.row == row]
        largest = history.levels(row)
        known = largest[~np.isnan(largest)]
        amount = quantity(float(known[-1]), history.newest.unit) if len(known) else "-"
        at = parameter_value(float(history.scales[-1]))
        said = [markup.tag("p", each.said, class_=str(each.status)) for each in mine]
        label = f"Level of {history.callpaths[row]} over the records of the history"
        levels = history.found.levels.own[row, :, -1]
        cards.append(
            markup.tag(
                "article",
                markup.tag("h3", history.callpaths[row]),
                markup.tag("p", f"{amount} at {history.newest.parameter} = {at}", class_="aside"),
                *said,
                _chart(history, levels, mine, f"row-{row}", label),
                class_="card",
            )
        )
    left = len(history.callpaths) - len(cards)
    note = (
        markup.tag("p", f"{left} cheaper call paths are not shown.", class_="aside") if left else ""
    )
    return markup.joined(markup.tag("div", *cards, class_="history"), note)


def _chart(
    history: CommitHistory,
    levels: FloatArray,
    found: Sequence[HistoryEntry],
    key: str,
    label: str,
) -> markup.Html:
    """Return the chart of levels over the records, relative to those before a change."""
    there = np.flatnonzero(~np.isnan(levels))
    if not len(there):
        return markup.tag("p", "not measured at the largest common scale", class_="aside")
    changes = [HistoryChange(each.row, dict(each.answers)).level for each in found]
    alarms = [each[1] for each in changes if each is not None]
    first = min((each.earliest for each in alarms), default=len(levels))
    middle = float(np.median(levels[there[there < first]])) if there[0] < first else 0.0
    change = np.expm1(np.clip(levels - middle, -20.0, 20.0))
    low, high = float(np.nanmin(change)), float(np.nanmax(change))
    room = max(0.1 * (high - low), 0.02)
    low, high = low - room, high + room

    axes = Axes(0.0, float(max(len(levels) - 1, 1)), low, high, linear=True)
    frame = markup.PlotArea(axes, _LEFT, _WIDTH - _RIGHT, _TOP, _HEIGHT - _BOTTOM)
    parts = [markup.tag("title", label, id=f"{key}-title")]
    parts += markup.value_grid(
        frame, _ticks(low, high), lambda at: "0" if abs(at) < 1e-9 else signed_percent(at)
    )
    for alarm in alarms:
        left, right = frame.x(alarm.earliest - 0.5), frame.x(alarm.latest + 0.5)
        top, bottom = frame.top, frame.bottom
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        parts.append(markup.tag("path", class_="band", d=f"{markup.outline(corners)}Z"))
    for record in there.tolist():
        one = history.records[record]
        said = f"commit {one.commit}: {signed_percent(float(change[record]))}"
        kind = "point new" if record == len(levels) - 1 else "point"
        place = {"cx": frame.x(record), "cy": frame.y(float(change[record]))}
        parts.append(
            markup.tag(
                "g", markup.tag("title", said), markup.tag("circle", class_=kind, r=3.0, **place)
            )
        )
    names = (
        (history.records[0].commit, "start", _LEFT),
        (history.newest.commit, "end", _WIDTH - _RIGHT),
    )
    for name, side, at in names:
        text = name if len(name) <= 24 else f"{name[:12]}…"
        parts.append(
            markup.tag("text", text, class_=f"tick {side}", x=at, y=_HEIGHT - _BOTTOM + 20)
        )
    return markup.tag(
        "svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_labelledby=f"{key}-title"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return round values between two ends, at most six."""
    step = 10.0 ** np.floor(np.log10(max(high - low, 1e-9)))
    for factor in (0.2, 0.5, 1.0, 2.0):
        if (high - low) / (step * factor) <= 6:
            step *= factor
            break
    first = int(np.ceil(low / step))
    return [k * step for k in range(first, int(np.floor(high / step)) + 1)]


_MOST_ROWS = 400
_PAGE_STYLE = ".NO { color: var(--bad); font-weight: bold; }"


def scores_page(found: Scoreboard, store: Path) -> str:
    """Return scores as an HTML document that needs no other file."""
    style = TextStyle(width=None)
    lede = markup.joined(
        markup.tag("h1", score_verdict(found)),
        *(markup.tag("p", line, class_="aside") for line in score_remarks(found, store)),
    )
    sections: dict[str, tuple[str, markup.Html]] = {}
    if found.cases:
        listed = [markup.tag("li", case_text(case, style)) for case in reversed(found.cases)]
        sections["runs"] = ("Runs", markup.tag("ul", *listed))
        calibration = markup.columns_table(
            marks_columns(found, style), caption="Bands by marks of trust"
        )
        sections["marks"] = ("Marks of trust", calibration)
        sections["callpaths"] = ("Call paths", _paths(found, style))
    return document(f"{store.name}: scores of predictions", lede, sections, style=_PAGE_STYLE)


def _paths(found: Scoreboard, style: TextStyle) -> markup.Html:
    rows = score_rows(found)
    listed = rows[:_MOST_ROWS]
    columns = shown_columns(path_columns(found, listed, style), style)
    names = [case.callpaths[row] for case, row in listed]
    content = markup.columns_table(columns, names, caption="Predictions and measurements")
    left = len(rows) - len(listed)
    note = markup.tag("p", f"{left} cheaper or older predictions are not shown.", class_="aside")
    return markup.joined(content, note if left else "")
