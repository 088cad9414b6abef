"""Columns of numbers that people wrote, and rows of units, as plain numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cpmodel_tables.grid import Grid, as_numbers
from cpmodel_tables.notations import (
    TIMES,
    Written,
    groups_thousands,
    has_decimal_commas,
    is_missing,
    readings,
    written_numbers,
)
from cpmodel_tables.title_words import is_cost, scale_name

_UNIT = re.compile(r"[A-Za-zµ%#/]{0,12}")
_FAILURES = frozenset(
    {"timeout", "timed out", "time out", "oom", "out of memory", "failed", "fail", "failure", "dnf",
     "did not finish", "crash", "crashed", "error", "err", "killed", "cancelled", "canceled",
     "aborted", "n.d.", "not run", "missing", "pending"}
)  # fmt: skip
"""Words in place of the time of a run that did not end."""
_COUNT = re.compile(r"(?:([A-Za-z]{1,12})\s*=)?\s*(\d{1,9})\s*([A-Za-z ]{0,20})")
_WITH_POINT = re.compile(r"[0-9]{1,3}\.[0-9]{3}")
_BELOW_THOUSAND = re.compile(r"[1-9][0-9]{2}")
_FIRST = 100
"""Number of cells that tell whether a column has numbers."""
_MOST = 1000
"""Number of cells that are examined for separators of thousands."""
_FAR = 0.2
"""Largest ratio of numbers with points to the others, from which on the points are unclear."""


def with_numbers(grid: Grid) -> Grid:
    """Return a table whose columns of numbers in any notation have plain numbers."""
    grid = _without_units_row(grid)
    for title in grid.columns:
        _refuse_unclear_points(grid, title)
    texts = [title for title in grid.columns if grid.parsed(title) is None]
    if not texts:
        return grid
    grid = _without_words_of_failure(grid, texts)
    texts = [title for title in texts if grid.parsed(title) is None]
    if not texts:
        return grid
    point = any(
        "." in str(cell)
        for title, cells in grid.columns.items()
        if title not in texts
        for cell in cells[:100]
    )
    firsts = {title: grid.columns[title][:_MOST] for title in texts}
    grouped = [
        title
        for title, cells in firsts.items()
        if groups_thousands(cells, are_whole=bool(scale_name(title)))
    ]
    point = point or (bool(grouped) and not any(map(has_decimal_commas, firsts.values())))
    columns, units = dict(grid.columns), dict(grid.units)
    notations: dict[str, list[str]] = {}
    for title in texts:
        found = written_numbers(grid.columns[title], point=point or title in grouped)
        if found is None and (scale_name(title) or title in grid.scales):
            found = _counts_with_words(grid.columns[title])
        if found is None and (is_cost(title) or scale_name(title)):
            _refuse_unclear_commas(grid, title)
        if found is None or (found.unit == "x" and scale_name(title)):
            continue
        columns[title] = found.values
        notations.setdefault(found.notation, []).append(title)
        if found.unit == "s":
            units.setdefault(title, "s")
    if not notations:
        return grid
    listed = "; ".join(f"{each} in {', '.join(titles)}" for each, titles in notations.items())
    layout = {**grid.layout, "numbers": listed}
    return replace(grid, columns=columns, units=units, layout=layout)


def _without_words_of_failure(grid: Grid, titles: Sequence[str]) -> Grid:
    """Return a table whose times have no words such as ``timeout``: these runs have no time."""
    columns = dict(grid.columns)
    for title in titles:
        cells = grid.columns[title]
        is_time = title == grid.time or is_cost(title)
        if is_time and any(map(_is_failure, cells)) and not all(map(_is_failure, cells)):
            columns[title] = [None if _is_failure(cell) else cell for cell in cells]
    changed = any(columns[title] is not grid.columns[title] for title in titles)
    return replace(grid, columns=columns) if changed else grid


def _is_failure(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip().lower() in _FAILURES


def _refuse_unclear_points(grid: Grid, title: str) -> None:
    """Raise an error if points may separate thousands: 1.234 above 826 is 1234 or 1.234.

    Raises
    ------
    InputError
        If all cells with a point have three decimals, are far below the cells without a point, and
        all cells without a point have three digits.
    """
    cells = grid.columns[title][:_MOST]
    texts = [cell for cell in cells if isinstance(cell, str) and cell]
    pointed = [text for text in texts if _WITH_POINT.fullmatch(text)]
    others = [text for text in texts if not _WITH_POINT.fullmatch(text)]
    if not pointed or not others or not all(map(_BELOW_THOUSAND.fullmatch, others)):
        return
    if max(map(float, pointed)) < _FAR * min(map(float, others)):
        shown = pointed[0]
        raise grid.error(
            cells.index(shown),
            f"{title}: {shown!r} may be {shown.replace('.', '')} or {shown}",
            "write numbers without separators of thousands",
        )


def _counts_with_words(cells: Sequence[object]) -> Written | None:
    """Return the numbers of a column such as ``16 nodes`` or ``np=16``; None = it is another one.

    The words beside the numbers are equal, but for the plural.
    """
    found = [_COUNT.fullmatch(str(cell).strip()) for cell in cells if not is_missing(cell)]
    parts = [match for match in found if match is not None]
    words = {((match[1] or "").lower(), match[3].lower().removesuffix("s")) for match in parts}
    if len(parts) < len(found) or len(words) != 1 or words == {("", "")}:
        return None
    numbers = iter(parts)
    values = [None if is_missing(cell) else float(next(numbers)[2]) for cell in cells]
    return Written(values, "numbers with words")


def _refuse_unclear_commas(grid: Grid, title: str) -> None:
    """Raise an error if a comma may separate thousands: 12,345 is 12345 or 12.345.

    Raises
    ------
    InputError
        If all cells that are no numbers have both readings.
    """
    texts = [cell for cell in grid.columns[title] if as_numbers([cell]) is None]
    unclear = next(filter(readings, texts), None)
    if unclear is not None and all(map(readings, texts)):
        raise grid.error(
            grid.columns[title].index(unclear),
            f"{title}: {unclear!r} may be {' or '.join(readings(unclear) or ())}",
            "write numbers without separators of thousands",
        )


def _without_units_row(grid: Grid) -> Grid:
    """Return a table without a first row that has the units of the columns."""
    firsts = {title: cells[0] for title, cells in grid.columns.items()}
    rest = {title: cells[1:] for title, cells in grid.columns.items()}
    if len(grid.lines) < 2 or not all(map(_is_unit, firsts.values())):
        return grid
    numeric = [title for title, cells in rest.items() if _has_numbers(cells)]
    if not any(not is_missing(firsts[title]) for title in numeric):
        return grid
    units = dict(grid.units)
    for title in numeric:
        unit = _unit_of(firsts[title])
        unit = "" if is_missing(firsts[title]) or is_missing(unit) else unit
        if unit and (unit.lower() not in TIMES or is_cost(title) or "t" in title.lower()):
            units.setdefault(title, unit)
    layout = {**grid.layout, "units": f"{grid.place} {grid.lines[0]}"}
    return replace(grid, columns=rest, lines=grid.lines[1:], units=units, layout=layout)


def _has_numbers(cells: Sequence[object]) -> bool:
    first = cells[:_FIRST]
    if all(map(is_missing, first)):
        return False
    return as_numbers(first) is not None or written_numbers(first) is not None


def _unit_of(cell: object) -> str:
    return str(cell or "").strip(" \t[]()").rstrip(".")


def _is_unit(cell: object) -> bool:
    unit = _unit_of(cell)
    return is_missing(cell) or is_missing(unit) or _UNIT.fullmatch(unit) is not None
