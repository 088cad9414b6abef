"""Keys of the browser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from driver import GIVEN, drive
from test_session import VALUES, text
from textual.events import Key

from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.profile.schema import Metric
from synthetic import fitted


def test_keys_move_open_and_close():
    async def steps(screen):
        await screen.press("home", "C", "l", "down", "down")
        assert text(screen.session) == [
            "-main", "  +grows", "  MPI_Wait>", "  ... 3"
        ]  # fmt: skip
        await screen.press("home", "E")
        assert "  -grows" in text(screen.session)
        await screen.press("end", "enter")
        screen.says(". shows nodes with a small share")
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
        screen.says("measured, 1 run")
        await screen.press("t", *"inf", "enter")
        screen.says("shares in the limit")
        await screen.press("right_square_bracket")
        screen.says("the target is infinity: press t to type another")
        await screen.press("t", *"-1", "enter")
        screen.says("target -1 is not positive (e.g. 4096)")
        await screen.press("t", "escape")
        assert screen.session.forecast.target == np.inf
        assert screen.app.focused is screen.app.table

    drive(steps)


STEP = {
    "main": [[5.0, 5.1]] * 5,
    "main/step": [[1.0, 1.1], [1.0, 1.1], [9.0, 9.1], [1.0, 1.1], [1.0, 1.1]],
}
"""Two runs of each scale; no model contains the step at p = 8."""


def test_a_key_shows_what_models_say_of_a_target_that_was_run_and_what_was_measured_again():
    async def steps(screen):
        screen.says("p = 8 ")
        screen.says("mean of 2 runs")
        assert "p predicted" in screen.lines[-1]
        await screen.press("p")
        screen.says("values are predicted; p shows measured values")
        screen.says("2 runs there")
        assert "p measured" in screen.lines[-1]
        assert screen.session.forecast.inputs.predicted
        await screen.press("y")
        screen.says("views top-down 8 time --predicted")
        await screen.press("x", "right_square_bracket", "left_square_bracket")
        screen.says("2 runs there")
        await screen.press("p")
        screen.says("mean of 2 runs")
        await screen.press("y")
        assert not any("--predicted" in line for line in screen.lines)

    drive(steps, fitted(STEP), target=8.0, size=(120, 30))


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
def test_where_no_runs_are_to_be_had_the_key_says_so_and_is_not_offered(size):
    async def steps(screen):
        assert "p predicted" not in screen.lines[-1]
        await screen.press("p")
        screen.says("p = 12 was not run, so values are predicted")
        assert not screen.session.forecast.inputs.predicted
        await screen.press("t", "4", "enter")
        assert "p predicted" in screen.lines[-1]

    drive(steps, fitted(STEP), target=12.0, size=size)


def test_a_second_metric_is_shown_measured_or_predicted_like_the_first():
    async def steps(screen):
        await screen.press("p", "m", "down", "enter")
        assert screen.session.forecast.inputs.predicted
        screen.says("cpu_time, inclusive")
        screen.says("2 runs there")

    second = fitted(STEP, metric=Metric("cpu_time", "s"))
    given = replace(GIVEN, models_of=lambda *_: second, runs_of=lambda _: second.experiment)
    drive(steps, two_metrics(fitted(STEP)), target=8.0, given=given, size=(120, 30))


def two_metrics(fit):
    declared = {**fit.experiment.declared, "cpu_time": ""}
    return replace(fit, experiment=replace(fit.experiment, declared=declared))


def test_what_is_typed_at_once_is_for_the_prompt_that_its_first_key_opens():
    async def steps(screen):
        for key, character in (
            ("slash", "/"),
            *((letter, letter) for letter in "grows"),
            ("enter", None),
        ):
            screen.app.post_message(Key(key, character))
        await screen.press()
        screen.says("grows: 1 of 2")
        await screen.press("f", *"**/", *"dfwxt", "enter")
        screen.says("no call path matches '**/dfwxt'")

    drive(steps)


def test_keys_that_open_prompts_do_nothing_where_something_else_is_over_the_view():
    async def steps(screen):
        await screen.press("question_mark", "d")
        assert not screen.app.query_one("#prompt").display
        screen.says("p = 128")

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
        screen.says("MPI: 1 of 3 (n N next, previous)")
        at = screen.session.node
        await screen.press("n")
        screen.says("MPI: 2 of 3")
        second = screen.session.node
        assert second != at
        await screen.press("home")
        screen.says("MPI: 3 found")
        await screen.press("N")
        assert screen.session.node == at
        screen.session.select(second)
        await screen.press("n")
        screen.says("MPI: 3 of 3")
        await screen.press("slash", *"xyz", "enter")
        screen.says("no name contains 'xyz'")
        await screen.press("n")
        screen.says("there is no search yet: press /")

    drive(steps)


def test_matches_of_a_search_are_marked_until_it_ends():
    def marked(screen):
        table = screen.app.table
        strips = [table.render_line(y) for y in range(table.size.height)]
        return [[part.text for part in strip if part.style and part.style.underline]
                for strip in strips]  # fmt: skip

    async def steps(screen):
        assert not any(marked(screen))
        await screen.press("slash", *"mpi_W", "enter")
        screen.says("mpi_W: 1 of ")
        shown = marked(screen)
        assert {part for parts in shown for part in parts} == {"MPI_W"}
        for line, parts in zip(screen.lines[2:], shown, strict=False):
            assert len(parts) == line.count("MPI_W")
        await screen.press("escape")
        assert not any(marked(screen))
        assert not any("mpi_W: " in line for line in screen.lines)

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
        screen.says("no single callee has most of the cost of this node")

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


def test_a_text_that_has_no_room_is_shown_in_parts():
    async def steps(screen):
        await screen.press("?")
        screen.says("any key: more")
        assert max(map(len, screen.lines)) <= 60
        await screen.press("z")
        screen.says("part of the whole program")
        await screen.press("z")
        screen.says("[1 top-down]")
        await screen.press("?", "q")
        screen.says("[1 top-down]")

    drive(steps, size=(60, 20))


def test_a_key_that_closes_a_text_does_nothing_else():
    async def steps(screen):
        await screen.press("?", "q")
        screen.says("[1 top-down]")
        await screen.press("?", "3")
        screen.says("[1 top-down]")

    drive(steps)


def test_at_a_measured_target_the_screen_says_so_and_how_far_models_are_off():
    random = np.random.default_rng(1)
    values = {
        name: np.array(law)[:, None] * np.exp(0.01 * random.standard_normal((5, 3)))
        for name, law in VALUES.items()
    }

    async def steps(screen):
        screen.says("(mean of 3 runs)")
        assert "mean of 3 runs" in screen.lines[1]
        assert "models: " in screen.lines[1]
        assert "95% interval" in screen.lines[2]
        assert "model" in screen.lines[2]
        await screen.press("right_square_bracket")
        assert "measured" not in screen.lines[1]
        assert "95% band" in screen.lines[2]
        await screen.press("left_square_bracket", "left_square_bracket")
        assert "mean of 3 runs" in screen.lines[1]
        assert screen.session.forecast.target == 16

    drive(steps, fitted(values), target=32.0, size=(100, 24))


def test_a_browser_that_asks_models_does_so_at_every_target():
    random = np.random.default_rng(1)
    values = {name: np.array(law)[:, None] * random.uniform(1, 1.01, (5, 3))
              for name, law in VALUES.items()}  # fmt: skip

    async def steps(screen):
        assert "3 runs there" in screen.lines[1]
        await screen.press("left_square_bracket")
        assert "3 runs there" in screen.lines[1]
        assert screen.session.forecast.basis == "predicted"

    drive(steps, AnswerInputs(fitted(values), predicted=True), target=32.0)
