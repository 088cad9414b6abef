"""Error rates and findings of `cpmodel diff`, for planted regressions and for none."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from results import Table

import callpath_modeler as cpm
from callpath_modeler.analysis.difference import (
    ExperimentDifference,
    RegressionGate,
    difference,
    violations,
)
from callpath_modeler.analysis.excess_work import CARRIES_COST
from callpath_modeler.analysis.pairing import pair_up
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import centre
from callpath_modeler.profile.runs import ParameterLine
from callpath_modeler.studies.pipeline import FitOptions, fit

NOTES = """\
Unchanged: both copies are the medians of a measured series times fresh log-normal noise of 3 %,
with as many repetitions as were measured. Planted: one call path of the second copy is multiplied
by (p / p_min)^0.5. This is repeated for each call path with 1 % of the cost or more, with three
seeds each. Halves: two repetitions of the real runs are compared with the other three, in either
order and without changes. Shared: all call paths of a run have one factor of 10 % noise in
addition, and the planted call path is slower by half at all scales; there are 200 pairs without a
change, and 20 with one. All processes of these runs shared two cores. The target is 4 times the
largest scale. A pair fails if `--fail-on` fails with the limit in the line. "Caught" means that the
planted call path is named."""

_SAMPLES = Path(__file__).resolve().parents[1] / "sample_profiles"
_SEEDS = 200
_NOISE = 0.03
_SHARED_NOISE = 0.1
_SLOWED = 20
_TARGET = 4
_WORSE, _GROWTH = RegressionGate.parse("worse>5%"), RegressionGate.parse("growth")


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The outcome of a comparison: failure or not, and the named call paths."""

    worse: frozenset[int | None]
    growth: frozenset[int | None]


def table(shared: Path) -> Table:
    """Measure rates on the sample profiles, and on real repetitions if they are available."""
    lines = []
    for name in ("lulesh", "snap"):
        experiment = cpm.load([_SAMPLES / name])
        lines.append(_line(f"{name}: unchanged", list(_unchanged(experiment))))
        lines.append(_caught(f"{name}: planted", experiment))
        unchanged = list(_unchanged(experiment, _SHARED_NOISE))
        lines.append(_line(f"{name}: unchanged, shared noise", unchanged))
        lines.append(_caught_in_shared_noise(f"{name}: planted, shared noise", experiment))
    for name in ("lulesh.weak", "snap.weak", "comd.weak", "amg.weak", "npb_ft.strong"):
        path = shared / "data" / "scorep" / name
        if path.exists():
            lines.append(_line(f"{name}: halves", list(_halves(cpm.load([path])))))
    return Table(("pairs", "number", "worse>5%", "growth"), lines, range(1, 4))


def _line(name: str, found: list[_Verdict]) -> tuple[str, ...]:
    worse, growth = (sum(bool(getattr(v, limit)) for v in found) for limit in ("worse", "growth"))
    return f"{name}: fail", str(len(found)), str(worse), str(growth)


def _unchanged(experiment: cpm.Experiment, shared: float = 0.0) -> Iterator[_Verdict]:
    for seed in range(_SEEDS):
        random = np.random.default_rng(seed)
        yield _verdict(*(_copy(experiment, random, shared=shared) for _ in range(2)))


def _worth(experiment: cpm.Experiment) -> list[int]:
    """Return the call paths with 1 % of the cost at the largest scale, or more."""
    values, setting = experiment.values(), _settings(experiment)
    cost = np.nan_to_num(_median(values[:, setting == setting.max()]))
    return np.flatnonzero(cost >= CARRIES_COST * cost.sum()).tolist()


def _caught_in_shared_noise(name: str, experiment: cpm.Experiment) -> tuple[str, ...]:
    found, rows = [], _worth(experiment)
    for seed in range(_SLOWED):
        random, row = np.random.default_rng(seed), rows[seed % len(rows)]
        base, new = (_copy(experiment, random, shared=_SHARED_NOISE) for _ in range(2))
        new.columns["time"].exclusive[row] *= 1.5
        found.append((row, _verdict(base, new)))
    return _caught_line(name, found)


def _caught(name: str, experiment: cpm.Experiment) -> tuple[str, ...]:
    planted = [(row, seed) for row in _worth(experiment) for seed in range(3)]
    found = []
    for row, seed in planted:
        random = np.random.default_rng(seed)
        base, new = _copy(experiment, random), _copy(experiment, random, grows=row)
        found.append((row, _verdict(base, new)))
    return _caught_line(name, found)


def _caught_line(name: str, found: list[tuple[int, _Verdict]]) -> tuple[str, ...]:
    worse = sum(row in verdict.worse for row, verdict in found)
    growth = sum(row in verdict.growth for row, verdict in found)
    return f"{name}: caught", str(len(found)), str(worse), str(growth)


def _halves(experiment: cpm.Experiment) -> Iterator[_Verdict]:
    repetition = np.array([run.repetition for run in experiment.runs])
    for two in itertools.combinations(range(1, 6), 2):
        chosen = np.isin(repetition, two)
        halves = experiment.where(chosen), experiment.where(~chosen)
        yield _verdict(*halves)
        yield _verdict(*reversed(halves))


def _median(values: FloatArray) -> FloatArray:
    """Return the median over the last of two axes; NaN = not measured."""
    return centre(values[:, None])[:, 0]


def _settings(experiment: cpm.Experiment) -> FloatArray:
    return np.array([run.parameters["p"] for run in experiment.runs])


def _copy(
    experiment: cpm.Experiment,
    random: np.random.Generator,
    grows: int | None = None,
    shared: float = 0.0,
) -> cpm.Experiment:
    """Return an experiment with the same medians and fresh noise; row `grows` has a regression."""
    column = experiment.columns["time"]
    setting, values = _settings(experiment), np.empty_like(column.exclusive)
    for p in np.unique(setting):
        values[:, setting == p] = _median(column.exclusive[:, setting == p])[:, None]
    values *= np.exp(_NOISE * random.standard_normal(values.shape))
    if shared:
        values *= np.exp(shared * random.standard_normal(values.shape[1]))
    if grows is not None:
        values[grows] *= (setting / setting.min()) ** 0.5
    return replace(experiment, columns={"time": replace(column, exclusive=values)})


def _verdict(base: cpm.Experiment, new: cpm.Experiment) -> _Verdict:
    found = _compared(base, new)
    broken = (violations(found, limits, found.order) for limits in (_WORSE, _GROWTH))
    return _Verdict(*(frozenset(breach.row for breach in some) for some in broken))


def _compared(base: cpm.Experiment, new: cpm.Experiment) -> ExperimentDifference:
    before = fit(base, "time")
    after = fit(new, "time", FitOptions(aggregate=before.models.aggregate))
    pair = pair_up((base, before), (new, after), "time", ParameterLine("p"))
    return difference(pair, _TARGET * float(before.points[-1]))
