"""Predictions of real programs in two parameters, along one at measured values of the other.

The largest value of a parameter is kept back, and predicted at every value of the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import extrap_models
import numpy as np
from environments import EXTRAP
from laws import AbsentError
from results import Table

import callpath_modeler as cpm
from callpath_modeler import modeling
from callpath_modeler.arrays import FloatArray
from callpath_modeler.fitted import sliced

NOTES = f"""\
The call paths are measured at the value that is kept back and at three others. Surfaces:
predictions without models of the runs at one value of the other parameter. Runs: predictions of
these models alone. Last: the measurement at the value before. Errors are medians. Log: the mean
absolute logarithm of predicted over measured values, at most 5. Held: the share of our 95 % bands
that contain the measured value. {EXTRAP.name} uses its default modeler for several parameters.
"""

_SERIES = {
    "LULESH, Quartz": "lulesh_quartz_weak_p8-125.jsonl",
    "samplesort": "sort/team22_samplesort_random.jsonl",
    "mergesort": "sort/team6_mergesort_random.jsonl",
    "bitonic": "sort/team16_bitonic_random.jsonl",
}
_FEWEST = 3
_MOST = 5.0
_BY = ("ours", "surfaces", "runs", EXTRAP.name, "last")


@dataclass(frozen=True, slots=True)
class Kept:
    """Measurements, [n], predictions by each of `_BY`, [n], and our bands; NaN = none."""

    truth: FloatArray
    said: dict[str, FloatArray]
    low: FloatArray
    high: FloatArray


def table(shared: Path) -> Table:
    """Measure, and return the table.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    found = list(kept_back(shared))
    every = _joined([kept for _, kept in found])
    head = ("series", "values", *_BY, f"log: {_BY[0]}", *_BY[1:], "held")
    lines = [_line(name, kept) for name, kept in [*found, ("all", every)]]
    return Table(head, lines, range(1, len(head)))


def kept_back(shared: Path, *, peer: bool = True) -> Iterator[tuple[str, Kept]]:
    """Yield each series and parameter, with predictions for the largest value.

    With `peer`, Extra-P predicts as well.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    folder = shared / "data" / "third_party" / "caliper"
    for name, file in _SERIES.items():
        if not (folder / file).exists():
            raise AbsentError(f"{folder / file} is not there: it has measurements")
        for parameter, kept in _of_series(_loaded(folder / file), peer=peer):
            yield f"{name}: {parameter}", kept


@cache
def _loaded(path: Path) -> cpm.Experiment:
    return cpm.load(path, cpm.LoadOptions(cpm.ReadOptions(metrics=None)))


def _of_series(whole: cpm.Experiment, *, peer: bool) -> Iterator[tuple[str, Kept]]:
    """Yield each parameter, with predictions for its largest value."""
    for parameter in whole.modelled_parameters():
        largest = max(run.parameters[parameter] for run in whole.runs)
        known = whole.where(np.array([run.parameters[parameter] < largest for run in whole.runs]))
        parts = [
            part
            for metric in whole.columns
            for part in _of_metric(whole, known, metric, parameter, peer=peer)
        ]
        yield parameter, _joined(parts)


def _of_metric(
    whole: cpm.Experiment, known: cpm.Experiment, metric: str, parameter: str, *, peer: bool
) -> Iterator[Kept]:
    fitted = cpm.fit(known, metric)
    assert fitted.surface is not None
    names, models = fitted.surface.parameters, fitted.surface.models
    axis = names.index(parameter)
    points, values = whole.by_setting(metric, names)
    there = known.by_setting(metric, names)
    at = points[:, axis].max()
    for (other,) in np.unique(np.delete(models.points, axis, axis=1), axis=0).tolist():
        target = np.insert([other], axis, at)
        (place,) = np.flatnonzero((points == target).all(axis=1))
        held = {names[1 - axis]: other}
        line = sliced(known, fitted.metric, fitted.surface, {}, (), parameter, held)
        measured = np.nan_to_num(line.measured)
        truth = np.nanmean(values[:, place], axis=1)
        rows = ((measured > 0).sum(axis=1) >= _FEWEST) & (truth > 0)
        band = line.models.predict([at])
        surfaces = modeling.slice_along(models, axis, target).values([at])
        runs = modeling.fit(*line.line.by_point(metric, parameter)).values([at])
        extrap = (
            extrap_models.predict(there[0], there[1][rows], target[None])[0][:, 0]
            if peer
            else np.full(int(rows.sum()), np.nan)
        )
        said = {"ours": band.value, "surfaces": surfaces, "runs": runs}
        of_rows = {name: value[rows, 0] for name, value in said.items()}
        last = line.measured[rows, -1]
        yield Kept(
            truth[rows],
            {**of_rows, EXTRAP.name: extrap, "last": last},
            band.low[rows, 0],
            band.high[rows, 0],
        )


def _joined(parts: list[Kept]) -> Kept:
    said = {by: np.concatenate([part.said[by] for part in parts]) for by in _BY}
    truth, low, high = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("truth", "low", "high")
    )
    return Kept(truth, said, low, high)


def _line(name: str, kept: Kept) -> tuple[str, ...]:
    errors, logs = [], []
    for by in _BY:
        said = np.nan_to_num(kept.said[by], nan=0.0)
        errors.append(float(np.median(np.abs(said / kept.truth - 1))))
        with np.errstate(divide="ignore", invalid="ignore"):
            away = np.abs(np.log(np.maximum(said, 0) / kept.truth))
        logs.append(float(np.minimum(away, _MOST).mean()))
    held = ((kept.low <= kept.truth) & (kept.truth <= kept.high)).mean()
    shown = [f"{100 * error:.1f} %" for error in errors] + [f"{log:.2f}" for log in logs]
    return (name, str(len(kept.truth)), *shown, f"{100 * held:.0f} %")
