"""Roles of the columns of texts: call path, case, or metadata of the runs."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.profile.runs import names_a_case
from cpmodel_tables import title_words as words
from cpmodel_tables.grid import Grid
from cpmodel_tables.title_words import plain

_FEW = 64
"""Largest number of rows that Python numbers faster than numpy."""


def count(number: IntArray) -> int:
    """Return how many different numbers rows have, as `refined` and `joined` return them."""
    return int(number.max()) + 1 if len(number) else 0


def refined(number: IntArray, cells: Sequence[object]) -> IntArray:
    """Return a number per row, [n], equal for rows with equal `number` and equal cells."""
    return joined([number, numbered(cells)], len(number))


def joined(columns: Sequence[FloatArray | IntArray], rows: int) -> IntArray:
    """Return a number per row, [rows], equal for rows with equal values in all columns."""
    if columns and rows <= _FEW:
        cells = [*zip(*(column.tolist() for column in columns), strict=True)]
        # A number that is not equal to itself is not known.
        if all(cell == cell for row in cells for cell in row):  # noqa: PLR0124
            return _numbered(cells)
    found = np.zeros(rows, np.intp)
    for column in columns:
        own = np.unique(column, return_inverse=True)[1]
        found = np.unique(found * (int(own.max()) + 1) + own, return_inverse=True)[1]
    return found


def numbered(cells: Sequence[object]) -> IntArray:
    """Return a number per row, [n], equal for rows with equal cells, in order of appearance."""
    try:
        return _numbered(cells)
    except TypeError:
        # JSON may contain lists, which cannot be dictionary keys.
        return _numbered([repr(cell) for cell in cells])


def _numbered(cells: Sequence[Hashable]) -> IntArray:
    known = dict.fromkeys(cells)
    number = dict(zip(known, range(len(known)), strict=True))
    return np.fromiter(map(number.__getitem__, cells), np.intp, len(cells))


_FUNCTION = re.compile(r"MPI_[A-Z]|\w\(|\w::\w|[\w>]->\w|!\$omp |\w;\w")
"""Texts that only call paths contain."""
_IDENTIFIER = re.compile(r".*\d.*|.{12,}")
_SIGNS = re.compile(r"[,<>=!]")
_MOST_CASES = 50
_MOST_NUMBERS = 10
"""Number of columns of numbers whose values a column of texts may only label."""
_FEW_TEXTS = 3


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Roles of the columns of texts.

    Attributes
    ----------
    callpath : titles whose texts form the call path
    cases : titles of texts that tell programs, inputs or machines apart
    metadata : titles of texts about the runs
    """

    callpath: tuple[str, ...]
    cases: tuple[str, ...]
    metadata: tuple[str, ...]


def case_key(title: str) -> str:
    """Return the name of a case in conditions, which have no commas and no signs of comparison.

    >>> case_key("matrix, kind")
    'matrix kind'
    """
    return " ".join(_SIGNS.sub(" ", title).split())


def case_text(cell: object) -> str:
    """Return the name of a case in a cell with a number, as in JSON.

    >>> case_text(2.0), case_text(1.5), case_text(None)
    ('2', '1.5', '')
    """
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return "" if cell is None else str(cell)


def texts_of(
    grid: Grid, titles: Sequence[str], scales: Sequence[str], callpath: str | None
) -> TextColumns:
    """Return the roles of columns of texts.

    A text that never occurs with another text at the same scale is metadata of the runs. Other
    texts tell runs apart, so the runs are of several cases. Texts form a call path if the title or
    the texts say so: then the texts before them belong to it.

    Parameters
    ----------
    titles : columns of texts, in order
    scales : columns that tell the scale of a run
    callpath : column that is called a call path; None = none
    """
    if callpath is not None:
        path = [callpath]
    else:
        named = [k for k, title in enumerate(titles) if _is_call_path(grid, title)]
        path = list(titles[: named[-1] + 1]) if named else _one_program(grid, titles)
        path = [title for title in path if plain(title) not in words.NOTES]
    rest = [title for title in titles if title not in path]
    scale = np.zeros(len(grid.lines), np.intp)
    for title in scales:
        scale = refined(scale, grid.columns[title])
    paths = np.zeros(len(grid.lines), np.intp)
    for title in path:
        paths = refined(paths, grid.columns[title])
    # Texts that say more about a call path, or about a value, tell no runs apart.
    rows = refined(paths, [*map(str, scale.tolist())])
    described = [title for title in path and rest if _is_constant(rows, grid.columns[title])]
    rest = [title for title in rest if title not in described]
    cases = [title for title in rest if _is_case(grid, title, scale, scales)]
    rest += described
    return TextColumns(tuple(path), tuple(cases), tuple(t for t in rest if t not in cases))


def _is_call_path(grid: Grid, title: str) -> bool:
    if plain(title) in words.NOTES:
        return False
    if plain(title) in words.LIKE_REGIONS:
        return True
    texts = [str(cell) for cell in dict.fromkeys(map(str, grid.columns[title]))]
    found = sum(bool(_FUNCTION.search(text)) for text in texts[:_MOST_CASES])
    return not names_a_case(title) and 2 * found > min(len(texts), _MOST_CASES)


def _one_program(grid: Grid, titles: Sequence[str]) -> list[str]:
    """Return the column that names the only program; it is the call path of all rows."""
    named = [title for title in titles if plain(title) in words.PROGRAMS]
    return [title for title in named[:1] if len({*map(str, grid.columns[title])}) == 1]


def _is_constant(group: IntArray, cells: Sequence[object]) -> bool:
    """Return whether rows of one group have equal cells."""
    return count(refined(group, cells)) == count(group)


def _is_case(grid: Grid, title: str, scale: IntArray, scales: Sequence[str]) -> bool:
    """Return whether the texts of a column tell runs of the same scale apart."""
    cells = grid.columns[title]
    if plain(title) in words.NOTES or words.is_stamp(title):
        return False
    number = numbered(cells)
    distinct = int(number.max()) + 1
    if distinct < 2 or _is_constant(scale, cells):
        return False
    once = count(refined(scale, cells)) == distinct
    if not names_a_case(title) and (distinct > _MOST_CASES or _are_identifiers(cells, once=once)):
        return False
    labelled = (other for other in grid.columns if other != title and other not in scales)
    numeric = (other for other in labelled if grid.is_numeric(other))
    return not any(
        _is_constant(number, grid.columns[other])
        and len({*map(str, grid.columns[other])}) == distinct
        for other in islice(numeric, _MOST_NUMBERS)
    )


def _are_identifiers(cells: Sequence[object], *, once: bool) -> bool:
    """Return whether texts name single runs, as names of logs do.

    Parameters
    ----------
    once : whether each text occurs at one scale only
    """
    texts = {*map(str, cells)}
    return once and len(texts) > _FEW_TEXTS and all(map(_IDENTIFIER.fullmatch, texts))
