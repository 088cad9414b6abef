"""Timers, locations and values of one TAU profile, independent of its file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

COPY_OR_MEASURE = "copy the profile again, or measure the run again"


class MalformedError(Exception):
    """A file does not follow its format; the message says where."""


class Location(NamedTuple):
    """The three numbers of a file name ``profile.n.c.t``."""

    node: int
    context: int
    thread: int


@dataclass(slots=True)
class Timers:
    """The timers of a profile, numbered in the order in which they appear.

    Attributes
    ----------
    names : as TAU writes them, call paths with `` => `` between the functions
    groups : text of GROUP of each timer
    """

    names: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    _number: dict[str, int] = field(default_factory=dict)

    def number(self, name: str, group: str) -> int:
        """Return the number of a timer; a new name gets the next one."""
        found = self._number.setdefault(name, len(self.names))
        if found == len(self.names):
            self.names.append(name)
            self.groups.append(group)
        return found

    def find(self, name: str) -> int | None:
        """Return the number of a timer, or None."""
        return self._number.get(name)


@dataclass(frozen=True, slots=True)
class TimerValues:
    """Values of one metric, one entry per timer and location that has it.

    Attributes
    ----------
    timer, location : [entries] indices
    calls : [entries]
    exclusive, inclusive : [entries], in the unit of the file
    """

    timer: NDArray[np.intp]
    location: NDArray[np.intp]
    calls: NDArray[np.float64]
    exclusive: NDArray[np.float64]
    inclusive: NDArray[np.float64]


class Measurements(Protocol):
    """One opened profile of either file format."""

    @property
    def timers(self) -> Timers:
        """All timers."""
        ...

    @property
    def locations(self) -> Sequence[Location]:
        """The threads that wrote a profile, in order."""
        ...

    @property
    def metrics(self) -> Sequence[str]:
        """Names of the metrics as TAU writes them; the first one is a time where there is one."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the first thread."""
        ...

    @property
    def hosts(self) -> int:
        """Number of different host names; 0 where a process states none."""
        ...

    def values(self, metric: str) -> TimerValues:
        """Return the values of a metric.

        Raises
        ------
        InputError
            If a file is malformed.
        """
        ...


def is_time(metric: str) -> bool:
    """Tell whether a metric is a duration: TAU records all durations in microseconds.

    >>> [is_time(name) for name in ("TIME", "P_VIRTUAL_TIME", "PAPI_FP_OPS", "(PAPI_L1 / TIME)")]
    [True, True, False, False]
    """
    name = metric.upper()
    return not is_derived(metric) and ("TIME" in name or name == "CLOCK_GETTIME")


def is_derived(metric: str) -> bool:
    """Tell whether ParaProf computed a metric from others."""
    return any(sign in metric for sign in "()/*+ ")


def times_first(metrics: Sequence[str]) -> list[str]:
    """Return metrics in order, durations first, TIME before all others."""
    return sorted(metrics, key=lambda name: (not is_time(name), name.upper() != "TIME", name))
