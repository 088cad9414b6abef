"""Profiles with known factors of parallel efficiency, as files of Score-P."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import cube_writer as cw

NAMES = ["app", "main", "solve", "MPI_Allreduce", "!$omp parallel", "!$omp barrier", "output"]
PARENTS = [-1, 0, 1, 2, 2, 4, 1]
ROLES = {
    "app": "artificial",
    "!$omp parallel": "parallel",
    "!$omp barrier": "implicit barrier",
    "MPI_Allreduce": "all2all",
}
SOLVE, MPI, PARALLEL, BARRIER, OUTPUT = 2, 3, 4, 5, 6


def write_run(
    folder: Path,
    name: str,
    threads: Sequence[int],
    time: np.ndarray,
    counters: dict[str, np.ndarray] | None = None,
) -> Path:
    """Write a run; `time` is exclusive, [call paths, threads of all processes]."""
    tree = cw.Tree(PARENTS, NAMES, roles=ROLES)
    metrics = [cw.MetricToWrite("time", tree.subtree_sums(time), "INCLUSIVE", unit="sec")]
    metrics += [
        cw.MetricToWrite(counter, values.astype(float), "EXCLUSIVE", dtype="UINT64", unit="#")
        for counter, values in (counters or {}).items()
    ]
    place = folder / name
    place.mkdir(parents=True)
    return cw.write(place / "profile.cubex", tree, metrics, cw.Machine(list(threads)))


def message_passing(
    computing: Sequence[float], run_time: float, *, output: float = 0.0
) -> np.ndarray:
    """Return times of processes that compute in `solve`, and then wait in MPI until `run_time`."""
    computing = np.asarray(computing, float)
    time = np.zeros((len(NAMES), len(computing)))
    time[SOLVE] = computing
    time[OUTPUT, 0] = output
    time[MPI] = run_time - computing - time[OUTPUT]
    return time


def uneven(p: int, mean: float, longest: float) -> np.ndarray:
    """Return times of p processes with this mean and this maximum."""
    if p == 1:
        return np.array([mean])
    return np.array([longest] + [(p * mean - longest) / (p - 1)] * (p - 1))


def write_series(
    folder: Path,
    scales: Sequence[int],
    mean: Callable[[int], float],
    balance: float,
    communication: Callable[[int], float],
    *,
    noise: float = 0.0,
    repetitions: int = 1,
) -> Path:
    """Write runs whose processes compute `mean(p)` on average, with these two factors."""
    generator = np.random.default_rng(7)
    for p in scales:
        for repetition in range(1, repetitions + 1):
            longest = mean(p) / balance
            time = message_passing(uneven(p, mean(p), longest), longest / communication(p))
            if noise:
                time *= np.exp(noise * generator.normal(size=(len(NAMES), 1)))
            write_run(folder, f"app.p{p}.r{repetition}", [1] * p, time)
    return folder
