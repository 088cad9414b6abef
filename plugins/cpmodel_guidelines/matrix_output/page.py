"""Matrices as one HTML page: a heat map of slowdowns, without a script."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from importlib.resources import files

import numpy as np

from callpath_modeler.report.page.cards import findings_table
from callpath_modeler.report.page.document import document
from callpath_modeler.report.page.markup import Html, head, joined, plain_table, scrolling, tag
from callpath_modeler.units import signed_percent
from cpmodel_guidelines.matrix_content import (
    SIGNS,
    Matrix,
    MatrixCell,
    MatrixContent,
    MatrixRow,
    labels_of,
    mark_of,
    probability_text,
    title_of,
)

_LIMITS = (0.8, 0.95, 1.05, 1.25, 1.5, 2.0, 4.0)
"""Factors between the colours of the heat map."""


def matrix_page(content: MatrixContent) -> str:
    """Return an HTML document that needs no other file."""
    lede = joined(
        tag("h1", _said(content.headline)),
        *(tag("p", _said(line), class_="aside") for line in content.context),
    )
    sections = {"counts": ("Violated guidelines", _counts(content))}
    if len(content.matrices) > 1:
        sections["overview"] = ("All libraries", _overview(content))
    for k, each in enumerate(content.matrices, 1):
        title = title_of(each)
        sections[f"matrix{k}"] = (title[:1].upper() + title[1:], joined(_key(), _matrix(each)))
    sections["notes"] = (
        "How to read this",
        tag("ul", *(tag("li", _said(n)) for n in content.notes)),
    )
    sections["quality"] = ("Data quality", joined(*findings_table(content.findings)))
    title = f"{content.name}: MPI performance guidelines"
    style = files("cpmodel_guidelines.matrix_output").joinpath("page.css").read_text("utf-8")
    return document(title, lede, sections, style=style)


def _said(text: str) -> str:
    return text.replace("<=", "≤")


def _counts(content: MatrixContent) -> Html:
    kinds = dict.fromkeys(kind for count in content.counts for kind in count)
    rows = [("", *map(str, kinds))]
    for matrix, count in zip(content.matrices, content.counts, strict=True):
        rows.append((title_of(matrix), *(str(count.get(kind, "")) for kind in kinds)))
    return plain_table(rows, "Number of violated guidelines of each kind")


def _overview(content: MatrixContent) -> Html:
    """Return the table of guidelines and matrices, with the most certain violation of each."""
    rows = [{row.guideline.short: row for row in each.rows} for each in content.matrices]
    names = dict.fromkeys(name for each in rows for name in each)
    body = [
        tag("tr", tag("th", _said(name), scope="row"), *(_any(each.get(name)) for each in rows))
        for name in names
    ]
    heads = [head("guideline, at any size"), *(head(title_of(each)) for each in content.matrices)]
    return _grid(heads, body, "Guidelines of all libraries")


def _any(row: MatrixRow | None) -> Html:
    verdict = None if row is None else row.verdict
    if row is None or verdict is None:
        return tag("td")
    if not row.is_violated:
        return tag("td", SIGNS[verdict], class_="none", title=str(verdict))
    factors = [each.factor for each in row.cells if each and each.is_violated]
    factors += [row.mean.factor] if row.mean else []
    worst = max(factors)
    text = joined(signed_percent(worst - 1), tag("small", row.mark))
    return tag("td", text, class_=f"v {_colour(worst)}", title=str(verdict))


def _grid(heads: list[Html], body: list[Html], caption: str) -> Html:
    whole = tag(
        "table",
        tag("caption", caption, class_="unseen"),
        tag("thead", tag("tr", *heads)),
        tag("tbody", *body),
        class_="matrix",
    )
    return scrolling(caption, whole)


def _matrix(matrix: Matrix) -> Html:
    has_mean = any(row.mean for row in matrix.rows)
    heads = [head("guideline"), *map(head, labels_of(matrix)), *[head("mean")] * has_mean]
    body = []
    for row in matrix.rows:
        cells = [*map(_cell, row.cells), *[_mean(row)] * has_mean]
        name = _said(row.guideline.short)
        body.append(
            tag("tr", tag("th", name, scope="row", title=_said(row.guideline.text)), *cells)
        )
    axis = matrix.axis and f", by {matrix.axis}"
    return _grid(heads, body, f"{title_of(matrix)}{axis}")


def _cell(each: MatrixCell | None) -> Html:
    if each is None:
        return tag("td")
    small = [each.mark or SIGNS[each.verdict]]
    if each.probability is not None:
        small = [each.interval, probability_text(each)]
    parts = [each.by, *(tag("small", text) for text in small if text)]
    kind = "v " * each.is_violated + _colour(each.factor)
    return tag("td", *parts, class_=kind, title="; ".join(_facts(each)))


def _mean(row: MatrixRow) -> Html:
    if row.mean is None:
        return tag("td")
    text = joined(row.mean.by, tag("small", mark_of(row.mean.rate)))
    return tag("td", text, class_=f"v {_colour(row.mean.factor)}", title="mean of all settings")


def _facts(each: MatrixCell) -> Iterator[str]:
    yield str(each.verdict)
    if each.interval:
        yield each.interval
    if each.probability is not None:
        yield f"probability of a violation {probability_text(each)}"
    elif not np.isnan(each.rate):
        yield f"error rate {each.rate:.2g}"
    yield each.basis


def _colour(factor: float) -> str:
    """Return the class of the colour of a factor."""
    return "h2" if np.isnan(factor) else f"h{bisect_right(_LIMITS, factor)}"


def _key() -> Html:
    """Return the key of the colours."""
    limits = [signed_percent(limit - 1) for limit in _LIMITS]
    words = [f"below {limits[0]}", *(f"from {each}" for each in limits)]
    items = (tag("li", word, class_=f"h{k}") for k, word in enumerate(words))
    frame = tag("li", "violated", class_="v")
    return tag("ul", *items, frame, class_="key matrix")
