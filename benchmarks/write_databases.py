"""Write a series of HPCToolkit databases with known growth.

python write_databases.py DIRECTORY --contexts 20000 --ranks 8 --scales 8 16 32
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.testing.hpctoolkit import (
    Kind,
    Measured,
    Scope,
    write_database,
    write_few_values,
)

_FILES = 40


def main() -> None:
    """Write the databases of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--contexts", type=int, required=True)
    parser.add_argument("--functions", type=int, default=400)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--scales", type=int, nargs="+", required=True)
    parser.add_argument("--few", type=int, help="number of lines with a cost of each rank")
    told = parser.parse_args()
    contexts = tree(told.contexts, told.functions)
    cost, growth = _costs(contexts)
    for p in told.scales:
        rng = np.random.default_rng(p)
        if told.few:
            costly = np.flatnonzero(cost)
            draws = (rng.choice(costly, told.few) for _ in range(told.ranks))
            locations = [
                ({"NODE": rank // 64, "RANK": rank, "THREAD": 0}, rows, cost[rows])
                for rank, rows in enumerate(map(np.unique, draws))
            ]
            directory = told.directory / f"app.p{p}"
            write_few_values(directory, contexts, "CPUTIME (sec)", locations)
            continue
        measured = [
            Measured(
                {"NODE": rank // 4, "RANK": rank, "THREAD": 0},
                {"CPUTIME (sec)": cost * p**growth * (1 + 0.02 * rng.random(len(cost)))},
            )
            for rank in range(told.ranks)
        ]
        write_database(told.directory / f"app.p{p}", contexts, measured)


def tree(size: int, functions: int) -> list[Scope]:
    """Return realistic contexts: functions with lines that call functions."""
    rng = np.random.default_rng(7)
    scopes = [
        Scope(-1, Kind.FUNCTION, "main thread"),
        Scope(0, Kind.FUNCTION, "main", "/src/main.cpp", 1),
    ]
    waiting, at = [1], 0
    while len(scopes) < size:
        caller, at = waiting[at], at + 1
        for _ in range(int(rng.integers(1, 5))):
            line = len(scopes)
            place = f"/src/file{caller % _FILES}.cpp"
            kind = Kind.LOOP if rng.random() < 0.15 else Kind.LINE
            scopes.append(Scope(caller, kind, file=place, line=line % 2000))
            for _ in range(int(rng.integers(1, 3))):
                k = int(rng.integers(1, functions))
                name, file = f"ns{k % 7}::f{k}<double>(int)", f"/src/file{k % _FILES}.cpp"
                waiting.append(len(scopes))
                scopes.append(Scope(line, Kind.FUNCTION, name, file, k))
    return scopes[:size]


def _costs(contexts: list[Scope]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exclusive cost of each context for p = 1, and its exponent of p."""
    rng = np.random.default_rng(3)
    lines = np.array([context.kind is Kind.LINE for context in contexts])
    cost = np.where(lines & (rng.random(len(lines)) < 0.6), rng.exponential(0.01, len(lines)), 0)
    return cost, rng.choice([0.0, 0.0, 0.5, -1.0], len(lines))


if __name__ == "__main__":
    main()
