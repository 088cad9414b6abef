"""Roles of the columns of a table: those that the user states, and their explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from callpath_modeler.errors import UsageError, nearest_or_all
from callpath_modeler.printable import printable, shell_word
from callpath_modeler.profile.runs import names_a_case
from callpath_modeler.readers.base import NUMBER_OF_REPETITION, ColumnChoices, ColumnRole, RunSource
from callpath_modeler.readers.paths import read_title
from callpath_modeler.readers.tokens import NameWord, word_of
from cpmodel_tables import title_words as words
from cpmodel_tables.grid import Grid
from cpmodel_tables.layout import TableLayout, names_call_paths
from cpmodel_tables.part_columns import is_bare_time
from cpmodel_tables.roles import Roles
from cpmodel_tables.text_columns import case_key
from cpmodel_tables.title_words import Place, place_of, plain, scale_name

_REASONS = {
    Place.TOTAL: "the title names the whole run time",
    Place.TIME: "the title names a time",
    Place.PART: "the title names a time",
    Place.OF_PROCESSORS: "the title names the time of processors, not that of the run",
    Place.AVERAGE: "the title names a statistic",
    Place.COUNT: "a column of numbers",
    Place.RATE: "the title names a rate: more is better",
    Place.MODEL: "the title names a model, which is no measurement",
}


def column_roles(grid: Grid, layout: TableLayout, metric: str, of_runs: Roles) -> list[ColumnRole]:
    """Return the role of every column, in the order of the table; dropped ones are the last.

    Parameters
    ----------
    metric : name of the default metric
    of_runs : properties of the runs, which decide about numbers that may be parameters
    """
    roles = [_role(grid, layout, title, metric, of_runs) for title in grid.columns]
    return [*roles, *map(_dropped, grid.dropped)]


def _dropped(title: str) -> ColumnRole:
    setting = ("defaults", "drop", title)
    return ColumnRole(printable(title), "not used", "--drop says so", "", setting)


def _role(  # noqa: PLR0911 - one per role
    grid: Grid, layout: TableLayout, title: str, metric: str, of_runs: Roles
) -> ColumnRole:
    shown = printable(title) or "(no title)"
    if title in layout.parameters:
        return _parameter(grid, layout, title, of_runs)
    if title in layout.callpath:
        known = names_call_paths(layout)
        reason = "the title names call paths" if known else "the texts are names of functions"
        reason = grid.derived.get(title, reason)
        return ColumnRole(shown, "call path", reason)
    if title in layout.cases:
        key, excluded = (shell_word(case_key(title) + end) for end in ("", "=none"))
        named = "the title names inputs or programs, and its" if names_a_case(title) else "its"
        reason = f"{named} texts tell runs of one scale apart"
        option = f"--case NAME, --group-by {key}, --param {excluded}"
        return ColumnRole(shown, "case", reason, option)
    program = layout.program
    if program is not None and title in program.parts:
        reason = f"a time that is never more than {program.total}"
        return ColumnRole(shown, "call path of the run time", reason, f"--drop {shell_word(shown)}")
    if title in layout.values:
        return _value(grid, layout, title, metric)
    single = {
        layout.repetition: NUMBER_OF_REPETITION,
        layout.metric: "name of the metric",
        layout.unit: "unit",
        layout.run: "name of the run",
    }
    if title in single:
        reason = grid.derived.get(title, "the title says so")
        if title != layout.repetition or title in grid.derived:
            return ColumnRole(shown, single[title], reason)
        reason = "--repetition says so" if title == grid.repetition else reason
        return _repetition(title, reason)
    unused = ("defaults", "drop", title)
    if words.is_stamp(title):
        reason = "a point in time is no duration"
        return ColumnRole(shown, "not used", reason, _as_time(title), unused)
    if title in layout.left_out and not grid.is_numeric(title) and not grid.is_empty(title):
        reason = "texts about single runs"
        return ColumnRole(shown, "metadata", reason, f"--group-by {shell_word(shown)}")
    return ColumnRole(shown, "not used", "no known meaning", _as_time(title), unused)


def _as_time(title: str) -> str:
    return f"--time {shell_word(printable(title))}"


def _repetition(title: str, reason: str) -> ColumnRole:
    shown, setting = printable(title), ("defaults", "repetition", title)
    option = f"--drop {shell_word(shown)}"
    return ColumnRole(shown, NUMBER_OF_REPETITION, reason, option, setting)


def _parameter(grid: Grid, layout: TableLayout, title: str, of_runs: Roles) -> ColumnRole:
    name = layout.names.get(title, title)
    if name in of_runs.others:
        use, reason = of_runs.others[name]
        option = f"--param {shell_word(printable(name))}"
        if use == NUMBER_OF_REPETITION:
            return structs.replace(_repetition(title, reason), option=option)
        setting = ("parameters", name, "none")
        return ColumnRole(printable(title), use, reason, option, setting)
    setting = ("parameters", name, f"column:{name}")
    shown, exclude = printable(title), f"--param {shell_word(f'{printable(name)}=none')}"
    if scale_name(title):
        reason = grid.derived.get(title, "the title counts workers")
        return ColumnRole(shown, f"scale: {name}", reason, exclude, setting)
    if title in layout.names:
        reason = "the only rising whole numbers, and the time falls"
        return ColumnRole(shown, f"scale: {name}", reason, exclude, setting)
    if not any(map(scale_name, layout.parameters)) and "p" not in layout.names.values():
        exclude = f"--param {shell_word(f'p=column:{printable(name)}')}"
    return ColumnRole(shown, "parameter", "numbers that tell settings apart", exclude, setting)


def _value(grid: Grid, layout: TableLayout, title: str, default: str) -> ColumnRole:
    is_bare = is_bare_time(grid, title)
    metric = read_title(title, "s" if is_bare else grid.units.get(title))
    reason, shown = _REASONS[place_of(title)], printable(title)
    if plain(title) in words.VALUES:
        reason = "the title names values"
    reason = "--time says so" if title == grid.time else grid.derived.get(title, reason)
    if layout.metric is not None:
        return ColumnRole(shown, "default metric", reason)
    if metric.name == default:
        is_time = metric.unit == "s" or title == grid.time
        own = ("time_column", title) if is_time else ("metric", metric.name)
        names = {
            read_title(each, grid.units.get(each)).name: each for each in reversed(layout.values)
        }
        is_first = names.get(metric.name, title) == title
        setting = ("defaults", *own) if is_first and title not in grid.derived else ()
        has_others = len(layout.values) > 1
        is_column = has_others and title not in grid.derived
        option = f"--drop {shell_word(shown)}" if is_column else ""
        return ColumnRole(shown, "default metric", reason, option, setting)
    return ColumnRole(shown, "metric", reason, f"-m {shell_word(printable(metric.name))}")


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
