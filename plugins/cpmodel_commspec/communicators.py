"""Communicators of a trace, those that one call made put together: each divides the ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from callpath_modeler.printable import printable
from cpmodel_commspec.operations import Communicator
from cpmodel_otf2.definitions import UNRESOLVED, TraceDefinitions


def members(definitions: TraceDefinitions, comm: int, location: int) -> tuple[int, ...]:
    """Return the world ranks of a communicator in order.

    Returns
    -------
    () if the definitions do not tell, or if it is one between two groups
    """
    known = definitions.comms.get(comm)
    if known is None or known.remote is not None:
        return ()
    ranks = tuple(definitions.world_ranks(comm, location).tolist())
    return () if UNRESOLVED in ranks else ranks


def divisions(
    definitions: TraceDefinitions, used: Collection[int]
) -> tuple[tuple[Communicator, ...], dict[int, int]]:
    """Put communicators together that have no rank in common, in the order of definition.

    A split of all processes makes one communicator of each part; every process knows only its
    own. Consecutive parts of equal size become one split.

    Returns
    -------
    communicators
    number : of the communicator that each of those used is part of, by its reference
    """
    ranks = range(len(definitions.ranks))
    location = {rank: reference for reference, rank in definitions.ranks.items()}
    groups: list[list[tuple[int, ...]]] = []
    names: list[str] = []
    number: dict[int, int] = {}
    for comm in sorted(used):
        own = members(definitions, comm, location[min(location)])
        if _is_self(definitions, comm, own, location):
            number[comm] = len(groups)
            groups.append([(rank,) for rank in ranks])
            names.append(definitions.comms[comm].name)
            continue
        place = next((k for k, found in enumerate(groups) if _fits(own, found)), len(groups))
        if place == len(groups):
            groups.append([])
            names.append(definitions.comms[comm].name)
        groups[place].append(own)
        number[comm] = place
    made = zip(_unique(names), groups, strict=True)
    return tuple(Communicator(name, tuple(parts)) for name, parts in made), number


def world_of(communicators: Sequence[Communicator], processes: int) -> int:
    """Return the number of the first communicator of all ranks in order; -1 = none."""
    everybody = (tuple(range(processes)),)
    return next((k for k, one in enumerate(communicators) if one.groups == everybody), -1)


def layout(one: Communicator, quotient: str = "/") -> tuple[str, str] | None:
    """Return formulas of the group that a rank is in and its place there; None if irregular.

    Parameters
    ----------
    quotient : operator that divides whole numbers
    """
    n, groups = len(one.groups[0]), one.groups
    if all(group == tuple(range(k * n, k * n + n)) for k, group in enumerate(groups)):
        return (f"rank {quotient} {n}", f"rank % {n}") if len(groups) > 1 else ("0", "rank")
    step = len(groups)
    if all(group == tuple(range(k, k + n * step, step)) for k, group in enumerate(groups)):
        return f"rank % {step}", f"rank {quotient} {step}"
    return None


def _is_self(
    definitions: TraceDefinitions, comm: int, own: tuple[int, ...], location: dict[int, int]
) -> bool:
    """Return True for the communicator of each process alone, `MPI_COMM_SELF`."""
    first, last = min(location), max(location)
    others = members(definitions, comm, location[last])
    return first != last and own == (first,) and others == (last,)


def _fits(own: tuple[int, ...], found: list[tuple[int, ...]]) -> bool:
    """Tell whether a communicator may be a further part of the same split."""
    taken = {rank for group in found for rank in group}
    return len(own) == len(found[0]) and taken.isdisjoint(own)


def _unique(names: list[str]) -> list[str]:
    """Name communicators that have no name, or that of another, by numbers."""
    taken, unique = {""}, list[str]()
    for name in map(printable, names):
        new, k = name, 1
        while new in taken:
            k += 1
            new = f"{name or 'communicator'}_{k}"
        taken.add(new)
        unique.append(new)
    return unique
