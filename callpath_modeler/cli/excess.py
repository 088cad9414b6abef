"""`cpmodel excess`: excess work between scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import EXPECT_COSTS, expected_costs_of
from callpath_modeler.cli.option_groups import call_option
from callpath_modeler.cli.options import (
    AGGREGATE,
    EXPERIMENT,
    PARAMETER,
    load_options,
    metric_options,
)
from callpath_modeler.cli.table_options import (
    PLOT,
    OutputRequest,
    answer_writer,
    table_options,
    write_plot,
)
from callpath_modeler.cli.view_options import invocation_of, view_options
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import shell_words

if TYPE_CHECKING:
    from callpath_modeler.modeling import Centre
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.report.layout import Invocation
    from callpath_modeler.studies.loading import LoadOptions


@click.command("excess", cls=Configured)
@EXPERIMENT
@call_option("--pair P,Q", "Compare two scales, e.g. 8,128. Repeat.", "pairs", multiple=True)
@call_option("--base P", "Compare all larger scales with this one.")
@call_option("--target P", "Compare a predicted scale as well, with a band.")
@call_option("--at n=N,...", "Measured values of the other parameters.")
@EXPECT_COSTS
@view_options
@table_options
@PLOT
@metric_options
@PARAMETER
@AGGREGATE
@load_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    pairs: tuple[str, ...],
    base: str | None,
    target: str | None,
    at: str | None,
    expect: str | None,
    viewing: Callable[[str, int | None, bool, bool], ViewRequest],
    plot: Path | None,
    table: OutputRequest,
    metric: str | None,
    inclusive: bool,
    exclusive: bool,
    parameter: str | None,
    aggregate: Centre,
    load: LoadOptions,
) -> None:
    """Show how much time is lost between scales, and where.

    Excess work is the share of the run time beyond the expected cost, which is that of perfect
    scaling or of --expect. Without --pair or --base, every scale is compared with the smallest.
    With several parameters, p varies, and the others have the values of --at, or their largest
    measured values.
    """
    from callpath_modeler.report.excess_text import ExcessView
    from callpath_modeler.studies.pipeline import FitOptions
    from callpath_modeler.studies.question import Question, findings_at, parse_pairs, slice_findings
    from callpath_modeler.studies.study import Study

    form = table.form
    wanted = viewing(form, table.top, inclusive, exclusive)
    first = _base(pairs, base)
    expected = expected_costs_of(click.get_current_context())
    question = Question(
        target,
        at,
        metric,
        pairs=parse_pairs(pairs),
        expect=expected,
    )
    fitting = FitOptions(parameter=parameter, aggregate=aggregate)
    study = Study(experiment, load, fitting, progress=console.progress("read"))
    findings = study.experiment(metric).findings
    try:
        found, prediction = study.losses(question, base=first), None
        if target is not None:
            found, prediction = study.losses_at(found, target)
    except DataError:
        # The missing scale may be a run that was excluded.
        console.findings(findings)
        raise
    if prediction is not None:
        findings = findings_at(prediction.fitted, prediction.target)
    findings += slice_findings(found.line.held, found.line.assumed)
    findings = tuple(dict.fromkeys(findings))
    shown = ExcessView(found, wanted, prediction)
    if plot is not None:
        from callpath_modeler.report.plot import excess_drawing

        # It has the lines of the table, whatever else is written.
        lined_as = viewing("table", table.top, inclusive, exclusive)
        lined = ExcessView(found, lined_as, prediction)
        write_plot(console, excess_drawing(lined), plot, force=table.force)
    again = _again(click.get_current_context(), base, expect)
    answer_writer(table, console)(
        lambda style: shown.text(style, again), lambda: shown.table(findings), shown.text_tables
    )
    console.findings(findings)


def _again(ctx: click.Context, base: str | None, expect: str | None) -> Invocation:
    """Return the command lines for the same losses."""
    again = invocation_of(ctx)
    said = "" if base is None else shell_words(["--base", base])
    expected = "" if expect is None else shell_words(["--expect", expect])
    options = f"{said} {again.options}".strip()
    return replace(again, options=options, expected=expected)


def _base(pairs: tuple[str, ...], base: str | None) -> float | None:
    """Return the base of the options."""
    from callpath_modeler.studies.loading import parse_number

    if pairs and base is not None:
        raise UsageError("--pair and --base exclude each other", hint="give one of them")
    return None if base is None else parse_number(base, "--base")
