"""Deadlocks that the simulation of a program finds: the ranks, the lines and the cycle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from callpath_modeler.profile.schema import PROGRAM
from callpath_modeler.units import counted
from cpmodel_commspec.operations import FIELDS, TOGETHER, Kind, Recorded, Shape, Traced
from cpmodel_commspec.simulation.simulator import Blocked, Outcome, Sends, simulate
from cpmodel_commspec.specification import Specification


def mismatches(told: Specification) -> Iterator[str]:
    """Yield the reasons why the ranks would not reach the end, in words."""
    return mismatches_of(told, [told.of_rank(rank) for rank in range(told.processes)])


def mismatches_of(told: Traced | Specification, ranks: Sequence[Recorded]) -> Iterator[str]:
    """Yield the reasons why ranks with the shapes of a trace would not reach the end, in words."""
    sent, received = _messages(told.shapes, ranks)
    same = sent.shape == received.shape and (sent == received).all()
    if not same:
        pairs = {tuple(row) for row in sent.tolist()} ^ {tuple(row) for row in received.tolist()}
        yield (
            f"{len(sent)} messages are sent and {len(received)} received; of other ranks, tags or "
            f"sizes are {len(pairs)} of them"
        )
    for number, communicator in enumerate(told.communicators):
        for group in communicator.groups:
            calls = {_together(told.shapes, ranks[rank], number) for rank in group}
            if len(calls) > 1:
                yield (
                    f"ranks {group[0]} to {group[-1]} do not all make the same collective calls "
                    f"on {communicator.name}"
                )
                break


def _messages(shapes: Sequence[Shape], ranks: Sequence[Recorded]) -> tuple[Int64Array, Int64Array]:
    """Return (sender, receiver, communicator, tag, bytes) of all messages, sorted but for bytes.

    Messages of one sender, receiver, communicator and tag stay in their order, which is that in
    which they are matched.
    """
    ends = {end for shape in shapes for end in shape.ends}
    comms = np.array([shape.comm for shape in shapes], np.int64)
    tables: dict[bool, list[Int64Array]] = {True: [], False: []}
    for end in sorted(ends):
        has_end = np.array([end in shape.ends for shape in shapes], np.bool_)
        columns = list(end.columns)
        for rank, one in enumerate(ranks):
            here = np.flatnonzero(has_end[one.shapes])
            peer, tag, size = one.values[here][:, columns].T
            own = np.full(len(here), rank)
            first, second = (own, peer) if end.is_sent else (peer, own)
            about = [here, first, second, comms[one.shapes[here]], tag, size]
            tables[end.is_sent].append(np.stack(about, axis=1))
    return _sorted(tables[True]), _sorted(tables[False])


def _sorted(parts: list[Int64Array]) -> Int64Array:
    """Return rows of (operation, sender, receiver, communicator, tag, bytes) without the first."""
    table = np.concatenate([np.empty((0, 6), np.int64), *parts])
    # A rank may have messages of a kind before those of another: the operation keeps their order.
    order = np.lexsort([table[:, k] for k in (0, 4, 3, 2, 1)])
    return table[order, 1:]


def _together(shapes: Sequence[Shape], one: Recorded, number: int) -> bytes:
    """Return the collective calls of a rank on a communicator, in a form that compares."""
    names = sorted({shape.name for shape in shapes})
    codes = np.array([names.index(shape.name) for shape in shapes], np.int64)
    is_meant = [shape.comm == number and shape.kind in TOGETHER for shape in shapes]
    here = np.array(is_meant, np.bool_)[one.shapes]
    roots = one.values[:, FIELDS.index("root")]
    return np.stack([codes[one.shapes], roots])[:, here].tobytes()


_SHOWN = 4
"""Ranks of a cycle that a message shows."""

INSTEAD = "write it as text or json"
"""Hint of errors about programs that cannot be written."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank of a deadlock.

    Attributes
    ----------
    line : the line of the specification, from 1
    call : the operation that does not complete, in words
    sites : the call paths of the line, below the program
    waits_for : the rank that it waits for; -1 for any
    """

    rank: int
    line: int
    call: str
    sites: tuple[str, ...]
    waits_for: int

    def __str__(self) -> str:
        """Return the wait in words."""
        whom = "any rank" if self.waits_for < 0 else f"rank {self.waits_for}"
        where = f" of {' or '.join(self.sites)}" if self.sites else ""
        return f"rank {self.rank} in line {self.line} ({self.call}{where}) waits for {whom}"


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Ranks that wait for each other, or for a rank that has ended.

    Attributes
    ----------
    sends : the kind of standard sends with which the program hangs
    waits : the cycle; without a cycle, the way to the rank that has ended
    is_cycle : whether the last rank waits for the first
    blocked : the number of ranks that do not reach the end
    is_order : whether messages have to arrive in another order than the recorded one
    """

    sends: Sends
    waits: tuple[Wait, ...]
    is_cycle: bool
    blocked: int
    is_order: bool = False

    def __str__(self) -> str:
        """Return the deadlock in one line."""
        when = "the program hangs"
        if self.is_order:
            when = "the program can hang if messages arrive in another order"
        elif self.sends is Sends.RENDEZVOUS:
            when = "the program can hang if sends wait for their receives"
        parts = [str(wait) for wait in self.waits[:_SHOWN]]
        if len(self.waits) > _SHOWN:
            parts.append(f"and so on for {counted(len(self.waits) - _SHOWN, 'more rank')}")
        last = self.waits[-1].waits_for
        is_stuck = not self.is_cycle and last >= 0
        end = f", which has ended; {counted(self.blocked, 'rank')} blocked" if is_stuck else ""
        return f"{when}: {', '.join(parts)}{end}"


def deadlock(told: Specification) -> Deadlock | None:
    """Return a deadlock of a program, or None if it runs to the end.

    A program without a deadlock with rendezvous sends has none with eager sends either.
    """
    ranks = [told.of_rank(rank) for rank in range(told.processes)]
    # The sources are resolved, so that the order of messages is fixed.
    shapes = [msgspec.structs.replace(shape, is_any=False) for shape in told.shapes]
    found = None
    for sends in (Sends.RENDEZVOUS, Sends.EAGER):
        outcome = simulate(shapes, told.communicators, ranks, sends)
        if not outcome.blocked:
            break
        found = explain(told, outcome, sends)
    return found


def require_safe(told: Specification, *, allow_unsafe: bool = False) -> Deadlock | None:
    """Return the deadlock of a program that the user allows, or None.

    Raises
    ------
    DataError
        If operations do not match, or if the program can hang and `allow_unsafe` is False.
    """
    for what in mismatches(told):
        raise DataError(f"no program: {what}", hint=f"trace all ranks to the end, or {INSTEAD}")
    found = deadlock(told)
    if found is not None and not allow_unsafe:
        raise DataError(f"no program: {found}", hint=f"{INSTEAD}, or use --allow-unsafe")
    return found


def sites(shape: Shape) -> tuple[str, ...]:
    """Return the call paths of a line, without the root that stands for the program."""
    paths = ["/".join(site[site[:1] == (PROGRAM,) :]) for site in (shape.site, *shape.others)]
    return tuple(printable(path) for path in paths if path)


def explain(
    told: Specification, outcome: Outcome, sends: Sends, *, is_order: bool = False
) -> Deadlock:
    """Return the deadlock of a simulation with the lines of a specification.

    Parameters
    ----------
    is_order : whether the simulation had another order of messages than the recorded one
    """
    by_rank = {one.rank: one for one in outcome.blocked}
    way, is_cycle = _way(by_rank)
    waits = []
    for one, waits_for in way:
        operations = told.of_rank(one.rank)
        shape = told.shapes[int(operations.shapes[one.operation])]
        values = operations.values[one.operation].tolist()
        line = int(told.lines_of_rank(one.rank)[one.operation])
        is_any = shape.is_any and is_order
        words = _words(shape, values, is_any=is_any)
        waits.append(Wait(one.rank, line, words, sites(shape), waits_for))
    return Deadlock(sends, tuple(waits), is_cycle, len(by_rank), is_order)


def _way(blocked: dict[int, Blocked]) -> tuple[list[tuple[Blocked, int]], bool]:
    """Return blocked ranks, each with the rank that it waits for, and whether they are a cycle."""
    ended: list[tuple[Blocked, int]] = []
    done: set[int] = set()
    for first in blocked:
        rank, way, place = first, list[tuple[Blocked, int]](), dict[int, int]()
        while rank in blocked and rank not in place and rank not in done:
            place[rank] = len(way)
            targets = blocked[rank].waits_for
            target = next((x for x in targets if x in blocked), targets[0] if targets else -1)
            way.append((blocked[rank], target))
            rank = target
        if rank in place:
            return way[place[rank] :], True
        done.update(place)
        ended = ended or way
    return ended, False


def _words(shape: Shape, values: Sequence[int], *, is_any: bool) -> str:
    numbers = dict(zip(FIELDS, values, strict=True))
    if shape.kind is Kind.WAIT:
        return "wait"
    if not shape.ends:
        return shape.name
    words = []
    for end in shape.ends:
        rank = f"rank {numbers[end.peer]}"
        if end.is_sent:
            words.append(f"send of {numbers[end.bytes]} bytes to {rank}")
        else:
            words.append(f"receive from {'any rank' if is_any else rank}")
    return " and ".join(words)
