"""Remembered predictions against what was measured later: errors, bands and their calibration.

Data flow: `prediction_store` keeps predictions and outcomes. `scored` pairs those of one series and
compares them as ``rank --verify`` does. `analysis.calibration` says how often bands held, and how
later ones are corrected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.bands import Band, deviation
from callpath_modeler.analysis.calibration import (
    BandCalibration,
    band_calibration,
    band_scores,
    independent_sets,
)
from callpath_modeler.analysis.rank import Ranking, rank
from callpath_modeler.analysis.trust import MARKS
from callpath_modeler.analysis.verification import band_holds, band_of_mean, matters
from callpath_modeler.argument_checks import CONFIDENCE
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array
from callpath_modeler.errors import UsageError
from callpath_modeler.history.prediction_store import OutcomeRecord, PredictionRecord


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
        """Whether the band of the total holds; None = not known."""
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
