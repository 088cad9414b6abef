"""Measurements as Extra-P has them, gathered: a list of values per call path, metric and point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from callpath_modeler.errors import InputError
from callpath_modeler.readers.paths import split_at_arrows
from callpath_modeler.readers.records import Records
from cpmodel_tables.text import COPY_IT_AGAIN

WHOLE = "<root>"
"""The call path of what names none."""

ONLY_METRIC = "<default>"
"""The metric of what names none."""


@dataclass(slots=True)
class Series:
    """Values are added one by one; the k-th of a call path, metric and point is repetition k.

    Attributes
    ----------
    path : the file
    parameters : names
    """

    path: Path
    parameters: list[str] = field(default_factory=list)
    _callpaths: dict[str, int] = field(default_factory=dict)
    _metrics: dict[str, int] = field(default_factory=dict)
    _points: list[tuple[float, ...]] = field(default_factory=list)
    _rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    _values: list[float] = field(default_factory=list)

    def add(
        self,
        callpath: str,
        metric: str,
        point: tuple[float, ...],
        values: Sequence[float],
        line: int = 0,
    ) -> None:
        """Add the repetitions of one call path and metric at one point."""
        known = self._callpaths.setdefault(callpath or WHOLE, len(self._callpaths))
        of_metric = self._metrics.setdefault(metric or ONLY_METRIC, len(self._metrics))
        for repetition, value in enumerate(values, start=1):
            self._rows.append((known, of_metric, repetition, line))
            self._points.append(point)
            self._values.append(value)

    def records(self) -> Records:
        """Return what was added.

        Raises
        ------
        InputError
            If that is nothing, or the name of a call path is empty.
        """
        if not self._rows:
            raise InputError(f"{self.path}: holds no values", hint=COPY_IT_AGAIN)
        paths = [split_at_arrows(text) for text in self._callpaths]
        for names in paths:
            if "" in names:
                raise InputError(
                    f"{self.path}: a name is empty in call path {'->'.join(names)!r}",
                    hint=COPY_IT_AGAIN,
                )
        rows = np.array(self._rows, np.intp)
        points = np.array(self._points, np.float64).reshape(len(rows), len(self.parameters))
        several = int(rows[:, 2].max()) > 1
        return Records(
            subject=str(self.path),
            paths=paths,
            path=rows[:, 0],
            parameters=dict(zip(self.parameters, points.T, strict=True)),
            repetition=rows[:, 2] if several else np.ones(len(rows), np.intp),
            titles=list(self._metrics),
            title=rows[:, 1],
            values=np.array(self._values),
            lines=rows[:, 3] if rows[:, 3].any() else None,
            creator="Extra-P",
        )
