"""What a profile defines: metrics, regions, call paths and locations, held in columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from callpath_modeler.arrays import BoolArray, Int64Array
from callpath_modeler.profile.schema import Region

PLACES = ("machine", "node")
"""Classes of the places of a system tree whose names tell where a program ran."""

_NUMBER = re.compile(r"\d+")
_PSEUDO_THREADS = (
    "aggregated threads",
    "master thread",  # "Master thread" is a real one
    "fastest thread",
    "slowest thread",
    "aggregated worker threads",
    "cluster ",
)


class MalformedError(ValueError):
    """Definitions that contradict themselves or are not in the format."""


class MetricKind(StrEnum):
    """What the stored values of a metric stand for, and in which order its rows come."""

    INCLUSIVE = "INCLUSIVE"
    EXCLUSIVE = "EXCLUSIVE"
    SIMPLE = "SIMPLE"
    DERIVED = "DERIVED"


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A metric as the profile defines it.

    Attributes
    ----------
    number : its id, which also names the members that hold its values
    name, unit, description, dtype : as written, stripped
    kind : see `MetricKind`
    ghost : True if hidden from viewers; the values lie in members of another name
    void : True if the metric or one above it is declared to hold nothing
    """

    number: int
    name: str
    unit: str
    description: str
    dtype: str
    kind: MetricKind
    ghost: bool = False
    void: bool = False


@dataclass(frozen=True, slots=True)
class CallPaths:
    """The call paths of a profile in document order, which is preorder.

    Attributes
    ----------
    ids : int64 [n], ids as written
    regions : int64 [n], ids of the called regions
    parents : int64 [n], row of the caller or -1
    parameters : row -> ((key, value), ...)
    """

    ids: Int64Array
    regions: Int64Array
    parents: Int64Array
    parameters: Mapping[int, tuple[tuple[str, str], ...]]


def place_name(name: str, kind: str) -> str:
    """Return what the name of a place tells of where it is: that of a host without its number.

    >>> place_name("node jwc09n123.cluster", "node"), place_name("machine JUWELS", "machine")
    ('node jwc*n*', 'machine JUWELS')
    """
    return _NUMBER.sub("*", name.partition(".")[0]) if kind == "node" else name


@dataclass(frozen=True, slots=True)
class Locations:
    """The locations of a profile in document order.

    Attributes
    ----------
    ids : int64 [n]; values are stored in ascending order of these
    groups : int64 [n], index of the location group
    is_thread : bool [n], False for streams of accelerators and places for metrics
    names : the distinct names
    is_process : bool [groups], False for groups of accelerators or metrics
    nodes : number of compute nodes, 0 = unknown
    machines : names of machines, of compute nodes without numbers; what runs of one place share
    """

    ids: Int64Array
    groups: Int64Array
    is_thread: BoolArray
    names: frozenset[str]
    is_process: BoolArray
    nodes: int
    machines: frozenset[str]

    @property
    def counts(self) -> BoolArray:
        """Which locations are threads of a process, [n]."""
        return self.is_thread & self.is_process[self.groups]

    @property
    def are_threads(self) -> bool:
        """False if locations stand for several threads or for the choice of one."""
        return not any(name.startswith(_PSEUDO_THREADS) for name in self.names)


@dataclass(frozen=True, slots=True)
class Definitions:
    """Everything an anchor says.

    Attributes
    ----------
    attributes : key -> value of the whole profile
    metrics : in document order
    regions : by id
    call_paths, locations : see there
    """

    attributes: Mapping[str, str]
    metrics: tuple[MetricDefinition, ...]
    regions: Mapping[int, Region]
    call_paths: CallPaths
    locations: Locations


def metric_kind(text: str | None) -> MetricKind:
    """Return the kind a ``type`` attribute means; files of old name none and mean EXCLUSIVE."""
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
    """Return the row above each row of a tree in preorder, -1 for roots.

    Parameters
    ----------
    depth : [n], 0 for roots
    """
    n = len(depth)
    order = np.argsort(depth, kind="stable")
    keys = depth[order] * n + order
    # The caller is the last row one level up that comes before.
    place = np.searchsorted(keys, (depth - 1) * n + np.arange(n)) - 1
    return np.where(depth > 0, order[place], -1)
