"""`cpmodel browse`: the views in a browser on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler import stages
from callpath_modeler.cli.browser_services import browser_services
from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import EXPECT_COSTS
from callpath_modeler.cli.invocations import invocation_of
from callpath_modeler.cli.option_groups import OUTPUT, WholeNumber, option
from callpath_modeler.cli.options import (
    EXPERIMENT,
    study_options,
    target_options,
)
from callpath_modeler.cli.table_options import TABLE
from callpath_modeler.cli.view_options import COMPARE, chosen_order, sort_options, view_options
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.question import Question
    from callpath_modeler.study import Study

_OF_THE_SCREEN = ("--source-path",)
"""Options that printed views do not have."""


@click.command("browse", cls=Configured)
@EXPERIMENT
@view_options
@sort_options
@option("--web", "Serve the views as a page for a browser on this machine.", group=OUTPUT, key=None)
@option(
    "--port N",
    "Port of --web. Default: a free one.",
    type=WholeNumber(1, 65535),
    group=OUTPUT,
    key=None,
)
@COMPARE
@EXPECT_COSTS
@target_options
@study_options
@option(
    "--source-path OLD=NEW",
    "Directory of source files whose names in profiles begin with OLD.",
    "source_paths",
    multiple=True,
    group=OUTPUT,
    example='["/build/app=/home/me/app"]',
)
@click.pass_obj
def command(
    console: Console,
    *,
    web: bool,
    port: int | None,
    other: str,
    viewing: Callable[[str, int | None, bool, bool], ViewRequest],
    sort: str | None,  # noqa: ARG001
    reverse: bool,
    question: Question,
    study: Study,
    source_paths: tuple[str, ...],
) -> None:
    """Browse costs at any target: top-down, bottom-up or flat.

    Costs are measured if the target was run, else predicted. The browser opens at
    the hot path. The default target is 4 times the largest scale. One profile is shown as measured,
    and two scales are compared by excess work. Press ? for all keys, and y for the command that
    prints the view on the screen.
    """
    ctx = click.get_current_context()
    from callpath_modeler.report.source_text import SourceFiles, source_replacements

    if port is not None and not web:
        raise UsageError("--port is for the page of --web", hint="add --web")
    if other and web:
        raise UsageError("--compare is for the terminal", hint="omit --web")
    order = chosen_order(ctx, is_pair=False)
    replaced = source_replacements(source_paths)
    if not web:
        _refuse_pipes(console, ctx)
    from callpath_modeler.analysis.answer import answer_at
    from callpath_modeler.analysis.answer_inputs import AnswerInputs
    from callpath_modeler.question import findings_at

    if not web:
        study = study.reading(lines=True)
    viewed = viewing(TABLE, None, question.inclusive, bool(ctx.params["exclusive"]))
    study = study.reading(requirements=True)
    fitted, target = study.at(question)
    from callpath_modeler.units import counted

    known = AnswerInputs(fitted, predicted=question.predicted)
    findings = console.heard(findings_at(fitted, target))
    given = browser_services(console, ctx, study, fitted)
    profiles = tuple(Path(run.source) for run in fitted.experiment.runs)
    given = replace(given, sources=SourceFiles(profiles, replaced), other=other)

    def wanted(made: Answer) -> ViewRequest:
        return replace(viewed, sort=order or made.usual_sort, reverse=reverse)

    # From here on, the views own the terminal, and models are made in other threads.
    stages.listen(None)
    if web:
        from callpath_modeler.cli.web import WebViews, serve

        made = answer_at(known, target)
        console.findings(findings)
        serve(console, WebViews(ctx, given, made, wanted(made)), port or 0)
        return
    from callpath_modeler.tui.app import Browser
    from callpath_modeler.tui.frame import AT_ONCE
    from callpath_modeler.tui.session import Session

    made = answer_at(known, target, bands=len(fitted.experiment.tree) <= AT_ONCE)
    if findings:
        told = f"{counted(len(findings), 'finding')}, listed when you quit"
        given = replace(given, message=told)
    console.without_color()
    browser = Browser(Session(made, wanted(made)), given)
    browser.run()
    if browser.failure is not None:
        raise browser.failure
    console.findings(findings)


def _refuse_pipes(console: Console, ctx: click.Context) -> None:
    """Raise `UsageError` if there is no terminal."""
    if console.is_interactive:
        return
    twin = invocation_of(ctx, without=_OF_THE_SCREEN, in_full=True, every=True).line("views")
    raise UsageError("browse needs a terminal", hint=f"{twin} prints the same view")
