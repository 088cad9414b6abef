"""The browser driven by keys."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace

import numpy as np
import pytest
from rich.text import Text
from test_session import VALUES, text

from callpath_modeler.analysis.forecast import Known, forecast
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.profile.views import ViewKind
from callpath_modeler.report.listing import Entry, Listing
from callpath_modeler.tui.app import Browser
from callpath_modeler.tui.session import Session
from callpath_modeler.tui.surroundings import Answer, Surroundings
from synthetic import fitted

Steps = Callable[["Screen"], Coroutine[None, None, None]]


def target_of(typed, fit):  # noqa: ARG001
    if float(typed) <= 0:
        raise UsageError(f"target {typed} is not positive", hint="e.g. 4096")
    return float(typed)


def no_metric(name):
    raise UsageError(f"no metric {name!r}")


def answer(name, command):
    """A list of the call paths of the experiment, each as wide as the screen."""
    if name == "none":
        raise InputError("none: nothing there", hint="give a path")
    if name == "long":
        raise InputError("long: not what anybody can read; " * 4, hint="said in full")

    def listing(width):
        entries = [
            Entry(
                [Text(f"{k} {path}"[:width]), Text("  more")], path if path != "main/tiny" else ""
            )
            for k, path in enumerate(VALUES)
        ]
        return Listing([Text("what stands above")], entries, [Text("what stands below")])

    return Answer(f"asked: {name}", listing, command)


GIVEN = Surroundings(
    models_of=no_metric,
    target_of=target_of,
    command=lambda wanted, target, metric: f"views {wanted.kind} {target:g} {metric}",
    save=lambda _, wanted, path: f"{path}: {wanted.kind}",
    compare=lambda name, _, inclusive: answer(name, f"diff {name} {inclusive}"),
    check=lambda name, made: answer(name, f"check {name} {made.target:g}"),
    expectations="expectations.toml",
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


@functools.cache
def usual():
    return fitted(VALUES)


def drive(steps: Steps, fit=None, *, size=(80, 24), target=128.0, given=GIVEN):
    async def session() -> None:
        made = forecast(Known(fit or usual()), target)
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


def test_keys_move_open_and_close():
    async def steps(screen):
        await screen.press("k", "l", "down")
        assert text(screen.session) == [
            "-main", "  +grows", "  MPI_Wait>", "  ... 3"
        ]  # fmt: skip
        await screen.press("home", "E")
        assert "  -grows" in text(screen.session)
        await screen.press("end", "enter")
        screen.says(". shows what is small")
        await screen.press("up", "u", "h")
        assert text(screen.session) == ["+main>"]
        await screen.press("enter", "right", "right", "left", "left")
        assert text(screen.session)[0] == "-main>"
        await screen.press("e", "j", "E", "C")
        assert text(screen.session)[1] == "  +grows>"
        await screen.press("e", "e")
        assert text(screen.session)[1] == "  -grows>"
        await screen.press("c", "c")
        assert text(screen.session)[1] == "  +grows>"
        await screen.press("pagedown")
        assert screen.session.cursor == 3
        await screen.press("pageup")
        assert screen.session.cursor == 0

    drive(steps)


def test_keys_choose_the_view():
    async def steps(screen):
        for key, kind in zip("231", ("bottom-up", "flat", "top-down"), strict=True):
            await screen.press(key)
            assert screen.session.kind == kind
            screen.says(f"[{key} {kind}]")

    drive(steps)


def test_keys_halve_double_and_type_the_target_and_everything_ranks_anew():
    async def steps(screen):
        await screen.press("3")
        assert text(screen.session)[0] == "grows>"
        await screen.press("left_square_bracket")
        assert screen.session.forecast.target == 64
        screen.says("p = 64 ")
        await screen.press("right_square_bracket", "right_square_bracket")
        assert screen.session.forecast.target == 256
        await screen.press("t", "2", "enter")
        assert text(screen.session)[0] == "main"
        screen.says("inside the data")
        await screen.press("t", *"inf", "enter")
        screen.says("shares in the limit")
        await screen.press("right_square_bracket")
        screen.says("at infinity: t types a target")
        await screen.press("t", *"-1", "enter")
        screen.says("target -1 is not positive (e.g. 4096)")
        await screen.press("t", "escape")
        assert screen.session.forecast.target == np.inf
        assert screen.app.focused is screen.app.table

    drive(steps)


def test_keys_order_reverse_lead_and_hide():
    async def steps(screen):
        await screen.press("s")
        screen.says("by measured")
        await screen.press("S")
        screen.says("by measured, smallest first")
        await screen.press("i")
        screen.says("time, exclusive")
        before = len(screen.session.outline)
        await screen.press("full_stop")
        assert len(screen.session.outline) > before
        assert not any("more below" in line for line in screen.lines)

    drive(steps)


def test_keys_zoom_in_and_out():
    async def steps(screen):
        await screen.press("z")
        screen.says("zoomed to main/grows")
        assert text(screen.session)[0] == "-grows>"
        await screen.press("backspace")
        assert text(screen.session)[0] == "-main"

    drive(steps)


def test_keys_search_and_go_on():
    async def steps(screen):
        await screen.press("slash", *"MPI", "enter")
        screen.says("3 found; n N next, previous")
        at = screen.session.node
        await screen.press("n")
        screen.says("2 of 3 found")
        assert screen.session.node != at
        await screen.press("N")
        assert screen.session.node == at
        await screen.press("slash", *"xyz", "enter")
        screen.says("no name contains 'xyz'")
        await screen.press("n")
        screen.says("nothing was searched for: /")

    drive(steps)


def test_keys_filter_and_take_the_filter_away():
    async def steps(screen):
        await screen.press("f", *"main/MPI_*", "enter")
        screen.says("filter main/MPI_*")
        assert text(screen.session) == ["-main>", "  MPI_Wait", "  ... 4"]
        await screen.press("f", *"zzz", "enter")
        assert screen.session.pattern == "main/MPI_*"
        screen.says("no call path matches 'zzz'")
        await screen.press("f", "ctrl+u", "enter")
        assert screen.session.pattern == ""

    drive(steps)


def test_keys_follow_the_hot_path():
    async def steps(screen):
        await screen.press("full_stop", "end", "up", "up", "H")
        assert text(screen.session)[screen.session.cursor].strip() == "g>"
        await screen.press("H")
        screen.says("no single node below has most of this one")

    drive(steps)


def test_a_key_shows_how_fast_things_grow():
    async def steps(screen):
        assert not any("!" in line for line in screen.lines)
        await screen.press("g")
        screen.says("O(p) !!")

    drive(steps, size=(120, 30))


def test_keys_say_and_keep_the_view(tmp_path):
    async def steps(screen):
        await screen.press("y")
        screen.says("views top-down 128 time")
        await screen.press("q")
        await screen.press("w", *"view.csv", "enter")
        screen.says("view.csv: top-down")
        await screen.press("question_mark")
        screen.says("Move         up down or j k")
        await screen.press("escape")
        screen.says("[1 top-down]")

    del tmp_path
    drive(steps)


def test_another_metric_comes_and_what_cannot_be_shown_is_said():
    times = usual()
    visits = fitted({name: [2.0] * 5 for name in VALUES})
    visits = replace(
        visits,
        metric=replace(visits.metric, name="visits", unit="1"),
        experiment=replace(
            visits.experiment, columns={"visits": visits.experiment.columns["time"]}
        ),
    )
    experiment = replace(
        times.experiment,
        declared={"time": "", "ratio": "", "visits": "", "x": "n"},
        columns={**times.experiment.columns, **visits.experiment.columns},
    )
    times = replace(times, experiment=experiment)
    visits = replace(visits, experiment=experiment)

    def models_of(name):
        if name == "ratio":
            raise UsageError("no view: ratio does not add up over call paths")
        return {"visits": visits, "time": times}[name]

    async def steps(screen):
        await screen.press("m")
        screen.says("visits, inclusive")
        screen.says("visits; left out: no view: ratio does not add up")
        await screen.press("m")
        screen.says("time, inclusive")

    drive(steps, times, given=replace(GIVEN, models_of=models_of))


def test_a_metric_that_is_the_only_one_stays():
    async def steps(screen):
        await screen.press("m")
        screen.says("there is no metric but time")

    drive(steps)


@pytest.mark.parametrize("size", [(80, 24), (40, 10), (20, 5), (160, 50)])
def test_every_key_works_on_a_screen_of_any_size(size):
    async def steps(screen):
        await screen.press(*"123jklhHeEcCuzsSig.", "m", "backspace", "end", "home", "enter")
        assert len(screen.lines) == size[1]

    drive(steps, size=size)


@pytest.mark.parametrize("kind", ViewKind)
def test_programs_of_one_call_path_or_of_zeros_or_without_models_are_shown(kind):
    nan = float("nan")
    for values in ({"main": [1.0] * 5}, {"main": [0.0] * 5, "main/f": [0.0] * 5},
                   {"main": [1.0] * 5, "main/f": [nan] * 4 + [2.0]}):  # fmt: skip

        async def steps(screen):
            screen.session.show(kind)
            await screen.press(*"jkHezEC.i", "right_square_bracket")
            await screen.press("t", *"inf", "enter")
            assert len(screen.session.outline)

        drive(steps, fitted(values))


def test_the_screen_can_change_its_size():
    async def steps(screen):
        assert not screen.app.has_class("-beside")
        await screen.pilot.resize_terminal(150, 40)
        await screen.pilot.pause()
        assert screen.app.has_class("-beside")
        screen.says("│ main/grows")
        await screen.pilot.resize_terminal(60, 12)
        await screen.pilot.pause()
        assert not screen.app.query_one("#pane").display

    drive(steps)


def test_a_screen_that_was_another_size_is_as_one_that_always_was_this_size():
    shown = []

    async def steps(screen):
        shown.append(screen.lines)

    async def resized(screen):
        for size in ((150, 40), (100, 30)):
            await screen.pilot.resize_terminal(*size)
            await screen.pilot.pause()
        await screen.pilot.pause()
        shown.append(screen.lines)

    drive(steps, size=(100, 30))
    drive(resized, size=(70, 20))
    assert shown[0] == shown[1]


def test_the_mouse_selects_and_opens():
    async def steps(screen):
        await screen.pilot.click("TreeTable", offset=(5, 3))
        assert screen.session.cursor == 2
        await screen.pilot.click("TreeTable", offset=(5, 2))
        await screen.pilot.click("TreeTable", offset=(5, 2))
        assert screen.session.outline.is_open[1]
        await screen.pilot.click("TreeTable", offset=(5, 0))
        assert screen.session.cursor == 1

    drive(steps)


def test_ascii_is_ascii():
    async def steps(screen):
        for keys in ("", "2", "3", "1E", "g", "?", "q", "y"):
            await screen.press(*keys)
            assert "\n".join(screen.lines).isascii(), "\n".join(screen.lines)

    for size in ((80, 24), (160, 50)):
        drive(steps, size=size, given=replace(GIVEN, ascii_only=True))


def test_large_programs_are_predicted_in_a_worker_and_end_up_the_same(monkeypatch):
    monkeypatch.setattr("callpath_modeler.tui.app.AT_ONCE", 3)

    async def steps(screen):
        await screen.press("right_square_bracket", "right_square_bracket")
        await screen.press("j")
        shown = screen.session.forecast
        expected = forecast(shown.known, 512.0)
        assert shown.target == 512
        assert shown.total == expected.total
        np.testing.assert_array_equal(shown.widths.inclusive, expected.widths.inclusive)
        screen.says("main/MPI_Wait")

    drive(steps)


def test_keys_that_come_while_a_target_is_worked_on_hold(monkeypatch):
    """Views, order and openings may change before values at another target are there."""
    monkeypatch.setattr("callpath_modeler.tui.app.AT_ONCE", 3)
    begun, go_on = threading.Event(), threading.Event()
    usual_forecast = forecast

    def slowly(known, target, *, bands):
        begun.set()
        go_on.wait(10)
        return usual_forecast(known, target, bands=bands)

    async def steps(screen):
        monkeypatch.setattr("callpath_modeler.tui.ahead.forecast", slowly)
        await screen.pilot.press("right_square_bracket")
        await asyncio.to_thread(begun.wait, 10)
        screen.says("working")
        assert screen.session.forecast.target == 128
        await screen.pilot.press("home", "E", "s", "s", "3")
        go_on.set()
        await screen.press("1")
        expected = Session(usual_forecast(screen.session.forecast.known, 256.0))
        expected.go(0)
        for change in ("open_all", "sort_next", "sort_next"):
            getattr(expected, change)()
        assert screen.session.forecast.target == 256
        assert text(screen.session) == text(expected)
        assert screen.session.check().holds
        assert screen.session.wanted() == expected.wanted()

    drive(steps)


def test_a_key_that_closes_a_text_does_nothing_else():
    async def steps(screen):
        await screen.press("?", "q")
        screen.says("[1 top-down]")
        await screen.press("?", "3")
        screen.says("[1 top-down]")

    drive(steps)
