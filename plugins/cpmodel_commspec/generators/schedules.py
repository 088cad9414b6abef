"""The operations of each rank one by one, for formats without loops and with few operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from callpath_modeler.errors import DataError
from cpmodel_commspec.collective_messages import ALGORITHMS, Round, rounds, unequal_rounds
from cpmodel_commspec.collectives import ROOTED, Form, booked
from cpmodel_commspec.generators.statements import INSTEAD_OR_IN_C
from cpmodel_commspec.operations import COLLECTIVES, TOGETHER, Kind, Shape
from cpmodel_commspec.simulation.deadlocks import sites
from cpmodel_commspec.simulation.simulator import completed
from cpmodel_commspec.specification import Specification, Step, walk

_LARGEST_TAG = 2**28


class Compute(NamedTuple):
    """Seconds of computation."""

    seconds: float


class Start(NamedTuple):
    """The begin of a message.

    Attributes
    ----------
    request : number of the message among those of the rank
    channel : communicator and tag
    number : of the message among those of the same sender, receiver and channel
    is_blocking : whether the rank waits for its end at once
    """

    request: int
    is_sent: bool
    peer: int
    channel: tuple[int, int]
    number: int
    bytes: int
    is_blocking: bool


class Finish(NamedTuple):
    """A wait for operations."""

    requests: tuple[int, ...]


class Own(NamedTuple):
    """A message of a rank, as the rank sees it."""

    is_sent: bool
    peer: int
    bytes: int


class Together(NamedTuple):
    """A collective operation.

    Attributes
    ----------
    request : as that of a message
    bytes : as in the call, if all members have one size
    is_equal : whether they have
    messages : of this rank in each round of the messages that stand for it, receives first
    """

    request: int
    name: str
    comm: int
    members: tuple[int, ...]
    root: int
    bytes: int
    is_equal: bool
    is_blocking: bool
    messages: Sequence[Sequence[Own]]


Event: TypeAlias = "Compute | Start | Finish | Together"


@dataclass(slots=True)
class _Request:
    """A started operation, as `simulator.completed` takes it."""

    number: int
    kind: Kind


class Schedule:
    """The operations of all ranks of a specification."""

    def __init__(self, told: Specification) -> None:
        self._told = told
        self._unequal = self._find_unequal()
        self._known: dict[tuple[object, ...], Mapping[int, Sequence[Sequence[Own]]]] = {}

    def events(self, rank: int) -> Iterator[Event]:
        """Yield what a rank does, in order.

        Raises
        ------
        DataError
            If an operation has no messages that stand for it.
        """
        told, recorded = self._told, self._told.of_rank(rank)
        seconds = told.computing_of_rank(rank).tolist()
        started: list[_Request] = []
        numbers: dict[tuple[bool, int, int, int], int] = {}
        calls: dict[int, int] = {}
        request = 0
        for at, (number, values) in enumerate(
            zip(recorded.shapes.tolist(), recorded.values.tolist(), strict=True)
        ):
            shape = told.shapes[number]
            if seconds[at]:
                yield Compute(seconds[at])
            if shape.kind is Kind.WAIT:
                done, started = completed(started, shape)
                yield Finish(tuple(one.number for one in done))
                continue
            first, is_exchange = request, shape.kind is Kind.EXCHANGE
            is_started = shape.kind in {Kind.ISEND, Kind.IRECV, Kind.ICOLLECTIVE}
            # The receive of an exchange is ready before its send.
            for end in reversed(shape.ends):
                peer, tag, size = (values[column] for column in end.columns)
                key = end.is_sent, peer, shape.comm, tag
                numbers[key] = place = numbers.get(key, -1) + 1
                channel = shape.comm, tag
                is_blocking = not (is_started or is_exchange)
                yield Start(request, end.is_sent, peer, channel, place, size, is_blocking)
                request += 1
            if shape.kind in TOGETHER:
                calls[shape.comm] = call = calls.get(shape.comm, -1) + 1
                yield self._together(rank, shape, values, call, request)
                request += 1
            if is_exchange:
                yield Finish(tuple(range(first, request)))
            elif is_started and shape.is_awaited:
                started.append(_Request(first, shape.kind))
        ending = told.ending_of_rank(rank)
        if ending:
            yield Compute(ending)

    def _group(self, comm: int, rank: int) -> tuple[int, ...]:
        return next(one for one in self._told.communicators[comm].groups if rank in one)

    def _together(
        self, rank: int, shape: Shape, values: Sequence[int], call: int, request: int
    ) -> Together:
        _, _, size, _, root, _, _ = values
        members = self._group(shape.comm, rank)
        is_blocking = shape.kind is not Kind.ICOLLECTIVE
        name = "barrier" if shape.kind is Kind.HANDLE else shape.name
        sizes = self._unequal.get((shape.comm, members[0], call))
        key: tuple[object, ...] = (name, members, size, root, sizes and tuple(map(tuple, sizes)))
        if key not in self._known:
            self._known[key] = self._messages(name, members, size, root, sizes, shape)
        return Together(
            request, name, shape.comm, members, root, size, sizes is None, is_blocking,
            self._known[key].get(rank, ()),
        )  # fmt: skip

    def _messages(
        self, name: str, members: tuple[int, ...], size: int, root: int,
        sizes: list[list[int]] | None, shape: Shape,
    ) -> Mapping[int, Sequence[Sequence[Own]]]:  # fmt: skip
        try:
            if sizes is None:
                return _by_rank(rounds(name, members, size, root))
            return _by_rank(unequal_rounds(name, members, sizes[0], sizes[1], root))
        except KeyError:
            where = " or ".join(sites(shape))
            raise DataError(
                f"no program: no messages stand for {name} in {where}", hint=INSTEAD_OR_IN_C
            ) from None

    def _find_unequal(self) -> dict[tuple[int, int, int], list[list[int]]]:
        """Return bytes sent and received of all members of calls with different sizes.

        Returns
        -------
        [2 x members] by communicator, first rank of the group, and number of the call
        """
        told = self._told
        is_total = np.array(
            [one.kind in TOGETHER and one.form is Form.TOTAL for one in told.shapes], np.bool_
        )
        comms = {told.shapes[k].comm for k in np.flatnonzero(is_total)}
        if not comms:
            return {}
        found: dict[tuple[int, int, int], list[list[int]]] = {}
        unequal = set[tuple[int, int, int]]()
        here = np.array([one.kind in TOGETHER and one.comm in comms for one in told.shapes])
        for rank in range(told.processes):
            recorded = told.of_rank(rank)
            rows = np.flatnonzero(here[recorded.shapes])
            calls: dict[int, int] = {}
            for k in rows.tolist():
                shape = told.shapes[int(recorded.shapes[k])]
                members = self._group(shape.comm, rank)
                calls[shape.comm] = call = calls.get(shape.comm, -1) + 1
                n, place, key = len(members), members.index(rank), (shape.comm, members[0], call)
                _, _, size, received, root, _, _ = recorded.values[k].tolist()
                sizes = found.setdefault(key, [[0] * n, [0] * n])
                sizes[0][place], sizes[1][place] = booked(
                    shape.name, shape.form, n, place, root, size, received
                )
                if shape.form is Form.TOTAL:
                    unequal.add(key)
        return {key: found[key] for key in unequal}


def _by_rank(found: Sequence[Round]) -> Mapping[int, Sequence[Sequence[Own]]]:
    """Return the rounds in which each rank has messages, with its messages."""
    ranks: dict[int, list[list[Own]]] = {}
    for one in found:
        here: dict[int, list[Own]] = {}
        for sender, receiver, size in one:
            here.setdefault(receiver, []).append(Own(False, sender, size))
        for sender, receiver, size in one:
            here.setdefault(sender, []).append(Own(True, receiver, size))
        for rank, own in here.items():
            ranks.setdefault(rank, []).append(own)
    return ranks


def collectives_of(told: Specification) -> list[tuple[str, str]]:
    """Return the collective operations of a specification, each with its algorithm as messages."""
    found = set[tuple[str, str]]()
    for node, _ in walk(told.body):
        if isinstance(node, Step):
            shape = told.shapes[node.shape]
            if shape.kind is Kind.HANDLE:
                found.add((shape.name, f"{next(iter(ALGORITHMS['barrier']))}, as a barrier"))
            elif shape.kind in COLLECTIVES and shape.form is Form.TOTAL:
                # See `unequal_rounds`.
                found.add((shape.name, "p2p" if shape.name in ROOTED else "pairwise"))
            elif shape.kind in COLLECTIVES:
                found.add((shape.name, next(iter(ALGORITHMS[shape.name]))))
    return sorted(found)


class Tags:
    """Numbers of channels, for formats with one communicator.

    Messages of two communicators get different tags. Tags stay as they are if that is possible.

    Attributes
    ----------
    of_collectives : the first tag of messages that stand for collective operations; each
        communicator has one
    """

    def __init__(self, told: Specification) -> None:
        channels = set[tuple[int, int]]()
        comms = np.array([shape.comm for shape in told.shapes], np.int64)
        for end in sorted({end for shape in told.shapes for end in shape.ends}):
            has_end = np.array([end in shape.ends for shape in told.shapes], np.bool_)
            for rank in range(told.processes):
                recorded = told.of_rank(rank)
                here = has_end[recorded.shapes]
                pairs = np.stack(
                    [comms[recorded.shapes[here]], recorded.values[here, end.columns[1]]], axis=1
                )
                channels.update(map(tuple, np.unique(pairs, axis=0).tolist()))
        largest = max((tag for _, tag in channels), default=0)
        is_one = len({comm for comm, _ in channels}) <= 1 and largest < _LARGEST_TAG
        self._number = {
            channel: channel[1] if is_one else k for k, channel in enumerate(sorted(channels))
        }
        self.of_collectives = max(self._number.values(), default=-1) + 1

    def of(self, channel: tuple[int, int]) -> int:
        """Return the tag of messages of a communicator and a tag."""
        return self._number[channel]
