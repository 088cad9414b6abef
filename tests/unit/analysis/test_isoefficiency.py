"""Problem sizes that keep a parallel efficiency, from models of exact and of noisy laws."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq

from callpath_modeler.errors import UsageError
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies.isoefficiency import IsoBound
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.studies.study import Study
from several_laws import LAWS, write_runs

P, N = (1, 2, 4, 8, 16, 32), (1000, 2000, 4000, 8000, 16000)
STRONG = LoadOptions(ReadOptions(scaling="strong"))


def study(path, law, *, p=P, n=N, noise=0.0, seed=1):
    """Return the study of runs whose time is a law of p and n."""
    laws = law if isinstance(law, dict) else {"main": law}
    return Study(write_runs(path / "app.csv", laws, seed, p=p, n=n, noise=noise), STRONG)


def shared(p, n):
    """Return the time of shared work with a reduction: E = .8 at n = 40 p log2(p)."""
    return 0.001 * n / p + 0.01 * np.log2(p)


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return study(tmp_path_factory.mktemp("exact"), shared)


def test_shared_work_with_a_reduction_needs_p_log_p(exact):
    found = exact.isoefficiency(0.8)
    scales = np.array([point.scale for point in found.points])
    assert scales.tolist() == [2, 4, 8, 16, 32, 64, 128]
    assert [p.size for p in found.points] == pytest.approx(40 * scales * np.log2(scales))
    assert {point.bound for point in found.points} == {IsoBound.AT_LEAST}
    assert found.law.growth == Growth(Fraction(1), 1)
    assert found.law.formula == "n = 40 * p * log2(p)"
    assert found.law.deviation < 1e-6


def test_bands_of_exact_models_have_no_width(exact):
    for point in exact.isoefficiency(0.8).points:
        assert point.low == pytest.approx(point.size, rel=1e-5)
        assert point.high == pytest.approx(point.size, rel=1e-5)


def test_solved_sizes_have_the_efficiency_in_the_models(exact):
    fitted = exact.models()["main"]
    for point in exact.isoefficiency(0.6, target=512).points:
        alone, together = fitted.predict(p=[1, point.scale], n=point.size).value
        assert alone / (point.scale * together) == pytest.approx(0.6)


def test_a_size_has_a_largest_scale(exact):
    point = exact.isoefficiency(0.8, at="n=2560").at_size
    assert (point.solved, point.bound) == ("p", IsoBound.AT_MOST)
    assert point.scale == pytest.approx(16)
    assert not point.is_extrapolated


def test_sizes_beyond_the_runs_are_extrapolated(exact):
    found = exact.isoefficiency(0.8, at="p=1024")
    state = {point.scale: (point.is_extrapolated, point.times_largest) for point in found.points}
    assert state[8] == (True, pytest.approx(0.25))  # n = 960 is below the smallest size
    assert state[16] == (False, pytest.approx(0.5))
    assert state[1024] == (True, pytest.approx(32))
    assert [each.code for each in found.findings].count("CPM205") == 2


@pytest.mark.parametrize(
    ("law", "growth"),
    [
        (lambda p, n: n / p + 2.0, Growth(Fraction(1), 0)),
        (lambda p, n: n**2 / p + 40 * np.log2(p), Growth(Fraction(1, 2), Fraction(1, 2))),
        (lambda p, n: n**3 / p + 30 * n**2, None),
        (lambda p, n: n / p + 0.5 * p, Growth(Fraction(2), 0)),
    ],
)
def test_growths_of_exact_laws(tmp_path, law, growth):
    found = study(tmp_path, law, n=(10, 20, 40, 80, 160)).isoefficiency(0.8)
    if growth is None:  # the sizes are 120 (p - 1.25)
        assert found.law.growth == Growth(Fraction(1), 0)
    else:
        assert found.law.growth == growth


def test_the_growth_is_that_of_the_end(tmp_path):
    # At the runs, the constant of 5 s matters, which the sizes outgrow.
    found = study(tmp_path, LAWS, p=(8, 16, 32, 64, 128), n=(10, 20, 30, 40)).isoefficiency(0.8)
    assert found.law.growth == Growth(Fraction(1, 2), Fraction(1, 2))
    assert found.law.deviation < 0.05


def test_a_serial_part_bounds_the_efficiency(tmp_path):
    # E = 1.1 / (1 + .1 p) for every n.
    found = study(tmp_path, lambda p, n: n / p + 0.1 * n).isoefficiency(0.8)
    state = {point.scale: point for point in found.points}
    assert state[2].bound is IsoBound.ANY
    assert state[8].bound is IsoBound.NONE
    assert state[8].best_efficiency == pytest.approx(1.1 / 1.8)
    assert np.isnan(state[8].size)
    assert [state[p].is_extrapolated for p in (8, 64)] == [False, True]
    assert found.law is None


def test_an_efficiency_can_fall_with_the_size(tmp_path):
    law = lambda p, n: n / p + 1e-6 * n**2 * np.log2(p)  # noqa: E731
    found = study(tmp_path, law).isoefficiency(0.8)
    assert {point.bound for point in found.points} == {IsoBound.AT_MOST}
    for point in found.points:
        size = 0.25 / (1e-6 * point.scale * np.log2(point.scale))
        if size > 1:
            assert point.size == pytest.approx(size)


def test_perfectly_shared_work_keeps_the_efficiency_at_every_size(tmp_path):
    found = study(tmp_path, lambda p, n: n / p).isoefficiency(0.8, at="n=4000")
    assert {point.bound for point in found.points} == {IsoBound.ANY}
    assert found.at_size.bound is IsoBound.ANY
    assert found.points[0].best_efficiency == pytest.approx(1)
    assert found.law is None


def test_bands_hold_the_true_sizes_about_as_often_as_stated(tmp_path):
    law = lambda p, n: 0.001 * n / p + 0.02 * np.log2(p)  # noqa: E731
    inside = []
    for seed in range(6):
        found = study(tmp_path, law, noise=0.05, seed=seed).isoefficiency(0.8)
        for point in found.points:
            true = 80 * point.scale * np.log2(point.scale)
            inside.append(point.low <= true <= point.high)
    assert np.mean(inside) >= 0.85


def test_bands_are_not_wider_than_those_of_independent_run_times(tmp_path):
    found = study(tmp_path, shared, noise=0.02).isoefficiency(0.8)
    for point in found.points:
        if not point.is_extrapolated:
            assert 0.9 * point.size < point.low < point.size < point.high < 1.1 * point.size


def test_further_parameters_need_values(tmp_path):
    lines = ["p,n,m,time[s]"]
    for p, n, m in product((1, 4, 16), N[::2], (1, 2, 4)):
        lines.append(f"{p},{n},{m},{float(shared(p, n) * m)!r}")
    path = tmp_path / "app.csv"
    path.write_text("\n".join(lines) + "\n")
    runs = Study(path, STRONG)
    with pytest.raises(UsageError, match="each of n, m may be the problem size") as caught:
        runs.isoefficiency(0.8)
    assert "--at m=4" in caught.value.hint
    found = runs.isoefficiency(0.8, at="p=64,m=2")
    assert (found.size, found.held) == ("n", {"m": 2.0})
    assert found.points[-1].size == pytest.approx(40 * 64 * 6)


def test_runs_along_p_alone_have_no_sizes(tmp_path):
    runs = study(tmp_path, shared, n=(1000,))
    with pytest.raises(UsageError, match="the runs vary p alone") as caught:
        runs.isoefficiency(0.8)
    assert "app.p8.n1000" in caught.value.hint


def test_a_size_of_one_process_has_no_isoefficiency(tmp_path):
    file = write_runs(tmp_path / "app.csv", {"main": shared}, 1, p=P, n=N, noise=0.0)
    with pytest.raises(UsageError, match="the runs scale weakly"):
        Study(file, LoadOptions(ReadOptions(scaling="weak"))).isoefficiency(0.8)


def test_values_that_are_no_run_times_are_refused(tmp_path):
    file = write_runs(tmp_path / "app.csv", {"main": shared}, 1, p=P, n=N, noise=0.0)
    file.write_text(file.read_text().replace("time[s]", "bytes[B]"))
    with pytest.raises(UsageError, match="bytes is no run time"):
        Study(file, STRONG).isoefficiency(0.8)


def test_the_target_is_above_the_smallest_scale(exact):
    with pytest.raises(UsageError, match="p = 1 is not above the smallest scale"):
        exact.isoefficiency(0.8, target=1)
    with pytest.raises(UsageError, match="no value at infinity"):
        exact.isoefficiency(0.8, target="inf")
    with pytest.raises(UsageError, match="not a probability"):
        exact.isoefficiency(1.5)


def test_ratios_have_the_true_value_between_the_ends(tmp_path):
    # The size that the band states is where the efficiency of the law is in its band.
    runs = study(tmp_path, LAWS, p=(8, 16, 32, 64, 128), n=(10, 20, 30, 40), noise=0.01)

    def efficiency(p, n):
        time = [sum(law(each, n) for law in LAWS.values()) for each in (8, p)]
        return 8 * time[0] / (p * time[1])

    inside = []
    for point in runs.isoefficiency(0.8).points:
        true = brentq(lambda n, p=point.scale: efficiency(p, n) - 0.8, 0.1, 1e6)
        inside.append(point.low <= true <= point.high)
    assert np.mean(inside) >= 0.8
