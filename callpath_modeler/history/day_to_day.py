"""The scatter from day to day of the records of a history."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError
from callpath_modeler.history.commits import CommitHistory
from callpath_modeler.history.judgement import JudgedHistory, levels_of_sum
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
    segment, of_all = _segments(history.found, len(history.callpaths), records)
    own, own_dof = _by_scale(levels.own, levels.error, segment, least)
    shared = levels.common[None]
    common, common_dof = _by_scale(shared, np.zeros(shared.shape), of_all, least)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(history.values > 0, np.log(history.values), np.nan)
    program, program_dof = _by_scale(*levels_of_sum(logs), of_all, least)
    return ScatterOfDays(
        records,
        {name: row for row, name in enumerate(history.callpaths)},
        history.scales,
        own,
        own_dof,
        common[0],
        common_dof[0],
        program[0],
        program_dof[0],
    )


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


def _segments(found: JudgedHistory, rows: int, records: int) -> tuple[IntArray, IntArray]:
    """Return the number of the level of each record; a change begins another level.

    Returns
    -------
    IntArray, IntArray
        Of each call path, [n, T], and of all together, [1, T], which any change touches.
    """
    segment = np.zeros((rows, records), np.intp)
    of_all = np.zeros((1, records), np.intp)
    touched = [(each.row, each.leading.likely) for each in (*found.own, *found.common)]
    for row, begin in (*touched, *((joint.rows, joint.likely) for joint in found.joint)):
        of_all[0, begin:] += 1
        if row is not None:
            segment[row, begin:] += 1
    return segment, of_all
