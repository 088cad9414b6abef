"""Answers as tables of pandas: the columns of the command line."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.expectations.check_result import Check
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.model_tables import models_table
from callpath_modeler.report.ranking_table import ranking_table
from callpath_modeler.report.table_formats import Table
from callpath_modeler.report.test_reports import check_table

if TYPE_CHECKING:
    import pandas as pd


def frame_of(answer: object) -> pd.DataFrame:
    """Return an answer as a table of pandas.

    Parameters
    ----------
    answer : ranking, models or results of expectations

    Returns
    -------
    pandas.DataFrame
        Columns of the command line. The index is the call path, or the name of the expectation.
    """
    frame = _table(answer).to_frame()
    return frame.set_index("callpath" if "callpath" in frame.columns else "name")


@singledispatch
def _table(answer: object) -> Table:
    raise TypeError(f"{answer!r} is no table")


@_table.register
def _(ranking: Ranking) -> Table:
    return ranking_table(ranking)


@_table.register
def _(fitted: Fitted) -> Table:
    return models_table(fitted)


@_table.register
def _(check: Check) -> Table:
    return check_table(check)
