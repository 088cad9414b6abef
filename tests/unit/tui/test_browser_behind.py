"""Other targets and metrics: threads compute them while the screen remains."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import numpy as np
from driver import GIVEN, drive, usual
from test_session import VALUES, text

from callpath_modeler.analysis.forecast import forecast
from callpath_modeler.errors import UsageError
from callpath_modeler.tui.session import Session
from synthetic import fitted


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

    def models_of(name, _):
        if name == "ratio":
            raise UsageError("no view: ratio does not add up over call paths")
        return {"visits": visits, "time": times}[name]

    async def steps(screen):
        await screen.press("m")
        screen.says("visits, inclusive")
        screen.says("visits; not shown: no view: ratio does not add up")
        await screen.press("m")
        screen.says("time, inclusive")

    drive(steps, times, given=replace(GIVEN, models_of=models_of))


def test_metrics_that_are_zero_everywhere_are_walked_past_unless_all_are():
    times = usual()
    names = ("time", "a", "b", "calls")

    def of(name, value):
        made = fitted({path: [value] * 5 for path in VALUES})
        column = replace(made.experiment.columns["time"], metric=replace(made.metric, name=name))
        declared = dict.fromkeys(names, "")
        experiment = replace(made.experiment, columns={name: column}, declared=declared)
        return replace(made, metric=column.metric, experiment=experiment)

    shown = {name: of(name, 0.0) for name in names[1:]}
    start = replace(times, experiment=replace(times.experiment, declared=dict.fromkeys(names, "")))

    async def past_zero(screen):
        await screen.press("m")
        screen.says("calls; not shown: a is zero; b is zero")

    async def none_but_zero(screen):
        await screen.press("m")
        screen.says("not shown: a is zero; b is zero; calls is zero")
        screen.says("time, inclusive")

    async def zero_only(screen):
        await screen.press("m")
        screen.says("b, inclusive")

    counted = {**shown, "calls": of("calls", 2.0)}
    drive(past_zero, start, given=replace(GIVEN, models_of=lambda name, _: counted[name]))
    drive(none_but_zero, start, given=replace(GIVEN, models_of=lambda name, _: shown[name]))
    zeros = {**shown, "time": of("time", 0.0)}
    drive(zero_only, zeros["a"], given=replace(GIVEN, models_of=lambda name, _: zeros[name]))


def test_a_metric_that_is_the_only_one_stays():
    async def steps(screen):
        await screen.press("m")
        screen.says("time is the only metric")

    drive(steps)


def test_large_programs_are_predicted_in_a_worker_and_end_up_the_same(monkeypatch):
    monkeypatch.setattr("callpath_modeler.tui.app.AT_ONCE", 3)

    async def steps(screen):
        await screen.press("right_square_bracket", "right_square_bracket")
        await screen.press("j")
        shown = screen.session.forecast
        expected = forecast(shown.inputs, 512.0)
        assert shown.target == 512
        assert shown.total == expected.total
        np.testing.assert_array_equal(shown.bands.costs.inclusive, expected.bands.costs.inclusive)
        screen.says("main/grows/MPI_Wait")

    drive(steps)


def test_keys_that_come_while_a_target_is_worked_on_hold(monkeypatch):
    """Views, order and openings may change before values at another target are available."""
    monkeypatch.setattr("callpath_modeler.tui.app.AT_ONCE", 3)
    begun, go_on = threading.Event(), threading.Event()
    usual_forecast = forecast

    def slowly(known, target, *, bands):
        begun.set()
        go_on.wait(10)
        return usual_forecast(known, target, bands=bands)

    async def steps(screen):
        monkeypatch.setattr("callpath_modeler.tui.progressive_forecast.forecast", slowly)
        await screen.pilot.press("right_square_bracket")
        await asyncio.to_thread(begun.wait, 10)
        screen.says("working")
        assert screen.session.forecast.target == 128
        await screen.pilot.press("home", "E", "s", "s", "3")
        go_on.set()
        await screen.press("1")
        expected = Session(usual_forecast(screen.session.forecast.inputs, 256.0))
        expected.go(0)
        for change in ("open_all", "sort_next", "sort_next"):
            getattr(expected, change)()
        assert screen.session.forecast.target == 256
        assert text(screen.session) == text(expected)
        assert screen.session.check().holds
        assert screen.session.view_request() == expected.view_request()

    drive(steps)
