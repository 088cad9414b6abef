"""`cpmodel refine`: functions to filter, and call paths to instrument more finely."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import EXPECT_VERDICTS, check_ranking
from callpath_modeler.cli.option_groups import OUTPUT, option, output_option
from callpath_modeler.cli.options import EXPERIMENT, FORCE, model_options, output_file
from callpath_modeler.cli.render import ROWS
from callpath_modeler.cli.table_options import (
    FORMATS,
    NUMBER_OF_ROWS,
    TABLE,
    WIDE,
    OutputRequest,
    answer_writer,
)
from callpath_modeler.cli.view_options import invocation_of
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.analysis.refinement import VisitCost
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

VISIT_COST = "0.1us,1us"
"""Default range of the cost of entering and leaving a function."""


@click.command("refine", cls=Configured, apart=("metric",))
@EXPERIMENT
@output_file("Write the filter for Score-P. Default: only the table.")
@FORCE
@option(
    "--visit-cost LOW,HIGH",
    "Range of the cost of entering and leaving an instrumented function.",
    default=VISIT_COST,
)
@option(
    "-n, --top N",
    "Largest number of rows of each table, or all. Default: 10.",
    type=NUMBER_OF_ROWS,
    group=OUTPUT,
)
@WIDE
@output_option(
    "-f, --format",
    "Format of the table on standard output.",
    "format_",
    type=click.Choice([form for form in FORMATS if form != "parquet"]),
    default=TABLE,
)
@EXPECT_VERDICTS
@model_options
@click.pass_obj
def command(
    console: Console,
    *,
    output: Path | None,
    force: bool,
    visit_cost: str,
    top: int | None,
    wide: bool,
    format_: str,
    expect: Path | None,
    question: Question,
    study: Study,
) -> None:
    """Propose a filter for Score-P, and call paths to instrument more finely.

    The filter excludes small and frequent functions, which cost most and tell least. It never
    excludes a function with more than 1 % of the time, the main program, MPI, OpenMP or other
    libraries, or callers of those. Call paths are too coarse if they take much of the time, and
    their model is poor. The default target is 4 times the largest scale.
    """
    from callpath_modeler.analysis.refinement import refine
    from callpath_modeler.report.refinement_text import (
        filter_text,
        refinement_table,
        refinement_text,
    )
    from callpath_modeler.studies.question import findings_at

    cost = cost_of_visits(visit_cost)
    study = study.for_expectations(expect, question.metric).reading(requirements=True)
    ranking = study.ranking(question)
    findings = findings_at(ranking.fitted, ranking.target)
    found = refine(ranking, cost, check_ranking(ranking, expect))
    if output is not None:
        console.write(filter_text(found), output, overwrite=force)
    written, ctx = None if output is None else str(output), click.get_current_context()
    answer_writer(OutputRequest(format_, None, force=False, wide=wide), console)(
        lambda style: refinement_text(
            found, top or ROWS, style=style, invocation=invocation_of(ctx), written=written
        ),
        lambda: refinement_table(found, findings),
    )
    console.findings(findings)


def cost_of_visits(text: str) -> VisitCost:
    """Return a range of times, such as ``0.1us,1us``; the same time twice if there is one."""
    from callpath_modeler.analysis.refinement import VisitCost
    from callpath_modeler.printable import shortened
    from callpath_modeler.units import base_and_factor, parse_quantity

    ends = []
    for part in text.split(","):
        try:
            number, unit = parse_quantity(part)
        except ValueError:
            number, unit = 0.0, ""
        base, factor = base_and_factor(unit)
        if base != "s" or not number > 0:
            raise UsageError(
                f"--visit-cost {shortened(text)!r} is no range of times", hint="e.g. 0.1us,1us"
            )
        ends.append(number * factor)
    if len(ends) > 2 or ends[0] > ends[-1]:
        raise UsageError(
            f"--visit-cost {shortened(text)!r} is no range of times", hint="e.g. 0.1us,1us"
        )
    return VisitCost(ends[0], ends[-1])
