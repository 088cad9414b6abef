"""`cpmodel export`: models, values, ranking, call-path graph or experiment to a file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import EXPECT, check_ranking, verdict_file
from callpath_modeler.cli.option_groups import call_option, output_option, was_asked
from callpath_modeler.cli.options import (
    EXPERIMENT,
    FORCE,
    output_file,
    study_options,
    target_options,
)
from callpath_modeler.cli.table_options import FORMATS, OutputRequest, format_of
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Ranking
    from callpath_modeler.arrays import FloatArray
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.profile.schema import Metric
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study

GRAPHS = ("graphml", "dot")
PROFILES = ("folded", "speedscope", "hatchet")
EXTRAP, PYTHON, SVG = "extra-p", "python", "svg"
CUBE = "cubex"
FLAME, _MODELS, _RANKING = "flame", "models", "ranking"
_OTHERS = (*GRAPHS, EXTRAP, *PROFILES, CUBE, SVG, PYTHON)
_OF_ONE_SCALE = (*PROFILES, CUBE, SVG)
_FLAMES = (SVG, "folded", "speedscope")
_TABLES = FORMATS[1:]


@click.command("export", cls=Configured)
@EXPERIMENT
@output_file()
@output_option(
    "-f, --format",
    "Default: by the ending of FILE.",
    "format_",
    type=click.Choice([*_TABLES, *_OTHERS]),
)
@call_option(
    "--what",
    "Rows of a table: models of call paths, values of call paths and runs, or the ranking. "
    "Or a flame graph: svg, folded, speedscope. Default: models; the ranking if the scales are too "
    "few for models.",
    type=click.Choice([_MODELS, "values", _RANKING, FLAME]),
)
@output_option(
    "--color-by",
    "Colour of a flame graph in svg: excess work; change of the share of the total; growth. "
    "Default: excess, if there are two scales.",
    type=click.Choice(["excess", "share", "growth", "none"]),
)
@call_option(
    "--base P", "Measured scale that a flame graph is compared with. Default: the smallest."
)
@EXPECT
@FORCE
@target_options
@study_options
@click.pass_obj
def command(
    console: Console,
    *,
    output: Path | None,
    format_: str | None,
    what: str | None,
    color_by: str | None,
    base: str | None,  # noqa: ARG001
    force: bool,
    question: Question,
    study: Study,
) -> None:
    """Write models, values, the ranking, the call-path graph, or the experiment.

    graphml and dot are graphs. extra-p is the experiment for Extra-P; the suffix .txt, .json or
    .extra-p of FILE selects its format, and any other suffix JSON Lines. folded, speedscope,
    hatchet and svg are one profile: of the largest runs, or at --target. The profile at the target
    is measured if it was run, else predicted. folded has whole microseconds. svg is the picture of
    a flame graph; the page of report has one that zooms. cubex is a file for the viewer of Cube:
    measured values, predictions and excess work. python is a module with the models as functions.
    """
    from callpath_modeler.report import model_tables
    from callpath_modeler.report.exports import python_source
    from callpath_modeler.report.ranking_table import ranking_table
    from callpath_modeler.studies.question import findings_at

    form = _form(format_, output, what)
    ctx, to = click.get_current_context(), OutputRequest(form, output, force)
    has_verdicts = form in GRAPHS or (form not in _OTHERS and what == _RANKING)
    _refuse_expectation(ctx, form, has_verdicts=has_verdicts)
    _check_flame(ctx, form, what)
    question = replace(question, has_verdicts=has_verdicts)
    verdicts = verdict_file(click.get_current_context()) if has_verdicts else None
    study = study.for_expectations(verdicts, question.metric)
    at_target = any(was_asked(ctx, name) for name in ("target", "at", "predicted", "pairs"))
    if form == SVG and not at_target and color_by != "growth":
        _measured_flame(console, study, question, to)
        return
    if form == EXTRAP or what == "values" or (form in PROFILES and not at_target):
        _measured(console, study, question, to)
        return
    if form in _OF_ONE_SCALE:
        question = replace(question, inclusive=False)
    if form in GRAPHS or what == "ranking":
        study = study.reading(requirements=True)
    fitted, target = study.at(question)
    findings = findings_at(fitted, target)
    _check_models(fitted, form, what, color_by)
    if form in _TABLES and what != _RANKING and not fitted.is_measured_only:
        to.write_table(console, model_tables.models_table(fitted))
        console.findings(findings)
        return
    ranking = study.ranked(fitted, target, question)
    if form in _OF_ONE_SCALE:
        _write_one_scale(console, ranking, to, at_target=at_target)
    elif form == PYTHON:
        to.write(console, python_source(fitted))
    elif form in GRAPHS:
        pieces = model_tables.graph_pieces(ranking, form, check_ranking(ranking, verdicts))
        to.write_pieces(console, pieces)
    else:
        table = ranking_table(ranking, findings=findings, check=check_ranking(ranking, verdicts))
        to.write_table(console, table)
    console.findings(findings)


def _check_models(fitted: Fitted, form: str, what: str | None, color_by: str | None) -> None:
    """Refuse output about models if the runs have no models."""
    from callpath_modeler.analysis.measured_only import refuse_prediction

    asked = {
        f"-f {PYTHON}": form == PYTHON,
        f"--what {_MODELS}": what == _MODELS,
        "--color-by growth": color_by == "growth",
    }
    for name, is_asked in asked.items():
        if is_asked:
            refuse_prediction(fitted, name)


def _refuse_expectation(ctx: click.Context, form: str, *, has_verdicts: bool) -> None:
    """Raise `UsageError` for an expectation of the command line that the output does not show.

    It shows verdicts or excess work. A configured file only applies to verdicts.
    """
    given = ctx.get_parameter_source("expect") is click.core.ParameterSource.COMMANDLINE
    shows_excess = form == CUBE or (form == SVG and ctx.params["color_by"] in {None, "excess"})
    if given and not has_verdicts and not shows_excess:
        raise UsageError(
            "--expect: this output has neither excess work nor verdicts",
            hint="--what ranking, or -f graphml, dot, cubex or svg",
        )


def _measured(console: Console, study: Study, question: Question, to: OutputRequest) -> None:
    """Write output that needs no models: all metrics, or the chosen one.

    A configured metric only applies to formats with one metric; it comes first if there are
    several.
    """
    from callpath_modeler.report import exports, model_tables

    metric, form = question.metric, to.form
    alone = metric if was_asked(click.get_current_context(), "metric") else None
    study = study.reading(metrics=None if alone is None else (alone,))
    experiment = study.experiment()
    if alone is not None and form in (EXTRAP, *PROFILES):
        experiment = replace(experiment, columns={alone: experiment.columns[alone]})
    if form == EXTRAP:
        made = exports.for_extrap(experiment, to.path)
        if isinstance(made, bytes):
            to.write(console, made)
        else:
            to.write_pieces(console, made)
    elif form in PROFILES:
        first = experiment.metric(metric)
        metrics = dict.fromkeys([first, *(v.metric for v in experiment.columns.values())])
        largest = {
            one: exports.at_largest(experiment, one.name, study.centre(one.name)) for one in metrics
        }
        to.write(console, _profile(form, experiment, largest))
    else:
        chosen = experiment.metric(metric)
        table = model_tables.values_table(experiment, chosen, inclusive=question.inclusive)
        to.write_table(console, table)
    console.findings(experiment.findings)


def _write_one_scale(
    console: Console, ranking: Ranking, to: OutputRequest, *, at_target: bool
) -> None:
    """Write a ranking at a finite target in a format of one profile."""
    form = to.form
    if math.isinf(ranking.target):
        raise UsageError(
            f"{form} at infinity: there is no profile, only growth", hint="--target with a number"
        )
    if form != CUBE:
        to.write(console, _of_ranking(ranking, form, at_target=at_target))
        return
    from callpath_modeler.report.cube_file import cube_of_models
    from callpath_modeler.units import counted

    made = cube_of_models(ranking)
    to.write(console, made.pieces)
    if made.without_formula:
        console.note(
            f"{counted(made.without_formula, 'model')} without a formula in the file, because Cube "
            "has no steps, ceilings or exponentials; their values are there"
        )


def _of_ranking(ranking: Ranking, form: str, *, at_target: bool) -> str:
    """Write the profile of a target; or of the largest runs, with the growth of models."""
    if form != SVG:
        of_metric = {ranking.fitted.metric: ranking.value}
        return _profile(form, ranking.fitted.experiment, of_metric)
    from callpath_modeler.report.flame_graph import ColorBy, flame_svg, of_ranking

    params = click.get_current_context().params
    shown = ColorBy(params["color_by"] or "excess")
    return flame_svg(of_ranking(ranking, shown, _base(params["base"]), at_largest=not at_target))


def _measured_flame(console: Console, study: Study, question: Question, to: OutputRequest) -> None:
    """Write the flame graph of the largest runs, coloured against a smaller scale."""
    from callpath_modeler.report import exports
    from callpath_modeler.report.flame_graph import (
        ColorBy,
        check_additive,
        flame_svg,
        of_losses,
        plain,
    )
    from callpath_modeler.studies.question import Question

    params = click.get_current_context().params
    experiment = study.experiment(question.metric)
    metric = experiment.metric(question.metric)
    compared = params["base"] is not None or bool(experiment.parameters)
    shown = ColorBy(params["color_by"] or ("excess" if compared else "none"))
    if shown is ColorBy.NONE and not compared:
        how = study.centre(metric.name)
        flame = plain(experiment, metric, exports.at_largest(experiment, metric.name, how))
    else:
        check_additive(metric)
        of_scales = Question(metric=metric.name, expect=question.expect)
        flame = of_losses(study.losses(of_scales, base=_base(params["base"])), shown)
    to.write(console, flame_svg(flame))
    console.findings(experiment.findings)


def _base(text: str | None) -> float | None:
    from callpath_modeler.studies.loading import parse_number

    return None if text is None else parse_number(text, "--base")


def _check_flame(ctx: click.Context, form: str, what: str | None) -> None:
    """Refuse options of flame graphs for other formats, and flame graphs in other formats."""
    if what == FLAME and form not in _FLAMES:
        raise UsageError(f"no flame graph in {form}", hint=f"-f with one of {', '.join(_FLAMES)}")
    if form == SVG and what != FLAME and was_asked(ctx, "what"):
        raise UsageError(f"--what {what} is not svg", hint="--what flame, or another format")
    for name, spelling in (("color_by", "--color-by"), ("base", "--base")):
        if form != SVG and was_asked(ctx, name):
            raise UsageError(f"{spelling} is for flame graphs in svg", hint="--what flame -f svg")


def _profile(form: str, experiment: Experiment, columns: Mapping[Metric, FloatArray]) -> str:
    """Return the text of one profile; folded stacks only hold the first metric."""
    from callpath_modeler.report import exports

    tree = experiment.tree
    if form == "speedscope":
        return exports.speedscope(tree, columns, experiment.name)
    if form == "hatchet":
        return exports.hatchet_literal(tree, columns)
    metric, exclusive = next(iter(columns.items()))
    if not metric.additive:
        raise UsageError(
            f"{metric.name} does not add up over call paths, but stacks do",
            hint="choose an additive metric with -m",
        )
    return exports.folded(tree, exclusive, metric.unit)


def _form(format_: str | None, output: Path | None, what: str | None) -> str:
    ending = "" if output is None else output.suffix.removeprefix(".")
    ending = PYTHON if ending == "py" else ending
    if format_ is None and ending in _OTHERS:
        return ending
    if what == FLAME and format_ is None and not ending:
        return SVG
    form = format_ if format_ in _OTHERS else format_of(format_, output, (*_TABLES, *_OTHERS))
    if form == "table":
        raise UsageError("no format", hint=f"-f with one of {', '.join((*_TABLES, *_OTHERS))}")
    return form
