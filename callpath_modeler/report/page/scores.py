"""The page of scores: how remembered predictions compare with later runs."""

from __future__ import annotations

from pathlib import Path

from callpath_modeler.history.prediction_scores import Scoreboard
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.page.document import document
from callpath_modeler.report.page.markup import Html, cell, head, joined, table, tag
from callpath_modeler.report.scores import (
    MARK_TITLES,
    PATH_TITLES,
    case_text,
    score_marks_cells,
    score_path_cells,
    score_remarks,
    score_rows,
    score_verdict,
)
from callpath_modeler.units import parameter_value

_MOST_ROWS = 400
_PAGE_STYLE = ".NO { color: var(--bad); font-weight: bold; }"


def scores_page(found: Scoreboard, store: Path) -> str:
    """Return scores as an HTML document that needs no other file."""
    style = TextStyle(width=None)
    lede = joined(
        tag("h1", score_verdict(found)),
        *(tag("p", line, class_="aside") for line in score_remarks(found, store)),
    )
    sections: dict[str, tuple[str, Html]] = {}
    if found.cases:
        listed = [tag("li", case_text(case, style)) for case in reversed(found.cases)]
        sections["runs"] = ("Runs", tag("ul", *listed))
        scores = [
            tag("tr", *(cell(text, right=k > 0) for k, text in enumerate(score_marks_cells(each))))
            for each in found.marks
            if each.predictions
        ]
        titles = [head(title, right=k > 0) for k, title in enumerate(MARK_TITLES)]
        calibration = table(titles, scores, caption="Bands by marks of trust")
        sections["marks"] = ("Marks of trust", calibration)
        sections["callpaths"] = ("Call paths", _paths(found, style))
    return document(f"{store.name}: scores of predictions", lede, sections, style=_PAGE_STYLE)


def _paths(found: Scoreboard, style: TextStyle) -> Html:
    rows = score_rows(found)
    titles = [head("call path"), head(found.cases[-1].prediction.parameter, right=True)]
    titles += [head(title, right=title != "holds") for title in PATH_TITLES]
    body = []
    for case, row in rows[:_MOST_ROWS]:
        cells = [
            cell(case.callpaths[row]),
            cell(parameter_value(case.prediction.scale), right=True),
        ]
        for title, text in zip(PATH_TITLES, score_path_cells(case, row, style), strict=True):
            kind = "NO" if text == "NO" else ""
            cells.append(cell(text, right=title != "holds", kind=kind))
        body.append(tag("tr", *cells))
    left = len(rows) - len(body)
    note = tag("p", f"{left} cheaper or older predictions are not shown.", class_="aside")
    content = table(titles, body, caption="Predictions and measurements")
    return joined(content, note if left else "")
