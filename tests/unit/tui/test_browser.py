"""The browser driven by keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from test_session import VALUES

from callpath_modeler.analysis.forecast import Known, forecast
from callpath_modeler.errors import UsageError
from callpath_modeler.tui.app import Browser, Surroundings
from callpath_modeler.tui.session import Session
from synthetic import fitted

Steps = Callable[["Screen"], Coroutine[None, None, None]]


def target_of(typed, fit):  # noqa: ARG001
    if float(typed) <= 0:
        raise UsageError(f"target {typed} is not positive", hint="e.g. 4096")
    return float(typed)


def no_metric(name):
    raise UsageError(f"no metric {name!r}")


GIVEN = Surroundings(
    models_of=no_metric,
    target_of=target_of,
    command=lambda wanted, target, metric: f"views {wanted.kind} {target:g} {metric}",
    save=lambda _, wanted, path: f"{path}: {wanted.kind}",
)


class Screen:
    """The browser, and what is on its screen."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot
        self.session = app.session

    async def press(self, *keys):
        await self.pilot.press(*keys)
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    @property
    def lines(self):
        """The lines of the screen as text."""
        width, height = self.app.size
        strips = self.app.screen._compositor.render_strips(self.app.size)
        return [strip.text[:width].rstrip() for strip in strips[:height]]

    def says(self, words):
        assert any(words in line for line in self.lines), "\n".join(self.lines)


def drive(steps: Steps, fit=None, *, size=(80, 24), target=128.0, given=GIVEN):
    async def session() -> None:
        made = forecast(Known(fit or fitted(VALUES)), target)
        app = Browser(Session(made), given)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(Screen(app, pilot))

    asyncio.run(session())


def test_the_answer_is_on_the_screen_before_the_first_key():
    async def steps(screen):
        screen.says("app · time, inclusive")
        screen.says("[1 top-down]  2 bottom-up  3 flat")
        screen.says("p = 128 ")
        screen.says("4 × the largest run")
        screen.says("▌  ▸ grows")
        screen.says("at p = 128: ")

    drive(steps)
