"""Calls around events: names, callers, and calls without events."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.printable import printable, shortened
from cpmodel_otf2.definitions import TraceDefinitions
from cpmodel_otf2.events import Batch
from cpmodel_otf2.paths import OUTSIDE, PathTable
from cpmodel_otf2.replay import Replay

COLLECTIVE = 100
"""The kind of a row that is neither a `Message` nor, from `REQUEST` on, a `Request`."""

REQUEST = 10
WAIT = 99
"""The kind of a row at the beginning of a call that waits."""

_LONGEST = 60
"""Characters of the name of an MPI function."""

_LEFT_OUT = {
    "one-sided calls": r"MPI_(R?(put|get|accumulate|get_accumulate)|fetch_and_op|"
    r"compare_and_swap|win_\w+)$",
    "calls of file I/O": r"MPI_File_\w+$",
    "neighbourhood collectives": r"MPI_I?neighbor_\w+$",
}
NOT_RECORDED = "non-blocking collectives that were not recorded"
_NON_BLOCKING = (
    r"MPI_I(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|allreduce|reduce|"
    r"reduce_scatter(_block)?|scan|exscan)$"
)


class CallNames:
    """The MPI function and its caller, by call path."""

    def __init__(self, paths: PathTable, definitions: TraceDefinitions) -> None:
        self._paths, self._regions = paths, definitions.regions
        self._known: dict[int, tuple[int, str]] = {OUTSIDE: (OUTSIDE, "")}

    def of(self, path: int) -> tuple[int, str]:
        """Return the call path that calls MPI, and the MPI function; "" for other functions."""
        if path not in self._known:
            region = self._regions.get(int(self._paths.region[path]))
            is_mpi = region is not None and region.paradigm == "mpi"
            caller = int(self._paths.parent[path]) if is_mpi else path
            self._known[path] = caller, _call_name(region.name) if region and is_mpi else ""
        return self._known[path]

    def site(self, path: int) -> tuple[str, ...]:
        """Return the functions of a call path; recursive functions are in it once."""
        chain = [self._regions.get(region) for region in self._paths.regions_of(path)]
        return tuple(name for name, _ in groupby(x.name for x in chain if x is not None))


def _call_name(name: str) -> str:
    """Return the name of a function as outputs show it: names in traces may be anything."""
    return printable(shortened(name, _LONGEST))


class Watch:
    """Counter of calls that communicate without an event."""

    def __init__(self, definitions: TraceDefinitions) -> None:
        self._regions = {
            what: np.array(
                [
                    k
                    for k, x in definitions.regions.items()
                    if re.match(pattern, x.name, re.IGNORECASE)
                ],
                np.int64,
            )
            for what, pattern in {**_LEFT_OUT, NOT_RECORDED: _NON_BLOCKING}.items()
        }

    def count(self, batch: Batch, counts: Counter[str]) -> None:
        """Add the calls of a batch to the counts of each kind."""
        for what, regions in self._regions.items():
            if len(regions):
                counts[what] += int(np.isin(batch.calls.code, regions).sum())


def waits(definitions: TraceDefinitions) -> Int64Array:
    """Return the references of functions that wait until operations are complete."""
    regions = definitions.regions.items()
    return np.array(
        [k for k, x in regions if re.match(r"MPI_wait(all)?$", x.name, re.IGNORECASE)], np.int64
    )


def rows(batch: Batch, replay: Replay, passed: int, waiting: Int64Array) -> list[list[int]]:
    """Return messages, collective operations, requests and calls that wait, in order.

    Parameters
    ----------
    replay : has taken in the batch
    passed : number of calls before the batch
    waiting : see `waits`

    Returns
    -------
    kind, calls before, call path, peer or operation, communicator, tag or root, bytes (sent),
    bytes received, request, whether a receive is posted for any source
    """
    messages, collectives, requests = batch.messages, batch.collectives, batch.requests
    none = np.zeros(len(messages.at), np.int64)
    entered = np.flatnonzero(np.isin(batch.calls.code, waiting)) + 1
    nothing = np.zeros(len(entered), np.int64)
    parts = [
        _table(messages.position, messages.kind, messages.at, messages.peer, messages.comm,
               messages.tag, messages.bytes, none, messages.request, messages.any_source),
        _table(collectives.position, np.full(len(collectives.at), COLLECTIVE), collectives.at,
               collectives.operation, collectives.comm, collectives.root, collectives.sent,
               collectives.received, collectives.request,
               np.zeros(len(collectives.at), np.int64)),
        _table(requests.position, requests.kind + REQUEST, requests.at,
               *[np.zeros(len(requests.at), np.int64)] * 5, requests.request,
               requests.any_source),
        _table(nothing, nothing + WAIT, entered, *[nothing] * 7),
    ]  # fmt: skip
    table = np.concatenate(parts)
    table = table[np.lexsort((table[:, 0], table[:, 2]))]
    # The position has done its work, and its column is that of the path.
    what, at = table[:, 1].copy(), table[:, 2]
    table[:, 0], table[:, 1], table[:, 2] = what, at + passed, replay.paths_at(at)
    found: list[list[int]] = table.tolist()
    return found


def events_of(batch: Batch) -> int:
    """Return how many events of calls and communication a batch has."""
    columns = (batch.calls.time, batch.messages.at, batch.collectives.at, batch.requests.at)
    return sum(map(len, columns))


def _table(*columns: Int64Array) -> Int64Array:
    return np.stack(columns, axis=1) if len(columns[0]) else np.empty((0, len(columns)), np.int64)
