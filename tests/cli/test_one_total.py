"""One series has one total with one band, whichever command states it, and its rows add up to it.

A share of more than 100 % or a negative imbalance would contradict the run time: values are means
over processes.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.units import quantity

SAMPLES = ("stencil", "lulesh", "snap")
SCOREP = ("amg.weak", "comd.weak", "lulesh.weak", "npb_ft.strong", "snap.weak")
SIMULATED = (
    *("amr-weak-fattree", "ensemble-weak-disturbed", "ensemble-weak-fattree"),
    *("fft-strong-fattree", "multigrid-weak-fattree", "sweep-strong-fattree"),
)
FAR = np.array([2.0, 4.0, 16.0, 64.0])
WHOLE = 'schema = 1\n[[expect]]\nname = "all"\nvalue = "<= 1e12 s"\n'
ONE = '[[expect]]\nname = "one"\ncallpath = "{}"\nvalue = "<= 1e12 s"\n'


def check(run, folder, tmp_path):
    experiment = cpm.load(folder)
    scales = experiment.points(experiment.modelled_parameter())
    program = experiment.of_program(experiment.metric().name)
    _, totals = program.by_point(experiment.metric().name, experiment.modelled_parameter())
    limits = tmp_path / "limits.toml"

    def asked(*words):
        done = run(*words, "-f", "json")
        assert done.status == 0, done.err
        return json.loads(done.out)

    last = float(scales[-1])
    for target in (float(scales[0]), last, 2 * last, 64 * last):
        at = ("--target", f"{target:g}")
        ranking = asked("rank", folder, *at)
        stated = [ranking["run_time"][end] for end in ("at_target", "low", "high")]
        rows = [row["value_at_target"] for row in ranking["rows"]]
        added = np.nansum(np.array(rows, float)) + ranking["imbalance"]["at_target"]
        assert added == pytest.approx(stated[0], rel=1e-9)
        shares = [row["share_at_target"] or 0.0 for row in ranking["rows"]]
        imbalance = ranking["imbalance"]["at_target"] / stated[0]
        assert np.nansum(shares) == pytest.approx(1 - imbalance)
        assert min(*shares, imbalance) >= -1e-9
        assert max(*shares, imbalance) <= 1 + 1e-9
        if target in scales:
            runs = totals[0, scales.tolist().index(target)]
            assert np.nanmin(runs) * (1 - 1e-9) <= stated[0] <= np.nanmax(runs) * (1 + 1e-9)
        viewed = asked("views", folder, *at)["run_time"]
        assert [viewed[end] for end in ("at_target", "low", "high")] == stated
        first = ranking["rows"][0]
        limits.write_text(WHOLE + ONE.format(first["callpath"]))
        whole, one = asked("check", folder, limits, *at)["rows"]
        assert one["value"] == pytest.approx(first["value_at_target"], rel=1e-9)
        of_run = [whole[end] for end in ("value", "low", "high")]
        if None not in of_run:
            assert of_run == pytest.approx(stated, rel=1e-9)
        compared = asked("diff", folder, folder, *at)["total"]["at_target"]
        assert [compared[side] for side in ("base", "new")] == pytest.approx([stated[0]] * 2)
        if target not in scales:
            text = run("baseline", folder, *at).out
            assert f"# today {quantity(stated[0], 's')}" in text
        said = [run(each, folder, *at).out.split("). ")[0] for each in ("rank", "views")]
        assert said[0] == said[1]


@pytest.mark.parametrize("name", SAMPLES)
def test_commands_state_one_total_of_samples(run, samples, tmp_path, name):
    check(run, samples / name, tmp_path)


@pytest.mark.parametrize("name", SCOREP)
def test_commands_state_one_total_of_measured_series(run, shared_data, tmp_path, name):
    check(run, shared_data / "scorep" / name, tmp_path)


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


@pytest.mark.parametrize("locations", ["mean", "sum"])
@pytest.mark.parametrize("name", SAMPLES)
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
