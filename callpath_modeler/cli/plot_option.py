"""The option that draws an answer as a plot."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import OUTPUT, option
from callpath_modeler.cli.options import RESULT

if TYPE_CHECKING:
    from callpath_modeler.report.plot.drawing import Drawing


def _checked(_ctx: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a plot that cannot be written before anything is read."""
    if path is not None:
        from callpath_modeler.report.plot.style import format_of_plot, require_matplotlib

        format_of_plot(path)
        require_matplotlib()
        _import_matplotlib()
    return path


def _import_matplotlib() -> None:
    """Import matplotlib, so that a file ``matplotlibrc`` of the working directory sets nothing.

    Such a file may be one of a folder of profiles that somebody else made. Only the import reads
    it, and there is no setting that prevents that.
    """
    is_there, ours = Path("matplotlibrc").exists(), Path(__file__).parent
    with contextlib.chdir(ours) if is_there else contextlib.nullcontext():
        import matplotlib as mpl  # noqa: F401 - for its effect


PLOT = option(
    "--plot FILE",
    "Draw it as well: FILE ends in .pdf, .svg or .png.",
    type=RESULT,
    callback=_checked,
    group=OUTPUT,
    key=None,
)


def write_plot(console: Console, drawing: Drawing, path: Path, *, force: bool) -> None:
    """Write a plot to a file."""
    from callpath_modeler.report.plot.drawing import file_of
    from callpath_modeler.report.plot.style import format_of_plot

    console.write(file_of(drawing, format_of_plot(path)), path, overwrite=force)
