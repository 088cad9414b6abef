"""What stands on the screen of the browser: of any size, of any program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from driver import GIVEN, drive
from test_session import VALUES

from callpath_modeler.profile.views import ViewKind
from synthetic import fitted


def test_the_answer_is_on_the_screen_before_the_first_key():
    async def steps(screen):
        screen.says("app · time, inclusive")
        screen.says("[1 top-down]  2 bottom-up  3 flat")
        screen.says("p = 128 ")
        screen.says("4 × the largest run")
        screen.says("▌  ▸ grows")
        screen.says("at p = 128: ")

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


def test_imbalance_shares_the_line_of_the_title_where_no_other_has_room():
    times = fitted(VALUES)
    column = times.experiment.columns["time"]
    uneven = np.full(column.exclusive.shape, 1.5, np.float32)
    uneven[:, -1] = np.nan
    measured = {"time": replace(column, imbalance=uneven)}
    times = replace(times, experiment=replace(times.experiment, columns=measured))

    def titles(screen):
        return [line.strip() for line in screen.lines if line.startswith(" main/grows")]

    async def narrow(screen):
        assert titles(screen)[0].split("  ")[0] == "main/grows"
        assert titles(screen)[0].endswith("  own imbalance 1.50 at p = 16")
        await screen.press("l", "down")
        screen.says("  imbalance 1.50 at p = 16")
        await screen.press("home", "end")
        assert not any("imbalance" in line for line in screen.lines)

    async def narrower(screen):
        assert titles(screen) == ["main/grows"]

    async def beside(screen):
        screen.says("imbalance of its own cost at p = 2: 1.50, 4:")
        assert not any("own imbalance" in line for line in screen.lines)

    drive(narrow, times)
    drive(narrower, times, size=(60, 24))
    drive(beside, times, size=(160, 50))
