from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.answer import rank
from callpath_modeler.analysis.difference import RegressionGate, difference, only_in_one, violations
from callpath_modeler.analysis.pairing import pair_findings, pair_up
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.runs import ParameterLine
from callpath_modeler.profile.schema import Metric, Reduction, Region
from callpath_modeler.studies.pipeline import FitOptions, fit
from cells import cells
from synthetic import POINTS, TIME, VISITS, experiment
from two_sides import LAWS, P, changed, pair, row, runs

NAN = np.nan


def test_an_experiment_does_not_differ_from_itself():
    same = runs(LAWS, 1)
    for inclusive in (False, True):
        found = difference(pair(same, same), 256.0, inclusive=inclusive)
        for changes in (found.measured, found.predicted):
            assert not changes.mark.any()
            assert np.nanmax(np.abs(changes.change)) == 0
            assert (changes.p[~np.isnan(changes.p)] == 1).all()
        assert not found.growth.mark.any()
        assert not violations(found, RegressionGate(0.0, growth=True), found.order)
        assert len(found.order) == len(LAWS)


def test_a_call_path_that_began_to_grow_is_worse_and_grows_faster():
    new = changed(main__halo=2.0 * (P / 2) ** 0.5)
    found = difference(pair(runs(LAWS, 1), runs(new, 2)), 512.0)
    halo = row(found, "main/halo")
    assert found.order[0] == halo
    assert found.measured.mark[halo] == found.predicted.mark[halo] == 1
    assert found.growth.mark[halo] == 1
    assert found.growth.faster[halo] > 0.95
    assert found.measured.relative[halo] == pytest.approx(3.0, rel=0.1)
    assert found.predicted.relative[halo] == pytest.approx(15.0, rel=0.2)
    assert found.predicted.low[halo] < 15.0 < found.predicted.high[halo]
    others = np.setdiff1d(found.order, [halo])
    assert not found.growth.mark[others].any()
    broken = violations(found, RegressionGate.parse("worse>5%,growth"), found.order)
    assert {(b.limit, b.scale) for b in broken if b.row == halo} == {
        ("worse", 32.0),
        ("worse", 512.0),
        ("growth", None),
    }


def test_before_and_after_changed_places_worse_is_better():
    base, new = runs(LAWS, 1), runs(changed(main__solve=5.0 + 0 * P), 2)
    there = difference(pair(base, new), 128.0)
    back = difference(pair(new, base), 128.0)
    solve = row(there, "main/solve")
    assert there.measured.mark[solve] == 1
    assert back.measured.mark[solve] == -1
    for one, other in ((there.measured, back.measured), (there.predicted, back.predicted)):
        assert one.p == pytest.approx(other.p)
        assert one.change == pytest.approx(-other.change)
    assert there.growth.faster == pytest.approx(back.growth.slower)
    assert not violations(back, RegressionGate.parse("worse,growth"), back.order)


@pytest.mark.parametrize("inclusive", [False, True])
def test_the_whole_program_is_the_sum_of_its_parts(inclusive):
    found = difference(pair(runs(LAWS, 1), runs(LAWS, 2)), 128.0, inclusive=inclusive)
    exclusive = difference(pair(runs(LAWS, 1), runs(LAWS, 2)), 128.0)
    for changes, parts in (
        (found.measured, exclusive.measured),
        (found.predicted, exclusive.predicted),
    ):
        assert changes.base[-1] == pytest.approx(parts.base[:-1].sum())
        assert changes.new[-1] == pytest.approx(parts.new[:-1].sum())
    if inclusive:
        assert found.predicted.new[0] == pytest.approx(found.predicted.new[-1])


def test_fresh_noise_alone_breaks_no_limit():
    fails = 0
    for seed in range(20):
        base, new = (runs(LAWS, 2 * seed + k, noise=0.03) for k in (0, 1))
        found = difference(pair(base, new), 256.0)
        fails += bool(violations(found, RegressionGate.parse("worse>5%,growth"), found.order))
    assert fails <= 1


def test_predictions_differ_only_where_measurements_do():
    # Only the new runs go beyond p = 32, where the same program grows.
    points = np.concatenate([P, 32 * P])
    growing = {path: np.ones(10) for path in LAWS}
    growing["main/solve"] = np.maximum(points / 32, 1.0) ** 2
    flat = {path: np.ones(5) for path in LAWS}
    new = runs(growing, 2, points=tuple(points))
    found = difference(pair(runs(flat, 1), new), 8192.0)
    solve = row(found, "main/solve")
    assert found.predicted.new[solve] > 100 * found.predicted.base[solve]
    assert found.predicted.rate[solve] < 0.05
    assert found.growth.faster[solve] > 0.95
    assert (
        found.measured.mark[solve] == found.predicted.mark[solve] == found.growth.mark[solve] == 0
    )


def test_what_is_in_one_only_is_counted_and_adds_to_the_totals():
    new = {path: law for path, law in LAWS.items() if "halo" not in path}
    new["main/pack"] = 3.0 + 0 * P
    found = difference(pair(runs(LAWS, 1), runs(new, 2)), 128.0)
    gone, came = row(found, "main/halo"), row(found, "main/pack")
    assert set(found.order) == set(range(len(found.pair.tree)))
    for changes in (found.measured, found.predicted):
        assert changes.change[came] == pytest.approx(3.0, rel=0.05)
        assert changes.change[gone] == pytest.approx(-2.0, rel=0.05)
        assert np.isnan(changes.p[[gone, came]]).all()
        assert changes.change[-1] == pytest.approx(np.nansum(changes.change[:-1]))
    parted = only_in_one(found)
    assert parted.rows.tolist() == [gone, came] or parted.rows.tolist() == [came, gone]
    assert dict(zip(parted.rows.tolist(), parted.callpaths.tolist(), strict=True)) == {
        gone: 2,
        came: 1,
    }
    assert not violations(found, RegressionGate.parse("worse"), np.array([came, gone]))


def test_what_one_side_has_no_model_of_is_left_out_of_both_predictions():
    rare = changed(main__io=np.array([NAN, NAN, NAN, 0.5, 0.5]))
    found = difference(pair(runs(LAWS, 1), runs(rare, 2)), 128.0)
    io = row(found, "main/io")
    assert np.flatnonzero(found.left_out).tolist() == [io]
    assert np.isnan([found.predicted.base[io], found.predicted.new[io]]).all()
    assert found.predicted.base[-1] == pytest.approx(np.nansum(found.predicted.base[:-1]))
    assert found.measured.mark[io] == 1
    inclusive = difference(pair(runs(LAWS, 1), runs(rare, 2)), 128.0, inclusive=True)
    assert inclusive.predicted.base[0] == pytest.approx(found.predicted.base[-1])


def test_the_largest_scale_of_both_is_compared():
    small = {path: law[:4] for path, law in LAWS.items()}
    found = difference(pair(runs(LAWS, 1), runs(small, 2, points=POINTS[:4])), None)
    assert found.pair.scales.tolist() == list(POINTS[:4])
    assert found.measured.scale == 16.0
    assert found.predicted is None
    assert found.changes is found.measured
    assert found.growth is not None


def test_without_a_common_scale_predictions_are_compared():
    elsewhere = {path: law * 1.5 for path, law in LAWS.items()}
    base, new = runs(LAWS, 1), runs(elsewhere, 2, points=(3.0, 6.0, 12.0, 24.0, 48.0))
    found = difference(pair(base, new), 24.0)
    assert found.measured is None
    assert found.predicted.mark[row(found, "main/solve")] == 1
    assert found.in_base.all()
    with pytest.raises(DataError, match="no common scale"):
        difference(pair(base, new), None)


def test_one_scale_is_enough_to_compare_what_was_measured():
    one = {path: law[:1] for path, law in LAWS.items()}
    slower = {**one, "main/solve": one["main/solve"] * 1.3}
    base, new = (runs(laws, k, points=(8.0,)) for k, laws in enumerate((one, slower)))
    found = difference(pair(base, new, modelled=False), None)
    assert found.measured.mark[:-1].tolist() == [0, 1, 0, 0, 0, 0]
    assert found.growth is None
    assert violations(found, RegressionGate(0.05), found.order)
    with pytest.raises(DataError, match="--fail-on growth: too few scales"):
        violations(found, RegressionGate(None, growth=True), found.order)


def test_single_runs_are_compared_by_how_they_deviate_from_their_models():
    base = runs(LAWS, 1, repetitions=1)
    new = runs(changed(main__solve=8.0 + 0 * P), 2, repetitions=1)
    found = difference(pair(base, new), None)
    assert found.measured.mark[row(found, "main/solve")] == 1
    assert not found.measured.mark[[0, 2, 3, 4]].any()
    unmodelled = difference(pair(base, new, modelled=False), None)
    assert np.isnan(unmodelled.measured.p).all()
    assert not unmodelled.measured.mark.any()
    with pytest.raises(DataError, match="nothing was repeated"):
        violations(unmodelled, RegressionGate(0.05), unmodelled.order)


def test_call_paths_of_a_rebuilt_program_are_the_same():
    def build(number):
        tree = CallTree.from_parents(
            [-1, 0],
            [0, 1],
            [Region("main"), Region(f"kernel.isra.{number}", line=number, key="kernel")],
        )
        made = experiment({"main": P, "main/kernel": P}, POINTS)
        return replace(made, tree=tree)

    found = difference(pair(build(3), build(7)), None)
    assert len(found.pair.tree) == 2
    assert found.in_base.all()
    assert found.in_new.all()


def test_functions_that_only_their_order_tells_apart_are_named():
    def build(first):
        tree = CallTree.from_parents(
            [-1, 0, 0],
            [0, 1, 2],
            [Region("main"), Region("f", line=first), Region("f", line=first + 5)],
            [0, 0, 1],
            ["", "#2"],
        )
        made = experiment({"main": P, "main/f": P, "main/g": 2 * P}, POINTS)
        return replace(made, tree=tree)

    together = pair(build(3), build(4), modelled=False)
    assert len(together.tree) == 3
    assert [f.code for f in pair_findings(together)] == ["CPM123"]
    assert not pair_findings(pair(build(3), build(3), modelled=False))


@pytest.mark.parametrize("aggregate", ["min", "median"])
@pytest.mark.parametrize("inclusive", [False, True])
def test_measured_values_are_those_of_the_ranking(aggregate, inclusive):
    base, new = (
        fit(runs(LAWS, k, noise=0.2), None, FitOptions(aggregate=aggregate)) for k in (1, 2)
    )
    together = pair_up((base.experiment, base), (new.experiment, new), None, ParameterLine("p"))
    found = difference(together, 64.0, inclusive=inclusive)
    for fitted, measured, predicted in (
        (base, found.measured.base, found.predicted.base),
        (new, found.measured.new, found.predicted.new),
    ):
        ranking = rank(fitted, 64.0, inclusive=inclusive)
        assert measured[:-1] == pytest.approx(ranking.at_largest)
        assert measured[-1] == pytest.approx(ranking.total_at_largest)
        assert predicted[:-1] == pytest.approx(ranking.value)
        assert predicted[-1] == pytest.approx(ranking.total[0])


def test_metrics_that_do_not_add_up_have_no_whole():
    peak = Metric("peak", "B", additive=False)
    base, new = (runs(LAWS, k, metric=peak) for k in (1, 2))
    found = difference(pair(base, new), 64.0)
    assert np.isnan(found.measured.base[-1])
    assert np.isnan(found.predicted.change[-1])
    with pytest.raises(UsageError, match="does not add up"):
        difference(pair(base, new), 64.0, inclusive=True)


@cells(
    ("other", "words"),
    [
        (experiment({"main": P}, POINTS, metric=VISITS), "base has time"),
        (
            experiment({"main": P}, POINTS, metric=replace(TIME, unit="1")),
            r"time \[s\], new has time \[1\]",
        ),
        (experiment({"main": P}, POINTS, reduction=Reduction.MEAN), "mean over processes"),
        (experiment({"other": P}, POINTS), "no call path in common"),
        (experiment({"main": P}, POINTS, parameter="n"), "base varies in p, new in n"),
        (experiment({"main": [1.0]}, [4.0], parameter="n"), "at which p"),
    ],
)
def test_what_cannot_be_compared_is_refused(other, words):
    with pytest.raises(DataError, match=words):
        pair(runs(LAWS, 1), other, modelled=False)


def test_constants_that_differ_between_two_experiments_are_named():
    base, new = runs(LAWS, 1), runs(LAWS, 2)
    base = replace(base, constants={"n": 30.0, "k": 1.0})
    new = replace(new, constants={"n": 40.0, "k": 1.0})
    (finding,) = pair_findings(pair(base, new, modelled=False))
    assert finding.code == "CPM131"
    assert "n = 30 and 40" in finding.message


@cells(
    ("text", "limits"),
    [
        ("worse>5%", RegressionGate(0.05)),
        ("worse > 2.5 %", RegressionGate(0.025)),
        ("worse", RegressionGate(0.0)),
        ("growth", RegressionGate(None, growth=True)),
        ("growth,worse>10%", RegressionGate(0.1, growth=True)),
    ],
)
def test_limits_are_read_as_they_are_written(text, limits):
    assert RegressionGate.parse(text) == limits


@cells("text", ["", "worse>5", "worse<5%", "better>5%", "worse>5%,", "worse>-1%"])
def test_what_is_no_limit_is_refused(text):
    with pytest.raises(UsageError, match="is no limit"):
        RegressionGate.parse(text)


def test_call_paths_without_cost_break_no_limit_by_themselves():
    found = difference(pair(runs(LAWS, 1), runs(changed(main__io=0.01 + 0 * P), 2)), None)
    io = row(found, "main/io")
    assert found.measured.mark[io] == 1
    assert not violations(found, RegressionGate.parse("worse>5%"), np.array([io]))


def test_a_change_below_the_limit_does_not_break_it():
    found = difference(pair(runs(LAWS, 1, noise=0.001), runs(changed(main__solve=4.2 + 0 * P), 2, noise=0.001)), None)  # fmt: skip # noqa: E501
    solve = row(found, "main/solve")
    of_solve = np.array([solve])
    assert found.measured.mark[solve] == 1
    assert violations(found, RegressionGate.parse("worse>4%"), of_solve)
    assert not violations(found, RegressionGate.parse("worse>6%"), of_solve)
