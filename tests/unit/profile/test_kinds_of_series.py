"""Kinds of scaling of series in the forms that users have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

import callpath_modeler as cpm
import cube_writer as cw
from caliper_writer import Writer
from cells import cells

Costs = Mapping[str, float]
Law = Callable[[float], Costs]


def strong(serial: float, *, in_main: bool) -> Law:
    """Return the costs of a fixed problem; a share of the smallest run is serial."""

    def law(p: float) -> Costs:
        work = 20 * (1 - serial)
        own = {"main/step/solve": 0.7 * work / p, "main/step/assemble": 0.3 * work / p}
        rest = {"main": 20 * serial} if in_main else {"main": 0.01, "main/partition": 20 * serial}
        return {**rest, "main/step": 1e-4, **own, "main/step/MPI_Allreduce": 0.1 * np.log2(p + 1)}

    return law


def weak(serial: float, *, in_main: bool) -> Law:
    """Return the costs of a problem that grows with p."""

    def law(p: float) -> Costs:
        work = 5 * (1 - serial)
        own = {"main/step/solve": 0.7 * work, "main/step/assemble": 0.3 * work * p**0.05}
        rest = {"main": 5 * serial} if in_main else {"main": 0.01, "main/partition": 5 * serial}
        return {**rest, "main/step": 1e-4, **own, "main/step/MPI_Allreduce": 0.1 * np.log2(p + 1)}

    return law


def noisy(costs: Costs, rng: np.random.Generator) -> Costs:
    return {name: cost * np.exp(0.04 * rng.standard_normal()) for name, cost in costs.items()}


def table(
    path: Path, law: Law, workers: str, scales: Sequence[float], seed: int, **columns: Callable
) -> Path:
    """Write a table with two repetitions of each scale; further columns are functions of p."""
    rng = np.random.default_rng(seed)
    lines = [",".join(["callpath", workers, "rep", *columns, "time[s]"])]
    for p, rep in product(scales, (1, 2)):
        more = [f"{column(p):g}" for column in columns.values()]
        for name, cost in noisy(law(p), rng).items():
            lines.append(",".join([name, f"{p:g}", str(rep), *more, f"{cost:.6f}"]))
    file = path / "runs.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def cubes(path: Path, law: Law, scales: Sequence[int], seed: int) -> Path:
    """Write profiles of Score-P; one process computes a little longer than the others."""
    rng = np.random.default_rng(seed)
    for p in scales:
        costs = noisy(law(p), rng)
        names = [name.split("/") for name in costs]
        places = {tuple(name): k for k, name in enumerate(names)}
        tree = cw.Tree(
            [places.get(tuple(name[:-1]), -1) for name in names], [name[-1] for name in names]
        )
        time = np.array([*costs.values()])[:, None] * (1 + 0.02 * rng.random((len(names), p)))
        time[:, 0] *= 1.1
        place = path / f"app.p{p}.r1"
        place.mkdir()
        metrics = [cw.MetricToWrite("time", time, unit="sec")]
        cw.write(place / "profile.cubex", tree, metrics, cw.Machine([1] * p))
    return path


def calipers(
    path: Path, law: Law, scales: Sequence[int], seed: int, told: Callable[[int], Mapping]
) -> Path:
    """Write profiles of Caliper with metadata."""
    rng = np.random.default_rng(seed)
    for p in scales:
        writer = Writer()
        costs = noisy(law(p), rng)
        for name, cost in costs.items():
            below = sum(v for each, v in costs.items() if each.startswith(f"{name}/"))
            values = {"sum#inclusive#sum#time.duration": (cost + below) * p}
            writer.record(name.split("/"), values)
        writer.globals({"cali.caliper.version": "2.10.0", "mpi.world.size": p, **told(p)})
        (path / f"app-{p}.cali").write_text(writer.text())
    return path


SCALES = (2, 4, 8, 16, 32)
SHARES = (0.05, 0.15, 0.3)
COLUMNS = ("p", "cores", "Nodes", "GPUs", "num_gpus", "threads")
METADATA = {
    "stated": {"weak": lambda _: {"scalability": "weak"},
               "strong": lambda _: {"scalability": "strong"}},
    "total": {"weak": lambda p: {"total_elements": 1_000_000 * p},
              "strong": lambda _: {"total_elements": 1_000_000}},
    "own": {"weak": lambda _: {"cells_per_rank": 4096},
            "strong": lambda p: {"cells_per_rank": 65536 // p}},
    "constant": dict.fromkeys(("weak", "strong"), lambda _: {"steps": 100, "problem_size": 30}),
}  # fmt: skip
KINDS = {"strong": strong, "weak": weak}


def cases() -> list:
    """Return 60 series: tables in all names of workers, and profiles of two tools."""
    found = []
    for k, (kind, workers, share) in enumerate(product(KINDS, COLUMNS, SHARES)):
        found.append((kind, "table", workers, share, k))
    for k, (kind, share) in enumerate(product(KINDS, (0.05, 0.15, 0.2, 0.3))):
        found.append((kind, "cube", "", share, k))
    for k, (kind, told, share) in enumerate(product(KINDS, METADATA, (0.1, 0.3))):
        found.append((kind, "caliper", told, share, k))
    return found


def loaded(path: Path, kind: str, form: str, detail: str, share: float, seed: int):
    law = KINDS[kind](share, in_main=bool(seed % 2))
    if form == "table":
        source = table(path, law, detail, SCALES, seed)
    elif form == "cube":
        source = cubes(path, law, SCALES, seed)
    else:
        source = calipers(path, law, SCALES, seed, METADATA[detail][kind])
    return cpm.load(source)


def test_there_are_sixty_generated_series():
    assert len(cases()) == 60


@cells(("kind", "form", "detail", "share", "seed"), cases())
def test_the_kind_of_a_generated_series_is_recognised(tmp_path, kind, form, detail, share, seed):
    made = loaded(tmp_path, kind, form, detail, share, seed)
    assert made.scaling == kind, made.scaling_reason
