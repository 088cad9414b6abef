"""`cpmodel export`: models, values, ranking, call-path graph or experiment to a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured, was_asked
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import EXPECT, check_ranking
from callpath_modeler.cli.options import (
    EXPERIMENT,
    FORCE,
    fit_options,
    load_options,
    output_file,
    target_options,
)
from callpath_modeler.cli.table_options import FORMATS, format_of
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.arrays import FloatArray
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.profile.schema import Metric
    from callpath_modeler.target_query import PredictionQuery

GRAPHS = ("graphml", "dot")
PROFILES = ("folded", "speedscope", "hatchet")
EXTRAP, PYTHON = "extra-p", "python"
_OTHERS = (*GRAPHS, EXTRAP, *PROFILES, PYTHON)
_TABLES = FORMATS[1:]


@click.command("export", cls=Configured)
@EXPERIMENT
@output_file()
@click.option(
    "-f",
    "--format",
    "format_",
    type=click.Choice([*_TABLES, *_OTHERS]),
    help="Default: by the ending of FILE.",
)
@click.option(
    "--what",
    type=click.Choice(["models", "values", "ranking"]),
    default="models",
    show_default=True,
    help="Rows of a table: a model per call path; a value per call path and run; the ranking.",
)
@EXPECT
@FORCE
@target_options
@load_options
@fit_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    output: Path | None,
    format_: str | None,
    what: str,
    expect: Path | None,
    force: bool,
    question: PredictionQuery,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Write models, values, the ranking, the call-path graph, or the experiment.

    Graphs are graphml and dot. extra-p is the experiment for Extra-P: JSON Lines, or what FILE
    ends in: .txt, .json, .extra-p. folded, speedscope and hatchet are one profile: as measured in
    the largest runs, or with --target at that, measured where it was run two times or more, else
    predicted; folded has whole microseconds. python is a module with the models as functions.
    """
    from callpath_modeler import pipeline
    from callpath_modeler.cli.render import render_table
    from callpath_modeler.expectation_check import reading_for
    from callpath_modeler.report import export
    from callpath_modeler.report.python_source import python_source
    from callpath_modeler.report.ranking_table import ranking_table
    from callpath_modeler.target_query import FURTHER

    form = _form(format_, output)
    ctx = click.get_current_context()
    expect = _expected(ctx, form, what)
    if expect is not None:
        load = reading_for(expect, question.metric, load)
    at_target = any(was_asked(ctx, name) for name in ("target", "at", "predicted"))
    if form == EXTRAP or what == "values" or (form in PROFILES and not at_target):
        _measured(console, experiment, question, load, fitting, form, output, force=force)
        return
    if form in PROFILES:
        question = replace(question, inclusive=False)
    ranking, findings = pipeline.ranking_of(
        experiment,
        question,
        load_options=load,
        fit_options=fitting,
        progress=console.progress("read"),
        default_factor=FURTHER,
    )
    if form in PROFILES and math.isinf(ranking.target):
        raise UsageError(
            f"{form} at infinity: there is no profile, only growth", hint="--target with a number"
        )
    if form in PROFILES:
        of_metric = {ranking.fitted.metric: ranking.value}
        text = _profile(form, ranking.fitted.experiment, of_metric)
        console.write(text, output, overwrite=force)
    elif form == PYTHON:
        console.write(python_source(ranking.fitted), output, overwrite=force)
    elif form in GRAPHS:
        text = export.graph_text(ranking, form, check_ranking(ranking, expect))
        console.write(text, output, overwrite=force)
    elif what == "ranking":
        table = ranking_table(ranking, findings=findings, check=check_ranking(ranking, expect))
        render_table(console, table, form, output, force=force)
    else:
        render_table(console, export.models_table(ranking.fitted), form, output, force=force)
    console.findings(findings)


def _expected(ctx: click.Context, form: str, what: str) -> Path | None:
    """Return the expectation file, where what is written has verdicts.

    A file that is configured, not asked for, is for what has verdicts.
    """
    expect: Path | None = ctx.params["expect"]
    if form in GRAPHS or (form not in _OTHERS and what == "ranking"):
        return expect
    if ctx.get_parameter_source("expect") is click.core.ParameterSource.COMMANDLINE:
        raise UsageError(
            "--expect: verdicts are part of the ranking and of graphs",
            hint="--what ranking, -f graphml or -f dot",
        )
    return None


def _measured(
    console: Console,
    sources: tuple[str, ...],
    question: PredictionQuery,
    load: LoadOptions,
    fitting: FitOptions,
    form: str,
    output: Path | None,
    *,
    force: bool,
) -> None:
    """Write what needs no models: all metrics, or the one that was asked for.

    A metric that is configured is for what has one: it leads where there are several.
    """
    from callpath_modeler import loading, pipeline
    from callpath_modeler.cli.render import render_table
    from callpath_modeler.report import exchange, export

    metric = question.metric
    alone = metric if was_asked(click.get_current_context(), "metric") else None
    wanted = replace(load, read=replace(load.read, metrics=None if alone is None else (alone,)))
    experiment = loading.load(sources, wanted, console.progress("read"))
    if alone is not None:
        experiment = replace(experiment, columns={alone: experiment.columns[alone]})
    if form == EXTRAP:
        console.write(exchange.for_extrap(experiment, output), output, overwrite=force)
    elif form in PROFILES:
        first = experiment.metric(metric)
        metrics = dict.fromkeys([first, *(v.metric for v in experiment.columns.values())])
        largest = {}
        for one in metrics:
            how = pipeline.aggregate_of(experiment, sources, one.name, wanted, fitting)
            largest[one] = exchange.at_largest(experiment, one.name, how)
        console.write(_profile(form, experiment, largest), output, overwrite=force)
    else:
        chosen = experiment.metric(metric)
        table = export.values_table(experiment, chosen, inclusive=question.inclusive)
        render_table(console, table, form, output, force=force)
    console.findings(experiment.findings)


def _profile(form: str, experiment: Experiment, columns: Mapping[Metric, FloatArray]) -> str:
    """Write one profile; of folded stacks, which have one metric, that of the first."""
    from callpath_modeler.report import exchange

    tree = experiment.tree
    if form == "speedscope":
        return exchange.speedscope(tree, columns, experiment.name)
    if form == "hatchet":
        return exchange.hatchet_literal(tree, columns)
    metric, exclusive = next(iter(columns.items()))
    if not metric.additive:
        raise UsageError(
            f"{metric.name} does not add up over call paths: stacks would",
            hint="-m with one that does",
        )
    return exchange.folded(tree, exclusive, metric.unit)


def _form(format_: str | None, output: Path | None) -> str:
    ending = "" if output is None else output.suffix.removeprefix(".")
    ending = PYTHON if ending == "py" else ending
    if format_ is None and ending in _OTHERS:
        return ending
    form = format_ if format_ in _OTHERS else format_of(format_, output, (*_TABLES, *_OTHERS))
    if form == "table":
        raise UsageError("no format", hint=f"-f with one of {', '.join((*_TABLES, *_OTHERS))}")
    return form
