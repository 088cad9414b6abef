"""`cpmodel diff`: comparison of two experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured, note_other
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import LIST, call_option, option
from callpath_modeler.cli.options import A_FILE, study_options, target_options, with_standard_input
from callpath_modeler.cli.render import refuse_incomplete
from callpath_modeler.cli.table_options import (
    HTML,
    OutputRequest,
    answer_writer,
    table_or_page_options,
)
from callpath_modeler.cli.view_options import invocation_of
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.analysis.days import ScatterOfDays
    from callpath_modeler.analysis.difference import ExperimentDifference
    from callpath_modeler.arrays import IntArray
    from callpath_modeler.modeling import Centre
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

_TOP_OF_A_TABLE = 10


@click.command("diff", cls=Configured)
@click.argument(
    "experiment", nargs=-1, required=True, metavar="BASE NEW", callback=with_standard_input
)
@option(
    "--fail-on LIMITS",
    "Exit with status 1 if something got worse: 'worse>5%', growth, or both by comma.",
    written=LIST,
)
@option(
    "--select PATTERN",
    "Show and judge call paths that match, e.g. '**/MPI_*'.",
    example='"main/**/MPI_*"',
)
@call_option(
    "--history STORE",
    "Learn the scatter from day to day from a history of `cpmodel watch`, and allow for it.",
    type=A_FILE,
)
@table_or_page_options
@target_options
@study_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    fail_on: str | None,
    select: str | None,
    history: Path | None,
    table: OutputRequest,
    question: Question,
    study: Study,
) -> None:
    """Compare two experiments: what got better or worse, at which scale.

    BASE and NEW are each a profile, a directory of runs, a glob in quotes, a manifest, or a stored
    NAME.cpm. Call paths are compared by measured cost at the largest common scale, by growth, and
    at --target. Costs at the target are measured if both ran it, else predicted.
    With several parameters, use --at p=4096,n=1e6. -o FILE.html writes an interactive page of both
    at any target. With --history and NEW alone, base is all days
    of the history since the last change of each call path.
    """
    from callpath_modeler.analysis.difference import RegressionGate, violations
    from callpath_modeler.report.diff_table import difference_table
    from callpath_modeler.report.diff_text import (
        difference_text,
        difference_text_tables,
        left_out_of_both,
        unjudged_rows,
        violation_lines,
    )

    console: Console = ctx.obj
    if len(study.sources) != 2 and (history is None or len(study.sources) != 1):
        raise UsageError(
            f"diff compares two experiments, not {len(study.sources)}",
            hint="quote globs: cpmodel diff 'base/*.cubex' 'new/*.cubex', or compare one with all "
            "days of a history: --history STORE",
        )
    if question.predicted and question.target is question.at is None:
        raise UsageError("--predicted: there is no target", hint="add --target P")
    form = table.form
    limits = None if fail_on is None else RegressionGate.parse(fail_on)
    *given, new = map(str, study.sources)
    if given:
        note_other(ctx, new)
    study.sources = (new,)
    base: str | Experiment = given[0] if given else ""
    days = None
    if history is not None:
        days, usual = _days_of(
            history, question.metric, study.fit_options.aggregate, of_base=not given
        )
        base = usual or base
    compared = study.reading(requirements=True).difference(base, question, days=days)
    found = compared.difference
    rows = _chosen(found, select)
    broken = [] if limits is None else violations(found, limits, rows)
    again, first = invocation_of(ctx, sources=[new], of_files=True), table.top or _TOP_OF_A_TABLE
    if form == HTML:
        from callpath_modeler.cli.report import pair_provenance
        from callpath_modeler.report.page.pair_page import pair_page

        making = pair_provenance(ctx, [*given, new], compared)
        table.write(console, pair_page(compared, making, rows, table.top))
    else:
        answer_writer(table, console)(
            lambda style: difference_text(found, rows[:first], style, again),
            lambda: difference_table(
                compared, rows[: table.top], broken, unjudged_rows(found, rows)
            ),
            lambda style: difference_text_tables(found, rows[: table.top], style),
        )
    console.findings(compared.findings)
    for line in violation_lines(found, broken):
        console.note(line)
    if limits is not None and (said := left_out_of_both(found, rows)):
        console.note(f"limits of --fail-on were applied {said}")
    if broken:
        ctx.exit(EXIT_NO)
    if limits is not None:
        refuse_incomplete(compared.findings)


def _days_of(
    store: Path, metric: str | None, how: Centre, *, of_base: bool
) -> tuple[ScatterOfDays, Experiment | None]:
    """Return the scatter from day to day of a history, and its days if they are base."""
    from callpath_modeler.history import commits, history_store
    from callpath_modeler.history.day_to_day import experiment_of_days, scatter_of_days
    from callpath_modeler.support.input_limits import InputLimits

    limits = InputLimits.of(store)
    judged = commits.judged(history_store.read(store, None), metric=metric, limits=limits)
    days = scatter_of_days(judged)
    if not of_base:
        return days, None
    return replace(days, has_base=True), experiment_of_days(judged, store.name, how, limits)


def _chosen(found: ExperimentDifference, select: str | None) -> IntArray:
    from callpath_modeler.profile.pattern import match, unmatched

    if select is None:
        return found.order
    chosen = found.order[match(found.pair.tree, select)[found.order]]
    if not len(chosen):
        raise unmatched(found.pair.tree, select)
    return chosen
