"""Call paths that wait are predicted from what delays them, where that is known better."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler import modeling
from callpath_modeler.analysis.spent_delays import SpentDelays
from callpath_modeler.analysis.waiting import delays_at, parts_of
from callpath_modeler.profile.pattern import find_one
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.studies import pipeline
from synthetic import experiment

POINTS = np.array([8.0, 16, 32, 64, 128])
FAR = 512.0


def series(noise=0.0, reduction=Reduction.MEAN, seed=1):
    """Return runs in which a broadcast waits for work of the root that is 4 us p log2 p."""
    rng = np.random.default_rng(seed)
    root = 4e-6 * POINTS * np.log2(POINTS)

    def disturbed(values):
        return values * np.exp(noise * rng.normal(size=len(POINTS)))

    made = experiment(
        {
            "main": np.full(len(POINTS), 1e-4),
            "main/solve": np.full(len(POINTS), 1e-2),
            "main/norm": root / POINTS,
            "main/MPI_Bcast": disturbed(root * (1 - 1 / POINTS) + 2e-5),
        },
        points=POINTS,
    )
    column = made.columns["time"]
    uneven = np.ones(column.exclusive.shape, np.float32)
    uneven[find_one(made.tree, "main/norm")] = POINTS
    columns = {"time": replace(column, imbalance=uneven)}
    return replace(made, columns=columns, reduction=reduction)


def truth(p):
    """Return the time of the broadcast."""
    return 4e-6 * p * np.log2(p) * (1 - 1 / p) + 2e-5


def own_law(made):
    """Return the models of the times alone."""
    points, runs = made.by_point("time", "p")
    return modeling.fit(points, runs, priors=modeling.learn(points, runs))


def test_a_noisy_wait_is_predicted_from_the_delay_that_is_known_better():
    errors = []
    for seed in range(16):
        made = series(noise=0.3, seed=seed)
        row = find_one(made.tree, "main/MPI_Bcast")
        either = pipeline.fit(made).models, own_law(made)
        said = np.array([models.values(np.array([FAR]))[row, 0] for models in either])
        errors.append(abs(np.log(said / truth(FAR))))
    by_parts, alone = np.mean(errors, axis=0)
    assert by_parts < 0.6 * alone


def test_parts_add_up_to_the_time_and_the_delay_is_that_of_the_slowest_process():
    fitted = pipeline.fit(series())
    spent = SpentDelays.of(fitted)
    scales = np.append(POINTS, FAR)
    parts = parts_of(fitted, spent, np.arange(len(spent.rows)), scales)
    assert parts.time[0] == pytest.approx(truth(scales), rel=0.02)
    late, variance = delays_at(fitted, spent, np.arange(len(spent.late)), scales)
    assert late[0, -1] == pytest.approx(4e-6 * FAR * 9 * (1 - 1 / FAR), rel=0.02)
    assert (variance >= 0).all()
    assert variance[0, -1] < 0.01


def test_maxima_and_processes_that_are_not_known_keep_the_law_of_the_times():
    of_maxima = pipeline.fit(series(noise=0.3, reduction=Reduction.MAX))
    made = series(noise=0.3)
    bare = {"time": replace(made.columns["time"], imbalance=None)}
    unknown = pipeline.fit(replace(made, columns=bare))
    row = find_one(made.tree, "main/MPI_Bcast")
    for fitted in (of_maxima, unknown):
        assert fitted.models.formula(row) == own_law(made).formula(row)


def test_computation_keeps_its_bands():
    made = series(noise=0.3)
    fitted = pipeline.fit(made)
    computing = [find_one(made.tree, path) for path in ("main", "main/solve", "main/norm")]
    assert not fitted.waits[computing].any()
    assert fitted.waits[find_one(made.tree, "main/MPI_Bcast")]


def test_balanced_computation_delays_nobody():
    made = series(noise=0.3)
    even = {"time": replace(made.columns["time"], imbalance=np.ones((4, 5), np.float32))}
    fitted = pipeline.fit(replace(made, columns=even))
    assert not SpentDelays.of(fitted).delay.any()
