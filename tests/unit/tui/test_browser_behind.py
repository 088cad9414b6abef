"""Other targets and metrics: threads compute them while the screen remains."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest
from driver import drive
from test_session import text

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.errors import InputError
from callpath_modeler.tui.session import Session


def test_a_metric_that_is_the_only_one_stays():
    async def steps(screen):
        await screen.press("m")
        screen.says("time is the only metric")

    drive(steps)


def test_large_programs_are_predicted_in_a_worker_and_end_up_the_same(monkeypatch):
    monkeypatch.setattr("callpath_modeler.tui.frame.AT_ONCE", 3)

    async def steps(screen):
        await screen.press("right_square_bracket", "right_square_bracket")
        await screen.press("j")
        shown = screen.session.forecast
        expected = answer_at(shown.inputs, 512.0)
        assert shown.target == 512
        assert shown.total == expected.total
        np.testing.assert_array_equal(shown.bands.costs.inclusive, expected.bands.costs.inclusive)
        screen.says("main/grows/MPI_Wait")

    drive(steps)


def test_keys_that_come_while_a_target_is_worked_on_hold(monkeypatch):
    """Views, order and openings may change before values at another target are available."""
    monkeypatch.setattr("callpath_modeler.tui.frame.AT_ONCE", 3)
    begun, go_on = threading.Event(), threading.Event()
    usual_answer = answer_at

    def slowly(known, target, *, bands):
        begun.set()
        go_on.wait(10)
        return usual_answer(known, target, bands=bands)

    async def steps(screen):
        monkeypatch.setattr("callpath_modeler.tui.value_keys.values_at", slowly)
        await screen.pilot.press("right_square_bracket")
        await asyncio.to_thread(begun.wait, 10)
        screen.says("working")
        assert screen.session.forecast.target == 128
        await screen.pilot.press("home", "E", "s", "s", "3")
        go_on.set()
        await screen.press("1")
        expected = Session(usual_answer(screen.session.forecast.inputs, 256.0))
        expected.go(0)
        for change in ("open_all", "sort_next", "sort_next"):
            getattr(expected, change)()
        assert screen.session.forecast.target == 256
        assert text(screen.session) == text(expected)
        assert screen.session.check().holds
        assert screen.session.view_request() == expected.view_request()

    drive(steps)


class Broken:
    """A forecast or a session whose columns are found to be broken when they are used."""

    def __call__(self, *_, **__):
        raise InputError("app.cpm: broken store", hint="make it anew")


def test_a_store_that_proves_broken_behind_the_screen_is_said_on_it(monkeypatch):
    monkeypatch.setattr("callpath_modeler.tui.frame.AT_ONCE", 3)
    monkeypatch.setattr("callpath_modeler.tui.value_keys.values_at", Broken())

    async def steps(screen):
        await screen.press("right_square_bracket")
        screen.says("app.cpm: broken store (make it anew)")

    drive(steps)


def test_a_store_that_proves_broken_on_the_screen_ends_the_browser_with_its_error(monkeypatch):
    async def steps(screen):
        monkeypatch.setattr(screen.session, "turn_round", Broken())
        browsers.append(screen.app)
        await screen.pilot.press("S")

    browsers = []
    with pytest.raises(InputError, match="broken store") as caught:
        drive(steps)
    assert browsers[0].failure is caught.value
