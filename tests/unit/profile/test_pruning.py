"""Call paths that are excluded, or folded into their callers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.pruning import drop_subtrees, merge_into_callers, refuse_unnamed
from callpath_modeler.profile.schema import Metric, Reduction
from synthetic import call_tree, chain, experiment

ABSENT = float("nan")
POINTS = (2.0, 4.0)
VALUES = {
    "main": [1.0, 1.0],
    "main/init": [5.0, 6.0],
    "main/init/read": [7.0, ABSENT],
    "main/lib": [2.0, 3.0],
    "main/lib/f": [10.0, 20.0],
    "main/lib/f/g": [0.5, 0.25],
    "main/lib/lib": [0.1, 0.2],
    "main/lib/lib/f": [ABSENT, 3.0],
    "main/f": [30.0, 40.0],
}


def made(values=VALUES, **of_experiment):
    return experiment(values, POINTS, **of_experiment)


def costs(found):
    """Return the values of all call paths, by path."""
    paths = found.tree.paths(range(len(found.tree)))
    return dict(zip(paths, found.values("time").tolist(), strict=True))


def test_what_is_left_out_goes_with_all_that_it_calls():
    found = drop_subtrees(made(), ["**/init"])
    expected = {path: values for path, values in VALUES.items() if "init" not in path}
    np.testing.assert_equal(costs(found), expected)
    assert found.findings[-1].code == "CPM139"
    assert found.findings[-1].count == 2
    assert "2 call paths, 14 % of the time of all runs" in found.findings[-1].message


def test_ids_of_what_is_left_are_what_they_were():
    whole = made()
    ids = dict(zip(whole.tree.paths(range(9)), whole.tree.ids(), strict=True))
    found = drop_subtrees(whole, ["**/lib"]).tree
    assert {path: ids[path] for path in found.paths(range(len(found)))} == dict(
        zip(found.paths(range(len(found))), found.ids(), strict=True)
    )


def test_what_is_hidden_is_its_callers_cost_and_its_callees_are_those_of_its_caller():
    found = merge_into_callers(made(), ["**/lib"])
    expected = {
        "main": [3.1, 4.2],
        "main/init": [5.0, 6.0],
        "main/init/read": [7.0, ABSENT],
        "main/f": [40.0, 63.0],
        "main/f/g": [0.5, 0.25],
    }
    assert list(costs(found)) == list(expected)
    for path, values in costs(found).items():
        np.testing.assert_allclose(values, expected[path])
    assert found.findings[-1].code == "CPM140"
    assert found.findings[-1].count == 2


def test_what_nothing_calls_cannot_be_hidden():
    whole = made()
    assert merge_into_callers(whole, ["main"]) is whole
    with pytest.raises(UsageError, match="'main' names only root call paths"):
        refuse_unnamed([whole.tree], [], ["**/f", "main"])
    assert len(merge_into_callers(whole, ["**"]).tree) == 1


def test_names_are_not_collected_for_no_pattern(monkeypatch):
    monkeypatch.setattr("callpath_modeler.profile.pruning.Patterns", None)
    whole = made()
    assert drop_subtrees(whole, ()) is merge_into_callers(whole, iter([])) is whole


def test_nothing_is_made_anew_where_nothing_is_named():
    whole = made()
    assert drop_subtrees(whole, ["**/other"]) is whole
    assert merge_into_callers(whole, []) is whole


@pytest.mark.parametrize("patterns", [(["**/f", "**/inti"], []), ([], ["**/f", "**/inti"])])
def test_a_pattern_that_names_nothing_is_refused_with_what_it_may_have_meant(patterns):
    with pytest.raises(UsageError, match=r"no call path matches '\*\*/inti'") as refused:
        refuse_unnamed([made().tree], *patterns)
    assert "**/init" in refused.value.hint


def test_an_experiment_of_nothing_is_refused():
    with pytest.raises(DataError, match="--ignore excludes all call paths"):
        drop_subtrees(made(), ["main"])


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [(Reduction.MEAN, [43.6, 67.45]), (Reduction.MAX, [ABSENT, ABSENT])],
)
def test_the_total_is_what_is_left_of_it_where_that_is_known(reduction, expected):
    whole = made(reduction=reduction)
    found = drop_subtrees(whole, ["**/init"])
    np.testing.assert_allclose(found.columns["time"].total, expected)
    hidden = merge_into_callers(whole, ["**/init"])
    np.testing.assert_allclose(hidden.columns["time"].total, whole.columns["time"].total)


def test_siblings_of_one_name_stay_apart():
    tree = call_tree(["main", "main/x", "main/f", "main/f"], ["", "", "", "#2"])
    whole = made({"main": [1, 1], "main/x": [2, 2], "main/f": [3, 3], "main/g": [4, 4]})
    found = merge_into_callers(replace(whole, tree=tree), ["**/x"])
    assert found.tree.paths(range(3)) == ["main", "main/f", "main/f#2"]
    assert found.values("time")[:, 0].tolist() == [3, 3, 4]


def test_imbalance_of_several_together_is_not_known():
    whole = made()
    uneven = np.full((9, 2), 2.0, np.float32)
    known = replace(whole.columns["time"], imbalance=uneven)
    found = merge_into_callers(replace(whole, columns={"time": known}), ["**/lib"])
    ratios = dict(zip(costs(found), found.columns["time"].imbalance.tolist(), strict=True))
    assert ratios["main/init"] == [2, 2]
    assert np.isnan(ratios["main"]).all()
    assert np.isnan(ratios["main/f"]).all()
    left = drop_subtrees(replace(whole, columns={"time": known}), ["**/lib"])
    assert left.columns["time"].imbalance.shape == (4, 2)


def test_of_what_does_not_add_up_the_callers_own_value_stands():
    whole = made()
    least = MetricValues(
        Metric("least", "s", additive=False), whole.values("time"), np.full(2, ABSENT)
    )
    found = merge_into_callers(replace(whole, columns={"least": least}), ["**/lib"])
    values = dict(zip(found.tree.paths(range(5)), found.values("least").tolist(), strict=True))
    assert values["main"] == [1, 1]
    assert values["main/f"] == [30, 40]


def test_programs_may_be_deep():
    depth = 50_000
    whole = replace(
        made({"f": [1, 1]}),
        tree=chain(depth),
        columns={"time": MetricValues(Metric("time", "s"), np.ones((depth, 2)), np.full(2, depth))},
    )
    assert len(merge_into_callers(whole, ["f/**/f"]).tree) == 1
    assert len(drop_subtrees(whole, ["f/f/f"]).tree) == 2


@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=40),
    st.lists(st.sampled_from("abc"), min_size=41, max_size=41),
    st.sampled_from("abc"),
)
def test_hiding_conserves_cost_and_leaving_out_takes_what_the_view_says(up, names, name):
    """For any tree: `up` is the number of levels from each call path up to the one before it."""
    paths = ["root"]
    for step, own in zip(up, names, strict=False):
        caller = paths[-1].split("/")
        caller = caller[: max(1, len(caller) - step)]
        paths.append("/".join([*caller, own]))
    # A function that is called twice in a row by one caller is one call path.
    paths = list(dict.fromkeys(paths))
    paths.sort(key=lambda path: [*path.split("/")])
    whole = made({path: [k + 1.0, 2.0 * k] for k, path in enumerate(paths)})
    values = whole.values("time")
    hidden = merge_into_callers(whole, [f"**/{name}"])
    assert all(name not in path.split("/") for path in costs(hidden))
    np.testing.assert_allclose(hidden.values("time").sum(axis=0), values.sum(axis=0))
    left = drop_subtrees(whole, [f"**/{name}"])
    kept = [k for k, path in enumerate(paths) if name not in path.split("/")]
    np.testing.assert_array_equal(left.values("time"), values[kept])
    for each in (hidden.tree, left.tree):
        listed = each.paths(range(len(each)))
        assert len(set(listed)) == len(listed)


def timed(imbalance, reduction=Reduction.MEAN):
    """Return two runs with a run time; `imbalance` is that of the call path to exclude."""
    whole = made({"main": [1.0, 1.0], "init": [3.0, 2.0]}, reduction=reduction)
    ratios = np.array([[1.0, 1.0], imbalance], np.float32)
    known = replace(whole.columns["time"], imbalance=ratios, run_time=np.array([5.0, 4.0]))
    return replace(whole, columns={"time": known})


@pytest.mark.parametrize("reduction", [Reduction.MEAN, Reduction.MAX])
def test_without_processes_the_run_time_of_the_rest_is_not_known(reduction):
    left = drop_subtrees(timed([1.5, 1.2], reduction), ["init"])
    assert left.columns["time"].run_time is None
    assert left.of_program("time") is None


def test_the_run_time_is_known_where_all_processes_take_equal_time():
    left = drop_subtrees(timed([1.0, 1.0]), ["init"])
    np.testing.assert_allclose(left.columns["time"].run_time, [2.0, 2.0])
    partly = drop_subtrees(timed([1.0, 1.2]), ["init"])
    np.testing.assert_allclose(partly.columns["time"].run_time, [2.0, np.nan])
    assert partly.of_program("time") is None


def test_one_value_per_run_leaves_a_run_time():
    left = drop_subtrees(timed([np.nan, np.nan], Reduction.GIVEN), ["init"])
    np.testing.assert_allclose(left.columns["time"].run_time, [2.0, 2.0])
