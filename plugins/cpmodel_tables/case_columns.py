"""Tables with one column of run times per case, as tables with one row per value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.readers.titles import is_rate
from cpmodel_tables.grid import Grid
from cpmodel_tables.part_columns import values_of_program
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

CASE = "case"
"""Title of the column of cases."""
_BRACKETS = re.compile(r"[\[(][^\[(\])]*[\])]")
_WORD = re.compile(r"[^\W_]+(?:[.+-][^\W_]+)*")
_OF_TIMES = frozenset({"t", "time", "times", "runtime", "walltime", "wall", "elapsed", "seconds",
                       "zeit", "laufzeit", "duration"})  # fmt: skip


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
    for group in groups:
        columns[group[0].common] = [grid.columns[c.title][k] for k in rows for c in group]
    return replace(grid, columns=columns, lines=np.repeat(grid.lines, copies))


def _times_of_cases(grid: Grid) -> list[_Column] | None:
    """Return the columns of times if they are of several cases, and no other column is a time."""
    costs = [t for t in grid.columns if is_cost(t) and place_of(t) is not Place.MODEL]
    if len(costs) < 2:
        return None
    costs = [title for title in costs if grid.is_numeric(title)]
    titles = {plain(title) for title in grid.columns}
    has_paths = not titles.isdisjoint({*CALL_PATHS, *LIKE_REGIONS})
    if len(costs) < 2 or has_paths or not any(map(scale_name, grid.columns)):
        return None
    if not {*map(place_of, costs)} <= {Place.PART, Place.TOTAL} or any(map(is_activity, costs)):
        return None
    found = _split(costs)
    if len(costs) > 2 and len(values_of_program(grid, costs).parts) > 1:
        return None
    if found is None or not all(may_name_a_case(w) for c in found for w in c.own.split()):
        return None
    words = {*plain(_BRACKETS.sub("", found[0].common)).split()}
    is_free = found[0].common not in grid.columns and not any(map(grid.units.get, costs))
    return found if is_free and words and words <= _OF_TIMES else None


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
