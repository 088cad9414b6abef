from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.advise import advise, between
from callpath_modeler.errors import DataError
from callpath_modeler.profile.schema import Metric
from callpath_modeler.studies import pipeline
from synthetic import POINTS, experiment

P = np.array(POINTS, dtype=float)


@pytest.fixture(scope="module")
def undecided():
    """Four call paths with growth below the noise of three repetitions."""
    rng = np.random.default_rng(5)
    laws = {
        "main": 10 + 0 * P,
        "main/a": 5 + 0.02 * P,
        "main/b": 3 + 0.3 * np.log2(P),
        "main/c": 0.5 * np.sqrt(P),
    }
    noisy = {
        name: law[:, None] * (1 + 0.06 * rng.standard_normal((len(P), 3)))
        for name, law in laws.items()
    }
    return pipeline.fit(experiment(noisy))


def test_scales_nearer_to_the_target_tell_more_of_it(undecided):
    advice = advise(undecided, 4096.0)
    assert [run.scale for run in advice.runs] == [64, 128, 256, 512]
    apart = [run.apart for run in advice.runs]
    assert apart[-1] < apart[0]
    assert apart[-1] < 0.8 * advice.apart
    for run in advice.runs:
        assert 1 < run.least <= run.apart <= run.most


def test_time_is_that_of_all_call_paths_at_the_scale(undecided):
    advice = advise(undecided, 4096.0, [100.0])
    assert advice.runs[0].time == pytest.approx(undecided.models.values([100.0]).sum())


def test_advice_is_the_same_each_time(undecided):
    assert advise(undecided, 4096.0, [64.0]) == advise(undecided, 4096.0, [64.0])


def test_what_is_known_exactly_is_known_without_a_further_run():
    exact = pipeline.fit(experiment({"main": 2 * P, "main/a": 3 + 0 * P}))
    advice = advise(exact, 1024.0)
    assert advice.apart == pytest.approx(1)
    assert all(run.apart == pytest.approx(1) for run in advice.runs)


def test_scales_are_cubes_or_squares_where_those_measured_are():
    assert between(np.array([1.0, 8, 27, 64, 125]), 1500) == [216, 512, 1000]
    assert between(np.array([4.0, 9, 16, 25, 36]), 1000) == [64, 144, 289, 576]
    assert between(np.array([2.0, 4, 8, 16]), 100) == [32, 64]
    assert between(np.array([0.1, 0.2, 0.5]), 3) == [1.0, 2.0]


def test_what_has_no_band_to_narrow_is_refused(undecided):
    nothing = pipeline.fit(experiment({"main": 0 * P}))
    with pytest.raises(DataError, match="time may be nothing at the target"):
        advise(nothing, 256.0)
    ratio = experiment({"main": 1 + P}, metric=Metric("ratio", "1", additive=False))
    with pytest.raises(DataError, match="ratio does not add up"):
        advise(pipeline.fit(ratio), 256.0)
    classic = pipeline.fit(undecided.experiment, options=pipeline.FitOptions(method="classic"))
    with pytest.raises(DataError, match="models of the classic method"):
        advise(classic, 4096.0)


def test_beyond_the_target_nothing_is_run(undecided):
    with pytest.raises(DataError, match="no scale between the largest run, p = 32"):
        advise(undecided, 40.0)
