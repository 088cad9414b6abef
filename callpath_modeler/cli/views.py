"""`cpmodel views`: predictions at a target, top-down, bottom-up or flat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import EXPECT_COSTS, with_expectation
from callpath_modeler.cli.options import EXPERIMENT, study_options, target_options
from callpath_modeler.cli.table_options import OutputRequest, answer_writer, table_options
from callpath_modeler.cli.view_options import (
    COMPARE,
    chosen_order,
    invocation_of,
    sort_options,
    view_options,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.pair_forecast import ViewForecast
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.report.difference_view import DifferenceView
    from callpath_modeler.report.layout import Invocation
    from callpath_modeler.report.views_text import ForecastView
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study


@click.command("views", cls=Configured)
@EXPERIMENT
@view_options
@sort_options
@COMPARE
@table_options
@EXPECT_COSTS
@target_options
@study_options
@click.pass_obj
def command(
    console: Console,
    *,
    viewing: Callable[[str, int | None, bool, bool], ViewRequest],
    sort: str | None,  # noqa: ARG001
    reverse: bool,
    other: str,
    table: OutputRequest,
    question: Question,
    study: Study,
) -> None:
    """Show costs at a target top-down, bottom-up or flat.

    Costs are measured if the target was run, else predicted. Inclusive values lead
    top-down, exclusive values in the other views; -i and -e choose. The default target is 4 times
    the largest scale. One or two scales allow no models: then all costs are measured, and two
    scales are compared by excess work. --compare shows two experiments in one tree.
    """
    from callpath_modeler.analysis.answer_bands import AnswerInputs
    from callpath_modeler.analysis.pair_forecast import values_at

    ctx = click.get_current_context()
    viewed = viewing(table.form, table.top, question.inclusive, bool(ctx.params["exclusive"]))
    order = chosen_order(ctx, is_pair=bool(other))
    fitted, target = study.at(question)
    inputs = AnswerInputs(fitted, predicted=question.predicted)
    if other:
        inputs = study.pair(other, fitted, predicted=question.predicted)
    made = values_at(inputs, target)
    request = replace(viewed, reverse=reverse, sort=order or made.usual_sort)
    invocation = with_expectation(ctx, invocation_of(ctx), fitted)
    _, findings = write_view(console, table, made, request, invocation)
    console.findings(findings)


def write_view(
    console: Console,
    output: OutputRequest,
    made: ViewForecast,
    request: ViewRequest,
    invocation: Invocation,
) -> tuple[int, Sequence[Finding]]:
    """Write a view of one experiment or of two, and return the number of lines and the findings.

    Parameters
    ----------
    console : the console
    output : format and file
    made : the values
    request : view, depth, filter and zoom
    invocation : command lines for the same experiment
    """
    from callpath_modeler.analysis.pair_forecast import PairForecast

    shown: ForecastView | DifferenceView
    if isinstance(made, PairForecast):
        from callpath_modeler.report.difference_view import DifferenceView

        shown = DifferenceView(made, request)
        findings = shown.compared.findings
    else:
        from callpath_modeler.report.views_text import ForecastView
        from callpath_modeler.studies.question import findings_at

        shown = ForecastView(made, request)
        findings = findings_at(made.fitted, made.target)
    answer_writer(output, console)(
        lambda style: shown.text(style, invocation),
        lambda: shown.table(findings),
        shown.text_tables,
    )
    return len(shown.outline), findings
