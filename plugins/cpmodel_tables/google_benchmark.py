"""CSV output of Google Benchmark: names such as ``BM_sort/1024/threads:8`` as columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct

from callpath_modeler.errors import InputError
from cpmodel_tables.grid import Grid, as_numbers
from cpmodel_tables.notations import TIMES

_TITLES = frozenset({"name", "iterations", "real_time", "cpu_time", "time_unit"})
_UNUSED = _TITLES | {"label", "error_occurred", "error_message"}
_BENCHMARK = "benchmark"
"""Title of the names, which are cases: the benchmarks of a file are different programs."""
_STATISTIC = re.compile(r".*_(mean|median|stddev|cv|min|max|BigO|RMS)", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_OF_RUNS = frozenset({"iterations", "repeats", "min_time", "min_warmup_time"})
"""Keys in names that say how a benchmark was run."""


class _Name(Struct, frozen=True):
    """A name: its text, its numbers by position, and its numbers by key."""

    text: str
    numbers: tuple[str, ...]
    keys: dict[str, str]


def with_benchmarks(grid: Grid) -> Grid:
    """Return a table with columns for the parts of names, if Google Benchmark wrote it.

    Statistics over repetitions and failed benchmarks are left out. Times are per iteration, so the
    number of iterations is left out as well.

    Raises
    ------
    InputError
        If the benchmarks have different arguments, or if no benchmark is left.
    """
    if not {*grid.columns} >= _TITLES:
        return grid
    failed = grid.columns.get("error_occurred", [""] * len(grid.lines))
    texts = [str(cell or "") for cell in grid.columns["name"]]
    kept = [
        row
        for row, text in enumerate(texts)
        if str(failed[row] or "").lower() != "true" and not _STATISTIC.fullmatch(text)
    ]
    names = [_parsed(texts[row]) for row in kept]
    _refuse(grid, names)
    columns: dict[str, Sequence[object]] = {_BENCHMARK: [name.text for name in names]}
    count = len(names[0].numbers)
    for place in range(count):
        title = "n" if count == 1 else f"n{place + 1}"
        columns[title] = [name.numbers[place] for name in names]
    for key in names[0].keys:
        columns[key] = [name.keys[key] for name in names]
    factors = [_factor(grid, row) for row in kept]
    for title in ("real_time", "cpu_time"):
        values = as_numbers([grid.columns[title][row] for row in kept])
        if values is None:
            raise InputError(f"{grid.path}: {title} has a text", hint="correct the cell")
        columns[f"{title} (s)"] = (values * factors).tolist()
    for title, cells in grid.columns.items():
        if title not in _UNUSED:
            columns[title] = [cells[row] for row in kept]
    return replace(grid, columns=columns, lines=grid.lines[np.array(kept, np.intp)])


def _parsed(text: str) -> _Name:
    first, *rest = text.split("/")
    words, numbers = [first], []
    keys: dict[str, str] = {}
    for part in rest:
        key, colon, value = part.partition(":")
        if _NUMBER.fullmatch(part):
            numbers.append(part)
        elif colon and _NUMBER.fullmatch(value):
            keys |= {} if key in _OF_RUNS else {key: value}
        elif part not in {"real_time", "process_time", "manual_time"}:
            words.append(part)
    return _Name("/".join(words), tuple(numbers), keys)


def _refuse(grid: Grid, names: Sequence[_Name]) -> None:
    if not names:
        raise InputError(f"{grid.path}: no benchmark has a time", hint="run the benchmarks again")
    for name in names:
        if (len(name.numbers), [*name.keys]) != (len(names[0].numbers), [*names[0].keys]):
            raise InputError(
                f"{grid.path}: the benchmarks {names[0].text} and {name.text} have different "
                "numbers of arguments",
                hint="write them to files of their own with --benchmark_filter",
            )


def _factor(grid: Grid, row: int) -> float:
    unit = str(grid.columns["time_unit"][row] or "")
    if unit not in TIMES:
        raise grid.error(row, f"time_unit: {unit!r} is no unit of time", "write ns, us, ms or s")
    return TIMES[unit]
