from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler import pipeline
from callpath_modeler.analysis.rank import rank
from callpath_modeler.explanation import explain
from callpath_modeler.profile.experiment import MetricValues
from callpath_modeler.profile.schema import Metric
from synthetic import POINTS, experiment

P = np.array(POINTS, dtype=float)
VISITS = Metric("visits", "1")
BYTES = Metric("bytes_sent", "B")
METRICS = {"visits": VISITS, "bytes_sent": BYTES}
NAN = float("nan")


def beside(made, needs):
    """Add other metrics, each with one value per call path and point, to an experiment."""
    repetitions = len(made.runs) // len(P)
    columns = dict(made.columns)
    for metric, of in needs.items():
        values = np.repeat(np.array([of[name] for name in of], float), repetitions, axis=1)
        columns[metric.name] = MetricValues(metric, values, np.nansum(values, axis=0))
    return replace(made, columns=columns)


def explained(time, *, path="main", inclusive=False, target=1024.0, **needs):
    """Compare the time of a call path, `time` by name, with other metrics, each by name."""
    made = beside(experiment(time), {METRICS[name]: of for name, of in needs.items()})
    ranking = rank(pipeline.fit(made, "time"), target, inclusive=inclusive)
    return explain(ranking, [*time].index(path))


def test_time_that_grows_beside_as_many_calls_is_not_explained_by_them():
    # MPI_Recv of Sweep3D: c sqrt(p), while messages and bytes are constant (SC13, table 3).
    found = explained(
        {"main": 3e-4 * np.sqrt(P)}, visits={"main": 40 + 0 * P}, bytes_sent={"main": 4e5 + 0 * P}
    )
    assert found.share == pytest.approx(np.sqrt(P[0] / P[-1]), rel=0.11)  # and what may be chance
    assert found.explained_at_target / found.time_at_target == pytest.approx(
        np.sqrt(P[0] / 1024), rel=0.11
    )


def test_time_that_follows_the_calls_is_explained_by_them():
    found = explained({"main": 2e-6 * P}, visits={"main": 3 * P})
    np.testing.assert_allclose(found.explained, found.time)
    assert found.share == 1
    assert found.times(found.needs[0].values) == P[-1] / P[0]


def test_a_latency_and_a_bandwidth_explain_messages_that_are_more_and_larger():
    # t = m (c1 + c2 s): neither the number of messages nor that of bytes explains it alone.
    messages, size = np.log2(P), 1e4 * P
    time = messages * (2e-6 + 1e-9 * size)
    found = explained(
        {"main": time}, visits={"main": messages}, bytes_sent={"main": messages * size}
    )
    assert found.share == pytest.approx(1)
    alone = explained({"main": time}, visits={"main": messages})
    assert alone.share < 0.5


def test_what_is_needed_in_proportion_counts_once():
    found = explained({"main": 1e-3 * P**2}, visits={"main": 2 * P}, bytes_sent={"main": 1000 * P})
    assert found.share == pytest.approx(P[0] / P[-1], rel=0.11)


def test_costs_are_known_from_where_it_does_all_that_it_does_at_the_largest_scale():
    sent = np.where(P[0] < P, 800.0, 0.0)
    found = explained({"main": 1e-6 * P}, visits={"main": 4 + 0 * P}, bytes_sent={"main": sent})
    assert found.base == 1
    assert np.isnan(found.explained[0])


def test_noise_of_repetitions_is_no_waiting():
    rng = np.random.default_rng(3)
    time = {"main": 2e-6 * P[:, None] * (1 + 0.05 * rng.standard_normal((len(P), 5)))}
    assert explained(time, visits={"main": 3 * P}).share > 0.95


def test_less_time_for_less_to_do_is_explained():
    found = explained({"main": 1 / P}, visits={"main": 4096 / P})
    assert found.share == 1


def test_callees_that_cost_unlike_are_not_held_against_a_sum_of_their_calls():
    time = {"main": 0 * P + 1e-3, "main/few": 1 + 0 * P, "main/many": 1e-3 / P}
    visits = {"main": 0 * P + 1, "main/few": 10 + 0 * P, "main/many": 1e6 / P}
    assert explained(time, visits=visits, inclusive=True) is None
    leaf = explained(time, visits=visits, inclusive=True, path="main/few")
    assert leaf.share == 1


def test_without_needs_nothing_is_held_against_time():
    assert explained({"main": P}) is None
    assert explained({"main": P}, visits={"main": 0 * P}) is None
    only_last = np.where(P[-1] == P, 5.0, NAN)
    assert explained({"main": P}, visits={"main": only_last}) is None


def test_what_is_no_time_is_not_explained():
    made = beside(experiment({"main": 3 * P}, metric=VISITS), {BYTES: {"main": P}})
    assert explain(rank(pipeline.fit(made, "visits"), 64), 0) is None


def test_needs_are_what_their_own_models_say():
    found = explained({"main": 2e-6 * P}, visits={"main": 3 * P}, target=4096.0)
    need = found.needs[0]
    assert need.growth.text("p") == "O(p)"
    assert need.at_target == pytest.approx(3 * 4096)
