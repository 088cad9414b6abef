"""`cpmodel guidelines check`: violated guidelines, measured and predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli import EXIT_NO
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import call_option, option, output_option
from callpath_modeler.cli.options import EXPERIMENT, fit_options, load_options, target_options
from callpath_modeler.cli.render import refuse_incomplete
from callpath_modeler.cli.table_options import (
    HTML,
    OutputRequest,
    answer_writer,
    table_or_page_options,
)
from callpath_modeler.errors import UsageError
from cpmodel_guidelines.commands.judging import JUNIT, TOP, Judging, judging_options

if TYPE_CHECKING:
    from pathlib import Path

    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.report.test_reports import JUnitCase
    from callpath_modeler.studies.loading import LoadOptions
    from callpath_modeler.studies.pipeline import FitOptions
    from callpath_modeler.studies.question import Question
    from cpmodel_guidelines.answer import PotentialSavings, Verification
    from cpmodel_guidelines.benchmark import Benchmark
    from cpmodel_guidelines.campaigns.campaign import Campaign
    from cpmodel_guidelines.matrix_content import MatrixContent
    from cpmodel_guidelines.verification import Ask


@click.command("guidelines", cls=Configured)
@EXPERIMENT
@judging_options
@option(
    "--compat",
    "Print the violations that PGMPI's own code finds in measured mock-ups.",
    type=click.Choice(["pgmpi"]),
)
@output_option(
    "--matrix",
    "Print a matrix of guidelines and message sizes for each library and number of processes; "
    "-f html: a page with a heat map.",
)
@option(
    "--nrep CRITERIA",
    "Print how many repetitions each mpirun needs, e.g. rse=0.025,cov_mean=0.01/20.",
)
@option("--nrep-batches MIN,MAX,STEP", "Batches of repetitions for --nrep.", default="10,1000,5")
@call_option(
    "--application EXP",
    "Profiles of a program, to bound its gain. Default: EXP, if it is a program.",
)
@JUNIT
@call_option(
    "--fail-on",
    "Exit with status 1 on a violation; 'predicted' includes violations at the target.",
    type=click.Choice(["violated", "predicted"]),
)
@target_options
@load_options
@fit_options
@table_or_page_options
@click.pass_context
def check(
    ctx: click.Context,
    *,
    experiment: tuple[str, ...],
    judging: Judging,
    compat: str | None,
    matrix: bool,
    junit: Path | None,
    nrep: str | None,
    nrep_batches: str,
    application: str | None,
    fail_on: str | None,
    table: OutputRequest,
    question: Question,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Report violated guidelines, as measured and as predicted.

    EXP is the output of ReproMPI, PGMPI, PGChecker, OSU, Intel MPI Benchmarks or SKaMPI, or a
    table. One file is one mpirun. LIBRARY=PATH names the MPI library. With --target, each check has
    the probability of a violation there.
    """
    from cpmodel_guidelines.suites.pgmpi import guidelines_of

    console: Console = ctx.obj
    if table.form == HTML and not matrix:
        raise UsageError("-f html is the format of a matrix", hint="add --matrix")
    if fail_on == "predicted" and question.target is question.at is None:
        raise UsageError("--fail-on predicted needs a target", hint="add --target P")
    campaign, catalogues = judging.campaign(experiment, load, question)
    if nrep is not None:
        if matrix or junit is not None:
            raise UsageError(
                "--nrep has no verdicts for --matrix and --junit", hint="call cpmodel twice"
            )
        _repetitions(console, campaign, table, nrep, nrep_batches)
        return
    output = _Output(console, table, junit, is_matrix=matrix, ahead=fail_on == "predicted")
    if compat is not None:
        fails, findings = _published(output, campaign)
    else:
        guidelines = guidelines_of(judging.rules, catalogues)
        read = judging.read(experiment, campaign, load, console.progress("read"))
        bench = judging.benchmark(read, guidelines, question, fitting)
        ask = _ask(question, bench)
        stakes = _stakes(application, bench, read, load, fitting)
        found = judging.verification(bench, guidelines, fitting, ask, stakes)
        output.write(found)
        fails, findings = found.fails(ahead=output.ahead), found.findings
    console.findings(findings)
    if fail_on is None:
        return
    if fails:
        ctx.exit(EXIT_NO)
    refuse_incomplete(findings)


@dataclass(frozen=True, slots=True)
class _Output:
    """Where and how verdicts are written.

    Attributes
    ----------
    console, table : streams, and form of the result
    junit : file for JUnit XML; None = none
    is_matrix : write matrices instead of lists
    ahead : predicted violations are failures
    """

    console: Console
    table: OutputRequest
    junit: Path | None
    is_matrix: bool
    ahead: bool

    def write(self, found: Verification) -> None:
        """Write a verification."""
        from cpmodel_guidelines.matrix_content import content_of
        from cpmodel_guidelines.verdict_cases import cases_of
        from cpmodel_guidelines.verification_text import verification_table, verification_text

        table, style = self.table, self.table.style(self.console)
        self.write_cases(found.benchmark.experiment.name, cases_of(found, ahead=self.ahead))
        if self.is_matrix:
            self.write_matrices(content_of(found, style, table.top))
        else:
            answer_writer(table, self.console)(
                lambda style: verification_text(found, style, table.top or TOP),
                lambda: verification_table(found, table.top),
            )

    def write_cases(self, name: str, cases: Sequence[JUnitCase]) -> None:
        """Write JUnit XML if it is requested."""
        from callpath_modeler.report.test_reports import junit_xml

        if self.junit is not None:
            text = junit_xml("cpmodel guidelines", name, cases)
            self.console.write(text, self.junit, overwrite=self.table.force)

    def write_matrices(self, content: MatrixContent) -> None:
        """Write matrices in the requested form."""
        from cpmodel_guidelines.matrix_output.page import matrix_page
        from cpmodel_guidelines.matrix_output.text import matrix_table, matrix_text

        console, table = self.console, self.table
        if table.form == HTML:
            table.write(console, matrix_page(content))
        else:
            answer_writer(table, console)(
                lambda style: matrix_text(content, style), lambda: matrix_table(content)
            )


def _repetitions(
    console: Console, campaign: Campaign | None, table: OutputRequest, nrep: str, batched: str
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
    answer_writer(table, console)(
        lambda style: repetitions_text(found, style), lambda: repetitions_table(campaign, found)
    )
    console.findings(campaign.findings)


def _published(output: _Output, campaign: Campaign | None) -> tuple[bool, tuple[Finding, ...]]:
    """Print the violations that PGMPI's code finds; return whether there are some."""
    from cpmodel_guidelines.matrix_content import published_content, published_table, published_text
    from cpmodel_guidelines.published import published_checks
    from cpmodel_guidelines.verdict_cases import published_cases

    if campaign is None:
        raise UsageError(
            "--compat pgmpi needs the output of a benchmark with its mpiruns",
            hint="give a folder of files of ReproMPI, one for each mpirun",
        )
    console, table = output.console, output.table
    found = published_checks(campaign)
    output.write_cases(campaign.name, published_cases(campaign, found))
    if output.is_matrix:
        output.write_matrices(published_content(campaign, found, table.top))
    else:
        answer_writer(table, console)(
            lambda style: published_text(campaign, found, style),
            lambda: published_table(campaign, found),
        )
    return any(each.significance for each in found), campaign.findings


def _ask(question: Question, bench: Benchmark) -> Ask | None:
    """Return the target of the prediction; None = no target."""
    from callpath_modeler.studies.question import parse_target
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
    from callpath_modeler.readers.assemble import ReadOptions
    from callpath_modeler.studies import loading
    from cpmodel_guidelines.answer import potential_savings

    if application is not None:
        options = loading.LoadOptions(ReadOptions(jobs=load.read.jobs))
        return potential_savings(loading.load([application], options), fitting.aggregate)
    return potential_savings(read, fitting.aggregate) if bench.per_call else None
