"""Measured targets in text and machine-readable output."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from rich.cells import cell_len

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.profile.schema import Metric
from callpath_modeler.profile.tree_views import TopDown
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.layout import DEFAULT_STYLE, TextStyle
from callpath_modeler.report.model_tables import graph
from callpath_modeler.report.model_text import model_text
from callpath_modeler.report.node import NodeReport
from callpath_modeler.report.ranking_table import all_rows, ranking_table
from callpath_modeler.report.ranking_text import ShownRanking
from callpath_modeler.report.table_formats import to_json
from callpath_modeler.report.views_text import ForecastView
from cells import cells
from synthetic import POINTS, experiment

P = np.array(POINTS)
NAN = float("nan")
LAWS = {
    "main": 4 + 0 * P,
    "main/odd": np.array([10.0, 16.0, 8.0, 17.0, 9.0]),
    "main/grows": 0.5 * P,
    "main/absent": 2 + 0 * P,
    "main/alone": np.array([NAN, NAN, 6.0, NAN, NAN]),
}
NAMES = list(LAWS)
ODD, ABSENT, ALONE = (NAMES.index(f"main/{name}") for name in ("odd", "absent", "alone"))


def models(repetitions=3, **of_experiment):
    random = np.random.default_rng(3)
    shape = (len(LAWS), len(P), repetitions)
    cube = np.array(list(LAWS.values()))[..., None] * np.exp(0.01 * random.standard_normal(shape))
    cube[ABSENT, 2] = np.nan
    return cpm.fit(experiment(dict(zip(NAMES, cube, strict=True)), P, **of_experiment))


@pytest.fixture(scope="module")
def fit():
    return models()


def text(ranking, width=None, *, ascii_only=False, top=10):
    rows = ranking.order[:top]
    made = ShownRanking(ranking, rows).text(TextStyle(width=width, ascii_only=ascii_only))
    return [line.plain for line in made]


def seen(fit, target, **wanted):
    return ForecastView(answer_at(fit, target), ViewRequest(**wanted))


def node(fit, target, row, *, inclusive=False):
    view = TopDown(fit.experiment.tree)
    return NodeReport(answer_at(fit, target), view, np.array([row]), inclusive)


# The ranking


def test_the_first_line_is_what_was_measured_and_then_what_models_say(fit):
    first = text(rank(fit, 8.0))[0]
    assert first.startswith("app ran 22.0 s at p = 8 (mean of 3 runs, ")
    assert re.search(
        r"odd takes \d+ % and is O\(.*\)\. The models predict .* s \(error [+-][\d.]+ %\); "
        r"they cover 73 % of the cost\.$",
        first,
    )
    assert "could not be modelled" not in first  # it could be measured


def test_call_paths_without_a_model_are_no_deviation_of_those_with_one():
    exact = {"main": 4 + 0 * P, "main/f": 0.5 * P, "main/alone": LAWS["main/alone"]}
    fit = cpm.fit(experiment({name: np.tile(v[:, None], 2) for name, v in exact.items()}, P))
    said = "The models predict 8.00 s (error 0 %); they cover 57 % of the cost."
    view = seen(fit, 8.0).text(DEFAULT_STYLE)
    for lines in (text(rank(fit, 8.0), top=1), [line.plain for line in view]):
        assert lines[0].endswith(said)
        sums = [line for line in lines if line.endswith((" others", " total", " main"))]
        assert len(sums) == 2
        assert all(re.search(r"s  +0 %  ", line) for line in sums), sums


def test_a_total_that_is_zero_in_one_run_has_the_interval_of_the_mean():
    cube = np.tile(P[:, None], 3)
    cube[2, 0] = 0
    fit = cpm.fit(experiment({"main": cube}, P))
    ranking = rank(fit, 8.0)
    lines = text(ranking)
    # The only call path is the program, so that its share says nothing.
    assert re.match(r"app ran [\d.]+ s at p = 8 \(mean of 3 runs, [^;]*; [^;]*\)\.$", lines[0])
    assert "nan" not in "\n".join(lines)
    # The mean of 0, 8 and 8 is 5.33, its error 2.667, and Student's t is 4.303.
    assert shown(ranking, 0)[1].endswith(": 5.33 s (0 … 16.8 s)")
    head = seen(fit, 8.0).text(DEFAULT_STYLE)[0].plain
    assert re.match(
        r"app ran [\d.]+ s at p = 8 \(mean of 3 runs, [^;]*; [^;]*\)\. The hot path", head
    )


def test_a_worst_call_path_without_a_model_is_said_to_have_none():
    laws = {"main": [1.0] * 5, "main/once": [NAN, NAN, 9.0, NAN, NAN]}
    cube = {name: np.tile(np.array(law)[:, None], 2) for name, law in laws.items()}
    first = text(rank(cpm.fit(experiment(cube, P)), 8.0))[0]
    assert "once takes 90 % and has no model." in first


def test_few_marks_at_a_measured_target_leave_the_growth_unknown():
    scattered = np.array(POINTS)[:, None] * np.array([0.1, 0.3, 8.0])
    call_paths = {"main": scattered, "main/f": 1e-3 * scattered}
    ranking = rank(cpm.fit(experiment(call_paths, P)), 32.0)
    assert ranking.repetitions == 3
    assert ranking.call_paths[0].trust[0] <= 1
    assert "main takes 100 %, and its growth is not known." in text(ranking)[0]


def test_where_the_largest_scale_is_the_target_it_has_one_column_and_one_share(fit):
    header, row = text(rank(fit, 32.0))[3:5]
    names = "# p=32 95% interval model share excess growth trust call path"
    assert header.split() == names.split()
    assert "→" not in row
    earlier, row = text(rank(fit, 8.0))[3:5]
    assert earlier.split()[:3] == ["#", "p=32", "p=8"]
    assert "→" in row


def test_the_model_column_says_how_far_it_is_off(fit):
    ranking = rank(fit, 8.0)
    lines = text(ranking)
    (odd,) = [line for line in lines if line.endswith("main/odd")]
    off = ranking.predicted.value[ODD] / ranking.value[ODD] - 1
    assert f"{off:+.0%}".replace("%", " %") in odd
    (alone,) = [line for line in lines if line.endswith("main/alone")]
    assert " -  " in alone
    assert any(line.startswith("model: error") for line in lines)


def test_what_does_not_occur_at_the_target_is_counted(fit):
    ranking = rank(fit, 8.0)
    gained = f"excess -{-100 * ranking.excess.exclusive[ABSENT]:.0f} %"
    note = f"does not occur at p = 8: 1 call path, {gained}; the models predict 2.00 s for them"
    assert note in text(ranking)
    assert "does not occur at p = 32: 1 call path" in text(rank(fit, 32.0))
    full = cpm.fit(experiment({"main": np.full((5, 2), 3.0)}, P))
    assert not any("does not occur" in line for line in text(rank(full, 32.0)))
    assert not any("does not occur" in line for line in text(rank(fit, 8.0, predicted=True)))


def test_what_is_not_modelled_is_counted_with_its_share_at_the_target(fit):
    ranking = rank(fit, 8.0)
    (note,) = [line for line in text(ranking) if line.startswith("not modelled")]
    assert f", {100 * ranking.share[ALONE]:.0f} % of the total (too few points: 1)" in note


def test_one_run_and_asked_for_predictions_are_told_beside_the_prediction(fit):
    once = models(repetitions=1)
    assert re.match(r"app ran 22.0 s at p = 8 \(measured, 1 run; ", text(rank(once, 8.0))[0])
    asked = text(rank(once, 8.0, predicted=True))[0]
    assert " at p = 8 (inside the data; 1 run there: 22.0 s; " in asked
    asked = text(rank(fit, 8.0, predicted=True))
    assert re.search(r" at p = 8 \(inside the data; 3 runs there: 2\d\.\d s; ", asked[0])
    assert "model" not in asked[3]
    # If this is the largest scale, the output shows the measurement as well.
    largest = text(rank(fit, 32.0, predicted=True))[3].split()
    assert largest[1:3] == ["p=32", "predicted"]


@cells("target", [8.0, 32.0])
@cells("width", [60, 80, 120])
@cells("ascii_only", [False, True])
def test_no_line_is_wider_than_the_terminal_and_the_interval_stays(fit, target, width, ascii_only):
    lines = text(rank(fit, target), width, ascii_only=ascii_only)
    assert max(map(cell_len, lines)) <= width
    assert any("95% interval" in line for line in lines)
    assert not ascii_only or all(line.isascii() for line in lines)


def test_a_metric_that_does_not_add_up_is_worst_where_it_was_measured():
    fit = models(metric=Metric("imbalance", "1", additive=False))
    lines = text(rank(fit, 8.0))
    assert lines[0].startswith("At p = 8 (mean of 3 runs): odd is worst, 8.")
    assert "The models predict" not in lines[0]


def test_machines_are_told_what_each_number_is_based_on_and_what_models_say(fit):
    ranking = rank(fit, 8.0)
    columns = ranking_table(ranking).columns
    rows = all_rows(ranking).tolist()
    assert sorted(rows) == list(range(len(NAMES)))
    assert columns["rank"] == [1, 2, 3, 4, None]
    assert columns["basis"] == ["measured"] * 4 + [None]
    at_absent = rows.index(ABSENT)
    assert np.isnan(columns["value_at_target"][at_absent])
    assert columns["predicted"][at_absent] == pytest.approx(2, rel=0.05)
    assert columns["value_at_target"][rows.index(ODD)] == ranking.value[ODD]
    assert columns["predicted"][rows.index(ODD)] == ranking.predicted.value[ODD]
    assert columns["growth"][rows.index(ALONE)] is None
    assert columns["model"][rows.index(ALONE)] is None
    document = json.loads(to_json(ranking_table(ranking)))
    assert (document["basis"], document["repetitions"]) == ("measured", 3)
    assert document["total"]["predicted"] == pytest.approx(ranking.predicted_total)
    assert {"predicted", "predicted_low", "predicted_high"} <= set(document["units"])


def test_what_a_call_path_that_does_not_occur_cost_before_is_gained(fit):
    ranking = rank(fit, 8.0)
    table, base = ranking_table(ranking).columns, fit.measured[ABSENT, 0]
    absent = all_rows(ranking).tolist().index(ABSENT)
    assert table["loss"][absent] == pytest.approx(-base)
    assert table["excess_exclusive"][absent] == pytest.approx(-base / ranking.total[0])
    rest = [found for found in table["excess_exclusive"] if not np.isnan(found)]
    assert sum(rest) == pytest.approx(ranking.excess.inclusive[0])
    predicted = ranking_table(rank(fit, 64.0)).columns
    assert np.isnan(predicted["loss"][all_rows(rank(fit, 64.0)).tolist().index(ALONE)])


def test_where_models_answer_the_columns_of_their_predictions_say_the_same(fit):
    columns = ranking_table(rank(fit, 64.0)).columns
    for ours, theirs in (("value_at_target", "predicted"), ("low", "predicted_low"),
                         ("high", "predicted_high")):  # fmt: skip
        np.testing.assert_array_equal(columns[ours], columns[theirs])
    assert set(columns["basis"]) == {"predicted", None}


def test_graphs_have_what_was_measured_and_what_models_say(fit):
    ranking = rank(fit, 8.0)
    nodes = graph(ranking).nodes
    odd = nodes[fit.experiment.tree.ids()[ODD]]
    assert odd["value_at_target"] == ranking.value[ODD]
    assert odd["predicted"] == ranking.predicted.value[ODD]
    assert not nodes[fit.experiment.tree.ids()[ALONE]].get("growth")


# One call path


def shown(ranking, row):
    return model_text(ranking, row, style=TextStyle(width=100), linear=False)


def test_a_call_path_is_shown_as_measured_and_then_how_far_its_model_is_off(fit):
    ranking = rank(fit, 8.0)
    _, measured, model, *_ = shown(ranking, ODD)
    assert re.match(r"at p = 8 \(mean of 3 runs\): \d\.\d\d s \(\d\.\d\d .* \d\.\d\d s\)", measured)
    off = ranking.predicted.value[ODD] / ranking.value[ODD] - 1
    assert f"error {off:+.0%}".replace("%", " %") in model


def test_the_sign_of_the_target_is_at_what_was_measured(fit):
    ranking, far = rank(fit, 8.0), rank(fit, 8.0, predicted=True)
    places = []
    for one in (ranking, far):
        lines = [line for line in shown(one, ODD) if "┤" in line or "│" in line]
        places.append(next(k for k, line in enumerate(lines) if "◆" in line))
    assert places[0] > places[1]  # lower than any prediction


def test_a_call_path_that_does_not_occur_at_the_target_is_shown_so(fit):
    lines = shown(rank(fit, 8.0), ABSENT)
    assert lines[1] == "at p = 8 (mean of 3 runs): it did not occur"
    assert ", error " not in lines[2]


def test_excess_work_that_is_nothing_has_no_sign():
    law = np.array([4.0, 4.0, 4.0, 4.0, 3.9999])
    laws = {"main": law, "main/grows": 0.5 * P}
    fit = cpm.fit(experiment({name: np.tile(v[:, None], 2) for name, v in laws.items()}, P))
    assert -0.0005 < rank(fit, 32.0).excess.exclusive[0] < 0
    (line,) = [line for line in shown(rank(fit, 32.0), 0) if line.startswith("  2 → 32")]
    assert line.split()[-4:-2] == ["0.0", "%"]


def test_a_call_path_without_a_model_is_shown_as_measured(fit):
    lines = shown(rank(fit, 8.0), ALONE)
    assert lines[1].startswith("at p = 8 (mean of 3 runs): 5.99 s (")
    assert lines[2].startswith("no model: ")


def test_a_call_path_that_is_gone_is_said_to_be_instead_of_what_its_values_were_like():
    law = np.array([3.0, 3.0, 3.0, 3.0, NAN])
    cube = {"main": np.tile(P[:, None], 2), "main/gone": np.tile(law[:, None], 2)}
    fit = cpm.fit(experiment(cube, P))
    for target in (32.0, 64.0):
        lines = shown(rank(fit, target), 1)
        assert "no model: It does not occur at the largest scale; nothing is predicted." in lines


# Views


def test_a_view_begins_with_what_was_measured(fit):
    lines = [line.plain for line in seen(fit, 8.0).text(DEFAULT_STYLE)]
    assert lines[0].startswith("app ran 22.0 s at p = 8 (mean of 3 runs, ")
    assert "The models predict" in lines[0]
    assert "95% interval" in lines[3]
    assert "model" in lines[3]
    assert any(line.startswith("model: error") for line in lines)


def test_views_for_machines_say_what_they_are_based_on(fit):
    made = seen(fit, 8.0).table()
    assert set(made.columns["basis"]) == {"measured", None}
    assert made.columns["predicted_exclusive"][0] == pytest.approx(4, rel=0.05)
    assert made.header["basis"] == "measured"
    assert seen(fit, 64.0).table().header["repetitions"] == 0


def test_a_node_says_what_was_measured_and_how_far_models_are_off(fit):
    measured, formula, predicted = node(fit, 8.0, ODD).model()
    assert measured.startswith("at p = 8 (mean of 3 runs): ")
    assert formula.startswith("time(p) = ")
    assert re.match(r"model at p = 8: \d+\.\d s, error \+\d+ %, O\(", predicted)


def test_a_node_without_a_model_or_without_a_value_says_so(fit):
    measured, why = node(fit, 8.0, ALONE).model()
    assert measured.startswith("at p = 8 (mean of 3 runs): 5.99 s (")
    assert why == "no model: Too few points have a value; no model."
    assert node(fit, 8.0, ABSENT).model()[0] == "at p = 8 (mean of 3 runs): it did not occur"


def test_a_node_that_models_are_asked_about_is_as_before(fit):
    made = answer_at(AnswerInputs(fit, predicted=True), 8.0)
    report = NodeReport(made, TopDown(fit.experiment.tree), np.array([ODD]), False)
    assert len(report.model()) == 2
    assert "measured" not in report.model()[1]
