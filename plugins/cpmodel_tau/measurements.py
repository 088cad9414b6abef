"""Timers, locations and values of one TAU profile, independent of its file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray

COPY_OR_MEASURE = "copy the profile again, or repeat the run"


class MalformedError(Exception):
    """Error in the format of a file; the message has the position."""


class Location(NamedTuple):
    """The three numbers of a file name ``profile.n.c.t``."""

    node: int
    context: int
    thread: int


@dataclass(slots=True)
class Timers:
    """The timers of a profile, numbered in order of appearance.

    Attributes
    ----------
    names : as TAU writes them, call paths with `` => `` between the functions
    groups : text of GROUP of each timer
    """

    names: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    _number: dict[str, int] = field(default_factory=dict)

    def number(self, name: str, group: str) -> int:
        """Return the number of a timer; a new name gets the next number."""
        found = self._number.setdefault(name, len(self.names))
        if found == len(self.names):
            self.names.append(name)
            self.groups.append(group)
        return found

    def find(self, name: str) -> int | None:
        """Return the number of a timer, or None."""
        return self._number.get(name)


class TimerValues(Struct, frozen=True):
    """TimerValues of one metric, with one entry for each timer of each location.

    Attributes
    ----------
    timer, location : [entries] indices
    calls : [entries] number of calls
    exclusive, inclusive : [entries] in the unit of the file
    """

    timer: IntArray
    location: IntArray
    calls: FloatArray
    exclusive: FloatArray
    inclusive: FloatArray


class Measurements(Protocol):
    """One opened profile of either file format."""

    @property
    def timers(self) -> Timers:
        """Return all timers."""
        ...

    @property
    def locations(self) -> Sequence[Location]:
        """Return the threads with a profile, in order."""
        ...

    @property
    def metrics(self) -> Sequence[str]:
        """Return the names of the metrics in TAU's spelling, a time first if there is one."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """Return the metadata of the first thread."""
        ...

    @property
    def hosts(self) -> int:
        """Return the number of distinct host names; 0 = a process has none."""
        ...

    @property
    def host_of(self) -> Mapping[Location, str]:
        """Return the host names of the threads that state one."""
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
    """Return whether a metric is a duration. TAU records all durations in microseconds.

    >>> [is_time(name) for name in ("TIME", "P_VIRTUAL_TIME", "PAPI_FP_OPS", "(PAPI_L1 / TIME)")]
    [True, True, False, False]
    """
    name = metric.upper()
    return not is_derived(metric) and ("TIME" in name or name == "CLOCK_GETTIME")


def is_derived(metric: str) -> bool:
    """Return whether ParaProf computed a metric from others."""
    return any(sign in metric for sign in "()/*+ ")


def times_first(metrics: Sequence[str]) -> list[str]:
    """Return metrics in order, durations first, TIME before all others."""
    return sorted(metrics, key=lambda name: (not is_time(name), name.upper() != "TIME", name))
