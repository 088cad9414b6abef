"""The guidelines of an answer: built in, from PGMPI's lists, and from the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.printable import shortened
from cpmodel_guidelines.functions import canonical, mock_up
from cpmodel_guidelines.rules import Guideline, of_mock_up, patterns
from cpmodel_guidelines.suites.pgmpi import read_catalogue


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
