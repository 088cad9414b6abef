"""Why the time of call paths grows."""

from __future__ import annotations

from collections.abc import Sequence

from callpath_modeler.analysis.causes import Cause, find_causes
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.argument_checks import check_type


def explain(ranking: Ranking, row: int) -> Cause | None:
    """Return why the time of a call path grows.

    Parameters
    ----------
    ranking : ranking by a time; the other additive metrics of its experiment are the requirements
    row : number of the call path

    Returns
    -------
    Cause or None
        None if the ranking is not by a time, or if the call path has no time.

    Raises
    ------
    UsageError
        If there is no such call path.

    References
    ----------
    Calotoiu, Hoefler, Poke, Wolf: Using Automated Performance Modeling to Find Scalability Bugs in
    Complex Codes (SC 2013), section 4, for requirement models.
    """
    check_type(ranking, Ranking, "ranking")
    chosen = int(ranking.fitted.experiment.tree.chosen([row])[0])
    return explain_all(ranking, [chosen]).get(chosen)


def explain_all(ranking: Ranking, rows: Sequence[int]) -> dict[int, Cause]:
    """Return the causes of growth of call paths by row, without call paths that have no time.

    Inclusive values of call paths with callees have no causes, because calls of different functions
    have different costs. One or two scales show no causes.
    """
    if ranking.fitted.is_measured_only:
        return {}
    tree = ranking.fitted.experiment.tree
    asked = [row for row in rows if not (ranking.inclusive and tree.end[row] > row + 1)]
    found = find_causes(ranking.fitted, ranking.target, asked, examine_all=True) if asked else None
    if found is None:
        return {}
    causes = {row: found.at(row) for row in asked}
    return {row: cause for row, cause in causes.items() if cause is not None and cause.is_examined}
