"""Causes of growth: generated call paths with a known cause."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.answer import rank
from callpath_modeler.analysis.cause import regress
from callpath_modeler.analysis.cause_search import find_causes
from callpath_modeler.analysis.laws_of_time import BLOCKS, FAMILIES, Kind
from callpath_modeler.analysis.predict import predicted_values
from callpath_modeler.analysis.spent_delays import SpentDelays
from callpath_modeler.analysis.waiting import parts_of
from callpath_modeler.profile.call_class import CallClass
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.studies import pipeline
from callpath_modeler.studies.pipeline import explain
from synthetic import experiment

P = np.array([8.0, 16, 32, 64, 128])
TARGET = 1024.0
ONE = np.ones(len(P))
NOISE, REPETITIONS = 0.05, 3
METRICS = {
    "visits": Metric("visits", "1"),
    "bytes_sent": Metric("bytes_sent", "B"),
    "flops": Metric("papi_fp_ops", "1"),
}


def measured(times, needs=(), imbalance=(), *, noise=NOISE, seed=1, scaling=Scaling.WEAK):
    """Return an experiment: times and requirements by call path, and largest over mean times."""
    random = np.random.default_rng(seed)
    scatter = 1 + noise * random.standard_normal((len(times), len(P), REPETITIONS))
    cube = np.array([np.asarray(of, float) for of in times.values()])[..., None] * scatter
    made = experiment(
        {path: values.tolist() for path, values in zip(times, cube, strict=True)},
        P,
        reduction=Reduction.MEAN,
        scaling=scaling,
    )
    columns = dict(made.columns)
    if imbalance:
        ratio = np.ones((len(times), len(P), REPETITIONS), np.float32)
        for row, path in enumerate(times):
            of = np.asarray(imbalance.get(path, ONE), np.float32)
            ratio[row] = of if of.ndim == 2 else of[:, None]
        columns["time"] = replace(columns["time"], imbalance=ratio.reshape(len(times), -1))
    for name, of in dict(needs).items():
        values = np.array([np.asarray(of.get(path, 0 * P), float) for path in times])
        values = np.repeat(values, REPETITIONS, axis=1)
        columns[METRICS[name].name] = MetricValues(METRICS[name], values, values.sum(axis=0))
    return replace(made, columns=columns)


def cause_of(path, times, needs=(), imbalance=(), target=TARGET, **more):
    """Return why the time of a call path grows; other call paths do not grow."""
    steady = {f"main/steady{k}": (1 + k / 7) * ONE for k in range(10)}
    times = {"main": 0.3 * ONE, **times, **steady}
    made = measured(times, needs, imbalance, **more)
    found = find_causes(pipeline.fit(made, "time"), target, np.arange(len(made.tree)))
    return found.at([*times].index(path))


def shares_hold(cause, truth):
    share = cause.explained().required
    return share.low - 0.01 <= truth <= share.high + 0.01


def test_work_that_grows_is_more_work():
    time = 0.2 + 0.01 * P
    cause = cause_of("main/f", {"main/f": time}, {"visits": {"main/f": 100 * time}})
    assert cause.label == "more work"
    assert cause.agrees
    assert shares_hold(cause, 1.0)
    _, terms = cause.terms()
    assert sum(term.at_largest for term in terms) == pytest.approx(time[-1], rel=0.1)


def test_operations_explain_calls_that_take_longer():
    time = 0.2 + 0.01 * P
    needs = {"visits": {"main/f": 100 * ONE}, "flops": {"main/f": 1e9 * time}}
    assert cause_of("main/f", {"main/f": time}, needs).label == "more work"


def test_bytes_that_grow_are_longer_messages():
    size = 1e4 * np.sqrt(P)
    path, time = "main/MPI_Send", 50 * (1e-3 + 1e-6 * size)
    cause = cause_of(
        path, {path: time}, {"visits": {path: 50 * ONE}, "bytes_sent": {path: 50 * size}}
    )
    assert cause.label == "longer messages"
    assert cause.terms()[0].law in {"time for each call and each byte", "time for each byte"}
    assert shares_hold(cause, 1.0)


def test_more_messages_of_the_same_size():
    path, number = "main/MPI_Isend", 10 * P**0.7
    needs = {"visits": {path: number}, "bytes_sent": {path: 8e3 * number}}
    assert cause_of(path, {path: 1e-3 * number}, needs).label == "more messages"


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_serialised_code_makes_messages_wait(power):
    # Sweep3D: the time of MPI_Recv grows, while messages and bytes do not (SC13, table 3).
    path, rest = "main/MPI_Recv", 0.3
    time = rest + (P / P[-1]) ** power
    needs = {"visits": {path: 40 * ONE}, "bytes_sent": {path: 4e5 * ONE}}
    cause = cause_of(path, {path: time}, needs)
    assert cause.label == "waits"
    assert not cause.agrees
    assert cause.probability(Kind.WAITING) > 0.9
    assert shares_hold(cause, rest / (rest + (TARGET / P[-1]) ** power))


def test_late_senders_are_named():
    late = 0.8 * (P / P[-1]) ** 0.8
    paths = {
        "main/step": 0.1 * ONE,
        "main/step/forces": 2 * ONE,
        "main/step/MPI_Waitall": 0.1 + late,
    }
    visits = {"visits": dict.fromkeys(paths, 100 * ONE)}
    cause = cause_of("main/step/MPI_Waitall", paths, visits, {"main/step/forces": 1 + late / 2})
    assert cause.label == "waits for forces"
    truth = 0.1 / (0.1 + 0.8 * (TARGET / P[-1]) ** 0.8)
    assert shares_hold(cause, truth)


def test_contention_is_not_explained():
    needs = {"visits": {"main/f": 10 * ONE}, "flops": {"main/f": 1e9 * ONE}}
    cause = cause_of("main/f", {"main/f": 0.4 + (P / P[-1]) ** 0.8}, needs)
    assert cause.label == "unexplained"


def test_the_slowest_process_grows_and_the_mean_does_not():
    visits = {"visits": {"main/f": 10 * ONE}}
    cause = cause_of("main/f", {"main/f": ONE}, visits, {"main/f": 1 + 2 * P / P[-1]})
    assert cause.label == "imbalance"


def test_work_on_one_process_is_imbalance():
    visits = {"visits": {"main/f": 1 / P}}
    cause = cause_of("main/f", {"main/f": ONE}, visits, {"main/f": P})
    assert cause.label == "imbalance"
    np.testing.assert_allclose(cause.imbalance().processes, 1, rtol=0.01)


def test_the_largest_of_random_times_is_no_imbalance():
    # The largest of p exponential times is log p times the mean.
    random = np.random.default_rng(3)
    ratio = np.array(
        [[0.7 + random.exponential(0.3, int(p)).max() for _ in range(REPETITIONS)] for p in P]
    )
    visits = {"visits": {"main/f": 10 * ONE}}
    assert cause_of("main/f", {"main/f": ONE}, visits, {"main/f": ratio}).label == "-"


def test_a_broadcast_over_more_processes():
    path = "main/MPI_Bcast"
    time = 100 * (1e-3 + 1e-3 * np.log2(P))
    needs = {"visits": {path: 100 * ONE}, "bytes_sent": {path: 8e4 * ONE}}
    cause = cause_of(path, {path: time}, needs, noise=0.01)
    assert cause.label == "collective log p"
    assert shares_hold(cause, 1.0)
    assert cause.family is None  # as many bytes at all scales: the data cannot tell which


def test_bytes_that_are_counted_once_per_process_are_no_longer_messages():
    # Score-P counts the bytes of an all-reduce p times.
    path = "main/MPI_Allreduce"
    needs = {"visits": {path: 24 * ONE}, "bytes_sent": {path: 192 * P}}
    cause = cause_of(path, {path: 0.1 + 0.1 * np.log2(P)}, needs, noise=0.01)
    assert cause.label == "collective log p"


def test_nothing_that_does_not_grow_has_a_cause():
    random = np.random.default_rng(0)
    names = ["f", "MPI_Send", "MPI_Allreduce", "MPI_Wait", "MPI_Bcast"]
    times = {f"main/{name}": ONE for name in names}
    times |= {f"main/g{k}": random.uniform(1e-3, 1) * ONE for k in range(200)}
    visits = {"visits": dict.fromkeys(times, 7 * ONE)}
    made = measured({"main": ONE, **times}, visits, dict.fromkeys(times, ONE), noise=0.1)
    found = find_causes(pipeline.fit(made, "time"), TARGET, np.arange(len(made.tree)))
    assert set(found.labels) == {"-"}


def test_work_that_is_not_divided_does_not_scale():
    visits = {"visits": {"main/f": 10 * ONE, "main/g": 1e4 / P}}
    times = {"main/f": ONE, "main/g": 10 / P}
    assert cause_of("main/f", times, visits, scaling=Scaling.STRONG).label == "more work"
    assert cause_of("main/g", times, visits, scaling=Scaling.STRONG).label == "-"


def test_without_requirements_the_cause_is_not_known():
    assert cause_of("main/f", {"main/f": P}).label == "-"


def test_a_target_at_infinity_has_a_cause():
    cause = cause_of("main/f", {"main/f": P}, {"visits": {"main/f": P}}, target=np.inf)
    assert cause.label == "more work"
    assert np.isfinite(cause.explained().time)


def test_labels_of_a_ranking_are_those_of_the_call_paths():
    times = {"main": ONE, "main/f": P, "main/g": 2 * ONE}
    made = measured(times, {"visits": {"main/f": P, "main/g": ONE}})
    ranking = rank(pipeline.fit(made, "time"), TARGET)
    assert ranking.why(np.array([1, 2])) == ["more work", "-"]
    assert explain(ranking, 1).label == "more work"
    whole = rank(pipeline.fit(made, "time"), TARGET, inclusive=True)
    assert whole.why(np.array([0])) == ["more work"]  # of the callee that grows fastest
    assert explain(whole, 0) is None


def test_the_first_call_path_has_a_cause_and_one_without_a_model_has_none():
    nan = float("nan")
    late = np.array([nan, nan, nan, 2.0, 2.0])
    times = {"main": P, "main/late": late, "main/steady": ONE, "main/f": 2 * P}
    needs = {"main": P, "main/late": np.nan_to_num(late), "main/f": P}
    made = pipeline.fit(measured(times, {"visits": needs}), "time")
    for inclusive in (False, True):
        ranking = rank(made, TARGET, inclusive=inclusive)
        assert ranking.leader[1] == -1
        expected = ["more work", "-", "-", "more work"]
        assert ranking.why(np.arange(4)) == expected
        assert ranking.why(np.arange(4)[::-1]) == expected[::-1]  # found before


def test_other_metrics_have_no_causes():
    made = measured({"main": ONE}, {"visits": {"main": P}})
    ranking = rank(pipeline.fit(made, "visits"), TARGET)
    assert ranking.why(np.array([0])) == ["-"]
    assert explain(ranking, 0) is None


def test_a_call_path_that_is_new_at_some_scale_is_compared_from_there():
    time = np.where(P[0] < P, 0.01 * P, np.nan)
    cause = cause_of("main/f", {"main/f": time}, {"visits": {"main/f": np.nan_to_num(time)}})
    assert (cause.label, cause.base) == ("more work", 1)


@pytest.mark.parametrize("kind", [CallClass.ALLTOALL, CallClass.ALLGATHER, CallClass.SCAN])
def test_the_algorithm_of_a_collective_is_named_or_open(kind):
    random = np.random.default_rng(5)
    path = {"alltoall": "MPI_Alltoall", "allgather": "MPI_Allgather", "scan": "MPI_Scan"}[kind]
    right = wrong = 0
    for family in FAMILIES[kind]:
        for seed in range(6):
            bytes_ = 1e4 * P ** random.uniform(0.3, 1)
            sent = family.size.of(P) * (P if kind in BLOCKS else 1) * bytes_
            time = family.latency.of(P) / family.latency.of(P)[0] + sent / sent[0]
            counted = 1 if kind is CallClass.SCAN else P
            needs = {
                "visits": {f"main/{path}": 9 * ONE},
                "bytes_sent": {f"main/{path}": 9 * bytes_ * counted},
            }
            cause = cause_of(f"main/{path}", {f"main/{path}": time}, needs, noise=0.02, seed=seed)
            told = cause.family
            right += told is family
            wrong += told is not None and told is not family
    assert wrong <= 1
    assert right >= 4


def test_regressions_agree_with_least_squares():
    random = np.random.default_rng(0)
    features = random.uniform(1, 2, (4, 6, 2))
    time = features @ [2.0, 3.0] * (1 + 0.01 * random.standard_normal((4, 6)))
    weight = 1 / (0.01 * time)
    found = regress(time, weight, features)
    for k in range(4):
        expected = np.linalg.lstsq(
            features[k] * weight[k][:, None], time[k] * weight[k], rcond=None
        )[0]
        np.testing.assert_allclose(found.coefficients[k], expected, rtol=1e-6)
    covariance = np.linalg.inv(np.einsum("kf,kg,k->fg", features[0], features[0], weight[0] ** 2))
    np.testing.assert_allclose(found.root[0] @ found.root[0].T, covariance, rtol=1e-6)


def test_features_that_are_the_same_or_absent_do_not_hold():
    time, weight = np.ones((1, 4)), np.full((1, 4), 10.0)
    one = np.ones((1, 4, 1))
    assert not regress(time, weight, np.concatenate([one, 2 * one], axis=2)).holds[0]
    assert not regress(time, weight, 0 * one).holds[0]
    assert regress(time, weight, one).holds[0]


def test_a_cause_has_the_time_and_the_delay_of_the_ranking():
    late = 0.8 * (P / P[-1]) ** 0.8
    paths = {
        "main/step": 0.1 * ONE,
        "main/step/forces": 2 * ONE,
        "main/step/MPI_Waitall": 0.1 + late,
    }
    visits = {"visits": dict.fromkeys(paths, 100 * ONE)}
    cause = cause_of("main/step/MPI_Waitall", paths, visits, {"main/step/forces": 1 + late / 2})
    fitted, row = cause.causes.fitted, cause.row
    explained = cause.explained()
    assert explained.time == predicted_values(fitted, TARGET)[row]
    spent = SpentDelays.of(fitted)
    parts = parts_of(fitted, spent, np.flatnonzero(spent.rows == row), np.array([TARGET]))
    delayed = float((parts.delay / parts.time)[0, 0])
    assert explained.delayed.value == pytest.approx(delayed, abs=0.01)
    shares = explained.required.value + explained.delayed.value + explained.rest.value
    assert shares == pytest.approx(1, abs=0.05)
