"""`cpmodel report`: the HTML page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured, configuration_of, unset
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import (
    EXPECT,
    check_ranking,
    verdict_file,
    with_expectation,
)
from callpath_modeler.cli.option_groups import WholeNumber, output_option, was_asked
from callpath_modeler.cli.options import (
    EXPERIMENT,
    FORCE,
    ISO,
    output_file,
    study_options,
    target_options,
)
from callpath_modeler.cli.view_options import invocation_of
from callpath_modeler.errors import CallpathModelerError, DataError, UsageError
from callpath_modeler.printable import shell_words

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer, Ranking
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.report.efficiency_text import EfficiencyView
    from callpath_modeler.report.layout import Invocation
    from callpath_modeler.report.page.markup import Provenance
    from callpath_modeler.studies.comparison import Compared
    from callpath_modeler.studies.loading import LoadOptions
    from callpath_modeler.studies.process_profile import ProcessProfile
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

_CARDS = 20
_PACKAGES = ("callpath-modeler", "numpy", "scipy")


@click.command("report", cls=Configured)
@EXPERIMENT
@output_file("File of the page.", "FILE.html")
@FORCE
@output_option(
    "-n, --top N", "Number of call paths with charts.", type=WholeNumber(1), default=_CARDS
)
@EXPECT
@ISO
@target_options
@study_options
@click.pass_obj
def command(
    console: Console,
    *,
    output: Path | None,
    force: bool,
    top: int,
    iso: float | None,
    question: Question,
    study: Study,
) -> None:
    """Write one page of HTML: ranking, charts, call tree, data quality.

    The page is one file that needs neither network nor JavaScript, and it can be printed. The
    default target is 4 times the largest scale.
    """
    if output is None and console.is_terminal:
        raise UsageError("no file for the page", hint="-o report.html")
    text, findings = report_page(console, study, question, top=top, iso=iso)
    console.write(text, output, overwrite=force)
    console.findings(findings)


def report_page(
    console: Console,
    study: Study,
    question: Question,
    *,
    top: int = _CARDS,
    iso: float | None = None,
) -> tuple[str, Sequence[Finding]]:
    """Return the page of a study for the options of the command, and its findings.

    Parameters
    ----------
    top : number of call paths with charts
    iso : efficiency that problem sizes keep; None = the page has no such section
    """
    from callpath_modeler.report.page.document import page
    from callpath_modeler.report.page.markup import PageContent
    from callpath_modeler.studies.pipeline import explain_all
    from callpath_modeler.studies.question import findings_at

    question = replace(question, has_verdicts=True)
    ctx = click.get_current_context()
    verdicts = verdict_file(ctx)
    study = study.for_expectations(verdicts, question.metric)
    ranking = study.reading(requirements=True).ranking(question)
    fitted = ranking.fitted
    findings = findings_at(fitted, ranking.target)
    processes, why_none = _processes(ranking, top, study.load_options)
    content = PageContent(
        ranking=ranking,
        forecast=_forecast(ranking),
        causes=explain_all(ranking, ranking.order[:top].tolist()),
        check=check_ranking(ranking, verdicts),
        findings=findings,
        making=provenance_of(ctx, study.sources, fitted),
        top=top,
        efficiency=_efficiency(console, study, ranking),
        isoefficiency=None if iso is None else study.isoefficiency(iso, question),
        processes=processes,
        no_processes=why_none,
    )
    return page(content), findings


def _forecast(ranking: Ranking) -> Answer | None:
    """Return the values of the call tree; None = the metric neither adds up nor has a formula."""
    from callpath_modeler.analysis.answer import answer_at, has_sums_of_formula

    if ranking.fitted.metric.additive:
        return ranking
    is_finite = math.isfinite(ranking.target)
    has_values = is_finite and has_sums_of_formula(ranking.inputs, ranking.target)
    return answer_at(ranking.inputs, ranking.target) if has_values else None


def _efficiency(console: Console, study: Study, ranking: Ranking) -> EfficiencyView | str:
    """Return the factors of parallel efficiency, or the reason for their absence."""
    from callpath_modeler.analysis.efficiency_factors import Scheme
    from callpath_modeler.report.efficiency_text import TOP, EfficiencyView
    from callpath_modeler.units import as_option

    fitted = ranking.fitted
    if not fitted.metric.can_be_run_time:
        return ""
    at = None if math.isinf(ranking.target) else as_option(fitted.at(ranking.target))
    study.progress = console.progress("read threads")
    try:
        answer = study.efficiency(at=at, metric=fitted.metric.name, is_target_required=False)
    except (DataError, UsageError) as error:
        return f"{error.message} ({error.hint})." if error.hint else f"{error.message}."
    return EfficiencyView(answer.efficiency, Scheme.MULTIPLICATIVE, TOP, answer.confidence)


def _processes(
    ranking: Ranking, top: int, load: LoadOptions
) -> tuple[dict[int, ProcessProfile], str]:
    """Return the values of processes at the largest scale by call path, or the reason for none.

    Only the first call paths with a value there are read. A single process is not shown.
    """
    import numpy as np

    from callpath_modeler.studies.process_profile import process_profiles
    from callpath_modeler.studies.question import Target

    fitted, rows = ranking.fitted, ranking.order[:top]
    rows = rows[~np.isnan(ranking.at_largest[rows])]
    if not fitted.metric.additive or not len(rows):
        return {}, ""
    at = {fitted.parameter: float(fitted.points[-1]), **fitted.measured_at}
    try:
        found = process_profiles(
            fitted.experiment,
            [[row] for row in rows.tolist()],
            fitted.metric.name,
            inclusive=ranking.inclusive,
            target=Target(named={} if fitted.has_unknown_scale else at),
            options=load,
        )
    except CallpathModelerError as error:
        return {}, f"{error.message}."
    known = {
        row: each
        for row, each in zip(rows.tolist(), found, strict=True)
        if not isinstance(each, DataError)
    }
    errors = [each for each in found if isinstance(each, DataError)]
    why = f"{errors[0].message}." if errors and not known else ""
    return {row: each for row, each in known.items() if len(each.ranks) > 1}, why


def provenance_of(ctx: click.Context, sources: Sequence[str | Path], fitted: Fitted) -> Provenance:
    """Return the origin of a page of models of `sources`, for the options of a command."""
    again = with_expectation(ctx, invocation_of(ctx), fitted)
    everything = unset(ctx, "by", "select", "top")
    words = []
    for name, spelling in (("top", "--top"), ("iso", "--iso"), ("expect", "--expect")):
        if was_asked(ctx, name) and not (name == "expect" and again.expected):
            words.append(shell_words([spelling, str(ctx.params[name])]))
    return _provenance(
        ctx,
        again,
        listing=again.line("rank", shell_words(["--format", "csv", *everything])),
        command=" ".join([again.line("report"), *words, "-o report.html"]),
        experiments=[(sources, fitted.experiment)],
    )


def pair_provenance(ctx: click.Context, sources: Sequence[str], compared: Compared) -> Provenance:
    """Return the origin of a page of two experiments, for the options of a command.

    Parameters
    ----------
    sources : base and new; new alone is compared with the days of a history
    """
    words = []
    for name, spelling in (
        ("fail_on", "--fail-on"),
        ("select", "--select"),
        ("history", "--history"),
    ):
        if ctx.params.get(name) is not None:
            words += [spelling, str(ctx.params[name])]
    both = invocation_of(ctx, sources=sources)
    sides = compared.difference.pair.sides
    places = [[source] for source in sources] if len(sources) == len(sides) else [[], [*sources]]
    return _provenance(
        ctx,
        invocation_of(ctx, sources=sources[-1:], of_files=True),
        listing=both.line("diff", shell_words([*words, "--format", "csv", "--top", "all"])),
        command=both.line("diff", shell_words([*words, "-o", "difference.html"])),
        experiments=[(place, side.experiment) for place, side in zip(places, sides, strict=True)],
    )


def _provenance(
    ctx: click.Context,
    again: Invocation,
    *,
    listing: str,
    command: str,
    experiments: Sequence[tuple[Sequence[str | Path], Experiment]],
) -> Provenance:
    """Return the origin of a page of some experiments, each with its sources."""
    import platform
    from importlib.metadata import version

    from callpath_modeler import store
    from callpath_modeler.report.page.markup import Provenance
    from callpath_modeler.support.atomic import fingerprints

    paths = dict[str, None]()
    for sources, experiment in experiments:
        is_stored = bool(sources) and store.is_stored(Path(sources[0]))
        files = map(str, sources) if is_stored else (run.source for run in experiment.runs)
        paths |= dict.fromkeys(files)
    versions = [(name, version(name)) for name in _PACKAGES]
    return Provenance(
        listing=listing,
        command=command,
        invocation=again,
        versions=[*versions, ("python", platform.python_version())],
        inputs=fingerprints(paths),
        configuration=[file.fingerprint for file in configuration_of(ctx).files],
    )
