"""Slices of models in several parameters, and separate models along them."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.modeling import fit, slice_along, slice_with_line_models
from callpath_modeler.modeling.lines import (
    distance_to_measurements,
    with_alternatives,
    with_rows_from,
)
from surfaces import LAWS, N, P, grid, measured

AT = [1.0, 50.0]


@pytest.fixture(scope="module")
def surfaces():
    points = grid(P, N)
    return fit(points, measured(points, LAWS.values()))


def test_rows_of_a_slice_can_be_those_of_a_line(surfaces):
    line = fit(P, measured(np.array(P)[:, None], [lambda p: 1 + p**1.5] * len(LAWS)))
    slice_ = slice_along(surfaces, 0, [1.0, 30.0])
    chosen = np.arange(len(LAWS)) % 2 == 0
    both = with_rows_from(slice_, line, chosen)
    targets = [100.0, 1000.0]
    expected = np.where(chosen[:, None], line.values(targets), slice_.values(targets))
    assert both.values(targets) == pytest.approx(expected)
    assert both.formula(0) == line.formula(0)
    assert both.formula(1) == slice_.formula(1)


def test_how_far_models_are_is_what_is_seen_or_what_they_say():
    points = np.array(P)
    exact = np.array([1 + points, 5 + 0 * points, 1 + points, 1 + points])
    models = fit(points, exact[..., None] * np.array([0.99, 1.0, 1.01]))
    measured_ = exact.copy()
    measured_[1] = [15, 15, 15, 15, 15]
    measured_[2, -1] *= 4
    measured_[3] = [0, np.nan, 0, 0, np.nan]
    found = distance_to_measurements(models, points, measured_)
    assert found[0] == models.spread[0] < 0.02
    assert found[1] == pytest.approx(np.log(3), rel=0.01)
    # The largest point weighs most: 1 / (1 + doublings from it).
    assert found[2] == pytest.approx(np.log(4) / np.sqrt(sum(1 / np.arange(1, 6))), rel=0.01)
    assert found[3] == models.spread[3]


def test_what_is_doubted_may_be_what_others_say(surfaces):
    line = fit(P, measured(np.array(P)[:, None], [lambda p: 1 + p**1.5] * len(LAWS)))
    slice_ = slice_along(surfaces, 0, [1.0, 30.0])
    share = np.where(np.arange(len(LAWS)) % 2, 0.2, 0.0)
    both = with_alternatives(slice_, line, share)
    targets = np.array([256.0, 4096.0])
    assert both.values(targets) == pytest.approx(slice_.values(targets))
    whole = both.weight + both.alternative_weight.sum(axis=1)
    assert whole == pytest.approx(slice_.weight + slice_.alternative_weight.sum(axis=1), abs=1e-6)
    ends, before, others = (each.predict(targets) for each in (both, slice_, line))
    same = share == 0
    for name in ("value", "low", "high"):
        assert getattr(ends, name)[same] == pytest.approx(getattr(before, name)[same])
    # A fifth of the probability is well inside of a band of 95 %.
    known = others.value[~same]
    assert (ends.low[~same] <= 1.1 * known).all()
    assert (ends.high[~same] >= 0.9 * known).all()
    assert "p^(3/2)" in " ".join(found.formula for found in both.alternatives(1))
    again = with_rows_from(both, line, same)
    assert again.values(targets)[~same] == pytest.approx(slice_.values(targets)[~same])
    assert again.values(targets)[same] == pytest.approx(line.values(targets)[same])


def test_doubts_are_in_the_unit_of_the_metric():
    points = grid(P, N)
    values = measured(points, LAWS.values(), noise=0.3)
    bands = []
    for unit in (1.0, 1e-6):
        scaled = unit * values
        found, of_runs = slice_with_line_models(fit(points, scaled), 0, AT, points, scaled)
        band = found.predict([4096.0])
        bands.append((band.value / unit, band.low / unit, band.high / unit, of_runs))
    for one, other in zip(*bands, strict=True):
        assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("at", [50.0, 200.0])
@pytest.mark.parametrize("levels", [3, 5])
def test_bands_hold_where_all_runs_of_a_scale_deviate_alike(levels, at):
    p = np.array(P[:levels])
    points, target = grid(p, N), 4 * p[-1]
    held, would_hold, exact = [], [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        laws = [lambda p, n, k=k: (1 + 0.1 * k * p) * (n / 50) ** 2 for k in range(8)]
        values = measured(points, laws, noise=0.02, seed=seed)
        truth = np.array([law(target, at) for law in laws])
        off = np.exp(0.1 * rng.standard_normal((len(laws), levels)))
        for factor, among in ((off, held), (1 + 0 * off, exact)):
            some = values * factor[:, np.searchsorted(p, points[:, 0]), None]
            surface = fit(points, some)
            found, _ = slice_with_line_models(surface, 0, [1.0, at], points, some)
            band = found.predict([target])
            among.append((band.low[:, 0] <= truth) & (truth <= band.high[:, 0]))
            if among is held:
                band = slice_along(surface, 0, [1.0, at]).predict([target])
                would_hold.append((band.low[:, 0] <= truth) & (truth <= band.high[:, 0]))
    assert np.mean(held) > max(0.8, np.mean(would_hold) + 0.15)
    assert np.mean(exact) > 0.95


def test_what_fits_all_measurements_to_their_noise_is_hardly_doubted():
    points = grid(P, N)
    laws = [lambda p, n, k=k: (1 + k * np.log2(p)) * n for k in range(8)]
    values = measured(points, laws)
    surface = fit(points, values)
    found, of_runs = slice_with_line_models(surface, 0, AT, points, values)
    assert not of_runs.any()
    sure, told = (each.predict([2048.0]) for each in (slice_along(surface, 0, AT), found))
    assert np.median(np.log(told.high / told.low) / np.log(sure.high / sure.low)) < 2


@pytest.mark.parametrize("repetitions", [1, 3])
def test_a_surface_is_kept_where_only_noise_is_off_it(repetitions):
    points = grid(P, N)
    laws = [lambda p, n, k=k: (1 + 0.1 * k * p) * n**2 for k in range(8)]
    otherwise = np.where(points[:, 1] == 50, points[:, 0] ** 1.5, 1.0)[:, None]
    kept, gone = [], []
    for seed in range(4):
        values = measured(points, laws, noise=0.1, repetitions=repetitions, seed=seed)
        for some, among in ((values, kept), (values * otherwise, gone)):
            _, of_runs = slice_with_line_models(fit(points, some), 0, AT, points, some)
            among.append(~of_runs)
    assert np.mean(kept) > 0.9
    assert np.mean(gone) < 0.3


@pytest.mark.parametrize("at", [50.0, 200.0])
def test_exact_counts_are_not_doubted(at):
    points = grid(P, N)
    laws = [lambda p, n: 8 * n + p, lambda p, n: (p - 1) * n, lambda p, n: 24 + 0 * p * n]
    values = np.array([law(*points.T) for law in laws])[..., None] * np.ones(3)
    found, of_runs = slice_with_line_models(fit(points, values), 0, [1.0, at], points, values)
    band, truth = found.predict([2048.0]), [law(2048.0, at) for law in laws]
    assert not of_runs.any()
    for end in (band.value, band.low, band.high):
        assert end[:, 0] == pytest.approx(truth, rel=1e-3)


def test_what_is_hidden_behind_shared_work_may_be_in_the_band():
    """0.5 % of the largest run is not shared, and grows with the size like the rest."""
    points, target = grid(P, N), 16 * P[-1]
    laws = [lambda p, n, k=k: k * n**3 * (1 / p + 0.005 / P[-1]) for k in range(1, 9)]
    truth = np.array([law(target, 50.0) for law in laws])
    held, would_hold = [], []
    for seed in range(4):
        values = measured(points, laws, seed=seed)
        surface = fit(points, values)
        found, _ = slice_with_line_models(surface, 0, AT, points, values)
        for models, among in ((found, held), (slice_along(surface, 0, AT), would_hold)):
            band = models.predict([target])
            among.append((band.low[:, 0] <= truth) & (truth <= band.high[:, 0]))
    assert np.mean(held) > np.mean(would_hold) + 0.3
