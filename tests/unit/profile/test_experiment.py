from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.groups import MetricValues, inclusive_values
from callpath_modeler.profile.runs import Parameter
from callpath_modeler.profile.schema import Metric
from synthetic import POINTS, TIME, VISITS, experiment

NAN = float("nan")
VALUES = {"main": [1, 1, 1, 1, 1], "main/f": [2, 4, 8, 16, 32], "main/g": [NAN, NAN, 3, 3, 3]}


def test_inclusive_values_add_up_and_absent_call_paths_stay_absent():
    made = experiment(VALUES)
    total = made.values("time", inclusive=True)
    assert total[0].tolist() == [3, 5, 12, 20, 36]
    assert np.isnan(total[2, :2]).all()


def test_a_caller_that_was_not_measured_itself_has_the_inclusive_value_of_its_callees():
    made = experiment({"main": [NAN, 1.0], "main/f": [2.0, NAN]}, (2, 4))
    assert made.values(inclusive=True).tolist()[0] == [2.0, 1.0]


def test_values_of_metrics_that_do_not_add_up_are_never_summed():
    made = experiment(VALUES, metric=Metric("min_time", "s", additive=False))
    same = made.values("min_time", inclusive=True)
    assert np.array_equal(same, made.values("min_time"), equal_nan=True)


def test_values_by_point_are_padded_where_repetitions_are_missing():
    whole = experiment({"main": [[1, 2], [3, 4], [5, 6]]}, (2, 4, 8))
    made = whole.where(np.array([True, True, True, False, True, True]))
    points, cube = made.by_point("time", "p")
    assert points.tolist() == [2, 4, 8]
    assert cube[0, 0].tolist() == [1, 2]
    assert cube[0, 1, 0] == 3
    assert np.isnan(cube[0, 1, 1])


def test_the_default_metric_is_the_first_duration_of_threads_that_adds_up():
    made = experiment(VALUES, metric=VISITS)
    assert made.metric().name == "visits"
    table = made.columns["visits"]
    least = Metric("min_time", "s", additive=False)
    metrics = (VISITS, least, TIME.on_gpu_streams(), TIME)
    columns = {m.name: MetricValues(m, table.exclusive, table.total) for m in metrics}
    assert replace(made, columns=columns).metric().name == "time"


def test_an_unknown_metric_is_a_usage_error_that_names_the_nearest():
    with pytest.raises(UsageError) as caught:
        experiment(VALUES).values("tiem")
    assert "'time'" in caught.value.hint


def test_an_experiment_without_values_says_so():
    with pytest.raises(DataError, match="no metric has values"):
        replace(experiment(VALUES), columns={}).values()


def test_what_varies_is_a_parameter_and_what_does_not_is_a_constant():
    made = experiment(VALUES)
    assert made.parameters == (Parameter("p", POINTS, "name"),)
    one = made.where(np.array([True, False, False, False, False]))
    assert one.parameters == ()
    assert one.constants == {"p": 2.0}
    with pytest.raises(DataError, match="one scale"):
        one.modelled_parameter()


def two_parameters(n_of_run):
    made = experiment(VALUES)
    runs = tuple(
        replace(run, parameters={**run.parameters, "n": n})
        for run, n in zip(made.runs, n_of_run, strict=True)
    )
    return replace(made, runs=runs, parameters=(*made.parameters, Parameter("n", (1, 2), "name")))


def test_a_parameter_that_varies_along_with_p_leaves_p_to_model():
    assert two_parameters([1, 1, 2, 2, 2]).modelled_parameter() == "p"


def test_a_second_parameter_at_the_same_p_has_to_be_fixed_first():
    made = two_parameters([1, 1, 1, 1, 2])
    runs = (*made.runs, replace(made.runs[0], parameters={"p": 2.0, "n": 2}))
    made = replace(made, runs=runs)
    with pytest.raises(DataError, match="several parameters vary: p, n") as caught:
        made.modelled_parameter()
    assert "--where n=1" in caught.value.hint


def test_a_parameter_that_does_not_vary_cannot_be_modelled():
    with pytest.raises(UsageError, match="'n'"):
        experiment(VALUES).modelled_parameter("n")


def test_a_frame_has_call_paths_as_rows_and_runs_as_columns():
    frame = experiment(VALUES).to_frame("time", inclusive=True)
    assert frame.index.tolist() == ["main", "main/f", "main/g"]
    assert frame.columns.names == ["p", "repetition"]
    assert frame.loc["main", (32.0, 1)] == 36


def test_the_text_of_an_experiment_tells_its_size():
    assert repr(experiment(VALUES)) == "<Experiment app: 3 call paths, 5 points of p, time>"
    alone = experiment({"main": [1.0]}, points=(8.0,))
    assert repr(alone) == "<Experiment app: 1 call path, time>"


def test_inclusive_values_of_no_run_are_none():
    tree = experiment(VALUES).tree
    assert inclusive_values(tree, np.empty((3, 0))).shape == (3, 0)
