"""Columns whose roles the user states: those without use, run time, repetition, parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callpath_modeler.errors import UsageError, nearest_or_all
from callpath_modeler.printable import printable
from callpath_modeler.readers.base import ColumnChoices, RunSource
from callpath_modeler.readers.tokens import NameWord, word_of
from cpmodel_tables.grid import Grid
from cpmodel_tables.title_words import plain

_MOST_LISTED = 20


def with_choices(grid: Grid, choices: ColumnChoices | None) -> Grid:
    """Return a table without dropped columns, and with the roles that the user states.

    Raises
    ------
    UsageError
        If a column does not exist, or if it has two roles.
    """
    if not choices:
        return grid
    dropped = {
        title: "--drop"
        for name in choices.drop
        if (title := _title(grid, "--drop", name, choices)) is not None
    }
    time = _title(grid, "--time", choices.time, choices)
    repetition = _title(grid, "--repetition", choices.repetition, choices)
    scales = [name for name in choices.parameters if name in grid.columns]
    # A role on the command line replaces one of a configuration file.
    roles = [("--drop", dropped), ("--time", [time]), ("--repetition", [repetition])]
    stated = {*scales}
    for option, titles in roles:
        stated |= {*filter(None, () if option in choices.configured else titles)}
    if "--drop" in choices.configured:
        dropped = {title: option for title, option in dropped.items() if title not in stated}
    if "--time" in choices.configured and time in stated:
        time = None
    if "--repetition" in choices.configured and repetition in stated:
        repetition = None
    given = [*dropped, *scales, *filter(None, (time, repetition))]
    for title in given:
        if given.count(title) > 1:
            raise UsageError(
                f"{grid.path}: column {printable(title)!r} is given two roles",
                hint="give one of --drop, --time, --repetition and --param for it",
            )
    return replace(
        grid,
        columns={title: cells for title, cells in grid.columns.items() if title not in dropped},
        parameters=tuple(t for t in grid.parameters if t not in given or t in scales),
        time=time,
        repetition=repetition,
        scales=tuple(scales),
        dropped=tuple(dropped),
    )


def require_parameters(grid: Grid, choices: ColumnChoices, runs: Sequence[RunSource]) -> None:
    """Raise `UsageError` if neither a column nor the runs state a chosen parameter."""
    for name in choices.parameters:
        stated = [name in {*run.parameters, *run.source.metadata} for run in runs]
        is_p = word_of(name) is NameWord.PROCESSES and "p" in runs[0].parameters
        if name not in grid.columns and not any(stated) and not is_p:
            raise _unknown(grid, "--param", name)


def _title(grid: Grid, option: str, name: str, choices: ColumnChoices) -> str | None:
    """Return the title of a column by its name on the command line; None = no such column."""
    if not name or name in grid.columns:
        return name or None
    same = [title for title in grid.columns if plain(title) == plain(name)]
    if len(same) == 1 and plain(name):
        return same[0]
    if option in choices.if_there:
        return None
    raise _unknown(grid, option, name)


def _unknown(grid: Grid, option: str, name: str) -> UsageError:
    titles = [*map(printable, grid.columns)]
    what = f"{grid.path}: {option}: no column {printable(name)!r}"
    return UsageError(what, hint=nearest_or_all(name, titles[:_MOST_LISTED]))
