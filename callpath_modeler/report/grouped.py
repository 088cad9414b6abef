"""Rankings of groups of runs, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.diagnostics import Finding
from callpath_modeler.printable import printable, shell_words
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.report.invocation import Invocation
from callpath_modeler.report.ranking_text import CALL_PATH
from callpath_modeler.report.table_formats import Cell, Table
from callpath_modeler.units import counted

GROUP = "group"
"""Column with the group of a row."""

_SIGNS = frozenset(",<>=!*?[")
"""Characters that a value in a condition cannot contain."""


def heading(name: str, value: str, ranking: Ranking, *, is_first: bool) -> list[str]:
    """Return the lines above the ranking of a group."""
    runs = counted(len(ranking.fitted.experiment.runs), "run")
    return [*([] if is_first else [""]), printable(f"{name} = {value} ({runs})")]


def of_group(invocation: Invocation, where: str, name: str, value: str) -> Invocation:
    """Return the command lines for one group, if a condition can select it.

    Parameters
    ----------
    invocation : command lines without conditions
    where : conditions that select the runs of all groups
    name : name of the metadata or parameter that groups runs
    value : its value in this group
    """
    is_plain = not _SIGNS & {*name, *value}
    told = ",".join([*filter(None, [where]), *([f"{name}={value}"] if is_plain else [])])
    words = shell_words(["--where", told]) if told else ""
    return replace(invocation, options=f"{invocation.options} {words}".strip())


def joined(tables: Mapping[str, Table], name: str) -> Table:
    """Return the tables of all groups as one table; the first column holds the group.

    The header fields of each table are in the JSON field ``groups``. Tables as a terminal shows
    them may have different columns.
    """
    first = next(iter(tables.values()))
    heads = None
    if first.heads is not None:
        tables = {value: _by_title(table) for value, table in tables.items()}
        heads = {GROUP: (name, False)}
        for table in tables.values():
            heads |= table.heads or {}
        # The names of lines stay the last column.
        heads[CALL_PATH] = heads.pop(CALL_PATH)
    titles = [*first.columns] if heads is None else [*heads][1:]
    columns: dict[str, list[Cell]] = {
        GROUP: [printable(value) for value, table in tables.items() for _ in range(len(table))],
        **{
            title: [
                cell
                for table in tables.values()
                for cell in table.columns.get(title, [""] * len(table))
            ]
            for title in titles
        },
    }
    groups = [{GROUP: value, **table.header} for value, table in tables.items()]
    return Table(columns, first.units, {"group_by": name, "groups": groups}, heads)


def _by_title(table: Table) -> Table:
    """Return a table as a terminal shows it with its titles as names of columns."""
    assert table.heads is not None
    columns = {title: table.columns[key] for key, (title, _) in table.heads.items()}
    return replace(table, columns=columns, heads={head[0]: head for head in table.heads.values()})


def of_groups(
    name: str | None, groups: Mapping[str, tuple[Ranking, Sequence[Finding]]]
) -> list[Finding]:
    """Return the findings of all groups, as `labelled`."""
    return labelled(
        (f"{name} = {value}", ranking.fitted.experiment, findings)
        for value, (ranking, findings) in groups.items()
    )


def labelled(parts: Iterable[tuple[str, Experiment, Sequence[Finding]]]) -> list[Finding]:
    """Return the findings of all parts of a series.

    A finding has the label of its part, unless it is about a file or occurs in every part.
    """
    known = [*parts]
    shared = set.intersection(*({*findings} for _, _, findings in known))
    told = []
    for label, experiment, findings in known:
        sources = [run.source for run in experiment.runs]
        for finding in findings:
            is_of_file = any(source.startswith(finding.subject) for source in sources)
            if len(known) > 1 and finding not in shared and not is_of_file:
                told.append(structs.replace(finding, message=f"{label}: {finding.message}"))
            else:
                told.append(finding)
    return [*dict.fromkeys(told)]
