"""`cpmodel browse`: the views on a terminal, with keys."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.options import (
    EXPERIMENT,
    TABLE,
    fit_options,
    format_of,
    load_options,
    question_options,
    retold,
    sort_options,
    view_options,
)
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.analysis.forecast import Forecast
    from callpath_modeler.asking import Question
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.loading import LoadOptions
    from callpath_modeler.pipeline import FitOptions
    from callpath_modeler.profile.wanted import Wanted
    from callpath_modeler.tui.app import Surroundings

_SAID_ANEW = ("--target", "--at", "--metric", "--inclusive", "--exclusive")
"""Options that a view in words says itself."""


@click.command("browse")
@EXPERIMENT
@view_options
@sort_options
@question_options
@load_options
@fit_options
@click.pass_obj
def command(
    console: Console,
    *,
    experiment: tuple[str, ...],
    viewing: Callable[[str, int | None, bool, bool], Wanted],
    sort: str,
    reverse: bool,
    question: Question,
    load: LoadOptions,
    fitting: FitOptions,
) -> None:
    """Browse predictions: top-down, bottom-up, flat, at any target.

    Opens with the hot path of what is predicted. Without a target it is four times the largest
    scale. Every key is under ?; y shows the command that prints what is on the screen.
    """
    ctx = click.get_current_context()
    _refuse_pipes(console, ctx, question)
    from callpath_modeler.analysis.forecast import Known, forecast
    from callpath_modeler.asking import findings_at
    from callpath_modeler.pipeline import asked_of
    from callpath_modeler.profile.wanted import Sort

    viewed = viewing(TABLE, None, question.inclusive, bool(ctx.params["exclusive"]))
    wanted = replace(viewed, sort=Sort(sort), reverse=reverse)
    fitted, target = asked_of(
        experiment,
        question,
        load_options=load,
        fit_options=fitting,
        progress=console.progress("read"),
        default_factor=4.0,
    )
    from callpath_modeler.tui.app import AT_ONCE, Browser
    from callpath_modeler.tui.session import Session

    made = forecast(Known(fitted), target, bands=len(fitted.experiment.tree) <= AT_ONCE)
    findings = findings_at(fitted, target)
    given = _surroundings(console, ctx, load, fitting)
    if findings:
        given = replace(given, message=f"{len(findings)} findings: they are listed when you quit")
    console.without_color()
    Browser(Session(made, wanted), given).run()
    console.findings(findings)


def _refuse_pipes(console: Console, ctx: click.Context, question: Question) -> None:
    """Raise `UsageError` where there is no terminal to browse on."""
    if console.is_interactive:
        return
    sources, options = retold(ctx, in_full=True)
    target = "" if question.target or question.at else " --target P"
    twin = f"cpmodel views {sources} {options}".rstrip()
    raise UsageError("browse needs a terminal", hint=f"{twin}{target} prints the same view")


def _surroundings(
    console: Console, ctx: click.Context, load: LoadOptions, fitting: FitOptions
) -> Surroundings:
    from callpath_modeler import asking, pipeline
    from callpath_modeler.cli.render import render_lines, render_table
    from callpath_modeler.report.views import ForecastView, views_table, views_text
    from callpath_modeler.tui.app import Surroundings
    from callpath_modeler.tui.words import words_of
    from callpath_modeler.units import counted, parameter_value

    paths = ctx.params["experiment"]
    sources, options = retold(ctx, without=_SAID_ANEW, in_full=True)

    asked = asking.parse_target(ctx.params["target"], ctx.params["at"])

    def models_of(metric: str) -> Fitted:
        found = pipeline.models_of(paths, metric, load.of_metric(metric), fitting)
        return asking.held_at(found, asked)

    def target_of(text: str, fitted: Fitted) -> float:
        value = asking.parse_target(text, None).value
        if value is None:
            raise UsageError("no target scale", hint="e.g. 4096, 1e6 or inf")
        return asking.checked_target(fitted, value)

    def exactly(value: float) -> str:
        text = parameter_value(value)
        return text if float(text) == value else repr(value)

    def command_of(wanted: Wanted, target: float, metric: str) -> str:
        named = {**asked.named, asked.parameter: target} if asked.parameter else {}
        at = ",".join(f"{name}={exactly(value)}" for name, value in named.items())
        words = ["--at", at] if at else ["--target", exactly(target)]
        words += ["-m", metric]
        said = shlex.join([*words, *words_of(wanted)])
        return " ".join(part for part in ("cpmodel views", sources, said, options) if part)

    def save(forecast: Forecast, wanted: Wanted, path: Path) -> str:
        shown, form = ForecastView(forecast, wanted), format_of(None, path)
        if form == TABLE:
            again = (sources, options)
            lines = views_text(shown, width=None, full_names=False, ascii_only=console.ascii_only,
                               again=again)  # fmt: skip
            render_lines(console, lines, path, force=False)
        else:
            findings = asking.findings_at(forecast.fitted, forecast.target)
            render_table(console, views_table(shown, findings), form, path, force=False)
        return f"{path}: {counted(len(shown.outline), 'line')}"

    return Surroundings(models_of, target_of, command_of, save, console.ascii_only)
