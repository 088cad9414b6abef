"""`cpmodel show`: description of one call path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import EXPECT_COSTS
from callpath_modeler.cli.option_groups import OUTPUT, call_option, option
from callpath_modeler.cli.options import EXPERIMENT, study_options, target_options
from callpath_modeler.cli.table_options import (
    PLOT,
    OutputRequest,
    answer_writer,
    output_options,
    write_plot,
)
from callpath_modeler.cli.view_options import row_of, rows_of
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study


@click.command("show", cls=Configured)
@EXPERIMENT
@click.argument("callpath", metavar="CALLPATH")
@option("--linear", "Linear axes instead of logarithmic ones.", group=OUTPUT)
@call_option(
    "--per-process",
    "Show the measured value of each process, and outlying ranks. CALLPATH may match several "
    "call paths; their values are summed.",
)
@PLOT
@EXPECT_COSTS
@target_options
@study_options
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    callpath: str,
    linear: bool,
    per_process: bool,
    plot: Path | None,
    question: Question,
    study: Study,
    output: OutputRequest,
) -> None:
    """Show one call path: formula, chart, band, alternatives, excess work.

    CALLPATH is a pattern that matches one call path, e.g. 'main/**/MPI_Waitall', or its @id. The
    default target is 4 times the largest scale.

    --per-process reads the values of single processes from the profiles: at the target if it was
    measured, by default at the largest scale.
    """
    from callpath_modeler.report.model_text import call_path_table, model_text
    from callpath_modeler.studies.pipeline import explain
    from callpath_modeler.studies.question import findings_at

    if per_process:
        linear = linear and "--linear" not in study.load_options.preset
        _refuse(
            linear=linear,
            plot=plot,
            predicted=question.predicted,
            pair=question.pairs,
            expect=question.expect,
        )
        _show_processes(console, study, callpath, question, output)
        return
    write = answer_writer(output, console)
    ranking = study.reading(requirements=True).ranking(question)
    row = row_of(ranking.fitted.experiment, callpath)
    cause, findings = explain(ranking, row), findings_at(ranking.fitted, ranking.target)
    if plot is not None:
        from callpath_modeler.report.model_plot import ModelPlot
        from callpath_modeler.report.plot import model_drawing

        drawing = model_drawing(ModelPlot.of_ranking(ranking, row, linear=linear))
        write_plot(console, drawing, plot, force=output.force)
    write(
        lambda style: model_text(ranking, row, style=style, linear=linear, cause=cause),
        lambda: call_path_table(ranking, row, cause, findings),
    )
    console.findings(findings)


def _refuse(**options: object) -> None:
    """Raise `UsageError` for a given option of models."""
    for name, value in options.items():
        if value:
            raise UsageError(
                f"--{name} does not apply to --per-process: values of processes are measured",
                hint="omit one of them",
            )


def _show_processes(
    console: Console,
    study: Study,
    callpath: str,
    question: Question,
    output: OutputRequest,
) -> None:
    """Show the values of the processes in the call paths that a pattern matches."""
    from callpath_modeler.report.process_text import process_table, process_text

    question.scale(study.fit_options.parameter)  # A malformed target is refused before reading.
    # A configured target is for predictions, and is seldom measured.
    if {"--target", "--at"} <= study.load_options.preset:
        question = replace(question, target=None, at=None)
    rows = rows_of(study.experiment(question.metric), callpath)
    profile = study.processes(rows, question)
    answer_writer(output, console)(
        lambda style: process_text(profile, style=style), lambda: process_table(profile)
    )
    console.findings(profile.findings)
