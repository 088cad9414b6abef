"""The option that draws an answer as a plot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import RESULT

if TYPE_CHECKING:
    from callpath_modeler.report.plot.drawing import Drawing


def _checked(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a plot that cannot be written before anything is read."""
    if path is not None:
        from callpath_modeler.report.plot.style import format_of_plot, require_matplotlib

        format_of_plot(path)
        require_matplotlib()
    return path


PLOT = click.option(
    "--plot",
    type=RESULT,
    callback=_checked,
    metavar="FILE",
    help="Draw it as well: FILE ends in .pdf, .svg or .png.",
)


def write_plot(console: Console, drawing: Drawing, path: Path, *, force: bool) -> None:
    """Write a plot to a file."""
    from callpath_modeler.report.plot.drawing import file_of
    from callpath_modeler.report.plot.style import format_of_plot

    console.write(file_of(drawing, format_of_plot(path)), path, overwrite=force)
