"""The page of two experiments: what differs, all call paths of both, and the table for print."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.difference import ExperimentDifference
from callpath_modeler.arrays import IntArray
from callpath_modeler.printable import in_one_line
from callpath_modeler.report.diff_text import (
    context,
    difference_columns,
    difference_notes,
    difference_sentences,
)
from callpath_modeler.report.layout import DEFAULT_STYLE, NEW, cut, tied
from callpath_modeler.report.page import markup
from callpath_modeler.report.page.cards import findings_table
from callpath_modeler.report.page.document import document, provenance_section
from callpath_modeler.report.page.pair_data import has_pair_data, pair_data
from callpath_modeler.report.page.trees import coloured
from callpath_modeler.studies.comparison import Compared
from callpath_modeler.units import setting_text

_ROWS = 100
"""Default number of rows of the table for print."""


def pair_page(
    compared: Compared,
    making: markup.Provenance | None = None,
    rows: IntArray | None = None,
    top: int | None = None,
) -> str:
    """Return an HTML document of two experiments that needs no other file.

    Parameters
    ----------
    compared : the comparison
    making : the origin of the page; None = it was made by a library, without a command
    rows : call paths of the table for print, in order; None = all
    top : number of its rows
    """
    found = compared.difference
    base, new = (in_one_line(side.experiment.name) for side in found.pair.sides)
    named = base if base == new else f"{base} and {new}"
    at = found.changes.at
    where = "" if found.pair.has_unknown_scale else f" at {setting_text(at)}"
    first, *others = difference_sentences(found, DEFAULT_STYLE)
    lede = markup.joined(
        markup.tag("h1", tied(cut(first, 600))),
        *(markup.tag("p", cut(sentence, 600), class_="lede") for sentence in others),
        markup.tag("p", context(found), class_="aside"),
    )
    listed = (found.order if rows is None else rows)[: _ROWS if top is None else top]
    sections = {
        "ranking": ("Differences", _differences(found, listed)),
        "quality": ("Data quality", markup.joined(*findings_table(compared.findings))),
    }
    if making is not None:
        fitted = found.pair.new.fitted
        sections["making"] = ("How this was made", provenance_section(making, fitted))
    again = NEW if making is None else making.invocation
    show = "" if making is None else again.line("show", "@ID")
    data = pair_data(found, show) if has_pair_data(found) else ""
    title = f"{named}: difference of {found.pair.metric.name}{where}"
    return document(cut(title, 300), lede, sections, data=data)


def _differences(found: ExperimentDifference, rows: IntArray) -> markup.Html:
    """Return the table of `cpmodel diff` with its notes."""
    columns, names = difference_columns(found, rows, DEFAULT_STYLE)
    paths: list[markup.Html] = markup.CallPathLinks(found.pair.tree, np.empty(0, np.intp)).paths(
        rows
    )
    paths += [markup.tag("span", "/".join(each)) for each in names[len(rows) :]]
    body, foot = list[markup.Html](), list[markup.Html]()
    for k, path in enumerate(paths):
        cells = [
            markup.cell(coloured(column, k), right=column.right, kind="growth" * (not column.right))
            for column in columns
        ]
        line = markup.tag("tr", markup.tag("th", path, scope="row"), *cells)
        (body if k < len(rows) else foot).append(line)
    heads = [markup.head(column.header, right=column.right) for column in columns]
    header = " ".join(f" {column.header} " for column in columns)
    notes = difference_notes(found, rows, DEFAULT_STYLE, header)
    caption = "Call paths, the largest difference first"
    return markup.joined(
        markup.table([markup.head("call path"), *heads], body, caption=caption, foot=tuple(foot)),
        *(markup.tag("p", note, class_="aside") for note in notes),
    )
