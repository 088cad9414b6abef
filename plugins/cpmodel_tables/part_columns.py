"""Values of tables without call paths: the run time, its parts, other times, rates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.readers.paths import is_rate, read_title
from cpmodel_tables.grid import Grid
from cpmodel_tables.notations import TIMES
from cpmodel_tables.title_words import (
    CALL_PATHS,
    LIKE_REGIONS,
    Place,
    is_activity,
    is_cost,
    part_name,
    place_of,
    plain,
    scale_name,
    unit_of_time,
)

_ORDER = (Place.TOTAL, Place.TIME, Place.PART, Place.COUNT, Place.OF_PROCESSORS, Place.AVERAGE,
          Place.RATE, Place.MODEL)  # fmt: skip
_TOO_MUCH = 1.02
"""Largest sum of parts over the run time; times are rounded in tables."""
_MOST = 0.5
"""Smallest share of the run time that columns without a known title must add up to."""
_ROUNDING = 1e-3
"""Largest rest of the run time that is rounding."""

_EXACT = 1e-11
"""Relative size of differences that the rounding of floating-point numbers explains."""
_MOST_ROUNDED = 0.005
"""Largest rest of a run time, as share of it, that may be rounding."""
_DECIMALS = 9
"""Decimals from which on numbers have all digits."""

_OF_PROGRAM = {Place.TOTAL, Place.TIME}

TIME = "time (s)"
"""Title of the sum of the parts, if no column is the run time."""
BARE_TIME = "total"
"""Title of this sum, if no part states a unit."""
_SIDE = re.compile(r"(?:n?p|nprocs?|np ?|procs? ?|ranks? ?|proc grid )(?:x|y|z|rows?|cols?)")
_MOST_SIDES = 3
_COSTS = {"speedup": "relative time", "efficiency": "relative core time"}
"""Title of the cost of a rate, by a word of the rate."""
OTHER = "other"
"""Name of the rest of the run time."""
UNKNOWN = "unknown"
"""Name of the sum of parts that no run of a scale states."""

Part = tuple[str, FloatArray]
"""Name of a part of the run time, which several parts may have, and its seconds, [rows]."""


@dataclass(frozen=True, slots=True)
class Values:
    """Roles of the values of a table without call paths.

    Attributes
    ----------
    titles : columns of values; the first one is the default metric
    total : column of the run time that has parts, or None
    parts : columns of the parts
    rest : whether the parts leave a rest of the run time
    """

    titles: tuple[str, ...]
    total: str | None = None
    parts: tuple[str, ...] = ()
    rest: bool = False
    places: dict[str, Place] = field(default_factory=dict)


def values_of_program(grid: Grid, values: Sequence[str]) -> Values:
    """Return the roles of columns of values.

    A total has priority over its parts, and the time on the wall over that of processors. Times
    that never add up to more than the total are its parts. If no title names the total, it is the
    time that all others add up to.
    """
    places = {title: place_of(title) for title in values}
    if grid.time in places:
        places[grid.time] = Place.TOTAL
    if not _OF_PROGRAM & {*places.values()}:
        places |= dict.fromkeys(_whole_of_parts(grid, places), Place.TOTAL)
    ordered = sorted(values, key=lambda t: (t != grid.time, _ORDER.index(places[t])))
    total = ordered[0]
    if places[total] not in _OF_PROGRAM or len(values) < 2:
        return Values(tuple(ordered), places=places)
    parts = _parts(grid, total, ordered[1:], places)
    if not parts:
        return Values(tuple(ordered), places=places)
    whole = seconds(grid, total)
    rest = rest_of(grid, total, parts)
    has_rest = bool((rest > _ROUNDING * whole).any())
    titles = tuple(title for title in ordered if title not in parts)
    return Values(titles, total, tuple(parts), has_rest, places)


def _whole_of_parts(grid: Grid, places: dict[str, Place]) -> list[str]:
    """Return the column of times that two others or more never exceed in sum, if there is one."""
    times = [title for title, place in places.items() if place is Place.PART]
    found = []
    for title in times:
        others, whole = [each for each in times if each != title], seconds(grid, title)
        if len(others) > 1 and not is_activity(title):
            found += [title] * _adds_up(grid, others, whole, least=_MOST)
    return found[:1]


def unclear_times(grid: Grid, values: Values) -> list[str]:
    """Return the columns of times, the used one first, if no title says which is the run time."""
    of_time = {Place.PART, Place.OF_PROCESSORS}
    times = [t for t in values.titles if values.places.get(t) in of_time and t not in values.parts]
    is_clear = values.total is not None or grid.time is not None or not times
    return [] if is_clear or values.titles[0] != times[0] or len(times) < 2 else times


def with_sum_of_parts(grid: Grid) -> Grid:
    """Return a table with the run time, if all its times are parts: the sum of the parts.

    Parts whose titles state no unit are times if all of them have decimals.
    """
    if not any(map(scale_name, grid.columns)) or not {TIME, BARE_TIME}.isdisjoint(grid.columns):
        return grid
    if sum(map(is_activity, grid.columns)) < 2:
        return grid
    numeric = [title for title in grid.columns if grid.is_numeric(title)]
    costs = [title for title in numeric if is_cost(title) and place_of(title) is not Place.MODEL]
    titles = {plain(title) for title in grid.columns}
    parts = [title for title in numeric if is_activity(title) and not scale_name(title)]
    has_paths = not titles.isdisjoint({*CALL_PATHS, *LIKE_REGIONS})
    if has_paths or len(parts) < 2 or not {*costs} <= {*parts}:
        return grid
    if not costs and not all(_is_bare(grid, title) for title in parts):
        return grid
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.sum([seconds(grid, title) for title in parts], axis=0)
    reason = "the sum of the parts, because no column is the run time"
    title = TIME if costs else BARE_TIME
    columns = {**grid.columns, title: total.tolist()}
    return replace(grid, columns=columns, derived={**grid.derived, title: reason})


def with_processes_of_grid(grid: Grid) -> Grid:
    """Return a table with the number of processes, if columns state the sides of their grid."""
    sides = [title for title in grid.columns if _SIDE.fullmatch(plain(title))]
    sides = [title for title in sides if grid.parsed(title) is not None]
    is_told = any(scale_name(title) for title in grid.columns) or "p" in grid.columns
    if not 2 <= len(sides) <= _MOST_SIDES or is_told or grid.scales:
        return grid
    numbers = [grid.numbers(title) for title in sides]
    if not all(((own >= 1) & (own % 1 == 0)).all() for own in numbers):
        return grid
    columns = {title: cells for title, cells in grid.columns.items() if title not in sides}
    reason = f"the product of {', '.join(sides)}"
    columns = {"p": np.prod(numbers, axis=0).tolist(), **columns}
    return replace(grid, columns=columns, derived={**grid.derived, "p": reason})


def with_cost_of_rate(grid: Grid) -> Grid:
    """Return a table with a cost, if it has only speedups or efficiencies: models are of costs.

    The inverse of the speedup is the time relative to the smallest run. The inverse of the
    efficiency is the time of all cores for the same work. Predicted efficiencies could rise.
    """
    if not any(map(is_rate, grid.columns)):
        return grid
    numeric = [title for title in grid.columns if grid.is_numeric(title)]
    titles = {plain(title) for title in grid.columns}
    scale = next((title for title in numeric if scale_name(title)), None)
    known = [title for title in numeric if is_cost(title) and place_of(title) is not Place.MODEL]
    if scale is None or known or not titles.isdisjoint({*CALL_PATHS, *LIKE_REGIONS}):
        return grid
    for word, cost in _COSTS.items():
        for title in numeric:
            if word in plain(title).replace("speed up", "speedup").split():
                return _with_inverse(grid, title, scale, cost)
    return grid


def _with_inverse(grid: Grid, title: str, scale: str, cost: str) -> Grid:
    """Return a table with a further column: the values at the smallest scale over all values."""
    values, at = grid.numbers(title), grid.numbers(scale)
    is_usable = bool((values > 0).all() and np.isfinite(at).all())
    if place_of(title) is Place.MODEL or cost in grid.columns or not is_usable:
        return grid
    with np.errstate(over="ignore", invalid="ignore"):
        costs = values[at == at.min()].mean() / values
    columns = {**grid.columns, cost: costs.tolist()}
    reason = f"the inverse of {title}, because no column is a time"
    derived = {**grid.derived, cost: reason}
    return replace(grid, columns=columns, units={**grid.units, cost: "1"}, derived=derived)


def rest_of(grid: Grid, total: str, parts: Sequence[str]) -> FloatArray:
    """Return the run time less its parts in seconds, [rows]; NaN = a part has no value.

    A small rest that rounding of the cells explains is 0: relative to its size, it would be pure
    noise. A larger one stays, because whole numbers need not be rounded, and because the parts add
    up to the stated total.
    """
    whole = seconds(grid, total)
    rest = whole - np.sum([seconds(grid, title) for title in parts], axis=0)
    rounding = sum(_half_a_digit(seconds(grid, title)) for title in (total, *parts))
    most = np.minimum(rounding, _MOST_ROUNDED * np.abs(whole))
    return np.where(np.abs(rest) <= np.maximum(most, _EXACT * np.abs(whole)), 0.0, rest)


def _half_a_digit(column: FloatArray) -> float:
    """Return half a unit of the last decimal of a column; 0 = numbers have all digits."""
    there = column[np.isfinite(column)]
    for decimals in range(_DECIMALS):
        at = np.abs(there) * 10.0**decimals
        if (np.abs(at - np.round(at)) <= _EXACT * np.maximum(at, 1.0)).all():
            return 0.5 * 10.0**-decimals * 1.001
    return 0.0


def parts_of_run_time(grid: Grid, program: Values, scale: IntArray) -> list[Part]:
    """Return the parts of the run time, with the rest, if there is one.

    A cell without a value does not state 0, so the parts of a row add up to its run time. Such a
    cell has the mean of the other runs of the scale. If no run of a scale has a value of one part,
    this part is the remaining time. The remaining time of several such parts is `UNKNOWN`.

    Parameters
    ----------
    grid, program : the table, with a column of the run time
    scale : [rows] number that is equal for repetitions
    """
    assert program.total is not None
    whole = seconds(grid, program.total)
    names = [part_name(title) for title in program.parts] + [OTHER] * program.rest
    costs = np.array([seconds(grid, title) for title in program.parts])
    if program.rest:
        rest = rest_of(grid, program.total, program.parts)
        costs = np.vstack([costs, np.where(rest < 0, 0.0, rest)])
    unknown = np.full(len(whole), np.nan)
    is_incomplete = np.isnan(costs).any(axis=0) & ~np.isnan(whole)
    for each in np.unique(scale[is_incomplete]).tolist():
        rows = np.flatnonzero(scale == each)
        costs[:, rows], unknown[rows] = _completed(costs[:, rows], whole[rows])
    found = [*zip(names, costs, strict=True)]
    return found if np.isnan(unknown).all() else [*found, (UNKNOWN, unknown)]


def _completed(costs: FloatArray, whole: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return parts of run times at one scale with known values, and what remains of several.

    Parameters
    ----------
    costs, whole : [parts, rows] and [rows]
    """
    known = ~np.isnan(costs)
    count = known.sum(axis=1)
    mean = np.nansum(costs, axis=1) / np.maximum(count, 1)
    (never,) = np.nonzero(count == 0)
    filled = np.where(known | (count == 0)[:, None], costs, mean[:, None])
    added = np.where(known, 0.0, np.nan_to_num(filled))
    left = np.maximum(whole - np.nansum(costs, axis=0), 0.0)
    sums = added.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(sums > 0, left / sums, 1.0)
    if len(never):
        factor = np.minimum(factor, 1.0)
    filled = np.where(known, costs, filled * factor)
    remains = left - added.sum(axis=0) * factor
    if len(never) == 1:
        filled[never[0]] = remains
    return filled, remains if len(never) > 1 else np.full(len(whole), np.nan)


def rows_without_parts(grid: Grid, program: Values) -> list[tuple[int, str]]:
    """Return the cells of parts of the run time without a value: row and title."""
    empty = {title: np.isnan(grid.numbers(title)) for title in program.parts}
    return [(row, title) for row in range(len(grid.lines)) for title in empty if empty[title][row]]


def excessive_parts(grid: Grid, program: Values) -> list[tuple[int, str]]:
    """Return the cells of times, row and title, that exceed the run time in few rows.

    Without these rows, their columns would be parts of the run time. Several titles are listed if
    only their sum exceeds it.
    """
    total = program.titles[0]
    times = [each for each in program.titles[1:] if program.places.get(each) is Place.PART]
    if program.places.get(total) not in _OF_PROGRAM or not times:
        return []
    whole = _TOO_MUCH * seconds(grid, total)
    costs = np.array([seconds(grid, title) for title in times])
    exceeds = dict(zip(times, costs > whole, strict=True))
    if program.total is None and not any(each.any() for each in exceeds.values()):
        exceeds = {", ".join(times): np.nansum(costs, axis=0) > whole}
    few = [title for title, rows in exceeds.items() if 0 < rows.sum() < len(whole) / 2]
    return [(row, title) for title in few for row in np.flatnonzero(exceeds[title]).tolist()]


def _parts(grid: Grid, total: str, others: Sequence[str], places: dict[str, Place]) -> list[str]:
    whole = seconds(grid, total)
    named = [title for title in others if places[title] is Place.PART]
    unknown = [title for title in others if places[title] is Place.COUNT and _is_bare(grid, title)]
    found = [title for title in named if _fits(seconds(grid, title), whole)]
    both = [*found, *(title for title in unknown if _fits(seconds(grid, title), whole))]
    if len(both) > len(found) and _adds_up(grid, both, whole, least=_MOST):
        return both
    return found if found and _adds_up(grid, found, whole) else []


def _is_bare(grid: Grid, title: str) -> bool:
    """Return whether a title has no unit and no known meaning, and its numbers are no counts."""
    column = grid.numbers(title)
    there = column[np.isfinite(column)]
    is_whole = bool((there == np.round(there)).all())
    return not is_whole and read_title(title).unit == "1" and not grid.units.get(title)


def _fits(part: FloatArray, whole: FloatArray) -> bool:
    there = np.isfinite(part)
    return bool(there.any() and ((part >= 0) & (part <= _TOO_MUCH * whole))[there].all())


def _adds_up(grid: Grid, parts: Sequence[str], whole: FloatArray, *, least: float = 0.0) -> bool:
    total = np.sum([np.nan_to_num(seconds(grid, title)) for title in parts], axis=0)
    return bool(((total <= _TOO_MUCH * whole) & (total >= least * whole)).all())


def seconds(grid: Grid, title: str) -> FloatArray:
    """Return a column of times in seconds, [rows]."""
    unit = grid.units.get(title) or unit_of_time(title)
    factor = TIMES.get(unit) if unit else None
    return grid.numbers(title) * (read_title(title, grid.units.get(title)).factor
                                  if factor is None else factor)  # fmt: skip


def is_bare_time(grid: Grid, title: str) -> bool:
    """Return whether a title such as ``total`` is that of a time, but states no unit."""
    if title != grid.time and place_of(title) not in {Place.TOTAL, Place.TIME}:
        return False
    return not grid.units.get(title) and read_title(title).unit == "1" and not unit_of_time(title)
