"""Timed regions of a Python program, for ``cpmodel run --profiler timer``.

>>> from callpath_modeler.timer import region
>>> with region("solve"):
...     pass

Each process writes a table ``profile.RANK.0.0`` in the format of TAU to ``$CPM_RUN_DIRECTORY`` when
it exits. Without this variable, nothing is measured. This file needs nothing but Python, so it may
be copied to a machine without cpmodel.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from contextlib import ContextDecorator

_DIRECTORY, _PROGRAM = "CPM_RUN_DIRECTORY", "CPM_PROGRAM"
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
_MOST = 20_000
"""Largest number of regions; the time of further ones stays with their callers."""


class _Region:
    """Visits and nanoseconds of one call path."""

    __slots__ = ("callees", "caller", "calls", "inside", "name")

    def __init__(self, name: str, caller: _Region | None) -> None:
        self.name = name
        self.caller = caller
        self.callees: dict[str, _Region] = {}
        self.calls = self.inside = 0


class _Timer:
    """The regions of this process."""

    def __init__(self, directory: str, program: str) -> None:
        self.began = time.perf_counter_ns()
        self.directory = directory
        self.thread = threading.get_ident()
        self.process = os.getpid()
        self.root = self.now = _Region(_clean(program), None)
        self.root.calls = self.count = 1
        self.rank = -1
        atexit.register(self.write)

    def enter(self, name: str) -> _Region | None:
        """Begin a region; None = it is not timed."""
        if threading.get_ident() != self.thread:
            return None
        if self.rank < 0:
            self.rank = _rank()
        found = self.now.callees.get(name)
        if found is None:
            if self.count == _MOST:
                return None
            found = self.now.callees[name] = _Region(_clean(name), self.now)
            self.count += 1
        found.calls += 1
        self.now = found
        return found

    def write(self) -> None:
        """Write the table; an error is a message, because the program has ended well."""
        if os.getpid() != self.process:
            return  # a copy that fork made
        self.root.inside = time.perf_counter_ns() - self.began
        lines = []
        waiting = [(self.root, self.root.name)]
        while waiting:
            each, path = waiting.pop()
            callees = each.callees.values()
            own = max(0, each.inside - sum(callee.inside for callee in callees))
            group = "TAU_CALLPATH" if each.caller else "TAU_DEFAULT"
            called = sum(callee.calls for callee in callees)
            lines.append(
                f'"{path}" {each.calls} {called} {own / 1000:.3f} {each.inside / 1000:.3f} 0 '
                f'GROUP="{group}"'
            )
            waiting += [(callee, f"{path} => {callee.name}") for callee in callees]
        program = "".join("_" if c in "<>&" else c for c in self.root.name)
        attribute = f"<attribute><name>Executable</name><value>{program}</value></attribute>"
        head = [
            f"{len(lines)} templated_functions_MULTI_TIME",
            f"# Name Calls Subrs Excl Incl ProfileCalls # <metadata>{attribute}</metadata>",
        ]
        path = os.path.join(self.directory, f"profile.{max(self.rank, 0)}.0.0")  # noqa: PTH118
        try:
            with open(path, "w", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                file.write("\n".join([*head, *lines, "0 aggregates", ""]))
        except OSError as cause:
            sys.stderr.write(f"callpath_modeler.timer: {path}: {cause.strerror}\n")


def _clean(name: str) -> str:
    """Return a name without quotation marks and control characters."""
    return "".join(c if c.isprintable() and c != '"' else "_" for c in name) or "_"


def _rank() -> int:
    """Return the rank of this process; -1 = not known yet."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized():
        return int(mpi.COMM_WORLD.Get_rank())
    told = (os.environ.get(name, "") for name in _RANKS)
    return next((int(rank) for rank in told if rank.isdecimal()), -1)


_TIMER = (
    _Timer(os.environ[_DIRECTORY], os.environ.get(_PROGRAM) or "program")
    if os.environ.get(_DIRECTORY)
    else None
)


class region(ContextDecorator):  # noqa: N801 - it is used like a function
    """Time a block, or each call of a function that it decorates.

    Parameters
    ----------
    name : name of the region; regions may be nested
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[tuple[_Region | None, int]] = []

    def __enter__(self) -> region:
        found = None if _TIMER is None else _TIMER.enter(self._name)
        self._open.append((found, time.perf_counter_ns()))
        return self

    def __exit__(self, *_: object) -> None:
        ended = time.perf_counter_ns()
        found, began = self._open.pop()
        if found is not None and _TIMER is not None:
            found.inside += ended - began
            _TIMER.now = found.caller or _TIMER.root
