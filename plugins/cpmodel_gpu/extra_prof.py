"""Call trees of Extra-Prof, with GPU activities below their launches, and with energy.

Durations of host calls are inclusive. Kernels, copies and memory sets run on the GPU. Below them
and below host calls, a tree states which other activities ran at the same time. Such nodes are no
calls, and their times are already part of other activities.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path

import numpy as np
from msgspec import Struct

from callpath_modeler.diagnostics import Notices
from callpath_modeler.errors import MalformedError, reading
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.support.input_limits import InputLimits
from callpath_modeler.units import counted
from cpmodel_gpu.activities import BYTES, Copy, PathValues
from cpmodel_gpu.message_pack import unpacked
from cpmodel_gpu.names import copy_region, kernel_region
from cpmodel_gpu.paths import WHOLE_PROGRAM, Paths
from cpmodel_gpu.profile import GpuProfile, ProcessValues

MAGIC = "EXTRA PROF"
_HINT = "copy the profile again, or measure again"
_MICROJOULE = 1e-6
_ENERGY = "energy"
"""Sum of the energy of components, which are processors and GPUs and do not overlap."""
_LARGEST = 1e18
_ROUNDING = 1e-9
"""Relative error of sums of energies, which need not be whole numbers."""
_MOST_THREADS = 1 << 16
_OVERLAP = 2
"""Flag of nodes about activities that run at the same time."""
_DIRECTIONS = {
    "HtoD": Copy.TO_DEVICE,
    "HtoA": Copy.TO_DEVICE,
    "DtoH": Copy.TO_HOST,
    "AtoH": Copy.TO_HOST,
    "DtoD": Copy.WITHIN,
    "PtoP": Copy.PEER,
}
_API_CALL = re.compile(r"cu(da)?[A-Z]")
_DIRECTION = re.compile(r"\b([HDAP]to[HDAP])\b")


class Kind(IntEnum):
    """Type of a node."""

    CALL = 0
    LAUNCH = 1
    KERNEL = 2
    COPY = 3
    SET = 4
    SYNCHRONISATION = 5
    OVERHEAD = 6
    OVERLAP = 7
    MEMORY = 8


_PARADIGMS = {
    Kind.LAUNCH: ("cuda", "function"),
    Kind.SYNCHRONISATION: ("cuda", "gpu synchronisation"),
    Kind.OVERHEAD: ("measurement", "artificial"),
    Kind.MEMORY: ("cuda", "function"),
}
"""Paradigm and role of the regions of calls."""
_KINDS = frozenset(map(int, Kind))
_ON_DEVICE = frozenset({Kind.KERNEL, Kind.COPY, Kind.SET})


class _Node(Struct):
    """One node of the tree; values of threads are by the number of the thread."""

    name: str
    kind: Kind
    is_overlap: bool
    callees: list[object]
    duration: list[float]
    visits: list[float]
    size: list[float]
    counters: list[float]
    further: list[list[float]]


def extra_prof_run(path: Path, files: Mapping[int, Path]) -> GpuProfile:
    """Return the profile of a run from the files of its ranks; the rank -1 is not known.

    Raises
    ------
    InputError
        If a file is damaged.
    """
    paths, notices = Paths(), Notices(str(path))
    processes, size, exceeding = [], 0, Counter[str]()
    metrics: dict[str, tuple[Metric, float]] = {}
    for rank, file in files.items():
        with reading(file, _HINT):
            content = file.read_bytes()
            tree = _Tree(unpacked(content), paths)
            processes.append(tree.values(rank))
        size += len(content)
        exceeding.update(tree.exceeding)
        metrics |= tree.metrics
    for metric, number in (+exceeding).items():
        what = counted(number, "call path")
        more = "take longer" if metric == "time" else "have more"
        notices.note("CPM105", f"{metric}: {what} of callees that {more} than their caller",
                     number, about=metric)  # fmt: skip
    creator = {"creator": "Extra-Prof"}
    limits = InputLimits.of(path, size)
    return GpuProfile(paths, processes, notices, limits, extra=metrics, metadata=creator)


class _Tree:
    """The tree of one process.

    Attributes
    ----------
    metrics : further metrics by name, with their factors to SI units
    exceeding : number of call paths whose callees cost more than they do, by metric
    """

    def __init__(self, content: object, paths: Paths) -> None:
        if not isinstance(content, list) or len(content) < 3 or content[0] != MAGIC:
            raise MalformedError("this is no profile of Extra-Prof")
        self.exceeding = Counter[str]()
        self._paths, self._root = paths, content[2]
        counters = content[3] if len(content) > 3 else []
        further = content[4] if len(content) > 4 else []
        self._counters = [str(each)[:200] for each in _listed(counters)]
        self._further = [str(_listed(each)[0])[:200] for each in _listed(further) if _listed(each)]
        self.metrics = {
            name: (Metric(name, "1", "Counter of the GPU"), 1.0)
            for name in self._counters
            if name.endswith(".sum")
        } | {name: (Metric(name, "J", "Energy"), _MICROJOULE) for name in self._further}
        self._has_sum = len(self._further) > 1 and _ENERGY not in self.metrics
        if self._has_sum:
            self.metrics[_ENERGY] = Metric(_ENERGY, "J", "Energy of all components"), _MICROJOULE
        self._threads: list[dict[str, dict[int, float]]] = []
        self._device: dict[str, dict[int, float]] = {}

    def values(self, rank: int) -> ProcessValues:
        """Return the values of all call paths."""
        # Each entry has a raw node and its caller, so deep trees take no recursion.
        waiting: list[tuple[object, int]] = [
            (each, WHOLE_PROGRAM) for each in reversed(_node(self._root).callees)
        ]
        while waiting:
            raw, caller = waiting.pop()
            node = _node(raw)
            if node.is_overlap:
                continue
            region = self._paths.regions.number(_region(node))
            path = self._paths.callee(caller, region)
            callees = [_node(each) for each in node.callees]
            if node.kind in _ON_DEVICE:
                self._add_activity(path, node)
            else:
                self._add_call(path, node, [each for each in callees if _is_host(each)])
            self._add_further(path, node, callees)
            waiting += [(each, path) for each in reversed(node.callees)]
        threads = [
            {name: _path_values(cells) for name, cells in thread.items()}
            for thread in self._threads or [{}]
        ]
        devices = {name: _path_values(cells) for name, cells in self._device.items()}
        return ProcessValues(rank=rank, threads=threads, devices=devices)

    def _add_call(self, path: int, node: _Node, callees: Sequence[_Node]) -> None:
        for thread, visits in enumerate(node.visits):
            self._add(thread, "visits", path, visits)
        # Overhead of the measurement is part of the calls in which it occurs.
        if node.kind is Kind.OVERHEAD:
            return
        for thread, duration in enumerate(node.duration):
            inside = sum(each.duration[thread] for each in callees if thread < len(each.duration))
            self.exceeding["time"] += inside > duration
            self._add(thread, "time", path, max(0.0, duration - inside))

    def _add_activity(self, path: int, node: _Node) -> None:
        spent, number = sum(node.duration), sum(node.visits)
        for name, value in (("time", spent), ("visits", number)):
            cells = self._device.setdefault(name, {})
            cells[path] = cells.get(path, 0.0) + value
        if node.kind is not Kind.KERNEL:
            cells = self._device.setdefault(BYTES[_direction(node)], {})
            cells[path] = cells.get(path, 0.0) + sum(node.size)

    def _add_further(self, path: int, node: _Node, callees: Sequence[_Node]) -> None:
        """Add counters of the GPU, which are of each node, and energy, which is inclusive."""
        for name, value in zip(self._counters, node.counters, strict=False):
            if name in self.metrics:
                self._add(0, name, path, value)
        for k, (name, values) in enumerate(zip(self._further, node.further, strict=False)):
            inside = sum(
                sum(each.further[k])
                for each in callees
                if k < len(each.further) and not each.is_overlap and _is_host(each)
            )
            whole = sum(values)
            own = max(0.0, whole - inside)
            for metric in (name, _ENERGY)[: 1 + self._has_sum]:
                self.exceeding[metric] += inside > whole * (1 + _ROUNDING)
                self._add(0, metric, path, own)

    def _add(self, thread: int, metric: str, path: int, value: float) -> None:
        while len(self._threads) <= thread:
            self._threads.append({"time": {}, "visits": {}})
        if value:
            cells = self._threads[thread].setdefault(metric, {})
            cells[path] = cells.get(path, 0.0) + value


def _is_host(node: _Node) -> bool:
    return not node.is_overlap and node.kind not in _ON_DEVICE and node.kind is not Kind.OVERHEAD


def _direction(node: _Node) -> Copy:
    if node.kind is Kind.SET:
        return Copy.SET
    found = _DIRECTION.search(node.name)
    return _DIRECTIONS.get(found[1], Copy.OTHER) if found else Copy.OTHER


def _region(node: _Node) -> Region:
    name = node.name or "(unnamed)"
    if node.kind is Kind.KERNEL:
        return kernel_region(name)
    if node.kind in _ON_DEVICE:
        return copy_region(_direction(node))
    if node.kind is Kind.LAUNCH:
        # A launch has the name of its kernel, which is below it.
        name = "kernel launch"
    paradigm, role = _PARADIGMS.get(node.kind, ("", ""))
    if not paradigm and _API_CALL.match(name):
        paradigm = "cuda"
    return Region(name, paradigm=paradigm, role=role)


def _node(raw: object) -> _Node:
    """Return a node from its list.

    Raises
    ------
    MalformedError
        If the list is no node.
    """
    if not isinstance(raw, list) or len(raw) < 6 or not isinstance(raw[0], str):
        raise MalformedError("a node has no name, callees or values")
    name, callees, kind, flags, duration, visits, *rest = raw
    is_known = isinstance(kind, int) and kind in _KINDS
    if not isinstance(callees, list) or not is_known or not isinstance(flags, int):
        raise MalformedError("the type of a node is not known")
    rest += [[]] * (3 - len(rest))
    further = [_numbers(each) for each in _listed(rest[2])]
    is_overlap = bool(flags & _OVERLAP) or kind == Kind.OVERLAP
    return _Node(
        name, Kind(kind), is_overlap, callees, _numbers(duration), _numbers(visits),
        _numbers(rest[0]), _numbers(rest[1]), further,
    )  # fmt: skip


def _listed(raw: object) -> list[object]:
    return raw if isinstance(raw, list) else []


def _numbers(raw: object) -> list[float]:
    """Return one number per thread; older versions write the number of the only thread."""
    values = raw if isinstance(raw, list) else [raw]
    if len(values) > _MOST_THREADS:
        raise MalformedError("a node has values of too many threads")
    found = []
    for each in values:
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 <= each < _LARGEST:
            raise MalformedError("a value of a node is no number, or below zero")
        found.append(float(each))
    return found


def _path_values(cells: Mapping[int, float]) -> PathValues:
    path = np.array(sorted(cells), np.intp)
    return path, np.array([cells[each] for each in path.tolist()], np.float64)
