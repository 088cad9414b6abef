"""The call tree on the page: inclusive cost of each call path at the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from callpath_modeler.analysis.answer import Answer
from callpath_modeler.profile.outline import SHARED
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn
from callpath_modeler.report.outlined_view import sum_check_text, title
from callpath_modeler.report.page.markup import Html, escaped, joined, number, scrolling, tag
from callpath_modeler.report.page.names import CallPathLinks, cut
from callpath_modeler.report.page.ranking import coloured, trust_text
from callpath_modeler.report.views import ForecastView, value_cells
from callpath_modeler.units import percent, quantity

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


def page_request(request: ViewRequest) -> ViewRequest:
    """Return the view of a request, with as many levels and lines as a page shows."""
    return replace(request, depth=_DEEPEST, most=_LINES, top=None)


_TREE = page_request(ViewRequest(least=0.01))
"""The view of a report; call paths below 1 % share a line."""


def tree_section(
    forecast: Answer, names: CallPathLinks, request: ViewRequest | None = None
) -> Html:
    """Return a view as nested lists that fold.

    Parameters
    ----------
    forecast : the predictions
    names : names of call paths, with links to cards
    request : the view, from `page_request`; None = the call tree of a report

    Raises
    ------
    UsageError
        If no call path matches the filter.
    """
    if not forecast.repetitions and not forecast.inputs.modelled.any():
        return tag("p", "No call path could be modelled.")
    request = _TREE if request is None else request
    shown = ForecastView(forecast, request)
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
    heads = (tag("span", column.header, class_=name) for name, column in columns.items())
    first = tag("span", title(shown.outline), class_="name")
    header = tag("div", first, *heads, class_="line heads")
    trust = main.trust.tolist()
    rows = [
        _line(columns, numbers, trust, k, _name(shown, k, names)) for k in range(len(shown.outline))
    ]
    body = Html("".join(_nested(shown, rows)))
    metric, check = forecast.size_metric, shown.check
    column = len(check.counted) - 1
    sums = [quantity(float(each[column]), metric.unit) for each in (check.counted, check.total)]
    name = "the sum" if forecast.has_imbalance else "the total"
    of = "" if metric == forecast.fitted.metric else f" of {metric.name}"
    told = sum_check_text(shown.outline, check, sums, f"{name}{of}")
    small = f"call paths below {percent(request.least)} of the total share a line; "
    about = f"bold: the hot path; {small * bool(request.least)}"
    return joined(
        scrolling("Call tree", tag("div", header, body, class_="tree", style=style)),
        tag("p", f"{about}{told}", class_="aside"),
    )


def _nested(shown: ForecastView, rows: Sequence[Html]) -> Iterator[str]:
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


def _name(shown: ForecastView, k: int, names: CallPathLinks) -> Html:
    outline = shown.outline
    if outline.nodes[k] == SHARED:
        return tag("span", f"… {len(outline.rests[k])} more", class_="name rest")
    node = int(outline.nodes[k])
    name = shown.view.name(node)
    short = cut(short_name(name), _NAMED) + " …" * bool(outline.is_closed[k])
    hot = tag("span", " hot path", class_="unseen") if node in shown.hot else ""
    text = tag("code", escaped(short), title=None if short == name else cut(name))
    rows = shown.view.rows(node) if shown.view.kind is not ViewKind.TOP_DOWN else [node]
    said = joined(names.link(int(rows[0]), text) if len(rows) == 1 else text, hot)
    return tag("span", said, class_="name hot" if hot else "name")


def _line(
    columns: dict[str, TextColumn],
    numbers: dict[str, list[float]],
    trust: Sequence[int],
    k: int,
    name: Html,
) -> Html:
    cells = []
    for key, column in columns.items():
        text = coloured(column, k)
        shown: str = number(numbers[key][k], text) if key in numbers else text
        if key == "trust":
            shown = trust_text(text, trust[k] if trust[k] >= 0 else None)
        cells.append(tag("span", shown, class_=key))
    return tag("span", name, *cells, class_="line")
