"""One series has one total with one band, whichever command states it, and its rows add up to it.

A share of more than 100 % or a negative imbalance would contradict the run time: values are means
over processes.
"""

from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler import LoadOptions, store
from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.assemble import ReadOptions
from cells import cells
from one_answer import Commands

SAMPLES = ("stencil", "lulesh", "snap")
SCOREP = ("amg.weak", "comd.weak", "lulesh.weak", "npb_ft.strong", "snap.weak")
SIMULATED = (
    *("amr-weak-fattree", "ensemble-weak-disturbed", "ensemble-weak-fattree"),
    *("fft-strong-fattree", "multigrid-weak-fattree", "sweep-strong-fattree"),
)
THIRD_PARTY = (
    ("caliper/lulesh_opal_weak", ""),
    ("caliper/lulesh_quartz_weak", "size=30"),
    ("caliper/sort/team6_mergesort_random", "n=65536"),
    ("cubex/lulesh_daint", "size=30"),
)
FAR = np.array([2.0, 4.0, 16.0, 64.0])


def check(run, runs, tmp_path):
    models, source = cpm.fit(runs), tmp_path / "app.cpm"
    store.write([models], source)
    commands, scales = Commands(run, source, models, tmp_path), models.points
    for target in (float(scales[-1]), float(64 * scales[-1])):
        commands.check(target)


def first_runs(runs):
    """Return the first repetition of each scale."""
    p = runs.settings(["p"])[:, 0]
    return runs.where(np.isin(np.arange(len(p)), np.unique(p, return_index=True)[1]))


CHOSEN = {"all": lambda runs: runs, "single": first_runs}


@pytest.mark.parametrize(
    ("name", "chosen"), [*((name, "all") for name in SAMPLES), ("lulesh", "single")]
)
def test_commands_state_one_total_of_samples(run, samples, tmp_path, name, chosen):
    check(run, CHOSEN[chosen](cpm.load(samples / name)), tmp_path)


@pytest.mark.parametrize(
    ("name", "chosen"),
    [(name, "single" if name == "amg.weak" else "all") for name in SCOREP],
)
def test_commands_state_one_total_of_measured_series(run, shared_data, tmp_path, name, chosen):
    check(run, CHOSEN[chosen](cpm.load(shared_data / "scorep" / name)), tmp_path)


@pytest.mark.parametrize("name", SIMULATED)
def test_commands_state_one_total_of_simulated_series(run, shared_data, tmp_path, name):
    check(run, cpm.load(shared_data / "smpi" / name), tmp_path)


@pytest.mark.parametrize(("folder", "where"), THIRD_PARTY)
def test_commands_state_one_total_of_series_of_others(run, shared_data, tmp_path, folder, where):
    check(run, cpm.load(shared_data / "third_party" / folder, LoadOptions(where=where)), tmp_path)


def shares_are_parts_of_the_total(folder, locations):
    models = cpm.fit(cpm.load(folder, cpm.LoadOptions(ReadOptions(locations=Reduction(locations)))))
    for target in [*models.points.tolist(), *(models.points[-1] * FAR)]:
        ranking = cpm.rank(models, target)
        value, low, high = ranking.program_total
        parts = np.append(np.nan_to_num(ranking.own_share), ranking.imbalance / value)
        assert parts.sum() == pytest.approx(1)
        assert parts.min() >= -1e-9
        assert parts.max() <= 1 + 1e-9
        if not ranking.run_time.repetitions:
            assert low <= value <= high
            assert np.nanmax(ranking.high) <= high * (1 + 1e-9)
        viewed = answer_at(models, ranking.target)
        np.testing.assert_allclose(viewed.call_paths[0].value, ranking.call_paths[0].value)


@cells("locations", ["mean", "sum"])
@cells("name", SAMPLES)
def test_shares_of_samples_are_parts_of_the_total(samples, name, locations):
    shares_are_parts_of_the_total(samples / name, locations)


@pytest.mark.parametrize("locations", ["mean", "sum"])
@pytest.mark.parametrize("name", SCOREP)
def test_shares_of_measured_series_are_parts_of_the_total(shared_data, name, locations):
    shares_are_parts_of_the_total(shared_data / "scorep" / name, locations)


@pytest.mark.parametrize("name", SIMULATED)
def test_shares_of_simulated_series_are_parts_of_the_total(shared_data, name):
    shares_are_parts_of_the_total(shared_data / "smpi" / name, "mean")


def test_shares_of_a_series_of_single_runs_are_parts_of_the_total(shared_data):
    shares_are_parts_of_the_total(shared_data / "third_party/caliper/lulesh_opal_weak", "mean")
