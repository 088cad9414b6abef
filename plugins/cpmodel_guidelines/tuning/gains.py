"""Gains: violated guidelines as ways that are faster, and by how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from callpath_modeler.units import parameter_value
from cpmodel_guidelines.answer import Method, Verification
from cpmodel_guidelines.benchmark import Benchmark
from cpmodel_guidelines.checks import Group, GuidelineCheck, Setting
from cpmodel_guidelines.rules import Guideline, GuidelineKind
from cpmodel_guidelines.tuning.open_mpi import Algorithm

ALGORITHM = "algorithm"
"""Basis of a gain by a measured algorithm of the library."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function was measured.

    Attributes
    ----------
    group : library, or caller
    function : the function
    processes : number of processes
    size : message size in bytes, in the convention of `cpmodel_guidelines.rules`
    """

    group: Group
    function: str
    processes: int
    size: float


@dataclass(frozen=True, slots=True)
class Gain:
    """A way that is faster than a function of the library.

    Attributes
    ----------
    place : the function, and where it was measured
    guideline : the violated guideline
    way : what to do instead, as text
    algorithm : the algorithm, if the way is one of the library; else None
    basis : `ALGORITHM`, or the basis of the check
    before, after : time of a call, and of the way, in seconds
    factor, low, high : `before` over `after`, with its interval
    rate : error rate of the whole answer at which this gain is found
    """

    place: Place
    guideline: Guideline
    way: str
    algorithm: Algorithm | None
    basis: str
    before: float
    after: float
    factor: float
    low: float
    high: float
    rate: float

    @property
    def saved(self) -> float:
        """Return the seconds that a call saves."""
        return self.before - self.after

    @property
    def share(self) -> float:
        """Return the saved share of the time of a call."""
        return share_of(self.factor)


def share_of(factor: float) -> float:
    """Return the share of a time that is saved if it shrinks by a factor.

    >>> share_of(2.0), share_of(0.5)
    (0.5, -1.0)
    """
    return 1 - 1 / factor


@dataclass(frozen=True, slots=True)
class Gains:
    """The gains of a campaign.

    Attributes
    ----------
    every : gains that are shown, in the order of functions, processes and sizes
    small : number of violated checks whose gain is below the least one
    in_the_mean : guidelines that are violated in the mean of all sizes, and at none of them
    measured : sizes at which each function was measured, by group, function and processes
    """

    every: tuple[Gain, ...]
    small: int
    in_the_mean: tuple[tuple[Group, Guideline], ...]
    measured: Mapping[tuple[Group, str, int], tuple[float, ...]]

    @property
    def best(self) -> dict[Place, Gain]:
        """Return the best way at each place, see `best_of`."""
        return best_of(self.every)


def best_of(gains: tuple[Gain, ...]) -> dict[Place, Gain]:
    """Return the gain with the largest lower end of its interval at each place.

    Other functions and algorithms come before longer messages, pieces and more processes, which
    only a program can use.
    """
    found: dict[Place, Gain] = {}
    for gain in gains:
        before = found.get(gain.place)
        if before is None or _rank(gain) > _rank(before):
            found[gain.place] = gain
    return found


def _rank(gain: Gain) -> tuple[bool, float]:
    return gain.guideline.kind is GuidelineKind.PATTERN, gain.low


def gains_of(found: Verification, algorithms: Mapping[str, Algorithm], least: float = 0.0) -> Gains:
    """Return the gains that the verdicts of a verification show.

    Parameters
    ----------
    algorithms : algorithms that were measured, by the names of their functions
    least : smallest gain that enters, as a share of the time of a call
    """
    here, bench = found.here, found.benchmark
    verdicts, every, small = here.verdicts, [], 0
    for k, check in enumerate(here.checks):
        name = check.guideline.left.function
        if not verdicts.violated[k] or name in algorithms:
            continue
        (right, *_), guideline = check.guideline.right or (None,), check.guideline
        algorithm = algorithms.get(right.function) if right is not None else None
        gain = Gain(
            _place(bench, check),
            guideline,
            _way(bench, check, algorithm),
            algorithm,
            here.basis[k] if algorithm is None else ALGORITHM,
            float(here.left[k]),
            float(here.right[k]),
            float(verdicts.factor[k]),
            float(verdicts.low[k]),
            float(verdicts.high[k]),
            float(verdicts.rate[k]),
        )
        if gain.share < least:
            small += 1
        else:
            every.append(gain)
    every.sort(key=lambda gain: (gain.place.group, gain.place.function, gain.place.processes,
                                 gain.place.size, -gain.low))  # fmt: skip
    in_the_mean = tuple(
        (row.group, row.guideline)
        for row in found.rows
        if row.here is not None
        and row.here.mean is not None
        and row.guideline.left.function not in algorithms
    )
    return Gains(tuple(every), small, in_the_mean, _measured(bench, algorithms))


def _place(bench: Benchmark, check: GuidelineCheck) -> Place:
    processes, size = scale_of(bench, check.left.setting)
    return Place(check.group, check.guideline.left.function, processes, size)


def scale_of(bench: Benchmark, setting: Setting) -> tuple[int, float]:
    """Return the number of processes and the message size of a setting; 0 = unknown."""
    at = dict(zip(bench.names, setting, strict=True))
    return int(at.get(bench.processes or "", 0)), float(at.get(bench.size or "", 0.0))


def _measured(
    bench: Benchmark, algorithms: Mapping[str, Algorithm]
) -> dict[tuple[Group, str, int], tuple[float, ...]]:
    """Return the sizes at which each function was measured, in ascending order."""
    found: dict[tuple[Group, str, int], set[float]] = {}
    known = np.any(bench.values > 0, axis=2).tolist()
    for row, function in enumerate(bench.functions):
        if function.mock_up or function.name in algorithms:
            continue
        for setting, is_known in zip(bench.settings.tolist(), known[row], strict=True):
            if is_known:
                processes, size = scale_of(bench, tuple(setting))
                found.setdefault((function.group, function.name, processes), set()).add(size)
    return {key: tuple(sorted(sizes)) for key, sizes in found.items()}


def _way(bench: Benchmark, check: GuidelineCheck, algorithm: Algorithm | None) -> str:
    """Return what to do instead of a call, as text."""
    if algorithm is not None:
        return algorithm.title
    guideline, name = check.guideline, check.guideline.left.function
    if guideline.kind is GuidelineKind.PATTERN:
        return " + ".join(map(str, guideline.right))
    (right,) = check.right
    processes, size = scale_of(bench, right.setting)
    if guideline.kind is GuidelineKind.SPLIT:
        return f"{check.times:.0f} calls with {parameter_value(size)} bytes"
    if guideline.kind is GuidelineKind.MONOTONY:
        return f"{name} with {parameter_value(size)} bytes"
    return f"{name} on {processes} processes"


@dataclass(frozen=True, slots=True)
class Question:
    """How gains are judged.

    Attributes
    ----------
    tolerance : slowdown that is not a violation, as a fraction
    least : smallest gain that enters, as a share of the time of a call
    method : test and control of the error rate
    without_outliers : remove the outliers of each mpirun before its median is computed
    """

    tolerance: float
    least: float
    method: Method
    without_outliers: bool = False
