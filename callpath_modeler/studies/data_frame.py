"""Experiments from data frames."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import InputError, UsageError, check_type
from callpath_modeler.profile.experiment import FRAME, REPETITION, Experiment, Scaling
from callpath_modeler.readers.assemble import ReadOptions, assemble_runs
from callpath_modeler.readers.paths import split_paths
from callpath_modeler.readers.records import Records, runs_of
from callpath_modeler.support.input_limits import UNLIMITED

if TYPE_CHECKING:
    import pandas as pd

_SUBJECT = "data frame"
_ENDLESS = 2.0**53
"""Numbers from which all floats are whole."""


def from_frame(
    frame: pd.DataFrame,
    *,
    callpath: str | Sequence[str] = "callpath",
    parameters: Sequence[str] = (),
    repetition: str | None = None,
    metrics: Mapping[str, str] | Sequence[str] | None = None,
    scaling: Scaling | None = None,
) -> Experiment:
    """Return the experiment of a table with one row per call path and run.

    Tables that `Experiment.to_frame` made, wide or long, need no further arguments.

    Parameters
    ----------
    frame : table with the columns, or index levels, below; NaN = the call path did not occur
    callpath : column of call paths: names joined by ``->``, ``/`` or ``;``, or sequences of names.
        Several columns name the call path together
    parameters : columns of numbers; a column that is named like a number of processes becomes p
    repetition : column of whole numbers; None = rows that agree in all other columns are
        repetitions, in their order
    metrics : columns of values, with or without their units; by default all other columns of
        numbers. Titles may contain the unit and the kind: ``time (inc)``, ``latency_us``,
        ``bytes_sent``
    scaling : weak or strong; None = found from the data

    Returns
    -------
    Experiment
        One call tree with exclusive values in SI base units.

    Raises
    ------
    UsageError
        If there is no such column.
    InputError
        If a column contains invalid values.
    """
    import pandas as pd

    check_type(frame, pd.DataFrame, "frame")
    told = frame.attrs.get(FRAME, {})
    if isinstance(frame.columns, pd.MultiIndex):
        frame = _long(frame, told)
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    if told and not parameters and REPETITION in frame.columns:
        parameters, repetition = told.get("parameters", ()), repetition or REPETITION
    paths, parameters = _listed(callpath, "callpath"), _listed(parameters, "parameters")
    if not paths:
        raise UsageError("no column of call paths", hint="callpath='callpath'")
    keys = [*paths, *parameters, *([repetition] if repetition else [])]
    if metrics is None:
        metrics = [name for name in frame.select_dtypes("number").columns if name not in keys]
    metrics = metrics if isinstance(metrics, Mapping) else _listed(metrics, "metrics")
    _check_columns(frame, [*keys, *metrics])
    if not metrics:
        raise UsageError("no column of values in the data frame", hint="metrics=['time']")
    distinct, path = _paths([frame[name].tolist() for name in paths])
    copies, rows = len(metrics), len(frame)
    numbers = None if repetition is None else _numbers(frame, repetition)
    if numbers is not None and not _are_whole(numbers):
        raise InputError(
            f"{_SUBJECT}: {repetition} contains values that are not whole numbers",
            hint="number from 1",
        )
    records = Records(
        subject=_SUBJECT,
        paths=distinct,
        path=np.tile(path, copies),
        parameters={name: np.tile(_numbers(frame, name), copies) for name in parameters},
        repetition=None if numbers is None else np.tile(numbers.astype(np.intp), copies),
        titles=[str(name) for name in metrics],
        title=np.repeat(np.arange(copies), rows),
        values=np.concatenate([_numbers(frame, name) for name in metrics]),
        limits=UNLIMITED,
        units=_units(metrics) if isinstance(metrics, Mapping) else {},
    )
    return assemble_runs(_SUBJECT, runs_of(records), ReadOptions(metrics=None, scaling=scaling))


def _long(frame: pd.DataFrame, told: Mapping[str, Any]) -> pd.DataFrame:
    """Return the long table of a wide one, whose columns are parameters and the repetition."""
    import pandas as pd

    levels = list(frame.columns.names)
    if REPETITION not in levels or None in levels or len({*levels}) < len(levels):
        raise UsageError(
            "the columns of the data frame have levels that are no parameters",
            hint="levels of columns: parameters and repetition, as Experiment.to_frame makes them",
        )
    rows = pd.Series(frame.stack(levels, future_stack=True), name=str(told.get("metric", "time")))
    return rows.reset_index()


def _listed(names: str | Sequence[str], what: str) -> list[str]:
    """Return names of columns as a list."""
    check_type(names, (str, list, tuple), what)
    return [names] if isinstance(names, str) else list(names)


def _check_columns(frame: pd.DataFrame, names: Sequence[str]) -> None:
    for name in names:
        count = sum(known == name for known in frame.columns)
        if count != 1:
            known = ", ".join(map(str, frame.columns)) or "the data frame has none"
            which = "several columns" if count else "no column"
            raise UsageError(f"{which} {name!r} in the data frame", hint=f"columns: {known}")


def _are_whole(numbers: FloatArray) -> bool:
    return bool(((np.round(numbers) == numbers) & (np.abs(numbers) < _ENDLESS)).all())


def _units(metrics: Mapping[str, str]) -> dict[str, str]:
    for name, unit in metrics.items():
        if not isinstance(unit, str):
            raise UsageError(f"unit {unit!r} of {name} is not text", hint="e.g. 's', 'B' or '1'")
    return dict(metrics)


def _numbers(frame: pd.DataFrame, name: str) -> FloatArray:
    try:
        return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as cause:
        raise InputError(
            f"{_SUBJECT}: {name} does not contain numbers: {cause}", hint="convert it first"
        ) from cause


def _paths(columns: Sequence[list[Any]]) -> tuple[list[tuple[str, ...]], IntArray]:
    """Return the distinct call paths, and the number of the call path of each row."""
    if len(columns) == 1 and all(isinstance(cell, str) for cell in columns[0]):
        texts, of_row = _distinct(columns[0])
        paths = split_paths([str(text) for text in texts])
    elif len(columns) == 1 and all(isinstance(cell, list | tuple) for cell in columns[0]):
        paths, of_row = _distinct([tuple(cell) for cell in columns[0]])
    else:
        paths, of_row = _distinct(list(zip(*columns, strict=True)))
    for names in paths:
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InputError(f"{_SUBJECT}: no call path: {names!r}", hint="names joined by /")
    return paths, of_row


def _distinct(items: Sequence[Hashable]) -> tuple[list[Any], IntArray]:
    known: dict[Hashable, int] = {}
    try:
        of_row = np.array([known.setdefault(item, len(known)) for item in items], np.intp)
    except TypeError as cause:
        raise InputError(f"{_SUBJECT}: no call path: {cause}", hint="names joined by /") from cause
    return list(known), of_row
