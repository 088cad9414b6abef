"""How tables are asked for: which rows and columns, in which format, and where to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callpath_modeler.cli.option_groups import F, add_options
from callpath_modeler.cli.options import FORCE, output_file
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.report.formats import Table

TABLE = "table"
"""The format for people."""
FORMATS = (TABLE, "csv", "tsv", "json", "jsonl", "markdown", "latex", "parquet")


class _NumberOrAll(click.IntRange):
    """A number of rows, or all of them."""

    name = "number of rows, nor 'all'"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; of all, one that no table reaches."""
        return sys.maxsize if value == "all" else int(super().convert(value, param, ctx))


_TABLE = (
    click.option(
        "-n",
        "--top",
        type=_NumberOrAll(1),
        metavar="N",
        help="Show the first N, or all; of a view, of every level. "
        "Default: in rank, what fits the terminal; 10 in other tables, files and pipes; else all.",
    ),
    click.option("--columns", metavar="A,B", help="Columns of all formats but table."),
    click.option("--no-header", is_flag=True, help="No header row in csv and tsv."),
    click.option("--wide", is_flag=True, help="Full names, however narrow the terminal."),
)
_OUTPUT = (
    click.option(
        "-f",
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        help="Default: by the ending of -o, else table.",
    ),
    output_file("Write to a file."),
    FORCE,
)


def output_options(command: F) -> F:
    """Add the options that say where results go: ``format_``, ``output``, ``force``."""
    return add_options(command, _OUTPUT)


def table_options(command: F) -> F:
    """Add what says how much of a table is shown: ``top``, ``columns``, ``no_header``, ``wide``."""
    return add_options(command, _TABLE)


def picked(content: Table, columns: str | None) -> Table:
    """Return a table with the columns that were asked for.

    Raises
    ------
    UsageError
        If there is no such column.
    """
    if columns is None:
        return content
    names = columns.split(",")
    for name in names:
        if name not in content.columns:
            raise UsageError(f"no column {name!r}", hint=f"columns: {', '.join(content.columns)}")
    return content.pick(names)


def refuse_columns(form: str, columns: str | None) -> None:
    """Raise `UsageError` where columns are chosen of a table for people."""
    if form == "table" and columns is not None:
        raise UsageError(
            "--columns is for tables that machines read", hint="add -f csv, tsv, json or markdown"
        )


def format_of(format_: str | None, output: Path | None, formats: Sequence[str] = FORMATS) -> str:
    """Return the format asked for, else that of the file's ending, else ``table``.

    Parameters
    ----------
    formats : what can be asked for, which is told where the ending says nothing

    Raises
    ------
    UsageError
        If the ending says nothing.
    """
    if format_ is not None:
        return format_
    if output is None or not output.suffix:
        return "table"
    others = {".md": "markdown", ".tex": "latex", ".txt": "table"}
    endings = {**{f".{name}": name for name in FORMATS}, **others}
    if output.suffix not in endings:
        raise UsageError(
            f"{output}: no format is known by the ending {output.suffix!r}",
            hint=f"name one with -f: {', '.join(formats)}",
        )
    return endings[output.suffix]
