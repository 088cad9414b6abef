"""Other programs of a specification: more or less data, and other implementations of collectives.

Structure stays: an operation keeps its line, and a collective that is replaced by messages becomes
the lines of its rounds, on a communicator of their own, so that they match no other messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, groupby

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from callpath_modeler.errors import DataError, UsageError, did_you_mean
from callpath_modeler.printable import printable, shortened
from cpmodel_commspec import expressions
from cpmodel_commspec.collective_messages import ALGORITHMS, Message, Round, batches, unequal_rounds
from cpmodel_commspec.collectives import Form, member_size
from cpmodel_commspec.computation import Computation, Share
from cpmodel_commspec.expressions import choose
from cpmodel_commspec.operations import COLLECTIVES, Awaited, Communicator, Half, Kind, Mode, Shape
from cpmodel_commspec.specification import Loop, Node, Specification, Step

_LARGEST = 2**48
_MOST_MESSAGES = 2**24
"""Messages of all ranks in one line; more take too much memory."""

_FEW_MESSAGES = frozenset(
    {"binomial", "dissemination", "tree", "recursive-doubling", "rabenseifner", "line", "bruck",
     "recursive-halving"}
)  # fmt: skip
"""Algorithms whose messages do not grow with the square of the number of processes."""

_OF_PAIRS = frozenset({"alltoallv", "alltoallw"})
_EXAMPLE = "e.g. --lower alltoall=p2p"
_ELSEWHERE = "choose its algorithm in the platform file"


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
        if implementation not in ALGORITHMS[name]:
            raise UsageError(
                f"--lower: no implementation {shortened(printable(implementation))!r} of {name}",
                hint=f"one of {', '.join(ALGORITHMS[name])}",
            )
        chosen[name] = implementation
    return chosen


def with_computation(told: Specification, factor: float) -> Specification:
    """Return the specification with all computation times a factor."""

    def longer(found: Computation | None) -> Computation | None:
        if found is None:
            return None
        usual, first = (
            tuple(_longer(share, factor) for share in shares)
            for shares in (found.usual, found.first)
        )
        return msgspec.structs.replace(found, usual=usual, first=first)

    def changed(step: Step, _around: Sequence[Loop]) -> Sequence[Node]:
        return (msgspec.structs.replace(step, computing=longer(step.computing)),)

    return msgspec.structs.replace(_mapped(told, changed), ending=longer(told.ending))


def _longer(share: Share, factor: float) -> Share:
    seconds = share.seconds
    return msgspec.structs.replace(
        share,
        seconds=msgspec.structs.replace(
            seconds,
            means=tuple(mean * factor for mean in seconds.means),
            least=seconds.least * factor,
            most=seconds.most * factor,
        ),
    )


def with_bytes(told: Specification, factor: Fraction) -> Specification:
    """Return the specification with sizes times a factor, rounded up to whole bytes.

    In all, a collective with unequal sizes sends as much as it receives.

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


def _scaled(told: Specification, step: Step, around: Sequence[Loop], factor: Fraction) -> Step:
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
    # The running sum apportions the received bytes, so that rounding cancels.
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
    called = {shape.name for shape in told.shapes if shape.kind in COLLECTIVES}
    for name in chosen:
        if name not in called:
            raise DataError(
                f"the program has no {name} to lower",
                hint=f"its collectives are {', '.join(sorted(called)) or 'none'}",
            )
    lowering = _Lowering(told, chosen)
    found = _mapped(told, lowering.nodes)
    found = msgspec.structs.replace(
        found, shapes=lowering.shapes, communicators=lowering.communicators
    )
    operations = int(found.counts().sum())
    return msgspec.structs.replace(found, operations=operations)


_Ends = dict[int, list[tuple[int, int]]]
"""Partner and bytes of the messages of each rank, in order."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """The messages of a round of all groups, by the actions of ranks.

    Attributes
    ----------
    sent, received : by rank
    """

    sent: _Ends
    received: _Ends

    @property
    def is_burst(self) -> bool:
        """True if a rank sends or receives more than one message."""
        return any(len(one) > 1 for ends in (self.sent, self.received) for one in ends.values())

    def who(self) -> tuple[bool, list[tuple[Kind, tuple[int, ...]]]]:
        """Return who exchanges, who sends, and who receives; bursts are unlike any other."""
        kinds = {
            Kind.EXCHANGE: self.sent.keys() & self.received.keys(),
            Kind.SEND: self.sent.keys() - self.received.keys(),
            Kind.RECV: self.received.keys() - self.sent.keys(),
        }
        return self.is_burst, [(kind, tuple(sorted(x))) for kind, x in kinds.items() if x]


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
        found = [
            self._rounds(step, shape, group, implementation, counts)
            for group in self._told.communicators[shape.comm].groups
            if not set(group).isdisjoint(step.ranks)
        ]
        if len({len(one) for one in found}) > 1:
            raise DataError(
                f"{_where(shape)}: groups of different sizes need different lines", hint=_ELSEWHERE
            )
        turns = [_turn(chain(*parts)) for parts in zip(*found, strict=True)]
        nodes: list[Node] = []
        if step.computing is not None:
            # Ranks have their first messages in different lines; this line has the computation.
            before = Shape(Kind.WAIT, awaited=Awaited.CHOSEN, call="MPI_Waitall", site=shape.site,
                           others=shape.others)  # fmt: skip
            nodes.append(Step(self._shape(before), step.ranks, {}, computing=step.computing))
        for (is_burst, who), run in groupby(turns, key=_Turn.who):
            if is_burst:
                for turn in run:
                    nodes += self._burst(turn, shape, around)
            else:
                nodes += self._repeated(list(run), who, shape, around)
        return nodes

    def _rounds(
        self, step: Step, shape: Shape, group: tuple[int, ...], implementation: str,
        counts: Sequence[int],
    ) -> list[Round]:  # fmt: skip
        """Return the messages of a group."""
        if implementation not in _FEW_MESSAGES and len(group) ** 2 > _MOST_MESSAGES:
            raise DataError(f"{_where(shape)}: its messages are too many", hint=_ELSEWHERE)
        place = {rank: k for k, rank in enumerate(step.ranks)}
        if not place.keys() >= set(group) or shape.kind is Kind.ICOLLECTIVE:
            raise DataError(
                f"{_where(shape)}: only blocking calls in one line can be lowered", hint=_ELSEWHERE
            )
        rows = [place[rank] for rank in group]
        numbers = {
            field: step.numbers[field].values(step.ranks, counts).reshape(len(place), -1)[rows]
            for field in shape.fields
        }
        if any((values != values[:, :1]).any() for values in numbers.values()):
            raise DataError(
                f"{_where(shape)}: its root or its size changes from round to round",
                hint=_ELSEWHERE,
            )
        found = {field: values[:, 0].tolist() for field, values in numbers.items()}
        root = found["root"][0] if "root" in found else 0
        if not 0 <= root < len(group):
            raise DataError(f"{_where(shape)}: no rank is root {root}", hint=_ELSEWHERE)
        nothing = [0] * len(group)
        sent, received = (found.get(field, nothing) for field in ("bytes", "received"))
        if shape.name in _OF_PAIRS:
            # Only these have sizes of pairs, which traces do not tell.
            by_distance = unequal_rounds(shape.name, group, sent, received)
            return by_distance if implementation == "pairwise" else [tuple(chain(*by_distance))]
        sizes = [
            member_size(shape.name, shape.form, *pair, len(group))
            for pair in zip(sent, received, strict=True)
        ]
        return _messages(shape.name, implementation, group, sizes, root)

    def _burst(self, turn: _Turn, shape: Shape, around: Sequence[Loop]) -> Iterator[Node]:
        """Yield the nodes that post all receives and all sends, and wait for all."""
        for kind, ends in ((Kind.IRECV, turn.received), (Kind.ISEND, turn.sent)):
            for count in sorted({len(one) for one in ends.values()}):
                ranks = tuple(sorted(rank for rank, one in ends.items() if len(one) == count))
                about = {kind is Kind.ISEND: np.array([ends[rank] for rank in ranks], np.int64)}
                step = self._step(kind, ranks, shape, about, around, count)
                yield step if count == 1 else Loop(count, ranks, (step,))
        wait = Shape(Kind.WAIT, call="MPI_Waitall", site=shape.site, others=shape.others)
        yield Step(self._shape(wait), tuple(sorted({*turn.sent, *turn.received})), {})

    def _repeated(
        self, run: Sequence[_Turn], who: Sequence[tuple[Kind, tuple[int, ...]]], shape: Shape,
        around: Sequence[Loop],
    ) -> Iterator[Node]:  # fmt: skip
        """Yield the nodes of rounds in which the same ranks do the same."""
        steps = []
        for kind, ranks in who:
            about = {}
            for is_sent in (True, False):
                if kind in {Kind.EXCHANGE, Kind.SEND if is_sent else Kind.RECV}:
                    rows = [
                        [(turn.sent if is_sent else turn.received)[rank][0] for turn in run]
                        for rank in ranks
                    ]
                    about[is_sent] = np.array(rows, np.int64)
            steps.append(self._step(kind, ranks, shape, about, around, len(run)))
        if len(run) == 1:
            yield from steps
            return
        yield Loop(len(run), tuple(sorted({r for x in steps for r in x.ranks})), tuple(steps))

    def _step(
        self, kind: Kind, ranks: tuple[int, ...], shape: Shape,
        about: Mapping[bool, Int64Array], around: Sequence[Loop], count: int,
    ) -> Step:  # fmt: skip
        """Return an operation in a loop of `count` rounds, or in none if there is one round.

        Parameters
        ----------
        about : partner and bytes of what is sent (True) and received, [ranks x count x 2]
        """
        name = Half.BOTH if kind is Kind.EXCHANGE else ""
        if kind in {Kind.SEND, Kind.ISEND}:
            name = Mode.STANDARD
        made = Shape(kind, name, self._comm(shape.comm), call=_CALLS[kind], site=shape.site,
                     others=shape.others)  # fmt: skip
        counts = [loop.count for loop in around]
        rounds = [count] if count > 1 else []
        if len(ranks) * int(np.prod([*counts, *rounds], dtype=np.float64)) > _MOST_MESSAGES:
            raise DataError(f"{_where(shape)}: its messages are too many", hint=_ELSEWHERE)
        numbers, partners = {}, {}
        for end in made.ends:
            table = about[end.is_sent]
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


def _messages(
    name: str, implementation: str, group: Sequence[int], sizes: Sequence[int], root: int
) -> list[Round]:
    """Return the messages of a collective operation between world ranks."""
    turned = np.roll(np.array(group, np.int64), -root)
    by_place = np.roll(np.array(sizes, np.int64), -root)
    return [
        tuple(
            map(
                Message,
                turned[one.senders].tolist(),
                turned[one.receivers].tolist(),
                one.bytes.tolist(),
            )
        )
        for one in batches(name, implementation, len(group), by_place)
    ]


def _where(shape: Shape) -> str:
    return f"{shape.name} in {printable('/'.join(shape.site)) or 'the program'}"


def _turn(messages: Iterable[Message]) -> _Turn:
    sent: _Ends = {}
    received: _Ends = {}
    for sender, receiver, size in messages:
        sent.setdefault(sender, []).append((receiver, size))
        received.setdefault(receiver, []).append((sender, size))
    return _Turn(sent, received)
