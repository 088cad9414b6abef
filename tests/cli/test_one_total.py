"""One series has one total with one band, whichever command states it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import callpath_modeler as cpm

SAMPLES = ("stencil", "lulesh", "snap")
SCOREP = ("amg.weak", "comd.weak", "lulesh.weak", "npb_ft.strong", "snap.weak")
WHOLE = 'schema = 1\n[[expect]]\nname = "all"\nvalue = "<= 1e12 s"\n'


def check(run, folder, tmp_path):
    experiment = cpm.load(folder)
    scales = experiment.points(experiment.modelled_parameter())
    program = experiment.of_program(experiment.metric().name)
    _, totals = program.by_point(experiment.metric().name, experiment.modelled_parameter())
    limits = tmp_path / "limits.toml"
    limits.write_text(WHOLE)

    def asked(*words):
        done = run(*words, "-f", "json")
        assert done.status == 0, done.err
        return json.loads(done.out)

    for target in (float(scales[0]), float(scales[-1]), 2 * float(scales[-1])):
        at = ("--target", f"{target:g}")
        ranking = asked("rank", folder, *at)
        stated = [ranking["run_time"][end] for end in ("at_target", "low", "high")]
        rows = [row["value_at_target"] for row in ranking["rows"]]
        added = np.nansum(np.array(rows, float)) + ranking["imbalance"]["at_target"]
        assert added == pytest.approx(stated[0], rel=1e-9)
        shares = np.nansum([row["share_at_target"] or 0.0 for row in ranking["rows"]])
        assert shares == pytest.approx(1 - ranking["imbalance"]["at_target"] / stated[0])
        if target in scales:
            runs = totals[0, scales.tolist().index(target)]
            assert np.nanmin(runs) * (1 - 1e-9) <= stated[0] <= np.nanmax(runs) * (1 + 1e-9)
        viewed = asked("views", folder, *at)["run_time"]
        assert [viewed[end] for end in ("at_target", "low", "high")] == stated
        (whole,) = asked("check", folder, limits, *at)["rows"]
        of_run = [whole[end] for end in ("value", "low", "high")]
        if None not in of_run:
            assert of_run == pytest.approx(stated, rel=1e-9)
        compared = asked("diff", folder, folder, *at)["total"]["at_target"]
        assert [compared[side] for side in ("base", "new")] == pytest.approx([stated[0]] * 2)
        said = [run(each, folder, *at).out.split("). ")[0] for each in ("rank", "views")]
        assert said[0] == said[1]


@pytest.mark.parametrize("name", SAMPLES)
def test_commands_state_one_total_of_samples(run, samples, tmp_path, name):
    check(run, samples / name, tmp_path)


@pytest.mark.parametrize("name", SCOREP)
def test_commands_state_one_total_of_measured_series(run, shared_data, tmp_path, name):
    check(run, shared_data / "scorep" / name, tmp_path)
