"""What stands at the top: the answer in a sentence, and which call paths it is because of."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.report.answer import (
    growth_of,
    missing_notes,
    model_notes,
    target_text,
    turning_notes,
    verdict,
)
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.layout import tied
from callpath_modeler.report.page.markup import Html, joined, tag
from callpath_modeler.report.page.names import Names, cut
from callpath_modeler.report.ranking import context
from callpath_modeler.units import counted, percent

_MOST = 0.5
"""Share of the whole that is told where it is."""
_NAMED = 3


def headline(ranking: Ranking) -> str:
    """Say how much it will be, how sure that is, and in how few call paths most of it is."""
    metric = ranking.fitted.metric
    rows = main_rows(ranking)
    if not len(rows):
        return verdict(ranking, ascii_only=False)
    amount = amount_text(*ranking.total, metric.unit, ascii_only=False)
    measured = ranking.repetitions > 0
    what = f"the run {'took' if measured else 'is predicted to take'} {amount}"
    if not metric.is_time:
        what = f"{amount} {metric.name} {'were' if measured else 'are'} {ranking.basis}"
    share = percent(float(ranking.own_share[rows].sum()))
    return f"At {target_text(ranking)} {what}; {share} of it in {counted(len(rows), 'call path')}."


def main_rows(ranking: Ranking) -> NDArray[np.intp]:
    """Return the costliest call paths that together have most of the whole; none of no whole."""
    share = np.nan_to_num(ranking.own_share)
    if np.isinf(ranking.target) or not 0 < ranking.total[0] < np.inf:
        return np.empty(0, np.intp)
    order = np.argsort(-share, kind="stable")
    return order[: 1 + int(np.searchsorted(np.cumsum(share[order]), _MOST))]


def summary(ranking: Ranking, names: Names) -> Html:
    """Return the headline, what it is because of, and what was measured."""
    rows = main_rows(ranking)[:_NAMED]
    named = zip(rows.tolist(), _last_names(ranking, rows), strict=True)
    told = [_told(ranking, row, name, names) for row, name in named]
    parts = [part for one in told for part in (one, "; ")][:-1]
    because = [tag("p", joined(*parts, "."), class_="lede")] if told else []
    return joined(
        tag("h1", tied(cut(headline(ranking), 600))),
        *(tag("p", note) for note in turning_notes(ranking, ascii_only=False)),
        *because,
        *(tag("p", note) for note in model_notes(ranking, ascii_only=False)),
        *(tag("p", note) for note in missing_notes(ranking)),
        tag("p", context(ranking), class_="aside"),
    )


def _last_names(ranking: Ranking, rows: NDArray[np.intp]) -> list[str]:
    """Return the names of functions, with their callers where two would look the same."""
    tree = ranking.fitted.experiment.tree
    paths = [[short_name(name) for name in tree.names(int(row))[-2:]] for row in rows]
    count = Counter(path[-1] for path in paths)
    return [cut(path[-1] if count[path[-1]] == 1 else "/".join(path)) for path in paths]


def _told(ranking: Ranking, row: int, name: str, names: Names) -> Html:
    growth = growth_of(ranking.fitted, row, pretty=True)
    link = names.link(row, tag("code", name))
    return joined(link, f" takes {percent(float(ranking.own_share[row]))} and {growth}")
