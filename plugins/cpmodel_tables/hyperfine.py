"""Results of hyperfine: how long commands take, as JSON with each time, or as CSV with means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from cpmodel_tables.results import PROCESSES, THREADS, Results, csv_rows
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, whole_text

_JSON = re.compile(r'\s*\{\s*"results"\s*:\s*\[\s*\{\s*"command"\s*:')
_CSV = re.compile(r"command,mean,stddev,median,user,system,min,max\b")
_PARAMETER = "parameter_"
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_LONGEST = 1_000
"""Number of characters of a command in which counts are looked for."""
_PLAIN = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_STATED = (
    (PROCESSES, re.compile(r"\b(?:mpirun|mpiexec|srun)\b.*?\s(?:-np?\s*|--ntasks[= ])(\d+)\b")),
    (THREADS, re.compile(r"\bOMP_NUM_THREADS=(\d+)\b")),
)
"""Counts that commands state, and how."""


def is_one(text: str) -> bool:
    """Return whether a text is a result, by its beginning."""
    return bool(_JSON.match(text) or _CSV.match(text))


def read(path: Path) -> list[RunSource]:
    """Return the runs of the commands; each time is a repetition.

    Raises
    ------
    InputError
        If a result is not as hyperfine writes it.
    """
    text = whole_text(path, is_json=True)
    results = Results(path, "hyperfine", place="result", all_vary=True)
    rows = list(_of_csv(path) if _CSV.match(text) else _of_json(path, text))
    for number, (program, (command, parameters, times)) in enumerate(
        zip(_programs(rows), rows, strict=True), 1
    ):
        run = {name: _number(value) for name, value in parameters.items()}
        run = {**_stated(command), **run, "program": program}
        for repetition, time in enumerate(times, 1):
            results.listed += 1
            results.failed += time is None
            results.add({**run, "repetition": float(repetition)}, (), "time", time, "s", number)
    return results.runs()


_Row = tuple[str, Mapping[str, object], list[object]]


def _of_json(path: Path, text: str) -> Iterator[_Row]:
    document = json_of(path, text)
    listed = document.get("results") if isinstance(document, dict) else None
    for number, each in enumerate(listed if isinstance(listed, list) else [], 1):
        held = each if isinstance(each, dict) else {}
        command, times = held.get("command"), held.get("times") or [held.get("mean")]
        parameters = held.get("parameters") or {}
        is_one = isinstance(command, str) and isinstance(times, list)
        if not (is_one and isinstance(parameters, dict)):
            raise InputError(f"{path}: result {number} has no command or times", hint=COPY_IT_AGAIN)
        codes = held.get("exit_codes")
        has_failed = isinstance(codes, list) and any(code != 0 for code in codes)
        yield str(command), parameters, [None] if has_failed else times


def _of_csv(path: Path) -> Iterator[_Row]:
    for row in csv_rows(path, _CSV):
        parameters = {
            title.removeprefix(_PARAMETER): cell
            for title, cell in row.items()
            if title.startswith(_PARAMETER)
        }
        yield str(row["command"]), parameters, [row["mean"]]


def _programs(rows: Sequence[_Row]) -> list[str]:
    """Return the program of each result: its command without the numbers that make it a run.

    Commands that differ in numbers only are runs of one program if these are parameters of
    hyperfine, or counts that the command states. Otherwise, they are several programs.
    """
    patterns = [_pattern(command, parameters) for command, parameters, _ in rows]
    runs: dict[str, set[tuple[object, ...]]] = {}
    for pattern, (_, parameters, _) in zip(patterns, rows, strict=True):
        runs.setdefault(pattern, set()).add(tuple(map(str, parameters.values())))
    return [
        pattern if not parameters or len(runs[pattern]) == patterns.count(pattern) else command
        for pattern, (command, parameters, _) in zip(patterns, rows, strict=True)
    ]


def _pattern(command: str, parameters: Mapping[str, object]) -> str:
    if parameters:
        return _DIGITS.sub("#", command)
    for _, pattern in _STATED:
        if match := pattern.search(command[:_LONGEST]):
            command = f"{command[: match.start(1)]}#{command[match.end(1) :]}"
    return command


def _stated(command: str) -> dict[str, object]:
    """Return the counts that a command states."""
    found = {name: pattern.search(command[:_LONGEST]) for name, pattern in _STATED}
    return {name: float(match[1]) for name, match in found.items() if match}


def _number(value: object) -> object:
    return float(str(value)) if _PLAIN.fullmatch(str(value)) else str(value)
