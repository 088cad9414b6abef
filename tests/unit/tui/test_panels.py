"""Answers of other commands in the browser: prompts, panels, and the return from them."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from driver import GIVEN, answer, drive
from test_session import VALUES, text
from textual.events import Key

from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.report.layout import TextStyle
from cells import cells


def test_enter_in_a_panel_goes_to_the_call_path():
    async def steps(screen):
        await screen.press("2", "x", "enter")
        screen.says("asked: expectations.toml")
        screen.says("what stands above")
        screen.says("▌0 main")
        await screen.press("j", "down", "down", "up")
        screen.says("▌2 main/grows/MPI_Wait")
        await screen.press("enter")
        assert screen.session.kind is ViewKind.TOP_DOWN
        assert text(screen.session)[screen.session.cursor] == "    MPI_Wait>"

    drive(steps)


def test_expectations_are_asked_for_by_the_file_that_is_near():
    async def steps(screen):
        await screen.press("x", "enter")
        screen.says("asked: expectations.toml")
        await screen.press("y")
        screen.says("check expectations.toml 128")
        await screen.press("q")
        screen.says("asked: expectations.toml")
        await screen.press("q")
        screen.says("[1 top-down]")
        assert screen.app.is_running

    drive(steps)


def test_the_values_of_ranks_are_of_the_node_under_the_cursor():
    async def steps(screen):
        await screen.press("r", "y")
        names, rows = screen.session.view.names(screen.session.node), [screen.session.node]
        screen.says(f"show {'/'.join(names)} {rows} True")
        await screen.press("q", "q", "3", "i", "r", "y")
        node = screen.session.node
        rows = screen.session.view.rows(node).tolist()
        screen.says(f"show {screen.session.view.name(node)} {rows} True")

    drive(steps)


def test_what_cannot_be_compared_is_said():
    async def steps(screen):
        for key in "dx":
            await screen.press(key, "ctrl+u", *"none", "enter")
            screen.says("none: nothing there (give a path)")
            await screen.press(key, "ctrl+u", *"long", "enter")
            screen.says("said in full")
            await screen.press("q")
        await screen.press("d", "enter")
        screen.says("[1 top-down]")

    drive(steps)


def test_a_list_longer_than_the_screen_scrolls_and_ends_with_what_stands_below():
    async def steps(screen):
        await screen.press("x", "enter")
        assert not any("what stands below" in line for line in screen.lines)
        await screen.press("end")
        screen.says("▌10 main/late")
        screen.says("what stands below")
        await screen.press("pageup", "pageup", "pageup")
        screen.says("▌0 main")
        await screen.press("pagedown")
        assert not any("▌0 main" in line for line in screen.lines)

    drive(steps, size=(60, 12))


def test_an_entry_about_no_call_path_leads_nowhere():
    async def steps(screen):
        await screen.press("x", "enter", *"j" * list(VALUES).index("main/tiny"), "enter")
        screen.says("▌9 main/tiny")

    drive(steps)


def test_a_call_path_outside_of_the_zoom_and_the_filter_is_gone_to():
    async def steps(screen):
        await screen.press("z", "f", *"main/grows/**", "enter")
        await screen.press("x", "enter", *"j" * list(VALUES).index("main/small/g"), "enter")
        assert text(screen.session)[screen.session.cursor] == "    g>"
        assert screen.session.tree_cursor.start == -1
        assert screen.session.pattern == ""

    drive(steps)


def test_keys_work_while_an_answer_is_waited_for():
    """The panel appears after any keys in the meantime, and the view below is unchanged."""
    go_on = threading.Event()

    def check(name, made):
        go_on.wait(10)
        return answer(name, f"{made.target}")

    async def steps(screen):
        await screen.pilot.press("x", "enter")
        await screen.pilot.press("2", "i")
        screen.says("[2 bottom-up]")
        go_on.set()
        await screen.press()  # the panel is there
        await screen.press("y")
        screen.says("128")
        await screen.press("q", "q")
        screen.says("[2 bottom-up]")

    drive(steps, given=replace(GIVEN, check=check))


def test_a_panel_is_laid_out_again_for_another_size_and_is_ascii_where_asked_for():
    async def steps(screen):
        await screen.press("x", "enter")
        await screen.pilot.resize_terminal(30, 10)
        await screen.pilot.pause()
        assert len(screen.lines) == 10
        screen.says(">0 main")
        assert "\n".join(screen.lines).isascii()

    drive(steps, given=replace(GIVEN, style=TextStyle(ascii_only=True)))


@pytest.mark.parametrize("keys", [("?",), ("x", "enter"), ("y",)])
def test_what_is_below_has_the_size_that_the_terminal_was_given_meanwhile(keys):
    shown = []

    async def steps(screen):
        await screen.press("j")
        shown.append(screen.lines)

    async def resized(screen):
        await screen.press("j", *keys)
        for size in ((50, 12), (150, 40)):
            await screen.pilot.resize_terminal(*size)
            await screen.pilot.pause()
        await screen.press("q")
        await screen.pilot.pause()
        shown.append(screen.lines)

    drive(steps, size=(150, 40))
    drive(resized)
    assert shown[1] == shown[0]


@cells(
    ("opened", "typed", "shown"),
    [
        (("?",), ("q", "2"), "[2 bottom-up]"),
        (("?",), ("q", "q", "2"), ""),
        (("x", "enter"), ("enter", "enter", "enter"), "[1 top-down]"),
        (("x", "enter"), ("q", "2"), "[2 bottom-up]"),
        (("x", "enter"), ("escape", "escape", "3"), "[3 flat]"),
    ],
)
def test_keys_that_come_before_something_over_the_view_is_closed_are_for_the_view(
    opened, typed, shown
):
    characters = {"enter": None, "escape": None}

    async def steps(screen):
        await screen.press(*opened)
        for key in typed:
            screen.app.post_message(Key(key, characters.get(key, key)))
        await screen.press()
        if shown:
            screen.says(shown)
        else:  # the second q quits
            assert not screen.app.is_running or screen.app._exit

    drive(steps)


def test_values_that_come_while_something_stands_over_the_view_are_below_it(monkeypatch):
    monkeypatch.setattr("callpath_modeler.tui.frame.AT_ONCE", 3)

    async def steps(screen):
        await screen.pilot.press("right_square_bracket", "?")
        await screen.press()
        screen.says("Move ")
        await screen.press("q")
        screen.says("p = 256 ")
        assert screen.session.forecast.target == 256
        assert screen.session.forecast.has_bands

    drive(steps)


def test_quitting_does_not_wait_for_what_is_being_read():
    begun, go_on, done = (threading.Event() for _ in range(3))
    waited_for = []

    def check(name, *_):
        waited_for.append(not threading.current_thread().daemon)
        begun.set()
        go_on.wait(10)
        done.set()
        return answer(name, "")

    async def steps(screen):
        await screen.pilot.press("x", "enter")
        await asyncio.to_thread(begun.wait, 10)
        await screen.pilot.press("q")

    drive(steps, given=replace(GIVEN, check=check))
    assert not done.is_set()
    assert waited_for == [False]
    go_on.set()
    assert done.wait(10)
