"""Reader of long and wide tables: values by call path, setting, repetition and metric."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.printable import shortened
from callpath_modeler.profile.schema import base_unit
from callpath_modeler.readers.base import NO_CHOICES, ColumnChoices, Match, RunSource, TableReading
from callpath_modeler.readers.paths import (
    read_title,
    split_at_arrows,
    split_at_slashes,
    split_paths,
)
from callpath_modeler.readers.records import Records, runs_of
from callpath_modeler.support.input_limits import InputLimits
from cpmodel_tables import grid as cells
from cpmodel_tables.column_roles import column_roles, require_parameters, with_choices
from cpmodel_tables.delimited import of_delimited, titles_of_delimited
from cpmodel_tables.frames import is_frame, of_json
from cpmodel_tables.grid import Grid
from cpmodel_tables.layout import TableLayout, is_table, layout_of, may_be_table, names_call_paths
from cpmodel_tables.part_columns import (
    BARE_TIME,
    Part,
    Values,
    excessive_parts,
    is_bare_time,
    parts_of_run_time,
    rows_without_parts,
    seconds,
    unclear_times,
)
from cpmodel_tables.reader import DELIMITED, JSON, MARKDOWN, PARQUET, TEXT
from cpmodel_tables.roles import Roles, roles_of
from cpmodel_tables.series import WHOLE
from cpmodel_tables.special_rows import with_total_as_root, without_failures, without_gaps
from cpmodel_tables.text import COPY_IT_AGAIN, first_text, whole_text
from cpmodel_tables.text_columns import case_key, refined
from cpmodel_tables.title_words import unit_of_time
from cpmodel_tables.wide_tables import may_be_wide, with_repetitions

_NUMBERS = re.compile(r"(?:\s*[#%].*\n)*\s*-?[\d.]+(?:[eE][-+]?\d+)?[ \t,;]+-?[\d.]+")
"""Beginning of a table without titles."""
_MOST_NAMED = 5
"""Maximum number of cells that a finding names."""
_T = TypeVar("_T", bound=Hashable)
_Column = TypeVar("_Column", IntArray, FloatArray)


class Tables:
    """Reader of tables of measurements: CSV, TSV, JSON, JSON Lines, Parquet."""

    def match(self, path: Path) -> Match:
        """Return whether `path` is a table of measurements, by its titles."""
        if path.name.lower().endswith(PARQUET):
            return Match.CONTENT if cells.is_parquet(path) else Match.NO
        text = first_text(path)
        if not text.strip():
            return Match.NO
        if path.name.lower().endswith(JSON):
            known = True if _is_json_lines(text) else is_frame(text)
            return Match.NAME if known is None else Match.CONTENT if known else Match.NO
        name = path.name.lower()
        if name.endswith((*TEXT, *MARKDOWN)):
            return _match_of_text(text, is_page=name.endswith(MARKDOWN))
        if name.endswith(DELIMITED):
            is_known = is_table(titles_of_delimited(text, in_bars=False))
        else:
            row = cells.first_of_json_lines(text)
            is_known = row is not None and (bool(row.parameters) or is_table(list(row.columns)))
        return Match.CONTENT if is_known else Match.NAME

    def explain(self, path: Path, choices: ColumnChoices) -> TableReading:
        """Return how a table is read.

        Raises
        ------
        UsageError, InputError
            As in `runs`.
        """
        grid, layout, _ = _used_rows(_grid(path, choices))
        declared = runs_of_grid(grid, layout)[0].source.metrics
        metrics = [each.metric for each in declared]
        default = next((each for each in metrics if each.can_be_run_time), metrics[0])
        of_runs = _of_runs(grid, layout, _paths(grid, layout)[1])
        assumed = {each.metric.name: each.metric.unit for each in declared if each.unit_is_assumed}
        roles = column_roles(grid, layout, default.name, of_runs)
        return TableReading(roles, [*grid.layout.items()], assumed)

    def runs(self, path: Path, choices: ColumnChoices = NO_CHOICES) -> Sequence[RunSource]:
        """Return the runs in the table, with the roles of columns that the user states.

        Raises
        ------
        UsageError
            If a column does not exist.
        InputError
            If the file is not a table of measurements.
        """
        grid = _grid(path, choices)
        runs = runs_of_grid(grid)
        require_parameters(grid, choices, runs)
        return runs


def _match_of_text(text: str, *, is_page: bool) -> Match:
    """Return whether a text of any ending is a table.

    Parameters
    ----------
    is_page : whether the text is a page beside the runs of a directory, which is no run itself
    """
    titles = titles_of_delimited(text)
    if len(titles) > 1 and (is_table(titles) or may_be_wide(titles)):
        return Match.NAME if is_page else Match.CONTENT
    is_untitled = _NUMBERS.match(text) is not None
    return Match.NAME if may_be_table(titles) or is_untitled else Match.NO


def _grid(path: Path, choices: ColumnChoices) -> Grid:
    name = path.name.lower()
    if name.endswith((*DELIMITED, *TEXT, *MARKDOWN)):
        return of_delimited(path, choices)
    if name.endswith(PARQUET):
        grid, form = cells.of_parquet(path), "Parquet"
    elif name.endswith(JSON) and not _is_json_lines(first_text(path)):
        grid, form = of_json(path, whole_text(path, is_json=True)), "JSON"
    else:
        grid, form = cells.of_json_lines(path), "JSON Lines"
    layout = {"separator": form, "rows": str(len(grid.lines))}
    return with_repetitions(with_choices(replace(grid, layout=layout), choices))


def _is_json_lines(text: str) -> bool:
    """Return whether a text is JSON Lines of Extra-P, which may have the ending ``.json``."""
    row = cells.first_of_json_lines(text)
    return row is not None and bool(row.parameters) and "value" in row.columns


def runs_of_grid(
    grid: Grid, layout: TableLayout | None = None, noticed: Sequence[Finding] = ()
) -> list[RunSource]:
    """Return the runs in a table.

    Parameters
    ----------
    layout : roles of the columns; None = find them by titles and values
    noticed : findings about the file

    Raises
    ------
    InputError
        If the table does not contain measurements.
    """
    findings = [*noticed]
    if layout is None:
        grid, layout, left_out = _used_rows(grid)
        findings += left_out
    if layout.left_out:
        titles = ", ".join(layout.left_out)
        findings.append(Finding("CPM125", str(grid.path), titles, len(layout.left_out)))
    paths, path = _paths(grid, layout)
    if len(paths) > 1 and not names_call_paths(layout):
        titles = ", ".join(layout.callpath)
        findings.append(Finding("CPM165", str(grid.path), titles, len(layout.callpath)))
    program = layout.program
    if program is not None and program.total == BARE_TIME and BARE_TIME in grid.derived:
        metric = read_title(BARE_TIME, "s").name
        message = (
            f"no title states a unit: {', '.join(program.parts)}; their sum is read as seconds"
        )
        findings.append(Finding("CPM160", metric, message))
    unclear = [] if program is None else unclear_times(grid, program)
    if unclear:
        first, *others = unclear
        message = f"{first} is used, not {', '.join(others)}"
        findings.append(Finding("CPM167", str(grid.path), message))
    findings += _unknown_values(grid, layout) if program is None else _about_parts(grid, program)
    roles = _of_runs(grid, layout, path)
    records = with_total_as_root(_records(grid, layout, (paths, path), roles))
    return runs_of(records, [*findings, *roles.findings])


def _unknown_values(grid: Grid, layout: TableLayout) -> list[Finding]:
    """Return a finding about call paths whose rows have no value of the default metric."""
    if layout.metric is not None or not layout.callpath:
        return []
    title = layout.values[0]
    rows = np.flatnonzero(np.isnan(grid.numbers(title))).tolist()
    if not rows:
        return []
    columns = [grid.texts(each) for each in layout.callpath]
    cells = [(row, "/".join(column[row] for column in columns)) for row in rows]
    message = f"{_named(grid, cells)}: no value of {title}"
    return [Finding("CPM168", str(grid.path), message, len(rows))]


def _about_parts(grid: Grid, program: Values) -> list[Finding]:
    """Return findings about parts of the run time without a value, and about too large ones."""
    found = []
    if empty := rows_without_parts(grid, program):
        message = f"{_named(grid, empty)}: no value"
        found.append(Finding("CPM168", str(grid.path), message, len(empty)))
    if large := excessive_parts(grid, program):
        message = f"{_named(grid, large)}: more than {program.titles[0]}"
        found.append(Finding("CPM169", str(grid.path), message, len(large)))
    return found


def _named(grid: Grid, cells: Sequence[tuple[int, str]]) -> str:
    """Return the first cells with their line and name: ``line 7: io; line 9: io``."""
    named = [f"{grid.place} {grid.lines[row]}: {name}" for row, name in cells[:_MOST_NAMED]]
    return "; ".join(named) + "; ..." * (len(cells) > _MOST_NAMED)


def _used_rows(grid: Grid) -> tuple[Grid, TableLayout, list[Finding]]:
    """Return a table without rows that are no runs, its layout, and findings about these rows."""
    grid, failed = without_failures(grid)
    layout = layout_of(grid)
    if layout.program is None:
        return grid, layout, failed
    first = layout.program.total or layout.values[0]
    grid, gaps = without_gaps(grid, first, layout.parameters)
    return grid, layout_of(grid) if gaps else layout, [*failed, *gaps]


def _records(
    grid: Grid,
    layout: TableLayout,
    of_rows: tuple[list[tuple[str, ...]], IntArray],
    roles: Roles,
) -> Records:
    paths, path = of_rows
    parts = _parts_of(grid, layout)
    titles, title, values, units = _values(grid, layout, parts)
    copies = len(values) // len(path)
    paths, path = _paths_of_parts(parts, paths, _copied(path, copies), len(grid.lines))
    return Records(
        subject=str(grid.path),
        paths=paths,
        path=path,
        parameters={name: _copied(column, copies) for name, column in roles.parameters.items()},
        repetition=None if roles.repetition is None else _copied(roles.repetition, copies),
        titles=titles,
        title=title,
        values=values,
        limits=InputLimits.of(grid.path),
        units=units,
        lines=_copied(grid.lines, copies),
        creator=grid.creator,
        words={title: [*texts] * copies for title, texts in roles.words.items()},
        cases=[case_key(title) for title in layout.cases],
        assumed=frozenset(title for title in titles if is_bare_time(grid, title)),
        are_events=layout.events,
        # Extra-P numbers the values of each call path.
        runs_are_numbered=layout.repetition is not None and not (grid.has_lists or grid.parameters),
    )


def _paths_of_parts(
    parts: Sequence[Part], paths: list[tuple[str, ...]], path: IntArray, rows: int
) -> tuple[list[tuple[str, ...]], IntArray]:
    """Return the call paths, and that of each value, with the parts of the run time."""
    if not parts:
        return paths, path
    others = len(path) // rows - len(parts)
    which = np.repeat(np.arange(len(parts)), rows) + 1
    return (
        [*paths, *((*paths[0], name) for name, _ in parts)],
        np.concatenate([which, path[: others * rows]]),
    )


def _copied(column: _Column, copies: int) -> _Column:
    """Return a column, repeated once per column of values."""
    return column if copies == 1 else np.tile(column, copies)


def _paths(grid: Grid, layout: TableLayout) -> tuple[list[tuple[str, ...]], IntArray]:
    """Return the distinct call paths, and the call path of each row."""
    if not layout.callpath:
        return [(WHOLE,)], np.zeros(len(grid.lines), np.intp)
    if len(layout.callpath) > 1:
        columns = [grid.texts(title) for title in layout.callpath]
        distinct, of_row = _distinct(list(zip(*columns, strict=True)))
        return distinct, of_row
    (title,) = layout.callpath
    if any(isinstance(cell, list) for cell in grid.columns[title]):
        return _distinct([_names(grid, row, title) for row in range(len(grid.lines))])
    texts, of_row = _distinct(grid.texts(title))
    ids = [str(cell) for cell in grid.columns.get("id", ())[:1]]
    if ids and ids[0].startswith("@"):
        # cpmodel wrote the table, so slashes within names are escaped.
        paths = [split_at_slashes(text) for text in texts]
    elif grid.parameters:
        # In Extra-P's JSON Lines, a slash is part of a name.
        paths = [split_at_arrows(text) for text in texts]
    else:
        paths = split_paths(texts)
    for k, names in enumerate(paths):
        if "\0" in texts[k]:
            row = int(np.flatnonzero(of_row == k)[0])
            raise grid.error(
                row, f"{title}: {shortened(texts[k])!r} contains null bytes", COPY_IT_AGAIN
            )
        if "" in names:
            row = int(np.flatnonzero(of_row == k)[0])
            raise grid.error(
                row, f"{title}: {texts[k]!r} contains an empty name", "fill in the name"
            )
    return paths, of_row


def _names(grid: Grid, row: int, title: str) -> tuple[str, ...]:
    cell = grid.columns[title][row]
    if not isinstance(cell, list) or not cell or not all(isinstance(n, str) and n for n in cell):
        raise grid.error(row, f"{title}: not a list of names", 'e.g. ["main", "solve"]')
    return tuple(cell)


def _distinct(items: Sequence[_T]) -> tuple[list[_T], IntArray]:
    distinct = list(dict.fromkeys(items))
    number = dict(zip(distinct, range(len(distinct)), strict=True))
    return distinct, np.fromiter(map(number.__getitem__, items), np.intp, len(items))


def _of_runs(grid: Grid, layout: TableLayout, path: IntArray) -> Roles:
    """Return the properties of the run of each row."""
    numbers = {}
    for title in layout.parameters:
        column = grid.numbers(title)
        for row in np.flatnonzero(~np.isfinite(column))[:1].tolist():
            raise grid.error(row, f"parameter {title} has no finite value")
        numbers[title] = column
    repetition = None
    if layout.repetition is not None:
        is_told = layout.repetition == grid.repetition
        repetition = (_repetitions if is_told else _whole_numbers)(grid, layout.repetition)
    if layout.metric is not None:
        _, metric = _distinct(grid.texts(layout.metric))
        path = path * (int(metric.max()) + 1) + metric
    return roles_of(grid, layout, path, numbers, repetition)


def _repetitions(grid: Grid, title: str) -> IntArray:
    """Return the numbers of repetitions in a column that the user chose: numbers or any texts."""
    column = grid.parsed(title)
    if column is not None and ((column >= 0) & (column < 2**31) & (column % 1 == 0)).all():
        return _whole_numbers(grid, title)
    distinct, number = _distinct([str(cell) for cell in grid.columns[title]])
    order = np.argsort(np.argsort(np.array(distinct)))
    return np.asarray(1 + order[number], np.intp)


def _whole_numbers(grid: Grid, title: str) -> IntArray:
    column = grid.numbers(title)
    bad = ~(np.abs(column) < 2**31) | (column != np.round(column))
    for row in np.flatnonzero(bad)[:1].tolist():
        raise grid.error(row, f"{title} is not a whole number", "number repetitions from 1")
    return column.astype(np.intp)


def _values(
    grid: Grid, layout: TableLayout, parts: Sequence[Part]
) -> tuple[list[str], IntArray, FloatArray, dict[str, str]]:
    """Return titles of values, the title and value of each row, and units by title."""
    rows = len(grid.lines)
    if layout.program is not None:
        # Infinite values are removed when runs are read.
        with np.errstate(over="ignore", invalid="ignore"):
            return _values_of_program(grid, layout.program, parts)
    columns = [grid.numbers(title) for title in layout.values]
    if layout.metric is None:
        titles = list(layout.values)
        title = np.repeat(np.arange(len(titles)), rows)
        units = {each: "s" for each in titles if each == grid.time and is_bare_time(grid, each)}
        return titles, title, np.concatenate(columns), {**grid.units, **units}
    written = layout.values[0]
    texts = grid.texts(layout.metric)
    if read_title(written).inclusive:
        texts = [f"{text} (inc)" for text in texts]
    titles, title = _distinct(texts)
    values, units = columns[0], dict[str, str]()
    bracket = grid.units.get(written) or written.partition("[")[2].partition("]")[0]
    if layout.unit is not None:
        values, units = _in_one_unit(grid, layout.unit, titles, title, values)
    elif bracket:
        units = dict.fromkeys(titles, bracket)
    return titles, title, values, units


def _parts_of(grid: Grid, layout: TableLayout) -> list[Part]:
    """Return the parts of the run time; none = the run time is not divided."""
    if layout.program is None or layout.program.total is None:
        return []
    scale = np.zeros(len(grid.lines), np.intp)
    for title in (*layout.parameters, *layout.cases):
        scale = refined(scale, grid.columns[title])
    with np.errstate(over="ignore", invalid="ignore"):
        return parts_of_run_time(grid, layout.program, scale)


def _values_of_program(
    grid: Grid, program: Values, parts: Sequence[Part]
) -> tuple[list[str], IntArray, FloatArray, dict[str, str]]:
    """Return the values of a table without call paths; those of the parts come first."""
    titles = list(program.titles)
    columns = [costs for _, costs in parts]
    title = [] if program.total is None else [titles.index(program.total)] * len(parts)
    others = [each for each in titles if each != program.total]
    is_time = {each: bool(unit_of_time(each)) for each in titles}
    columns += [seconds(grid, each) if is_time[each] else grid.numbers(each) for each in others]
    title += [titles.index(each) for each in others]
    units = {**grid.units, **{each: "s" for each in titles if is_time[each]}}
    units |= {each: "s" for each in titles if is_bare_time(grid, each)}
    if program.total is not None:
        units[program.total] = "s"
    return titles, np.repeat(title, len(grid.lines)), np.concatenate(columns), units


def _in_one_unit(
    grid: Grid,
    column: str,
    titles: Sequence[str],
    title: IntArray,
    values: FloatArray,
) -> tuple[FloatArray, dict[str, str]]:
    """Convert values with units to base units, [n], and return them with the unit by title."""
    written = [str(cell or "") for cell in grid.columns[column]]
    stated = [base_unit(text) for text in written]
    units: dict[str, str] = {}
    for row, (unit, _) in enumerate(stated):
        name = titles[title[row]]
        if units.setdefault(name, unit) != unit:
            message = f"{name} is in {unit or 'no unit'}, but in {units[name]} before"
            raise grid.error(row, message, "use one unit for all values of a metric")
    known = {titles[title[row]] for row, text in enumerate(written) if text.strip()}
    units = {name: unit for name, unit in units.items() if name in known}
    return values * np.array([factor for _, factor in stated]), units
