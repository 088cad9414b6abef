"""The screen of the browser, for all sizes and programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from driver import GIVEN, drive
from test_session import VALUES
from textual.events import MouseScrollDown, MouseScrollUp

from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.tui.panes import pane, report_of
from callpath_modeler.tui.widgets import Pane
from synthetic import POINTS, fitted


def test_the_answer_is_on_the_screen_before_the_first_key():
    async def steps(screen):
        screen.says("app · time, inclusive")
        screen.says("[1 top-down]  2 bottom-up  3 flat")
        screen.says("p = 128 ")
        screen.says("4 × the largest run")
        screen.says("▌  ▾ grows")
        screen.says("at p = 128: ")

    drive(steps)


@pytest.mark.parametrize("size", [(20, 5), (160, 50)])
def test_every_key_works_on_a_screen_of_any_size(size):
    async def steps(screen):
        await screen.press(*"123jklhHeEcCuzsSig.", "m", "backspace", "end", "home", "enter")
        assert len(screen.lines) == size[1]

    drive(steps, size=size)


@pytest.mark.parametrize(
    "values",
    [
        {"main": [1.0] * 5},
        {"main": [0.0] * 5, "main/f": [0.0] * 5},
        {"main": [1.0] * 5, "main/f": [float("nan")] * 4 + [2.0]},
    ],
    ids=["one call path", "zeros", "without models"],
)
def test_programs_of_one_call_path_or_of_zeros_or_without_models_are_shown(values):
    async def steps(screen):
        for kind in ViewKind:
            screen.session.show(kind)
            await screen.press(*"jkHezEC.i", "right_square_bracket")
            await screen.press("t", *"inf", "enter")
            assert len(screen.session.outline), kind

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
        async def click(x, y):
            await screen.pilot.click("TreeTable", offset=(x, y))

        await click(20, 3)
        assert screen.session.cursor == 2
        await click(20, 2)
        await click(20, 2)
        assert screen.session.outline.is_closed[1]
        await click(20, 2)
        assert screen.session.outline.is_open[1]
        await screen.press("home")
        assert screen.lines[4].lstrip(" ▌").startswith("▾ grows")
        await click(screen.lines[4].index("▾"), 2)
        assert screen.session.cursor == 1
        assert screen.session.outline.is_closed[1]

    drive(steps)


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
def test_a_click_on_a_title_orders_by_the_column_and_another_one_reverses(size):
    async def steps(screen):
        titles = {"p=128": "value", "p=32": "measured", "95% band": "high", "trust": "trust",
                  "call path": "name", "growth": "growth"}  # fmt: skip
        header = screen.lines[2]
        shown = {title: sort for title, sort in titles.items() if title in header}
        assert len(shown) > 3
        for title, sort in shown.items():
            for x in (header.index(title), header.index(title) + len(title) - 1):
                screen.session.sort, screen.session.reverse = screen.session.forecast.sorts[3], True
                await screen.pilot.click("TreeTable", offset=(x, 0))
                assert (screen.session.sort, screen.session.reverse) == (sort, False)
        await screen.pilot.click("TreeTable", offset=(header.index("p=128"), 0))
        await screen.pilot.click("TreeTable", offset=(header.index("p=128"), 0))
        assert screen.session.reverse
        screen.says("by value, smallest first")

    drive(steps, size=size)


def test_the_wheel_scrolls_and_the_next_key_comes_back_to_the_cursor():
    many = {"main": [1.0] * 5} | {f"main/f{k}": [2.0 + k] * 5 for k in range(60)}

    async def steps(screen):
        await screen.press("home")
        screen.says("f59")
        for _ in range(3):
            screen.app.table.post_message(wheel(MouseScrollDown))
            await screen.press()
        assert not any("▌" in line for line in screen.lines)
        assert screen.session.cursor == 0
        await screen.press("j")
        assert screen.session.cursor == 1
        screen.says("▌")

    drive(steps, fitted(many))


def test_ascii_is_ascii():
    async def steps(screen):
        for keys in ("", "2", "3", "1E", "g", "?", "q", "y"):
            await screen.press(*keys)
            assert "\n".join(screen.lines).isascii(), "\n".join(screen.lines)

    for size in ((80, 24), (160, 50)):
        drive(steps, size=size, given=replace(GIVEN, style=TextStyle(ascii_only=True)))


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
        assert titles(screen)[0].endswith("  exclusive imbalance 1.50 at p = 16")
        await screen.press("h", "l", "down")
        screen.says("  imbalance 1.50 at p = 16")
        await screen.press("home", "end")
        assert not any("imbalance" in line for line in screen.lines)

    async def narrower(screen):
        assert titles(screen) == ["main/grows"]

    async def beside(screen):
        screen.says("imbalance  p = 2: 1.50, 4:")
        assert not any("exclusive imbalance" in line for line in screen.lines)

    drive(narrow, times)
    drive(narrower, times, size=(60, 24))
    drive(beside, times, size=(160, 50))


def test_under_strong_scaling_the_last_line_says_where_the_program_is_fastest():
    p = np.array(POINTS)
    falling = fitted({"main": list(1000 / p), "main/f": list(0.001 * p)}, scaling=Scaling.STRONG)

    async def steps(screen):
        screen.says("fastest about p = 1000")
        await screen.press("t", *"64", "enter")
        assert "fastest" not in screen.lines[-2]
        await screen.press("t", *"inf", "enter")
        screen.says("fastest about p = 1000")

    drive(steps, falling, target=65536.0)


def test_what_was_asked_to_be_left_out_is_named_where_there_is_room():
    whole = fitted(VALUES)
    finding = Finding("CPM139", "call paths", "2 call paths")
    left = replace(whole, experiment=replace(whole.experiment, findings=(finding,)))

    async def steps(screen):
        screen.says("excluded: 2 call paths")
        await screen.press("t", *"inf", "enter")
        screen.says("excluded: 2 call paths")

    drive(steps, left, size=(160, 50))


def test_what_there_is_no_room_for_does_not_look_as_if_it_had_ended():
    async def steps(screen):
        report = report_of(screen.session)
        narrow = 28  # too narrow for a chart, whose height depends on that of the pane
        whole = [row.plain for row in pane(report, narrow, 90, beside=True).part(0)]
        for height in range(3, len(whole)):
            made = pane(report, narrow, height, beside=True)
            *above, last = (row.plain for row in made.part(0))
            assert above == whole[: height - 1]
            assert last.endswith(" …")
            assert len(last) <= narrow
            assert [row.plain for row in made.part(1000)][-1] == whole[-1]
            assert made.text.splitlines() == [line.rstrip() for line in whole]

    drive(steps)


@pytest.mark.parametrize("size", [(80, 24), (130, 14)])
def test_the_description_scrolls_by_keys_and_by_the_mouse_and_begins_again_elsewhere(size):
    async def steps(screen):
        box = screen.app.query_one(Pane)

        def shown():
            rows = range(box.content_region.y, box.content_region.bottom)
            return [screen.lines[y][box.content_region.x :] for y in rows]

        await screen.press("home", "l", "l")
        first = shown()
        seen = list(first)
        for _ in range(30):
            await screen.press("ctrl+d")
            seen += shown()
        last = shown()
        assert last != first
        assert last[0] == first[0]
        for line in box.shown.lines:
            assert any(line.plain[:20].rstrip() in one for one in seen)
        for _ in range(30):
            await screen.press("ctrl+u")
        assert shown() == first
        await screen.press("ctrl+d", "j")
        assert box.first == 0
        await screen.press("k")
        assert shown() == first
        box.post_message(wheel(MouseScrollDown))
        await screen.press()
        assert box.first == min(3, box.shown.furthest)
        box.post_message(wheel(MouseScrollUp))
        await screen.press()
        assert shown() == first

    drive(steps, size=size)


def wheel(kind):
    return kind(None, 1, 1, 0, 1, 0, False, False, False, 1, 1)


@pytest.mark.parametrize("size", [(80, 24), (80, 10), (160, 50)])
def test_the_description_is_copied_whole(size):
    async def steps(screen):
        await screen.press("Y")
        copied = screen.app.clipboard
        assert copied.startswith("main/grows")
        assert "time(p) = " in copied
        assert "called by" in copied
        screen.says(f"{len(copied.splitlines())} lines of the description")

    drive(steps, size=size)
