"""From the events of a trace to the operations of every rank."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.printable import printable
from cpmodel_commspec import collectives
from cpmodel_commspec.collectives import Form
from cpmodel_commspec.communicators import divisions, members
from cpmodel_commspec.operations import (
    ANY_ORDER,
    FIELDS,
    POSTED,
    Awaited,
    Half,
    Kind,
    Mode,
    Recorded,
    Shape,
    Traced,
)
from cpmodel_commspec.recording import timing
from cpmodel_commspec.recording.timing import events_of as count_events
from cpmodel_otf2.definitions import UNRESOLVED, Location, TraceDefinitions
from cpmodel_otf2.events import EventSource, Message, Request
from cpmodel_otf2.paths import PathTable
from cpmodel_otf2.replay import Counters, Forks, Replay

_UNKNOWN_COMM = "operations on communicators that are not defined, or between two groups"
_NEVER_COMPLETED = {
    Kind.IRECV: "receives that were posted and never completed",
    Kind.ICOLLECTIVE: "non-blocking collectives that were never completed",
}
_CANCELLED = "operations that were cancelled"
_OF_THREADS = "operations of further threads"
_ONE_SIDED = "operations on shared windows"
_MODES = {"s": Mode.SYNCHRONOUS, "b": Mode.BUFFERED}
_SENDS = re.compile(r"MPI_I?([sb])send", re.IGNORECASE)
_EXCHANGES = re.compile(r"MPI_Sendrecv", re.IGNORECASE)
_CART = re.compile(r"MPI_Cart_create", re.IGNORECASE)
_SENT, _CANCEL = timing.REQUEST + Request.ISEND_COMPLETE, timing.REQUEST + Request.CANCELLED
_ENDS = frozenset({int(Message.IRECV), _SENT, _CANCEL})
"""Rows that end an operation, if it was started."""

_KINDS: Mapping[int, Kind] = {
    Message.SEND: Kind.SEND,
    Message.ISEND: Kind.ISEND,
    Message.RECV: Kind.RECV,
    Message.IRECV: Kind.RECV,
}
_ALL_OF_THEM = re.compile(r"MPI_(wait|test)all", re.IGNORECASE)
_START_AND_END = re.compile(r"MPI_(init|finalize)", re.IGNORECASE)


def record(source: EventSource, report: Callable[[int, int], None]) -> Traced:
    """Return the operations of all ranks.

    Parameters
    ----------
    report : told how many locations were read, and how many there are

    Raises
    ------
    InputError
        If events cannot be read.
    """
    recording, locations = _Recording(source), source.definitions.locations
    for number, location in enumerate(locations):
        report(number, len(locations))
        recording.add(location)
    report(len(locations), len(locations))
    return recording.traced()


class _Recording:
    """The operations of the ranks read so far."""

    def __init__(self, source: EventSource) -> None:
        self._source, self._definitions = source, source.definitions
        self._paths, self._forks = PathTable(), Forks()
        self._names = timing.CallNames(self._paths, self._definitions)
        self._mpi = timing.MpiPaths(self._paths, self._definitions)
        self._watch, self._waiting = (
            timing.Watch(self._definitions),
            timing.waits(self._definitions),
        )
        self._keys: dict[_Key, int] = {}
        self._left_out: Counter[str] = Counter()
        self._ranks: dict[int, Recorded] = {}
        self._program, self._events = "", 0

    def add(self, location: Location) -> None:
        """Read the operations of a location; only ranks have operations."""
        rank = self._definitions.ranks.get(location.reference)
        one = _Rank(rank or 0, location, self._definitions, self._names, self._left_out)
        replay = Replay(self._paths, self._forks, Counters(self._definitions.metric_classes))
        times = timing.RankTimes(self._mpi, self._definitions)
        passed = seen = 0
        for batch in self._source.batches(location):
            seen += count_events(batch)
            if rank is None:
                messages, calls = len(batch.messages.at), len(batch.collectives.at)
                self._left_out[_OF_THREADS] += messages + calls
                continue
            replay.add(batch)
            self._watch.count(batch, self._left_out)
            begun = one.add(timing.rows(batch, replay, passed, self._waiting))
            times.add(batch, replay, [at - passed for at in begun])
            passed += len(batch.calls.time)
        # Not every writer counts.
        self._events += location.events or seen
        self._program = self._program or printable(replay.tally.program)
        if rank is not None:
            self._ranks[rank] = one.finish(self._keys, times.finish())
            self._left_out[timing.CLOCK] += times.mended

    def traced(self) -> Traced:
        """Return all operations; a rank whose events are missing has none."""
        used = {key.comm for key in self._keys if key.comm >= 0}
        communicators, numbers = divisions(self._definitions, used)
        found = _shapes(list(self._keys), numbers, self._names)
        shapes = {shape: k for k, shape in enumerate(dict.fromkeys(found))}
        renumbered = np.array([shapes[shape] for shape in found], np.int64)
        nothing = Recorded(np.empty(0, np.int64), np.empty((0, len(FIELDS)), np.int64))
        ranks = [self._ranks.get(k, nothing) for k in range(max(self._ranks, default=-1) + 1)]
        return Traced(
            self._program,
            self._events,
            tuple(shapes),
            communicators,
            tuple(replace(x, shapes=renumbered[x.shapes]) for x in ranks),
            {what: count for what, count in self._left_out.items() if count > 0},
        )


class _Key(NamedTuple):
    """A `Shape` before communicators and call paths have their names.

    A wait is for any of `awaited`, which say the same of it, or else for `places`.
    """

    kind: Kind
    name: str
    comm: int
    form: Form
    awaited: frozenset[Awaited]
    places: tuple[int, ...]
    is_awaited: bool
    is_any: bool
    call: str
    grid: tuple[int, ...]
    path: int


def _shapes(keys: Sequence[_Key], number: dict[int, int], names: timing.CallNames) -> list[Shape]:
    """Return the shape of each key; waits of one call path get a common meaning if there is one."""
    common: dict[tuple[int, str], frozenset[Awaited]] = {}
    for key in keys:
        if key.awaited:
            about = key.path, key.call
            common[about] = common.get(about, key.awaited) & key.awaited
    shapes = []
    for kind, name, comm, form, awaited, places, is_awaited, is_any, call, grid, path in keys:
        words = common.get((path, call)) or awaited
        meant = min(words, key=list(Awaited).index) if awaited else None
        shapes.append(
            Shape(
                kind,
                name,
                number.get(comm, -1),
                form,
                meant or Awaited.CHOSEN,
                () if meant else places,
                is_awaited,
                is_any,
                call,
                grid,
                site=names.site(path),
            )
        )
    return shapes


@dataclass(slots=True)
class _Op:
    """An incomplete operation; `done` are the numbers of the operations that a wait completes."""

    kind: Kind
    path: int
    call: str
    name: str = ""
    comm: int = -1
    form: Form = Form.EACH
    values: tuple[int, ...] = (0,) * len(FIELDS)
    is_awaited: bool = True
    is_any: bool = False
    grid: tuple[int, ...] = ()
    done: list[int] = field(default_factory=list)


class _Rank:
    """The operations of one rank, gathered batch by batch."""

    def __init__(
        self, rank: int, location: Location, definitions: TraceDefinitions, names: timing.CallNames,
        left_out: Counter[str],
    ) -> None:  # fmt: skip
        self._rank, self._location, self._definitions = rank, location, definitions
        self._names, self._left_out = names, left_out
        self._ops: list[_Op | None] = []
        self._open: dict[int, int] = {}
        self._abandoned: list[int] = []
        self._groups: dict[int, tuple[int, ...]] = {}
        self._at = -1

    def add(self, events: Iterable[Sequence[int]]) -> list[int]:
        """Take in the events of a batch, see `rows`.

        Returns
        -------
        the number of calls before each operation that begins in the batch
        """
        begun = []
        for what, at, path, peer, comm, tag, size, received, request, is_any in events:
            is_same_call, self._at, known = at == self._at, at, len(self._ops)
            posted = self._open.pop(request, None) if what in _ENDS else None
            if posted is not None:
                self._end(what, path, posted, (peer, comm, tag, size), is_same_call)
            elif what == timing.COLLECTIVE:
                self._collective(path, (peer, comm, tag, size, received), request, is_same_call)
            elif what < timing.REQUEST:
                op = self._op(path, is_any)
                self._message(op, what, (peer, comm, tag, size), request, is_same_call)
            elif what == timing.WAIT:
                self._ops.append(self._op(path, is_any))
            elif what == timing.REQUEST + Request.IRECV_POSTED:
                self._post(self._op(path, is_any), Kind.IRECV, request)
            elif what == timing.REQUEST + Request.COLLECTIVE_POSTED:
                self._left_out[timing.NOT_RECORDED] -= 1
                self._post(self._op(path, is_any), Kind.ICOLLECTIVE, request)
            if len(self._ops) > known:
                begun.append(at)
        return begun

    def finish(self, keys: dict[_Key, int], times: timing.Times) -> Recorded:
        """Return all operations, numbering their shapes in `keys`."""
        for number in (*self._abandoned, *self._open.values()):
            op = self._ops[number]
            if op is not None and op.kind in _NEVER_COMPLETED:
                self._ops[number] = None
                self._left_out[_NEVER_COMPLETED[op.kind]] += 1
            elif op is not None:
                op.is_awaited = False
        calling = self._without_order(times.calling)
        shapes, values = array("q"), array("q")
        under_way: dict[int, Kind] = {}
        for number, op in enumerate(self._ops):
            if op is None:
                continue
            awaited, places = frozenset[Awaited](), tuple[int, ...]()
            if op.kind is Kind.WAIT:
                awaited, places = _awaited(op, under_way)
                for done in op.done:
                    del under_way[done]
            elif op.kind in POSTED and op.is_awaited:
                under_way[number] = op.kind
            key = _Key(
                *(op.kind, op.name, op.comm, op.form, awaited, places, op.is_awaited, op.is_any),
                *(op.call, op.grid, op.path),
            )
            shapes.append(keys.setdefault(key, len(keys)))
            values.extend(op.values)
        is_kept = np.array([op is not None for op in self._ops], np.bool_)
        self._ops.clear()
        table = np.array(values, np.int64).reshape(-1, len(FIELDS))
        computing, last = _kept(times, is_kept)
        return Recorded(
            np.array(shapes, np.int64), table, computing, calling[is_kept], last, times.total
        )

    def _without_order(self, calling: FloatArray) -> FloatArray:
        """Make waits that follow each other one, if accident decides what each of them completes.

        Returns
        -------
        `calling` with the sum of such calls at the first one
        """
        calling = calling.copy()
        before: tuple[int, _Op] | None = None
        for number, op in enumerate(self._ops):
            if op is None:
                continue
            if op.kind is not Kind.WAIT or op.call.lower() not in ANY_ORDER:
                before = None
            elif before is None or (before[1].call, before[1].path) != (op.call, op.path):
                before = number, op
            else:
                before[1].done += op.done
                calling[before[0]] += calling[number]
                self._ops[number] = None
        return calling

    def _op(self, path: int, is_any: int = 0) -> _Op:
        return _Op(Kind.WAIT, *self._names.of(path), is_any=bool(is_any))

    def _end(
        self, what: int, path: int, posted: int, about: tuple[int, ...], is_same_call: bool
    ) -> None:
        """Note that an operation ended: a receive has its message only now."""
        started = self._ops[posted]
        assert started is not None
        peer, comm, tag, size = about
        if what == _CANCEL:
            self._left_out[_CANCELLED] += 1
            self._ops[posted] = None
        elif what == _SENT:
            self._complete(path, posted, is_same_call)
        elif self._is_unknown(peer, comm):
            self._ops[posted] = None
        else:
            started.comm, started.values = comm, (peer, tag, size, 0, 0, 0, 0)
            self._complete(path, posted, is_same_call)

    def _is_unknown(self, peer: int, comm: int) -> bool:
        """Count a message whose partner or communicator is not known."""
        is_unknown = peer == UNRESOLVED or not self._members(comm)
        if is_unknown:
            self._left_out[_UNKNOWN_COMM] += 1
        return is_unknown

    def _message(
        self, op: _Op, what: int, about: tuple[int, ...], request: int, is_same_call: bool
    ) -> None:
        peer, comm, tag, size = about
        if self._is_unknown(peer, comm):
            return
        op.kind, op.comm, op.values = _KINDS[what], comm, (peer, tag, size, 0, 0, 0, 0)
        before = self._ops[-1] if is_same_call and op.call and self._ops else None
        if op.kind is Kind.RECV:
            taken = (size, 0, peer, tag)
            if before is not None and (
                before.kind is Kind.SEND or (before.kind, before.name) == (Kind.EXCHANGE, Half.SEND)
            ):
                before.kind, before.name, before.is_any = Kind.EXCHANGE, Half.BOTH, op.is_any
                before.values = (*before.values[:3], *taken)
                return
            if _EXCHANGES.match(op.call):
                op.kind, op.name, op.values = Kind.EXCHANGE, Half.RECEIVE, (0, 0, 0, *taken)
        elif op.kind is Kind.SEND and _EXCHANGES.match(op.call):
            op.kind, op.name = Kind.EXCHANGE, Half.SEND
        else:
            mode = _SENDS.match(op.call)
            op.name = _MODES[mode[1].lower()] if mode else Mode.STANDARD
        if op.kind is Kind.ISEND:
            self._start(request)
        self._ops.append(op)

    def _collective(
        self, path: int, about: tuple[int, ...], request: int, is_same_call: bool
    ) -> None:
        operation, comm, root, sent, received = about
        op = self._op(path)
        group = self._members(comm)
        posted = self._open.pop(request, None) if request else None
        if (
            operation < len(collectives.NAMES)
            and collectives.NAMES[operation] in collectives.ROOTED
        ):
            group = group if root in group else ()
        if not group or operation > collectives.DESTROY_HANDLE:
            self._left_out[_ONE_SIDED if group else _UNKNOWN_COMM] += 1
            if posted is not None:
                self._ops[posted] = None
            return
        if operation >= len(collectives.NAMES):
            if not _START_AND_END.match(op.call):
                op.kind, op.comm, op.name = Kind.HANDLE, comm, op.call
                if _CART.match(op.call):
                    op.grid = self._definitions.grid_within(len(group))
                self._ops.append(op)
            return
        name, place = collectives.NAMES[operation], group.index(self._rank)
        at_root = group.index(root) if name in collectives.ROOTED else 0
        form, *sizes = collectives.share(name, len(group), place, at_root, sent, received)
        made = op if posted is None else self._ops[posted]
        assert made is not None
        made.name, made.comm, made.form = name, comm, form
        made.values = (0, 0, *sizes, at_root, 0, 0)
        if posted is None:
            made.kind = Kind.COLLECTIVE
            self._ops.append(made)
        else:
            self._complete(path, posted, is_same_call)

    def _post(self, op: _Op, kind: Kind, request: int) -> None:
        op.kind = kind
        self._start(request)
        self._ops.append(op)

    def _start(self, request: int) -> None:
        """Note the request of the next operation; an older one of this number never ends."""
        if request in self._open:
            self._abandoned.append(self._open[request])
        self._open[request] = len(self._ops)

    def _complete(self, path: int, number: int, is_same_call: bool) -> None:
        """Note that a wait completed an operation; one call is one wait.

        Parameters
        ----------
        path : of the function that waits
        """
        before = self._ops[-1]
        if not (is_same_call and before is not None and before.kind is Kind.WAIT):
            before = self._op(path)
            self._ops.append(before)
        before.done.append(number)

    def _members(self, comm: int) -> tuple[int, ...]:
        if comm not in self._groups:
            group = members(self._definitions, comm, self._location.reference)
            self._groups[comm] = group if self._rank in group else ()
        return self._groups[comm]


def _kept(times: timing.Times, is_kept: BoolArray) -> tuple[FloatArray, float]:
    """Return the computation before each operation that is kept, and after the last one."""
    following = np.concatenate(([0], np.cumsum(is_kept)))[:-1]
    sums = np.bincount(following, times.computing, int(is_kept.sum()) + 1).astype(np.float64)
    return sums[:-1], float(sums[-1]) + times.last


def _awaited(wait: _Op, under_way: dict[int, Kind]) -> tuple[frozenset[Awaited], tuple[int, ...]]:
    """Return the meanings that a wait for many can have, and the places of its operations."""
    done, words = set(wait.done), []
    if _ALL_OF_THEM.match(wait.call) or wait.call.lower() in ANY_ORDER:
        kinds = {under_way[number] for number in done}
        pending = Counter(under_way.values())
        for awaited, meant in (
            (Awaited.SENDS, {Kind.ISEND}),
            (Awaited.RECEIVES, {Kind.IRECV}),
            (Awaited.ALL, POSTED),
        ):
            if kinds <= meant and len(done) == sum(pending[kind] for kind in meant):
                words.append(awaited)
    places: list[int] = []
    for place, number in enumerate(under_way):
        if len(places) == len(done):
            break
        if number in done:
            places.append(place)
    return frozenset(words), tuple(places)
