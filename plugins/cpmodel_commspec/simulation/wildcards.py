"""Receives from any source: which they are, and which message each of them takes.

An OTF2 trace stores the source of the message, and not the source that the receive named. A receive
is marked by the attribute `posted_source` of the trace, by its call path, or because its sources
come in another order in another run. The order of sources in one run is accidental, so that it
hides the loops of the program. The simulation replaces it by an order that depends on the program
alone (algorithm 2 of Wu, Mueller and Pakin, TOPC 2014).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from callpath_modeler.errors import DataError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import match, unmatched
from callpath_modeler.profile.schema import Region
from cpmodel_commspec.operations import End, Kind, Shape, Traced
from cpmodel_commspec.simulation.simulator import Outcome, Sends, simulate
from cpmodel_commspec.simulation.turns import NoTurns, answering, in_turn

_Receive = tuple[Kind, tuple[str, ...]]
"""Kind and call path of a receive."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """A trace with sources for its receives from any source.

    Attributes
    ----------
    traced : the trace; with the recorded sources if there is a deadlock, or no turns
    deadlock : the outcome of a simulation that deadlocks because of another order, else None
    sends : the kind of sends in that simulation
    answering : ranks that answer the source of each message; their partners take turns
    no_turns : the reason if these cannot; else ""
    """

    traced: Traced
    deadlock: Outcome | None = None
    sends: Sends = Sends.RENDEZVOUS
    answering: tuple[int, ...] = ()
    no_turns: str = ""


def marked(traced: Traced, patterns: Sequence[str]) -> Traced:
    """Return the trace with the receives of call paths marked as receives from any source.

    Parameters
    ----------
    patterns : of call paths, with or without the MPI function at the end

    Raises
    ------
    UsageError
        If a pattern matches no receive.
    """
    receives = [k for k, shape in enumerate(traced.shapes) if _taken(shape)]
    tree, rows = _tree(traced, receives)
    chosen: set[int] = set()
    for pattern in patterns:
        matches = match(tree, pattern)
        found = [k for k, (site, call) in rows.items() if matches[site] or matches[call]]
        if not found:
            raise unmatched(tree, pattern)
        chosen.update(found)
    return _with_marks(traced, chosen)


def marked_as(traced: Traced, shapes: Collection[Shape]) -> Traced:
    """Return the trace with the receives marked that shapes of a specification mark."""
    known = {
        (shape.kind, site)
        for shape in shapes
        if shape.has_any_source
        for site in (shape.site, *shape.others)
    }
    own = {k for k, x in enumerate(traced.shapes) if _taken(x) and _receive(x) in known}
    return _with_marks(traced, own)


def inferred(traced: Traced, others: Sequence[Traced]) -> Traced:
    """Return the trace with the receives marked whose sources differ between runs.

    Raises
    ------
    DataError
        If a run has other messages than the trace.
    """
    ours, chosen = _sources(traced), set[_Receive]()
    for number, other in enumerate(others):
        theirs = _sources(other)
        if len(other.ranks) != len(traced.ranks) or ours.keys() != theirs.keys():
            raise DataError(
                f"run {number + 2} has other receives than the first run",
                hint="give traces of the same program with the same number of processes and input",
            )
        for (rank, receive), sources in ours.items():
            same = theirs[rank, receive]
            if sorted(same) != sorted(sources):
                raise DataError(
                    f"rank {rank} receives other messages in run {number + 2}",
                    hint="give traces of the same program with the same input",
                )
            if same != sources:
                chosen.add(receive)
    return _with_marks(
        traced,
        {k for k, x in enumerate(traced.shapes) if _taken(x) and _receive(x) in chosen},
    )


def resolved(traced: Traced) -> Resolution:
    """Return the trace with the sources that a simulated run gives to receives from any source.

    A run that deadlocks in the simulation and did not in reality shows a potential deadlock of the
    program. Then the recorded sources are kept. The simulation is one order of messages of many.
    """
    answers = answering(traced.shapes, traced.ranks)
    try:
        traced = in_turn(traced, answers) if answers else traced
    except NoTurns as cause:
        return Resolution(traced, answering=answers, no_turns=str(cause))
    if not any(shape.is_any for shape in traced.shapes):
        return Resolution(traced, answering=answers)
    chosen: Outcome | None = None
    named = [msgspec.structs.replace(shape, is_any=False) for shape in traced.shapes]
    for sends in Sends:
        outcome = simulate(traced.shapes, traced.communicators, traced.ranks, sends)
        if not outcome.blocked:
            chosen = chosen or outcome
        elif not simulate(named, traced.communicators, traced.ranks, sends).blocked:
            return Resolution(traced, outcome, sends, answers)
    told = traced if chosen is None else _with_sources(traced, chosen)
    return Resolution(told, answering=answers)


def suspected(traced: Traced) -> Traced:
    """Return a trace without any mark with those of receives whose messages ranks answer.

    Neighbours answer each other, too. So at most half of the ranks have many sources.
    """
    if any(shape.is_any for shape in traced.shapes):
        return traced
    many = Counter(
        receive
        for (_, receive), messages in _sources(traced).items()
        if len({source for source, _, _ in messages}) > 2
    )
    chosen = {receive for receive, ranks in many.items() if 2 * ranks <= len(traced.ranks)}
    told = _with_marks(
        traced, {k for k, x in enumerate(traced.shapes) if _taken(x) and _receive(x) in chosen}
    )
    return told if answering(told.shapes, told.ranks) else traced


def answering_text(ranks: Sequence[int]) -> str:
    """Return in words that ranks answer the source of each message."""
    who = f"rank {ranks[0]} answers" if len(ranks) == 1 else f"{len(ranks)} ranks answer"
    return f"{who} the source of each message"


def _taken(shape: Shape) -> End | None:
    """Return the message that an operation receives."""
    return next((end for end in shape.ends if not end.is_sent), None)


def _receive(shape: Shape) -> _Receive:
    return shape.kind, shape.site


def _sources(traced: Traced) -> Mapping[tuple[int, _Receive], list[tuple[int, int, int]]]:
    """Return source, tag and bytes of the messages of each receive, by rank and receive."""
    found = {}
    kinds: dict[tuple[_Receive, End], list[int]] = {}
    for k, shape in enumerate(traced.shapes):
        end = _taken(shape)
        if end is not None:
            kinds.setdefault((_receive(shape), end), []).append(k)
    for rank, one in enumerate(traced.ranks):
        for (receive, end), shapes in kinds.items():
            rows = one.values[np.isin(one.shapes, shapes)]
            if len(rows):
                found[rank, receive] = list(map(tuple, rows[:, end.columns].tolist()))
    return found


def _with_marks(traced: Traced, chosen: Collection[int]) -> Traced:
    if not chosen:
        return traced
    told = [
        msgspec.structs.replace(shape, is_any=True) if k in chosen else shape
        for k, shape in enumerate(traced.shapes)
    ]
    numbers = {shape: k for k, shape in enumerate(dict.fromkeys(told))}
    number = np.array([numbers[shape] for shape in told], np.int64)
    ranks = tuple(replace(one, shapes=number[one.shapes]) for one in traced.ranks)
    return replace(traced, shapes=tuple(numbers), ranks=ranks)


def _with_sources(traced: Traced, outcome: Outcome) -> Traced:
    ranks = []
    for one, sources in zip(traced.ranks, outcome.sources, strict=True):
        values, shapes = one.values.copy(), one.shapes[sources[:, 0]]
        for number in np.unique(shapes).tolist():
            end = _taken(traced.shapes[number])
            assert end is not None
            peer, _, size = end.columns
            rows = sources[shapes == number]
            values[rows[:, 0], peer], values[rows[:, 0], size] = rows[:, 1], rows[:, 2]
        ranks.append(replace(one, values=values))
    return replace(traced, ranks=tuple(ranks))


def _tree(
    traced: Traced, receives: Sequence[int]
) -> tuple[CallTree, Mapping[int, tuple[int, int]]]:
    """Return the call tree of receives, and the rows of each: its caller, and itself."""
    paths: dict[tuple[str, ...], None] = {}
    for k in receives:
        shape = traced.shapes[k]
        full = (*shape.site, shape.call)
        paths.update(dict.fromkeys(full[:n] for n in range(1, len(full) + 1)))
    row = {path: k for k, path in enumerate(sorted(paths))}
    names = {name: k for k, name in enumerate(dict.fromkeys(path[-1] for path in row))}
    tree = CallTree.from_parents(
        [row.get(path[:-1], ROOT) for path in row],
        [names[path[-1]] for path in row],
        [Region(name) for name in names],
    )
    rows = {}
    for k in receives:
        shape = traced.shapes[k]
        call = row[*shape.site, shape.call]
        rows[k] = row.get(shape.site, call), call
    return tree, rows
