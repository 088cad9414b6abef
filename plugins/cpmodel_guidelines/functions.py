"""Names of MPI collectives: ``MPI_Bcast``, ``mpi_bcast_``, ``osu_bcast``, ``Bcast``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

COLLECTIVES = (
    "Allgather",
    "Allgatherv",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Barrier",
    "Bcast",
    "Exscan",
    "Gather",
    "Gatherv",
    "Reduce",
    "Reduce_local",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Scatter",
    "Scatterv",
)
"""Names in the spelling of the MPI standard, without prefix."""

_BY_WORDS = {tuple(name.lower().split("_")): name for name in COLLECTIVES}
_MOST_WORDS = max(map(len, _BY_WORDS))
_MPI = frozenset({"mpi", "pmpi"})
_SUITES = frozenset({"osu", "imb"})
_OTHER_CALLS = frozenset({"init", "start"})
"""Suffixes of persistent collectives, which are other functions."""

_OF_LANGUAGES = frozenset({"c", "f", "f08", "f08ts", "x"})


@dataclass(frozen=True, slots=True)
class Function:
    """A collective and its group.

    Attributes
    ----------
    group : other parts of the call path: a library, a caller, a statistic
    name : one of `COLLECTIVES`
    """

    group: tuple[str, ...]
    name: str


def canonical(name: str) -> str | None:
    """Return the collective that a whole word names; None = not a collective.

    >>> canonical("MPI_Reduce_scatter_block"), canonical("allreduce"), canonical("MPI_Iallreduce")
    ('Reduce_scatter_block', 'Allreduce', None)
    """
    found = _named(name)
    return found[0] if found is not None and not found[1] else None


def functions_in(paths: Sequence[Sequence[str]]) -> list[Function | None]:
    """Return the collective of each call path; None = not a collective.

    The last name that is a collective decides. If any name begins with ``MPI_``, names without that
    prefix are functions of the program.

    Parameters
    ----------
    paths : names of each call path, from the root
    """
    known = {name: _named(name) for name in dict.fromkeys(n for path in paths for n in path)}
    if any(_is_of_mpi(name) for name, found in known.items() if found):
        known = {name: found if _is_of_mpi(name) else None for name, found in known.items()}
    return [_function_of(path, known) for path in paths]


def _function_of(path: Sequence[str], known: dict[str, tuple[str, str] | None]) -> Function | None:
    for place in reversed(range(len(path))):
        found = known[path[place]]
        if found is not None:
            name, rest = found
            return Function((*path[:place], *([rest] if rest else ()), *path[place + 1 :]), name)
    return None


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def _is_of_mpi(name: str) -> bool:
    words = _words(name)
    return bool(words) and words[0] in _MPI


def _named(name: str) -> tuple[str, str] | None:
    """Return the collective at the beginning of a name, and the rest of the name; None = none."""
    words = _words(name)
    while words and words[0] in _MPI | _SUITES:
        del words[0]
    for length in range(min(_MOST_WORDS, len(words)), 0, -1):
        found = _BY_WORDS.get(tuple(words[:length]))
        if found is not None:
            rest = [word for word in words[length:] if word not in _OF_LANGUAGES]
            return None if _OTHER_CALLS & {*rest} else (found, " ".join(rest))
    return None
