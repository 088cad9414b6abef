"""`cpmodel views`: predictions at a target, top-down, bottom-up or flat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.invocations import invocation_of
from callpath_modeler.cli.options import (
    EXPERIMENT,
    fit_options,
    load_options,
    target_options,
)
from callpath_modeler.cli.table_options import (
    format_of,
    output_options,
    picked,
    refuse_columns,
    table_options,
)
from callpath_modeler.cli.view_options import sort_options, view_options

if TYPE_CHECKING:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.target_query import PredictionQuery


@click.command("views", cls=Configured)
@EXPERIMENT
@view_options
@sort_options
@table_options
@target_options
@load_options
@fit_options
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    viewing: Callable[[str, int | None, bool, bool], ViewRequest],
    sort: str,
    reverse: bool,
    top: int | None,
    columns: str | None,
    no_header: bool,
    wide: bool,
    question: PredictionQuery,
    load: LoadOptions,
    fitting: FitOptions,
    format_: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Show what a target costs top-down, bottom-up or flat.

    That is measured where the target was run two times or more, and predicted elsewhere.
    Values with callees lead top-down, those of functions by themselves in the other views; -i and
    -e choose. Without a target it is four times the largest scale.
    """
    from callpath_modeler.analysis.forecast import forecast
    from callpath_modeler.analysis.forecast_inputs import ForecastInputs
    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.pipeline import models_and_target_of
    from callpath_modeler.profile.view_request import Sort
    from callpath_modeler.report.views import ForecastView, views_table, views_text
    from callpath_modeler.target_query import FURTHER, findings_at

    ctx = click.get_current_context()
    form = format_of(format_, output)
    refuse_columns(form, columns)
    viewed = viewing(form, top, question.inclusive, bool(ctx.params["exclusive"]))
    wanted = replace(viewed, sort=Sort(sort), reverse=reverse)
    fitted, target = models_and_target_of(
        experiment,
        question,
        load_options=load,
        fit_options=fitting,
        progress=console.progress("read"),
        default_factor=FURTHER,
    )
    known = ForecastInputs(fitted, predicted=question.predicted)
    shown = ForecastView(forecast(known, target), wanted)
    findings = findings_at(fitted, target)
    if form == "table":
        width = None if output is not None or wide else console.width
        lines = views_text(
            shown,
            width=width,
            full_names=wide,
            ascii_only=console.ascii_only,
            invocation=invocation_of(ctx),
        )
        render_lines(console, lines, output, force=force)
    else:
        content = picked(views_table(shown, findings), columns)
        render_table(console, content, form, output, force=force, header=not no_header)
    console.findings(findings)
