"""Reader of Extra-P's own formats: its text and TaLPas files here, and JSON and experiments.

TaLPas files are lines of JSON with semicolons instead of commas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import Match, RunSource
from callpath_modeler.readers.records import runs_of
from callpath_modeler.units import decimal_of
from cpmodel_tables import extrap_experiment, extrap_json
from cpmodel_tables.grid import Grid, of_rows
from cpmodel_tables.reader import EXPERIMENT, JSON
from cpmodel_tables.series import Series
from cpmodel_tables.tables import runs_of_grid
from cpmodel_tables.text import first_text, json_of, opened_lines, whole_text


class ExtrapFiles:
    """Reader of Extra-P text, JSON and experiments. `TableReader` reads Extra-P's JSON Lines."""

    def match(self, path: Path) -> Match:
        """Return whether `path` is a file of Extra-P, by its beginning."""
        if path.name.lower().endswith(EXPERIMENT):
            return Match.CONTENT if extrap_experiment.is_experiment(path) else _by_name(path)
        if path.name.lower().endswith(JSON):
            return Match.CONTENT if extrap_json.is_json(path) else Match.NO
        text = first_text(path)
        return Match.CONTENT if is_text(text) or is_talpas(text) else Match.NO

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the runs in the file.

        Raises
        ------
        InputError
            If the file is damaged.
        """
        findings: list[Finding] = []
        if path.name.lower().endswith(EXPERIMENT):
            series, means = extrap_experiment.read(path)
            if means:
                message = f"{means} values are means; the file does not contain their repetitions"
                findings.append(Finding("CPM130", str(path), message, means))
        elif path.name.lower().endswith(JSON):
            series = extrap_json.read(path, whole_text(path, is_json=True))
        elif is_talpas(first_text(path)):
            return runs_of_grid(read_talpas(path))
        else:
            series = read_text(path)
        return runs_of(series.records(), findings)


def _by_name(path: Path) -> Match:
    return Match.NAME if path.stat().st_size else Match.NO


_SEMICOLON = re.compile(r';(?=\s{0,8}"(?:parameters|metric|callpath|value)"\s{0,8}:)')
_BEGINS = re.compile(r'\s*\{\s*"[a-z]+"\s*:[^\n]*;\s*"[a-z]+"\s*:')


def is_talpas(text: str) -> bool:
    """Return whether a text is in this format, by its first line."""
    return bool(_BEGINS.match(text)) and '"parameters"' in text.lstrip().partition("\n")[0]


def read_talpas(path: Path) -> Grid:
    """Return the table in a file.

    Raises
    ------
    InputError
        If a line is not a measurement.
    """
    rows = []
    for number, line in enumerate(whole_text(path, is_json=True).split("\n"), start=1):
        if not line.strip():
            continue
        row = json_of(path, _SEMICOLON.sub(",", line), number)
        if not isinstance(row, dict):
            raise InputError(
                f"{path}: line {number}: not a measurement",
                hint='e.g. {"parameters":{"p":4};"metric":"time";"callpath":"main";"value":2.5}',
            )
        rows.append(row)
    return of_rows(path, rows)


_HINT = "lines start with PARAMETER, POINTS, METRIC, REGION or DATA"
_CALLS = "->"
_ROUNDING = 1e-3
"""Relative tolerance for rounding: callees may exceed their caller by this share."""
_GROUP = re.compile(r"\(([^()]*)\)")


def is_text(text: str) -> bool:
    """Return whether a text is in this format, by its beginning."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return next(lines, "").split()[:1] == ["PARAMETER"]


def read_text(path: Path) -> Series:
    """Return the measurements in a text.

    Raises
    ------
    InputError
        If a line does not follow the format.
    """
    first = _Text(path)
    series = first.read_text()
    if first.encloses_others():
        return _Text(path, caller=first.region_of_first).read_text()
    return series


class _Text:
    """Parser of the text format.

    Points come first. Each REGION or METRIC line starts the DATA lines at the first point again. A
    region with more indentation than the previous one is its callee.

    Parameters
    ----------
    caller : the first region, if it calls the other regions of its indentation
    """

    def __init__(self, path: Path, caller: str = "") -> None:
        self.path = path
        self.caller = caller
        self.series = Series(path)
        self.points: list[tuple[float, ...]] = []
        self.metric = self.region = ""
        self.at = 0
        self.region_of_first = ""
        self._column = 0
        self._callers: list[tuple[int, str]] = []
        self._is_indented = False
        # Value of the first region and sum of its siblings, by metric and point.
        self._first: dict[tuple[str, int], float] = {}
        self._siblings: dict[tuple[str, int], float] = {}

    def encloses_others(self) -> bool:
        """Return whether the first region takes at least as long as the other regions together.

        This is the case for ``main`` if a program lists it together with its callees.
        """
        compared = self._first.keys() & self._siblings.keys()
        return (
            self._is_indented
            and bool(compared)
            and all(
                self._first[key] >= (1 - _ROUNDING) * self._siblings[key] > 0 for key in compared
            )
        )

    def read_text(self) -> Series:
        with opened_lines(self.path) as lines:
            self._read(lines)
        return self.series

    def _read(self, lines: Iterable[str]) -> None:
        take = {
            "PARAMETER": self._parameter,
            "POINTS": self._points,
            "METRIC": self._metric,
            "REGION": self._region,
            "DATA": self._data,
        }
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if not words or line.startswith("#"):
                continue
            if words[0] not in take:
                raise self._error(number, f"starts with {words[0][:20]!r}")
            if words[0] == "REGION":
                self._indent(line)
            take[words[0]](number, words[1:])

    def _error(self, number: int, message: str, hint: str = _HINT) -> InputError:
        return InputError(f"{self.path}: line {number}: {message}", hint=hint)

    def _parameter(self, number: int, words: list[str]) -> None:
        for name in words:
            if name in self.series.parameters:
                raise self._error(number, f"parameter {name} appears twice", "rename one of them")
            self.series.parameters.append(name)
        if self.points:
            raise self._error(number, "PARAMETER after the first POINTS", "move it before them")

    def _points(self, number: int, words: list[str]) -> None:
        rest, size = " ".join(words), len(self.series.parameters)
        groups = [group.split() for group in _GROUP.findall(rest)]
        around = _GROUP.sub("", rest)
        if around.strip("() \t"):
            groups = [[word] for word in words] if size == 1 else [words]
        elif around.strip():
            # Each coordinate has its own parentheses: ((32) (5000)) ((64) (5000)).
            numbers = [number for group in groups for number in group]
            groups = [numbers[k : k + size] for k in range(0, len(numbers), max(1, size))]
        for group in groups:
            point = self._numbers(number, group)
            if len(point) != size or not all(map(math.isfinite, point)):
                raise self._error(
                    number,
                    f"a point has {len(point)} numbers for {size} parameters",
                    "e.g. ( 32 5000 )",
                )
            self.points.append(point)

    def _metric(self, number: int, words: list[str]) -> None:  # noqa: ARG002
        self.metric, self.at = " ".join(words), 0

    def _indent(self, line: str) -> None:
        """Drop the callers whose indentation is not smaller."""
        rest = line.strip().removeprefix("REGION")
        self._column = len(rest) - len(rest.lstrip())
        while self._callers and self._callers[-1][0] >= self._column:
            self._callers.pop()

    def _region(self, number: int, words: list[str]) -> None:  # noqa: ARG002
        name = " ".join(words)
        self._is_indented |= bool(self._callers)
        above = self._callers[-1][1] if self._callers else ""
        if not self._callers:
            self.region_of_first = self.region_of_first or name
            above = self.caller if name != self.caller else ""
        self.region, self.at = f"{above}{_CALLS}{name}" if above and name else name, 0
        self._callers.append((self._column, self.region))

    def _data(self, number: int, words: list[str]) -> None:
        if self.at >= len(self.points):
            raise self._error(
                number,
                f"there are more DATA lines than the {len(self.points)} POINTS",
                "write one DATA line per point, with all its repetitions",
            )
        values = self._numbers(number, words)
        self.series.add(self.region, self.metric, self.points[self.at], values, number)
        if values and len(self._callers) == 1:
            key = self.metric, self.at
            if self.region == self.region_of_first:
                self._first.setdefault(key, values[0])
            else:
                self._siblings[key] = self._siblings.get(key, 0.0) + values[0]
        self.at += 1

    def _numbers(self, number: int, words: list[str]) -> tuple[float, ...]:
        try:
            return tuple(map(decimal_of, words))
        except ValueError as cause:
            raise self._error(number, f"not a number: {cause}", "correct the number") from cause
