"""Output of MPI benchmarks for a simulated library, in the form of each suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

P, SIZES = 4, tuple(4 * 2**k for k in range(10))

Law = Callable[[str, float], float]

FUNCTIONS = ("Allgather", "Allreduce", "Alltoall", "Bcast", "Gather", "Reduce", "Reduce_scatter",
             "Scatter")  # fmt: skip

_BLOCKS = frozenset({"Reduce_scatter"})
"""Functions whose size is a block here, and the whole vector in OSU and IMB."""


def flawless(function: str, size: float) -> float:
    """Return times in µs that meet every guideline, for p = 4 and m bytes by this project."""
    whole = P * size
    return {
        "Bcast": 4.0 + 1.0e-3 * size,
        "Reduce": 4.4 + 1.2e-3 * size,
        "Allreduce": 6.4 + 1.8e-3 * size,
        "Gather": 2.0 + 0.8e-3 * size,
        "Scatter": 2.1 + 0.8e-3 * size,
        "Allgather": 4.2 + 1.2e-3 * size,
        "Alltoall": 5.6 + 1.5e-3 * size,
        "Reduce_scatter": 5.0 + 1.1e-3 * whole,
    }[function]


def planted(function: str, size: float) -> float:
    """Return times with two violations: of a sum, and of whole vectors."""
    if function == "Allreduce":
        return 1.4 * (flawless("Reduce", size) + flawless("Bcast", size))
    if function == "Reduce_scatter":
        return 1.6 * planted("Allreduce", P * size)
    return flawless(function, size)


def sizes_of(function: str) -> tuple[float, ...]:
    """Return the sizes by this project that suites with whole vectors measure."""
    return tuple(size / P for size in SIZES) if function in _BLOCKS else SIZES


def times(law: Law, seed: int, noise: float = 0.02) -> Mapping[tuple[str, float], float]:
    """Return the times of one mpirun in µs."""
    rng = np.random.default_rng(seed)
    return {
        (name, size): law(name, size) * float(np.exp(noise * rng.standard_normal()))
        for name in FUNCTIONS
        for size in sizes_of(name)
    }


def reprompi(cells: Mapping[tuple[str, float], float], nrep: int = 3) -> str:
    """Return the output of ReproMPI: all functions in one file."""
    lines = ["#Command-line arguments: mpibenchmark", "#@datatype_size_bytes=1", f"#@nprocs={P}",
             f"{'test':>50} {'nrep':>10} {'count':>12} {'runtime_sec':>14}"]  # fmt: skip
    for (name, size), time in cells.items():
        lines += [f"{'MPI_' + name:>50} {k:>10} {size:>12.0f} {time * 1e-6 * (1 + 0.001 * k):.12f}"
                  for k in range(nrep)]  # fmt: skip
    return "\n".join([*lines, "# Benchmark started at noon", "# Execution time: 3s", ""])


def osu(cells: Mapping[tuple[str, float], float], function: str, *, full: bool = False) -> str:
    """Return the output of one OSU benchmark."""
    title = {"Alltoall": "All-to-All Personalized Exchange", "Bcast": "Broadcast"}
    extra = "   Min Latency(us)   Max Latency(us)  Iterations" if full else ""
    lines = [f"# OSU MPI {title.get(function, function)} Latency Test v5.6.1",
             f"# Size       Avg Latency(us){extra}"]  # fmt: skip
    for size in sizes_of(function):
        time, whole = cells[function, size], size * (P if function in _BLOCKS else 1)
        rest = f" {0.9 * time:>17.4f} {1.1 * time:>17.4f} {100:>11}" if full else ""
        lines.append(f"{whole:<10.0f}{time:>18.4f}{rest}")
    return "\n".join(["", *lines, ""])


def imb(cells: Mapping[tuple[str, float], float]) -> str:
    """Return the output of Intel MPI Benchmarks: all functions in one file."""
    dashes = "#" + "-" * 48
    lines = ["#    Intel(R) MPI Benchmarks 2021.2, MPI-1 part"]
    for name in FUNCTIONS:
        lines += ["", dashes, f"# Benchmarking {name} ", f"# #processes = {P} ", dashes,
                  "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]"]  # fmt: skip
        for size in sizes_of(name):
            time, whole = cells[name, size], size * (P if name in _BLOCKS else 1)
            lines.append(f"{whole:>13.0f}         1000 {0.9 * time:>12.4f} {1.1 * time:>12.4f} "
                         f"{time:>12.4f}")  # fmt: skip
    return "\n".join([*lines, "", "# All processes entering MPI_Finalize", ""])


def skampi(cells: Mapping[tuple[str, float], float]) -> str:
    """Return the output of SKaMPI: all functions in one file."""
    lines = ["# SKaMPI Version 5.0 rev. 191"]
    for name in FUNCTIONS:
        lines.append(f'begin result "MPI_{name}-nodes-length"')
        for size in sizes_of(name):
            time, whole = cells[name, size], size * (P if name in _BLOCKS else 1)
            lines.append(f"nodes= {P} count= {whole:.0f} {whole:>8.0f} {time:>10.4f} 0.1 54 3.1")
        lines.append("end result")
    return "\n".join([*lines, ""])


def write(folder: Path, suite: str, law: Law, mpiruns: int = 8, noise: float = 0.02) -> Path:
    """Write the files of one campaign, and return the folder."""
    folder = folder / f"{suite}.p{P}"
    folder.mkdir(parents=True)
    for run in range(mpiruns):
        cells = times(law, run, noise)
        if suite == "osu":
            for name in FUNCTIONS:
                text = osu(cells, name, full=run == 0)
                (folder / f"osu_{name.lower()}.r{run}.txt").write_text(text)
        else:
            text = {"reprompi": reprompi, "imb": imb, "skampi": skampi}[suite](cells)
            (folder / f"out_r{run}.dat").write_text(text)
    return folder
