"""What a run gains from a faster network, from counts and bytes of its calls."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.network import Unit
from callpath_modeler.analysis.what_if import parse_change, what_if
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.ranking_text import changed_sentence
from callpath_modeler.studies import pipeline
from cells import cells
from synthetic import experiment

POINTS = np.array([8.0, 16, 32, 64, 128])
ONE = np.ones(len(POINTS))
FAR = 512.0
LATENCY, BYTE = 5e-6, 1e-9
SUMS, HALOS, FACE = 100, 20, 1e5


def ranked(times, counts, *, uneven=(), without=(), reduction=Reduction.MEAN):
    """Return a ranking with visits and bytes; `uneven` call paths take 1.5 times the mean."""
    made = experiment(times, points=POINTS)
    column = made.columns["time"]
    imbalance = np.ones(column.exclusive.shape, np.float32)
    for path in uneven:
        imbalance[find_one(made.tree, path)] = 1.5
    columns = {"time": replace(column, imbalance=imbalance)}
    for k, metric in enumerate((Metric("visits", "1"), Metric("bytes_sent", "B"))):
        values = np.zeros(column.exclusive.shape)
        for path, both in counts.items():
            values[find_one(made.tree, path)] = both[k]
        if metric.name not in without:
            columns[metric.name] = MetricValues(metric, values, values.sum(axis=0))
    declared = dict.fromkeys(columns, "")
    made = replace(made, columns=columns, declared=declared, reduction=reduction)
    return cpm.rank(pipeline.fit(made), FAR)


def steps(p):
    return SUMS * np.log2(p) + HALOS


def run(face=FACE, *, recv="main/MPI_Waitall", **of_run):
    """Return the ranking of sums of 8 B, and of halo exchanges, on a network that is known."""
    times = {
        "main": 1e-4 * ONE,
        "main/solve": 2e-2 * ONE,
        "main/MPI_Allreduce": SUMS * LATENCY * np.log2(POINTS),
        recv: HALOS * (LATENCY + BYTE * face) * ONE,
    }
    counts = {
        "main/solve": (SUMS, 0),
        "main/MPI_Allreduce": (SUMS, 8 * SUMS * POINTS),
        recv: (HALOS, HALOS * face),
    }
    return ranked(times, counts, **of_run)


def asked(ranking, *texts):
    return what_if(ranking, [parse_change(text) for text in texts])


def test_latency_is_that_of_the_machine_and_half_of_it_gains_half():
    ranking = run(face=8)
    whole, half = asked(ranking, "latency * 0"), asked(ranking, "latency / 2")
    truth = LATENCY * steps(FAR)
    assert whole.gain[0] == pytest.approx(truth, rel=0.05)
    assert 0.4 * truth < whole.gain[1] <= 0.5 * truth * (1 + 1e-6)
    assert whole.gain[0] <= whole.gain[2]
    assert np.array(half.gain) == pytest.approx(np.array(whole.gain) / 2)
    (cost,) = whole.network
    assert cost.unit is Unit.STEP
    assert cost.each[0] == pytest.approx(LATENCY, rel=0.05)
    assert cost.each[1] <= LATENCY <= cost.each[2] * (1 + 1e-6)


def test_bandwidth_gains_the_time_of_the_bytes():
    truth = HALOS * BYTE * FACE
    changed = asked(run(), "bandwidth * 2")
    assert changed.gain[0] == pytest.approx(truth / 2, rel=0.1)
    assert changed.gain[1] <= truth / 2 <= changed.gain[2]
    assert changed.network[0].each[0] == pytest.approx(BYTE, rel=0.1)


def test_call_paths_save_what_the_run_gains_and_no_more_than_they_take():
    ranking = run()
    changed = asked(ranking, "latency * 0", "bandwidth * 1e9")
    before = ranking.call_paths[0].value
    saved = before - changed.values
    assert saved.sum() == pytest.approx(changed.gain[0], rel=1e-6)
    assert (saved >= 0).all()
    assert (saved <= before).all()
    assert saved[find_one(ranking.fitted.experiment.tree, "main/solve")] == 0
    assert changed.gain[2] <= changed.before[2]
    other = asked(ranking, "bandwidth * 1e9", "latency * 0")
    assert other.gain == pytest.approx(changed.gain)


def test_the_order_of_changes_does_not_matter():
    ranking = run(uneven=["main/solve"])
    texts = ("main/solve time / 2", "latency / 2", "bandwidth * 2")
    assert asked(ranking, *texts).gain == pytest.approx(asked(ranking, *texts[::-1]).gain)


def test_a_network_that_costs_nothing_gains_nothing():
    """All time of the sum is waiting for the slowest process."""
    times = {
        "main": 1e-4 * ONE,
        "main/solve": 2e-2 * ONE,
        "main/MPI_Allreduce": 1e-2 * ONE,
    }
    counts = {"main/MPI_Allreduce": (3 * ONE, 24 * POINTS)}
    ranking = ranked(times, counts, uneven=["main/solve"])
    changed = asked(ranking, "latency * 0")
    assert changed.gain[:2] == pytest.approx((0, 0), abs=1e-9)
    # Three sums have few steps, and no machine takes 0.1 ms for one.
    assert changed.gain[2] < 3 * 10 * 2e-4
    said = changed_sentence(ranking, changed, style=TextStyle(ascii_only=True))
    assert "do not show the latency: the calls allow 0 … " in said


def test_uneven_computation_may_be_all_of_the_waiting():
    """The slowest process may change from call to call, which sums over a run hide."""
    certain, doubtful = (
        asked(run(face=8, uneven=uneven), "latency * 0").gain for uneven in ((), ["main/solve"])
    )
    assert certain[1] > 0
    assert doubtful[1] == 0


@cells("name", ["MPI_Isend", "MPI_Iallreduce"])
def test_calls_that_start_an_operation_do_not_show_the_latency(name):
    """A call of 0.2 us waited for nothing, so that bytes looked as if they took all the time."""
    times = {
        "main": 1e-4 * ONE,
        "main/solve": 2e-2 * ONE,
        "main/MPI_Allreduce": SUMS * LATENCY * np.log2(POINTS),
        f"main/{name}": 40 * SUMS * 2e-7 * ONE,
    }
    counts = {
        "main/MPI_Allreduce": (SUMS, 8 * SUMS * POINTS),
        f"main/{name}": (40 * SUMS, 40 * SUMS * 8),
    }
    changed = asked(ranked(times, counts), "latency * 0", "bandwidth * 1e9")
    steps, moved = changed.network
    assert steps.gain[0] > 0.8 * SUMS * LATENCY * np.log2(FAR)
    assert moved.gain[1] == 0


def test_time_that_no_network_takes_is_waiting_of_another_kind():
    """Ranks that share a core wait for 1 ms a step; a lower end of the gain was above zero."""
    times = {
        "main": 1e-4 * ONE,
        "main/solve": 2e-2 * ONE,
        "main/MPI_Allreduce": SUMS * LATENCY * np.log2(POINTS),
        "main/MPI_Waitall": 1e-3 * HALOS * ONE,
    }
    counts = {
        "main/MPI_Allreduce": (SUMS, 8 * SUMS * POINTS),
        "main/MPI_Waitall": (HALOS, 8 * HALOS),
    }
    assert asked(ranked(times, counts), "latency * 0").gain[1] == 0
    del times["main/MPI_Waitall"], counts["main/MPI_Waitall"]
    assert asked(ranked(times, counts), "latency * 0").gain[1] > 0
    times["main/MPI_Allreduce"] *= 100
    assert asked(ranked(times, counts), "latency * 0").gain[1] == 0


def test_waiting_in_a_chain_is_no_transfer():
    free, chain = (
        asked(run(face=8, recv=f"main/{name}"), "latency * 0").gain
        for name in ("MPI_Waitall", "MPI_Recv")
    )
    assert free[1] > 0
    assert chain[1] == 0
    assert chain[0] == pytest.approx(free[0], rel=0.05)


def test_the_sentence_has_the_network():
    ranking = run(face=8)
    said = changed_sentence(
        ranking, asked(ranking, "latency / 2", "bandwidth * 2"), style=TextStyle(ascii_only=True)
    )
    assert re.search(r"latency of (?:5\.0|4\.9)\d us a step", said)
    assert "do not show the bandwidth" in said
    assert said.count("tells both apart") == 1


@cells(("without", "what"), [(("visits",), "calls"), (("bytes_sent",), "bytes")])
def test_profiles_without_counts_are_refused(without, what):
    with pytest.raises(UsageError, match=f"do not count the {what} of MPI") as error:
        asked(run(without=without), "latency / 2")
    assert "visits and bytes" in error.value.hint


def test_programs_without_messages_are_refused():
    ranking = ranked({"main": ONE, "main/solve": ONE}, {"main": (1, 0)})
    with pytest.raises(UsageError, match="no call path waits for messages"):
        asked(ranking, "latency / 2")


def test_sums_over_processes_are_refused():
    with pytest.raises(UsageError, match="means over processes"):
        asked(run(reduction=Reduction.SUM), "latency / 2")


@cells(
    ("text", "message"),
    [
        ("latency = 1", "latency / 1 or more"),
        ("latency * 2", "latency / 1 or more"),
        ("bandwidth / 2", "bandwidth \\* 1 or more"),
        ("bandwidth * 0", "bandwidth \\* 1 or more"),
        ("latency / 0", "not a number"),
        ("latency * nan", "not a number"),
        ("main/solve latency / 2", "all call paths share one latency"),
        ("latency", "not a change"),
        ("time / 2", "not a change"),
        ("latencyy / 2", "not a change"),
    ],
)
def test_wrong_changes_of_the_network_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_change(text)


def test_a_call_path_may_be_named_latency():
    assert parse_change("main/latency time / 2").pattern == "main/latency"
    assert parse_change("latency time * 0").pattern == "latency"
