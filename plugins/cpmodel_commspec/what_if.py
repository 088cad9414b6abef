"""Other programs of a specification: more or less data, and other implementations of collectives.

Structure stays: an operation keeps its line, and a collective that is replaced by messages becomes
the lines of its rounds, on a communicator of their own, so that they match no other messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError, UsageError, did_you_mean
from callpath_modeler.printable import printable, shortened
from cpmodel_commspec import expressions
from cpmodel_commspec.collectives import Form
from cpmodel_commspec.operations import COLLECTIVES, Awaited, Communicator, Half, Kind, Mode, Shape
from cpmodel_commspec.partners import choose
from cpmodel_commspec.rounds import ALGORITHMS, Call, Round
from cpmodel_commspec.specification import Loop, Node, Specification, Step

P2P = "p2p"
"""The implementation in which everybody posts all receives and sends, and waits for all."""

_LARGEST = 2**48
_MOST_MESSAGES = 2**24
"""Messages of all ranks in one line; more take too much memory."""

_EXAMPLE = "e.g. --lower alltoall=p2p"


def implementations(name: str) -> tuple[str, ...]:
    """Return the implementations of a collective operation."""
    return (*ALGORITHMS[name], *((P2P,) if name == "alltoall" else ()))


def lowered_names(texts: Sequence[str]) -> dict[str, str]:
    """Return the implementation of each collective operation that options name.

    Parameters
    ----------
    texts : such as ``alltoall=p2p``

    Raises
    ------
    UsageError
        If there is no such operation or implementation.
    """
    chosen: dict[str, str] = {}
    for text in texts:
        name, equals, implementation = text.partition("=")
        if not equals:
            raise UsageError(f"--lower {shortened(printable(text))!r} has no '='", hint=_EXAMPLE)
        if name not in ALGORITHMS:
            raise UsageError(
                f"--lower: no collective operation {shortened(printable(name))!r}",
                hint=did_you_mean(name, ALGORITHMS) or f"one of {', '.join(ALGORITHMS)}",
            )
        if implementation not in implementations(name):
            raise UsageError(
                f"--lower: no implementation {shortened(printable(implementation))!r} of {name}",
                hint=f"one of {', '.join(implementations(name))}",
            )
        chosen[name] = implementation
    return chosen


def with_bytes(told: Specification, factor: Fraction) -> Specification:
    """Return the specification with sizes times a factor, rounded up to whole bytes.

    What a collective with unequal sizes sends in all is what it receives in all.

    Raises
    ------
    DataError
        If a size would be too large, or if sums of a collective cannot be kept.
    """
    return _mapped(told, lambda step, around: (_scaled(told, step, around, factor),))


def _mapped(
    told: Specification, change: Callable[[Step, Sequence[Loop]], Sequence[Node]]
) -> Specification:
    """Return the specification with other nodes in place of each step."""

    def inside(nodes: Sequence[Node], around: tuple[Loop, ...]) -> Iterator[Node]:
        for node in nodes:
            if isinstance(node, Loop):
                body = tuple(inside(node.body, (*around, node)))
                yield msgspec.structs.replace(node, body=body)
            else:
                yield from change(node, around)

    return msgspec.structs.replace(told, body=tuple(inside(told.body, ())))


def _scaled(
    told: Specification, step: Step, around: Sequence[Loop], factor: Fraction
) -> Step:
    shape, counts = told.shapes[step.shape], [loop.count for loop in around]
    sizes = {
        field: step.numbers[field].values(step.ranks, counts)
        for field in ("bytes", "received")
        if field in step.numbers
    }
    if not sizes:
        return step
    if shape.kind in COLLECTIVES and shape.form is Form.TOTAL:
        new = _scaled_sums(told, step, shape, sizes, factor)
    else:
        new = {field: _times(values, factor) for field, values in sizes.items()}
    found = {field: expressions.find(values, step.ranks) for field, values in new.items()}
    return msgspec.structs.replace(step, numbers={**step.numbers, **found})


def _times(values: Int64Array, factor: Fraction) -> Int64Array:
    """Return numbers times a factor, rounded up, exactly."""
    known, place = np.unique(values, return_inverse=True)
    new = [-((-int(value) * factor.numerator) // factor.denominator) for value in known]
    if max(new) > _LARGEST:
        raise DataError(
            f"{int(known.max())} bytes times {float(factor):g} are more than 2^48",
            hint="use a smaller --scale-bytes",
        )
    return np.array(new, np.int64)[place.reshape(values.shape)]


def _scaled_sums(
    told: Specification, step: Step, shape: Shape, sizes: Mapping[str, Int64Array], factor: Fraction
) -> dict[str, Int64Array]:
    """Return what members send and receive in all, of calls whose members differ."""
    sent, received = sizes["bytes"].copy(), sizes["received"].copy()
    place = {rank: k for k, rank in enumerate(step.ranks)}
    for group in told.communicators[shape.comm].groups:
        if place.keys().isdisjoint(group):
            continue
        if not place.keys() >= set(group):
            raise DataError(
                f"sizes of {shape.name} cannot be scaled: not all its ranks are in one line",
                hint="scale a specification whose collectives have all their ranks",
            )
        rows = [place[rank] for rank in group]
        sent[rows], received[rows] = _consistent(shape.name, sent[rows], received[rows], factor)
    return {"bytes": sent, "received": received}


def _consistent(
    name: str, sent: Int64Array, received: Int64Array, factor: Fraction
) -> tuple[Int64Array, Int64Array]:
    """Return what each member of a group sends and receives, [members x ...], times a factor."""
    n = len(sent)
    if name == "gatherv":
        sent = _times(sent, factor)
        return sent, np.where(received > 0, sent.sum(axis=0), 0)
    if name == "scatterv":
        received = _times(received, factor)
        return np.where(sent > 0, received.sum(axis=0), 0), received
    if name == "allgatherv":
        part = _times(sent // n, factor)
        return n * part, np.broadcast_to(part.sum(axis=0), received.shape).copy()
    if name == "reduce_scatter":
        part = _times(received // n, factor)
        return np.broadcast_to(part.sum(axis=0), sent.shape).copy(), n * part
    sent = _times(sent, factor)
    # The sum of what is received is apportioned by the running sum, so that rounding cancels.
    total, before = sent.sum(axis=0), np.cumsum(received, axis=0)
    whole = np.maximum(before[-1:], 1).astype(object)
    ends = (before.astype(object) * total.astype(object) // whole).astype(np.int64)
    return sent, np.diff(ends, axis=0, prepend=0)


def lowered(told: Specification, chosen: Mapping[str, str]) -> Specification:
    """Return the specification with messages in place of collective operations.

    Parameters
    ----------
    chosen : implementation by name of the operation

    Raises
    ------
    DataError
        If an operation cannot be replaced.
    """
    lowering = _Lowering(told, chosen)
    found = _mapped(told, lowering.nodes)
    found = msgspec.structs.replace(
        found, shapes=lowering.shapes, communicators=lowering.communicators
    )
    operations = int(found.counts().sum())
    return msgspec.structs.replace(found, operations=operations)


@dataclass(frozen=True, slots=True)
class _Part:
    """Messages of one round by one kind of process: [ranks] each.

    Attributes
    ----------
    kind : of the operation
    ranks : world ranks, in order
    sent, received : (partner, bytes) by row, or None
    """

    kind: Kind
    ranks: tuple[int, ...]
    sent: Int64Array | None
    received: Int64Array | None


class _Lowering:
    """Messages in place of collective operations, with their shapes and communicators."""

    def __init__(self, told: Specification, chosen: Mapping[str, str]) -> None:
        self._told, self._chosen = told, chosen
        self._shapes = dict.fromkeys(told.shapes)
        self._communicators = list(told.communicators)
        self._own: dict[int, int] = {}

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """All shapes, those of the specification first."""
        return tuple(self._shapes)

    @property
    def communicators(self) -> tuple[Communicator, ...]:
        """All communicators, those of the specification first."""
        return tuple(self._communicators)

    def nodes(self, step: Step, around: Sequence[Loop]) -> Sequence[Node]:
        """Return the messages of a step, or the step itself."""
        shape = self._told.shapes[step.shape]
        implementation = self._chosen.get(shape.name)
        if shape.kind not in COLLECTIVES or implementation is None:
            return (step,)
        counts = [loop.count for loop in around]
        calls = self._calls(step, shape, counts)
        if implementation == P2P:
            return self._all_at_once(step, shape, calls, around)
        rounds = [
            [_with_ranks(one, group) for one in ALGORITHMS[shape.name][implementation](call)]
            for group, call in calls
        ]
        parts = [_parts(found) for found in zip(*rounds, strict=True)]
        nodes: list[Node] = []
        for _, run in groupby(parts, key=lambda part: [(one.kind, one.ranks) for one in part]):
            nodes += self._repeated(list(run), shape, around)
        return nodes

    def _calls(
        self, step: Step, shape: Shape, counts: Sequence[int]
    ) -> list[tuple[tuple[int, ...], Call]]:
        """Return the members of each group of a step, and their call."""
        where = f"{shape.name} in {'/'.join(shape.site) or 'the program'}"
        if shape.kind is Kind.ICOLLECTIVE:
            raise DataError(f"{where} does not block", hint="only blocking calls can be lowered")
        numbers = {
            field: step.numbers[field].values(step.ranks, counts).reshape(len(step.ranks), -1)
            for field in shape.fields
        }
        if any((values != values[:, :1]).any() for values in numbers.values()):
            raise DataError(
                f"{where}: root or size changes from round to round",
                hint="choose its algorithm in the platform file",
            )
        place, calls = {rank: k for k, rank in enumerate(step.ranks)}, []
        for group in self._told.communicators[shape.comm].groups:
            if place.keys().isdisjoint(group):
                continue
            if not place.keys() >= set(group):
                raise DataError(f"{where}: not all its ranks are in one line", hint=_EXAMPLE)
            rows = [place[rank] for rank in group]
            n, zeros = len(group), np.zeros(len(group), np.int64)
            size, received = (
                numbers[field][rows, 0] if field in numbers else zeros
                for field in ("bytes", "received")
            )
            root = int(numbers["root"][rows[0], 0]) if "root" in numbers else 0
            if not 0 <= root < n:
                raise DataError(f"{where}: no rank is root {root}", hint=_EXAMPLE)
            calls.append((group, Call(n, root, own_sizes(shape, size, received, n))))
        if len({call.processes for _, call in calls}) > 1:
            raise DataError(f"{where}: groups of different sizes", hint=_EXAMPLE)
        return calls

    def _all_at_once(
        self,
        step: Step,
        shape: Shape,
        calls: Sequence[tuple[tuple[int, ...], Call]],
        around: Sequence[Loop],
    ) -> Sequence[Node]:
        """Return the nodes that post all receives and all sends, and wait for all."""
        n = calls[0][1].processes
        wait = self._shape(
            Shape(Kind.WAIT, awaited=Awaited.ALL, call="MPI_Waitall", site=shape.site,
                  others=shape.others)
        )  # fmt: skip
        nodes: list[Node] = []
        for kind, sign in ((Kind.IRECV, -1), (Kind.ISEND, 1)):
            rows = {}
            for group, call in calls:
                for me, rank in enumerate(group):
                    others = [(me + sign * k) % n for k in range(1, n)]
                    peers = np.array(group, np.int64)[others]
                    sizes = call.sizes[others] if sign < 0 else np.full(n - 1, call.sizes[me])
                    rows[rank] = np.stack([peers, sizes], axis=1)
            table = np.stack([rows[rank] for rank in step.ranks]) if n > 1 else None
            nodes += self._loop(kind, step.ranks, shape, table, around)
        return (*nodes, Step(wait, step.ranks, {}))

    def _repeated(
        self, run: Sequence[Sequence[_Part]], shape: Shape, around: Sequence[Loop]
    ) -> Iterator[Node]:
        """Yield the nodes of rounds in which the same ranks do the same."""
        steps = []
        for k, part in enumerate(run[0]):
            about = {}
            if part.sent is not None:
                about["sent"] = np.stack([one[k].sent for one in run], axis=1)
            if part.received is not None:
                about["received"] = np.stack([one[k].received for one in run], axis=1)
            steps.append(self._step(part.kind, part.ranks, shape, about, around, len(run)))
        if len(run) == 1:
            yield from steps
            return
        ranks = tuple(sorted(rank for step in steps for rank in step.ranks))
        yield Loop(len(run), ranks, tuple(steps))

    def _loop(
        self, kind: Kind, ranks: tuple[int, ...], shape: Shape, table: Int64Array | None,
        around: Sequence[Loop],
    ) -> Iterator[Node]:  # fmt: skip
        """Yield a loop over messages [ranks x rounds x (partner, bytes)]."""
        if table is None:
            return
        about = {"sent" if kind is Kind.ISEND else "received": table}
        step = self._step(kind, ranks, shape, about, around, table.shape[1])
        yield step if table.shape[1] == 1 else Loop(table.shape[1], ranks, (step,))

    def _step(
        self, kind: Kind, ranks: tuple[int, ...], shape: Shape, about: Mapping[str, Int64Array],
        around: Sequence[Loop], count: int,
    ) -> Step:  # fmt: skip
        """Return an operation in a loop of `count` rounds, or in none if there is one round."""
        name = Half.BOTH if kind is Kind.EXCHANGE else ""
        if kind in {Kind.SEND, Kind.ISEND}:
            name = Mode.STANDARD
        made = Shape(kind, name, self._comm(shape.comm), call=_CALLS[kind], site=shape.site,
                     others=shape.others)  # fmt: skip
        counts = [loop.count for loop in around]
        rounds = [count] if count > 1 else []
        if len(ranks) * int(np.prod([*counts, *rounds], dtype=np.float64)) > _MOST_MESSAGES:
            raise DataError(
                f"the messages of {shape.name} in {'/'.join(shape.site)} are too many",
                hint="choose its algorithm in the platform file",
            )
        numbers, partners = {}, {}
        for end in made.ends:
            table = about["sent" if end.is_sent else "received"]
            world = np.repeat(np.array(ranks, np.int64), table.shape[1])
            partner = choose(world, table[:, :, 0].ravel(), self._told.processes)
            number = partner.number(world, table[:, :, 0].ravel()).reshape(table.shape[:2])
            for field, values in (
                (end.peer, number), (end.tag, 0 * number), (end.bytes, table[:, :, 1])
            ):  # fmt: skip
                whole = values.reshape(len(ranks), *[1] * len(counts), *(rounds or ()))
                whole = np.broadcast_to(whole, (len(ranks), *counts, *rounds))
                numbers[field] = expressions.find(whole, ranks)
            partners[end.peer] = partner
        return Step(self._shape(made), ranks, numbers, partners)

    def _comm(self, comm: int) -> int:
        """Return the communicator for the messages of collectives on another."""
        if comm not in self._own:
            self._own[comm] = len(self._communicators)
            one = self._told.communicators[comm]
            taken = {known.name for known in self._communicators}
            name = f"{one.name}_messages"
            while name in taken:
                name += "_"
            self._communicators.append(msgspec.structs.replace(one, name=name))
        return self._own[comm]

    def _shape(self, shape: Shape) -> int:
        self._shapes.setdefault(shape)
        return list(self._shapes).index(shape)


_CALLS = {
    Kind.SEND: "MPI_Send",
    Kind.RECV: "MPI_Recv",
    Kind.EXCHANGE: "MPI_Sendrecv",
    Kind.ISEND: "MPI_Isend",
    Kind.IRECV: "MPI_Irecv",
}


def _with_ranks(one: Round, group: Sequence[int]) -> Round:
    """Return a round with world ranks."""
    world = np.array(group, np.int64)
    return one._replace(senders=world[one.senders], receivers=world[one.receivers])


def _parts(rounds: Sequence[Round]) -> list[_Part]:
    """Return the operations of one round of all groups: exchanges, sends and receives."""
    sent, received = dict[int, tuple[int, int]](), dict[int, tuple[int, int]]()
    for one in rounds:
        for sender, receiver, size in zip(*(column.tolist() for column in one), strict=True):
            sent[sender], received[receiver] = (receiver, size), (sender, size)
    kinds = {
        Kind.EXCHANGE: sent.keys() & received.keys(),
        Kind.SEND: sent.keys() - received.keys(),
        Kind.RECV: received.keys() - sent.keys(),
    }
    parts = []
    for kind, chosen in kinds.items():
        if chosen:
            ranks = tuple(sorted(chosen))
            out = None if kind is Kind.RECV else np.array([sent[r] for r in ranks], np.int64)
            in_ = None if kind is Kind.SEND else np.array([received[r] for r in ranks], np.int64)
            parts.append(_Part(kind, ranks, out, in_))
    return parts
