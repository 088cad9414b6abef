"""`cpmodel efficiency`: factors of parallel efficiency, and problem sizes that keep it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import option, was_asked
from callpath_modeler.cli.options import EXPERIMENT, ISO, model_options
from callpath_modeler.cli.table_options import (
    PLOT,
    OutputRequest,
    answer_writer,
    table_options,
    write_plot,
)
from callpath_modeler.cli.view_options import invocation_of
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.studies.isoefficiency import Isoefficiency
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study


@click.command("efficiency", cls=Configured)
@EXPERIMENT
@option(
    "--scheme",
    "Factors are products of those below them, or 1 minus shares of the run time.",
    type=click.Choice(["multiplicative", "additive"]),
    default="multiplicative",
)
@option(
    "--select PATTERN", "Show subtrees that match, e.g. 'main/**/solve'.", example='"main/**/MPI_*"'
)
@ISO
@table_options
@PLOT
@model_options
@click.pass_obj
def command(
    console: Console,
    *,
    scheme: str,
    select: str | None,
    iso: float | None,
    table: OutputRequest,
    plot: Path | None,
    question: Question,
    study: Study,
) -> None:
    """Show the factors of parallel efficiency, by scale and by subtree.

    The POP methodology defines them: load balance, communication efficiency, computation
    scalability, and their products. One run suffices. With a target, the parts of the run time are
    modelled, and the factors are predicted from them.

    --iso needs runs that vary p and a problem size, in any format.
    """
    from callpath_modeler.analysis.efficiency_factors import Scheme
    from callpath_modeler.report.efficiency_text import (
        TOP,
        EfficiencyView,
        efficiency_table,
        efficiency_text,
        efficiency_text_tables,
    )

    write = answer_writer(table, console)
    if not was_asked(click.get_current_context(), "metric"):
        # A metric from a file is for models, and need not be a time.
        question = replace(question, metric=None)
    if iso is not None:
        _write_sizes(console, study.isoefficiency(iso, question), table, plot)
        return
    answer = study.efficiency(question)
    shown = EfficiencyView(
        answer.efficiency, Scheme(scheme), table.top or TOP, answer.confidence, select
    )
    if plot is not None:
        from callpath_modeler.report.plot import efficiency_drawing

        write_plot(console, efficiency_drawing(shown), plot, force=table.force)
    again = invocation_of(click.get_current_context())
    write(
        lambda style: efficiency_text(shown, style=style, invocation=again),
        lambda: efficiency_table(shown, answer.findings),
        lambda style: efficiency_text_tables(shown, style),
    )
    console.findings(answer.findings)


def _write_sizes(
    console: Console, found: Isoefficiency, table: OutputRequest, plot: Path | None
) -> None:
    """Write the problem sizes that keep an efficiency."""
    from callpath_modeler.report.efficiency_text import iso_table, iso_text, iso_text_tables

    ctx = click.get_current_context()
    for name in ("select", "scheme"):
        if was_asked(ctx, name):
            raise UsageError(
                f"--iso is about the run time, so --{name} does not apply", hint=f"omit --{name}"
            )
    if plot is not None:
        from callpath_modeler.report.plot import iso_drawing

        write_plot(console, iso_drawing(found), plot, force=table.force)
    again = invocation_of(ctx, without=("--target", "--at"))
    answer_writer(table, console)(
        lambda style: iso_text(found, style=style, invocation=again),
        lambda: iso_table(found),
        lambda _: iso_text_tables(found),
    )
    console.findings(found.findings)
