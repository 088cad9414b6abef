"""JSON configuration of PGMPI: its list of guidelines, and the settings of experiments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.printable import shortened
from cpmodel_guidelines.functions import canonical, mock_up
from cpmodel_guidelines.rules import Guideline, of_mock_up, patterns
from cpmodel_tables.text import json_of, whole_text

CATALOGUE, CONFIGURATION = "guideline_catalog.json", "guideline_conf.json"
"""Names of the files."""

_HINT = 'e.g. [{"orig": "MPI_Gather", "mock": "MPI_Gather_with_MPI_Reduce", "msizes": [8]}]'


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One guideline of PGMPI's list.

    Attributes
    ----------
    function : the function that should not be slower
    mock_up : name of the mock-up; "" = only monotony and splitting are checked
    sizes : message sizes to measure, in bytes
    """

    function: str
    mock_up: str
    sizes: tuple[float, ...]


def read_catalogue(path: Path) -> tuple[CatalogueEntry, ...]:
    """Return PGMPI's list of guidelines.

    Raises
    ------
    InputError
        If the file is not such a list.
    """
    every = json_of(path, whole_text(path, is_json=True))
    if not isinstance(every, list):
        raise InputError(f"{path}: not a list of guidelines", hint=_HINT)
    return tuple(_entries(path, every))


def _entries(path: Path, every: list[object]) -> Iterator[CatalogueEntry]:
    for number, each in enumerate(every, 1):
        what = f"{path}: guideline {number}"
        if not isinstance(each, dict):
            raise InputError(f"{what} is not an object", hint=_HINT)
        unknown = [key for key in each if key not in {"orig", "mock", "msizes"}]
        if unknown:
            raise InputError(f"{what}: unknown key {shortened(str(unknown[0]))!r}", hint=_HINT)
        function, mock_up, sizes = each.get("orig"), each.get("mock", ""), each.get("msizes", [])
        if not isinstance(function, str) or not function or not isinstance(mock_up, str):
            raise InputError(f"{what}: orig and mock are not names of functions", hint=_HINT)
        if not isinstance(sizes, list) or not all(
            isinstance(size, int | float) and not isinstance(size, bool) and 0 <= size < 2**53
            for size in sizes
        ):
            raise InputError(f"{what}: msizes is not a list of message sizes", hint=_HINT)
        yield CatalogueEntry(function, mock_up, tuple(map(float, sizes)))


def configured_processes(path: Path) -> int | None:
    """Return the number of processes in a configuration of PGMPI; None = not stated.

    Raises
    ------
    InputError
        If the file is not a configuration.
    """
    found = json_of(path, whole_text(path, is_json=True))
    if not isinstance(found, dict):
        raise InputError(f"{path}: not an object", hint='e.g. {"procs": 16, "nmpiruns": 10}')
    count = found.get("procs")
    if count is None:
        return None
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count < 2**31:
        raise InputError(f"{path}: procs is not a number of processes", hint='e.g. "procs": 16')
    return count


def guidelines_of(rules: Sequence[str], catalogues: Sequence[Path] = ()) -> tuple[Guideline, ...]:
    """Return the guidelines of the user and all built-in ones between functions.

    Parameters
    ----------
    rules : guidelines as text, and names of PGMPI's files
    catalogues : PGMPI's files in folders of results

    Raises
    ------
    UsageError
        If a text is not a guideline.
    InputError
        If a file is not a list of guidelines.
    """
    texts = [rule for rule in rules if not rule.endswith(".json")]
    paths = [Path(rule) for rule in rules if rule.endswith(".json")]
    known = patterns(texts)
    told = {(each.left.function, each.parts) for each in known}
    added = (each for path in (*paths, *catalogues) for each in _of_file(path))
    others = {each.text: each for each in added if (each.left.function, each.parts) not in told}
    return (*known, *others.values())


def _of_file(path: Path) -> Iterator[Guideline]:
    """Yield the patterns of a list of PGMPI; monotony and splitting are always checked."""
    for number, entry in enumerate(read_catalogue(path), 1):
        if not entry.mock_up:
            continue
        made = mock_up(entry.mock_up)
        if made is None or made[0] != canonical(entry.function):
            raise InputError(
                f"{path}: guideline {number}: {shortened(entry.mock_up)!r} is not a mock-up of "
                f"{shortened(entry.function)}",
                hint="e.g. MPI_Gather_with_MPI_Reduce, or GL_Gather_as_Reduce",
            )
        yield of_mock_up(*made)
