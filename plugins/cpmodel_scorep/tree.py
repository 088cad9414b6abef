"""Call tree of a profile, and the position of stored rows in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, Int32Array, Int64Array, IntArray
from callpath_modeler.errors import MalformedError
from callpath_modeler.profile.calltree import CallTree, nodes_after
from callpath_modeler.profile.schema import PROGRAM, Region
from cpmodel_scorep.definitions import CallPaths, Definitions, MetricKind

_STRUCTURAL = ("TASKS", "THREADS", "KERNELS", "MEASUREMENT OFF", "TRACE BUFFER FLUSH")
_ITERATION = re.compile(r"(instance|iteration)=\d+")
_SMALL_ANCHOR = 1 << 20
"""Largest number of bytes of an anchor that is kept."""


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """Positions of stored rows in the call tree.

    Attributes
    ----------
    tree : call paths that users see
    parents : int64 [defined call paths], row of the caller in preorder; -1 = root
    rows : int64 [defined call paths], row in `tree`; -1 = detached
    ids : int64 [defined call paths], ids
    program : region of the program root as defined, or None
    orders : results of `enumeration`, because runs of one program share their layout
    """

    tree: CallTree
    parents: Int64Array
    rows: Int64Array
    ids: Int64Array
    program: Region | None
    orders: dict[MetricKind, Int64Array] = field(default_factory=dict, repr=False, compare=False)

    @property
    def detached(self) -> int:
        """Return the number of call paths at and below detached task roots."""
        return int(np.count_nonzero(self.rows < 0))

    def enumeration(self, kind: MetricKind) -> Int64Array:
        """Return the defined call path of each row number of a metric, [defined call paths]."""
        if kind not in self.orders:
            order = self._ordered(kind)
            order.flags.writeable = False
            self.orders[kind] = order
        return self.orders[kind]

    def _ordered(self, kind: MetricKind) -> Int64Array:
        rows = np.arange(len(self.parents))
        if kind is MetricKind.INCLUSIVE:
            # A root comes first, then the callees of every call path in preorder.
            key = np.where(self.parents >= 0, 2 * self.parents + 1, 2 * rows)
            return np.argsort(key, kind="stable")
        if kind is MetricKind.SIMPLE:
            return np.argsort(self.ids, kind="stable")
        return rows


def layout_of(definitions: Definitions) -> TreeLayout:
    """Return the layout of the call tree.

    Raises
    ------
    MalformedError
        If there are no call paths, or a call path has an undefined region.
    """
    paths = definitions.call_paths
    if not len(paths.ids):
        raise MalformedError("there are no call paths")
    used, region = np.unique(paths.regions, return_inverse=True)
    try:
        regions = [definitions.regions[number] for number in used.tolist()]
    except KeyError as missing:
        raise MalformedError(f"region {missing} is not defined") from None
    kept = ~_task_rows(paths, region, regions)
    rows = np.where(kept, np.cumsum(kept) - 1, -1)
    if not kept.any():
        raise MalformedError("all call paths are tasks")
    parents = paths.parents[kept]
    parents = np.where(parents >= 0, rows[parents], -1)
    program = _name_program(region, regions, np.flatnonzero(kept & (paths.parents < 0)))
    regions = [_as_iteration(known) for known in regions]
    annotation, annotations = _annotations(paths)
    tree = CallTree(
        _column(parents),
        _column(nodes_after(parents)),
        _column(region[kept]),
        _column(annotation[kept]),
        tuple(regions),
        annotations,
        _column(paths.lines[kept]),
    )
    return TreeLayout(tree, paths.parents, rows, paths.ids, program)


def _task_rows(paths: CallPaths, region: IntArray, regions: list[Region]) -> BoolArray:
    """Return which call paths are trees of tasks, whose time is already part of other regions.

    Score-P stores them below the program. Before it had a program root, they were roots. A root is
    selected only if all its tasks also occur in the rest of the call tree.
    """
    tasks = np.array([r.name == "TASKS" and _is_artificial(r) for r in regions])[region]
    dropped = np.zeros(len(region), np.bool_)
    if not tasks.any():
        return dropped
    artificial = np.array([_is_artificial(r) for r in regions])[region]
    ends = nodes_after(paths.parents)
    for row in np.flatnonzero(tasks):
        caller = paths.parents[row]
        if caller >= 0 and paths.parents[caller] < 0 and artificial[caller]:
            dropped[row : ends[row]] = True
    outside = np.ones(len(region), np.bool_)
    roots = np.flatnonzero(tasks & (paths.parents < 0))
    for row in roots:
        outside[row : ends[row]] = False
    elsewhere = np.unique(region[outside])
    for row in roots:
        if np.isin(region[paths.parents == row], elsewhere).all():
            dropped[row : ends[row]] = True
    return dropped


def _is_artificial(region: Region) -> bool:
    return region.role == "artificial"


def _name_program(
    region: NDArray[np.signedinteger], regions: list[Region], roots: IntArray
) -> Region | None:
    """Give artificial roots a common name: names of executables may contain sizes and scales.

    `region` and `regions` are changed in place. The region is copied, because it may also be called
    elsewhere.
    """
    program: Region | None = None
    for root in roots.tolist():
        known = regions[region[root]]
        if not _is_artificial(known) or known.name in _STRUCTURAL:
            continue
        program = program or known
        region[root] = len(regions)
        regions.append(replace(known, name=PROGRAM, mangled=""))
    return program


def _as_iteration(region: Region) -> Region:
    if "=" not in region.name:
        return region
    found = _ITERATION.fullmatch(region.name)
    return replace(region, name=f"{found[1]}=*") if found else region


def _annotations(paths: CallPaths) -> tuple[Int32Array, tuple[str, ...]]:
    annotation = np.zeros(len(paths.ids), np.int32)
    known = {"": 0}
    for row, pairs in paths.parameters.items():
        text = "[" + ",".join(f"{key}={value}" for key, value in pairs) + "]"
        annotation[row] = known.setdefault(text, len(known))
    return annotation, tuple(known)


def _column(values: NDArray[np.integer]) -> Int32Array:
    column = values.astype(np.int32)
    column.flags.writeable = False
    return column


@dataclass(slots=True)
class Latest:
    """Call paths and layout of the profile before; profiles of one program often agree in them.

    A reader has one, so this memory is free when the reader is no longer needed. Threads may share
    a reader: each attribute is replaced as a whole.
    """

    _whole: tuple[bytes, Definitions, bool] | None = None
    _read: tuple[bytes, CallPaths] | None = None
    _laid_out: tuple[CallPaths, Mapping[int, Region], TreeLayout] | None = None

    def definitions(self, raw: bytes) -> tuple[Definitions, bool] | None:
        """Return the definitions of an anchor, and whether they were repaired, if it is the latest.

        Repetitions often have the same anchor to the last byte.
        """
        held = self._whole
        return held[1:] if held is not None and held[0] == raw else None

    def keep_definitions(self, raw: bytes, definitions: Definitions, repaired: bool) -> None:
        """Keep the definitions of a small anchor instead of those before."""
        self._whole = (raw, definitions, repaired) if len(raw) <= _SMALL_ANCHOR else None

    def call_paths(self, key: bytes) -> CallPaths | None:
        """Return the call paths whose text has the hash `key`, if they are the latest."""
        held = self._read
        return held[1] if held is not None and held[0] == key else None

    def keep(self, key: bytes, call_paths: CallPaths | None) -> None:
        """Keep call paths, read-only, instead of those before; None = the text is of no use."""
        self._read = self._laid_out = None
        if call_paths is not None:
            columns = call_paths.ids, call_paths.regions, call_paths.parents, call_paths.lines
            for column in columns:
                column.flags.writeable = False
            self._read = key, call_paths

    def layout_of(self, definitions: Definitions) -> TreeLayout:
        """Return the layout of the call tree, the one before if the definitions are the same.

        Raises
        ------
        MalformedError
            As in `layout_of`.
        """
        held, regions = self._laid_out, definitions.regions
        if held is not None and held[0] is definitions.call_paths and held[1] == regions:
            return held[2]
        layout = layout_of(definitions)
        self._laid_out = definitions.call_paths, regions, layout
        return layout
