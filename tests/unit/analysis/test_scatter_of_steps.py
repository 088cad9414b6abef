"""Two levels of noise: runs, and steps of one run, which may be correlated."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler import modeling
from callpath_modeler.analysis.step_time import band_of_one_step, step_scatter
from callpath_modeler.profile.schema import STEP_SCATTER, STEPS
from cells import cells
from synthetic import experiment

P, TARGET, RUNS, SERIES = np.array([1.0, 2, 4, 8, 16]), 32.0, 3, 50


def law(p):
    return 0.1 + 0.02 * np.log2(p)


def steps(random, runs, count, correlation, scatter, between):
    """Return steps of runs around 1, [runs, count]; neighbouring steps of a run are correlated."""
    drawn = random.standard_normal((runs, count))
    for k in range(1, count):
        new = math.sqrt(1 - correlation**2) * drawn[:, k]
        drawn[:, k] = correlation * drawn[:, k - 1] + new
    return np.exp(scatter * drawn + between * random.standard_normal((runs, 1)))


def stated(data):
    """Return an experiment with the mean steps of runs, and their scatter, [scales, runs, k]."""
    made = experiment({"main": data.mean(axis=2).tolist()}, P.tolist())
    relative = (data.std(axis=2) / data.mean(axis=2)).ravel()
    runs = [
        replace(run, metadata={STEPS: str(data.shape[2]), STEP_SCATTER: f"{each:.6g}"})
        for run, each in zip(made.runs, relative.tolist(), strict=True)
    ]
    return replace(made, runs=runs)


@cells(
    ("count", "correlation", "scatter", "between"),
    [(6, 0.0, 0.1, 0.03), (20, 0.8, 0.1, 0.03), (20, 0.8, 0.1, 0.0), (50, 0.95, 0.2, 0.05)],
)
def test_bands_of_one_step_hold_at_their_rate_for_correlated_steps(
    count, correlation, scatter, between
):
    random = np.random.default_rng(1)
    of_one, of_mean = [], []
    for _ in range(SERIES):
        noise = steps(random, len(P) * RUNS, count, correlation, scatter, between)
        data = law(P)[:, None, None] * noise.reshape(len(P), RUNS, count)
        found = modeling.fit(P, data.mean(axis=2)[None]).predict(np.array([TARGET]))
        mean = tuple(float(end[0, 0]) for end in (found.value, found.low, found.high))
        pooled, dof = step_scatter(stated(data), "p")
        low, high = band_of_one_step(mean, pooled, dof, 0.95)
        new = law(TARGET) * steps(random, 40, count, correlation, scatter, between)
        of_one.append(((new >= low) & (new <= high)).mean())
        of_mean.append(((new >= mean[1]) & (new <= mean[2])).mean())
    assert 0.91 < np.mean(of_one) < 0.98
    assert np.mean(of_mean) < np.mean(of_one) - 0.03


def test_the_scatter_is_that_of_the_largest_scales():
    data = np.ones((len(P), RUNS, 8))
    data[:3, :, 0] = 5.0
    data[-1, :, 0] = 1.5
    pooled, dof = step_scatter(stated(data), "p")
    assert dof == 7 * RUNS
    assert pooled == pytest.approx(data[-1, 0].std() / data[-1, 0].mean(), rel=1e-5)


def test_few_steps_take_smaller_scales_as_well():
    random = np.random.default_rng(3)
    _, dof = step_scatter(stated(steps(random, 15, 3, 0, 0.1, 0).reshape(5, 3, 3)), "p")
    assert dof == 24


def test_runs_without_scatter_have_no_band_of_one_step():
    made = experiment({"main": [[1.0, 1.1]] * len(P)}, P.tolist())
    pooled, dof = step_scatter(made, "p")
    assert math.isnan(pooled)
    assert all(math.isnan(end) for end in band_of_one_step((1.0, 0.9, 1.1), pooled, dof, 0.95))


@cells("text", ["nan", "inf", "-1", "1e300", "x", "9" * 5000, ""])
def test_a_scatter_that_is_no_number_is_not_known(text):
    made = experiment({"main": [[1.0]] * len(P)}, P.tolist())
    metadata = {STEPS: "6", STEP_SCATTER: text}
    made = replace(made, runs=[replace(run, metadata=metadata) for run in made.runs])
    assert math.isnan(step_scatter(made, "p")[0])


def test_the_widths_of_both_levels_add_up_as_squares():
    low, high = band_of_one_step((1.0, math.exp(-0.3), math.exp(0.3)), 0.1, 10**6, 0.95)
    width = math.hypot(0.3, 1.96 * 0.1)
    assert math.log(high) == pytest.approx(width, rel=0.01) == -math.log(low)
