"""Requirements as an explanation of the time of call paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.analysis.requirements import Requirements, requirements
from callpath_modeler.argument_checks import check_type
from callpath_modeler.errors import DataError
from callpath_modeler.fitted import Fitted
from callpath_modeler.pipeline import fit, fit_options_of


def explain(ranking: Ranking, row: int) -> Requirements | None:
    """Return the requirements of a call path, and the part of its time that they explain.

    Parameters
    ----------
    ranking : ranking by a time; the other additive metrics of its experiment are the requirements
    row : number of the call path

    Returns
    -------
    Requirements or None
        None if no requirement was read or measured, or if the ranking is not by a time.

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


def explain_all(ranking: Ranking, rows: Sequence[int]) -> dict[int, Requirements]:
    """Return the requirements of call paths by row, without call paths that have none."""
    fitted = ranking.fitted
    if not (fitted.metric.is_time and fitted.metric.additive):
        return {}
    needed = [
        name
        for name, values in fitted.line.columns.items()
        if values.metric.is_requirement and np.nan_to_num(values.exclusive[list(rows)]).any()
    ]
    models = [each for each in (_models_of(fitted, name) for name in needed) if each is not None]
    found = {row: requirements(ranking, models, row) for row in rows}
    return {row: each for row, each in found.items() if each is not None}


def _models_of(fitted: Fitted, metric: str) -> Fitted | None:
    """Return models of another metric of the same runs; None if the runs do not allow them."""
    options = fit_options_of(fitted)
    if fitted.surface is not None:
        # A line has one parameter, so the hypotheses are in one parameter.
        options = replace(options, space=None)
    try:
        return fit(fitted.line, metric, options)
    except DataError:
        return None
