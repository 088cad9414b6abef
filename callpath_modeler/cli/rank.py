"""`cpmodel rank`: the main command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import (
    EXPERIMENT,
    fit_options,
    load_options,
    target_options,
)
from callpath_modeler.cli.retelling import retold
from callpath_modeler.cli.tables import (
    format_of,
    output_options,
    picked,
    refuse_columns,
    table_options,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.text import Text

    from callpath_modeler.analysis.rank import Ranking
    from callpath_modeler.asking import Question
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions

_TOP_OF_A_TABLE = 10
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
    question: Question,
    load: LoadOptions,
    fitting: FitOptions,
    format_: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Rank call paths by what they cost at a target scale.

    That is measured where the target was run two times or more, and predicted elsewhere.

    EXP is a profile, a directory of runs, a glob, a manifest, or a stored NAME.cpm.
    """
    import numpy as np

    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.pipeline import rankings_of
    from callpath_modeler.report.grouped import heading, joined, of_group, of_groups
    from callpath_modeler.report.ranking import ranking_text
    from callpath_modeler.report.ranking_table import ranking_table

    if explain_trust:
        console.note(_TRUST.rstrip(), asked=True)
    form = format_of(format_, output)
    refuse_columns(form, columns)
    groups = rankings_of(
        experiment,
        question,
        group_by,
        by=by,
        load_options=load,
        fit_options=fitting,
        progress=console.progress("read"),
    )
    chosen = {value: _chosen(ranking, select) for value, (ranking, _) in groups.items()}
    if form == "table":
        width = None if output is not None or wide else console.width
        without = ("--where",) if group_by else ()
        again = retold(click.get_current_context(), without=without)
        lines: list[Text | str] = []
        for value, (ranking, _) in groups.items():
            lines += heading(group_by, value, ranking, is_first=not lines) if group_by else []
            rows = chosen[value]
            lines += ranking_text(
                ranking,
                rows[np.isin(rows, ranking.order)][: top or _TOP_OF_A_TABLE],
                width=width,
                full_names=wide,
                ascii_only=console.ascii_only,
                again=of_group(again, load.where, group_by, value) if group_by else again,
            )
        render_lines(console, lines, output, force=force)
    else:
        tables = {
            value: ranking_table(ranking, chosen[value][:top], findings)
            for value, (ranking, findings) in groups.items()
        }
        content = joined(tables, group_by) if group_by else tables[""]
        render_table(
            console, picked(content, columns), form, output, force=force, header=not no_header
        )
    console.findings(of_groups(group_by, groups))


def _chosen(ranking: Ranking, select: str | None) -> NDArray[np.intp]:
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
