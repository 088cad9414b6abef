"""Format and file of the tables of `cpmodel trace`, whose format for people is ``text``."""

from __future__ import annotations

from pathlib import Path

import click

from callpath_modeler.cli.option_groups import OUTPUT, F, option, option_group
from callpath_modeler.cli.options import FORCE, output_file
from callpath_modeler.cli.table_options import FORMATS, TABLE, OutputRequest

_TEXT = "text"
_OUTPUT = (
    option(
        "-f, --format",
        "Default: by the suffix of -o, else text.",
        "format_",
        type=click.Choice([_TEXT, *(name for name in FORMATS if name != TABLE)]),
        group=OUTPUT,
        key=None,
    ),
    output_file("Write to a file."),
    FORCE,
)


def trace_output_options(command: F) -> F:
    """Add the options for the output; they arrive as an `OutputRequest`, ``output``."""
    return option_group(command, _OUTPUT, "output", _made)


def _made(*, format_: str | None, output: Path | None, force: bool) -> OutputRequest:
    return OutputRequest(TABLE if format_ == _TEXT else format_, output, force)
