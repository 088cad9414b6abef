"""`cpmodel rank`: the main command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console, Notes
from callpath_modeler.cli.expectation_option import EXPECT, check_ranking
from callpath_modeler.cli.invocations import invocation_of
from callpath_modeler.cli.options import (
    EXPERIMENT,
    fit_options,
    load_options,
    target_options,
)
from callpath_modeler.cli.screen_size import ROWS, fit_to_screen
from callpath_modeler.cli.table_options import (
    format_of,
    output_options,
    picked,
    refuse_columns,
    table_options,
)

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.analysis.rank import Ranking
    from callpath_modeler.arrays import IntArray
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.target_query import PredictionQuery

_TRUST = """\
●●●● four marks: the band lies within 10 % of the value; ●●●○ within 25 %;
●●○○ within a factor of 2; ●○○○ within a factor of 5; ○○○○ beyond.
A band is made to hold the value in 95 of 100 cases (--confidence), so four
marks say: in 95 of 100 cases the prediction is right to 10 %. Of what was
measured, the confidence interval takes the place of the band.
A prediction has at most two marks outside the model class or at 16 times the
largest run and beyond, and at most three where no run was repeated.
"""


@click.command("rank", cls=Configured)
@EXPERIMENT
@click.option(
    "--by",
    type=click.Choice(["value", "growth", "loss", "share"]),
    default="value",
    show_default=True,
    help="Order: value at the target; growth; cost beyond the ideal; growth of the share.",
)
@click.option(
    "--select", metavar="PATTERN", help="Show call paths that match, e.g. 'main/**/MPI_*'."
)
@click.option(
    "--group-by", metavar="NAME", help="Rank the runs of each value of a metadata or a parameter."
)
@table_options
@click.option("--explain-trust", is_flag=True, help="Say what the marks of trust mean.")
@EXPECT
@target_options
@load_options
@fit_options
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    by: str,
    select: str | None,
    group_by: str | None,
    top: int | None,
    columns: str | None,
    no_header: bool,
    wide: bool,
    explain_trust: bool,
    expect: Path | None,
    question: PredictionQuery,
    load: LoadOptions,
    fitting: FitOptions,
    format_: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Rank call paths by what they cost at a target scale.

    That is measured where the target was run two times or more, and predicted elsewhere.
    Verdicts of --expect do not change the exit status; `cpmodel check` has one for them.

    EXP is a profile, a directory of runs, a glob, a manifest, or a stored NAME.cpm.
    """
    import numpy as np

    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.expectation_check import reading_for
    from callpath_modeler.pipeline import rankings_of
    from callpath_modeler.report.grouped import heading, joined, of_group, of_groups
    from callpath_modeler.report.ranking import ranking_text
    from callpath_modeler.report.ranking_table import ranking_table

    if explain_trust:
        console.note(_TRUST.rstrip(), asked=True)
    form = format_of(format_, output)
    refuse_columns(form, columns)
    if expect is not None:
        load = reading_for(expect, question.metric, load)
    groups = rankings_of(
        experiment,
        question,
        group_by,
        by=by,
        load_options=load,
        fit_options=fitting,
        progress=console.progress("read"),
    )
    checks = {value: check_ranking(ranking, expect) for value, (ranking, _) in groups.items()}
    chosen = {value: _chosen(ranking, select) for value, (ranking, _) in groups.items()}
    findings, notes = of_groups(group_by, groups), Notes.FULL
    if form == "table":
        width = None if output is not None or wide else console.width
        without = ("--where",) if group_by else ()
        again = invocation_of(click.get_current_context(), without=without)
        shown = {
            value: chosen[value][np.isin(chosen[value], ranking.order)]
            for value, (ranking, _) in groups.items()
        }

        def lay(count: int, complete: bool) -> list[Text | str]:
            lines: list[Text | str] = []
            for value, (ranking, _) in groups.items():
                if group_by:
                    lines += heading(group_by, value, ranking, is_first=not lines)
                lines += ranking_text(
                    ranking,
                    shown[value][:count],
                    width=width,
                    full_names=wide,
                    ascii_only=console.ascii_only,
                    invocation=of_group(again, load.where, group_by, value) if group_by else again,
                    check=checks[value],
                    complete=complete,
                )
            return lines

        if top is None and output is None and not wide and not group_by:
            (rows,) = shown.values()
            lines, notes = fit_to_screen(console, lay, len(rows), findings)
        else:
            lines = lay(top or ROWS, complete=True)
        render_lines(console, lines, output, force=force)
    else:
        tables = {
            value: ranking_table(ranking, chosen[value][:top], own, checks[value])
            for value, (ranking, own) in groups.items()
        }
        content = joined(tables, group_by) if group_by else tables[""]
        render_table(
            console, picked(content, columns), form, output, force=force, header=not no_header
        )
    console.findings(findings, notes)


def _chosen(ranking: Ranking, select: str | None) -> IntArray:
    from callpath_modeler.profile.pattern import match, unmatched
    from callpath_modeler.report.ranking_table import all_rows

    rows = all_rows(ranking)
    if select is None:
        return rows
    tree = ranking.fitted.experiment.tree
    chosen = rows[match(tree, select)[rows]]
    if not len(chosen):
        raise unmatched(tree, select)
    return chosen
