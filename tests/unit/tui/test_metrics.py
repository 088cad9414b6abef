"""The list of metrics under the key `m`."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from driver import GIVEN, drive
from test_session import VALUES

from callpath_modeler.errors import DataError
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.layout import Listing
from callpath_modeler.tui.choices import metric_total
from synthetic import experiment, fitted

NAMES = ("time", "visits", "bytes_sent", "io_bytes", "ratio", "broken")
METRICS = {
    "time": Metric("time", "s", "run time"),
    "visits": Metric("visits", "1", "number of calls"),
    "bytes_sent": Metric("bytes_sent", "B"),
    "io_bytes": Metric("io_bytes", "B"),
    "ratio": Metric("ratio", "1", additive=False),
}
DECLARED = {**dict.fromkeys(NAMES, ""), "derived": "cannot be read"}
COST = {"visits": 2.0, "bytes_sent": 3e6, "io_bytes": 0.0, "ratio": 1.0}


def runs_of(name):
    """Return runs with the cost of a metric in every call path; `broken` cannot be read."""
    if name == "broken":
        raise DataError("broken: the file ends too early")
    made = experiment({path: [COST[name]] * 5 for path in VALUES}, metric=METRICS[name])
    return replace(made, declared=DECLARED)


def models_of(name, _):
    made = fitted({path: [COST[name]] * 5 for path in VALUES}, metric=METRICS[name])
    return replace(made, experiment=replace(made.experiment, declared=DECLARED))


GIVEN_METRICS = replace(GIVEN, runs_of=runs_of, models_of=models_of)


@pytest.fixture
def times():
    made = fitted(VALUES)
    return replace(made, experiment=replace(made.experiment, declared=DECLARED))


@pytest.fixture
def given(times):
    def runs(name):
        return times.experiment if name == "time" else runs_of(name)

    def models(name, pair):
        return times if name == "time" else models_of(name, pair)

    return replace(GIVEN, runs_of=runs, models_of=models)


def listed(screen):
    """Return the names in the list, and the marked one with `>`."""
    lines = [line for line in screen.lines[2:] if line[1:].split(" ")[0] in NAMES]
    return [line[:1].replace("▌", ">").strip() + line[1:].split(" ")[0] for line in lines]


def test_the_list_has_the_totals_of_metrics_with_values_and_says_what_is_left_out(times, given):
    async def steps(screen):
        await screen.press("m")
        assert listed(screen) == [">time", "visits", "bytes_sent"]
        screen.says("total at p = 32")
        total = float(np.sum([law[-1] for law in VALUES.values()]))
        screen.says(GIVEN.style.amount(total, "s"))
        screen.says("number of calls")
        amounts = {name: GIVEN.style.amount(COST[name] * len(VALUES), METRICS[name].unit)
                   for name in ("visits", "bytes_sent")}  # fmt: skip
        for name, amount in amounts.items():
            assert [amount in line for line in screen.lines if f" {name} " in line] == [True]
        screen.says("not listed: io_bytes is zero; ratio does not add up over call paths")
        screen.says("the file ends too early")
        assert not any("derived" in line for line in screen.lines)

    drive(steps, times, given=given)


def test_enter_shows_the_metric_and_escape_changes_nothing(times, given):
    async def steps(screen):
        await screen.press("m", "down", "down", "up", "enter")
        screen.says("visits, inclusive")
        await screen.press("m")
        assert listed(screen) == ["time", ">visits", "bytes_sent"]
        await screen.press("up", "escape")
        screen.says("visits, inclusive")
        await screen.press("m", "up", "enter")
        screen.says("time, inclusive")

    drive(steps, times, given=given)


def test_letters_are_a_filter_of_the_list(times, given):
    async def steps(screen):
        await screen.press("m", *"BYTES", "q")
        screen.says("no metric contains 'BYTESq'")
        await screen.press("enter")
        await screen.press("backspace")
        assert listed(screen) == [">bytes_sent"]
        await screen.press("enter")
        screen.says("bytes_sent, inclusive")

    drive(steps, times, given=given)


def test_the_list_can_be_used_before_all_totals_are_known(times):
    go_on, asked = threading.Event(), []

    def slowly(name):
        asked.append(name)
        go_on.wait(10)
        return times.experiment if name == "time" else runs_of(name)

    async def steps(screen):
        await screen.pilot.press("m")
        await screen.pilot.pause()
        assert len(listed(screen)) == len(NAMES)
        await screen.pilot.press(*"visits")
        assert listed(screen) == [">visits"]
        screen.says("…")
        await screen.pilot.press("enter")
        go_on.set()
        await screen.press()
        screen.says("visits, inclusive")
        await screen.press("m")
        assert listed(screen) == ["time", ">visits", "bytes_sent"]
        before = len(asked)
        await screen.press("escape", "m")
        assert len(asked) == before

    given = replace(GIVEN, runs_of=slowly, models_of=models_of)
    drive(steps, times, given=given)


def test_totals_that_come_before_the_list_is_laid_out_keep_the_shown_metric_marked(times, given):
    async def steps(screen):
        await screen.press("m", "down", "enter")
        await screen.press("m")
        opened = screen.pilot.app.screen
        opened._listing, opened._at = Listing([], [], []), 0
        opened.add("time", opened._known["time"])
        assert opened.chosen == "visits"

    drive(steps, times, given=given)


def test_the_mouse_chooses_a_metric(times, given):
    async def steps(screen):
        await screen.press("m")
        await screen.pilot.click(offset=(3, 3))
        assert listed(screen) == ["time", ">visits", "bytes_sent"]
        await screen.pilot.click(offset=(3, 3))
        await screen.press()
        screen.says("visits, inclusive")

    drive(steps, times, given=given)


def test_the_list_is_ascii_and_fits_a_small_screen(times, given):
    ascii_only = replace(given, style=replace(given.style, ascii_only=True))

    async def steps(screen):
        await screen.press("m")
        assert "\n".join(screen.lines).isascii()
        assert len(screen.lines) == 8
        assert max(map(len, screen.lines)) <= 40
        await screen.press("end", "home")
        assert listed(screen)[0] == ">time"

    drive(steps, times, given=ascii_only, size=(40, 8))


def test_a_total_is_the_sum_of_the_centres_at_the_scale():
    nan = float("nan")
    made = experiment({"main": [[1, 2, 6], [10, 20, 60], [nan, 7, nan]],
                       "main/f": [[1, 1, 1], [0, nan, 0], [nan, nan, nan]]},
                      points=(2, 4, 8))  # fmt: skip

    def total(at, runs=made, how="median"):
        return metric_total(lambda _: runs, "time", at, how)

    assert [total({"p": p}).total for p in (2.0, 4.0, 8.0)] == [3.0, 20.0, 7.0]
    assert total({"p": 2.0}, how="mean").total == 4.0
    assert total({"p": 8.0, "unknown": 1.0}).total == 7.0
    assert np.isnan(total({"p": 16.0}).total)
    zero = MetricValues(made.metric(), np.zeros((2, 9)), np.zeros(9))
    assert total({"p": 2.0}, replace(made, columns={"time": zero})) == "time is zero"
