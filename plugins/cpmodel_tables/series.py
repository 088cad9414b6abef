"""Measurements in Extra-P's form: a list of values per call path, metric and point."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from callpath_modeler.errors import InputError
from callpath_modeler.readers.paths import split_at_arrows
from callpath_modeler.readers.records import Records
from callpath_modeler.support.input_limits import Budget, InputLimits, packed_budget
from cpmodel_tables.text import COPY_IT_AGAIN

_BYTES_OF_A_NUMBER = 32
"""Memory of a number, including the columns that are made from it, in bytes."""
_LETTERS, _LETTERS_PER_BYTE = 1 << 25, 16

WHOLE = "<root>"
"""Call path of values without one."""

ONLY_METRIC = "<default>"
"""Metric of values without one."""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@dataclass(slots=True)
class Series:
    """Collected values: the k-th value of a call path, metric and point is repetition k.

    Attributes
    ----------
    path : file of the measurements
    parameters : names of the parameters
    """

    path: Path
    parameters: list[str] = field(default_factory=list)
    _callpaths: dict[str, int] = field(default_factory=dict)
    _metrics: dict[str, int] = field(default_factory=dict)
    _points: dict[tuple[float, ...], int] = field(default_factory=dict)
    # Each list of values: call path, metric, point, line and number of values. Then all values.
    _lists: array[int] = field(default_factory=lambda: array("q"))
    _values: array[float] = field(default_factory=lambda: array("d"))
    _letters: int = 0
    _budget: Budget | None = None
    _most: int = sys.maxsize
    _most_letters: int = 0

    def __post_init__(self) -> None:
        budget = packed_budget(self.path)
        self._budget = budget
        self._most = sys.maxsize if budget is None else budget.memory // _BYTES_OF_A_NUMBER
        self._most_letters = _LETTERS + _LETTERS_PER_BYTE * _size(self.path)

    def add(
        self,
        callpath: str,
        metric: str,
        point: tuple[float, ...],
        values: Sequence[float],
        line: int = 0,
    ) -> None:
        """Add the repetitions of one call path and metric at one point."""
        callpath = callpath or WHOLE
        if callpath not in self._callpaths:
            self._note(callpath)
        of_path = self._callpaths[callpath]
        of_metric = self._metrics.setdefault(metric or ONLY_METRIC, len(self._metrics))
        at = self._points.setdefault(point, len(self._points))
        self._lists.extend((of_path, of_metric, at, line, len(values)))
        self._values.extend(values)
        if self._budget is not None and len(self._lists) + len(self._values) > self._most:
            self._budget.check_memory(self._budget.memory + 1)

    def _note(self, callpath: str) -> None:
        """Add a call path. Its length is limited, because callees of a long name repeat it."""
        self._callpaths[callpath] = len(self._callpaths)
        self._letters += len(callpath)
        if self._letters > self._most_letters:
            raise InputError(
                f"{self.path}: the call paths have more than {self._most_letters} letters together",
                hint="shorten the names of regions that call many others",
            )

    def records(self) -> Records:
        """Return the added values.

        Raises
        ------
        InputError
            If there are no values, or the name of a call path is empty.
        """
        if not self._values:
            raise InputError(f"{self.path}: the file has no values", hint=COPY_IT_AGAIN)
        paths = [split_at_arrows(text) for text in self._callpaths]
        for names in paths:
            if "" in names:
                raise InputError(
                    f"{self.path}: call path {'->'.join(names)!r} contains an empty name",
                    hint=COPY_IT_AGAIN,
                )
        lists = np.array(self._lists, np.intp).reshape(-1, 5)
        counts = lists[:, 4]
        path, metric, at, line = np.repeat(lists[:, :4], counts, axis=0).T
        first = np.repeat(np.cumsum(counts) - counts, counts)
        points = np.array(list(self._points)).reshape(len(self._points), len(self.parameters))
        return Records(
            subject=str(self.path),
            paths=paths,
            path=path,
            parameters=dict(zip(self.parameters, points[at].T, strict=True)),
            repetition=1 + np.arange(len(path)) - first,
            titles=list(self._metrics),
            title=metric,
            values=np.array(self._values),
            limits=InputLimits.of(self.path),
            lines=line if line.any() else None,
            creator="Extra-P",
        )
