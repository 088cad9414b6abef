"""Noise outside the protocol: noise that runs have in common, and noise that grows with scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType

import extrap_models
import laws
import numpy as np
from environments import EXTRAP
from numpy.typing import NDArray
from results import Table

from callpath_modeler import modeling
from callpath_modeler.analysis.predict import total_of
from callpath_modeler.arrays import FloatArray

NOTES = """\
The applications have 200 call paths, as in the table of goals (P5, 4 applications for each of 3
seeds). The noise is log-normal. Either each call path has its own noise, or all call paths of a
configuration, of a run or of one scale have a part in common. Error: the median at 16 times the
largest scale. Held: the share of 95 % bands there that contain the truth, for call paths and for
totals of the whole program.
"""

_SEEDS, _APPLICATIONS, _CALL_PATHS = (1, 2, 3), 4, 200
_MULTIPLE = 16.0

_Noise = Callable[[np.random.Generator, int, int], FloatArray]
"""Function that returns logarithms of noise factors, [n, K, R]."""


def _normal(rng: np.random.Generator, points: int, repetitions: int) -> FloatArray:
    return rng.standard_normal((_CALL_PATHS, points, repetitions))


def _of_configurations(rng: np.random.Generator, points: int, repetitions: int) -> FloatArray:
    common = rng.standard_normal((1, points, 1))
    return 0.05 * common + 0.02 * _normal(rng, points, repetitions)


def _of_runs(rng: np.random.Generator, points: int, repetitions: int) -> FloatArray:
    common = rng.standard_normal((1, points, repetitions))
    return 0.1 * common + 0.02 * _normal(rng, points, repetitions)


def _growing(rng: np.random.Generator, points: int, repetitions: int) -> FloatArray:
    return 0.01 * 2.0 ** np.arange(points)[:, None] * _normal(rng, points, repetitions)


def _odd(point: int) -> _Noise:
    """Return noise of 5 %, with all call paths at one point 30 % higher."""

    def noise(rng: np.random.Generator, points: int, repetitions: int) -> FloatArray:
        found = 0.05 * _normal(rng, points, repetitions)
        found[:, point] += np.log(1.3)
        return found

    return noise


_NOISES: dict[str, _Noise] = {
    "10 % of each": lambda *of: 0.1 * _normal(*of),
    "5 % of configurations, 2 % of each": _of_configurations,
    "10 % of runs, 2 % of each": _of_runs,
    "1, 2, 4, 8, 16 % with scale, of each": _growing,
    "30 % at the third scale, 5 % of each": _odd(2),
    "30 % at the last scale, 5 % of each": _odd(-1),
}


@dataclass(frozen=True, slots=True)
class _Said:
    """Predictions of one application: relative errors [n], coverage of bands, and the total."""

    error: FloatArray
    of_extrap: FloatArray
    held: NDArray[np.bool_]
    total: bool


def table(shared: Path) -> Table:
    """Measure all noises, without repetitions and with five.

    Raises
    ------
    AbsentError
        If the protocol is absent.
    """
    bench = laws.protocol(shared / "tools" / "bench_accuracy.py")
    lines = []
    for what, noise in _NOISES.items():
        for repetitions in (1, 5):
            said = [
                _application(bench, noise, repetitions, seed, number)
                for seed in _SEEDS
                for number in range(_APPLICATIONS)
            ]
            ours, extrap = (
                float(np.median(np.concatenate(each)))
                for each in ([s.error for s in said], [s.of_extrap for s in said])
            )
            held = np.mean([s.held.mean() for s in said])
            total = np.mean([s.total for s in said])
            figures = f"{ours:.3f}", f"{extrap:.3f}", f"{held:.0%}", f"{total:.0%}"
            lines.append((what, str(repetitions), *figures))
    head = ("noise", "runs of a point", "error", EXTRAP.name, "held", "totals held")
    return Table(head, lines, range(1, 6))


def applications(
    shared: Path,
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
    """Yield points, target, measurements and true values of applications with all noises.

    Raises
    ------
    AbsentError
        If the protocol is absent.
    """
    bench = laws.protocol(shared / "tools" / "bench_accuracy.py")
    for noise, repetitions, seed in product(_NOISES.values(), (1, 5), _SEEDS):
        yield _drawn(bench, noise, repetitions, seed, 0)


def _drawn(
    bench: ModuleType, noise: _Noise, repetitions: int, seed: int, number: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return points [K], the target [1], measurements [n, K, R] and true values there [n]."""
    points = bench.REGIMES["P5"]
    target = _MULTIPLE * points[-1:]
    truths = laws.application(bench, points, number, seed)
    places = np.concatenate([points, target])
    exact = np.array([truth(places) * np.ones(len(places)) for truth in truths])
    rng = np.random.default_rng([seed, number])
    y = exact[:, :-1, None] * np.exp(noise(rng, len(points), repetitions))
    return points, target, y, exact[:, -1]


def _application(
    bench: ModuleType, noise: _Noise, repetitions: int, seed: int, number: int
) -> _Said:
    points, target, y, truth = _drawn(bench, noise, repetitions, seed, number)
    models = modeling.fit(points, y)
    band = models.predict(target)
    value, low, high = (column[:, 0] for column in (band.value, band.low, band.high))
    _, least, most = (float(column[0]) for column in total_of(models, target))
    peer, _ = extrap_models.predict(points, y, target)
    return _Said(
        error=np.abs(value / truth - 1),
        of_extrap=np.abs(peer[:, 0] / truth - 1),
        held=(low <= truth) & (truth <= high),
        total=bool(least <= truth.sum() <= most),
    )
