"""Factors of parallel efficiency on the page."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.efficiency import PopFactor
from callpath_modeler.report.efficiency import (
    EfficiencyView,
    context_lines,
    headline,
    label_of,
    lost_of,
    range_text,
    share_text,
    value_text,
)
from callpath_modeler.report.page.markup import Html, cell, head, joined, number, table, tag
from callpath_modeler.report.page.names import CallPathLinks
from callpath_modeler.units import parameter_value

_INDENT = "\N{EM SPACE}"
_OF_SUBTREES = (
    PopFactor.PARALLEL,
    PopFactor.BALANCE,
    PopFactor.COMMUNICATION,
    PopFactor.THREADS,
    PopFactor.SCALABILITY,
)


def efficiency_section(shown: EfficiencyView | str) -> Html:
    """Return the factors by scale and by subtree, or the reason why there are none."""
    if isinstance(shown, str):
        return tag("p", shown)
    parts = [
        tag("p", tag("strong", f"{headline(shown)}.")),
        *(tag("p", line, class_="aside") for line in context_lines(shown)),
        _factors(shown),
    ]
    if len(shown.subtrees):
        parts += [tag("h3", "Subtrees"), _subtrees(shown)]
    return joined(*parts)


def _factors(shown: EfficiencyView) -> Html:
    found = shown.efficiency
    heads = [head("factor")]
    for estimate in found.estimates:
        scale = f"{found.line.parameter} = {parameter_value(estimate.scale)}"
        heads.append(head(scale, right=True))
        if estimate.is_predicted:
            heads.append(head("band", right=True))
    rows = []
    for factor in found.factors:
        cells = [tag("th", _INDENT * shown.depth(factor) + label_of(factor), scope="row")]
        for estimate in found.estimates:
            value = shown.value(estimate, factor)
            cells.append(_cell(value, value_text(shown, estimate, factor)))
            if estimate.is_predicted:
                cells.append(cell(range_text(shown, estimate, factor), right=True))
        rows.append(tag("tr", *cells))
    return table(heads, rows, caption="Factors of parallel efficiency")


def _cell(value: float, text: str) -> Html:
    return cell(text if np.isnan(value) else number(value, text), right=True)


def _subtrees(shown: EfficiencyView) -> Html:
    found, last = shown.efficiency, shown.efficiency.last
    lost = lost_of(last, shown.scheme)
    factors = [factor for factor in _OF_SUBTREES if factor in found.factors]
    heads = [head("subtree"), head("lost", right=True), head("share", right=True)]
    heads += [head(label_of(factor), right=True) for factor in factors]
    rows = []
    # The page may leave out call paths, so these rows are not those of its cards.
    names = CallPathLinks(found.experiment.tree, np.empty(0, np.intp))
    places = shown.subtrees
    for place, path in zip(places.tolist(), names.paths(found.rows[places]), strict=True):
        cells = [tag("th", path, scope="row")]
        cells += [
            _cell(float(values[place]), share_text(float(values[place])))
            for values in (lost, last.share)
        ]
        for factor in factors:
            text = value_text(shown, last, factor, place)
            cells.append(_cell(shown.value(last, factor, place), text))
        rows.append(tag("tr", *cells))
    note = (
        "lost: time of the subtree without computation; share: its run time; both as shares of the "
        "run time of the program"
    )
    return joined(table(heads, rows, caption="Subtrees"), tag("p", note, class_="aside"))
