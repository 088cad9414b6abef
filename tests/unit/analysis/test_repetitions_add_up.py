"""Measured values are means of runs: they add up, and lie within the totals of the runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.run_time import predicted_run_time
from callpath_modeler.modeling.repetitions import CENTRES
from callpath_modeler.report.headline import cost_text
from callpath_modeler.report.layout import DEFAULT_STYLE
from cells import cells
from several_laws import LAWS, write_runs
from synthetic import POINTS, experiment

P = np.array(POINTS)
SCALES = (16, 32, 64, 128, 256)
CASES = Path(__file__).resolve().parents[4] / "shared/data/cases"


def jitter(random, shape):
    return 1 + 0.1 * random.exponential(size=shape)


def half_normal(random, shape):
    return 1 + 0.2 * np.abs(random.standard_normal(shape))


def spikes(random, shape):
    return 1.0 + (random.random(shape) < 0.1)


NOISES = {jitter: 1.1, half_normal: 1 + 0.2 * np.sqrt(2 / np.pi), spikes: 1.1}


def times(folder, seed, noise, repetitions):
    """Write a table of twenty call paths, and return it with totals of runs and the mean law."""
    random = np.random.default_rng(seed)
    first = random.uniform(0.05, 0.4, 20)
    power = np.where(random.random(20) < 0.6, 0.0, random.choice([0.25, 1 / 3, 0.5], 20))

    def law(p):
        return first * (1 + 0.5 * (p / 16) ** power)

    rows, totals = [], []
    for p in SCALES:
        values = law(p)[:, None] * noise(random, (20, repetitions))
        totals.append(values.sum(axis=0))
        rows += [
            {"callpath": f"main/f{k}", "p": p, "repetition": r + 1, "time": float(values[k, r])}
            for k in range(20)
            for r in range(repetitions)
        ]
    path = folder / f"runs-{seed}.json"
    path.write_text(json.dumps(rows))
    return path, np.array(totals), lambda p: float(law(p).sum() * NOISES[noise])


@cells("repetitions", [3, 5])
@cells("noise", NOISES)
def test_totals_lie_within_the_runs_and_bands_hold_the_mean_run(tmp_path, noise, repetitions):
    seeds, held = range(6), []
    for seed in seeds:
        path, totals, truth = times(tmp_path, seed, noise, repetitions)
        fitted = cpm.fit(cpm.load([path]))
        shown = fitted.measured.sum(axis=0)
        assert (totals.min(axis=1) <= shown).all()
        assert (shown <= totals.max(axis=1)).all()
        np.testing.assert_allclose(shown, totals.mean(axis=1))
        for target in (512, 2048):
            _, low, high = predicted_run_time(fitted, target)
            held.append(low <= truth(target) <= high)
    assert np.mean(held) >= 0.9


@cells("how", CENTRES)
def test_the_statistic_asked_for_is_taken_and_named(how):
    made = experiment({"main": [[1.0, 2.0, 6.0]] * 5}, POINTS)
    ranking = cpm.rank(cpm.fit(made, options=cpm.FitOptions(aggregate=how)), POINTS[-1])
    found = cpm.losses(made, aggregate=how)
    np.testing.assert_array_equal(found.excess.exclusive[:, -1], ranking.excess.exclusive)
    named = {"trimmed": "trimmed mean", "first-quartile": "first quartile", "min": "minimum"}
    said = cost_text(ranking, style=DEFAULT_STYLE)
    assert f"({named.get(how, how)} of 3 runs, 1.00 … 6.00 s" in said


def test_models_in_several_parameters_and_their_slices_have_the_same_statistic(tmp_path):
    made = cpm.load([write_runs(tmp_path / "runs.csv", LAWS, 1)])
    fitted = cpm.fit(made)
    for n in (10, 40):
        found = cpm.losses(made, held={"n": n})
        assert found.centre == fitted.models.aggregate == "mean"
        ranking = cpm.rank(fitted.holding({"n": n}), 128)
        np.testing.assert_allclose(found.costs.exclusive[:, -1], ranking.value)


def profile(path, stacks):
    path.write_text("".join(f"{stack} {count}\n" for stack, count in stacks.items()))


def test_a_call_path_that_some_repetitions_lack_took_no_time_in_them(tmp_path):
    for p in (2, 4, 8):
        profile(tmp_path / f"a.p{p}.r1.folded", {"main;work": 900, "main;wait": 300})
        profile(tmp_path / f"a.p{p}.r2.folded", {"main;work": 900})
        profile(tmp_path / f"a.p{p}.r3.folded", {"main;work": 900})
    fitted = cpm.fit(cpm.load([tmp_path]))
    names = [path.rpartition("/")[2] for path in map(fitted.experiment.tree.path, range(3))]
    wait = fitted.measured[names.index("wait")]
    work = fitted.measured[names.index("work")]
    np.testing.assert_allclose(wait / work, 1 / 9)


def test_a_value_that_a_table_lacks_is_not_zero(tmp_path):
    rows = [
        {"callpath": path, "p": p, "repetition": r, "time": 4.0}
        for p in (2, 4, 8)
        for r in (1, 2)
        for path in ("main", "main/f")
    ]
    rows[-1]["time"] = None
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(rows))
    assert cpm.fit(cpm.load([path])).measured.tolist() == [[4.0] * 3] * 2


@pytest.mark.skipif(not CASES.exists(), reason="../shared has the cases")
class TestCases:
    def answer(self, case, target):
        fitted = cpm.fit(cpm.load([CASES / case]))
        return cpm.rank(fitted, target)

    def test_one_sided_jitter(self):
        jitter = "t3_one_sided_jitter/jitter.csv"
        assert self.answer(jitter, 256).total[0] == pytest.approx(5.92, abs=0.01)
        value, low, high = self.answer(jitter, 512).total
        assert low < 6.0 < high
        assert value == pytest.approx(6.0, rel=0.05)

    def test_zero_in_one_repetition(self):
        ranking = self.answer("t3_zero_in_one_repetition/minzero.csv", 4096)
        row = int(ranking.order[0])
        assert ranking.fitted.experiment.tree.path(row).endswith("MPI_Wait")
        assert ranking.fitted.measured[row, -1] == pytest.approx(1.7, abs=0.05)
        assert ranking.total[1] < 7 < ranking.total[2]

    def test_unnamed_median(self):
        fitted = cpm.fit(cpm.load([CASES.parent / "scorep/lulesh.weak"]))
        said = cost_text(cpm.rank(fitted, 125), style=DEFAULT_STYLE)
        assert said == "lulesh2.0 ran 27.7 s at p = 125 (mean of 5 runs, 21.1 … 36.2 s)"
