"""Remembered predictions, and what was measured later: errors, bands and their calibration.

Data flow: `predictions` keeps predictions and outcomes. `scored` pairs those of one series and
compares them as ``rank --verify`` does. `analysis.verification` says how often bands held, and how
later ones are corrected.

A prediction is a row: bands of call paths at one target, with the runs that the models were made
of. An outcome is a row, too: values of call paths of later runs at one scale. Rows are never
changed, so several jobs can add them, as they add records (see `history_store`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import numpy as np

from callpath_modeler.analysis.answer import Ranking, rank
from callpath_modeler.analysis.uncertain import MARKS, Band, deviation
from callpath_modeler.analysis.verification import (
    BandCalibration,
    band_calibration,
    band_holds,
    band_of_mean,
    band_scores,
    independent_sets,
    matters,
)
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array
from callpath_modeler.errors import CONFIDENCE, UsageError
from callpath_modeler.history import history_store

PREDICTIONS, OUTCOMES = "prediction", "outcome"
"""Names of the tables."""

MOST_NOISE = 1000.0
"""Largest relative noise of one run that is kept."""

_MOST_RUNS = 100_000
_ROWS = msgspec.Meta(max_length=history_store.MOST_CALL_PATHS)
_FEW = msgspec.Meta(max_length=history_store.MOST_ENTRIES)
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
        metric = history_store.metric_with_formula(self.metric, self.environment)
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
    return history_store.add_entry(
        path, table, history_store.HistoryRow(_digest(record), record.commit, record.time, content)
    )


def predictions(path: Path) -> tuple[PredictionRecord, ...]:
    """Return the remembered predictions of a history in the order of time.

    Raises
    ------
    InputError
        If the file is no history, is damaged, or is larger than any history should be.
    """
    return history_store.read_entries(path, PREDICTIONS, lambda row: _of(row, PredictionRecord))


def outcomes(path: Path) -> tuple[OutcomeRecord, ...]:
    """Return the outcomes of a history in the order of time, as `predictions` does."""
    return history_store.read_entries(path, OUTCOMES, lambda row: _of(row, OutcomeRecord))


def _of(row: history_store.HistoryRow, kind: type[_Stored]) -> _Stored:
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
    history_store.check_texts(
        [record.metric, record.unit, record.parameter, record.reduction, record.commit]
    )
    history_store.check_texts(
        [*record.callpaths, *record.held, *(text for pair in pairs for text in pair)]
    )
    history_store.check_texts(record.runs)
    rows = len(record.callpaths)
    if not 0 < rows <= history_store.MOST_CALL_PATHS or rows != len({*record.callpaths}):
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
    history_store.check_texts([*record.models, record.method])
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
    if any(abs(value) > history_store.LARGEST_VALUE for value in values):  # NaN is not
        raise ValueError("a value is larger than any measured one")


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPrediction:
    """One remembered prediction and one outcome at its target.

    Columns are [k] call paths that have a prediction and at least `verification.FROM` of the
    measured total.

    Attributes
    ----------
    prediction, outcome : the records
    callpaths : [k] names
    bands : [k, 3] predicted value and ends of the band
    judged : [k, 3] the same for the mean of so few runs
    measured : [k] measured value
    trust : [k] marks of trust; -1 = none
    holds : [k] whether the band holds the measurement
    total : measured total or run time; NaN = not known
    """

    prediction: PredictionRecord
    outcome: OutcomeRecord
    callpaths: tuple[str, ...]
    bands: FloatArray
    judged: FloatArray
    measured: FloatArray
    trust: Int8Array
    holds: BoolArray
    total: float

    @property
    def error(self) -> FloatArray:
        """Relative errors of the predicted values, [k]."""
        return deviation(self.bands[:, 0], self.measured)

    @property
    def total_error(self) -> float:
        """Relative error of the predicted total; NaN = not known."""
        value = np.array([self.prediction.total[0]])
        return float(deviation(value, np.array([self.total]))[0])

    @property
    def total_holds(self) -> bool | None:
        """Whether the band of the total holds; None = unknown."""
        value, low, high = (np.array([each]) for each in self.prediction.total)
        if np.isnan(value[0]) or np.isnan(self.total):
            return None
        return bool(band_holds(np.array([self.total]), low, high)[0])


@dataclass(frozen=True, slots=True)
class MarkScore:
    """Predictions with one number of marks of trust.

    Attributes
    ----------
    marks : number of marks
    predictions : number of call paths
    held : number of bands that held
    error : median of the absolute relative errors; NaN = there is none
    """

    marks: int
    predictions: int
    held: int
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class Scoreboard:
    """The scores of all predictions of one metric.

    Attributes
    ----------
    metric : the metric; "" = nothing was predicted
    cases : predictions with their outcomes, in the order of time
    marks : scores by marks of trust, from `MARKS` to 0
    calibration : how often bands held, and the factor of later ones
    open : predictions without an outcome
    others : number of predictions of other metrics, levels or labels
    """

    metric: str
    cases: tuple[ScoredPrediction, ...]
    marks: tuple[MarkScore, ...]
    calibration: BandCalibration
    open: tuple[PredictionRecord, ...]
    others: int


def chosen(
    predictions: Sequence[PredictionRecord],
    metric: str | None = None,
    labels: Mapping[str, str] | None = None,
    level: float | None = None,
) -> tuple[PredictionRecord, ...]:
    """Return the predictions of one metric and level, without those of other labels.

    Parameters
    ----------
    metric, level : None = those of the newest prediction

    Raises
    ------
    UsageError
        If no prediction is of this metric.
    """
    known = {each.metric for each in predictions}
    if metric is not None and known and metric not in known:
        raise UsageError(
            f"no remembered prediction of {metric!r}", hint=f"metrics: {', '.join(sorted(known))}"
        )
    mine = [each for each in predictions if metric in (None, each.metric)]
    mine = [each for each in mine if each.agrees(labels or {})]
    if metric is None and mine:
        mine = [each for each in mine if each.metric == mine[-1].metric]
    wanted = level if level is not None or not mine else mine[-1].level
    return tuple(each for each in mine if each.level == wanted)


def scored(
    predictions: Sequence[PredictionRecord],
    outcomes: Sequence[OutcomeRecord],
    metric: str | None = None,
    labels: Mapping[str, str] | None = None,
    level: float | None = None,
) -> Scoreboard:
    """Return the scores of remembered predictions.

    A prediction and an outcome belong together if metric, statistic, parameters and scale are the
    same and no label differs.

    Parameters
    ----------
    predictions, outcomes : those of a history, in the order of time
    metric, level : those of the predictions; None = as for the newest one
    labels : predictions and outcomes with other values of these labels are left out
    """
    mine = chosen(predictions, metric, labels, level)
    cases = []
    open_ones = []
    for each in mine:
        fit = [
            one
            for one in outcomes
            if one.series == each.series and one.agrees({**each.labels, **(labels or {})})
        ]
        found = [_scored(each, one) for one in fit]
        cases += [one for one in found if len(one.callpaths)]
        open_ones += [] if fit else [each]
    sets = independent_sets([{*each.prediction.runs, *each.outcome.runs} for each in cases])
    bands = np.concatenate([np.empty((0, 3)), *(each.judged for each in cases)])
    measured = np.concatenate([np.empty(0), *(each.measured for each in cases)])
    holds = np.concatenate([np.empty(0, bool), *(each.holds for each in cases)])
    trust = np.concatenate([np.empty(0, np.int8), *(each.trust for each in cases)])
    scores = band_scores(bands[:, 0], bands[:, 1], bands[:, 2], measured)
    of_path = np.repeat(sets, [len(each.callpaths) for each in cases])
    promised = mine[-1].level if mine else level or CONFIDENCE
    error = np.abs(deviation(bands[:, 0], measured))
    marks = []
    for number in range(MARKS, -1, -1):
        own = trust == number
        middle = float(np.median(error[own])) if own.any() else float("nan")
        marks.append(MarkScore(number, int(own.sum()), int(holds[own].sum()), middle))
    return Scoreboard(
        mine[-1].metric if mine else "",
        tuple(cases),
        tuple(marks),
        band_calibration(scores, holds, of_path, promised),
        tuple(open_ones),
        len(predictions) - len(mine),
    )


def _scored(prediction: PredictionRecord, outcome: OutcomeRecord) -> ScoredPrediction:
    values = outcome.whole if prediction.inclusive else outcome.own
    known = dict(zip(outcome.callpaths, values, strict=True))
    measured = np.array([known.get(name, np.nan) for name in prediction.callpaths])
    total = outcome.run_time if prediction.is_run_time else outcome.total
    there = np.flatnonzero(matters(measured, outcome.total) & ~np.isnan(measured))
    bands = np.array(prediction.bands)[there]
    noise = np.array(prediction.noise or np.zeros(len(prediction.bands)))[there]
    judged = band_of_mean(Band(*bands.T), noise, len(outcome.runs), prediction.level)
    measured = measured[there]
    return ScoredPrediction(
        prediction,
        outcome,
        tuple(prediction.callpaths[row] for row in there.tolist()),
        bands,
        np.column_stack([judged.value, judged.low, judged.high]),
        measured,
        np.array(prediction.trust, np.int8)[there],
        band_holds(measured, judged.low, judged.high),
        total,
    )


def recalibrated(ranking: Ranking, factor: float) -> Ranking:
    """Return a ranking of predictions whose bands are wider, or narrower, by a factor."""
    fitted = ranking.fitted
    run_time = fitted.run_time
    if run_time is not None:
        run_time = replace(run_time, band_factor=factor)
    fitted = replace(fitted, band_factor=factor, run_time=run_time)
    return rank(
        fitted,
        ranking.target,
        ranking.by,
        inclusive=ranking.inclusive,
        predicted=not ranking.repetitions,
    )
