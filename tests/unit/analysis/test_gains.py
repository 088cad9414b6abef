"""What a run gains if a cause is removed or changed, with the waiting for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.what_if import gains_at, parse_change, what_if
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.studies import pipeline
from cells import cells
from synthetic import experiment

POINTS = np.array([8.0, 16, 32, 64, 128])
FAR = 512.0


def ranked(times, uneven):
    """Return the ranking of mean times; the slowest process takes `uneven` times as long, or 1."""
    made = experiment(times, points=POINTS)
    column = made.columns["time"]
    imbalance = np.ones(column.exclusive.shape, np.float32)
    for path, factor in uneven.items():
        imbalance[find_one(made.tree, path)] = factor
    columns = {"time": replace(column, imbalance=imbalance)}
    return cpm.rank(pipeline.fit(replace(made, columns=columns, reduction=Reduction.MEAN)), FAR)


@pytest.fixture(scope="module")
def ranking():
    """Work of the root for which a broadcast waits, uneven work, and a pipeline."""
    root = 1e-5 * POINTS
    one = np.ones(len(POINTS))
    return ranked(
        {
            "main": 1e-4 * one,
            "main/norm": root / POINTS,
            "main/MPI_Bcast": root * (1 - 1 / POINTS) + 1e-5,
            "main/solve": 2e-2 * one,
            "main/MPI_Allreduce": 1.01e-2 * one,
            "main/sweep": 1e-9 * one,
            "main/sweep/block": 5e-3 * one,
            "main/sweep/MPI_Recv": 8e-3 * one,
            "main/halo": 1e-9 * one,
            "main/halo/stencil": 5e-3 * one,
            "main/halo/MPI_Isend": 1e-6 * one,
            "main/halo/MPI_Recv": 8e-3 * one,
        },
        {"main/norm": POINTS, "main/solve": 1.5},
    )


def asked(ranking, *texts):
    return what_if(ranking, [parse_change(text) for text in texts])


def after(ranking, changed, path):
    return changed.values[find_one(ranking.fitted.experiment.tree, path)]


def test_work_gains_the_time_of_its_slowest_process_and_who_waits_gets_faster(ranking):
    changed = asked(ranking, "main/norm time * 0")
    assert changed.gain[0] == pytest.approx(1e-5 * FAR, rel=0.02)
    assert changed.gain[1] < changed.gain[0] < changed.gain[2]
    assert after(ranking, changed, "main/norm") == pytest.approx(0, abs=1e-9)
    assert after(ranking, changed, "main/MPI_Bcast") == pytest.approx(1e-5, abs=2e-5)
    assert after(ranking, changed, "main/solve") == pytest.approx(2e-2, rel=0.01)
    assert changed.after[0] == pytest.approx(changed.before[0] - changed.gain[0])


def test_half_of_the_work_gains_half_and_several_changes_add_up(ranking):
    half = asked(ranking, "main/norm time / 2").gain[0]
    whole = asked(ranking, "main/norm time * 0").gain[0]
    assert half == pytest.approx(whole / 2)
    balanced = asked(ranking, "main/solve imbalance = 1").gain[0]
    both = asked(ranking, "main/norm time * 0", "main/solve imbalance = 1")
    assert both.gain[0] == pytest.approx(whole + balanced)
    again = asked(ranking, "main/solve imbalance = 1.25").gain[0]
    assert again == pytest.approx(balanced / 2, rel=0.02)


def test_more_work_costs_time(ranking):
    changed = asked(ranking, "main/norm time * 2")
    assert changed.gain[0] == pytest.approx(-1e-5 * FAR, rel=0.02)
    assert changed.gain[1] <= changed.gain[0] <= changed.gain[2]
    assert changed.after[0] > changed.before[0]


def test_balance_gains_the_delay_and_its_band_has_nothing_and_much_more(ranking):
    changed = asked(ranking, "main/solve imbalance = 1")
    assert changed.gain[0] == pytest.approx(1e-2, rel=0.02)
    assert changed.gain[1] < 0
    assert changed.gain[2] > 2.5e-2
    assert after(ranking, changed, "main/MPI_Allreduce") == pytest.approx(1e-4, abs=3e-4)
    assert after(ranking, changed, "main/solve") == pytest.approx(2e-2, rel=0.01)


def gains_of(ranking, *paths):
    tree = ranking.fitted.experiment.tree
    return gains_at(ranking, np.array([find_one(tree, path) for path in paths]))


def test_work_in_a_chain_of_messages_gains_a_part_of_the_waiting(ranking):
    gain = gains_of(ranking, "main/sweep/block", "main/solve")
    assert gain.value == pytest.approx([(5e-3 * 13e-3) ** 0.5, 3e-2], rel=0.02)
    assert gain.low[0] == pytest.approx(2.5e-3, rel=0.05)
    assert gain.high[0] == pytest.approx(13e-3, rel=0.05)
    assert gain.high[1] < 3.2e-2


def test_work_in_an_exchange_gains_its_own_time_with_a_wide_band(ranking):
    gain = gains_of(ranking, "main/halo/stencil")
    assert gain.value[0] == pytest.approx(5e-3, rel=0.02)
    assert gain.low[0] == pytest.approx(2.5e-3, rel=0.05)
    assert gain.high[0] == pytest.approx(13e-3, rel=0.05)


def test_two_computations_of_a_chain_share_its_waiting():
    one = np.ones(len(POINTS))
    ranking = ranked(
        {
            "main": 1e-4 * one,
            "main/sweep": 1e-9 * one,
            "main/sweep/lower": 6e-3 * one,
            "main/sweep/upper": 2e-3 * one,
            "main/sweep/MPI_Recv": 8e-3 * one,
            "main/sweep/MPI_Send": 1e-6 * one,
        },
        {},
    )
    gain = gains_of(ranking, "main/sweep/lower", "main/sweep/upper")
    assert gain.value == pytest.approx([(6e-3 * 12e-3) ** 0.5, (2e-3 * 4e-3) ** 0.5], rel=0.02)


def test_operations_gain_what_they_do_not_wait(ranking):
    tree = ranking.fitted.experiment.tree
    rows = np.array([find_one(tree, "main/MPI_Bcast"), find_one(tree, "main/MPI_Allreduce")])
    assert gains_at(ranking, rows).value == pytest.approx([1e-5, 1e-4], abs=3e-4)


def test_without_values_of_processes_gains_are_not_known(ranking):
    made = ranking.fitted.experiment
    bare = {"time": replace(made.columns["time"], imbalance=None)}
    other = cpm.rank(pipeline.fit(replace(made, columns=bare)), FAR)
    assert np.isnan(gains_at(other, np.arange(3)).value).all()
    with pytest.raises(UsageError, match="no times per process"):
        asked(other, "main/norm time * 0")


@cells(
    ("text", "message"),
    [
        ("main/norm", "not a change"),
        ("main/norm time = 0", "time \\* or / a number"),
        ("main/norm imbalance * 2", "imbalance = 1 or more"),
        ("main/norm imbalance = 0.5", "imbalance = 1 or more"),
        ("main/norm time * -1", "not a number"),
        ("main/norm time / 0", "not a number"),
        ("main/norm time * 1e999", "not a number"),
        ("main/norm time * x", "not a number"),
    ],
)
def test_wrong_changes_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_change(text)


def test_patterns_have_to_name_computation(ranking):
    with pytest.raises(UsageError, match="computes nothing"):
        asked(ranking, "**/MPI_Bcast time * 0")
    with pytest.raises(UsageError, match="no call path matches"):
        asked(ranking, "main/absent time * 0")


def test_no_operation_gains_more_than_it_takes(ranking):
    """The gain of an operation had a model of its own, and was 10.7 s of .84 s."""
    rows = np.flatnonzero(ranking.fitted.waits)
    times, gain = ranking.of_rows(rows)[0], gains_at(ranking, rows)
    known = np.isfinite(gain.value)
    assert known.sum() > 3
    assert (gain.value[known] <= times.value[known]).all()
    assert (gain.high[known] <= times.high[known]).all()
