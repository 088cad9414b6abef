"""Results of Google Benchmark: times of functions for values of their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from cpmodel_tables.results import THREADS, Results, csv_rows
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, whole_text

_JSON = re.compile(r'\s*\{\s*"context"\s*:\s*\{[^}]*"(?:mhz_per_cpu|num_cpus|library_)')
_CSV = re.compile(r"(?m)^name,iterations,real_time,cpu_time,time_unit\b")
_ARGUMENT = re.compile(r"(?:(?P<name>[A-Za-z]\w*):)?(?P<value>\d{1,15})")
_SETTINGS = frozenset({"iterations", "repeats", "min_time", "min_warmup_time"})
"""Settings in the name of a benchmark, beside its arguments."""
_STATISTICS = frozenset({"mean", "median", "stddev", "cv", "min", "max"})
_OF_SEVERAL = frozenset({"BigO", "RMS"})
"""Ends of names of fits over all arguments."""
_UNITS = frozenset({"ns", "us", "ms", "s"})
_FLAGS = frozenset({"real_time", "manual_time", "process_time"})


def is_one(text: str) -> bool:
    """Return whether a text is a result, by its beginning."""
    return bool((_JSON.match(text) and '"benchmarks"' in text) or _CSV.search(text))


def read(path: Path) -> list[RunSource]:
    """Return one run for each set of arguments; each function is a program.

    Raises
    ------
    InputError
        If a benchmark is not as the library writes it, or has an unknown unit.
    """
    text = whole_text(path, is_json=True)
    results = Results(path, "Google Benchmark", place="benchmark", all_vary=True)
    repeated: dict[str, int] = {}
    rows = _of_csv(path) if _CSV.search(text) else _of_json(path, text)
    for number, row in enumerate(rows, 1):
        # Means and deviations of repetitions have a row each.
        if row.get("run_type") == "aggregate" or row.get("aggregate_name"):
            continue
        results.listed += 1
        name = str(row.get("name"))
        if row.get("error_occurred") in (True, "true") or row.get("real_time") in (None, ""):
            results.failed += 1
            continue
        function, run = _arguments(name)
        repeated[name] = repeated.get(name, 0) + 1
        unit = str(row.get("time_unit") or "ns")
        if unit not in _UNITS:
            raise InputError(
                f"{path}: {name}: {unit!r} is no unit of time", hint="write ns, us, ms or s"
            )
        told = {"program": function, **run, "repetition": float(repeated[name])}
        results.add(told, (), "time", row["real_time"], unit, number)
    return results.runs()


def _arguments(name: str) -> tuple[str, dict[str, object]]:
    """Return the function of a benchmark, and its arguments.

    >>> _arguments("BM_sort/1024/threads:4/real_time")
    ('BM_sort', {'n': 1024.0, 'threads': 4.0})
    """
    function, *parts = name.split("/")
    run: dict[str, object] = {}
    for part in parts:
        match = _ARGUMENT.fullmatch(part)
        if match is None:
            if part.partition(":")[0] not in _SETTINGS | _FLAGS:
                function = f"{function}/{part}"
        elif match["name"] not in _SETTINGS:
            unnamed = sum(key != THREADS for key in run)
            title = match["name"] or (f"n{unnamed + 1}" if unnamed else "n")
            run[title] = float(match["value"])
    return function, run


def _of_json(path: Path, text: str) -> Iterator[Mapping[str, object]]:
    document = json_of(path, text)
    listed = document.get("benchmarks") if isinstance(document, dict) else None
    for number, each in enumerate(listed if isinstance(listed, list) else [], 1):
        if not (isinstance(each, dict) and isinstance(each.get("name"), str)):
            raise InputError(f"{path}: benchmark {number} has no name", hint=COPY_IT_AGAIN)
        yield each


def _of_csv(path: Path) -> Iterator[Mapping[str, object]]:
    names = set[str]()
    # A description of the machine precedes the titles.
    for row in csv_rows(path, _CSV):
        name = str(row["name"])
        of, _, statistic = name.rpartition("_")
        names.add(name)
        if statistic not in _OF_SEVERAL and not (statistic in _STATISTICS and of in names):
            yield row
