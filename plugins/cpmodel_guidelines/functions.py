"""Names of MPI collectives: ``MPI_Bcast``, ``mpi_bcast_``, ``osu_bcast``, ``Bcast``."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
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

_BY_LETTERS = {name.lower().replace("_", ""): name for name in COLLECTIVES}
_MOCK_UP = re.compile(
    r"(?:P?MPI_|GL_)?(?P<left>\w{1,60}?)_(?:as|with)_(?P<parts>\w{1,120})", re.IGNORECASE | re.ASCII
)
_PART = re.compile(r"MPI_|_|(?<=[a-z])(?=[A-Z])")
_MOST_PARTS = 8

_OF_LANGUAGES = frozenset({"c", "f", "f08", "f08ts", "x"})


@dataclass(frozen=True, slots=True)
class Function:
    """A collective and its group.

    Attributes
    ----------
    group : other parts of the call path: a library, a caller, a statistic
    name : one of `COLLECTIVES`, or a function of a guideline of the user
    mock_up : functions that a measured mock-up executes instead of `name`; empty = the function
        itself
    """

    group: tuple[str, ...]
    name: str
    mock_up: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Return the name, or the name of the mock-up in ReproMPI's manner."""
        return f"{self.name} as {' + '.join(self.mock_up)}" if self.mock_up else self.name


def canonical(name: str) -> str | None:
    """Return the collective that a whole word names; None = not a collective.

    >>> canonical("MPI_Reduce_scatter_block"), canonical("allreduce"), canonical("MPI_Iallreduce")
    ('Reduce_scatter_block', 'Allreduce', None)
    """
    found = _named(name)
    return found[0] if found is not None and not found[1] else None


def mpi_name(name: str) -> str:
    """Return the MPI function that a suite names; other names stay.

    >>> mpi_name("allreduce"), mpi_name("Bandwidth")
    ('MPI_Allreduce', 'Bandwidth')
    """
    found = canonical(name)
    return name if found is None else f"MPI_{found}"


def mock_up(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the function that a mock-up replaces and the functions that it executes.

    ReproMPI, PGMPI and PGChecker have their own spelling each. Other names return None.

    >>> mock_up("GL_Allreduce_as_ReducescatterblockAllgather")
    ('Allreduce', ('Reduce_scatter_block', 'Allgather'))
    >>> mock_up("MPI_Scan_with_MPI_Exscan_MPI_Reduce_local")
    ('Scan', ('Exscan', 'Reduce_local'))
    >>> mock_up("reducescatterblock_as_reduce_scatter")
    ('Reduce_scatter_block', ('Reduce', 'Scatter'))
    """
    found = _MOCK_UP.fullmatch(name)
    if found is None:
        return None
    left = _BY_LETTERS.get(found["left"].lower().replace("_", ""))
    text = found["parts"]
    # A part of PGMPI may contain underscores, and those of others are separated by them.
    pieces = text.split("_MPI_") if text.startswith("MPI_") else _PART.split(text)
    letters = [piece.lower().removeprefix("mpi_").replace("_", "") for piece in pieces if piece]
    parts = tuple(_BY_LETTERS.get(each, "") for each in letters)
    if left is None or not parts or not all(parts) or len(parts) > _MOST_PARTS:
        return None
    return left, parts


def reprompi_mock_up(left: str, parts: Sequence[str]) -> str:
    """Return the name that ReproMPI gives to the mock-up of a function.

    >>> reprompi_mock_up("Reduce_scatter_block", ["Reduce", "Scatter"])
    'GL_Reduce_scatter_block_as_ReduceScatter'
    >>> reprompi_mock_up("Scan", ["Exscan", "Reduce_local"])
    'GL_Scan_as_ExscanReducelocal'
    """
    return f"GL_{left}_as_{''.join(part.replace('_', '') for part in parts)}"


def pgmpi_mock_up(left: str, parts: Sequence[str]) -> str:
    """Return the name that PGMPI gives to the mock-up of a function.

    >>> pgmpi_mock_up("Scan", ["Exscan", "Reduce_local"])
    'MPI_Scan_with_MPI_Exscan_MPI_Reduce_local'
    """
    return f"MPI_{left}_with_{'_'.join(f'MPI_{part}' for part in parts)}"


def functions_in(
    paths: Sequence[Sequence[str]], others: Collection[str] = ()
) -> list[Function | None]:
    """Return the collective of each call path; None = not a collective.

    The last name that is a collective decides. If any name begins with ``MPI_``, names without that
    prefix are functions of the program.

    Parameters
    ----------
    paths : names of each call path, from the root
    others : names of other functions, of guidelines of the user
    """
    found = [_function_in(path, others) for path in paths]
    if all(found):
        return found
    of_collectives = _collectives_in(paths)
    return [a or b for a, b in zip(found, of_collectives, strict=True)]


def _function_in(path: Sequence[str], others: Collection[str]) -> Function | None:
    """Return the mock-up, or the other function, that a call path names."""
    for place in reversed(range(len(path))):
        group = (*path[:place], *path[place + 1 :])
        if path[place] in others:
            return Function(group, path[place])
        made = mock_up(path[place])
        if made is not None:
            return Function(group, *made)
    return None


def _collectives_in(paths: Sequence[Sequence[str]]) -> list[Function | None]:
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
