"""Options of tables: rows and columns, format and file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callpath_modeler.cli.option_groups import F, add_options, option_group
from callpath_modeler.cli.options import FORCE, output_file
from callpath_modeler.errors import UsageError
from callpath_modeler.report.text_style import TextStyle

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.cli.console import Console
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


@dataclass(frozen=True, slots=True)
class OutputRequest:
    """The format of a result, and the file that it goes to.

    Attributes
    ----------
    format_ : as asked for; None = by the ending of the file
    path : the file; None = standard output
    force : True = an existing file is replaced
    """

    format_: str | None
    path: Path | None
    force: bool

    @property
    def form(self) -> str:
        """The format: ``table`` is the one for people.

        Raises
        ------
        UsageError
            If the ending of the file says nothing.
        """
        return format_of(self.format_, self.path)

    def style(self, console: Console, *, wide: bool = False) -> TextStyle:
        """Return the style of lines; those of files and wide ones have any width."""
        width = None if self.path is not None or wide else console.width
        return TextStyle(width=width, full_names=wide, ascii_only=console.ascii_only)

    def write_lines(self, console: Console, lines: Sequence[Text | str]) -> None:
        """Write lines for people."""
        from callpath_modeler.cli.render import render_lines

        render_lines(console, lines, self.path, force=self.force)

    def write_table(self, console: Console, content: Table, *, header: bool = True) -> None:
        """Write a table for machines in the format asked for."""
        from callpath_modeler.cli.render import render_table

        render_table(console, content, self.form, self.path, force=self.force, header=header)


@dataclass(frozen=True, slots=True)
class TableRequest:
    """The part of a table that a command shows, and its format and file.

    Attributes
    ----------
    output : format and file
    top : rows; None = as many as the command shows by default
    columns : names of columns, joined by commas; None = all
    header : True = csv and tsv begin with a header row
    wide : True = full names, however narrow the terminal
    """

    output: OutputRequest
    top: int | None
    columns: str | None
    header: bool
    wide: bool

    @property
    def form(self) -> str:
        """The format: ``table`` is the one for people.

        Raises
        ------
        UsageError
            If the ending of the file says nothing, or columns are chosen of a table for people.
        """
        form = self.output.form
        if form == TABLE and self.columns is not None:
            raise UsageError(
                "--columns is for tables that machines read",
                hint="add -f csv, tsv, json or markdown",
            )
        return form

    @property
    def is_open(self) -> bool:
        """Whether the terminal decides on the number of rows."""
        return self.top is None and self.output.path is None and not self.wide

    def style(self, console: Console) -> TextStyle:
        """Return the style of lines."""
        return self.output.style(console, wide=self.wide)

    def write_lines(self, console: Console, lines: Sequence[Text | str]) -> None:
        """Write lines for people."""
        self.output.write_lines(console, lines)

    def write_table(self, console: Console, content: Table) -> None:
        """Write the chosen columns of a table for machines in the format asked for.

        Raises
        ------
        UsageError
            If there is no such column.
        """
        chosen = content if self.columns is None else _picked(content, self.columns.split(","))
        self.output.write_table(console, chosen, header=self.header)


def output_options(command: F) -> F:
    """Add the options that say where a result goes; they arrive as ``output``, `OutputRequest`."""
    return option_group(command, _OUTPUT, "output", _make_output)


def table_options(command: F) -> F:
    """Add the options that say how much of a table is shown.

    With those of `table_output_options`, they arrive as a `TableRequest`, ``table``.
    """
    return option_group(command, _TABLE, "table", _make_table)


def table_output_options(command: F) -> F:
    """Add the options that say where a table goes, for a command with `table_options`."""
    return add_options(command, _OUTPUT)


def _make_output(*, format_: str | None, output: Path | None, force: bool) -> OutputRequest:
    return OutputRequest(format_, output, force)


def _make_table(
    *,
    top: int | None,
    columns: str | None,
    no_header: bool,
    wide: bool,
    format_: str | None,
    output: Path | None,
    force: bool,
) -> TableRequest:
    return TableRequest(OutputRequest(format_, output, force), top, columns, not no_header, wide)


def _picked(content: Table, names: Sequence[str]) -> Table:
    for name in names:
        if name not in content.columns:
            raise UsageError(f"no column {name!r}", hint=f"columns: {', '.join(content.columns)}")
    return content.pick(list(names))


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
