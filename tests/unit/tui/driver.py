"""A browser with key input, on a screen that tests can read."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine

from rich.text import Text
from test_session import VALUES

from browser_screen import Screen
from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.analysis.pair_forecast import PairInputs
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.report.layout import Listing, ListingEntry
from callpath_modeler.studies.comparison import differences_of
from callpath_modeler.tui.app import Browser
from callpath_modeler.tui.services import BrowserServices, CommandAnswer
from callpath_modeler.tui.session import Session
from synthetic import fitted

Steps = Callable[["Screen"], Coroutine[None, None, None]]


def target_of(typed, fit):  # noqa: ARG001
    if float(typed) <= 0:
        raise UsageError(f"target {typed} is not positive", hint="e.g. 4096")
    return float(typed)


def no_metric(name, pair):  # noqa: ARG001
    raise UsageError(f"no metric {name!r}")


def answer(name, command):
    """A list of the call paths of the experiment, each as wide as the screen."""
    if name == "none":
        raise InputError("none: nothing there", hint="give a path")
    if name == "long":
        raise InputError("long: not what anybody can read; " * 4, hint="said in full")

    def listing(width):
        entries = [
            ListingEntry(
                [Text(f"{k} {path}"[:width]), Text("  more")], path if path != "main/tiny" else ""
            )
            for k, path in enumerate(VALUES)
        ]
        return Listing([Text("what stands above")], entries, [Text("what stands below")])

    return CommandAnswer(f"asked: {name}", listing, command)


def compare(name, fit, predicted):
    """The experiment beside itself; "none" and "long" are errors."""
    answer(name, "")
    return PairInputs(fit, differences_of(fit, fit), (name, "app"), predicted=predicted)


GIVEN = BrowserServices(
    models_of=no_metric,
    runs_of=lambda name: no_metric(name, ""),
    target_of=target_of,
    command=lambda wanted, known, target: (
        f"views {wanted.kind} {target:g} {known.fitted.metric.name}"
        + " --predicted" * known.predicted
    ),
    save=lambda _, wanted, path: f"{path}: {wanted.kind}",
    compare=compare,
    check=lambda name, made: answer(name, f"check {name} {made.target:g}"),
    processes=lambda names, rows, _, inclusive: answer(
        names[-1], f"show {'/'.join(names)} {rows.tolist()} {inclusive}"
    ),
    expectations="expectations.toml",
)


@functools.cache
def usual():
    return fitted(VALUES)


def drive(steps: Steps, fit=None, *, size=(80, 24), target=128.0, given=GIVEN):
    async def session() -> None:
        fit_or_known = fit or usual()
        known = (
            fit_or_known if isinstance(fit_or_known, AnswerInputs) else AnswerInputs(fit_or_known)
        )
        made = answer_at(known, target)
        app = Browser(Session(made), given)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(Screen(app, pilot))

    asyncio.run(session())
