"""Remembered predictions, and what was measured later, in the file of a history of commits.

A prediction is a row: bands of call paths at one target, with the runs that the models were made
of. An outcome is a row, too: values of call paths of later runs at one scale. Rows are never
changed, so several jobs can add them, as they add records (see `history.store`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from callpath_modeler.history.store import (
    LARGEST_VALUE,
    MOST_CALL_PATHS,
    MOST_ENTRIES,
    HistoryRow,
    add_entry,
    check_texts,
    metric_with_formula,
    read_entries,
)

PREDICTIONS, OUTCOMES = "prediction", "outcome"
"""Names of the tables."""

MOST_NOISE = 1000.0
"""Largest relative noise of one run that is kept."""

_MOST_RUNS = 100_000
_ROWS = msgspec.Meta(max_length=MOST_CALL_PATHS)
_FEW = msgspec.Meta(max_length=MOST_ENTRIES)
_MARKS = range(-1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSeries:
    """Common part of a prediction and an outcome.

    Attributes
    ----------
    time : seconds since 1970
    metric, unit, parameter : what was predicted or measured, in which unit, over which parameter
    reduction : statistic over processes
    scale : value of the parameter: the target, or the scale of the runs
    runs : hashes of the runs: those of the models, or the measured ones
    callpaths : [n] names of call paths, as one text each
    held : values of other parameters
    labels : what the user says about the runs
    environment : what the profiles say about machine and build
    commit : commit of the runs; "" = not known
    """

    time: float
    metric: str
    unit: str
    parameter: str
    reduction: str
    scale: float
    runs: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MOST_RUNS)]
    callpaths: Annotated[tuple[str, ...], _ROWS]
    held: Annotated[Mapping[str, float], _FEW] = field(default_factory=dict)
    labels: Annotated[Mapping[str, str], _FEW] = field(default_factory=dict)
    environment: Annotated[Mapping[str, str], _FEW] = field(default_factory=dict)
    commit: str = ""

    @property
    def series(self) -> tuple[object, ...]:
        """Properties in which a prediction and its outcome agree."""
        held = tuple(sorted(self.held.items()))
        metric = metric_with_formula(self.metric, self.environment)
        return metric, self.unit, self.parameter, self.reduction, held, self.scale

    def agrees(self, labels: Mapping[str, str]) -> bool:
        """Return whether no label has another value here."""
        return all(self.labels.get(key, value) == value for key, value in labels.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRecord(ScaleSeries):
    """Predictions at one target.

    Attributes
    ----------
    inclusive : whether values include callees
    level : probability with which a band should hold the value
    method : method of the models
    scales : scales of the runs of the models, ascending
    bands : [n] value, lower and upper end of the band
    trust : [n] marks of trust; -1 = none
    models : [n] formulas of the models
    total : value, lower and upper end of the whole program; NaN = not known
    is_run_time : whether the total is the run time, not the sum of the call paths
    noise : [n] relative noise of one run; empty = not recorded
    """

    inclusive: bool
    level: float
    method: str
    scales: Annotated[tuple[float, ...], _FEW]
    bands: Annotated[tuple[tuple[float, float, float], ...], _ROWS]
    trust: Annotated[tuple[int, ...], _ROWS]
    models: Annotated[tuple[str, ...], _ROWS]
    total: tuple[float, float, float]
    is_run_time: bool
    noise: Annotated[tuple[float, ...], _ROWS] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRecord(ScaleSeries):
    """Measured values at one scale.

    Attributes
    ----------
    own, whole : [n] exclusive and inclusive values, means of the runs; NaN = not known
    total : sum of the call paths; NaN = not known
    run_time : run time of the program; NaN = not known
    """

    own: Annotated[tuple[float, ...], _ROWS]
    whole: Annotated[tuple[float, ...], _ROWS]
    total: float
    run_time: float


_Stored = TypeVar("_Stored", bound=ScaleSeries)


def remember(path: Path, record: PredictionRecord | OutcomeRecord) -> bool:
    """Keep a prediction or an outcome in a history, which is created if it does not exist.

    Returns
    -------
    bool
        False if the history has the same one already, whenever it was made.

    Raises
    ------
    InputError
        If the file is no history.
    OutputError
        If it cannot be written; then it is as it was before.
    """
    _check(record)
    table = PREDICTIONS if isinstance(record, PredictionRecord) else OUTCOMES
    content = msgspec.msgpack.encode(record)
    return add_entry(path, table, HistoryRow(_digest(record), record.commit, record.time, content))


def predictions(path: Path) -> tuple[PredictionRecord, ...]:
    """Return the remembered predictions of a history in the order of time.

    Raises
    ------
    InputError
        If the file is no history, is damaged, or is larger than any history should be.
    """
    return read_entries(path, PREDICTIONS, lambda row: _of(row, PredictionRecord))


def outcomes(path: Path) -> tuple[OutcomeRecord, ...]:
    """Return the outcomes of a history in the order of time, as `predictions` does."""
    return read_entries(path, OUTCOMES, lambda row: _of(row, OutcomeRecord))


def _of(row: HistoryRow, kind: type[_Stored]) -> _Stored:
    """Return the record of a row; raise `ValueError` if it is not valid."""
    record = msgspec.msgpack.decode(row.content, type=kind)
    if (record.commit, record.time) != (row.commit, row.time):
        raise ValueError("commit or time differ from those of the row")
    _check(record)
    row.check(_digest(record))
    return record


def _digest(record: ScaleSeries) -> bytes:
    """Return the hash of a record without its time."""
    fields = msgspec.to_builtins(replace(record, time=0.0))
    if not fields.get("noise", True):  # an earlier version did not record it
        del fields["noise"]
    content = msgspec.msgpack.encode(fields)
    return hashlib.blake2b(type(record).__name__.encode() + content, digest_size=20).digest()


def _check(record: ScaleSeries) -> None:
    """Raise `ValueError` if the parts of a record do not fit together."""
    pairs = (*record.labels.items(), *record.environment.items())
    check_texts([record.metric, record.unit, record.parameter, record.reduction, record.commit])
    check_texts([*record.callpaths, *record.held, *(text for pair in pairs for text in pair)])
    check_texts(record.runs)
    rows = len(record.callpaths)
    if not 0 < rows <= MOST_CALL_PATHS or rows != len({*record.callpaths}):
        raise ValueError(f"{rows} call paths")
    if not 0 < len(record.runs) <= _MOST_RUNS:
        raise ValueError(f"{len(record.runs)} runs")
    if not math.isfinite(record.time) or not 0 < record.scale < math.inf:
        raise ValueError("no time or no scale")
    _check_values(record.held.values())
    if isinstance(record, PredictionRecord):
        _check_prediction(record, rows)
    elif isinstance(record, OutcomeRecord):
        if {len(record.own), len(record.whole)} != {rows}:
            raise ValueError(f"values of {len(record.own)} of {rows} call paths")
        _check_values([*record.own, *record.whole, record.total, record.run_time])


def _check_prediction(record: PredictionRecord, rows: int) -> None:
    check_texts([*record.models, record.method])
    if {len(record.bands), len(record.trust), len(record.models)} != {rows}:
        raise ValueError(f"predictions of {len(record.bands)} of {rows} call paths")
    if len(record.noise) not in {0, rows}:
        raise ValueError(f"noise of {len(record.noise)} of {rows} call paths")
    if not all(0 <= each <= MOST_NOISE for each in record.noise):
        raise ValueError("noise is negative or larger than any measured one")
    if not 0 < record.level < 1:
        raise ValueError(f"bands of level {record.level}")
    if not record.scales or any(not 0 < scale < math.inf for scale in record.scales):
        raise ValueError("scales are not positive")
    if any(mark not in _MARKS for mark in record.trust):
        raise ValueError("marks of trust are not between -1 and 4")
    for value, low, high in record.bands:
        _check_values([value, low])
        if not 0 <= low <= value <= high:
            raise ValueError("a band does not hold its value")
    _check_values(record.total[:2])


def _check_values(values: Iterable[float]) -> None:
    if any(abs(value) > LARGEST_VALUE for value in values):  # NaN is not
        raise ValueError("a value is larger than any measured one")
