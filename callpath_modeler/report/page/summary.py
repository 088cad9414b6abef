"""Summary at the top of the page: the answer and the call paths that cause it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.arrays import IntArray
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.headline import (
    cost_text,
    headline,
    known_notes,
    missing_notes,
    model_notes,
    sum_notes,
    takes_text,
    turning_notes,
)
from callpath_modeler.report.layout import DEFAULT_STYLE, tied
from callpath_modeler.report.measured_only import comparison_sentence
from callpath_modeler.report.page.markup import Html, joined, tag
from callpath_modeler.report.page.names import CallPathLinks, cut
from callpath_modeler.report.ranking_text import context
from callpath_modeler.units import counted, percent

_MOST = 0.5
"""Share of the total that the named call paths reach."""
_NAMED = 3


def page_headline(ranking: Ranking) -> str:
    """Return the cost at the target, its uncertainty, and the number of main call paths."""
    rows = main_rows(ranking)
    if not len(rows):
        return headline(ranking, style=DEFAULT_STYLE)
    if ranking.is_unknown:
        known = [f"{cost_text(ranking, style=DEFAULT_STYLE)}.", *known_notes(ranking)]
        return " ".join(known)
    share = percent(float(ranking.own_share[rows].sum()))
    where = f"{share} of the {ranking.fitted.metric.name} is in {counted(len(rows), 'call path')}"
    return f"{cost_text(ranking, style=DEFAULT_STYLE)}. {where}."


def main_rows(ranking: Ranking) -> IntArray:
    """Return the costliest call paths that make up most of the total; empty without a total."""
    share = np.nan_to_num(ranking.own_share)
    if np.isinf(ranking.target) or not 0 < ranking.total[0] < np.inf:
        return np.empty(0, np.intp)
    order = np.argsort(-share, kind="stable")
    sums = np.cumsum(share[order])
    return order[: 1 + int(np.searchsorted(sums, _MOST * sums[-1]))]


def summary(ranking: Ranking, names: CallPathLinks) -> Html:
    """Return the headline, the main call paths, and a description of the measurements."""
    rows = main_rows(ranking)[:_NAMED]
    named = zip(rows.tolist(), _last_names(ranking, rows), strict=True)
    told = [_told(ranking, row, name, names) for row, name in named]
    parts = [part for one in told for part in (one, "; ")][:-1]
    because = [tag("p", joined(*parts, "."), class_="lede")] if told else []
    return joined(
        tag("h1", tied(cut(page_headline(ranking), 600))),
        *(tag("p", note) for note in turning_notes(ranking, style=DEFAULT_STYLE)),
        *because,
        *(
            [tag("p", comparison_sentence(ranking, style=DEFAULT_STYLE))]
            if ranking.is_comparison
            else []
        ),
        *(tag("p", note) for note in model_notes(ranking, style=DEFAULT_STYLE)),
        *(tag("p", note) for note in missing_notes(ranking)),
        *(tag("p", note) for note in sum_notes(ranking)),
        tag("p", context(ranking), class_="aside"),
    )


def _last_names(ranking: Ranking, rows: IntArray) -> list[str]:
    """Return the names of functions, with their callers where two would look the same."""
    tree = ranking.fitted.experiment.tree
    paths = [[short_name(name) for name in tree.names(int(row))[-2:]] for row in rows]
    count = Counter(path[-1] for path in paths)
    return [cut(path[-1] if count[path[-1]] == 1 else "/".join(path)) for path in paths]


def _told(ranking: Ranking, row: int, name: str, names: CallPathLinks) -> Html:
    link = names.link(row, tag("code", name))
    return joined(link, f" {takes_text(ranking, row, style=DEFAULT_STYLE)}")
