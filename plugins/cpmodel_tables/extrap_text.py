"""Extra-P's text format: PARAMETER, POINTS, METRIC, REGION and DATA lines."""

from __future__ import annotations

import math
import re
from pathlib import Path

from callpath_modeler.errors import InputError
from cpmodel_tables.series import Series

_HINT = "lines start with PARAMETER, POINTS, METRIC, REGION or DATA"
_GROUP = re.compile(r"\(([^()]*)\)")


def is_text(text: str) -> bool:
    """Tell by its beginning whether a text is in this format."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return next(lines, "").split()[:1] == ["PARAMETER"]


def read(path: Path, text: str) -> Series:
    """Read a text.

    Raises
    ------
    InputError
        If a line is not in the format.
    """
    return _Text(path).read(text)


class _Text:
    """Points come first; each REGION or METRIC starts the DATA lines at the first point again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.series = Series(path)
        self.points: list[tuple[float, ...]] = []
        self.metric = self.region = ""
        self.at = 0

    def read(self, text: str) -> Series:
        take = {
            "PARAMETER": self._parameter,
            "POINTS": self._points,
            "METRIC": self._metric,
            "REGION": self._region,
            "DATA": self._data,
        }
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if not words or line.startswith("#"):
                continue
            if words[0] not in take:
                raise self._error(number, f"starts with {words[0][:20]!r}")
            take[words[0]](number, words[1:])
        return self.series

    def _error(self, number: int, message: str, hint: str = _HINT) -> InputError:
        return InputError(f"{self.path}: line {number}: {message}", hint=hint)

    def _parameter(self, number: int, words: list[str]) -> None:
        for name in words:
            if name in self.series.parameters:
                raise self._error(number, f"parameter {name} a second time", "rename one")
            self.series.parameters.append(name)
        if self.points:
            raise self._error(number, "a PARAMETER after the first POINTS", "put it before them")

    def _points(self, number: int, words: list[str]) -> None:
        rest, size = " ".join(words), len(self.series.parameters)
        groups = [group.split() for group in _GROUP.findall(rest)]
        if _GROUP.sub("", rest).split():
            groups = [[word] for word in words] if size == 1 else [words]
        for group in groups:
            point = self._numbers(number, group)
            if len(point) != size or not all(map(math.isfinite, point)):
                raise self._error(
                    number,
                    f"a point of {len(point)} numbers for {size} parameters",
                    "e.g. ( 32 5000 )",
                )
            self.points.append(point)

    def _metric(self, number: int, words: list[str]) -> None:  # noqa: ARG002
        self.metric, self.at = " ".join(words), 0

    def _region(self, number: int, words: list[str]) -> None:  # noqa: ARG002
        self.region, self.at = " ".join(words), 0

    def _data(self, number: int, words: list[str]) -> None:
        if self.at >= len(self.points):
            raise self._error(
                number,
                f"more DATA lines than the {len(self.points)} POINTS",
                "one DATA line per point, with its repetitions",
            )
        values = self._numbers(number, words)
        self.series.add(self.region, self.metric, self.points[self.at], values, number)
        self.at += 1

    def _numbers(self, number: int, words: list[str]) -> tuple[float, ...]:
        try:
            return tuple(map(float, words))
        except ValueError as cause:
            raise self._error(number, f"not a number: {cause}", "mend it") from cause
