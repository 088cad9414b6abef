"""`cpmodel show`: description of one call path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.one_call_path import row_of
from callpath_modeler.cli.options import (
    EXPERIMENT,
    FORCE,
    fit_options,
    load_options,
    target_options,
)
from callpath_modeler.cli.plot_option import PLOT, write_plot
from callpath_modeler.report.text_style import TextStyle

if TYPE_CHECKING:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.target_query import PredictionQuery


@click.command("show", cls=Configured)
@EXPERIMENT
@click.argument("callpath", metavar="CALLPATH")
@click.option("--linear", is_flag=True, help="Linear axes instead of logarithmic ones.")
@PLOT
@FORCE
@target_options
@load_options
@fit_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    callpath: str,
    linear: bool,
    plot: Path | None,
    force: bool,
    question: PredictionQuery,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Show one call path: formula, chart, band, alternatives, excess work.

    CALLPATH is a pattern that matches one call path, e.g. 'main/**/MPI_Waitall', or its @id. The
    default target is 4 times the largest scale.
    """
    from callpath_modeler import answers
    from callpath_modeler.cli.render import render_lines
    from callpath_modeler.explanation import explain
    from callpath_modeler.report.model import model_text
    from callpath_modeler.target_query import FURTHER

    ranking, findings = answers.ranking_of(
        experiment,
        question,
        load_options=load.with_requirements(),
        fit_options=fitting,
        progress=console.progress("read"),
        default_factor=FURTHER,
    )
    row = row_of(ranking.fitted.experiment, callpath)
    lines = model_text(
        ranking,
        row,
        style=TextStyle(width=console.width, ascii_only=console.ascii_only),
        linear=linear,
        cause=explain(ranking, row),
    )
    if plot is not None:
        from callpath_modeler.report.plot.drawing import model_drawing
        from callpath_modeler.report.plot.model import ModelPlot

        drawing = model_drawing(ModelPlot.of_ranking(ranking, row, linear=linear))
        write_plot(console, drawing, plot, force=force)
    render_lines(console, lines, None, force=False)
    console.findings(findings)
