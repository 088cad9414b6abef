"""Days of a history: their scatter, and the experiment of all days since the last change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd

from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.history.commits import CommitHistory, grid_of
from callpath_modeler.history.judgement import JudgedHistory, levels_of_sum
from callpath_modeler.modeling import Centre, centre
from callpath_modeler.modeling.day_scatter import learnt_scatter
from callpath_modeler.profile.experiment import REPETITION, Experiment
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.paths import split_at_slashes
from callpath_modeler.studies.data_frame import from_frame
from callpath_modeler.support.input_limits import UNLIMITED, InputLimits

_OF_THE_MIDDLE: tuple[Centre, ...] = ("mean", "median", "trimmed")
_CALL_PATH = "call path"
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


def experiment_of_days(
    history: CommitHistory, name: str, how: Centre, limits: InputLimits = UNLIMITED
) -> Experiment:
    """Return the experiment whose repetitions are the days since the last change of a call path.

    Parameters
    ----------
    history : the history
    name : name of the experiment
    how : centre of the repetitions of a day
    limits : limits of the file of the history

    Raises
    ------
    UsageError
        If the centre is one end of the repetitions: that of many days is not that of one.
    """
    if how not in _OF_THE_MIDDLE:
        raise UsageError(
            f"--aggregate {how}: that of many days differs from that of one",
            hint="--aggregate median",
        )
    callpaths, values = grid_of(history.records, history.scales, limits, 0.0)
    days = centre(values.reshape(-1, *values.shape[2:]), how).reshape(values.shape[:-1])
    segment, _ = _segments(history.found, len(history.callpaths), len(history.records))
    judged = {each: row for row, each in enumerate(history.callpaths)}
    for number, each in enumerate(callpaths):
        if each in judged:
            own = segment[judged[each]]
            days[number, own < own[-1]] = np.nan
    row, day, scale = np.nonzero(~np.isnan(days))
    newest = history.newest
    paths = [(*split_at_slashes(each),) for each in callpaths]
    table: Mapping[str, object] = {
        _CALL_PATH: [paths[each] for each in row.tolist()],
        newest.parameter: history.scales[scale],
        REPETITION: day + 1,
        newest.metric: days[row, day, scale],
        **{held: np.full(len(row), value) for held, value in newest.held.items()},
    }
    found = from_frame(
        pd.DataFrame(table),
        callpath=_CALL_PATH,
        parameters=[newest.parameter, *newest.held],
        repetition=REPETITION,
        metrics={newest.metric: newest.unit},
    )
    left_out = tuple(dict.fromkeys(chain(found.omissions, history.omissions)))
    commits = [each.commit for each in history.records]
    runs = tuple(
        replace(run, source=f"{name}: {commits[run.repetition - 1]}") for run in found.runs
    )
    return replace(
        found, name=name, runs=runs, reduction=Reduction(newest.reduction), omissions=left_out
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
