"""MPI on simulated clusters, predicted from what delays it, and gains of removed causes."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from laws import AbsentError
from results import Table

from callpath_modeler import modeling
from callpath_modeler.analysis.efficiency_factors import LEAVES, PopFactor, Scheme
from callpath_modeler.analysis.predict import predict
from callpath_modeler.analysis.what_if import parse_change, what_if
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.studies import pipeline
from callpath_modeler.studies.study import Study

NOTES = """\
MPI calls that take at least 0.5 % of the run time at the predicted scale. Own law: the model of the
times of each call path. Parts: cpmodel. Far: the largest scale, which is 2 or 4 times the others.
All: the same with one scale less, and one or two scales before the largest as targets. Error: the
median. Log: the mean of |ln error|. Width: the median of upper over lower end.
"""

GAIN_NOTES = """\
The runs were simulated again without each cause, or with half of it. Gains at p were predicted from
the scales below the largest, or measured scales were used. Error: the median. Run: the share of
gains that are wrong by less than 5 % of the run time. Some causes are left out: bytes, noise of the
nodes, and those of several call paths.
"""

FACTOR_NOTES = """\
Factors of efficiency of the whole program at the largest scale, and at the one before from the
scales below it. Log: the mean of |ln error|. Width: the median of upper over lower end.
"""

_LEAST = 0.005


@dataclass(slots=True)
class Errors:
    """Errors of predictions: logarithms, whether bands hold, and upper over lower ends."""

    logs: list[float] = field(default_factory=list)
    holds: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def cells(self, what: str) -> tuple[str, ...]:
        """Return a line of the table."""
        error = np.abs(self.logs)
        return (
            what,
            str(len(error)),
            f"{np.expm1(np.median(error)):.0%}",
            f"{error.mean():.2f}",
            f"{np.mean(self.holds):.0%}",
            f"{np.exp(np.median(np.log(self.widths))):.1f}",
        )


def _series(shared: Path) -> Iterator[tuple[str, dict[int, list[Path]]]]:
    """Yield the name of each series with its runs by scale."""
    folder = shared / "data" / "smpi"
    if not folder.is_dir():
        raise AbsentError(f"{folder} is absent")
    for each in sorted(folder.iterdir()):
        runs: dict[int, list[Path]] = {}
        for run in sorted(each.iterdir()) if each.is_dir() else ():
            scale = re.search(r"\.p(\d+)\.", run.name)
            if scale:
                runs.setdefault(int(scale[1]), []).append(run)
        if runs:
            yield each.name, runs


def _study(runs: dict[int, list[Path]], scales: list[int]) -> Study:
    return Study([str(run) for scale in scales for run in runs[scale]])


def _own_laws(fitted: Fitted) -> Fitted:
    """Return the models of the times alone."""
    points, values = fitted.line.by_point(fitted.metric.name, fitted.parameter)
    values = values[:, np.isin(points, fitted.points)]
    models = modeling.fit(fitted.points, values, priors=modeling.learn(fitted.points, values))
    return replace(fitted, models=models, is_narrow=True)


def _add(found: Errors, fitted: Fitted, target: int, truth: Experiment) -> None:
    said, tree = predict(fitted, float(target)), fitted.experiment.tree
    column, measured = truth.columns["time"], truth.tree
    run_time = np.nanmean(column.run_time)
    values = np.nanmean(column.exclusive, axis=1).tolist()
    known = dict(zip(map(measured.path, range(len(measured))), values, strict=True))
    for row in range(len(tree)):
        value = known.get(tree.path(row), 0.0)
        is_mpi = tree.name(row).startswith("MPI_")
        if is_mpi and value >= _LEAST * run_time and said.value[row] > 0:
            found.logs.append(float(np.log(said.value[row] / value)))
            found.holds.append(bool(said.low[row] <= value <= said.high[row]))
            found.widths.append(float(said.high[row] / max(said.low[row], 1e-12)))


def table(shared: Path) -> Table:
    """Measure the predictions.

    Raises
    ------
    AbsentError
        If the runs are absent.
    """
    found = {(k, way): Errors() for k in ("far", "all") for way in ("own law", "parts")}
    for _, runs in _series(shared):
        *scales, far = sorted(runs)
        last = scales[-1]
        for known, target in (
            (scales, far), (scales[:-1], last), (scales[:-1], far), (scales[:-2], last),
        ):  # fmt: skip
            truth = _study(runs, [target]).experiment()
            parts = pipeline.fit(_study(runs, known).experiment(), "time")
            for way, fitted in (("parts", parts), ("own law", _own_laws(parts))):
                for kind in ("far", "all") if known is scales else ("all",):
                    _add(found[kind, way], fitted, target, truth)
    head = ("predicted", "call paths", "error", "log", "holds", "width")
    lines = [each.cells(f"{kind}: {way}") for (kind, way), each in found.items()]
    return Table(head, lines, range(1, 6))


def gains(shared: Path) -> Table:
    """Measure the gains.

    Raises
    ------
    AbsentError
        If the runs are absent.
    """
    found: dict[tuple[str, bool], list[tuple[float, bool, bool]]] = {}
    for name, runs in _series(shared):
        *scales, far = sorted(runs)
        study = _study(runs, scales)
        with (shared / "data" / "smpi" / "gains.csv").open(newline="") as file:
            lines = [line for line in csv.DictReader(file) if line["series"] == name]
        for line in lines:
            change = _change(line)
            if change is None or int(line["p"]) not in runs:
                continue
            made = what_if(study.ranking(target=float(line["p"])), [parse_change(change)])
            said, low, high = (1e3 * end for end in made.gain)
            gain, whole = float(line["gain_ms"]), float(line["base_ms"])
            key = line["kind"], int(line["p"]) == far
            error = abs(said / gain - 1) if abs(gain) > whole / 1000 else np.nan
            found.setdefault(key, []).append(
                (error, low <= gain <= high, abs(said - gain) < 0.05 * whole)
            )
    cells = []
    for (kind, is_far), cases in sorted(found.items(), reverse=True):
        error, holds, close = np.array(cases, float).T
        what = f"{kind}, {'predicted' if is_far else 'measured scales'}"
        shares = (f"{np.nanmedian(error):.0%}", f"{holds.mean():.0%}", f"{close.mean():.0%}")
        cells.append((what, str(len(cases)), *shares))
    return Table(("what", "cases", "error", "holds", "run"), cells, range(1, 5))


def factors(shared: Path) -> Table:
    """Measure the predicted factors of efficiency.

    Raises
    ------
    AbsentError
        If the runs are absent.
    """
    found: dict[PopFactor, Errors] = {}
    for _, runs in _series(shared):
        *scales, far = sorted(runs)
        for known, target in ((scales, far), (scales[:-1], scales[-1])):
            truth = _study(runs, [*known, target]).efficiency().efficiency.last
            said = _study(runs, known).efficiency(target=float(target)).efficiency.last
            for factor in (PopFactor.GLOBAL, *LEAVES):
                key = Scheme.MULTIPLICATIVE, factor
                ends = truth.value, said.value, said.low, said.high
                true, value, low, high = (float(each[key][0]) for each in ends)
                if value < 1 or true < 1:
                    its = found.setdefault(factor, Errors())
                    its.logs.append(float(np.log(value / true)))
                    its.holds.append(low <= true <= high)
                    its.widths.append(high / low)
    head = ("factor", "cases", "error", "log", "holds", "width")
    lines = [errors.cells(factor.value.replace("_", " ")) for factor, errors in found.items()]
    return Table(head, lines, range(1, 6))


def _change(line: dict[str, str]) -> str | None:
    """Return what was changed in the words of cpmodel; None = another kind of cause."""
    half, path = line["removed"].endswith("@0.5"), line["cause_path"]
    if line["kind"] == "spread" and "@" not in line["removed"]:
        return f"{path} imbalance = 1"
    if line["kind"] == "work" and "*" not in path:
        return f"{path} time * {0.5 if half else 0}"
    return None
