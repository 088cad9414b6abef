"""From the defined call paths to the call tree, and where the rows of a metric belong in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import PROGRAM, Region
from cpmodel_scorep.definitions import (
    CallPaths,
    Definitions,
    MalformedError,
    MetricKind,
)

_STRUCTURAL = ("TASKS", "THREADS", "KERNELS", "MEASUREMENT OFF", "TRACE BUFFER FLUSH")
_ITERATION = re.compile(r"(instance|iteration)=\d+")


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """Where stored rows belong.

    Attributes
    ----------
    tree : the call paths that are handed out
    parents : int64 [defined call paths], row of the caller or -1, in preorder
    rows : int64 [defined call paths], row in `tree` or -1 if detached
    ids : int64 [defined call paths], their ids
    program : the region of the program root as defined, if there is one
    """

    tree: CallTree
    parents: NDArray[np.int64]
    rows: NDArray[np.int64]
    ids: NDArray[np.int64]
    program: Region | None

    @property
    def detached(self) -> int:
        """Number of call paths below (and with) detached task roots."""
        return int(np.count_nonzero(self.rows < 0))

    def enumeration(self, kind: MetricKind) -> NDArray[np.int64]:
        """Return which defined call path each row number of a metric means, [defined]."""
        n = len(self.parents)
        if kind is MetricKind.INCLUSIVE:
            # A root first, then the callees of every call path in preorder.
            key = np.where(self.parents >= 0, self.parents, np.arange(n) - 0.5)
            return np.argsort(key, kind="stable")
        if kind is MetricKind.SIMPLE:
            return np.argsort(self.ids, kind="stable")
        return np.arange(n)


def layout_of(definitions: Definitions) -> TreeLayout:
    """Build the call tree.

    Raises
    ------
    MalformedError
        If there are no call paths, or one calls a region that is not defined.
    """
    paths = definitions.call_paths
    if not len(paths.ids):
        raise MalformedError("no call paths")
    used, region = np.unique(paths.regions, return_inverse=True)
    try:
        regions = [definitions.regions[number] for number in used.tolist()]
    except KeyError as missing:
        raise MalformedError(f"region {missing} is not defined") from None
    kept = ~_task_rows(paths, region, regions)
    rows = np.where(kept, np.cumsum(kept) - 1, -1)
    if not kept.any():
        raise MalformedError("no call paths beside tasks")
    parents = paths.parents[kept]
    parents = np.where(parents >= 0, rows[parents], -1)
    program = _name_program(region, regions, np.flatnonzero(kept & (paths.parents < 0)))
    regions = [_as_iteration(known) for known in regions]
    annotation, annotations = _annotations(paths)
    tree = CallTree(
        _column(parents),
        _column(_ends(parents)),
        _column(region[kept]),
        _column(annotation[kept]),
        tuple(regions),
        annotations,
    )
    return TreeLayout(tree, paths.parents, rows, paths.ids, program)


def _task_rows(
    paths: CallPaths, region: NDArray[np.intp], regions: list[Region]
) -> NDArray[np.bool_]:
    """Mark the trees of tasks: the regions that ran the tasks already hold their time.

    Score-P puts them below the program; before it had a program root, they were roots themselves.
    A root is marked only if all its tasks occur in the rest of the call tree, too.
    """
    tasks = np.array([r.name == "TASKS" and _is_artificial(r) for r in regions])[region]
    dropped = np.zeros(len(region), np.bool_)
    if not tasks.any():
        return dropped
    artificial = np.array([_is_artificial(r) for r in regions])[region]
    ends = _ends(paths.parents)
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
    region: NDArray[np.signedinteger], regions: list[Region], roots: NDArray[np.intp]
) -> Region | None:
    """Give artificial roots their common name; executables are called after sizes and scales.

    `region` and `regions` are changed in place: the region gets a copy of its own, because
    it may be called elsewhere, too.
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


def _annotations(paths: CallPaths) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    annotation = np.zeros(len(paths.ids), np.int32)
    known = {"": 0}
    for row, pairs in paths.parameters.items():
        text = "[" + ",".join(f"{key}={value}" for key, value in pairs) + "]"
        annotation[row] = known.setdefault(text, len(known))
    return annotation, tuple(known)


def _ends(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row after each subtree, [n]: the next row that is not deeper."""
    n = len(parents)
    end = np.arange(1, n + 1)
    # Later rows come first, so the end of a call path is final before its caller asks for it.
    ends, callers = end.tolist(), parents.tolist()
    for row in range(n - 1, -1, -1):
        caller = callers[row]
        if caller >= 0 and ends[row] > ends[caller]:
            ends[caller] = ends[row]
    return np.array(ends, np.int64)


def _column(values: NDArray[np.integer]) -> NDArray[np.int32]:
    column = values.astype(np.int32)
    column.flags.writeable = False
    return column
