"""`cpmodel guidelines diff`: verdicts of two campaigns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured, note_other
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import call_option
from callpath_modeler.cli.options import (
    fit_options,
    load_options,
    metric_options,
    refuse_both,
    with_standard_input,
)
from callpath_modeler.cli.render import refuse_incomplete
from callpath_modeler.cli.table_options import OutputRequest, answer_writer, table_options
from callpath_modeler.errors import DataError, UsageError
from cpmodel_guidelines.commands.judging import JUNIT, TOP, Judging, judging_options

if TYPE_CHECKING:
    from pathlib import Path

    from callpath_modeler.studies.loading import LoadOptions
    from callpath_modeler.studies.pipeline import FitOptions
    from callpath_modeler.studies.question import Question
    from cpmodel_guidelines.answer import Verification


@click.command("guidelines_diff", cls=Configured)
@click.argument(
    "experiment", nargs=-1, required=True, metavar="BEFORE AFTER", callback=with_standard_input
)
@judging_options
@JUNIT
@call_option(
    "--fail-on",
    "Exit with status 1 if a guideline is newly violated; 'worse': or a function is slower.",
    type=click.Choice(["new", "worse"]),
)
@table_options
@metric_options
@load_options
@fit_options
@click.pass_context
def diff(
    ctx: click.Context,
    *,
    experiment: tuple[str, ...],
    judging: Judging,
    junit: Path | None,
    fail_on: str | None,
    table: OutputRequest,
    metric: str | None,
    inclusive: bool,
    exclusive: bool,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Compare the verdicts of two campaigns: violated guidelines that are new, mended or still so.

    BEFORE and AFTER are each a file or folder with the output of a benchmark, or a table.
    LIBRARY=PATH names the MPI library. Libraries and numbers of processes are compared by name. The
    times of functions in the mpiruns of both campaigns are compared as well.
    """
    from callpath_modeler.report.test_reports import junit_xml
    from callpath_modeler.studies.question import Question
    from cpmodel_guidelines.changes.comparison import compare
    from cpmodel_guidelines.changes.text import change_table, change_text
    from cpmodel_guidelines.verdict_cases import change_cases

    console: Console = ctx.obj
    refuse_both(inclusive=inclusive, exclusive=exclusive)
    if len(experiment) != 2:
        raise UsageError(
            f"diff compares two campaigns, not {len(experiment)}",
            hint="give a folder for each: cpmodel guidelines diff before/ after/",
        )
    write = answer_writer(table, console)
    note_other(ctx, experiment[1])
    question = Question(metric=metric, inclusive=inclusive)
    before, after = (
        _verified(judging, source, question, load, fitting, console) for source in experiment
    )
    changes = compare(before, after)
    is_worse = fail_on == "worse"
    if is_worse and not changes.is_tested:
        raise DataError(
            "--fail-on worse: too few mpiruns to compare times",
            hint="measure at least four mpiruns in each campaign, or use --fail-on new",
        )
    if junit is not None:
        cases = change_cases(changes, worse=is_worse)
        text = junit_xml("cpmodel guidelines diff", after.benchmark.experiment.name, cases)
        console.write(text, junit, overwrite=table.force)
    write(
        lambda style: change_text(changes, style, table.top or TOP),
        lambda: change_table(changes, table.top),
    )
    findings = (*before.findings, *after.findings)
    console.findings(findings)
    if fail_on is None:
        return
    if changes.fails(worse=is_worse):
        ctx.exit(EXIT_NO)
    refuse_incomplete(findings)


def _verified(
    judging: Judging,
    source: str,
    question: Question,
    load: LoadOptions,
    fitting: FitOptions,
    console: Console,
) -> Verification:
    """Return the verdicts on one campaign."""
    from cpmodel_guidelines.suites.pgmpi import guidelines_of

    campaign, catalogues = judging.campaign([source], load, question)
    guidelines = guidelines_of(judging.rules, catalogues)
    read = judging.read([source], campaign, load, console.progress("read"))
    bench = judging.benchmark(read, guidelines, question, fitting)
    return judging.verification(bench, guidelines, fitting)
