"""`cpmodel guidelines check`: violated guidelines, measured and predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.completeness import refuse_incomplete
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
    from pathlib import Path

    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.target_query import PredictionQuery
    from cpmodel_guidelines.answer import Method
    from cpmodel_guidelines.benchmark import Benchmark
    from cpmodel_guidelines.campaigns.campaign import Campaign
    from cpmodel_guidelines.potential_savings import PotentialSavings
    from cpmodel_guidelines.verification import Ask

_TOP_OF_A_TABLE = 10


@click.command("guidelines", cls=Configured)
@EXPERIMENT
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="TEXT|FILE",
    help="Add a guideline, e.g. 'Allgather <= Gather + Bcast(p*m)', or PGMPI's FILE.json.",
)
@click.option(
    "--test",
    type=click.Choice(["means", "rank-sum", "ks"]),
    help="Test of one check: means of logarithms that ranks confirm, Wilcoxon, or Kolmogorov and "
    "Smirnov. Default: means; with --control none: rank-sum, as published.",
)
@click.option(
    "--control",
    type=click.Choice(["permutation", "holm", "bh", "none"]),
    help="Error rate of all checks: family-wise by permutations of mpiruns or by Holm, false "
    "discoveries (bh), or none. holm and bh need ten mpiruns. Default: permutation; with ks: holm.",
)
@click.option(
    "--error-rate",
    metavar="PERCENT",
    default="5%",
    show_default=True,
    help="Largest error rate of all measured checks together.",
)
@click.option(
    "--outliers",
    type=click.Choice(["keep", "tukey"]),
    default="keep",
    show_default=True,
    help="Outliers inside each mpirun, before its median: keep them, or apply Tukey's rule.",
)
@click.option(
    "--compat",
    type=click.Choice(["pgmpi"]),
    help="Print the violations that PGMPI's own code finds in measured mock-ups.",
)
@click.option(
    "--nrep",
    metavar="CRITERIA",
    help="Print how many repetitions each mpirun needs, e.g. rse=0.025,cov_mean=0.01/20.",
)
@click.option(
    "--nrep-batches",
    metavar="MIN,MAX,STEP",
    default="10,1000,5",
    show_default=True,
    help="Batches of repetitions for --nrep.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 10**9),
    metavar="P",
    help="Number of processes of benchmarks that do not state it, e.g. OSU.",
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
def check(
    ctx: click.Context,
    *,
    experiment: tuple[str, ...],
    rules: tuple[str, ...],
    test: str | None,
    control: str | None,
    error_rate: str,
    outliers: str,
    compat: str | None,
    nrep: str | None,
    nrep_batches: str,
    processes: int | None,
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
    """Report violated guidelines, as measured and as predicted.

    EXP is the output of ReproMPI, PGMPI, PGChecker, OSU, Intel MPI Benchmarks or SKaMPI, or a
    table. One file is one mpirun. LIBRARY=PATH names the MPI library. With --target, models predict
    which guidelines will be violated there, and from how many processes on.
    """
    from callpath_modeler import loading
    from cpmodel_guidelines.benchmark import benchmark_of
    from cpmodel_guidelines.catalogue import guidelines_of
    from cpmodel_guidelines.rules import others_in
    from cpmodel_guidelines.table import verification_table
    from cpmodel_guidelines.text import verification_text
    from cpmodel_guidelines.verification import verify

    console: Console = ctx.obj
    form = table.form
    if fail_on == "predicted" and question.target is question.at is None:
        raise UsageError("--fail-on predicted needs a target", hint="add --target P")
    method, allowed = _method(test, control, error_rate), _fraction(tolerance, "--tolerance")
    given = _Given(experiment, processes, load, is_table=_is_for_tables(question, load, interval))
    campaign, catalogues = given.campaign()
    if nrep is not None:
        _repetitions(console, campaign, table, nrep, nrep_batches)
        return
    if compat is not None:
        _published(ctx, campaign, table, fail_on=fail_on)
        return
    guidelines = guidelines_of(rules, catalogues)
    if campaign is None:
        if outliers == "tukey":
            raise UsageError(
                "--outliers tukey needs the observations of mpiruns, and this input has none",
                hint="give the output of a benchmark",
            )
        every = replace(load, read=replace(load.read, metrics=None))
        read = loading.load(experiment, every, console.progress("read"))
    else:
        read = _of_campaign(campaign, load, without_outliers=outliers == "tukey")
    bench = benchmark_of(
        read,
        question.metric,
        inclusive=question.inclusive,
        processes=fitting.parameter,
        size=size,
        interval=_ends(interval),
        select=select,
        others=others_in(guidelines),
    )
    found = verify(
        bench,
        guidelines,
        ask=_ask(question, bench),
        tolerance=allowed,
        method=method,
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
    if fail_on is None:
        return
    if found.fails(ahead=fail_on == "predicted"):
        ctx.exit(EXIT_NO)
    refuse_incomplete(found.findings)


@dataclass(frozen=True, slots=True)
class _Given:
    """The sources of a command.

    Attributes
    ----------
    sources : files and folders
    processes : number of processes of files that do not state it; None = unknown
    load : options of reading
    is_table : whether an option applies to tables and profiles only
    """

    sources: tuple[str, ...]
    processes: int | None
    load: LoadOptions
    is_table: bool

    def campaign(self) -> tuple[Campaign | None, tuple[Path, ...]]:
        """Return the campaign and PGMPI's lists of guidelines; None = not a campaign."""
        from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

        files = None if self.is_table else benchmark_files(self.sources, self.processes)
        if files is None:
            return None, ()
        return read_campaign(files, strict=self.load.read.strict), files.catalogues


def _is_for_tables(question: PredictionQuery, load: LoadOptions, interval: str | None) -> bool:
    """Return whether an option selects columns or parameters of a table, or a reader."""
    read = load.read
    names = (interval, question.metric, load.name_pattern, load.reader, read.locations)
    return any(each is not None for each in names) or bool(read.parameter_sources or read.units)


def _of_campaign(campaign: Campaign, load: LoadOptions, *, without_outliers: bool) -> Experiment:
    """Return the selected medians of a campaign."""
    from callpath_modeler import loading
    from cpmodel_guidelines.campaigns.conversion import experiment_of

    made = experiment_of(campaign, without_outliers=without_outliers)
    return loading.selected(made, load)


def _method(test: str | None, control: str | None, error_rate: str) -> Method:
    """Return the test and the control of the error rate."""
    from cpmodel_guidelines.answer import Method, Test
    from cpmodel_guidelines.statistics.adjustment import Control

    rate = _fraction(error_rate, "--error-rate")
    if not 0 < rate < 1:
        raise UsageError(f"--error-rate {error_rate!r} is not between 0 and 100 %", hint="e.g. 5%")
    control = control or ("holm" if test == "ks" else "permutation")
    test = test or ("rank-sum" if control == "none" else "means")
    if test == "ks" and control == "permutation":
        raise UsageError(
            "--control permutation does not apply to --test ks", hint="use --control holm"
        )
    return Method(Test(test), Control(control), rate)


def _repetitions(
    console: Console, campaign: Campaign | None, table: TableRequest, nrep: str, batched: str
) -> None:
    """Print the number of repetitions that each cell needs."""
    from cpmodel_guidelines.nrep import (
        parse_batches,
        parse_criteria,
        repetitions_of,
        repetitions_table,
        repetitions_text,
    )

    criteria, after = parse_criteria(nrep), parse_batches(batched)
    if campaign is None:
        raise UsageError(
            "--nrep needs the output of a benchmark", hint="give raw files of ReproMPI"
        )
    found = repetitions_of(campaign, criteria, after)
    if table.form == "table":
        table.write_lines(console, repetitions_text(found, table.style(console)))
    else:
        table.write_table(console, repetitions_table(campaign, found))
    console.findings(campaign.findings)


def _published(
    ctx: click.Context, campaign: Campaign | None, table: TableRequest, *, fail_on: str | None
) -> None:
    """Print the violations that PGMPI's code finds."""
    from cpmodel_guidelines.published import published_violations
    from cpmodel_guidelines.published_report import published_table, published_text

    if campaign is None:
        raise UsageError(
            "--compat pgmpi needs the output of a benchmark with its mpiruns",
            hint="give a folder of files of ReproMPI, one for each mpirun",
        )
    console: Console = ctx.obj
    found = published_violations(campaign)
    if table.form == "table":
        table.write_lines(console, published_text(campaign, found, table.style(console)))
    else:
        table.write_table(console, published_table(campaign, found))
    console.findings(campaign.findings)
    if fail_on is not None:
        if found:
            ctx.exit(EXIT_NO)
        refuse_incomplete(campaign.findings)


def _fraction(text: str, option: str) -> float:
    """Return a percentage or a plain number as a fraction."""
    from cpmodel_guidelines.commands.quantities import quantity

    return quantity(text, option, "1", most=10, example="10%")


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
