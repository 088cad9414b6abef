"""`cpmodel info`: description of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from callpath_modeler.cli.configured_command import Configured, configuration_of, refused_findings
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import call_option, output_option
from callpath_modeler.cli.options import (
    EXPERIMENT_OR_NONE,
    STANDARD_INPUT,
    model_names,
    model_options,
)
from callpath_modeler.cli.table_options import TABLE, OutputRequest, answer_writer, output_options
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.units import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from callpath_modeler.readers.base import ColumnRole
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study


@click.command("info", cls=Configured)
@EXPERIMENT_OR_NONE
@call_option("--diagnostics", "List every finding.")
@call_option("--verify", "Compare with an independent reader; for a .cpm, verify checksums.")
@output_option("--write-manifest", "Print a manifest runs.toml of the runs.")
@call_option("--config", "Show the values of options and their origins.")
@call_option(
    "--explain", "Explain how the data are read, and print a cpmodel.toml that states the same."
)
@call_option("--advise", "Show which scale or setting to run next.")
@model_options
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    diagnostics: bool,
    verify: bool,
    write_manifest: bool,
    config: bool,
    explain: bool,
    advise: bool,
    question: Question,
    study: Study,
    output: OutputRequest,
) -> None:
    """Describe the data: runs, parameters, metrics, call paths, data quality.

    Targets, metrics and options of models only apply to --advise and --diagnostics. The default
    target of --advise is 4 times the largest run. --diagnostics lists the findings about runs,
    models and target.
    """
    if config:
        _configuration(console, output)
        return
    if not study.sources:
        ctx = click.get_current_context()
        raise click.MissingParameter(ctx=ctx, param=ctx.command.params[0])
    if not (advise or diagnostics):
        _refuse_model_options(click.get_current_context())
    if advise:
        _advise(console, study, question, output)
        return
    if verify:
        _verify(console, study)
        return
    if write_manifest:
        from callpath_modeler.studies import loading

        text = loading.manifest(
            study.sources, study.load_options, output.path.parent if output.path else Path()
        )
        output.write(console, text)
        return
    if explain:
        _explain(console, study, output)
        return
    _describe(console, study.reading(metrics=None), question, output, diagnostics=diagnostics)


def _describe(
    console: Console,
    study: Study,
    question: Question,
    output: OutputRequest,
    *,
    diagnostics: bool,
) -> None:
    """Print the description of the runs, or of each case; or all findings."""
    from dataclasses import replace

    from callpath_modeler.analysis.data_quality import repetition_findings
    from callpath_modeler.report.experiment_text import diagnostics_text, info_table, info_text

    form = output.form
    if form == TABLE or diagnostics:
        parts = study.parts()
        if any(case for _, case in parts):
            _cases(console, study, parts, output, diagnostics=diagnostics)
            return
    read = study.runs()
    findings = (*read.findings, *repetition_findings(read))
    if diagnostics:
        findings = study.findings(replace(question, further=1.0))
    told, findings = findings, (*refused_findings(), *findings)
    read = replace(read, findings=findings)
    answer_writer(output, console)(
        lambda style: (
            diagnostics_text(findings, style.width)
            if diagnostics
            else info_text(read, _columns(study))
        ),
        lambda: info_table(read),
    )
    if not diagnostics:
        console.findings(told)


def _columns(study: Study) -> Sequence[ColumnRole]:
    """Return the roles of the columns, if the source is a single table."""
    from callpath_modeler.studies.loading import table_reading

    found = table_reading(study.sources, study.load_options)
    return () if found is None else found[1].columns


def _explain(console: Console, study: Study, output: OutputRequest) -> None:
    """Print how the sources are read: columns, numbers in names, cases, repetitions, units."""
    from callpath_modeler.report.experiment_text import SourceReading, reading_table, reading_text
    from callpath_modeler.studies.loading import table_reading

    parts = {name: part.runs() for (_, name), part in study.parts().items()}
    table = table_reading(study.sources, study.load_options, of_first=True)
    files = len({run.source.partition("[")[0] for each in parts.values() for run in each.runs})
    reading = SourceReading(parts, table, files)
    at_input = click.get_current_context().meta.get(STANDARD_INPUT)
    source = "" if table is None else "-" if str(table[0]) == at_input else str(table[0])
    answer_writer(output, console)(
        lambda _style: reading_text(reading, source), lambda: reading_table(reading)
    )
    console.findings([each for part in parts.values() for each in part.findings])


def _cases(
    console: Console,
    study: Study,
    parts: Mapping[tuple[str, str], Study],
    output: OutputRequest,
    *,
    diagnostics: bool,
) -> None:
    """Print one line for each case of the runs, or the findings about all of them."""
    from callpath_modeler.cli.case_tables import measured_cases, write_measured_cases
    from callpath_modeler.report.case_table import findings_of
    from callpath_modeler.report.experiment_text import column_rows, diagnostics_text
    from callpath_modeler.report.layout import aligned

    answers = measured_cases(parts)
    if diagnostics:
        lines = diagnostics_text(findings_of(answers), output.style(console).width)
        output.write_lines(console, lines)
        return
    roles = _columns(study)
    more = ["", *aligned(column_rows(roles))] if roles else []
    write_measured_cases(console, answers, output, more)


def _refuse_model_options(ctx: click.Context) -> None:
    """Raise an error for options of models if no models are made, unless a file sets them."""
    names = model_names()
    for each in ctx.command.params:
        source = ctx.get_parameter_source(each.name or "")
        if each.opts[-1] in names and source is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"{each.opts[-1]}: info makes no models",
                hint="add --advise or --diagnostics, or use cpmodel rank",
            )


def _advise(
    console: Console,
    study: Study,
    question: Question,
    output: OutputRequest,
) -> None:
    """Print which scale narrows the band at the target most."""
    from callpath_modeler.analysis.advise import advise
    from callpath_modeler.report.experiment_text import advice_table, advice_text
    from callpath_modeler.studies.question import findings_at

    write = answer_writer(output, console)
    fitted, value = study.predicted(question)
    advice = advise(fitted, value, progress=console.progress("advise"))
    write(
        lambda style: advice_text(fitted, advice, style=style),
        lambda: advice_table(fitted, advice),
    )
    console.findings(findings_at(fitted, value))


def _configuration(console: Console, output: OutputRequest) -> None:
    """Print the values of options and their origins."""
    from callpath_modeler.cli.option_origins import (
        configuration_table,
        configuration_text,
        origins,
        refused_values,
    )
    from callpath_modeler.cli.settings import unknown_variables

    ctx = click.get_current_context()
    found, told, refused = configuration_of(ctx), origins(ctx), refused_values(ctx)
    if output.form == TABLE:
        unknown, width = unknown_variables(ctx.find_root()), output.style(console).width
        output.write_lines(console, configuration_text(told, found.places, unknown, refused, width))
    else:
        output.write_table(console, configuration_table(told, found.files, refused))


def _verify(console: Console, study: Study) -> None:
    """Compare value by value; raise `DataError` if anything differs."""
    from callpath_modeler import store
    from callpath_modeler.studies import loading

    sources = study.sources
    if len(sources) == 1 and store.is_stored(Path(sources[0])):
        count = store.verify(Path(sources[0]))
        build = store.build_of(Path(sources[0])) or "an earlier version"
        console.result(f"{sources[0]}  {counted(count, 'file')}  as written by {build}\n")
        return
    differing = compared = 0
    for path, agreements in loading.verify(sources, study.load_options):
        if agreements is None:
            raise UsageError(
                f"{path}: its reader has no independent implementation to compare with",
                hint="omit --verify",
            )
        for found in agreements:
            compared += found.compared
            differing += found.differing
            verdict = found.note or (
                "agrees" if not found.differing else f"{found.differing} values differ"
            )
            console.result(f"{path}  {found.metric}  {found.compared} values  {verdict}\n")
    if differing:
        raise DataError(
            f"{differing} of {compared} values differ", hint="please report the profile"
        )
    verdict = f"{compared} values compared, all agree" if compared else "nothing was compared"
    console.note(verdict)
