"""Series of runs of several algorithms and inputs, in the formats and places that people have."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

import caliper_writer as cw

ALGORITHMS = ("bitonic", "merge", "quick", "radix", "sample")
INPUTS = ("random", "reverse", "sorted")
SIZES = (65536, 262144, 1048576, 4194304)
SCALES = (2, 4, 8, 16, 32, 64)

_SORTING = dict(zip(ALGORITHMS, (9.0, 5.0, 4.0, 3.0, 6.0), strict=True))
_EXCHANGE = dict(zip(ALGORITHMS, (0.5, 1.0, 0.75, 0.5, 1.0), strict=True))
_DISORDER = dict(zip(INPUTS, (1.0, 0.5, 0.25), strict=True))


class RunOfCase(msgspec.Struct, frozen=True):
    """One run: its case, its size, its scale and its repetition."""

    algorithm: str
    input: str
    n: int
    p: int
    repetition: int

    def times(self, *, own_names: bool = False) -> dict[tuple[str, ...], float]:
        """Return seconds by call path; the exchange grows with p, and the sorting falls."""
        # A small deterministic scatter.
        jitter = 1 + 0.002 * ((self.p * 7 + self.n // 65536 * 3 + self.repetition * 5) % 7 - 3)
        work = _SORTING[self.algorithm] * _DISORDER[self.input] * self.n / 65536
        sort = f"{self.algorithm}_sort" if own_names else "sort"
        return {
            ("main",): 0.25 * jitter,
            ("main", sort): work / self.p * jitter,
            ("main", "exchange"): _EXCHANGE[self.algorithm] * self.p / 8 * jitter,
        }


def runs(
    algorithms: Sequence[str] = ALGORITHMS,
    inputs: Sequence[str] = INPUTS,
    sizes: Sequence[int] = SIZES,
    scales: Sequence[int] = SCALES,
    repetitions: int = 2,
) -> Iterator[RunOfCase]:
    """Yield the runs of all combinations."""
    numbers = range(1, repetitions + 1)
    for each in itertools.product(algorithms, inputs, sizes, scales, numbers):
        yield RunOfCase(*each)


def few() -> Iterator[RunOfCase]:
    """Yield the runs of two algorithms and two inputs of one size."""
    return runs(ALGORITHMS[:2], INPUTS[:2], SIZES[:1])


def write_folded(folder: Path, of: Iterator[RunOfCase], name: str, **kind: bool) -> Path:
    """Write one folded stack for each run, in milliseconds; `name` is a format of its path."""
    for run in of:
        times = run.times(**kind)
        lines = [f"{';'.join(path)} {1000 * value:.0f}" for path, value in times.items()]
        _write(folder / f"{_named(name, run)}.folded", lines)
    return folder


def write_cali(folder: Path, of: Iterator[RunOfCase], name: str, **kind: bool) -> Path:
    """Write one profile of Caliper for each run, whose metadata state its case."""
    for run in of:
        writer = cw.Writer()
        for path, value in run.times(**kind).items():
            writer.record(path, {"sum#sum#time.duration": value * run.p})
        told = {"mpi.world.size": run.p, "algorithm": run.algorithm, "InputType": run.input}
        writer.globals({**told, "InputSize": run.n})
        _write(folder / f"{_named(name, run)}.cali", writer.lines)
    return folder


def write_tables(folder: Path, of: Iterator[RunOfCase], name: str, **kind: bool) -> Path:
    """Write tables with columns of cases: the runs whose names are the same share a table."""
    tables: dict[str, list[str]] = {}
    for run in of:
        rows = tables.setdefault(
            _named(name, run), ["algorithm,input,n,p,repetition,callpath,time"]
        )
        begin = f"{run.algorithm},{run.input},{run.n},{run.p},{run.repetition}"
        rows += [
            f"{begin},{'/'.join(path)},{value:.6f}" for path, value in run.times(**kind).items()
        ]
    for path, rows in tables.items():
        _write(folder / f"{path}.csv", rows)
    return folder


def _named(name: str, run: RunOfCase) -> str:
    code = f"{zlib.crc32(repr(run).encode()):012x}"
    return name.format(a=run.algorithm, i=run.input, n=run.n, p=run.p, r=run.repetition, x=code)


def _write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, ""]))
