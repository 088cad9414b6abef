"""Bounds at scales with repetitions: measurements decide, not models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import callpath_modeler as cpm
from callpath_modeler.analysis.excess_work import excess_work
from callpath_modeler.analysis.expectations.check_result import Status, details, sentence
from callpath_modeler.analysis.expectations.clauses import interpret
from callpath_modeler.analysis.expectations.expectation import parse
from callpath_modeler.analysis.expectations.growth_check import baseline
from callpath_modeler.analysis.expectations.judge import Judge
from callpath_modeler.report.exports import to_toml
from callpath_modeler.report.test_reports import check_table
from cells import cells
from synthetic import VISITS, experiment

POINTS = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
NAN = np.nan
LAWS = {
    "main": 4 + 0 * POINTS,
    "main/odd": np.array([1.0, 1.6, 0.8, 1.7, 0.9]),
    "main/odd/MPI_Send": 3 * np.log2(POINTS),
    "main/g": 8 + 0 * POINTS,
}
"""odd follows no law, so models of it miss by tens of percent."""


def runs(laws=LAWS, noise=0.005, seed=3, repetitions=5, change=None, **of_experiment):
    """Return an experiment of laws; `change` modifies its values [call paths, K, R]."""
    random = np.random.default_rng(seed)
    shape = (len(laws), len(POINTS), repetitions)
    cube = np.array(list(laws.values()))[..., None] * np.exp(noise * random.standard_normal(shape))
    if change is not None:
        change(cube)
    return experiment(dict(zip(laws, cube, strict=True)), POINTS, **of_experiment)


@pytest.fixture(scope="module")
def models():
    return cpm.fit(runs())


def judged(text, models, head="target = { p = 32 }\n"):
    """Return the outcome of one expectation, or of one rule."""
    table = "rule" if text.startswith("rule") else "expect"
    expectations = interpret(parse(f"schema = 1\n{head}[[{table}]]\n{text}\n", "e.toml"))
    return Judge(expectations, lambda _: models).outcomes()[0]


ODD = "callpath = 'main/odd'\n"


@cells(
    ("text", "status"),
    [
        (ODD + "value = '<= 0.92 s'", Status.PASS),
        (ODD + "value = '<= 0.88 s'", Status.FAIL),
        (ODD + "value = '>= 0.88 s'", Status.PASS),
        (ODD + "value = '<= 0.9 s'", Status.UNSURE),
        (ODD + "share = '<= 3.3 %'", Status.PASS),
        (ODD + "share = '<= 3.1 %'", Status.FAIL),
        (ODD + "loss = '<= 0 s'", Status.PASS),
        (ODD + "loss = '<= -0.2 s'", Status.FAIL),
        (ODD + "excess = '<= 0 %'", Status.PASS),
        (ODD + "bound = 'time * 2 <= 1.85 s'", Status.PASS),
        (ODD + "bound = 'time * 2 <= 1.75 s'", Status.FAIL),
        (ODD + "inclusive = true\nvalue = '<= 16.1 s'", Status.PASS),
        (ODD + "inclusive = true\nvalue = '<= 15.7 s'", Status.FAIL),
        ("value = '<= 28.3 s'", Status.PASS),
        ("value = '<= 27.5 s'", Status.FAIL),
        ("rule = '{**/odd} <= 0.92 s'", Status.PASS),
        ("rule = '{**/odd} * 9 <= {main/g}'", Status.FAIL),
        ("rule = '{**/odd} * 8.5 <= {main/g}'", Status.PASS),
    ],
)
def test_where_models_miss_what_was_measured_the_measurements_answer(models, text, status):
    found = judged(text, models)
    assert found.status is status
    assert found.decisive.measured
    assert " measured at p = 32, expected " in sentence(found)


@pytest.mark.parametrize("text", [ODD + "value = '<= 0.92 s'", "rule = '{**/odd} <= 0.92 s'"])
@pytest.mark.parametrize("scale", [33, 64])
def test_a_target_that_was_not_run_is_predicted(text, scale):
    found = judged(text, cpm.fit(runs(repetitions=5)), f"target = {{ p = {scale} }}\n")
    assert found.status is Status.UNSURE
    assert not found.decisive.measured
    assert f" predicted at p = {scale}, expected " in sentence(found)


@pytest.mark.parametrize("text", [ODD + "value = '<= {}'", "rule = '{{**/odd}} <= {}'"])
def test_one_run_is_judged_with_the_deviations_from_the_models(text):
    """The call path follows no law, so a run within these deviations says nothing."""
    models = cpm.fit(runs(repetitions=1, noise=0.0))
    value = float(models.measured[1, -1])
    reach = stats.t.ppf(0.975, models.models.dof[1]) * models.models.spread[1]
    for factor, status in ((0.999, Status.UNSURE), (1.001, Status.PASS)):
        found = judged(text.format(f"{value * np.exp(reach) * factor:.15g} s"), models)
        assert found.status is status
        assert found.decisive.measured
        assert found.decisive.found[0] == pytest.approx(value)


def test_call_paths_of_one_expectation_are_all_measured():
    def once(cube):
        cube[1, -1, 1:] = NAN

    models = cpm.fit(runs(change=once))
    assert judged(ODD + "value = '<= 0.5 s'", models).decisive.measured
    both = judged("callpath = 'main/*'\nvalue = '<= 7.8 s'", models)
    assert (both.decisive.judged, both.decisive.broken, both.decisive.unsure) == (2, 1, 0)
    assert both.decisive.measured
    assert judged("callpath = 'main/*'\nvalue = '<= 0.01 s'", models).decisive.broken == 2


def test_the_interval_is_that_of_all_repetitions_of_the_metric_not_of_two():
    def agree(cube):
        cube[1, -1] = 1.0, 1.0001

    models = cpm.fit(runs(noise=0.1, repetitions=2, change=agree))
    value, low, high = judged(ODD + "value = '<= 9 s'", models).decisive.found
    assert value == pytest.approx(1.0, rel=1e-3)
    assert low < 0.95
    assert high > 1.05


def test_a_run_that_is_slow_as_a_whole_widens_values_and_cancels_in_shares():
    def slow(cube):
        cube[:, :, 2] *= 1.4

    models = cpm.fit(runs(noise=0.001, change=slow))
    _, low, high = judged(ODD + "value = '<= 9 s'", models).decisive.found
    assert high / low > 1.2
    _, low, high = judged("value = '<= 90 s'", models).decisive.found
    assert high / low > 1.2
    _, low, high = judged(ODD + "share = '<= 9 %'", models).decisive.found
    assert high / low < 1.01


def test_counts_that_agree_in_all_repetitions_are_judged_exactly():
    counts = cpm.fit(
        experiment({"main": [[7.0, 7.0]] * 5, "f": [[64e6, 64e6]] * 5}, POINTS, metric=VISITS)
    )
    f = "callpath = 'f'\n"
    assert judged(f + "value = '<= 64e6'", counts).status is Status.PASS
    assert judged(f + "value = '<= 63999000'", counts).status is Status.FAIL
    assert judged("callpath = '**'\nvalue = '<= 64e6'", counts).status is Status.PASS


def test_nothing_in_every_run_is_nothing_and_in_some_runs_the_mean_is_compared():
    def vanish(cube):
        cube[1, -1] = 0.0
        cube[3, -1] = [0.0, 0.0, 8.0, 8.0, 9.0]

    models = cpm.fit(runs(change=vanish))
    nothing = judged(ODD + "value = '<= 0 s'", models)
    assert nothing.status is Status.PASS
    assert nothing.decisive.found == (0.0, 0.0, 0.0)
    # The mean is 5, its error 2.0494, and Student's t with 4 degrees of freedom 2.7764.
    some = judged("callpath = 'main/g'\nvalue = '<= 9 s'", models)
    assert some.decisive.found == pytest.approx((5.0, 0.0, 5 + 2.776445 * 2.049390))
    assert some.status is Status.UNSURE
    assert judged("callpath = 'main/g'\nvalue = '<= 11 s'", models).status is Status.PASS


def test_without_a_model_the_measurements_still_answer():
    late = LAWS | {"main/late": np.array([NAN, NAN, NAN, 5.0, 6.0])}
    models = cpm.fit(runs(late))
    assert not models.modelled[-1]
    text = "callpath = 'main/late'\nvalue = '<= {} s'"
    assert judged(text.format(6.1), models).status is Status.PASS
    assert judged(text.format(5.9), models).status is Status.FAIL
    beyond = judged(text.format(5.9), models, "target = { p = 64 }\n")
    assert sentence(beyond) == "has no model"


def test_at_a_smaller_scale_counts_what_occurred_there_and_nothing_else():
    early = LAWS | {"main/early": np.array([5.0, 5.0, 5.0, NAN, NAN])}
    models = cpm.fit(runs(early))
    text = "callpath = 'main/early'\nvalue = '<= 4 s'"
    assert judged(text, models, "target = { p = 8 }\n").status is Status.FAIL
    for scale, words in (
        (16, "does not occur at p = 16"),
        (32, "does not occur at p = 32"),
        (64, "gone at the largest scale"),
    ):
        found = judged(text, models, f"target = {{ p = {scale} }}\n")
        assert found.status is Status.PASS
        assert sentence(found) == words


def test_excess_work_and_loss_are_those_between_the_two_measured_scales(models):
    tree, scaling = models.experiment.tree, models.experiment.scaling
    first, last = models.measured[:, 0], models.measured[:, -1]
    known = excess_work(tree, scaling, (2.0, first), (32.0, last))
    send = "callpath = '**/MPI_Send'\n"
    for key, unit, column in (("loss", "s", known.lost), ("excess", "", known.exclusive)):
        value, low, high = judged(f"{send}{key} = '<= 99 {unit}'", models).decisive.found
        assert value == pytest.approx(column[2])
        assert low < value < high < low + 0.03 * abs(value)
    whole = judged("excess = '<= 99'", models).decisive.found
    assert whole[0] == pytest.approx(known.exclusive.sum())


def test_where_repetitions_do_not_tell_it_is_said_how_many_would():
    five = cpm.fit(runs(noise=0.05))
    value, _, high = judged(ODD + "value = '<= 9 s'", five).decisive.found
    near = value * (high / value) ** 0.51
    found = judged(ODD + f"value = '<= {near!r} s'", five)
    # About half the width takes four times as many.
    assert found.decisive.repetitions == 20
    assert "20 repetitions at p = 32 would decide, if nothing changes" in details(found, None)
    share = judged(ODD + f"share = '<= {near / 27.9!r}'", five).decisive
    assert share.repetitions is not None
    assert judged(ODD + f"value = '<= {value!r} s'", five).decisive.repetitions is None
    assert judged(ODD + "value = '<= 0.1 s'", five).decisive.repetitions is None


def test_loss_against_a_scale_that_was_measured_once_has_a_wider_interval(models):
    def once(cube):
        cube[:, 0, 1:] = NAN

    widths = []
    for each in (models, cpm.fit(runs(change=once))):
        found = judged(ODD + "loss = '<= 0 s'", each).decisive
        assert found.measured
        widths.append(found.found[2] - found.found[1])
    assert 1.2 < widths[1] / widths[0] < 2.5


def test_tables_say_whether_a_number_was_measured(models, tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        "schema = 1\ntarget = { p = 32 }\n"
        "[[expect]]\nvalue = '<= 99 s'\n"
        "[[expect]]\nvalue = '<= 999 s'\ntarget = { p = 64 }\n"
        "[[expect]]\ngrowth = '<= O(p^3)'\n"
    )
    table = check_table(cpm.check(models, path))
    assert table.columns["basis"] == ["measured", "predicted", None]


def failures(text, models):
    found = Judge(interpret(parse(text, "e.toml")), lambda _: models).outcomes()
    return [outcome.expectation.name for outcome in found if outcome.failed]


def test_a_slow_call_path_breaks_a_baseline_where_models_of_it_miss_as_much(models):
    text = to_toml(baseline(models))
    assert failures(text, models) == []
    assert failures(text, cpm.fit(runs(seed=4))) == []

    def slow(cube):
        cube[1] *= 1.5

    assert failures(text, cpm.fit(runs(seed=4, change=slow))) == ["main/odd"]


def test_a_baseline_bounds_what_was_measured_without_a_model():
    late = LAWS | {"main/late": np.array([NAN, NAN, NAN, 5.0, 6.0])}
    models = cpm.fit(runs(late))
    text = to_toml(baseline(models))
    assert "# no limit on growth: this call path has no model" in text
    assert failures(text, models) == []
    later = late | {"main/late": 1.5 * late["main/late"]}
    assert failures(text, cpm.fit(runs(later, seed=4))) == ["main/late"]


@pytest.mark.parametrize("size", [10, 30, 50])
def test_half_as_slow_again_is_told_on_quartz(shared_data, size):
    path = shared_data / "third_party" / "caliper" / "lulesh_quartz_weak_p8-125.jsonl"
    series = cpm.load(path)
    of_size = series.where(series.settings(("size",))[:, 0] == size)
    column = of_size.columns["time_mean"]
    today = replace(of_size, columns={"time_mean": column})
    models = cpm.fit(today)
    text = to_toml(baseline(models))
    assert failures(text, models) == []
    row = int(np.nanargmax(models.measured[:, -1]))
    slow = column.exclusive.copy()
    slow[row] *= 1.5
    again = replace(today, columns={"time_mean": replace(column, exclusive=slow)})
    assert today.tree.names(row)[-1] in " ".join(failures(text, cpm.fit(again)))
