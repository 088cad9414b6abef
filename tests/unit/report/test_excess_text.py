from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from callpath_modeler.analysis.ensemble import losses
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.groups import Costs, Grouping
from callpath_modeler.profile.schema import Metric
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.excess_text import ExcessView
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.table_formats import to_csv, to_json
from cells import cells
from synthetic import chain, experiment

NAN = float("nan")
POINTS = (2, 4, 8)
VALUES = {
    "main": [1.0, 1.0, 1.0],
    "main/slower": [1.0, 2.0, 6.0],
    "main/slower/MPI_Wait": [0.0, 0.0, 1.0],
    "main/faster": [4.0, 3.0, 1.0],
    "main/new": [NAN, NAN, 1.0],
}
WIDE = None


@pytest.fixture(scope="module")
def lost():
    return losses(experiment(VALUES, POINTS))


def text(found, width=WIDE, ascii_only=False, **wanted):
    shown = ExcessView(found, ViewRequest(**wanted))
    lines = shown.text(TextStyle(width=width, ascii_only=ascii_only))
    return [line.plain for line in lines]


def line_of(lines, name):
    (found,) = [line for line in lines if line.rstrip(" …").endswith(name)]
    return found.split()


def test_the_first_line_says_how_much_is_lost_and_where(lost):
    assert text(lost)[0] == (
        "From p = 2 to 8, 40 % of the time is lost: 4.00 s of 10.0 s "
        "(efficiency 60 %). The hot path leads to main/slower: 60 %, own cost and callees."
    )


def test_the_call_path_that_loses_most_by_itself_is_named_where_the_hot_path_ends_above_it():
    found = losses(experiment({"a": [0, 0], "a/b": [1, 2], "a/c": [1, 2], "a/d": [1, 2]}, (2, 4)))
    assert text(found)[0].endswith(
        "leads to a: 50 %, look at the callees. Largest exclusive loss: a/b, 17 %."
    )


def test_every_pair_has_inclusive_and_exclusive_excess_and_gains_are_negative(lost):
    lines = text(lost)
    assert lines[3].split()[:7] == ["p=4", "excl.", "p=8", "excl.", "ensemble", "excl.", "where"]
    assert line_of(lines, "slower")[:5] == ["17", "%", "17", "%", "60"]
    assert line_of(lines, "faster") == [
        "-17",
        "%",
        "-17",
        "%",
        "-30",
        "%",
        "-30",
        "%",
        "-22",
        "%",
        "-22",
        "%",
        "gain",
        "faster",
    ]
    assert line_of(lines, "MPI_Wait") == [
        "0",
        "%",
        "0",
        "%",
        "10",
        "%",
        "10",
        "%",
        "7",
        "%",
        "7",
        "%",
        "itself",
        "MPI_Wait",
    ]
    assert line_of(lines, "total") == ["0", "%", "40", "%", "27", "%", "total"]


def test_one_pair_has_costs_and_efficiency():
    found = losses(experiment(VALUES, POINTS), pair=(2, 8))
    lines = text(found)
    assert lines[3].split() == [
        "p=2",
        "p=8",
        "excess",
        "excl.",
        "efficiency",
        "where",
        "call",
        "path",
    ]
    assert line_of(lines, "slower") == (
        ["1.00", "s", "7.00", "s", "60", "%", "50", "%", "14", "%", "both", ">", "slower"]
    )


def test_where_the_trees_diverge_is_listed(lost):
    lines = text(lost)
    place = lines.index("unmatched: 1 call path at p = 8 only, 10 % of the time there:")
    assert lines[place + 1].split() == ["1.00", "s", "10", "%", "main/new"]
    alike = losses(experiment({"main": [1, 2]}, (2, 4)))
    assert "unmatched: none, all call paths occur at p = 2 and at p = 4" in text(alike)


def test_every_view_ends_in_a_sum_check(lost):
    for kind in ViewKind:
        assert "sum check: the lines add up to the total, 40.00 %" in text(lost, kind=kind)
    lines = text(lost, least=0.35)
    check = "sum check: the lines add up to the total, 40.00 %; 2 call paths without "
    assert f"{check}their own line" in lines
    assert sum(line.endswith("… 2 more") for line in lines) == 1
    closed = text(lost, closed=("main/slower",))
    assert f"{check}its own line".replace("2 call paths", "1 call path") in closed


def test_a_sum_that_fails_is_said_loudly(lost):
    wrong = replace(lost, excess=Costs(lost.excess.exclusive * 2, lost.excess.inclusive))
    assert any(line.startswith("SUM CHECK FAILED") for line in text(wrong, depth=1))


def test_bottom_up_the_function_that_loses_most_by_itself_comes_first(lost):
    lines = text(lost, kind=ViewKind.BOTTOM_UP)
    assert lines[0].endswith("Most is lost in slower, called by main: 50 % exclusive.")
    assert lines[4].split()[-1] == "slower"
    assert lines[5].split()[-1] == "main"
    flat = text(lost, kind=ViewKind.FLAT, inclusive=True)
    assert flat[0].endswith("Most is lost in slower: 60 %.")


def test_a_share_is_that_of_the_function_that_is_named_however_far_the_hot_path_goes():
    calls = {"a": [0, 0], "a/c": [0, 0], "a/c/f": [0, 40], "b": [0, 0], "b/c": [0, 0]}
    calls |= {"b/c/f": [0, 30], "d": [0, 0], "d/f": [0, 30]}
    found = losses(experiment(calls, (2, 4)))
    shown = ExcessView(found, ViewRequest(kind=ViewKind.BOTTOM_UP))
    assert [shown.view.name(node) for node in shown.hot] == ["f", "c", "a"]
    told = text(found, kind=ViewKind.BOTTOM_UP)[0]
    assert told.endswith("Most is lost in f, called by c: 70 % exclusive.")
    told = text(found, kind=ViewKind.FLAT, by=(Grouping.PARADIGM, Grouping.REGION))[0]
    assert told.endswith("Most is lost in compiler/f: 100 % exclusive.")


def test_superlinear_and_perfect_scaling_are_said_in_words():
    gain = losses(experiment({"main": [2, 1]}, (2, 4)))
    assert text(gain)[0] == (
        "From p = 2 to 4 scaling is superlinear: 1.00 s less than with perfect scaling "
        "(excess work -100 %, efficiency 200 %)."
    )
    same = losses(experiment({"main": [1, 1]}, (2, 4)))
    assert text(same)[0] == "From p = 2 to 4 nothing is lost: the efficiency is 100 %."


def test_what_repetitions_do_not_bear_out_is_marked():
    made = {"main": [[1, 3], [2, 4]], "main/f": [[1, 1], [9, 9]]}
    lines = text(losses(experiment(made, (2, 4))))
    assert line_of(lines, "main")[4:8] == ["75", "%", "~8", "%"]
    assert any(line.startswith("~ the repetitions") for line in lines)
    assert not any(line.startswith("~ the repetitions") for line in text(
        losses(experiment({"main": [1, 2]}, (2, 4)))))  # fmt: skip


def test_what_the_mark_means_is_said_where_there_is_one_whichever_scale_it_is_at():
    legend = "~ the repetitions"
    one_run_at_the_largest = {"main": [[1, 3], [2, 4], [8, NAN]]}
    lines = text(losses(experiment(one_run_at_the_largest, POINTS)))
    assert any("~" in line and "main" in line for line in lines)
    assert any(line.startswith(legend) for line in lines)
    clear = {"main": [[1, 1.1], [2, 2.1], [8, 8.1]]}
    assert not any(line.startswith(legend) for line in text(losses(experiment(clear, POINTS))))


def test_a_count_is_not_lost_but_excess():
    sent = Metric("bytes", "B")
    found = losses(experiment({"main": [1, 4]}, (2, 4), metric=sent), "bytes")
    assert text(found)[0].startswith("From p = 2 to 4, 75 % of bytes is excess: 3.00 B of 4.00 B")


@cells("width", [40, 80, 120])
@cells("kind", ViewKind)
def test_no_line_is_wider_than_the_terminal(lost, kind, width):
    lines = text(lost, width, kind=kind)
    assert max(map(cell_len, lines)) <= width
    if width == 40:
        assert any(line.startswith("not shown for lack of space: p=4") for line in lines)


def test_ascii_is_ascii(lost):
    assert "\n".join(text(lost, ascii_only=True, depth=1)).isascii()


def test_the_answer_does_not_depend_on_how_much_is_shown(lost):
    for kind in ViewKind:
        assert text(lost, kind=kind, depth=1, top=1)[0] == text(lost, kind=kind)[0]


def test_chains_of_thousands_of_calls_are_written_in_every_view():
    made = experiment({"f": [1, 2]}, (2, 4))
    cost = np.tile([1.0, 2.0], (5000, 1))
    time = replace(made.columns["time"], exclusive=cost)
    deep = losses(replace(made, tree=chain(5000), columns={"time": time}))
    for kind in ViewKind:
        lines = text(deep, kind=kind, least=0.01)
        assert lines[0].startswith("From p = 2 to 4, 50 % of the time is lost")
        assert max(map(len, lines)) < 400


def test_deep_trees_stay_inside_a_narrow_terminal():
    paths = {"/".join(["f"] * depth): [1, 2] for depth in range(1, 60)}
    lines = text(losses(experiment(paths, (2, 4))), 60)
    assert max(map(cell_len, lines)) <= 60
    assert any("(58) f" in line for line in lines)


def test_machines_get_one_row_per_line_and_pair_in_full_precision():
    found = losses(experiment({**VALUES, "main": [1.0, 1 / 3, 1.0]}, POINTS))
    shown = ExcessView(found, ViewRequest())
    table = shown.table([Finding("CPM113", "time", "one")])
    assert len(table) == 2 * len(VALUES)
    assert table.columns["scale"][:2] == [4, 8]
    at = table.columns["path"].index("main/slower") + 1
    assert table.columns["excess_inclusive"][at] == 6 / 10
    assert table.columns["excess_exclusive"][at] == 5 / 10
    assert table.columns["efficiency"][at] == pytest.approx(1 / 7)
    assert table.columns["reading"][at] == "own cost and callees"
    assert table.columns["is_hot"][at] is True
    assert table.columns["occurs"][table.columns["path"].index("main/new")] == "neither"
    assert table.columns["occurs"][table.columns["path"].index("main/new") + 1] == "scale"
    assert "cost_at_base_inclusive[s]" in to_csv(table).splitlines()[0]
    document = json.loads(to_json(table))
    assert document["schema"] == 1
    assert document["sum_check"]["holds"] is True
    assert document["pairs"][1]["excess"] == pytest.approx(0.4)
    assert document["pairs"][1]["unmatched"][0]["callpath"] == "main/new"
    assert document["hot_path"] == ["main", "slower"]
    assert document["findings"][0]["code"] == "CPM113"
    first = document["rows"][0]
    assert first["cost_at_base_inclusive"] == 6
    assert first["overlap_inclusive"] is None  # no repetitions


def test_what_shares_a_line_is_a_row_that_counts_it(lost):
    table = ExcessView(lost, ViewRequest(top=1, kind=ViewKind.FLAT)).table()
    assert table.columns["path"][::2] == ["slower", "..."]
    assert table.columns["more"][::2] == [0, 4]
    assert table.columns["callpaths"][::2] == [1, 4]
    total = sum(table.columns["excess_exclusive"][1::2])
    assert total == pytest.approx(lost.total[1])


def test_paths_of_callers_begin_with_the_function(lost):
    table = ExcessView(lost, ViewRequest(kind=ViewKind.BOTTOM_UP)).table()
    assert "MPI_Wait/slower/main" in table.columns["path"]
