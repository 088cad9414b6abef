"""The scatter from day to day of the records of a history."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError
from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.history.judgement import JudgedHistory
from callpath_modeler.modeling.day_scatter import learnt_scatter

LEAST_DAYS = 6
"""Fewest records that show a scatter."""


def scatter_of_days(history: CommitHistory) -> ScatterOfDays:
    """Return the scatter of call paths from record to record, without the changes of the history.

    Raises
    ------
    DataError
        If the history has too few records.
    """
    records = len(history.records)
    if records < LEAST_DAYS:
        raise DataError(
            f"the history has {records} records; the scatter from day to day needs {LEAST_DAYS}",
            hint="cpmodel watch add STORE RUNS, once a day",
        )
    levels, least = history.found.levels, history.rule.least_sd
    segment = _segments(history.found, len(history.callpaths), records)
    own, own_dof = _by_scale(levels.own, levels.error, segment, least)
    whole = levels.common[None]
    steady = np.zeros((1, records), np.intp)
    common, common_dof = _by_scale(whole, np.zeros(whole.shape), steady, least)
    rows = {name: row for row, name in enumerate(history.callpaths)}
    return ScatterOfDays(records, rows, history.scales, own, own_dof, common[0], common_dof[0])


def _by_scale(
    levels: FloatArray, errors: FloatArray, segment: IntArray, least: float
) -> tuple[FloatArray, FloatArray]:
    """Return the variances of days beyond those of repetitions, and their dof, [n, K]."""
    found = [
        learnt_scatter(levels[..., k], errors[..., k], segment, least)
        for k in range(levels.shape[2])
    ]
    variance = [np.maximum(each.sd**2 - each.error, 0.0) for each in found]
    return np.stack(variance, axis=1), np.stack([each.dof for each in found], axis=1)


def _segments(found: JudgedHistory, rows: int, records: int) -> IntArray:
    """Return the number of the level of each record, [n, T]; a change begins another level."""
    segment = np.zeros((rows, records), np.intp)
    for change in found.own:
        assert change.row is not None, "it is a change of one call path"
        segment[change.row, change.leading.likely :] += 1
    for joint in found.joint:
        segment[joint.rows, joint.likely :] += 1
    return segment
