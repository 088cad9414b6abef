"""`cpmodel info`: what was read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import load_options, model_names, model_options
from callpath_modeler.cli.table_options import format_of, output_options
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.units import counted

if TYPE_CHECKING:
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.target_query import PredictionQuery


@click.command("info", cls=Configured)
@click.argument("experiment", nargs=-1, metavar="EXP...")
@click.option("--diagnostics", is_flag=True, help="List every finding.")
@click.option(
    "--verify",
    is_flag=True,
    help="Read again with an independent reader and compare; of a .cpm, checksums.",
)
@click.option("--write-manifest", is_flag=True, help="Print a manifest runs.toml of the runs.")
@click.option("--config", is_flag=True, help="Say what options are set to, and where.")
@click.option("--advise", is_flag=True, help="Say which scale to run next.")
@model_options
@load_options
@output_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    diagnostics: bool,
    verify: bool,
    write_manifest: bool,
    config: bool,
    advise: bool,
    question: PredictionQuery,
    fitting: FitOptions,
    load: LoadOptions,
    format_: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Say what was read: runs, parameters, metrics, call paths, data quality.

    Targets, metrics and options of models are for --advise, by default at 4 times the largest
    run, and for --diagnostics, which lists the findings about runs, models and target.
    """
    from dataclasses import replace

    from callpath_modeler import loading
    from callpath_modeler.analysis.repetitions import repetition_findings
    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.pipeline import findings_of
    from callpath_modeler.report.info import diagnostics_text, info_table, info_text

    if config:
        _configuration(console, format_of(format_, output), output, force=force)
        return
    if not experiment:
        ctx = click.get_current_context()
        raise click.MissingParameter(ctx=ctx, param=ctx.command.params[0])
    if not (advise or diagnostics):
        _refuse_model_options(click.get_current_context())
    if advise:
        form = format_of(format_, output)
        _advise(console, experiment, load, question, fitting, form, output, force=force)
        return
    if verify:
        _verify(console, experiment, load)
        return
    if write_manifest:
        text = loading.manifest(experiment, load, output.parent if output else Path())
        console.write(text, output, overwrite=force)
        return
    everything = replace(load, read=replace(load.read, metrics=None))
    read = loading.load(experiment, everything, console.progress("read"))
    findings = (*read.findings, *repetition_findings(read))
    if diagnostics:
        findings = findings_of(read, experiment, question, load, fitting)
    read = replace(read, findings=findings)
    form = format_of(format_, output)
    if form == "table":
        width = None if output is not None else console.width
        lines = diagnostics_text(findings, width) if diagnostics else info_text(read)
        render_lines(console, lines, output, force=force)
    else:
        render_table(console, info_table(read), form, output, force=force)
    if not diagnostics:
        console.findings(read.findings)


def _refuse_model_options(ctx: click.Context) -> None:
    """Refuse options of models where none is made; those of files are for other commands."""
    names = model_names()
    for option in ctx.command.params:
        source = ctx.get_parameter_source(option.name or "")
        if option.opts[-1] in names and source is ParameterSource.COMMANDLINE:
            raise UsageError(
                f"{option.opts[-1]}: what was read has no models",
                hint="with --advise or --diagnostics; or cpmodel rank",
            )


def _advise(
    console: Console,
    sources: tuple[str, ...],
    load: LoadOptions,
    question: PredictionQuery,
    fitting: FitOptions,
    form: str,
    output: Path | None,
    *,
    force: bool,
) -> None:
    """Say which scale would tell most of the target."""
    from callpath_modeler import pipeline
    from callpath_modeler.analysis.advise import advise
    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.report.advice import advice_table, advice_text
    from callpath_modeler.target_query import FURTHER, findings_at

    fitted, value = pipeline.models_and_target_of(
        sources,
        question,
        load_options=load,
        fit_options=fitting,
        progress=console.progress("read"),
        default_factor=FURTHER,
    )
    advice = advise(fitted, value)
    if form == "table":
        lines = advice_text(fitted, advice, ascii_only=console.ascii_only)
        render_lines(console, lines, output, force=force)
    else:
        render_table(console, advice_table(fitted, advice), form, output, force=force)
    console.findings(findings_at(fitted, value))


def _configuration(console: Console, form: str, output: Path | None, *, force: bool) -> None:
    """Say what options are set to, and where."""
    from callpath_modeler.cli.configured_command import configuration_of
    from callpath_modeler.cli.option_origins import origins
    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.cli.settings import unknown_variables
    from callpath_modeler.report.configuration import configuration_table, configuration_text

    ctx = click.get_current_context()
    found, told = configuration_of(ctx), origins(ctx)
    if form == "table":
        width = None if output is not None else console.width
        lines = configuration_text(told, found.places, unknown_variables(ctx.find_root()), width)
        render_lines(console, lines, output, force=force)
    else:
        render_table(console, configuration_table(told, found.files), form, output, force=force)


def _verify(console: Console, sources: tuple[str, ...], load: LoadOptions) -> None:
    """Compare value by value; end with a DataError if anything differs."""
    from callpath_modeler import loading, store

    if len(sources) == 1 and store.is_stored(Path(sources[0])):
        count = store.verify(Path(sources[0]))
        console.result(f"{sources[0]}  {counted(count, 'file')}  as written\n")
        return
    differing = compared = 0
    for path, agreements in loading.verify(sources, load):
        if agreements is None:
            raise UsageError(
                f"{path}: its reader has no independent implementation to compare with",
                hint="leave --verify out",
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
