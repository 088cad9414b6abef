"""Explanations of the roles of columns: use, reason, and the option that changes it."""

from __future__ import annotations

from callpath_modeler.printable import printable, shell_word
from callpath_modeler.profile.runs import names_a_case
from callpath_modeler.readers.base import ColumnRole
from callpath_modeler.readers.titles import read_title
from cpmodel_tables import title_words as words
from cpmodel_tables.grid import Grid
from cpmodel_tables.layout import TableLayout, names_call_paths
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
    """Return the role of every column, in the order of the table.

    Parameters
    ----------
    metric : name of the default metric
    of_runs : properties of the runs, which decide about numbers that may be parameters
    """
    return [_role(grid, layout, title, metric, of_runs) for title in grid.columns]


def _role(  # noqa: PLR0911 - one per role
    grid: Grid, layout: TableLayout, title: str, metric: str, of_runs: Roles
) -> ColumnRole:
    shown = printable(title) or "(no title)"
    if title in layout.parameters:
        return _parameter(layout, title, of_runs)
    if title in layout.callpath:
        known = names_call_paths(layout)
        reason = "the title names call paths" if known else "the texts are names of functions"
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
        return ColumnRole(shown, "call path of the run time", reason)
    if title in layout.values:
        return _value(grid, layout, title, metric)
    single = {
        layout.repetition: "number of the repetition",
        layout.metric: "name of the metric",
        layout.unit: "unit",
        layout.run: "name of the run",
    }
    if title in single:
        return ColumnRole(shown, single[title], "the title says so")
    if words.is_stamp(title):
        return ColumnRole(shown, "not used", "a point in time is no duration")
    if title in layout.left_out and not grid.is_numeric(title) and not grid.is_empty(title):
        reason = "texts about single runs"
        return ColumnRole(shown, "metadata", reason, f"--group-by {shell_word(shown)}")
    return ColumnRole(shown, "not used", "no known meaning")


def _parameter(layout: TableLayout, title: str, of_runs: Roles) -> ColumnRole:
    name = layout.names.get(title, title)
    if name in of_runs.others:
        use, reason = of_runs.others[name]
        return ColumnRole(printable(title), use, reason, f"--param {shell_word(printable(name))}")
    shown, exclude = printable(title), f"--param {shell_word(f'{printable(name)}=none')}"
    if scale_name(title):
        return ColumnRole(shown, f"scale: {name}", "the title counts workers", exclude)
    if title in layout.names:
        reason = "the only rising whole numbers, and the time falls"
        return ColumnRole(shown, f"scale: {name}", reason, exclude)
    if not any(map(scale_name, layout.parameters)) and "p" not in layout.names.values():
        exclude = f"--param {shell_word(f'p=column:{printable(name)}')}"
    return ColumnRole(shown, "parameter", "numbers that tell settings apart", exclude)


def _value(grid: Grid, layout: TableLayout, title: str, default: str) -> ColumnRole:
    metric = read_title(title, grid.units.get(title))
    reason, shown = _REASONS[place_of(title)], printable(title)
    if plain(title) in words.VALUES:
        reason = "the title names values"
    reason = grid.derived.get(title, reason)
    if layout.metric is not None or metric.name == default:
        return ColumnRole(shown, "default metric", reason)
    return ColumnRole(shown, "metric", reason, f"-m {shell_word(printable(metric.name))}")
