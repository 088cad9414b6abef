"""`cpmodel browse`: the views in a browser on the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.expectation_option import (
    EXPECT_COSTS,
    expected_costs_of,
    with_expectation,
)
from callpath_modeler.cli.option_groups import (
    OUTPUT,
    WholeNumber,
    option,
    output_option,
    parameter_of,
    was_asked,
)
from callpath_modeler.cli.options import EXPERIMENT, study_options, target_options
from callpath_modeler.cli.table_options import TABLE, OutputRequest
from callpath_modeler.cli.view_options import (
    COMPARE,
    chosen_order,
    fields_of_views,
    invocation_of,
    sort_options,
    view_options,
)
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_words
from callpath_modeler.report.layout import Listing, ListingEntry, TextStyle
from callpath_modeler.support import front_ends

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.analysis.answer_bands import AnswerInputs
    from callpath_modeler.analysis.pair_forecast import PairInputs, ViewForecast
    from callpath_modeler.arrays import FloatArray, IntArray
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.experiment import Experiment
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.report.layout import Listing
    from callpath_modeler.studies.process_profile import ProcessProfile
    from callpath_modeler.studies.question import Question
    from callpath_modeler.studies.study import Study
    from callpath_modeler.tui.services import BrowserServices, CommandAnswer


_SAID_ANEW = (
    *("--target", "--at", "--metric", "--inclusive", "--exclusive", "--predicted", "--pair"),
    "--compare",
)
"""Options that the request of a view contains, or that only the browser has."""

_SOURCE_PATH = option(
    "--source-path OLD=NEW",
    "Directory of source files whose names in profiles begin with OLD.",
    "source_paths",
    multiple=True,
    group=OUTPUT,
    example='["/build/app=/home/me/app"]',
)
"""The option that only the terminal has, and no printed view."""

_EXPECTATIONS = "expectations.toml"
"""Name of the expectation file in the documentation."""


def browser_services(
    console: Console,
    ctx: click.Context,
    study: Study,
    fitted: Fitted | None = None,
) -> BrowserServices:
    """Return the services of a study and of the command line for the browser.

    `fitted` are the models on the first screen, if they exist.
    """
    from callpath_modeler.profile.bookmarks import BookmarkFile
    from callpath_modeler.tui.services import BrowserServices

    here = _Services(console, ctx, study, fitted)
    return BrowserServices(
        models_of=here.models_of,
        runs_of=here.runs_of,
        target_of=here.target_of,
        command=here.command,
        save=here.save,
        compare=here.compare,
        check=here.check,
        processes=here.processes,
        expectations=here.expectations(),
        bookmarks=BookmarkFile.of(ctx.params["experiment"]),
        style=TextStyle(ascii_only=console.ascii_only),
        pair=here.pairs_at_first(),
    )


class _Services:
    """The experiment that is browsed, in the words of the command line."""

    def __init__(
        self,
        console: Console,
        ctx: click.Context,
        study: Study,
        fitted: Fitted | None,
    ) -> None:
        from callpath_modeler.studies.question import parse_target

        self._console, self._ctx, self._study = console, ctx, study
        self._same = invocation_of(ctx, without=_SAID_ANEW, in_full=True)
        chosen = study.fit_options.parameter
        self._asked = parse_target(ctx.params["target"], ctx.params["at"], chosen)
        self._expected = expected_costs_of(ctx)
        parameter = self._asked.parameter or chosen
        study.fit_options = replace(study.fit_options, parameter=parameter)
        # From here on, the browser owns the terminal.
        study.progress = None
        self._base = ""
        self._shown = fitted
        self._modelled: dict[str, Fitted] = {}
        if fitted is not None and not (ctx.params["pairs"] and fitted.is_measured_only):
            self._modelled[fitted.metric.name] = replace(fitted, pairs=())

    def pairs_at_first(self) -> str:
        """Return the pairs of the command line, with its target, as a user would type them."""
        given, target = self._ctx.params, []
        # A target of a configuration file does not apply to pairs alone.
        is_compared = self._shown is not None and self._shown.is_measured_only
        if given["pairs"] and given["target"] and not is_compared:
            target = [given["target"]]
        return " ".join([*given["pairs"], *target])

    def models_of(self, metric: str, pair: str) -> Fitted:
        """Return the models of a metric, or its measured values at two scales.

        `pair` has pairs of scales, such as ``"8,64 8,128"``. Values are those of the last pair.
        With a target behind them, they are those of the models.
        """
        from callpath_modeler.analysis.scales import with_pairs
        from callpath_modeler.studies.question import parse_pairs

        if not pair and metric in self._modelled:
            return self._modelled[metric]
        *pairs, last = pair.split() or [""]
        if last and "," not in last:
            return with_pairs(self.models_of(metric, ""), parse_pairs(pairs))
        parameter = self._study.fit_options.parameter
        others = {name: at for name, at in self._asked.named.items() if name != parameter}
        found, _ = self._study.at(
            at=others or None, metric=metric, pairs=tuple(pair.split()), expect=self._expected
        )
        self._shown = found
        if not pair:
            self._modelled[metric] = found
        return found

    def runs_of(self, metric: str) -> Experiment:
        """Return the measured runs of a metric."""
        # The runs on the screen may have a scale that profiles do not tell.
        if self._shown is not None and metric in self._shown.experiment.columns:
            return self._shown.experiment
        return self._study.experiment(metric)

    def target_of(self, text: str, fitted: Fitted) -> float:
        """Return the target for a typed text."""
        from callpath_modeler.analysis.measured_only import measured_scale
        from callpath_modeler.studies.question import checked_target, parse_target

        value = None if "=" in text else parse_target(text).value
        if value is None:
            raise UsageError("no target scale", hint="e.g. 4096, 1e6 or inf")
        if fitted.is_measured_only:
            return measured_scale(fitted, value)
        return checked_target(fitted, value)

    def command(self, request: ViewRequest, inputs: AnswerInputs, target: float) -> str:
        """Return the command that prints a view, of one experiment or of two."""
        words = [*self._asked_of(inputs, target), *_view_options(request)]
        same = with_expectation(self._ctx, self._same, inputs.fitted)
        return same.line("views", shell_words(words))

    def _asked_of(self, inputs: AnswerInputs, target: float) -> list[str]:
        """Return the options for values at a target."""
        from callpath_modeler.analysis.excess_work import compares_scales
        from callpath_modeler.analysis.pair_forecast import PairInputs

        fitted = inputs.fitted
        metric = ["-m", fitted.metric.name, *["--predicted"] * inputs.predicted]
        scales, pairs = self._at(target), fitted.pairs
        if isinstance(inputs, PairInputs):
            is_predictable = inputs.has_models and math.isfinite(target)
            return [*(scales if is_predictable else []), *metric, "--compare", self._base]
        if compares_scales(fitted, target):
            # An order by excess work is the default of two scales that are compared.
            scales, pairs = [], pairs or (tuple(fitted.points.tolist()),)
        scales += [word for pair in pairs for word in ("--pair", ",".join(map(_exactly, pair)))]
        return [*scales, *metric]

    def save(self, forecast: ViewForecast, request: ViewRequest, path: Path) -> str:
        """Write a view to a file."""
        from callpath_modeler.cli.views import write_view
        from callpath_modeler.units import counted

        words = shell_words(self._asked_of(forecast.inputs, forecast.target))
        same = with_expectation(self._ctx, self._same, forecast.fitted)
        again = replace(same, options=f"{words} {self._same.options}".rstrip())
        output = OutputRequest(None, path, force=False)
        lines, _ = write_view(self._console, output, forecast, request, again)
        return f"{path}: {counted(lines, 'line')}"

    def compare(self, other: str, fitted: Fitted, predicted: bool) -> PairInputs:
        """Return the comparison of an earlier experiment with the one on the screen."""
        found = self._study.pair(other, fitted, predicted=predicted)
        self._base = other
        return found

    def check(self, name: str, forecast: ViewForecast) -> CommandAnswer:
        """Evaluate an expectation file at its own targets."""
        from callpath_modeler.analysis.expectations.clauses import read
        from callpath_modeler.report.test_reports import check_listing
        from callpath_modeler.studies.question import Question
        from callpath_modeler.tui.services import CommandAnswer

        path = Path(name).expanduser()
        at = self._at(forecast.target) if read(path).parameter is None else []
        metric = forecast.fitted.metric.name
        said = dict(zip(at[::2], at[1::2], strict=True))
        question = Question(said.get("--target"), said.get("--at"), metric)
        found = self._study.check(path, question)

        def listing(width: int) -> Listing:
            style = TextStyle(width=width, ascii_only=self._console.ascii_only)
            return check_listing(found, style=style)

        command = self._same.line("check", shell_words([str(path), *at, "-m", metric, "--all"]))
        return CommandAnswer(f"expectations: {path}", listing, command)

    def processes(
        self, names: Sequence[str], rows: IntArray, forecast: ViewForecast, inclusive: bool
    ) -> CommandAnswer:
        """Return the values of processes at the target, or at the largest measured scale."""
        from rich.text import Text

        from callpath_modeler.analysis.pair_forecast import PairForecast
        from callpath_modeler.report.process_text import process_text
        from callpath_modeler.tui.services import CommandAnswer

        path = forecast.tree.path(int(rows[0])) if len(rows) == 1 else ""
        if isinstance(forecast, PairForecast):
            pair = forecast.inputs.pair
            own = [side.own_rows()[rows] for side in pair.sides]
            sides = [
                (f"{name}: ", side.experiment, known[known >= 0], side.points)
                for name, side, known in zip(("base", "new"), pair.sides, own, strict=True)
            ]
        else:
            fitted = forecast.fitted
            sides = [("", fitted.experiment, rows, fitted.points)]
        found = [
            (name, self._processes_of(experiment, some, points, forecast, inclusive))
            for name, experiment, some, points in sides
            if len(some)
        ]

        def listing(width: int) -> Listing:
            style = TextStyle(width=width, ascii_only=self._console.ascii_only)
            lines = [
                Text(title + line if place == 0 else line)
                for title, each in found
                for place, line in enumerate(process_text(each, style=style))
            ]
            return Listing([lines[0]], [ListingEntry([line], path) for line in lines[1:]], [])

        name = names[-1] if len(rows) == 1 else f"{names[-1]}: {len(rows)} call paths"
        # Both experiments end the list of sides with the one that the command line names.
        if len(sides[-1][2]):
            command = self._command_of(names, sides[-1][2], found[-1][1])
        else:
            command = f"the call path occurs only in base: cpmodel show {self._base} ... prints it"
        return CommandAnswer(f"ranks: {name}", listing, command)

    def _processes_of(
        self,
        experiment: Experiment,
        rows: IntArray,
        points: FloatArray,
        forecast: ViewForecast,
        inclusive: bool,
    ) -> ProcessProfile:
        """Return the values of processes of some call paths of an experiment."""
        from callpath_modeler.studies.process_profile import process_profile
        from callpath_modeler.studies.question import Target

        fitted = forecast.fitted
        target = forecast.target if forecast.target in points else float(points[-1])
        at = {fitted.parameter: target, **fitted.measured_at}
        return process_profile(
            experiment,
            rows,
            fitted.metric.name,
            inclusive=inclusive,
            target=Target(named=at),
            options=self._study.load_options,
        )

    def _command_of(self, names: Sequence[str], rows: IntArray, found: ProcessProfile) -> str:
        """Return the command that prints the values of processes."""
        import numpy as np

        from callpath_modeler.profile.pattern import match

        tree = found.experiment.tree
        pattern = f"@{tree.id_of(rows[0])}"
        if len(rows) > 1:
            # A node of a bottom-up view has its function first, then the callers.
            parts = [name.replace("/", "\\/") for name in reversed(names)]
            pattern = "/".join(["**", *parts])
            if not np.array_equal(np.flatnonzero(match(tree, pattern)), rows):
                return "no pattern matches exactly these call paths, so no command prints their sum"
        at = ",".join(f"{name}={_exactly(value)}" for name, value in found.at.items())
        scale = ["--at", at] if at else []
        words = [pattern, "--per-process", *scale, "-m", found.metric.name]
        return self._same.line("show", shell_words([*words, "-i" if found.inclusive else "-e"]))

    def expectations(self) -> str:
        """Return the most likely expectation file: next to the runs, or in this directory."""
        near = [Path(source) for source in self._study.sources[:1]]
        folders = [*near, *(path.parent for path in near), Path()]
        found = (folder / _EXPECTATIONS for folder in folders)
        return next((str(path) for path in found if path.is_file()), "")

    def _at(self, target: float) -> list[str]:
        asked = self._asked
        named = {**asked.named, asked.parameter: target} if asked.parameter else {}
        at = ",".join(f"{name}={_exactly(value)}" for name, value in named.items())
        return ["--at", at] if at else ["--target", _exactly(target)]


def _exactly(value: float) -> str:
    from callpath_modeler.units import parameter_value

    text = parameter_value(value)
    return text if float(text) == value else repr(value)


def _view_options(request: ViewRequest) -> Sequence[str]:
    """Return the options of `cpmodel views` for a view.

    Options that a configuration file can set are always included, because the view may differ.
    """
    from callpath_modeler.profile.view_request import ViewRequest

    words = ["--view", str(request.kind)]
    if request.by != ViewRequest().by:
        words += ["--group", ",".join(request.by)]
    if request.inclusive is not None:
        words.append("-i" if request.inclusive else "-e")
    words += ["--min-share", f"{request.least:g}", "-n", "all"]
    if request.depth is not None:
        words += ["--depth", str(request.depth)]
    for flag, text in (("--zoom", request.zoom), ("--filter", request.keep)):
        words += [flag, text] if text else []
    for flag, paths in (("--open", request.opened), ("--close", request.closed)):
        for path in paths:
            words += [flag, path]
    words += ["--sort", str(request.sort)]
    words += ["--reverse"] if request.reverse else []
    words += ["--lines", str(request.most)] if request.most is not None else []
    return words


@click.command("browse", cls=Configured)
@EXPERIMENT
@view_options
@sort_options
@output_option("--web", "Serve the page of `cpmodel report` for a browser on this machine.")
@output_option("--port N", "Port of --web. Default: a free one.", type=WholeNumber(1, 65535))
@COMPARE
@EXPECT_COSTS
@target_options
@study_options
@_SOURCE_PATH
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
    from callpath_modeler.tui.services import SourceFiles, source_replacements

    if port is not None and not web:
        raise UsageError("--port is for the page of --web", hint="add --web")
    if web:
        _serve(console, ctx, study, question, other, port or 0)
        return
    order = chosen_order(ctx, is_pair=False)
    replaced = source_replacements(source_paths)
    _refuse_pipes(console, ctx)
    from callpath_modeler.analysis.answer import answer_at
    from callpath_modeler.analysis.answer_bands import AnswerInputs
    from callpath_modeler.studies.question import findings_at

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
    front_ends.listen(None)
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


def _serve(
    console: Console, ctx: click.Context, study: Study, question: Question, other: str, port: int
) -> None:
    """Serve the page of `cpmodel report`, or that of `cpmodel diff` for two experiments."""
    from callpath_modeler.cli.web import serve

    of_terminal = {*fields_of_views(), parameter_of(_SOURCE_PATH).name}
    for each in ctx.command.params:
        if each.name in of_terminal and was_asked(ctx, each.name):
            raise UsageError(f"{each.opts[-1]} is for the terminal", hint="omit --web")
    if other:
        from callpath_modeler.cli.report import pair_provenance
        from callpath_modeler.report.page.pair_page import pair_page

        compared = study.reading(requirements=True).difference(other, question)
        findings: Sequence[Finding] = compared.findings
        making = pair_provenance(ctx, [other, *map(str, study.sources)], compared)
        text = pair_page(compared, making)
    else:
        from callpath_modeler.cli.report import report_page

        text, findings = report_page(console, study, question)
    console.findings(findings)
    serve(console, text, port)


def _refuse_pipes(console: Console, ctx: click.Context) -> None:
    """Raise `UsageError` if there is no terminal."""
    if console.is_interactive:
        return
    unknown = parameter_of(_SOURCE_PATH).opts
    twin = invocation_of(ctx, without=unknown, in_full=True, every=True).line("views")
    raise UsageError("browse needs a terminal", hint=f"{twin} prints the same view")
