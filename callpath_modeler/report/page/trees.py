"""The ranking and the call tree on the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.analysis.answer import Answer, Ranking
from callpath_modeler.analysis.uncertain import MARKS, PROBABLE, WITHIN, marks_text
from callpath_modeler.arrays import IntArray
from callpath_modeler.profile.outline import SHARED
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.columns import MODEL_NOTE
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn, cut
from callpath_modeler.report.losses_text import ENSEMBLE, GAIN, LOSS, pair_note
from callpath_modeler.report.outlined_view import sum_check_text, title
from callpath_modeler.report.page import markup
from callpath_modeler.report.ranking_columns import RankedRows
from callpath_modeler.report.ranking_text import (
    ShownRanking,
    absent_notes,
    excess_notes,
    unmodelled_notes,
    value_notes,
)
from callpath_modeler.report.views_text import ForecastView, value_cells
from callpath_modeler.units import counted, percent, quantity

if TYPE_CHECKING:
    from callpath_modeler.report.table_formats import Values

_LEAST = 0.001
"""Share at the largest scale or at the target from which a call path always has a row."""
_MOST = 200
"""Default limit of rows; the other call paths share one row."""

_TO_THE_RIGHT = frozenset(
    {"rank", "base", "measured", "value", "band", "model", "maximum", "imbalance", "share"}
    | {"excess", "loss", "own_loss", ENSEMBLE}
)
"""Columns with numbers."""


def ranking_section(
    ranking: Ranking, names: markup.CallPathLinks, first: int, command: str
) -> markup.Html:
    """Return the ranked call paths, worst first, then a row for the others, and the total.

    Parameters
    ----------
    ranking : the ranking
    names : names of call paths
    first : number of call paths with rows; call paths with a large share have rows as well
    command : the command that lists all; "" = not known
    """
    rows = listed_rows(ranking, first)
    notes = [markup.tag("p", note, class_="aside") for note in _notes(ranking, rows)]
    if command and len(rows) < len(ranking.order):
        notes.append(
            markup.tag("p", "all call paths: ", markup.tag("code", command), class_="aside")
        )
    if not len(rows):
        return markup.joined(markup.tag("p", "No call path could be modelled."), *notes)
    return markup.joined(ranking_rows(ShownRanking(ranking, rows), names), *notes)


def ranking_rows(
    shown: ShownRanking, names: markup.CallPathLinks, charts: Sequence[markup.Html] = ()
) -> markup.Html:
    """Return a table of call paths, with a row for all others and the total.

    Parameters
    ----------
    shown : the call paths
    names : names of call paths
    charts : one for each call path, or empty
    """
    rows = shown.rows
    columns = shown.cells(rows, DEFAULT_STYLE)
    numbers, blank = _numbers(shown), [float("nan")] * len(rows)
    heads = [_head(name, column) for name, column in columns.items()]
    heads[1:1] = [markup.head("call path"), *([markup.head("chart")] if charts else ())]
    body = []
    for k, (row, path) in enumerate(zip(rows.tolist(), names.paths(rows), strict=True)):
        cells = [
            _cell(name, coloured(column, k), numbers.get(name, blank)[k])
            for name, column in columns.items()
        ]
        of_row = [
            markup.tag("th", names.link(row, path), scope="row"),
            *map(markup.cell, charts[k : k + 1]),
        ]
        body.append(markup.tag("tr", *cells[:1], *of_row, *cells[1:]))
    foot = [
        _last(columns, len(rows) + k, text, is_charted=bool(charts))
        for k, text in enumerate(shown.names_below)
    ]
    return markup.table(heads, body, caption="Call paths, the costliest first", foot=tuple(foot))


def listed_rows(ranking: Ranking, first: int) -> IntArray:
    """Return the first call paths, and further ones with a large share, worst first."""
    share = np.fmax(ranking.share, ranking.share_at_largest)[ranking.order]
    counts = np.nan_to_num(share) >= _LEAST
    counts[:first] = True
    return np.asarray(ranking.order[counts][: max(first, _MOST)])


def _numbers(shown: ShownRanking) -> dict[str, list[Any]]:
    """Return the sort keys of columns; bands by upper limit, growths by speed."""
    ranking, rows = shown.ranking, shown.rows
    of, leader = RankedRows.of(ranking, rows), ranking.leader[rows]
    costs = {ENSEMBLE: (ranking.ensemble.costs, 0)}
    if ranking.losses is not None:
        count = len(ranking.losses.pairs)
        costs |= {f"pair{k}": (ranking.losses.excess, k) for k in range(count)}
    columns: dict[str, Values] = {
        **{each.name or each.key: each.values(of) for each in shown.columns},
        **{
            name: (each.inclusive if ranking.inclusive else each.exclusive)[rows, column]
            for name, (each, column) in costs.items()
        },
        "band": of.main.high,
        "model": of.main.deviation,
        "growth": np.where(leader >= 0, ranking.fitted.models.growth_rank()[leader], -1),
    }
    return {name: [*values] for name, values in columns.items()}


def _head(name: str, column: TextColumn) -> markup.Html:
    return markup.head(column.header, right=_is_number(name), kind=name)


def _is_number(name: str) -> bool:
    """Return whether a column has numbers; those of pairs of scales have a number in the name."""
    return name in _TO_THE_RIGHT or name.startswith("pair")


def _cell(name: str, text: str, value: float) -> markup.Html:
    if name == "why":
        return markup.cell(text, kind=name)
    if name == "growth":
        return markup.tag("td", text, class_=name, data_order=value)
    if name == "trust":
        return markup.cell(trust_text(text, value), kind=name)
    shown = markup.number(value, text) if np.isfinite(value) else text
    return markup.cell(shown, right=_is_number(name), kind=name)


def coloured(column: TextColumn, k: int) -> str:
    """Return a cell of a column; losses and gains have a colour."""
    kind = {LOSS: "lost", GAIN: "gained"}.get(column.styles[k] if column.styles else "")
    return markup.tag("span", column.cells[k], class_=kind) if kind else column.cells[k]


def trust_text(marks: str, count: float | None) -> markup.Html:
    """Return marks of trust, with their number in words."""
    if count is None:
        return markup.Html("")
    said = f"{count:g} of {MARKS} marks"
    shown = markup.tag("span", marks, role="img", aria_label=said, title=said)
    return markup.tag("data", shown, value=f"{count:g}")


def _last(columns: dict[str, TextColumn], k: int, name: str, *, is_charted: bool) -> markup.Html:
    cells = [
        markup.cell(
            column.cells[k] if k < len(column.cells) else "", right=key in _TO_THE_RIGHT, kind=key
        )
        for key, column in columns.items()
    ]
    cells[1:1] = [markup.tag("th", name, scope="row"), *([markup.cell("")] if is_charted else ())]
    return markup.tag("tr", *cells)


def _notes(ranking: Ranking, rows: IntArray) -> list[str]:
    if ranking.fitted.is_measured_only:
        notes = [*absent_notes(ranking), *value_notes(ranking)]
    else:
        notes = [
            *unmodelled_notes(ranking),
            *absent_notes(ranking),
            *excess_notes(ranking),
            _trust_note(ranking),
        ]
        notes += [MODEL_NOTE] if ranking.repetitions else []
    notes += pair_note(ranking, inclusive=ranking.inclusive)
    if ranking.inclusive and len(rows) < len(ranking.order):
        rest = counted(len(ranking.order) - len(rows), "other call path")
        notes.insert(0, f"{rest} cost less; values are inclusive")
    return notes


def _trust_note(ranking: Ranking) -> str:
    """Return the meaning of marks of trust."""
    if np.isfinite(ranking.target):
        bounds = [f"a factor of {factor:g}" for factor in WITHIN]
        said = f"the {'interval' if ranking.repetitions else 'band'} lies within"
    else:
        bounds = [percent(probability) for probability in reversed(PROBABLE)]
        said = "the growth has a probability of at least"
    marks = [marks_text(MARKS - k) for k in range(MARKS)]
    steps = [f"{mark} {bound}" for mark, bound in zip(marks, bounds, strict=True)]
    return f"trust: {said} {', '.join(steps)}" + " of the value" * bool(np.isfinite(ranking.target))


_LINES = 400
"""Number of lines from which nothing is opened."""
_DEEPEST = 40
"""Largest number of levels; browsers fail a few hundred below it."""
_OPEN = 0.1
"""Share from which a subtree is open at first."""
_NAMED = 60
_NAME, _GAP = 6.0, 0.6
_WIDTHS = {
    "base": 5.0,
    "measured": 5.0,
    "value": 5.0,
    "band": 9.5,
    "model": 4.0,
    "share": 7.6,
    "loss": 4.0,
    "own_loss": 4.6,
    "growth": 7.0,
    "trust": 3.2,
}
"""Columns and their widths; the least width of names is in units of the font size."""


_TREE = ViewRequest(least=0.01, depth=_DEEPEST, most=_LINES, top=None)
"""The view of a page; call paths below 1 % share a line."""


def tree_section(forecast: Answer, names: markup.CallPathLinks) -> markup.Html:
    """Return the call tree as nested lists that fold.

    Parameters
    ----------
    forecast : the predictions
    names : names of call paths, with links to cards
    """
    if not forecast.repetitions and not forecast.inputs.modelled.any():
        return markup.tag("p", "No call path could be modelled.")
    shown = ForecastView(forecast, _TREE)
    own, whole = shown.values
    main = whole if shown.inclusive else own
    cells = value_cells(forecast, own, whole, inclusive=shown.inclusive, style=DEFAULT_STYLE)
    columns = {name: cells[name] for name in _WIDTHS if name in cells}
    values = {
        "base": main.at_base,
        "measured": main.at_largest,
        "value": main.value,
        "share": main.share,
        "loss": whole.excess,
        "own_loss": own.excess,
    }
    numbers = {name: column.tolist() for name, column in values.items()}
    widths = [_WIDTHS[name] for name in columns]
    least = _NAME + sum(widths) + _GAP * len(widths)
    listed = " ".join(f"{width}rem" for width in widths)
    style = f"--columns: minmax({_NAME}rem, 1fr) {listed}; --least: {least:.1f}rem"
    heads = (markup.tag("span", column.header, class_=name) for name, column in columns.items())
    first = markup.tag("span", title(shown.outline), class_="name")
    header = markup.tag("div", first, *heads, class_="line heads")
    trust = main.trust.tolist()
    rows = [
        _line(columns, numbers, trust, k, _name(shown, k, names)) for k in range(len(shown.outline))
    ]
    body = markup.Html("".join(_nested(shown, rows)))
    metric, check = forecast.size_metric, shown.check
    column = len(check.counted) - 1
    sums = [quantity(float(each[column]), metric.unit) for each in (check.counted, check.total)]
    name = "the sum" if forecast.has_imbalance else "the total"
    of = "" if metric == forecast.fitted.metric else f" of {metric.name}"
    told = sum_check_text(shown.outline, check, sums, f"{name}{of}")
    about = (
        f"bold: the hot path; call paths below {percent(_TREE.least)} of the total share a line; "
    )
    return markup.joined(
        markup.scrolling("Call tree", markup.tag("div", header, body, class_="tree", style=style)),
        markup.tag("p", f"{about}{told}", class_="aside"),
    )


def _nested(shown: ForecastView, rows: Sequence[markup.Html]) -> Iterator[str]:
    """Yield lines as nested lists, without recursion."""
    outline = shown.outline
    shares = shown.values[1 if shown.inclusive else 0].share
    yield '<ul role="list">'
    depth = 0
    for k, row in enumerate(rows):
        here = int(outline.depth[k])
        yield "</ul></details></li>" * (depth - here)
        depth = here
        if outline.is_open[k]:
            opened = " open" if not shares[k] < _OPEN else ""
            yield f'<li><details{opened}><summary>{row}</summary><ul role="list">'
            depth += 1
        else:
            yield f"<li>{row}</li>"
    yield "</ul></details></li>" * depth + "</ul>"


def _name(shown: ForecastView, k: int, names: markup.CallPathLinks) -> markup.Html:
    outline = shown.outline
    if outline.nodes[k] == SHARED:
        return markup.tag("span", f"… {len(outline.rests[k])} more", class_="name rest")
    node = int(outline.nodes[k])
    name = shown.view.name(node)
    short = cut(short_name(name), _NAMED) + " …" * bool(outline.is_closed[k])
    hot = markup.tag("span", " hot path", class_="unseen") if node in shown.hot else ""
    text = markup.tag("code", markup.escaped(short), title=None if short == name else cut(name))
    said = markup.joined(names.link(node, text), hot)
    return markup.tag("span", said, class_="name hot" if hot else "name")


def _line(
    columns: dict[str, TextColumn],
    numbers: dict[str, list[float]],
    trust: Sequence[int],
    k: int,
    name: markup.Html,
) -> markup.Html:
    cells = []
    for key, column in columns.items():
        text = coloured(column, k)
        shown: str = markup.number(numbers[key][k], text) if key in numbers else text
        if key == "trust":
            shown = trust_text(text, trust[k] if trust[k] >= 0 else None)
        cells.append(markup.tag("span", shown, class_=key))
    return markup.tag("span", name, *cells, class_="line")
