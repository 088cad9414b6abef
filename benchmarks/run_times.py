"""Accuracy of predictions of the slowest process, on measured series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from laws import AbsentError
from results import Table

import callpath_modeler as cpm
from callpath_modeler import modeling
from callpath_modeler.analysis.predict import predict_sum, run_time_by_model
from callpath_modeler.analysis.run_time import predicted_run_time
from callpath_modeler.analysis.uncertain import Band
from callpath_modeler.profile.experiment import Experiment

Total = tuple[float, float, float]

NOTES = """\
The table shows predictions of the run time, which is the inclusive time of the program on the
slowest process. *Model* is that of the run time alone. *Sum* adds the models of the call paths,
which are means over processes. *Larger* is the larger of the model of the run time and the sum, and
so are its ends. *Stated* is what cpmodel states: the larger of the model of the run time and the
sum of reconciled call paths. *Run once*: the same for one run of each scale, drawn at random. The
truth is the mean of the runs. Largest: the largest scale of every series, predicted from the
others. Next: every scale from the fourth on, predicted from all smaller ones. All: the same, and
every larger scale. Log is the mean absolute difference of natural logarithms. Holds is the share of
95 % bands that contain the measured run time. Width is the median ratio of the upper to the lower
end.
"""

_MODEL, _STATED = "model", "stated"
_LEAST_POINTS = 3
_CUBEX, _CALIPER = "third_party/cubex", "third_party/caliper"
_SINGLE = (
    *(f"scorep/{name}" for name in ("amg.weak", "comd.weak", "lulesh.weak", "npb_ft.strong")),
    "scorep/snap.weak",
    f"{_CUBEX}/metacg_inputmodeling/001",
    f"{_CUBEX}/metacg_inputmodeling/002",
    f"{_CUBEX}/extrap_tests/single_parameter",
    f"{_CUBEX}/extrap_tests/simple_threaded",
    f"{_CALIPER}/lulesh_opal_weak",
    "hpctoolkit_synthetic/scal2000",
)
_SEVERAL = (
    f"{_CUBEX}/lulesh_daint",
    f"{_CALIPER}/lulesh_quartz_weak",
    *(f"{_CALIPER}/sort/team{name}_random" for name in ("16_bitonic", "22_samplesort")),
    f"{_CALIPER}/sort/team6_mergesort_random",
)
_TRACES = ("cg", "ft", "lu", "ring", "stencil", "master", "subcomm")


@dataclass(frozen=True, slots=True)
class _Told:
    """One target with its predictions.

    Attributes
    ----------
    truth : measured run time
    is_largest, is_next : True if only this scale was kept back; if it is the next one
    totals : predictions by candidate
    """

    truth: float
    is_largest: bool
    is_next: bool
    totals: dict[str, Total]


def table(shared: Path) -> Table:
    """Measure every series.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    series = list(_series(shared / "data"))
    told = [each for experiment in series for each in _predictions(experiment)]
    rng = np.random.default_rng(1)
    once = [each for experiment in series for each in _predictions(_run_once(experiment, rng))]
    lines = [_line(name, name, told) for name in told[0].totals]
    lines += [_line(f"{name}, run once", name, once) for name in (_MODEL, _STATED)]
    of_each = ("log", "holds", "width")
    head = ("prediction", "largest", *of_each, "next", *of_each, "all", *of_each)
    return Table(head, lines, range(1, 13))


def _line(title: str, name: str, told: Sequence[_Told]) -> tuple[str, ...]:
    largest = [each for each in told if each.is_largest]
    after = [each for each in told if each.is_next]
    return (title, *(cell for part in (largest, after, told) for cell in _cells(part, name)))


def _run_once(experiment: Experiment, rng: np.random.Generator) -> Experiment:
    """Return one run of each scale, drawn at random."""
    of_run = experiment.settings((experiment.modelled_parameter(),))[:, 0]
    order = rng.permutation(len(of_run))
    first = order[np.unique(of_run[order], return_index=True)[1]]
    return experiment.where(np.isin(np.arange(len(of_run)), first))


def _series(data: Path) -> Iterator[Experiment]:
    paths = [data / name for name in (*_SINGLE, *_SEVERAL)]
    traces = {name: sorted((data / "traces").glob(f"{name}.*")) for name in _TRACES}
    absent = [path for path in paths if not path.exists()]
    absent += [data / "traces" / name for name, found in traces.items() if not found]
    if absent:
        raise AbsentError(f"{absent[0]} is not there: it has measurements")
    for path in paths[: len(_SINGLE)]:
        yield cpm.load(path)
    for path in paths[len(_SINGLE) :]:
        yield from _parts(cpm.load(path))
    for found in traces.values():
        yield cpm.load(found)


def _parts(experiment: Experiment) -> Iterator[Experiment]:
    """Yield the series in p, with the other parameter fixed, or fixed per process."""
    (other,) = (each.name for each in experiment.parameters if each.name != "p")
    at = np.array([run.parameters[other] for run in experiment.runs])
    p = np.array([run.parameters["p"] for run in experiment.runs])
    for keys in (at, at / p) if other == "n" else (at,):
        for key in np.unique(keys):
            part = experiment.where(keys == key)
            if any(each.name == "p" for each in part.parameters):
                yield part


def _predictions(experiment: Experiment) -> Iterator[_Told]:
    metric = experiment.metric().name
    parameter = experiment.modelled_parameter()
    program = experiment.of_program(metric)
    if program is None:
        return
    points, run_times = program.by_point(metric, parameter)
    of_run = experiment.settings((parameter,))[:, 0]
    for known in range(_LEAST_POINTS, len(points)):
        fitted = cpm.fit(experiment.where(of_run < points[known]))
        centres = modeling.centre(run_times, fitted.models.aggregate)[0]
        for target, truth in zip(points[known:].tolist(), centres[known:].tolist(), strict=True):
            where = np.array([target])
            alone = run_time_by_model(fitted, where)
            assert alone is not None
            sums = Band(*predict_sum(fitted, np.arange(len(fitted.modelled)), where)).at(0)
            totals = {
                _MODEL: alone.at(0),
                "sum": sums,
                "larger": _larger(alone.at(0), sums),
                _STATED: predicted_run_time(fitted, target),
            }
            is_next = target == points[known]
            yield _Told(truth, known == len(points) - 1, is_next, totals)


def _larger(one: Total, other: Total) -> Total:
    """Return the larger value, and the larger ends."""
    value = max(one[0], other[0])
    return value, min(max(one[1], other[1]), value), max(one[2], other[2], value)


def _cells(told: Sequence[_Told], name: str) -> tuple[str, ...]:
    truth = np.array([each.truth for each in told])
    value, low, high = np.array([each.totals[name] for each in told]).T
    slack = 1e-9 * truth
    log = np.abs(np.log(np.maximum(value, 1e-300) / truth)).mean()
    holds = ((low <= truth + slack) & (truth - slack <= high)).mean()
    width = np.median(high / np.maximum(low, 1e-300))
    return str(len(told)), f"{log:.3f}", f"{holds:.1%}", f"{width:.2g}"
