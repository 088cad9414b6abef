"""Timers, locations and values of a TAU profile, and its call tree."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.readers.paths import known_region, tree_of_nodes

_HOSTS = ("Hostname", "MPI Processor Name", "Node Name")
"""Metadata with the name of the compute node, in the order in which they are tried."""
COPY_OR_MEASURE = "copy the profile again, or repeat the run"


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


class Measurements(ABC):
    """One opened profile of either file format.

    Attributes
    ----------
    timers : all timers
    locations : the threads with a profile, in order
    metrics : the metrics in TAU's spelling, a time first if there is one
    metadata : of the run and its first thread
    host_of : host names of the threads that state one
    """

    metrics: Sequence[str]

    def __init__(self) -> None:
        self.timers = Timers()
        self.locations: list[Location] = []
        self.metadata: dict[str, str] = {}
        self.host_of: dict[Location, str] = {}

    def note_host(self, location: Location, metadata: Mapping[str, str]) -> None:
        """Take the host name of a thread from its metadata, if they have one."""
        host = host_in(metadata)
        if host is not None:
            self.host_of[location] = host

    @property
    def hosts(self) -> int:
        """Return the number of distinct host names; 0 = a process has none."""
        processes = {location[:2] for location in self.locations}
        hosts = {host for at, host in self.host_of.items() if at[:2] in processes}
        is_complete = processes <= {location[:2] for location in self.host_of}
        return len(hosts) if is_complete else 0

    @abstractmethod
    def values(self, metric: str) -> TimerValues:
        """Return the values of a metric.

        Raises
        ------
        InputError
            If a file is malformed.
        """


def host_in(metadata: Mapping[str, str]) -> str | None:
    """Return the host name in metadata; None = there is none."""
    return next((metadata[key] for key in _HOSTS if key in metadata), None)


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


ROUNDING = 1e-9
"""Differences of sums below this share of the sum are rounding."""

NONE = -1
"""Replaces a row if a timer does not contribute to a call path."""

_ARROW = " => "
_APPLICATION = ".TAU application"
_OTHERS = ("TAU_SAMPLE", "TAU_UNWIND", "TAU_PARAM", "TAU_CALLSITE")
"""Groups of timers that measure the time of other timers again."""
_REPEATED = ("[SAMPLE]", "[CONTEXT]", "[UNWIND]", "[SUMMARY]", "[INTERMEDIATE]")
_CALLED = re.compile(r"(?<!\w)(\w++)\(\)")
_LIBRARIES = {"MPI": "mpi", "SHMEM": "shmem", "TAU_SHMEM": "shmem", "PTHREAD": "pthread",
              "TAU_PTHREAD": "pthread", "CUDA": "cuda", "TAU_CUDA": "cuda",
              "TAU_GPU": "cuda", "CUPTI": "cuda"}  # fmt: skip
_OPENMP_ROLES = ("barrier", "critical", "lock", "ordered", "taskwait", "taskgroup", "idle",
                 "thread_worker", "loop", "sections", "single", "master", "workshare", "task",
                 "parallel")  # fmt: skip
"""The first ones wait; `thread_worker` is the timer around all others of a worker."""


@dataclass(frozen=True, slots=True)
class TimerTree:
    """Contribution of timers to call paths.

    Attributes
    ----------
    tree : call paths
    adds_to, taken_from : [timers] row of the call path, or `NONE`. The value of a function without
        callers is its flat timer minus all call paths that end in the function.
    roots : [timers] whether the inclusive value is a part of the program's
    is_flat : whether no timer has a caller
    cut : number of call paths whose first callers TAU omitted
    repeated : number of timers that are excluded, because others include their time
    """

    tree: CallTree
    adds_to: IntArray
    taken_from: IntArray
    roots: BoolArray
    is_flat: bool
    cut: int
    repeated: int


def layout_of(timers: Timers, values: TimerValues, locations: int) -> TimerTree:
    """Return the call tree of timers.

    Parameters
    ----------
    timers : timers of the profile
    values : values of the first metric, which show the functions without callers
    locations : number of locations
    """
    names = _Names(timers)
    own = _with_own_time(names, values, locations)
    nodes = _Nodes(names, own)
    tree, row_of = tree_of_nodes(nodes.callers, [names.functions[f] for f in nodes.functions])
    tree = replace(tree, regions=_regions(tree, names))
    adds_to = np.full(names.timers, NONE, np.intp)
    taken_from = adds_to.copy()
    placed = np.array(nodes.of_timer, np.intp)
    adds_to[placed != NONE] = row_of[placed[placed != NONE]]
    for timer, path in names.paths.items():
        flat = names.flat.get(path[-1])
        if len(path) > 1 and flat is not None:
            taken_from[timer] = adds_to[flat]
    roots = np.zeros(names.timers, np.bool_)
    called = {path[-1] for path in names.paths.values() if len(path) > 1}
    roots[[timer for f, timer in names.flat.items() if timer in own and f not in called]] = True
    return TimerTree(tree, adds_to, taken_from, roots, not called, nodes.cut, names.repeated)


class _Names:
    """Timers as sequences of function numbers, from the outermost caller inwards.

    Attributes
    ----------
    functions : names of functions
    paths : call path of each included timer
    flat : timer of all calls of each function
    group : group of each function, from its timers
    number_of : number of each function
    timers : number of all timers
    repeated : number of excluded timers
    """

    def __init__(self, timers: Timers) -> None:
        self.functions: list[str] = []
        self.paths: dict[int, tuple[int, ...]] = {}
        self.flat: dict[int, int] = {}
        self.group: dict[int, str] = {}
        self.repeated = 0
        self.timers = len(timers.names)
        self.number_of: dict[str, int] = {}
        for timer, (name, group) in enumerate(zip(timers.names, timers.groups, strict=True)):
            parts = [" ".join(part.split()) for part in name.split(_ARROW)]
            if any(g in group for g in _OTHERS) or any(p.startswith(_REPEATED) for p in parts):
                self.repeated += 1
                continue
            path = tuple(self._function(part) for part in parts)
            if len(path) == 1 and path[0] in self.flat:
                # Two names may differ only in blanks. The second one becomes a separate call path.
                path = (self._function(f"{name!r}"),)
            self.paths[timer] = path
            if len(path) == 1:
                self.flat[path[0]] = timer
            self.group.setdefault(path[-1], group)

    def _function(self, name: str) -> int:
        spelled = name or "(no name)"
        spelled = PROGRAM if spelled == _APPLICATION else _CALLED.sub(_without_brackets, spelled)
        found = self.number_of.setdefault(spelled, len(self.functions))
        if found == len(self.functions):
            self.functions.append(spelled)
        return found


def _with_own_time(names: _Names, values: TimerValues, locations: int) -> set[int]:
    """Return the flat timers that exceed the call paths that end in their functions."""
    of_timer = np.full(names.timers, NONE, np.intp)
    sign = np.zeros(len(of_timer))
    for timer, path in names.paths.items():
        flat = names.flat.get(path[-1], NONE)
        of_timer[timer], sign[timer] = flat, 1.0 if flat == timer else -1.0
    flat_of = of_timer[values.timer]
    counted = flat_of != NONE
    key, where = np.unique(
        flat_of[counted] * locations + values.location[counted], return_inverse=True
    )
    signs = sign[values.timer[counted]]
    own: set[int] = set()
    with np.errstate(all="ignore"):
        for column, least in ((values.calls, 0.5), (values.exclusive, 0.0)):
            part = column[counted]
            rest = np.bincount(where, signs * part, len(key))
            size = np.bincount(where, np.abs(part), len(key))
            own |= {*(key[rest > np.maximum(least, ROUNDING * size)] // locations).tolist()}
    # A function without call paths is its own call path, even if it took no time.
    called = {path[-1] for path in names.paths.values() if len(path) > 1}
    return own | {timer for function, timer in names.flat.items() if function not in called}


class _Nodes:
    """Call paths as nodes, in any order with callers before callees.

    Attributes
    ----------
    callers, functions : caller and function of each node
    of_timer : [timers] node of each timer, or `NONE`
    cut : number of call paths whose first callers are unknown
    """

    def __init__(self, names: _Names, own: set[int]) -> None:
        self.callers: list[int] = []
        self.functions: list[int] = []
        self._node: dict[tuple[int, int], int] = {}
        self.of_timer = [NONE] * names.timers
        self._paths = {path: timer for timer, path in names.paths.items() if len(path) > 1}
        self._called = {path[-1] for path in self._paths}
        self._own = {names.paths[timer][0] for timer in own}
        self.cut = 0
        self._top = ROOT
        program = names.number_of.get(PROGRAM)
        if program is not None and program not in self._called:
            self._top = self._child(ROOT, program)
        for function, timer in names.flat.items():
            if timer in own:
                self.of_timer[timer] = self._below_top((function,))
        placed = self._whole_paths()
        for path, timer in self._paths.items():
            self.of_timer[timer] = placed[path]

    def _child(self, caller: int, function: int) -> int:
        found = self._node.setdefault((caller, function), len(self.callers))
        if found == len(self.callers):
            self.callers.append(caller)
            self.functions.append(function)
        return found

    def _below_top(self, path: Sequence[int]) -> int:
        node = self._top
        begin = 1 if node != ROOT and path[0] == self.functions[node] else 0
        for function in path[begin:]:
            node = self._child(node, function)
        return node

    def _whole_paths(self) -> dict[tuple[int, ...], int]:
        """Return the node of each call path.

        TAU truncates call paths at a depth. The caller of a truncated call path is found if a
        single call path ends with its beginning. Otherwise the caller is the program.
        """
        depth = max(map(len, self._paths), default=0)
        ending: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for path in self._paths:
            if len(path) >= depth - 1:
                ending.setdefault(path[len(path) - depth + 1 :], []).append(path)
        placed: dict[tuple[int, ...], int] = {}
        for path in self._paths:
            chain, seen = [path], {path}
            while chain[-1] not in placed:
                last = chain[-1]
                before = self._only_caller(last, depth, ending)
                if before is None or before in seen:
                    placed[last] = self._below_top(last)
                    self.cut += last[0] in self._called and last[0] not in self._own
                    break
                chain.append(before)
                seen.add(before)
            node = placed[chain.pop()]
            while chain:
                last = chain.pop()
                node = placed[last] = self._child(node, last[-1])
        return placed

    def _only_caller(
        self,
        path: tuple[int, ...],
        depth: int,
        ending: Mapping[tuple[int, ...], Sequence[tuple[int, ...]]],
    ) -> tuple[int, ...] | None:
        if len(path) < depth or path[0] not in self._called or path[0] in self._own:
            return None
        found = [other for other in ending.get(path[:-1], ()) if other != path]
        return found[0] if len(found) == 1 and len(found[0]) == depth else None


def _regions(tree: CallTree, names: _Names) -> tuple[Region, ...]:
    number = names.number_of
    return tuple(
        _region(region.name, names.group.get(number.get(region.name, NONE), ""))
        for region in tree.regions
    )


def _region(name: str, group: str) -> Region:
    """Return a region with the role of its TAU group."""
    found = known_region(name)
    if found.paradigm or found.role:
        return found
    groups = {part.strip().upper() for part in group.split("|")}
    if name.startswith("OpenMP_") or any("OPENMP" in part for part in groups):
        role = next((role for role in _OPENMP_ROLES if role in name.lower()), "")
        return Region(name, paradigm="openmp", role=role) if role else found
    library = next((_LIBRARIES[part] for part in sorted(groups) if part in _LIBRARIES), "")
    return Region(name, paradigm=library)


def _without_brackets(found: re.Match[str]) -> str:
    """Return the name of a function, without the parentheses that TAU adds to MPI functions."""
    return found[1] if "MPI_" in found[1][:-1] else found[0]
