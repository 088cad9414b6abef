"""Masters and workers: ranks that answer the source of each message take their partners in turn.

Another run has these messages in another order, and often another number of rounds of each partner.
A stretch is a series of equal rounds of a master. Its partners take turns in the order of ranks, so
two runs have equal specifications.

Different numbers of rounds are shared out if the order of messages decided them. A run shows this:
after its last common round, no partner begins a different round before all others have ended their
common rounds. A program that fixes the number of each partner does not wait in this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from typing import TypeAlias

import msgspec
import numpy as np

from callpath_modeler.units import counted
from cpmodel_commspec.operations import FIELDS, Kind, Recorded, Shape, Traced, Turn
from cpmodel_commspec.simulation.deadlocks import mismatches_of
from cpmodel_commspec.simulation.simulator import Sends, simulate

_MOST_ANSWERS = 0.75
"""Share of messages after which a rank communicates with their source alone, if it answers."""

_LEAST_PAIRS, _PAIRS_PER_PARTNER = 16, 2
"""Sources that follow each other, in all and for each partner: more than by any simple rule."""

_Part: TypeAlias = tuple[int, int, int]
"""Operations: the rank whose they are, the first, and the end."""

_PEERS = [FIELDS.index("peer"), FIELDS.index("source")]


class NoTurns(Exception):  # noqa: N818 (no error of the program)
    """Partners cannot take turns; the text is the reason."""


@dataclass(slots=True)
class _Round:
    """A message from any source, and the messages with its source that follow.

    Attributes
    ----------
    source : the partner
    places : of these operations among those of the master
    key : these operations without the partner
    rows, content : the operations of the partner from its message to the next one
    """

    source: int
    places: list[int]
    key: tuple[bytes, ...] = ()
    rows: tuple[int, int] = (0, 0)
    content: tuple[bytes, ...] = ()


def answering(shapes: Sequence[Shape], ranks: Sequence[Recorded]) -> tuple[int, ...]:
    """Return the ranks that answer the source of most messages from any source, of several."""
    found = []
    for rank, own in enumerate(ranks):
        if not any(shapes[k].is_any for k in np.unique(own.shapes).tolist()):
            continue
        answered, others, sources = 0, 0, set[int]()
        for series, is_followed in _series(shapes, own):
            sources |= {one.source for one in series}
            answered += sum(len(one.places) > 1 for one in series[: len(series) - is_followed])
            others += is_followed
        if min(answered, len(sources)) > 1 and answered >= _MOST_ANSWERS * (answered + others):
            found.append(rank)
    return tuple(found)


def _series(shapes: Sequence[Shape], own: Recorded) -> Iterator[tuple[list[_Round], bool]]:
    """Yield rounds without other operations between, and whether a message with others follows.

    The source of a receive that does not block is known after the next wait.
    """
    series, is_known = list[_Round](), True
    for at, (number, row) in enumerate(zip(own.shapes.tolist(), own.values.tolist(), strict=True)):
        shape = shapes[number]
        if shape.kind is Kind.WAIT:
            is_known = True
            continue
        partners = [row[end.columns[0]] for end in shape.ends]
        is_further = bool(series) and is_known and {*partners} == {series[-1].source}
        if shape.is_any and len(partners) == 1 and is_further:
            # The rest of a message has another tag, and the mark of its call site.
            is_further = _channel(shapes, own, series[-1].places[0]) != _channel(shapes, own, at)
        if is_further:
            series[-1].places.append(at)
            continue
        source = partners.pop() if shape.is_any else None
        if series and (partners or source is None):
            yield series, bool(partners)
            series = []
        if source is not None:
            series.append(_Round(source, [at]))
            is_known = shape.kind is not Kind.IRECV
    if series:
        yield series, False


def _channel(shapes: Sequence[Shape], own: Recorded, at: int) -> tuple[int, int]:
    """Return the communicator and the tag of a message."""
    shape = shapes[own.shapes[at]]
    return shape.comm, int(own.values[at, shape.ends[0].columns[1]])


def in_turn(traced: Traced, masters: Sequence[int]) -> Traced:
    """Return a trace in which the partners of masters take turns.

    Raises
    ------
    NoTurns
        If the run does not tell how.
    """
    found = traced
    for master in masters:
        found = _Master(found, master).dealt()
    named = tuple(msgspec.structs.replace(shape, is_any=False) for shape in found.shapes)
    outcome = simulate(named, found.communicators, found.ranks, Sends.EAGER)
    if outcome.blocked or any(mismatches_of(found, found.ranks)):
        raise NoTurns("its partners have other messages between their rounds")
    used = {k for one in found.ranks for k in np.unique(one.shapes).tolist()}
    shapes = tuple(shape if k in used else named[k] for k, shape in enumerate(found.shapes))
    return replace(found, shapes=shapes)


def has_no_rule(traced: Traced, masters: Sequence[int]) -> bool:
    """Tell whether the sources of a master have an order that no simple rule gives."""
    for master in masters:
        sources = _Master(traced, master).sources
        pairs, partners = len({*pairwise(sources)}), len({*sources})
        if pairs > max(_LEAST_PAIRS, _PAIRS_PER_PARTNER * partners):
            return True
    return False


class _Master:
    """A rank that answers messages from any source."""

    def __init__(self, traced: Traced, rank: int) -> None:
        self._traced, self._rank = traced, rank
        self._stretches = [
            list(same)
            for series, _ in _series(traced.shapes, traced.ranks[rank])
            for _, same in groupby(self._keyed(series), key=lambda one: one.key)
        ]

    @property
    def sources(self) -> list[int]:
        """The source of each round, as recorded."""
        return [one.source for one in chain(*self._stretches)]

    def dealt(self) -> Traced:
        """Return the trace in which the partners take turns."""
        rows = self._partners()
        order = list(rows)
        own, shapes = self._traced.ranks[self._rank], list(self._traced.shapes)
        numbers, values = own.shapes.copy(), own.values.copy()
        for stretch in self._stretches:
            _deal(stretch, rows)
            for k, one in enumerate(stretch):
                for at in one.places:
                    shape = shapes[numbers[at]]
                    turn = Turn.SOURCE if at == one.places[0] else Turn.ANSWER
                    numbers[at] = _number(shapes, shape, turn)
                    for end in shape.ends:
                        values[at, end.columns[0]] = order[k % len(order)]
        ranks = list(self._traced.ranks)
        for rank, parts in rows.items():
            ranks[rank] = made = _joined(self._traced, rank, parts)
            for k in np.unique(made.shapes).tolist():
                here = made.shapes == k
                if shapes[k].is_any and (made.values[here, _PEERS[0]] == self._rank).all():
                    # The call site has the mark, and not the receives of partners.
                    made.shapes[here] = _number(shapes, shapes[k], Turn.NONE)
        ranks[self._rank] = replace(own, shapes=numbers, values=values)
        return replace(self._traced, shapes=tuple(shapes), ranks=tuple(ranks))

    def _keyed(self, series: list[_Round]) -> list[_Round]:
        own = self._traced.ranks[self._rank]
        if len(series) > 1:
            # Another message to the last source can belong to what follows.
            del series[-1].places[len(series[-2].places) :]
        for one in series:
            values = own.values[one.places]
            values[:, _PEERS] = 0
            one.key = own.shapes[one.places].tobytes(), values.tobytes()
        return series

    def _partners(self) -> dict[int, list[_Part]]:
        """Note what partners do in their rounds, and return what each does before them.

        Returns
        -------
        by partner, in order
        """
        master, shapes = self._traced.ranks[self._rank], self._traced.shapes
        rounds: dict[int, list[_Round]] = {}
        for one in chain(*self._stretches):
            rounds.setdefault(one.source, []).append(one)
            if len(shapes[master.shapes[one.places[0]]].ends) > 1:
                raise NoTurns("it exchanges messages with any source")
        channels = {
            rank: [_channel(shapes, master, one.places[0]) for one in own]
            for rank, own in rounds.items()
        }
        used = {*chain(*channels.values())}
        found = {}
        for rank in sorted(rounds):
            own = self._traced.ranks[rank]
            sent = [
                at
                for at, (number, row) in enumerate(
                    zip(own.shapes.tolist(), own.values.tolist(), strict=True)
                )
                for end in shapes[number].ends
                if end.is_sent and row[end.columns[0]] == self._rank
                and _channel(shapes, own, at) in used
            ]  # fmt: skip
            if [_channel(shapes, own, at) for at in sent] != channels[rank]:
                raise NoTurns("it receives some of these messages by their source")
            found[rank] = [(rank, 0, sent[0])]
            ends = [*sent[1:], len(own.shapes)]
            for one, begin, end_ in zip(rounds[rank], sent, ends, strict=True):
                one.rows = begin, end_
                operations = (x[begin:end_].tobytes() for x in (own.shapes, own.values))
                one.content = (*operations, b"last" * (end_ == len(own.shapes)))
        return found


def _number(shapes: list[Shape], shape: Shape, turn: Turn) -> int:
    """Return the number of a shape with fixed partners; the shapes get it if they lack it."""
    told = msgspec.structs.replace(shape, is_any=False, turn=turn)
    if told not in shapes:
        shapes.append(told)
    return shapes.index(told)


def _deal(stretch: Sequence[_Round], rows: dict[int, list[_Part]]) -> None:
    """Add the rounds of a stretch to those of each partner.

    Raises
    ------
    NoTurns
        If partners have different numbers of rounds, and not because of the order of messages.
    """
    usual = Counter(one.content for one in stretch).most_common(1)[0][0]
    is_usual = [one.content == usual for one in stretch]
    own: dict[int, list[_Round]] = {rank: [] for rank in rows}
    for one in stretch:
        own[one.source].append(one)
    many = {rank: sum(one.content == usual for one in own[rank]) for rank in rows}
    total, least, most = sum(is_usual), min(many.values()), max(many.values())
    is_equal = least == most and len({len(x) for x in own.values()}) == 1
    is_shared = is_usual == sorted(is_usual, reverse=True) and total >= len(rows)
    if not is_equal and not (is_shared and len({len(own[x]) - many[x] for x in rows}) == 1):
        if not least:
            raise NoTurns("some partners have no rounds of the tags and sizes that others have")
        raise NoTurns(
            f"its {counted(len(rows), 'partner')} have {least} to {most} equal rounds, and the run "
            "does not show whether the program or the order of messages decides their number"
        )
    spare: list[_Round] = []
    shares = {}
    for k, rank in enumerate(rows):
        shares[rank] = total // len(rows) + (k < total % len(rows))
        spare += own[rank][shares[rank] : many[rank]]
    for rank, parts in rows.items():
        kept = own[rank][: min(shares[rank], many[rank])]
        kept += [spare.pop() for _ in range(shares[rank] - len(kept))]
        parts += [(one.source, *one.rows) for one in (*kept, *own[rank][many[rank] :])]


def _joined(traced: Traced, rank: int, parts: Sequence[_Part]) -> Recorded:
    """Return the operations of a rank from parts of ranks."""
    found = [(traced.ranks[k], slice(begin, end)) for k, begin, end in parts]
    return replace(
        traced.ranks[rank],
        shapes=np.concatenate([one.shapes[rows] for one, rows in found]),
        values=np.concatenate([one.values[rows] for one, rows in found]),
        computing=np.concatenate([one.computing[rows] for one, rows in found]),
        calling=np.concatenate([one.calling[rows] for one, rows in found]),
    )
