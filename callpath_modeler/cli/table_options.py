"""Options of tables: rows, columns, format, and output file."""

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
"""The text format."""
FORMATS = (TABLE, "csv", "tsv", "json", "jsonl", "markdown", "latex", "parquet")


class _NumberOrAll(click.IntRange):
    """A number of rows, or ``all``."""

    name = "number of rows, nor 'all'"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; for ``all``, a number that no table reaches."""
        return sys.maxsize if value == "all" else int(super().convert(value, param, ctx))


_TABLE = (
    click.option(
        "-n",
        "--top",
        type=_NumberOrAll(1),
        metavar="N",
        help="Number of rows, or all; in a view, on every level. Default: rank fits the terminal; "
        "10 in other tables, files and pipes; else all.",
    ),
    click.option("--columns", metavar="A,B", help="Columns, in all formats except table."),
    click.option("--no-header", is_flag=True, help="Omit the header row of csv and tsv."),
    click.option("--wide", is_flag=True, help="Full names, even on a narrow terminal."),
)
_OUTPUT = (
    click.option(
        "-f",
        "--format",
        "format_",
        type=click.Choice(FORMATS),
        help="Default: by the suffix of -o, else table.",
    ),
    output_file("Write to a file."),
    FORCE,
)


def output_options(command: F) -> F:
    """Add the options for the output: ``format_``, ``output``, ``force``."""
    return add_options(command, _OUTPUT)


def table_options(command: F) -> F:
    """Add the options for the size of a table: ``top``, ``columns``, ``no_header``, ``wide``."""
    return add_options(command, _TABLE)


def picked(content: Table, columns: str | None) -> Table:
    """Return a table with the requested columns.

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
    """Raise `UsageError` if columns are requested for a text table."""
    if form == "table" and columns is not None:
        raise UsageError(
            "--columns does not apply to text tables", hint="add -f csv, tsv, json or markdown"
        )


def format_of(format_: str | None, output: Path | None, formats: Sequence[str] = FORMATS) -> str:
    """Return the requested format, else the format of the file's suffix, else ``table``.

    Parameters
    ----------
    format_ : the requested format, or None
    output : the output file, or None
    formats : the known formats, for the error message

    Raises
    ------
    UsageError
        If the suffix is unknown.
    """
    if format_ is not None:
        return format_
    if output is None or not output.suffix:
        return "table"
    others = {".md": "markdown", ".tex": "latex", ".txt": "table"}
    endings = {**{f".{name}": name for name in FORMATS}, **others}
    if output.suffix not in endings:
        raise UsageError(
            f"{output}: the suffix {output.suffix!r} selects no format",
            hint=f"choose one with -f: {', '.join(formats)}",
        )
    return endings[output.suffix]
