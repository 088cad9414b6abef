"""The values of a file with one run, by call path and title."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from callpath_modeler.readers.records import Records, runs_of
from callpath_modeler.support.input_limits import InputLimits

Stack = tuple[str, ...]


@dataclass(slots=True)
class SingleRun:
    """Values by call path and title; values of one call path are added."""

    path: Path
    values: dict[tuple[Stack, str], float] = field(default_factory=dict)

    def add(self, names: Stack, title: str, value: float) -> None:
        """Add a value to those of a call path."""
        self.values[names, title] = self.values.get((names, title), 0.0) + value

    def runs(self, creator: str, noticed: Sequence[Finding] = ()) -> list[RunSource]:
        """Return the run.

        Raises
        ------
        InputError
            If there are no values.
        """
        if not self.values:
            raise InputError(f"{self.path}: the file has no values", hint="repeat the measurement")
        paths: dict[Stack, int] = {}
        titles: dict[str, int] = {}
        rows = [
            (paths.setdefault(names, len(paths)), titles.setdefault(title, len(titles)))
            for names, title in self.values
        ]
        index = np.array(rows, np.intp)
        records = Records(
            subject=str(self.path),
            paths=list(paths),
            path=index[:, 0],
            parameters={},
            repetition=None,
            titles=list(titles),
            title=index[:, 1],
            values=np.array(list(self.values.values())),
            limits=InputLimits.of(self.path),
            creator=creator,
        )
        return runs_of(records, noticed)


def longest(threads: Sequence[Mapping[Stack, float]], *, is_time: bool) -> Mapping[Stack, float]:
    """Return the values of a process from those of its threads.

    Threads run at the same time, so the longest one gives the times. Other values are sums.
    """
    if is_time:
        return max(threads, key=lambda values: sum(values.values()), default={})
    total: dict[Stack, float] = {}
    for values in threads:
        for stack, value in values.items():
            total[stack] = total.get(stack, 0.0) + value
    return total
