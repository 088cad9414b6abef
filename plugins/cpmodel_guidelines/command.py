"""The command `cpmodel guidelines`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.exit_status import EXIT_NO
from callpath_modeler.cli.options import EXPERIMENT, fit_options, load_options, target_options
from callpath_modeler.cli.table_options import (
    TableRequest,
    table_options,
    table_output_options,
)
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.target_query import PredictionQuery
    from cpmodel_guidelines.benchmark import Benchmark
    from cpmodel_guidelines.potential_savings import PotentialSavings
    from cpmodel_guidelines.verification import Ask

_TOP_OF_A_TABLE = 10


@click.command("guidelines", cls=Configured)
@EXPERIMENT
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="TEXT",
    help="Add a guideline, e.g. 'Allgather <= Gather + Bcast(p*m)'.",
)
@click.option(
    "--tolerance",
    metavar="PERCENT",
    default="5%",
    show_default=True,
    help="Slowdown that is not a violation.",
)
@click.option(
    "--size", metavar="NAME", help="Parameter with the message size. Default: found by its name."
)
@click.option(
    "--interval",
    metavar="LOW,HIGH",
    help="Two metrics: ends of the --confidence interval of values without repetitions.",
)
@click.option("--select", metavar="PATTERN", help="Check these call paths only, e.g. 'OpenMPI/**'.")
@click.option(
    "--application",
    metavar="EXP",
    help="Profiles of a program, to bound its gain. Default: EXP, if it is a program.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["violated", "predicted"]),
    help="Exit with status 1 on a violation; 'predicted' includes violations at the target.",
)
@table_options
@target_options
@load_options
@fit_options
@table_output_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    experiment: tuple[str, ...],
    rules: tuple[str, ...],
    tolerance: str,
    size: str | None,
    interval: str | None,
    select: str | None,
    application: str | None,
    fail_on: str | None,
    table: TableRequest,
    question: PredictionQuery,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Check MPI performance guidelines: no collective is slower than others that do its work.

    EXP is a benchmark of collectives, best with the message size as a parameter. With --target,
    models predict which guidelines will be violated there, and from how many processes on.
    """
    from callpath_modeler import loading
    from cpmodel_guidelines.benchmark import benchmark_of
    from cpmodel_guidelines.rules import patterns
    from cpmodel_guidelines.table import verification_table
    from cpmodel_guidelines.text import verification_text
    from cpmodel_guidelines.verification import verify

    console: Console = ctx.obj
    form = table.form
    guidelines, allowed = patterns(rules), _fraction(tolerance)
    if fail_on == "predicted" and question.target is question.at is None:
        raise UsageError("--fail-on predicted needs a target", hint="add --target P")
    every = replace(load, read=replace(load.read, metrics=None))
    read = loading.load(experiment, every, console.progress("read"))
    bench = benchmark_of(
        read,
        question.metric,
        inclusive=question.inclusive,
        processes=fitting.parameter,
        size=size,
        interval=_ends(interval),
        select=select,
    )
    found = verify(
        bench,
        guidelines,
        ask=_ask(question, bench),
        tolerance=allowed,
        options=fitting,
        stakes=_stakes(application, bench, read, load, fitting),
    )
    if form == "table":
        style = table.style(console)
        lines = verification_text(found, style, table.top or _TOP_OF_A_TABLE)
        table.write_lines(console, lines)
    else:
        table.write_table(console, verification_table(found, table.top))
    console.findings(found.findings)
    if found.fails(ahead=fail_on == "predicted") and fail_on is not None:
        ctx.exit(EXIT_NO)


def _fraction(text: str) -> float:
    """Return a percentage or a plain number as a fraction."""
    from callpath_modeler.units import base_and_factor, parse_quantity

    hint = "e.g. --tolerance 10%"
    try:
        number, unit = parse_quantity(text)
    except ValueError as cause:
        raise UsageError(f"--tolerance: {cause}", hint=hint) from None
    base, factor = base_and_factor(unit)
    if base != "1" or not 0 <= number * factor < 10:
        raise UsageError(f"--tolerance {text!r} is not a percentage below 1000 %", hint=hint)
    return number * factor


def _ends(interval: str | None) -> tuple[str, str] | None:
    if interval is None:
        return None
    low, comma, high = interval.partition(",")
    if not (low and comma and high):
        raise UsageError(
            f"--interval {interval!r} does not name two metrics",
            hint="separate them by a comma: --interval ci_low,ci_high",
        )
    return low, high


def _ask(question: PredictionQuery, bench: Benchmark) -> Ask | None:
    """Return the target of the prediction; None = no target."""
    from callpath_modeler.target_query import parse_target
    from cpmodel_guidelines.verification import Ask

    asked = parse_target(question.target, question.at)
    if asked.value is not None:
        return Ask(asked.value, predicted=question.predicted)
    if not asked.named:
        if question.predicted:
            raise UsageError("--predicted needs a target", hint="add --target P")
        return None
    named = dict(asked.named)
    processes = named.pop(bench.processes or "", None)
    if processes is None:
        raise UsageError(
            f"--at {question.at!r} does not set the number of processes",
            hint=f"e.g. --at {bench.processes or 'p'}=4096",
        )
    return Ask(processes, named, question.predicted)


def _stakes(
    application: str | None,
    bench: Benchmark,
    read: Experiment,
    load: LoadOptions,
    fitting: FitOptions,
) -> PotentialSavings | None:
    """Return the time that a program spends in collectives; None = no program."""
    from callpath_modeler import loading
    from callpath_modeler.readers.assemble import ReadOptions
    from cpmodel_guidelines.potential_savings import potential_savings

    if application is not None:
        options = loading.LoadOptions(ReadOptions(jobs=load.read.jobs))
        return potential_savings(loading.load([application], options), fitting.aggregate)
    return potential_savings(read, fitting.aggregate) if bench.per_call else None
