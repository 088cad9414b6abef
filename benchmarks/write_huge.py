"""Write one Score-P profile that is larger than memory, dense or sparse.

The program is that of `write_series.py`. The costs of a call path differ by a factor between the
processes, so that rows can be written one after the other.

    python benchmarks/write_huge.py FILE --call-paths 100000 --processes 5000
    python benchmarks/write_huge.py FILE --call-paths 100000 --processes 100000 --rows 5000

Without `--rows`, the file has an inclusive time, with a row for each call path. With it, the file
has an exclusive metric with so many rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from write_series import METRICS, definitions, program, wide_order

from callpath_modeler.report.cube_file import anchor_member, archive, data_member, index_member

_BLOCK_BYTES = 1 << 24


def write_huge(path: Path, call_paths: int, processes: int, rows: int | None, seed: int) -> None:
    """Write a profile with `rows` rows of an exclusive metric; None = a dense inclusive time."""
    made_up, rng = program(call_paths, seed), np.random.default_rng(seed)
    cost, metric = made_up.cost.copy(), "energy"
    stored = np.arange(call_paths)
    if rows is None:
        metric = "time"
        for row in range(call_paths - 1, 0, -1):
            cost[made_up.parent[row]] += cost[row]
        cost = cost[wide_order(made_up.parent)]
    else:
        stored = np.sort(rng.choice(call_paths, rows, replace=False))
    factors = rng.uniform(0.9, 1.0, processes)
    data = data_member(0, len(stored), 8 * processes, _blocks(cost[stored], factors))
    text = definitions(made_up, processes, (metric,))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb", buffering=1 << 20) as file:
        file.writelines(archive([data, index_member(0, stored), anchor_member(text)]))


def _blocks(cost: NDArray[np.float64], factors: NDArray[np.float64]) -> Iterator[bytes]:
    step = max(1, _BLOCK_BYTES // (8 * len(factors)))
    for first in range(0, len(cost), step):
        block = cost[first : first + step, None] * factors
        yield block.astype(METRICS["time"].stored).tobytes()


def main() -> None:
    """Write the profile of the command line."""
    parser = argparse.ArgumentParser(description="Write one huge made-up Score-P profile.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--call-paths", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=5000)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    write_huge(told.file, told.call_paths, told.processes, told.rows, told.seed)


if __name__ == "__main__":
    main()
