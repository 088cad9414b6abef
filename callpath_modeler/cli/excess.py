"""`cpmodel excess`: excess work between measured scales."""

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
    AGGREGATE,
    EXPERIMENT,
    PARAMETER,
    load_options,
    metric_options,
)
from callpath_modeler.cli.plot_option import PLOT, write_plot
from callpath_modeler.cli.table_options import (
    TableRequest,
    table_options,
    table_output_options,
)
from callpath_modeler.cli.view_options import view_options
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import shell_words

if TYPE_CHECKING:
    from callpath_modeler.analysis.ensemble import Pair
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.modeling import Aggregate
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.report.invocation import Invocation


@click.command("excess", cls=Configured)
@EXPERIMENT
@click.option("--pair", metavar="P,Q", help="Compare two scales, e.g. 8,128.")
@click.option("--base", metavar="P", help="Compare all larger scales with this one.")
@click.option("--at", metavar="n=N,...", help="Measured values of the other parameters.")
@view_options
@table_options
@PLOT
@metric_options
@PARAMETER
@AGGREGATE
@load_options
@table_output_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    pair: str | None,
    base: str | None,
    at: str | None,
    viewing: Callable[[str, int | None, bool, bool], ViewRequest],
    plot: Path | None,
    table: TableRequest,
    metric: str | None,
    inclusive: bool,
    exclusive: bool,
    parameter: str | None,
    aggregate: Aggregate,
    load: LoadOptions,
) -> None:
    """Show how much time is lost between measured scales, and where.

    Excess work is the share of the run time that would be saved by perfect scaling. Without --pair
    or --base, every scale is compared with the smallest. With several parameters, p varies, and
    the others have the values of --at, or their largest measured values.
    """
    from callpath_modeler.analysis.ensemble import losses
    from callpath_modeler.loading import load as read
    from callpath_modeler.pipeline import FitOptions, aggregate_of
    from callpath_modeler.report.excess import ExcessView, excess_table, excess_text
    from callpath_modeler.target_query import parse_target, slice_findings

    form = table.form
    wanted = viewing(form, table.top, inclusive, exclusive)
    chosen, first = _scales(pair, base)
    load = load.of_metric(metric)
    experiment_read = read(experiment, load, console.progress("read"))
    findings = experiment_read.findings
    held = parse_target(None, at).named
    how = FitOptions(parameter=parameter, aggregate=aggregate)
    try:
        found = losses(
            experiment_read,
            metric,
            parameter,
            held=held,
            pair=chosen,
            base=first,
            aggregate=aggregate_of(experiment_read, experiment, metric, load, how),
        )
    except DataError:
        # The missing scale may be a run that was excluded.
        console.findings(findings)
        raise
    findings += slice_findings(found.line.held, found.line.assumed)
    shown = ExcessView(found, wanted)
    if plot is not None:
        from callpath_modeler.report.plot.drawing import excess_drawing

        # It has the lines of the table, whatever else is written.
        lined = ExcessView(found, viewing("table", table.top, inclusive, exclusive))
        write_plot(console, excess_drawing(lined), plot, force=table.output.force)
    if form == "table":
        lines = excess_text(
            shown,
            style=table.style(console),
            invocation=_again(click.get_current_context(), pair, base),
        )
        table.write_lines(console, lines)
    else:
        table.write_table(console, excess_table(shown, findings))
    console.findings(findings)


def _again(ctx: click.Context, pair: str | None, base: str | None) -> Invocation:
    """Return the command lines for the same losses."""
    again = invocation_of(ctx)
    scales = {"--pair": pair, "--base": base}
    given = [shell_words([option, text]) for option, text in scales.items() if text is not None]
    return replace(again, options=" ".join([*given, again.options]).rstrip())


def _scales(pair: str | None, base: str | None) -> tuple[Pair | None, float | None]:
    """Return the pair and the base of the options."""
    from callpath_modeler.loading import parse_number
    from callpath_modeler.target_query import parse_pair

    if pair is not None and base is not None:
        raise UsageError("--pair and --base exclude each other", hint="give one of them")
    return parse_pair(pair), None if base is None else parse_number(base, "--base")
