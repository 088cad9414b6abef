"""`cpmodel excess`: what is lost between measured scales."""

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
from callpath_modeler.cli.table_options import (
    format_of,
    output_options,
    picked,
    refuse_columns,
    table_options,
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
@click.option("--at", metavar="n=N,...", help="Where other parameters are held: measured values.")
@view_options
@table_options
@metric_options
@PARAMETER
@AGGREGATE
@load_options
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    pair: str | None,
    base: str | None,
    at: str | None,
    viewing: Callable[[str, int | None, bool, bool], ViewRequest],
    top: int | None,
    columns: str | None,
    no_header: bool,
    wide: bool,
    metric: str | None,
    inclusive: bool,
    exclusive: bool,
    parameter: str | None,
    aggregate: Aggregate,
    load: LoadOptions,
    format_: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Say what is lost between measured scales, and where.

    Excess work is the share of the run time that perfect scaling would not have. Without --pair
    or --base, every scale is compared with the smallest. Of several parameters, p scales; others
    are held where --at says, or at their largest measured value.
    """
    from callpath_modeler.analysis.ensemble import losses
    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.loading import load as read
    from callpath_modeler.pipeline import FitOptions, aggregate_of
    from callpath_modeler.report.excess import ExcessView, excess_table, excess_text
    from callpath_modeler.target_query import parse_target, slice_findings

    form = format_of(format_, output)
    refuse_columns(form, columns)
    wanted = viewing(form, top, inclusive, exclusive)
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
        # A run that was left out may be the scale that is missing.
        console.findings(findings)
        raise
    findings += slice_findings(found.line.held, found.line.assumed)
    shown = ExcessView(found, wanted)
    if form == "table":
        width = None if output is not None or wide else console.width
        lines = excess_text(
            shown,
            width=width,
            full_names=wide,
            ascii_only=console.ascii_only,
            invocation=_again(click.get_current_context(), pair, base),
        )
        render_lines(console, lines, output, force=force)
    else:
        content = picked(excess_table(shown, findings), columns)
        render_table(console, content, form, output, force=force, header=not no_header)
    console.findings(findings)


def _again(ctx: click.Context, pair: str | None, base: str | None) -> Invocation:
    """Return what asks for the same losses."""
    again = invocation_of(ctx)
    scales = {"--pair": pair, "--base": base}
    given = [shell_words([option, text]) for option, text in scales.items() if text is not None]
    return replace(again, options=" ".join([*given, again.options]).rstrip())


def _scales(pair: str | None, base: str | None) -> tuple[Pair | None, float | None]:
    """Return the pair and the base that were asked for."""
    from callpath_modeler.loading import parse_number

    if pair is not None and base is not None:
        raise UsageError("--pair and --base exclude each other", hint="give one of them")
    if pair is None:
        return None, None if base is None else parse_number(base, "--base")
    scales = pair.split(",")
    if len(scales) != 2:
        raise UsageError(f"--pair {pair!r} is malformed", hint="two scales, e.g. --pair 8,128")
    return (parse_number(scales[0], "--pair"), parse_number(scales[1], "--pair")), None
