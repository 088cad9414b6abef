"""Intervals of measured values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import answer_at, rank


@pytest.fixture(scope="module", params=[0, 1, 2])
def models(request):
    """Return models of costly call paths that repeat well, and of small ones that scatter."""
    rng = np.random.default_rng(request.param)
    rows = []
    for p in (4, 8, 16, 32):
        for repetition in range(1 if p == 32 else 2):
            rows += [
                {"callpath": "main", "p": p, "time": 1e-3 * rng.lognormal(0, 2)},
                {"callpath": "main/solve", "p": p, "time": 2.0 * p * (1 + 0.01 * repetition)},
                {"callpath": "main/exchange", "p": p, "time": 1.5 * p**0.5},
                {"callpath": "main/output", "p": p, "time": 1e-2 * rng.lognormal(0, 3)},
            ]
    rows = [{**row, "repetition": 1 + k // 4 % 2} for k, row in enumerate(rows)]
    return cpm.fit(cpm.from_frame(pd.DataFrame(rows), parameters=["p"], repetition="repetition"))


@pytest.mark.parametrize("target", [4.0, 16.0, 32.0])
def test_a_measured_total_is_at_most_as_uncertain_as_its_call_paths_together(models, target):
    ranking = rank(models, target)
    assert ranking.repetitions > 0
    value, low, high = ranking.total
    assert np.nansum(ranking.low) * (1 - 1e-12) <= low <= value
    assert value <= high <= np.nansum(ranking.high) * (1 + 1e-12)
    assert high / low < 2


@pytest.mark.parametrize("target", [4.0, 32.0, 64.0])
def test_no_interval_of_a_part_ends_above_that_of_the_whole(models, target):
    answer = answer_at(models, target)
    ranking = rank(models, target, inclusive=True)
    assert np.nanmax(ranking.high) <= answer.sum_of_call_paths[2] * (1 + 1e-12)
    assert np.all(ranking.low <= ranking.value * (1 + 1e-12))
    assert np.all(ranking.value <= ranking.high * (1 + 1e-12))
