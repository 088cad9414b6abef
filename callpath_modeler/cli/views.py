"""`cpmodel views`: predictions at a target, top-down, bottom-up or flat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import (
    EXPECT_COSTS,
    with_expectation,
)
from callpath_modeler.cli.invocations import invocation_of
from callpath_modeler.cli.options import (
    EXPERIMENT,
    study_options,
    target_options,
)
from callpath_modeler.cli.table_options import (
    TableRequest,
    table_options,
    table_output_options,
)
from callpath_modeler.cli.view_options import (
    COMPARE,
    chosen_order,
    sort_options,
    view_options,
)

if TYPE_CHECKING:
    from callpath_modeler.analysis.pair_forecast import PairInputs
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.question import Question
    from callpath_modeler.study import Study


@click.command("views", cls=Configured)
@EXPERIMENT
@view_options
@sort_options
@COMPARE
@table_options
@EXPECT_COSTS
@target_options
@study_options
@table_output_options
@click.pass_obj
def command(
    console: Console,
    *,
    viewing: Callable[[str, int | None, bool, bool], ViewRequest],
    sort: str | None,  # noqa: ARG001
    reverse: bool,
    other: str,
    table: TableRequest,
    question: Question,
    study: Study,
) -> None:
    """Show costs at a target top-down, bottom-up or flat.

    Costs are measured if the target was run at least twice, else predicted. Inclusive values lead
    top-down, exclusive values in the other views; -i and -e choose. The default target is 4 times
    the largest scale. One or two scales allow no models: then all costs are measured, and two
    scales are compared by excess work. --compare shows two experiments in one tree.
    """
    from callpath_modeler.analysis.answer import answer_at
    from callpath_modeler.analysis.answer_inputs import AnswerInputs
    from callpath_modeler.profile.view_request import Sort
    from callpath_modeler.question import findings_at
    from callpath_modeler.report.views import ForecastView, views_table, views_text

    ctx = click.get_current_context()
    form = table.form
    viewed = viewing(form, table.top, question.inclusive, bool(ctx.params["exclusive"]))
    order = chosen_order(ctx, is_pair=bool(other))
    fitted, target = study.at(question)
    viewed = replace(viewed, reverse=reverse)
    if other:
        pair = study.pair(other, fitted, predicted=question.predicted)
        _show_pair(console, pair, target, replace(viewed, sort=order or Sort.DIFFERENCE), table)
        return
    known = AnswerInputs(fitted, predicted=question.predicted)
    made = answer_at(known, target)
    shown = ForecastView(made, replace(viewed, sort=order or made.usual_sort))
    findings = findings_at(fitted, target)
    if form == "table":
        lines = views_text(
            shown,
            style=table.style(console),
            invocation=with_expectation(ctx, invocation_of(ctx), fitted),
        )
        table.write_lines(console, lines)
    else:
        table.write_table(console, views_table(shown, findings))
    console.findings(findings)


def _show_pair(
    console: Console, pair: PairInputs, target: float, request: ViewRequest, table: TableRequest
) -> None:
    """Write a view of two experiments."""
    from callpath_modeler.analysis.pair_forecast import pair_forecast
    from callpath_modeler.comparison import compared_in
    from callpath_modeler.report.difference_view import (
        DifferenceView,
        difference_view_table,
        difference_view_text,
    )

    shown = DifferenceView(pair_forecast(pair, target), request)
    compared = compared_in(shown.forecast, inclusive=shown.inclusive)
    if table.form == "table":
        table.write_lines(console, difference_view_text(shown, style=table.style(console)))
    else:
        table.write_table(console, difference_view_table(shown, compared))
    console.findings(compared.findings)
