"""Write a series of Score-P profiles of one program at several scales.

The program is synthetic: its call tree, costs and noise come from a seed. Each call path takes a
constant time plus a power of the number of processes, so that models of the series have growth to
find. Layout, types and names follow Score-P 8: `visits` and the extremes are exclusive. `time` is
inclusive, and stored by callees of each call path. Rows are not compressed.

    python benchmarks/write_series.py DIRECTORY --call-paths 5000 --scales 16 32 64 128 256
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.schema import Region
from callpath_modeler.report import cube_file as xml
from callpath_modeler.report.cube_file import (
    Member,
    anchor_member,
    archive,
    data_member,
    index_member,
)

_BLOCK_ROWS = 256
_DEEPEST = 24
_RANKS_PER_NODE = 64

_EXPONENTS = np.array([0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 1.5])
"""Exponents of the growing term; most call paths of real programs do not grow."""


@dataclass(frozen=True, slots=True)
class MetricForm:
    """Declaration and storage of a metric in Score-P."""

    kind: str
    cube_type: str
    stored: str
    unit: str


METRICS = {
    "visits": MetricForm("EXCLUSIVE", "UINT64", "<u8", "occ"),
    "time": MetricForm("INCLUSIVE", "DOUBLE", "<f8", "sec"),
    "min_time": MetricForm("EXCLUSIVE", "MINDOUBLE", "<f8", "sec"),
    "max_time": MetricForm("EXCLUSIVE", "MAXDOUBLE", "<f8", "sec"),
    "energy": MetricForm("EXCLUSIVE", "DOUBLE", "<f8", "J"),
}
DEFAULT_METRICS = ("visits", "time", "min_time", "max_time")


@dataclass(frozen=True, slots=True)
class Program:
    """The properties that do not depend on the scale.

    Attributes
    ----------
    parent : [call paths] in preorder, -1 for the root
    region : [call paths] region, different for siblings
    regions : number of regions
    cost : [call paths] exclusive seconds at the smallest scale
    grown : [call paths] share of the cost that grows
    exponent : [call paths] exponent of the growth
    visits : [call paths] number of visits
    first_only : [call paths] True if only the first process executes the call path
    """

    parent: NDArray[np.int64]
    region: NDArray[np.int64]
    regions: int
    cost: NDArray[np.float64]
    grown: NDArray[np.float64]
    exponent: NDArray[np.float64]
    visits: NDArray[np.int64]
    first_only: NDArray[np.bool_]


def program(call_paths: int, seed: int) -> Program:
    """Return a random program."""
    rng = np.random.default_rng(seed)
    parent = _parents(call_paths, rng)
    regions = max(64, min(4000, call_paths // 3))
    is_leaf = np.ones(call_paths, np.bool_)
    is_leaf[parent[1:]] = False
    return Program(
        parent=parent,
        region=_regions(parent, regions, rng),
        regions=regions,
        cost=rng.lognormal(-4.0, 2.0, call_paths),
        grown=rng.uniform(0.05, 0.95, call_paths),
        exponent=rng.choice(_EXPONENTS, call_paths),
        visits=np.exp(rng.uniform(0.0, 8.0, call_paths)).astype(np.int64),
        # Input and output often use one process, so real profiles have rows with many zeros.
        first_only=is_leaf & (rng.random(call_paths) < 0.05),
    )


def _parents(call_paths: int, rng: np.random.Generator) -> NDArray[np.int64]:
    parent = np.full(call_paths, -1, np.int64)
    deeper = rng.random(call_paths) < 0.5
    climbs = rng.geometric(0.45, call_paths)
    path = [0]
    for row in range(1, call_paths):
        if not deeper[row] or len(path) == _DEEPEST:
            del path[max(1, len(path) - int(climbs[row])) :]
        parent[row] = path[-1]
        path.append(row)
    return parent


def _regions(
    parent: NDArray[np.int64], regions: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    # Readers disagree on whether siblings of one name are one call path.
    first = rng.integers(0, regions - 1, len(parent))
    callees = np.zeros(len(parent), np.int64)
    region = np.zeros(len(parent), np.int64)
    for row in range(1, len(parent)):
        caller = parent[row]
        region[row] = 1 + (first[caller] + callees[caller]) % (regions - 1)
        callees[caller] += 1
    return region


class Measured:
    """One run of a program."""

    def __init__(self, made_up: Program, processes: int, smallest: int, seed: int) -> None:
        self._program = made_up
        self._processes = processes
        self._rng = np.random.default_rng((seed, processes))
        self._exclusive = self._exclusive_time(processes / smallest)
        self._inclusive = self._exclusive.copy()
        for row in range(len(made_up.parent) - 1, 0, -1):
            self._inclusive[made_up.parent[row]] += self._inclusive[row]

    def values(self, metric: str, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return stored values of call paths, [rows, processes]; call this once per row."""
        if metric == "time":
            return self._inclusive[rows]
        if metric == "energy":
            return self._exclusive[rows] * 90.0
        visits = np.repeat(self._program.visits[rows, None], self._processes, axis=1)
        visits[self._program.first_only[rows], 1:] = 0
        if metric == "visits":
            return visits.astype(np.float64)
        low, high = (0.3, 0.9) if metric == "min_time" else (1.1, 3.0)
        factor = self._rng.uniform(low, high, visits.shape)
        return self._inclusive[rows] / np.maximum(visits, 1) * factor

    def _exclusive_time(self, factor: float) -> NDArray[np.float64]:
        made_up = self._program
        noise = 1 + self._rng.uniform(-0.025, 0.025, len(made_up.cost))
        growth = 1 - made_up.grown + made_up.grown * factor**made_up.exponent
        time = self._rng.uniform(0.9, 1.0, (len(made_up.cost), self._processes))
        time *= (made_up.cost * growth * noise)[:, None]
        time[made_up.first_only, 1:] = 0.0
        return time


def wide_order(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the call paths in the order of inclusive rows: by callees of each call path."""
    callees: list[list[int]] = [[] for _ in parent]
    for row, caller in enumerate(parent.tolist()):
        if caller >= 0:
            callees[caller].append(row)
    order, waiting = [0], [0]
    while waiting:
        found = callees[waiting.pop()]
        order += found
        waiting += reversed(found)
    return np.array(order, np.int64)


def definitions(made_up: Program, processes: int, metrics: tuple[str, ...]) -> bytes:
    """Return the text of anchor.xml."""
    forms = [(name, METRICS[name]) for name in metrics]
    declared = [
        xml.CubeMetric(name, form.unit, form.kind, form.cube_type, name) for name, form in forms
    ]
    return xml.document(
        xml.attribute_texts({"Cube Version": "4.8.2", "Creator": "Score-P 8.4"}),
        xml.metric_texts(declared),
        ["<program>\n"],
        xml.region_texts(map(_region, range(made_up.regions))),
        xml.call_path_texts(made_up.parent.tolist(), made_up.region.tolist()),
        ["</program>\n"],
        _system_texts(processes),
    )


def _region(number: int) -> Region:
    if number == 0:
        return Region("app.x", "app.x", "src/file0.cc", 0, "compiler", "function")
    if number % 11 == 0:
        name = f"MPI_Op{number}"
        return Region(name, name, "MPI", number * 10, "mpi", "function")
    name = f"std::vector<double, alloc<{number}> >::method_{number}(double const*)"
    mangled = f"_ZNSt6vectorIdLi{number}EE9method_{number}EPKd"
    file = f"src/file{number % 97}.cc"
    return Region(name, mangled, file, number * 10, "compiler", "function")


def _system_texts(processes: int) -> Iterator[str]:
    yield (
        '<system>\n<systemtreenode Id="0">\n<name>machine Linux</name>\n<class>machine</class>\n'
    )
    for node, first in enumerate(range(0, processes, _RANKS_PER_NODE), start=1):
        yield f'<systemtreenode Id="{node}">\n<name>node n{node:05}</name>\n<class>node</class>\n'
        for rank in range(first, min(processes, first + _RANKS_PER_NODE)):
            yield (
                f'<locationgroup Id="{rank}">\n<name>MPI Rank {rank}</name>\n<rank>{rank}</rank>\n'
                f'<type>process</type>\n<location Id="{rank}">\n<name>Master thread</name>\n'
                "<rank>0</rank>\n<type>thread</type>\n</location>\n</locationgroup>\n"
            )
        yield "</systemtreenode>\n"
    yield "</systemtreenode>\n<topologies>\n</topologies>\n</system>\n"


def write_profile(
    path: Path, made_up: Program, run: Measured, processes: int, metrics: tuple[str, ...]
) -> None:
    """Write one profile."""
    count = len(made_up.parent)
    orders = {"EXCLUSIVE": np.arange(count), "INCLUSIVE": wide_order(made_up.parent)}
    text = definitions(made_up, processes, metrics)

    def members() -> Iterator[Member]:
        for number, name in enumerate(metrics):
            rows = _row_pieces(run, name, orders[METRICS[name].kind])
            yield data_member(number, count, processes * 8, rows)
            yield index_member(number, np.arange(count))
        yield anchor_member(text)

    with path.open("wb", buffering=1 << 20) as file:
        file.writelines(archive(members()))


def _row_pieces(run: Measured, metric: str, order: NDArray[np.int64]) -> Iterator[bytes]:
    for first in range(0, len(order), _BLOCK_ROWS):
        block = run.values(metric, order[first : first + _BLOCK_ROWS])
        yield block.astype(METRICS[metric].stored).tobytes()


def write_series(
    directory: Path,
    call_paths: int,
    scales: list[int],
    metrics: tuple[str, ...] = DEFAULT_METRICS,
    seed: int = 1,
) -> None:
    """Write one run per scale into directories such as ``app.p16.r1``."""
    made_up = program(call_paths, seed)
    for processes in scales:
        run_directory = directory / f"app.p{processes}.r1"
        run_directory.mkdir(parents=True, exist_ok=True)
        run = Measured(made_up, processes, scales[0], seed)
        write_profile(run_directory / "profile.cubex", made_up, run, processes, metrics)


def main() -> None:
    """Write the series of the command line."""
    parser = argparse.ArgumentParser(description="Write a series of made-up Score-P profiles.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--call-paths", type=int, default=5000)
    parser.add_argument("--scales", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=DEFAULT_METRICS)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    write_series(told.directory, told.call_paths, told.scales, tuple(told.metrics), told.seed)


if __name__ == "__main__":
    main()
