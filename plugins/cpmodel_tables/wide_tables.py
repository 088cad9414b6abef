"""Tables with one column per repetition, scale or case, as tables with one row per value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.readers.tokens import REPETITIONS
from cpmodel_tables.case_columns import with_rows_of_cases
from cpmodel_tables.grid import Grid
from cpmodel_tables.lists import REPETITION
from cpmodel_tables.part_columns import with_cost_of_rate, with_sum_of_parts
from cpmodel_tables.title_words import is_cost, plain, scale_name

_NUMBERED = re.compile(r"([A-Za-z][A-Za-z _-]*?)[\s_#-]*(\d{1,4})\s*([\[(][^\[(\])]*[\])])?")
_SCALE = re.compile(r"([A-Za-z]*)[=_]?(\d{1,9})([A-Za-z]*)")
_TIMES = frozenset({"t", "time", "seconds", "wall", "walltime", "elapsed", "runtime"})
_FEWEST_SCALES = 3
VALUE = "time"
"""Title of the values below numbers of processes."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Columns with values of one kind: their titles and numbers, and titles of the long form."""

    titles: Sequence[str]
    numbers: Sequence[int]
    value: str
    number: str


def with_long_rows(grid: Grid) -> Grid:
    """Return a table with one row per value, if columns are repetitions or scales.

    The columns ``run1``, ``run2`` or ``t_1``, ``t_2`` hold repetitions if another column tells the
    scale. The columns ``1``, ``2``, ``4`` or ``p=4``, ``p=8``, ``p=16`` hold scales if no other
    column tells it, and if none is called a time. The columns ``time old`` and ``time new`` are of
    two cases.
    """
    group = _repetitions(grid) or _scales(grid)
    if group is None:
        return with_cost_of_rate(with_sum_of_parts(with_rows_of_cases(grid)))
    copies, rows = len(group.titles), range(len(grid.lines))
    columns: dict[str, Sequence[object]] = {
        title: [cells[k] for k in rows for _ in range(copies)]
        for title, cells in grid.columns.items()
        if title not in group.titles
    }
    columns[group.number] = [*group.numbers] * len(rows)
    columns[group.value] = [grid.columns[title][k] for k in rows for title in group.titles]
    return replace(grid, columns=columns, lines=np.repeat(grid.lines, copies))


def may_be_wide(titles: Sequence[str]) -> bool:
    """Return whether titles are those of one column per repetition or per scale.

    >>> may_be_wide(["nodes", "run1", "run2"]), may_be_wide(["region", "p=2", "p=4", "p=8"])
    (True, True)
    >>> may_be_wide(["name", "2023", "2024"])
    False
    """
    numbered = [parts[1] for title in titles if (parts := _NUMBERED.fullmatch(title))]
    found = (_SCALE.fullmatch("".join(title.split())) for title in titles)
    scales = [parts for parts in found if parts and scale_name(parts[1] or parts[3] or "-")]
    has_scale = any(map(scale_name, titles))
    return (sum(map(_is_repeated, numbered)) > 1 and has_scale) or len(scales) >= _FEWEST_SCALES


def _repetitions(grid: Grid) -> _Group | None:
    if not any(map(scale_name, grid.columns)) and "n" not in map(plain, grid.columns):
        return None
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for title in grid.columns:
        parts = _NUMBERED.fullmatch(title)
        if parts and _is_repeated(parts[1]) and grid.is_numeric(title):
            key = " ".join(plain(parts[1]).split()), parts[3] or ""
            found.setdefault(key, []).append((int(parts[2]), title))
    for (stem, unit), members in found.items():
        numbers = [number for number, _ in members]
        counts = numbers == [*range(numbers[0], numbers[0] + len(numbers))] and numbers[0] in {0, 1}
        taken = any(is_cost(t) and t not in dict(members).values() for t in grid.columns)
        if len(members) > 1 and counts and not (taken and stem not in REPETITIONS | _TIMES):
            value = f"{VALUE} {unit}".strip()
            if value not in grid.columns and REPETITION not in grid.columns:
                return _Group([title for _, title in members], numbers, value, REPETITION)
    return None


def _is_repeated(stem: str) -> bool:
    words = plain(stem).split()
    return bool(words) and all(word in REPETITIONS | _TIMES for word in words)


def _scales(grid: Grid) -> _Group | None:
    titles, numbers, names = [], [], set()
    for title in grid.columns:
        parts = _SCALE.fullmatch("".join(title.split()))
        word = (parts[1] or parts[3]) if parts else ""
        name = "p" if not word else scale_name(word)
        if parts and name and not (parts[1] and parts[3]) and grid.is_numeric(title):
            titles.append(title)
            numbers.append(int(parts[2]))
            names.add(name)
    others = [title for title in grid.columns if title not in titles]
    is_known = any(scale_name(title) or is_cost(title) for title in others)
    rises = numbers == sorted({*numbers}) and all(number > 0 for number in numbers)
    if len(titles) < _FEWEST_SCALES or is_known or not rises or len(names) > 1 or not others:
        return None
    (name,) = names
    return None if name in others or VALUE in others else _Group(titles, numbers, VALUE, name)
