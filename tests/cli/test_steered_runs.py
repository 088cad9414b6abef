"""`cpmodel run --until` and `--budget`: the next run is chosen, and the series ends."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.advise import Advice, NextRun, advise
from callpath_modeler.campaign import launch, steer
from callpath_modeler.errors import UsageError

SCALES = "2,4,8,16,32,64,128"


@pytest.fixture
def seconds(tmp_path, monkeypatch):
    """Replace the wall time of each run by that of a law with noise; nothing waits."""
    monkeypatch.chdir(tmp_path)
    executed = launch._executed
    drawn = np.random.default_rng(3)
    law = {"noise": 0.01}

    def measured(words, environment, working, folder, limit):
        ended = executed(["true"], environment, working, folder, 0.0)
        p = int(words[-1])
        time = (10 + 0.05 * p) * (1 + law["noise"] * drawn.standard_normal())
        if limit and time > limit:
            return launch._Ended(limit, -15, 0, "it reached the time limit", timed_out=True)
        return launch._Ended(time, ended.status, ended.memory, ended.failure)

    monkeypatch.setattr(launch, "_executed", measured)
    return law


def command(*more: str, scales: str = SCALES) -> tuple[str, ...]:
    return ("run", "--scales", scales, "--repeat", "4", "--seed", "1", *more, "--",
            sys.executable, "{p}")  # fmt: skip


def done_runs() -> list[tuple[int, int]]:
    found = [re.fullmatch(r"p(\d+)\.r(\d+)", each.name) for each in Path("runs").iterdir()]
    return sorted((int(each[1]), int(each[2])) for each in found if each)


def test_a_series_ends_when_the_band_is_narrow_enough(run, seconds):  # noqa: ARG001
    done = run(*command("--until", "band 1.5 at 512"))
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert len(done_runs()) < 20
    said = r"At p = 512 the sum of all call paths is (\S+) s \((\S+) … (\S+) s\): a band of × (\S+)"
    band = re.fullmatch(said, lines[1])
    assert band
    assert float(band[4]) <= 1.5
    assert float(band[2]) <= 10 + 0.05 * 512 <= float(band[3])
    assert lines[2].endswith("the band is narrow enough")
    assert lines[3] == "next: cpmodel rank runs --target 512"
    fitted, target = cpm.Study("runs").predicted(target=512)
    assert float(band[3]) / float(band[2]) == pytest.approx(advise(fitted, target).apart, rel=0.02)
    before = done_runs()
    assert run("run", "--again", "runs").out.splitlines()[1:] == lines[1:]
    assert done_runs() == before


def test_a_budget_is_never_exceeded(run, seconds):  # noqa: ARG001
    done = run(*command("--until", "band 1.001 at 1024", "--budget", "0.6 core-hours"))
    assert "no further run is within the budget" in done.out
    used = sum(each.core_hours for each in launch.SeriesFolder(Path("runs")).records())
    assert 0.3 < used <= 0.6
    # A larger budget goes on with the same series.
    more = run("run", "--again", "runs", "--budget", "1.2 core-hours")
    later = sum(each.core_hours for each in launch.SeriesFolder(Path("runs")).records())
    assert more.status == 0
    assert used < later <= 1.2


def test_a_run_that_would_exceed_the_budget_is_ended(run, seconds):
    seconds["noise"] = 0.0
    done = run(*command("--budget", "0.01 core-hours", scales="64"))
    assert done.status == 1
    assert "left out: p64.r" in done.out
    assert "it would have exceeded the budget" in done.out
    used = sum(each.core_hours for each in launch.SeriesFolder(Path("runs")).records())
    assert used == pytest.approx(0.01)


def test_the_first_models_need_the_smallest_scales(run, seconds):
    seconds["noise"] = 0.0
    run(*command("--until", "band 1.5 at 512"))
    assert {(2, 1), (2, 2), (4, 1), (4, 2), (8, 1), (8, 2)} <= set(done_runs())


def test_a_scale_that_fails_is_left_out(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("import sys; sys.exit(sys.argv[1] == '4')")
    done = run("run", "--scales", "1,2,4,8,16", "--repeat", "2", "--until", "band 1.0001 at 64",
               "--", sys.executable, "app.py", "{p}")  # fmt: skip
    assert done.status == 1
    assert "left out: p4.r" in done.out
    assert {p for p, _ in done_runs()} == {1, 2, 8, 16}
    assert len([*Path("runs/.series/failed").iterdir()]) == 2


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--until", "band 1 at 512"), "is no goal"),
        (("--until", "soon"), "is no goal"),
        (("--until", "band 1.5 at inf"), "is no goal"),
        (("--budget", "3 hours"), "is no budget"),
        (("--budget", "0 core-hours"), "is no budget"),
    ],
)
def test_goals_and_budgets_that_mean_nothing_are_refused(run, seconds, words, complaint):  # noqa: ARG001
    run(*command(*words)).fails(2, complaint)
    assert not Path("runs").exists()


def test_budgets_have_units():
    assert steer.core_hours_of("200 core-hours") == 200
    assert steer.core_hours_of("30 core-minutes") == 0.5
    assert steer.core_hours_of("1.8core-s") == pytest.approx(0.0005)
    assert steer.goal_of("band × 1.5 at p = 1024") == steer.Goal(1.5, 1024)


def next_run(scale: float, hours: float, apart: float, gain: float) -> NextRun:
    return NextRun({"p": scale}, scale, 1.0, hours, apart, apart, apart, gain)


def test_the_best_run_reaches_the_goal_cheaply_or_is_the_best_for_its_cost_or_in_the_budget():
    found = ((16, 1, 4.0, 0.3), (32, 3, 2.0, 0.6), (64, 9, 1.4, 0.9))
    advice = Advice(1024, 1.0, 0.5, 4.0, 1, 16, tuple(next_run(*each) for each in found))
    assert advice.best().scale == 16  # .3 per core-hour
    assert advice.best(core_hours=100).scale == 64
    assert advice.best(core_hours=5).scale == 32
    assert advice.best(core_hours=5, goal=4.5).scale == 16
    assert advice.best(goal=2.5).scale == 32
    assert advice.best(core_hours=0.5) is None
    close = tuple(
        next_run(*each) for each in ((16, 1, 4.0, 0.3), (32, 3, 3.7, 0.6), (64, 9, 3.9, 0.9))
    )
    assert Advice(1024, 1.0, 0.5, 4.0, 1, 16, close).best(core_hours=100).scale == 64
    endless = (next_run(16, 1, math.inf, 0.0), next_run(32, 2, math.inf, 0.0))
    assert Advice(1024, 1.0, 0.5, 4.0, 1, 16, endless).best().scale == 32
    worse = Advice(
        1024, 1.0, 0.5, 4.0, 1, 16, (next_run(16, 1, 9.0, -0.1), next_run(32, 2, 8.5, -0.05))
    )
    assert worse.best().scale == 32


def test_a_measured_scale_may_be_run_again(tmp_path):
    drawn = np.random.default_rng(1)
    rows = [
        f"app,{p},{(1 + 0.1 * p) * (1 + 0.1 * drawn.standard_normal())}"
        for p in (2, 4, 8, 16, 32) for _ in range(2)
    ]  # fmt: skip
    table = tmp_path / "runs.csv"
    table.write_text("\n".join(["callpath,p,time[s]", *rows]) + "\n")
    fitted = cpm.fit(cpm.load([table]), "time")
    advice = advise(fitted, 256, [32, 64], repetitions=1, measured_too=True)
    by_scale = {run.scale: run for run in advice.runs}
    assert advice.repetitions == 1
    assert by_scale[64].apart < by_scale[32].apart <= 1.2 * advice.apart
    assert by_scale[32].core_hours == pytest.approx(32 * by_scale[32].time / 3600)
    with pytest.raises(UsageError, match="no run to advise at p = 32"):
        advise(fitted, 256, [32])
