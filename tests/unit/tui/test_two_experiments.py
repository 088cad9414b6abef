"""Two experiments in one tree: keys, screens, and the way back to one."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from driver import GIVEN, answer, drive
from test_session import text

from callpath_modeler.analysis.pair_forecast import PairInputs
from callpath_modeler.profile.schema import Metric
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.studies.comparison import differences_of
from callpath_modeler.studies.pipeline import FitOptions, fit
from callpath_modeler.studies.study import Study
from synthetic import experiment
from two_sides import LAWS, P, changed, runs

SLOWER = changed(main__halo__MPI_Send=0.2 * P, main__solve=0.05 + 0 * P)
SLOWER = {path: law for path, law in SLOWER.items() if path != "main/io"}
SLOWER |= {"main/output": 0.4 + 0 * P, "main/output/MPI_File_write": 0.05 * P}
OLD = {"main": 1.0, "main/solve": 4.0, "main/solve/MPI_Wait": 0.5, "main/io": 0.4}
NEW = {"main": 1.0, "main/solve": 6.0, "main/solve/MPI_Wait": 0.5, "main/output": 0.3}


VISITS = Metric("visits", "1")


def with_visits(fitted):
    """The same experiment with a second metric to choose."""
    declared = {"time": "", "visits": ""}
    return replace(fitted, experiment=replace(fitted.experiment, declared=declared))


def models(laws, seed):
    return fit(runs(laws, seed), None, FitOptions())


@pytest.fixture(scope="module")
def series():
    """Models of the base and of the new experiment."""
    return models(LAWS, 1), models(SLOWER, 2)


def beside(base, **given):
    """The services of a browser that compares with `base`, whatever the path."""

    def compare(name, fitted, predicted):
        answer(name, "")
        names = ("app.old", "app.new")
        return PairInputs(fitted, differences_of(base, fitted), names, predicted=predicted)

    return replace(GIVEN, compare=compare, **given)


def single(costs):
    made = experiment({path: [cost] for path, cost in costs.items()}, (64.0,))
    return made, Study(made).measured()


def test_a_key_opens_two_experiments_in_the_view_on_the_screen_and_leads_back(series):
    base, new = series

    async def steps(screen):
        await screen.press("3", "d", *"old", "enter")
        screen.says("base app.old · new app.new")
        screen.says("[3 flat]")
        screen.says("difference")
        assert text(screen.app.session)[0] == "MPI_Send>"
        await screen.press("d", "ctrl+u", "enter")
        assert screen.app.session is screen.session
        screen.says("95% band")
        assert not any("difference" in line for line in screen.lines)
        await screen.press("d", "enter")
        assert screen.app.session is screen.session

    drive(steps, new, given=beside(base))


def test_an_experiment_that_cannot_be_read_leaves_two_as_they_are(series):
    base, new = series

    async def steps(screen):
        await screen.press("d", *"old", "enter", "d", "ctrl+u", *"none", "enter")
        screen.says("none: nothing there")
        screen.says("base app.old")

    drive(steps, new, given=beside(base))


def test_the_target_of_two_experiments_is_moved_and_typed(series):
    base, new = series

    async def steps(screen):
        await screen.press("d", *"old", "enter", "right_square_bracket")
        assert screen.app.session.forecast.scale == 256
        screen.says("p = 256 ")
        await screen.press("t", *"32", "enter")
        screen.says("p = 32 ")
        screen.says("measured")
        assert screen.app.session.forecast.found[0].is_measured
        await screen.press("p")
        screen.says("values are predicted; p shows measured values")
        assert not screen.app.session.forecast.found[0].is_measured
        await screen.press("t", *"inf", "enter")
        assert screen.app.session.forecast.scale == 32
        await screen.press("y")
        screen.says("prints this view")

    drive(steps, new, size=(140, 40), given=beside(base))


def test_search_filter_order_zoom_and_small_lines_work_as_with_one(series):
    base, new = series

    async def steps(screen):
        await screen.press("d", *"old", "enter", "slash", *"mpi_", "enter")
        screen.says("mpi_: 1 of 3")
        await screen.press("escape", "f", *"**/MPI_Wait", "enter")
        shown = [line.strip(" -+>") for line in text(screen.app.session)]
        assert shown == ["main", "solve", "MPI_Wait", "... 3"]
        await screen.press("f", "ctrl+u", "enter", "s", "s", "s", "s")
        screen.says("by name")
        await screen.press("s", "S")
        screen.says("by difference, smallest first")
        await screen.press("i", "home", "C")
        screen.says("time, exclusive")
        await screen.press("z", "E")
        screen.says("zoomed to main")
        assert screen.app.session.check().holds
        await screen.press("g")
        screen.says("colours show losses and gains")
        await screen.press("b")
        screen.says("two experiments are compared at one scale")

    drive(steps, new, given=beside(base))


def test_the_hot_path_of_the_loss_is_followed_by_a_key(series):
    base, new = series

    async def steps(screen):
        await screen.press("d", *"old", "enter", "home", "C", "H")
        view = screen.app.session.view
        assert view.names(screen.app.session.node) == ("main", "halo", "MPI_Send")

    drive(steps, new, given=beside(base))


def test_another_metric_is_compared(series):
    base, new = series
    other = {path: 10 * law for path, law in LAWS.items()}
    of_visits = [
        fit(runs(laws, k, metric=VISITS), None, FitOptions())
        for k, laws in enumerate((LAWS, other))
    ]
    new = with_visits(new)

    def compare(_, fitted, predicted):
        before = of_visits[0] if fitted.metric == VISITS else base
        return PairInputs(fitted, differences_of(before, fitted), ("a", "b"), predicted=predicted)

    async def steps(screen):
        await screen.press("d", *"old", "enter", "m", "down", "enter")
        screen.says("visits, inclusive")
        screen.says("10.")
        await screen.press("d", "ctrl+u", "enter")
        screen.says("time, inclusive")

    given = replace(
        GIVEN,
        compare=compare,
        models_of=lambda *_: of_visits[1],
        runs_of=lambda _: of_visits[1].experiment,
    )
    drive(steps, new, given=given)


def test_values_of_two_experiments_that_come_late_are_not_shown_with_one(series):
    base, new = series
    go_on, asked = threading.Event(), []
    visited = fit(runs(LAWS, 1, metric=VISITS), None, FitOptions())
    new = with_visits(new)

    def models_of(*_):
        asked.append(go_on.wait(10))
        return visited

    def compare(_, fitted, predicted):
        before = visited if fitted is visited else base
        return PairInputs(fitted, differences_of(before, fitted), ("a", "b"), predicted=predicted)

    async def steps(screen):
        await screen.press("d", *"old", "enter", "m", "down")
        await screen.pilot.press("enter")
        await screen.pilot.press("d", "ctrl+u", "enter")
        assert screen.app.session is screen.session
        go_on.set()
        await screen.press()
        assert asked == [True]
        assert screen.session.forecast.fitted is new
        screen.says("95% band")

    given = replace(
        GIVEN, compare=compare, models_of=models_of, runs_of=lambda _: visited.experiment
    )
    drive(steps, new, given=given)


def test_two_experiments_without_models_say_what_is_lacking():
    (base, _), (new, shown) = single(OLD), single(NEW)

    def compare(_, fitted, predicted):
        return PairInputs(fitted, differences_of(base, new), ("a", "b"), predicted=predicted)

    async def steps(screen):
        await screen.press("d", *"old", "enter", "right_square_bracket")
        screen.says("too few scales for models: base, new")

    drive(steps, shown, target=64.0, given=replace(GIVEN, compare=compare))


def test_losses_and_gains_have_colours_and_doubted_differences_a_sign(series):
    base, new = series

    async def steps(screen):
        await screen.press("d", *"old", "enter")
        page = screen.app.table._laid_out(79)
        for name, colour in (("MPI_Send", "red"), ("solve", "green"), ("MPI_Wait", "")):
            line = next(line for line in page.lines if name in line.plain)
            colours = {str(span.style) for span in line.spans} & {"red", "green"}
            assert colours == ({colour} if colour else set())
            assert ("~" in line.plain) == (not colour)

    drive(steps, new, given=beside(base))


def test_two_experiments_in_ascii(series):
    base, new = series

    async def steps(screen):
        await screen.press("d", *"old", "enter", "E")
        assert "\n".join(screen.lines).isascii()

    given = beside(base, style=TextStyle(ascii_only=True))
    drive(steps, new, size=(160, 50), given=given)


def test_large_programs_are_compared_in_a_thread(series, monkeypatch):
    base, new = series
    monkeypatch.setattr("callpath_modeler.tui.value_keys._PAIRS_AT_ONCE", 3)

    async def steps(screen):
        await screen.press("d", *"old", "enter", "2", "right_square_bracket")
        screen.says("p = 256 ")
        assert screen.app.session.forecast.target == 256
        assert screen.app.session.kind is ViewKind.BOTTOM_UP
        assert np.isfinite(screen.app.session.forecast.whole)

    drive(steps, new, given=beside(base))
