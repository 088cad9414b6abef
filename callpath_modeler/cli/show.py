"""`cpmodel show`: one call path in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import EXPERIMENT, fit_options, load_options, target_options
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.target_query import PredictionQuery

_WIDTH_OF_A_PIPE = 100


@click.command("show", cls=Configured)
@EXPERIMENT
@click.argument("callpath", metavar="CALLPATH")
@click.option("--linear", is_flag=True, help="Linear axes instead of logarithmic ones.")
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
    question: PredictionQuery,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Show one call path: formula, chart, band, alternatives, excess work.

    CALLPATH is a pattern that matches one call path, e.g. 'main/**/MPI_Waitall', or its @id.
    Without a target it is four times the largest scale.
    """
    from callpath_modeler import pipeline
    from callpath_modeler.cli.render import render_lines
    from callpath_modeler.explanation import explain
    from callpath_modeler.report.model import model_text
    from callpath_modeler.target_query import FURTHER

    ranking, findings = pipeline.ranking_of(
        experiment,
        question,
        load_options=load.with_requirements(),
        fit_options=fitting,
        progress=console.progress("read"),
        default_factor=FURTHER,
    )
    row = _found(ranking.fitted.experiment, callpath)
    lines = model_text(
        ranking,
        row,
        width=console.width or _WIDTH_OF_A_PIPE,
        linear=linear,
        ascii_only=console.ascii_only,
        needs=explain(ranking, row),
    )
    render_lines(console, lines, None, force=False)
    console.findings(findings)


def _found(experiment: Experiment, callpath: str) -> int:
    """Return the row of a call path; where it may have been taken away, an error says so."""
    from callpath_modeler.profile.pattern import find_one
    from callpath_modeler.profile.pruning import excluded_call_paths

    try:
        return find_one(experiment.tree, callpath)
    except UsageError as error:
        message = error.message + excluded_call_paths(experiment)
        raise UsageError(message, hint=error.hint) from None
