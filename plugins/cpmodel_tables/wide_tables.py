"""Tables with one column per repetition, scale or case, as tables with one row per value."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np

from callpath_modeler.readers.paths import is_rate
from callpath_modeler.readers.tokens import REPETITIONS
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.grid import ONE_ROW_PER_VALUE, Grid
from cpmodel_tables.part_columns import values_of_program, with_cost_of_rate, with_sum_of_parts
from cpmodel_tables.title_words import (
    CALL_PATHS,
    LIKE_REGIONS,
    Place,
    is_activity,
    is_cost,
    may_name_a_case,
    place_of,
    plain,
    scale_name,
)

REPETITION = "repetition"
"""Title of the column that numbers the values of lists."""


def with_repetitions(grid: Grid) -> Grid:
    """Return a table with one number per cell: each number of a list gets its own row.

    Rows with equal values in the other columns are repetitions, numbered in the order of the file.
    """
    listed = [title for title, cells in grid.columns.items() if _has_lists(cells)]
    if not listed:
        return grid
    counts = np.ones(len(grid.lines), np.intp)
    for title in listed:
        counts = np.maximum(counts, [_length(cell) for cell in grid.columns[title]])
    limits = InputLimits.of(grid.path)
    limits.check(Work.TABLE, int(counts.sum()) * len(grid.columns), ONE_ROW_PER_VALUE)
    row = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns: dict[str, Sequence[object]] = {}
    for title, cells in grid.columns.items():
        of_row = row.tolist()
        if title in listed:
            places = zip(of_row, within.tolist(), strict=True)
            columns[title] = [_cell(cells[k], number) for k, number in places]
        else:
            columns[title] = [cells[k] for k in of_row]
    if REPETITION not in columns and grid.repetition is None:
        others = [cells for title, cells in grid.columns.items() if title not in listed]
        columns[REPETITION] = _numbered(others, counts.tolist())
    return replace(grid, columns=columns, lines=grid.lines[row], has_lists=True)


def _has_lists(cells: Sequence[object]) -> bool:
    lists = [cell for cell in cells if isinstance(cell, list)]
    return bool(lists) and all(_is_number(value) for cell in lists for value in cell)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _length(cell: object) -> int:
    return max(1, len(cell)) if isinstance(cell, list) else 1


def _cell(cell: object, number: int) -> object:
    if not isinstance(cell, list):
        return cell
    return cell[number] if number < len(cell) else None


def _numbered(columns: Sequence[Sequence[object]], counts: Sequence[int]) -> list[object]:
    """Return the numbers of the values of each row among the rows with equal `columns`."""
    seen: Counter[tuple[str, ...]] = Counter()
    numbers: list[object] = []
    rows = zip(*columns, strict=True) if columns else repeat((), len(counts))
    for cells, count in zip(rows, counts, strict=True):
        key = tuple(map(repr, cells))
        numbers += range(seen[key] + 1, seen[key] + count + 1)
        seen[key] += count
    return numbers


_NUMBERED = re.compile(r"([A-Za-z][A-Za-z _-]*?)[\s_#-]*(\d{1,4})\s*([\[(][^\[(\])]*[\])])?")
_SCALE = re.compile(r"([A-Za-z]*)[=_]?(\d{1,9})([A-Za-z]*)")
_TIMES = frozenset({"t", "time", "seconds", "wall", "walltime", "elapsed", "runtime"})
_FEWEST_SCALES = 3
_MOST_LISTED = 4
VALUE = "time"
"""Title of the values below numbers of processes."""
CASE = "case"
"""Title of the column of cases."""
_BRACKETS = re.compile(r"[\[(][^\[(\])]*[\])]")
_WORD = re.compile(r"[^\W_]+(?:[.+-][^\W_]+)*")
_OF_TIMES = frozenset({"t", "time", "times", "runtime", "walltime", "wall", "elapsed", "seconds",
                       "zeit", "laufzeit", "duration"})  # fmt: skip


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
    if grid.time is not None:
        return grid
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
    reason = f"one row for each of the columns {_listed(group.titles)}"
    derived = {**grid.derived, group.number: reason, group.value: reason}
    return replace(grid, columns=columns, lines=np.repeat(grid.lines, copies), derived=derived)


def _listed(titles: Sequence[str]) -> str:
    """Return the first titles and the last one."""
    few = len(titles) <= _MOST_LISTED
    return ", ".join(titles if few else [*titles[: _MOST_LISTED - 1], "...", titles[-1]])


def with_titles_in_rows(grid: Grid) -> Grid:
    """Return a table with one row per scale, if its titles are scales and its rows quantities.

    As in ``np,1,2,4`` above ``time (s),100,51,26``: the first title names workers, the others are
    rising whole numbers, and a row is a time or a part of it.
    """
    first, *others = grid.columns
    scales = [title.strip() for title in others]
    if len(others) < _FEWEST_SCALES or not scale_name(first) or not all(map(str.isdecimal, scales)):
        return grid
    names = [str(cell).strip() for cell in grid.columns[first]]
    numbers = [*map(int, scales)]
    is_known = any(is_cost(name) or is_activity(name) for name in names)
    if not is_known or numbers != sorted({*numbers}) or len({first, *names}) <= len(names):
        return grid
    columns: dict[str, Sequence[object]] = {first: scales}
    for row, name in enumerate(names):
        columns[name] = [grid.columns[title][row] for title in others]
    layout = {**grid.layout, "rows": f"{len(names)}, each with one quantity at all scales"}
    lines = np.repeat(grid.lines[:1], len(others))
    return replace(grid, columns=columns, lines=lines, layout=layout)


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
    has_scale = any(map(scale_name, grid.columns)) or "n" in map(plain, grid.columns)
    if not has_scale or grid.repetition is not None:
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
    titles, numbers, names, name = [], [], set(), ""
    for title in grid.columns:
        parts = _SCALE.fullmatch("".join(title.split()))
        word = (parts[1] or parts[3]) if parts else ""
        own = "p" if not word else scale_name(word)
        if parts and own and not (parts[1] and parts[3]) and grid.is_numeric(title):
            titles.append(title)
            numbers.append(int(parts[2]))
            names.add(own.removesuffix("s"))  # 1 core, 2 cores
            name = own
    others = [title for title in grid.columns if title not in titles]
    is_known = any(scale_name(title) or is_cost(title) for title in others)
    rises = numbers == sorted({*numbers}) and all(number > 0 for number in numbers)
    if len(titles) < _FEWEST_SCALES or is_known or not rises or len(names) > 1 or not others:
        return None
    if name in others or VALUE in others:
        return None
    return _Group(titles, numbers, VALUE, name)


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of one case: its title, the words of all cases with the unit, its own words."""

    title: str
    common: str
    own: str


def with_rows_of_cases(grid: Grid) -> Grid:
    """Return a table with one row per value, if its times differ in one word, such as old and new.

    Such columns are no parts of one run time, and no column is the run time. So they are of several
    cases, which are never added up. Rates of the same cases become a column as well.
    """
    times = _times_of_cases(grid)
    if times is None or CASE in grid.columns:
        return grid
    cases = [column.own for column in times]
    groups = [times, *_rates_of_cases(grid, cases)]
    moved = {column.title for group in groups for column in group}
    copies, rows = len(cases), range(len(grid.lines))
    columns: dict[str, Sequence[object]] = {
        title: [cells[k] for k in rows for _ in range(copies)]
        for title, cells in grid.columns.items()
        if title not in moved
    }
    columns[CASE] = cases * len(rows)
    derived = dict(grid.derived)
    for group in groups:
        columns[group[0].common] = [grid.columns[c.title][k] for k in rows for c in group]
        reason = f"one row for each of the columns {_listed([c.title for c in group])}"
        derived |= {group[0].common: reason}
        derived.setdefault(CASE, reason)
    lines = np.repeat(grid.lines, copies)
    return replace(grid, columns=columns, lines=lines, derived=derived)


def _times_of_cases(grid: Grid) -> list[_Column] | None:
    """Return the columns of times if they are of several cases, and no other column is a time."""
    costs = [t for t in grid.columns if is_cost(t) and place_of(t) is not Place.MODEL]
    costs = [title for title in costs if len(costs) > 1 and grid.is_numeric(title)]
    titles = {plain(title) for title in grid.columns}
    has_paths = not titles.isdisjoint({*CALL_PATHS, *LIKE_REGIONS})
    if len(costs) < 2 or has_paths or not any(map(scale_name, grid.columns)):
        return None
    if not {*map(place_of, costs)} <= {Place.PART, Place.TOTAL} or any(map(is_activity, costs)):
        return None
    found = _split(costs)
    if len(costs) > 2 and _are_parts(grid, costs):
        return None
    if found is None or not all(may_name_a_case(w) for c in found for w in c.own.split()):
        return None
    words = {*plain(_BRACKETS.sub("", found[0].common)).split()}
    is_free = found[0].common not in grid.columns and not any(map(grid.units.get, costs))
    return found if is_free and words and words <= _OF_TIMES else None


def _are_parts(grid: Grid, titles: Sequence[str]) -> bool:
    """Return whether one of the times is the sum of others."""
    with np.errstate(over="ignore", invalid="ignore"):
        return len(values_of_program(grid, titles).parts) > 1


def _rates_of_cases(grid: Grid, cases: Sequence[str]) -> list[list[_Column]]:
    """Return the columns of rates of the same cases, such as ``speedup old``, ``speedup new``."""
    rates = [title for title in grid.columns if grid.is_numeric(title) and is_rate(title)]
    found = _split(rates) if len(rates) == len(cases) else None
    return [found] if found and [column.own for column in found] == [*cases] else []


def _split(titles: Sequence[str]) -> list[_Column] | None:
    """Return titles with the words that they have in common, and their own words, or None."""
    notes = {tuple(_BRACKETS.findall(title)) for title in titles}
    every = [_WORD.findall(_BRACKETS.sub("", title)) for title in titles]
    shared = set.intersection(*({word.lower() for word in words} for words in every))
    own = [" ".join(word for word in words if word.lower() not in shared) for words in every]
    common = {" ".join(w.lower() for w in words if w.lower() in shared) for words in every}
    if len(notes) > 1 or len(common) > 1 or not all(own) or len({*own}) < len(own):
        return None
    value = " ".join([*common, *next(iter(notes))])
    return [_Column(title, value, text) for title, text in zip(titles, own, strict=True)]
