"""Roles of the columns of a table, each with its reason, from titles and cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.errors import InputError
from callpath_modeler.printable import printable, shell_word, shortened
from callpath_modeler.readers.paths import is_measured, is_processes, is_rate
from callpath_modeler.readers.tokens import NameWord, word_of
from cpmodel_tables import title_words as words
from cpmodel_tables.grid import HINT, Grid, refuse_many
from cpmodel_tables.part_columns import Values, values_of_program
from cpmodel_tables.text_columns import TextColumns, count, refined, texts_of
from cpmodel_tables.title_words import plain, scale_name

_OF_RESULTS = frozenset({"growth", "model"})
_BARE_COUNTS = frozenset({"count", "number", "num", "quantity", "instances"})
"""Titles that do not say what they count; beside a time, it may be the workers."""
_FILLED = 0.5
"""At each setting of the parameters, more than this share of the call paths must have a row."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """Roles of the columns of a table.

    Attributes
    ----------
    callpath : titles whose texts form the call path; none = one call path for all rows
    parameters, values : titles
    repetition, metric, unit, run : titles, or None; with `metric` there is one title of values
    left_out : titles of unused columns
    metadata : titles of texts about the runs
    cases : titles of texts that tell programs, inputs or machines apart
    program : roles of the values if no column has call paths; None = the values as they are
    names : names of parameters, by title, where they differ from the title
    events : whether each row is an event, so that rows of one call path are added
    """

    callpath: tuple[str, ...]
    parameters: tuple[str, ...]
    values: tuple[str, ...]
    repetition: str | None
    metric: str | None
    unit: str | None
    run: str | None
    left_out: tuple[str, ...]
    metadata: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    program: Values | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    events: bool = False


def is_table(titles: Sequence[str]) -> bool:
    """Return whether a table contains measurements per call path or run, by its titles."""
    names = {plain(title) for title in titles}
    if names >= _OF_RESULTS:
        return False
    if names & {*words.CALL_PATHS}:
        return len(names) > 1
    known = names & {*words.REGIONS, *words.COUNTS, *words.PROGRAMS, "n"}
    about_runs = bool(known) or any(scale_name(title) for title in titles)
    return about_runs and any(is_measured(title) or words.is_cost(title) for title in titles)


def may_be_table(titles: Sequence[str]) -> bool:
    """Return whether titles are those of a table with a time, under any title of the scale."""
    return len(titles) > 1 and any(map(words.is_cost, titles))


def names_call_paths(layout: TableLayout) -> bool:
    """Return whether the titles of the call path identify it as one."""
    known = {*words.CALL_PATHS, *words.REGIONS, *words.PROGRAMS}
    return not layout.callpath or any(plain(title) in known for title in layout.callpath)


def layout_of(grid: Grid) -> TableLayout:
    """Return the role of every column.

    Raises
    ------
    InputError
        If a necessary role has no column, or the role of a column is not supported.
    """
    _refuse(grid)
    search = _Search(grid)
    stamps = search.take_stamps()
    if stamps and not search.has_scale():
        return _events(grid, search, stamps)
    scaling = search.rising_scales()
    rising = scaling[0] if len(scaling) == 1 else None
    known = grid.parameters or grid.is_result or is_table(list(grid.columns)) or scaling
    if not known and grid.time is None and not grid.scales:
        what, hint = _described(search)
        raise InputError(f"{grid.path}: not a table of measurements: {what}", hint=hint)
    return _layout(grid, search, rising)


def _layout(grid: Grid, search: _Search, rising: str | None) -> TableLayout:
    """Return the role of every column of a table of measurements.

    Parameters
    ----------
    rising : column of the scale if no title names it; None = a title does
    """
    metric = search.take(words.METRICS)
    unit = search.take(words.UNITS)
    run = search.take(words.RUNS, numeric=False)
    repetition = grid.repetition or search.take(words.REPETITION_TITLES, numeric=True)
    told = [title for title in grid.parameters if title in search.free]
    numeric = [title for title in _without(search.free, told) if search.is_numeric(title)]
    scales = [t for t in search.free if search.is_scale(t) and (t in numeric or is_processes(t))]
    scales = scales or ([rising] if rising else [])
    texts = search.take_texts([title for title in scales if title in numeric] or told)
    numeric = [title for title in numeric if title in search.free]
    values, parameters = search.values(metric, _without(numeric, [rising or ""])), told
    if not told:
        rest = _without(numeric, values)
        parameters, others = search.parameters(rest, values, texts.callpath, rising)
        if metric is None:
            values = sorted([*values, *others], key=words.is_model)
        if not values:
            values = search.unnamed_values(parameters)
            parameters = _without(parameters, values)
    values = values or _without(numeric, parameters)
    if grid.time is not None and grid.time not in values:
        # Words in a column of numbers raise an error with their line when it is read.
        values, parameters = [grid.time, *values], _without(parameters, [grid.time])
    values = sorted(values, key=lambda title: title != grid.time)
    parameters = [*parameters, *_without(grid.scales, parameters)]
    values = _without(values, grid.scales)
    if not any(map(is_processes, parameters)):
        # A number of processes keeps its role even if it is written in words: reading it raises an
        # error.
        parameters = [*parameters, *(title for title in search.free if is_processes(title))]
    if not values:
        raise InputError(f"{grid.path}: no column has values", hint=HINT)
    used = {*texts.callpath, *parameters, *values, run}
    left_out = tuple(title for title in search.free if title not in used)
    has_rows = bool(texts.callpath) or metric is not None or grid.is_result
    with np.errstate(over="ignore", invalid="ignore"):
        program = None if has_rows or told else values_of_program(grid, values)
    return TableLayout(
        callpath=texts.callpath,
        parameters=tuple(parameters),
        values=tuple(values) if program is None else program.titles,
        repetition=repetition,
        metric=metric,
        unit=unit,
        run=run,
        left_out=(*left_out, *texts.metadata),
        cases=texts.cases,
        program=program,
        names={} if told else _names(grid, parameters, values, rising),
    )


def _names(
    grid: Grid, parameters: Sequence[str], values: Sequence[str], rising: str | None
) -> dict[str, str]:
    """Return the names of numbers of workers, by title: the first of a name has it.

    Under any title, the only rising number is that of processes if the time falls.
    """
    names: dict[str, str] = {}
    taken = {*parameters}
    for title in parameters:
        name = scale_name(title)
        is_size = word_of(title) is NameWord.SIZE and len(plain(title)) > 1
        if title == rising and not is_size:
            number, times = grid.numbers(title), grid.numbers(values[0])
            falls = times[np.argmax(number)] < times[np.argmin(number)]
            name = "p" if falls else None
        if name and name != title and name not in taken and title not in grid.scales:
            names[title] = name
            taken.add(name)
    return names


def _events(grid: Grid, search: _Search, stamps: Sequence[str]) -> TableLayout:
    """Return the layout of a list of events: the durations of each name are added.

    Raises
    ------
    InputError
        If the events have no names or no durations.
    """
    name = search.take(words.CALL_PATHS) or search.take(words.REGIONS, numeric=False)
    durations = [title for title in search.free if plain(title).startswith("dur")]
    own = [title for title in durations if plain(title) in {"durnonchild", "dur non child"}]
    durations = own or [title for title in durations if plain(title) in {"dur", "duration"}]
    if name is None or not durations or not search.is_numeric(durations[0]):
        raise InputError(
            f"{grid.path}: a list of events with points in time ({stamps[0]}) and without the "
            "duration of each name",
            hint="write a summary instead: one row per name, with its total time",
        )
    value = durations[0]
    left_out = tuple(_without(grid.columns, [name, value]))
    return TableLayout((name,), (), (value,), None, None, None, None, left_out, events=True)


def _described(search: _Search) -> tuple[str, str]:
    """Return what is missing for a table of measurements, and the option that names it."""
    costs = [title for title in search.free if is_measured(title) or words.is_cost(title)]
    numeric = [title for title in search.free if search.grid.is_numeric(title)]
    numeric = [title for title in numeric if not (title in costs or search.is_scale(title))]
    numeric = [title for title in numeric if not is_rate(title)]
    if costs:
        what = "no column tells the scale of a run"
        option = "--param p=column:"
    else:
        what = "no column is called a time or another metric"
        option = "--time "
        numeric.reverse()  # times stand behind the settings
    if not numeric:
        return what, HINT
    name = shell_word(f"{option.partition(' ')[2]}{printable(numeric[0])}")
    return what, f"name it, e.g. {option.partition(' ')[0]} {name}; {HINT}"


def _without(titles: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the titles that are not among others."""
    excluded = frozenset(others)
    return [title for title in titles if title not in excluded]


def _refuse(grid: Grid) -> None:
    refuse_many(grid.path, len(grid.columns))
    names = {title: plain(title) for title in grid.columns if title not in grid.parameters}
    if {*names.values()} >= _OF_RESULTS:
        raise InputError(
            f"{grid.path}: a table of results, not of measurements",
            hint="write measurements with cpmodel export EXP --what values",
        )
    for title, name in names.items():
        if scale_name(title) and not grid.is_numeric(title):
            _refuse_counts(grid, title)
        if name not in words.LOCATIONS:
            continue
        if grid.is_numeric(title) or len({*map(str, grid.columns[title])}) != 1:
            raise InputError(
                f"{grid.path}: column {title!r} separates processes or threads",
                hint="a table has one value per call path and run: take the maximum or the mean "
                "over them first",
            )


def _refuse_counts(grid: Grid, title: str) -> None:
    """Raise `InputError` if a column counts workers in a notation such as ``4x8``.

    Otherwise, runs of several scales would be repetitions of each other.
    """
    cells = [*map(str, grid.columns[title])]
    if len({*cells}) > 1 and all(cell[:1].isdigit() for cell in cells):
        shown = shortened(repr(cells[0]), 40)
        hint = f"write the number of workers, or omit the column: --drop {shell_word(title)}"
        raise grid.error(0, f"{title}: {shown} is not a number", hint)


class _Search:
    """Assignment of roles to columns, one role after the other; the others are free."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.free = {t: plain(t) for t in grid.columns if plain(t) not in words.UNUSED}
        self.free |= {title: plain(title) for title in grid.parameters}
        if grid.time is not None:
            self.free[grid.time] = plain(grid.time)
        self.free |= {title: plain(title) for title in grid.scales}
        self.free.pop(grid.repetition or "", None)

    def take(self, names: Iterable[str], *, numeric: bool | None = None) -> str | None:
        """Return the first free column with one of `names`, and remove it from the free ones.

        `numeric` selects columns with numbers (True) or without (False).
        """
        told = {*self.grid.parameters, *self.grid.scales, self.grid.time}
        for name in names:
            for title, known in self.free.items():
                if known != name or title in told:
                    continue
                if numeric is None or self.grid.is_numeric(title) is numeric:
                    del self.free[title]
                    return title
        return None

    def take_stamps(self) -> list[str]:
        """Return the columns with points in time, and remove those with numbers."""
        found = [
            title
            for title in self.free
            if words.is_stamp(title)
            and title not in {*self.grid.parameters, *self.grid.scales, self.grid.time}
        ]
        numeric = [title for title in found if self.grid.is_numeric(title)]
        for title in numeric:
            if plain(title) not in {"timestamp", "time stamp"}:
                del self.free[title]
        varies = (len({*self.grid.columns[title]}) > 1 for title in numeric)
        return numeric if any(varies) else []

    def has_scale(self) -> bool:
        """Return whether a column tells the scale of each run."""
        told = (title for title in self.free if self.is_scale(title))
        return bool(self.grid.parameters) or any(
            title in self.grid.scales or is_processes(title) or self.grid.is_numeric(title)
            for title in told
        )

    def is_scale(self, title: str) -> bool:
        """Return whether a column counts workers: its title says so, and its numbers are whole."""
        if title == self.grid.time:
            return False
        if title in self.grid.scales or is_processes(title):
            return True
        if not scale_name(title):
            return False
        column = self.grid.parsed(title)
        return column is None or bool((column == np.round(column))[np.isfinite(column)].all())

    def take_texts(self, scales: Sequence[str]) -> TextColumns:
        """Return the roles of the columns of texts, and remove them from the free ones."""
        title = self.take(words.CALL_PATHS) or self.take(words.REGIONS, numeric=False)
        names = [each for each in self.free if each not in self.grid.parameters]
        named = [each for each in names if words.is_identity(each) and self.is_numeric(each)]
        free = [
            each
            for each in names
            if each not in self.grid.scales
            and (
                each in named
                or not (self.is_numeric(each) or is_processes(each) or self._is_value(each))
            )
        ]
        found = texts_of(self.grid, free, scales, title)
        # Numbers of versions are cases, or numbers as any others.
        metadata = tuple(_without(found.metadata, named))
        found = replace(found, metadata=metadata)
        for each in (*found.callpath, *found.cases, *found.metadata):
            self.free.pop(each, None)
        return found

    def is_numeric(self, title: str) -> bool:
        """Return whether a column contains numbers.

        Some titles require numbers: for them, a text is an error with its line. In other columns,
        one text is an error, and several texts make a column of texts.
        """
        if not self.grid.is_numeric(title) or self.grid.is_empty(title):
            return False
        if is_processes(title) or is_measured(title) or self.free[title] in words.VALUES:
            return True
        if title == self.grid.time:
            return True
        return self.grid.texts_among_numbers(title) <= 1

    def rising_scales(self) -> list[str]:
        """Return the columns of whole numbers that may be the scale, if no title names it."""
        if self.has_scale():
            return []
        costs = [t for t in self.free if words.is_cost(t) or t == self.grid.time]
        costs = [title for title in costs if self.free[title] not in _BARE_COUNTS]
        costs = [title for title in costs if self.grid.is_numeric(title)]
        passed = {*words.REPETITION_TITLES, *words.RUNS, *words.NOTES}
        others = [t for t in self.free if t not in costs and self.grid.is_numeric(t)]
        others = [t for t in others if self.free[t] not in passed and not words.is_model(t)]
        whole = [title for title in others if not is_rate(title) and self._is_rising(title)]
        return whole if costs else []

    def _is_of_the_time(self, title: str, setting: IntArray) -> bool:
        """Return whether a column without a known title is a result instead of a parameter.

        Results have one value at each setting of the parameters before, and are not whole.
        """
        if words.is_activity(title) and not self._counts_workers(title):
            return True
        if words.is_model(title) and plain(title) != "model":
            return True
        column = self.grid.parsed(title)
        if column is None or self.is_scale(title) or word_of(title) is NameWord.SIZE:
            return False
        there = column[np.isfinite(column)]
        number = count(refined(setting, self.grid.columns[title]))
        varies = len(np.unique(there)) > 1
        return varies and number == count(setting) > 1 and bool(np.any(there % 1))

    def _counts_workers(self, title: str) -> bool:
        """Return whether a column such as ``MPI`` counts workers, and is no part of the run time.

        It does if no other column does. Beside another count, its numbers are whole and at least 1.
        It then stands before all times, or it rises like a scale, such as 4, 8, 16.
        """
        if not self.is_scale(title):
            return False
        scales = (each for each in self.free if each != title and self.is_scale(each))
        if not any(map(self.grid.is_numeric, scales)):
            return True
        column = self.grid.parsed(title)
        if column is None or self.grid.units.get(title):
            return False
        distinct = np.unique(column[np.isfinite(column)])
        if not (distinct >= 1).all():
            return False
        rest = _without(self.grid.columns, [title])
        order = [*self.grid.columns]
        parts = [each for each in rest if words.is_activity(each)]
        times = [each for each in rest if words.is_cost(each)]
        if all(order.index(title) < order.index(each) for each in (*parts, *times)):
            return True
        return not parts and len(distinct) > 1 and not (distinct[1:] % distinct[:-1]).any()

    def _is_rising(self, title: str) -> bool:
        if self.grid.texts_among_numbers(title):
            return False
        column = self.grid.numbers(title)
        is_whole = np.isfinite(column).all() and bool((column == np.round(column)).all())
        return bool(is_whole and (column > 0).all() and len(np.unique(column)) > 1)

    def values(self, metric: str | None, numeric: Sequence[str]) -> list[str]:
        """Return the columns with titles of values; with `metric` there must be exactly one."""
        named = {title: None for title in numeric if self.free[title] in words.VALUES}
        measured = [title for title in numeric if self._is_value(title)]
        if metric is None:
            return [title for title in numeric if title in named or title in measured]
        if self.grid.time is not None:
            return [self.grid.time]
        found = [*named] or measured or list(numeric[-1:])
        if len(found) > 1:
            raise InputError(
                f"{self.grid.path}: several columns may hold the values: {', '.join(found)}",
                hint="rename the column with the values to: value",
            )
        return found

    def unnamed_values(self, parameters: Sequence[str]) -> list[str]:
        """Return the columns that must be the values if no title says so."""
        measured = [title for title in self.free if self._is_value(title)]
        # A column without numbers raises an error with its line when it is read.
        return measured or [t for t in parameters if not scale_name(t)][-1:]

    def parameters(
        self,
        titles: Sequence[str],
        values: Sequence[str],
        callpath: Sequence[str],
        rising: str | None,
    ) -> tuple[list[str], list[str]]:
        """Return the parameters and the values among the free columns of numbers.

        At each setting of the parameters, most call paths have a row. So a column that is different
        in every row is not a parameter. A single call path does not decide: then the columns after
        the first value are not parameters.
        """
        order = {title: place for place, title in enumerate(self.grid.columns)}
        first = min((order[title] for title in values), default=len(order))
        rows = len(self.grid.lines)
        paths = setting = np.zeros(rows, np.intp)
        for title in callpath:
            paths = refined(paths, self.grid.columns[title])
        parameters: list[str] = []
        for title in titles:
            setting_of = refined(setting, self.grid.columns[title])
            settings = int(setting_of.max()) + 1
            filled = len(np.unique(paths * settings + setting_of))
            full = (int(paths.max()) + 1) * settings
            telling = paths.any() or order[title] < first
            if not callpath and title != rising and self._is_of_the_time(title, setting):
                continue
            if (
                is_processes(title)
                or title == rising
                or self.is_scale(title)
                or self.free[title] in words.COUNTS
                or (telling and filled > _FILLED * full)
            ):
                parameters.append(title)
                setting = setting_of
        return parameters, _without(titles, parameters)

    def _is_value(self, title: str) -> bool:
        """Return whether a column is a measured quantity, by its title or because the user says so.

        No count of workers is one.
        """
        is_known = is_measured(title) or words.is_cost(title) or is_rate(title)
        is_count = title in self.grid.scales or is_processes(title) or bool(scale_name(title))
        return title == self.grid.time or (is_known and not is_count)
