"""Definitions of a profile: metrics, regions, call paths and locations, as columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from callpath_modeler.arrays import BoolArray, Int32Array, Int64Array
from callpath_modeler.errors import MalformedError
from callpath_modeler.profile.schema import Region
from callpath_modeler.readers.reductions import Columns

CREATOR = "Creating location group"
"""Key of the attribute of location groups with the name of the group that created them."""

GPU_TYPES = ("gpu", "accelerator stream")
"""Types of locations that are GPU streams."""

PLACES = ("machine", "node")
"""Classes of system tree nodes whose names identify the machine."""

_NUMBER = re.compile(r"\d+")
_PSEUDO_THREADS = (
    "aggregated threads",
    "master thread",  # "Master thread" is a real one
    "fastest thread",
    "slowest thread",
    "aggregated worker threads",
    "cluster ",
)


class MetricKind(StrEnum):
    """Meaning of the stored values of a metric, and the order of its rows."""

    INCLUSIVE = "INCLUSIVE"
    EXCLUSIVE = "EXCLUSIVE"
    SIMPLE = "SIMPLE"
    DERIVED = "DERIVED"


class MetricDefinition(Struct, frozen=True):
    """A metric as the profile defines it.

    Attributes
    ----------
    number : id, which is also part of the names of the members with its values
    name, unit, description, dtype : as stored, without surrounding blanks
    kind : see `MetricKind`
    ghost : whether viewers hide the metric; its values are in members of another name
    void : whether the metric or one above it is declared to have no values
    """

    number: int
    name: str
    unit: str
    description: str
    dtype: str
    kind: MetricKind
    ghost: bool = False
    void: bool = False


class CallPaths(Struct, frozen=True):
    """Call paths of a profile in document order, which is preorder.

    Attributes
    ----------
    ids : int64 [n], ids as stored
    regions : int64 [n], ids of the called regions
    parents : int64 [n], row of the caller; -1 = root
    parameters : row -> ((key, value), ...)
    lines : int32 [n], line of the call in the source of the caller; -1 = not known
    """

    ids: Int64Array
    regions: Int64Array
    parents: Int64Array
    parameters: Mapping[int, tuple[tuple[str, str], ...]]
    lines: Int32Array


def call_lines(numbers: ArrayLike) -> Int32Array:
    """Return lines of calls; a number that cannot be a line becomes -1."""
    lines = np.array(numbers, np.int64)
    return np.where((lines > 0) & (lines < 2**31), lines, -1).astype(np.int32)


def place_name(name: str, kind: str) -> str:
    """Return the name of a machine or node with its numbers replaced by ``*``.

    >>> place_name("node jwc09n123.cluster", "node"), place_name("machine JUWELS", "machine")
    ('node jwc*n*', 'machine JUWELS')
    """
    return _NUMBER.sub("*", name.partition(".")[0]) if kind == "node" else name


class Locations(Struct, frozen=True):
    """Locations of a profile in document order.

    Attributes
    ----------
    ids : int64 [n]; values are stored in ascending order of these ids
    groups : int64 [n], index of the location group
    is_thread : bool [n], whether the type of the location is a thread
    is_gpu : bool [n], whether the type of the location is a GPU stream
    names : distinct names
    is_process : bool [groups]
    is_accelerator : bool [groups]
    group_names : names of the groups; () = no group has a creator
    creators : name of the group that created a group, by its index; Score-P 8 and later state it
    nodes : number of compute nodes; 0 = unknown
    machines : names of machines and of compute nodes without numbers, equal for runs on one machine
    """

    ids: Int64Array
    groups: Int64Array
    is_thread: BoolArray
    is_gpu: BoolArray
    names: frozenset[str]
    is_process: BoolArray
    is_accelerator: BoolArray
    group_names: tuple[str, ...]
    creators: Mapping[int, str]
    nodes: int
    machines: frozenset[str]

    @property
    def process_of_threads(self) -> Int64Array:
        """Return the location group of each thread of a process, [n]; -1 = another location."""
        return np.where(self.is_thread & self.is_process[self.groups], self.groups, -1)

    @property
    def streams(self) -> BoolArray:
        """Return whether each location is a GPU stream, [n].

        If profiles have sums over threads, the streams of an accelerator are one thread of it.
        """
        return self.is_gpu | (self.is_thread & self.is_accelerator[self.groups])

    @property
    def process_of_streams(self) -> Int64Array:
        """Return the location group of the process of each GPU stream, [n]; -1 = unknown.

        A stream belongs to its own location group if this is a process. Otherwise, it belongs to
        the process that created the group. In a run of one process, all streams belong to it.
        """
        processes = np.unique(self.process_of_threads)
        processes = processes[processes >= 0]
        owners = np.full(len(self.is_process), processes[0] if len(processes) == 1 else -1)
        owners[processes] = processes
        if self.creators and len(processes) > 1:
            by_name = {self.group_names[k]: k for k in processes.tolist()}
            shared = Counter(self.group_names[k] for k in processes.tolist())
            for group, creator in self.creators.items():
                # A name that several processes share does not identify one of them.
                if owners[group] < 0 and shared[creator] == 1:
                    owners[group] = by_name[creator]
        return np.where(self.streams, owners[self.groups], -1)

    @property
    def are_threads(self) -> bool:
        """Return whether each location is a single thread, not a sum or selection of threads."""
        return not any(name.startswith(_PSEUDO_THREADS) for name in self.names)


class Definitions(Struct, frozen=True):
    """All definitions of a profile.

    Attributes
    ----------
    attributes : key -> value for the whole profile
    metrics : in document order
    regions : by id
    call_paths, locations : as `CallPaths` and `Locations`
    """

    attributes: Mapping[str, str]
    metrics: tuple[MetricDefinition, ...]
    regions: Mapping[int, Region]
    call_paths: CallPaths
    locations: Locations


def metric_kind(text: str | None) -> MetricKind:
    """Return the kind for a ``type`` attribute; old files without it mean EXCLUSIVE."""
    if not text:
        return MetricKind.EXCLUSIVE
    text = text.upper()
    if text.startswith(("POSTDERIVED", "PREDERIVED")):
        return MetricKind.DERIVED
    try:
        return MetricKind(text)
    except ValueError:
        raise MalformedError(f"metric type {text!r} is unknown") from None


def parents_from_depths(depth: Int64Array) -> Int64Array:
    """Return the row of the caller of each row of a tree in preorder; -1 = root.

    Parameters
    ----------
    depth : [n], 0 for roots
    """
    # Small integers are sorted in linear time.
    is_small = not len(depth) or depth.max() <= np.iinfo(np.uint16).max
    order = np.argsort(depth.astype(np.uint16) if is_small else depth, kind="stable")
    # A row that is deeper than the row before it is called by that one. Any other row has the
    # caller of the row before it in its level.
    is_first = np.diff(depth, prepend=-1) > 0
    first = np.maximum.accumulate(np.where(is_first[order], np.arange(len(order)), 0))
    parents = np.empty(len(order), np.int64)
    parents[order] = order[first] - 1
    parents[depth <= 0] = -1
    return parents


def columns_of(locations: Locations) -> Columns:
    """Return the stored columns of the threads of processes.

    Raises
    ------
    MalformedError
        If two locations have the same id, or no location is a thread of a process.
    """
    order = _order(locations)
    if np.any(np.diff(locations.ids[order]) == 0):
        raise MalformedError("two locations have the same id")
    try:
        return Columns.of(locations.process_of_threads[order])
    except ValueError as error:
        raise MalformedError(str(error)) from None


def columns_of_streams(locations: Locations) -> Columns | None:
    """Return the stored columns of the GPU streams of processes; None = there are none."""
    process = locations.process_of_streams
    return Columns.of(process[_order(locations)]) if (process >= 0).any() else None


def _order(locations: Locations) -> Int64Array:
    # Columns are stored in ascending order of location ids, for any order of definitions.
    return np.argsort(locations.ids, kind="stable")
