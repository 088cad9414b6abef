"""Bands of single runs contain the continuation of the last two points; other bands need not."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Models, fit, fitting

POINTS = np.array([2.0, 8, 32, 128])
LATE = np.array([16.47, 16.47, 16.56, 19.18])
"""A constant whose last value rises; p^(5/2) fits it best."""


def both(y: FloatArray, monkeypatch: pytest.MonkeyPatch) -> tuple[Models, Models]:
    """Return models with default bands, and with bands that ignore the last two points."""
    found = fit(POINTS, y)
    monkeypatch.setattr(fitting, "widen", lambda *_: None)
    return found, fit(POINTS, y)


def test_bands_of_single_runs_reach_to_the_continued_last_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(2)
    laws = 1 + random.uniform(0.1, 2, (40, 1)) * (POINTS / POINTS[-1]) ** 2
    y = laws * (1 + 0.003 * random.standard_normal(laws.shape))
    found, before = both(y[..., None], monkeypatch)
    continued = y[:, -1] ** 2 / y[:, -2]

    def held(models: Models) -> float:
        band = models.predict([512])
        return float(((band.low[:, 0] <= continued) & (continued <= band.high[:, 0])).mean())

    assert held(before) < 0.5
    assert held(found) > 0.9
    np.testing.assert_array_equal(found.values([512]), before.values([512]))


def test_bands_of_repeated_runs_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    scatter = 1 + 0.01 * np.random.default_rng(1).standard_normal((1, 4, 5))
    found, before = both(LATE[None, :, None] * scatter, monkeypatch)
    np.testing.assert_array_equal(found.drift, before.drift)


def test_exact_laws_of_single_runs_keep_their_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    found, before = both((1000.0 + POINTS**2)[None, :, None], monkeypatch)
    np.testing.assert_array_equal(found.drift, before.drift)


def test_within_the_data_bands_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found, before = both(LATE[None, :, None], monkeypatch)
    np.testing.assert_array_equal(found.predict([16]).high, before.predict([16]).high)
