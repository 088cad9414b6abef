"""Accuracy on real programs: the largest scale is kept back and predicted from the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import extrap_models
import numpy as np
from laws import AbsentError
from numpy.typing import NDArray
from results import Table

import callpath_modeler as cpm
from callpath_modeler import modeling
from callpath_modeler.analysis.uncertain import at_most, limited, marks_of_trust
from callpath_modeler.arrays import FloatArray

NOTES = """\
Every call path is modelled without the largest scale, which is then predicted. The truth is the
mean of the measurements there, and "last" predicts the value of the scale before. "Holds" is the
share of 95 % bands that contain the truth (goal: 85 %). "Width" is the median width of the bands,
relative to the truth. Values of Score-P profiles are maxima over processes. Call paths are excluded
if they are zero everywhere, do not occur at the largest scale, or occur at fewer than three others.
Call paths with exactly three others have separate lines. Not worse: our median error is at most
Extra-P's, to a tenth of a percent. Without a model, the error is infinite.
"""

HEAD = (
    *("series", "call paths", "error: ours", "Extra-P", "last"),
    *("within 20 %: ours", "Extra-P", "last", "holds", "width", "not worse"),
)

_LEAST_POINTS = 3
"""Fewest points, besides the largest one, from which Extra-P makes a model."""

_FEW_POINTS = 3

_RISES, _DOES_NOT = 1.5, 1.1
_NEAR = 0.2
_SLIGHT = 0.001

Parameters = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Series:
    """Runs of one program, to be modelled in the number of processes or the only parameter.

    Attributes
    ----------
    source : origin of the measurements
    name : name in tables
    path : path of the runs, below the data
    metrics : metrics, each with its own line
    apart : key that divides the runs into groups
    inclusive : True: inclusive values are modelled as well, if values are additive
    """

    source: str
    name: str
    path: str
    metrics: tuple[str, ...]
    apart: Callable[[Parameters], float] = lambda _: 0.0
    inclusive: bool = False


COUNTED = ("visits", "bytes_sent", "bytes_received")
"""Metrics that are counts; the others are times."""
_OURS = ("time", *COUNTED)
_CALIPER = ("time_mean", "time_inc_max")


def _size(run: Parameters) -> float:
    return run["size"]


def _whole(run: Parameters) -> float:
    return run["n"]


def _of_each(run: Parameters) -> float:
    return run["n"] / run["p"]


def _all() -> Iterator[Series]:
    metrics = ("time", "visits")
    path = "third_party/cubex/lulesh_daint"
    yield Series("Daint", "LULESH, Daint", path, metrics, _size, inclusive=True)
    caliper = "third_party/caliper"
    quartz = f"{caliper}/lulesh_quartz_weak_p8-125.jsonl"
    yield Series("Quartz", "LULESH, Quartz", quartz, _CALIPER, _size, inclusive=True)
    opal = f"{caliper}/lulesh_opal_weak.jsonl"
    yield Series("Opal", "LULESH, Opal", opal, _CALIPER, inclusive=True)
    for name in ("team22_samplesort", "team6_mergesort", "team16_bitonic"):
        path, sort = f"{caliper}/sort/{name}_random.jsonl", name.partition("_")[2]
        for scaling, apart in (("strong", _whole), ("weak", _of_each)):
            yield Series("sorts", f"{sort}, {scaling}", path, _CALIPER, apart, inclusive=True)
    relearn = "third_party/extrap_text/relearn_p32-256.txt"
    yield Series("RELeARN", "RELeARN", relearn, ("time",), _whole)
    collectives = "third_party/mpi_collectives/mpi_data.jsonl"
    yield Series("mpi_data", "MPI collectives", collectives, ("latency_median",))
    for name in ("lulesh.weak", "snap.weak", "npb_ft.strong", "comd.weak", "amg.weak"):
        yield Series("our Score-P runs", name, f"scorep/{name}", _OURS)
    for name in ("001", "002"):
        path = f"third_party/cubex/metacg_inputmodeling/{name}"
        yield Series("known laws", f"known law {name}", path, metrics)


@dataclass(frozen=True, slots=True)
class Held:
    """Call paths with measurements and predictions at the largest scale.

    Attributes
    ----------
    truth, last : [n] means at the largest scale and at the one before
    ours, low, high, extrap : [n] predictions; NaN = no model, or no run of Extra-P
    marks : [n] marks of trust of our predictions
    points : [n] number of modelled points
    sudden : [n] True if values rose by half or more at the last of these points, and by less than a
        tenth at the one before
    """

    truth: FloatArray
    last: FloatArray
    ours: FloatArray
    low: FloatArray
    high: FloatArray
    extrap: FloatArray
    marks: NDArray[np.int8]
    points: NDArray[np.intp]
    sudden: NDArray[np.bool_]

    def where(self, keep: NDArray[np.bool_]) -> Held:
        """Return a selection of the call paths."""
        return Held(*(getattr(self, name)[keep] for name in self.__slots__))

    @property
    def inside(self) -> NDArray[np.bool_]:
        """True if the band contains the measurement, [n]."""
        slack = 1e-9 * np.abs(self.truth)
        return (self.low <= self.truth + slack) & (self.truth - slack <= self.high)

    def error(self, predicted: FloatArray) -> FloatArray:
        """Return relative errors; the error of a prediction for a zero is infinite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.abs(predicted - self.truth) / np.abs(self.truth)
        error = np.where(predicted == self.truth, 0.0, error)
        return np.where(np.isnan(error), np.inf, error)


def table(shared: Path) -> Table:
    """Measure every series.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    lines: list[tuple[str, ...]] = []
    of_source: dict[str, list[Held]] = {}
    for series, what, held in kept_back(shared):
        few = held.points <= _FEW_POINTS
        of_source.setdefault(series.source, []).append(held)
        lines += [
            line(f"{series.name}: {what}{name}", held.where(chosen))
            for name, chosen in (("", ~few), (f", {_FEW_POINTS} points", few))
            if chosen.any()
        ]
    lines += [line(f"all of {source}", joined(parts)) for source, parts in of_source.items()]
    whole = joined([held for parts in of_source.values() for held in parts])
    many = whole.where(whole.points > _FEW_POINTS)
    lines.append(line(f"all of more than {_FEW_POINTS} points", many))
    return Table(HEAD, lines, range(1, 10))


def kept_back(shared: Path) -> Iterator[tuple[Series, str, Held]]:
    """Yield series with their metrics, and the call paths of each.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    for series, what, parts in measured(shared):
        held = [predicted(points, values) for points, values in parts]
        yield series, what, joined([each for each in held if each])


def measured(
    shared: Path, more: Sequence[Series] = ()
) -> Iterator[tuple[Series, str, list[tuple[FloatArray, FloatArray]]]]:
    """Yield series with their metrics, and for each part points [K] and values [n, K, R].

    The series in `more` follow those of all tables.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    data = shared / "data"
    every = [*_all(), *more]
    absent = [series.path for series in every if not (data / series.path).exists()]
    if absent:
        raise AbsentError(f"{data / absent[0]} is not there: it has measurements")
    for series in every:
        for what, parts in _metrics(series, data):
            yield series, what, parts


def _metrics(
    series: Series, data: Path
) -> Iterator[tuple[str, list[tuple[FloatArray, FloatArray]]]]:
    """Yield the name of each line, and its parts."""
    read = cpm.ReadOptions(metrics=series.metrics)
    experiment = cpm.load([data / series.path], cpm.LoadOptions(read=read))
    keys = np.array([series.apart(run.parameters) for run in experiment.runs])
    parts = [experiment.where(keys == key) for key in np.unique(keys)]
    parts = [part for part in parts if part.parameters]
    for metric in series.metrics:
        both = series.inclusive and experiment.metric(metric).additive
        for inclusive in (False, True) if both else (False,):
            yield (
                f"{metric}{', inclusive' * inclusive}",
                [
                    part.by_point(metric, part.modelled_parameter(), inclusive=inclusive)
                    for part in parts
                ],
            )


def predicted(points: FloatArray, values: FloatArray, *, peer: bool = True) -> Held | None:
    """Predict the last of `points` [K] from the others; None = no call path has enough points.

    With `peer`, Extra-P predicts it as well.
    """
    there = np.isfinite(values).any(axis=2)
    enough = there[:, :-1].sum(axis=1) >= _LEAST_POINTS
    values = values[enough & there[:, -1] & (np.nan_to_num(values) != 0).any(axis=(1, 2))]
    if not len(values):
        return None
    known, trained = points[:-1], values[:, :-1]
    models = modeling.fit(known, trained)
    ours = models.predict(points[-1:])
    value, low, high = (each[:, 0] for each in (ours.value, ours.low, ours.high))
    limits = limited(models, value, float(points[-1] / known[-1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # some points have no value
        means = np.nanmean(values, axis=2)
    before = np.isfinite(means[:, :-1])
    # Nearly all call paths have the same last points with values.
    order = np.argsort(before, axis=1, kind="stable")[:, -_LEAST_POINTS:]
    first, second, last = np.take_along_axis(means, order, axis=1).T
    return Held(
        truth=means[:, -1],
        last=last,
        ours=value,
        low=low,
        high=high,
        extrap=(
            extrap_models.predict(known, trained, points[-1:])[0][:, 0]
            if peer
            else np.full(len(value), np.nan)
        ),
        marks=at_most(marks_of_trust(value, low, high), value, limits),
        points=before.sum(axis=1),
        sudden=(last >= _RISES * second) & (second < _DOES_NOT * first),
    )


def joined(parts: Sequence[Held]) -> Held:
    """Return the call paths of all parts together."""
    return Held(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in Held.__slots__)
    )


def line(what: str, held: Held) -> tuple[str, ...]:
    """Return the cells of `HEAD` for some call paths."""
    errors = [held.error(each) for each in (held.ours, held.extrap, held.last)]
    medians = [float(np.median(error)) for error in errors]
    modelled = np.isfinite(held.ours)
    inside = held.inside
    with np.errstate(divide="ignore", invalid="ignore"):
        width = (held.high - held.low) / np.abs(held.truth)
    return (
        what,
        str(len(held.truth)),
        *(_percent(median) for median in medians),
        *(_percent(float((error <= _NEAR).mean()), 0) for error in errors),
        _percent(float(inside[modelled].mean()), 0) if modelled.any() else "-",
        f"{np.median(width[modelled & (held.truth != 0)]):.2f}" if modelled.any() else "-",
        "yes" if medians[0] <= medians[1] + _SLIGHT else "NO",
    )


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}%" if np.isfinite(share) else "-"
