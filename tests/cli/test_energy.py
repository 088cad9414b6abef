"""Energy in rankings, and the scales where a program is cheapest, on the command line."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from extra_prof_writer import node, write

P = (1, 2, 4, 8, 16, 32)
SECOND, JOULE = 1e9, 1e6


def series(path, work, messages):
    """Write three repetitions of a program at each p; functions are seconds and joules by p."""
    random = np.random.default_rng(5)
    for p in P:
        for repetition in (1, 2, 3):
            for rank in range(p):
                noisy = iter(random.uniform(0.99, 1.01, 4).tolist())
                seconds = [work[0](p) * next(noisy) * SECOND, messages[0](p) * next(noisy) * SECOND]
                joules = [work[1](p) * next(noisy) * JOULE, messages[1](p) * next(noisy) * JOULE]
                calls = [
                    node(each, [time], energy=[[power / 4], [power * 3 / 4]])
                    for each, time, power in zip(("work", "exchange"), seconds, joules, strict=True)
                ]
                whole = sum(joules)
                main = node("main", [sum(seconds)], *calls, energy=[[whole / 4], [whole * 3 / 4]])
                file = path / f"app.p{p}.r{repetition}" / f"rank-{rank}.extra-prof.msgpack"
                write(file, node("", [], main, visits=[]))
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Write a program whose energy is least at p = 10; its core-hours only rise."""
    path = tmp_path_factory.mktemp("energy") / "runs"
    return series(
        path,
        (lambda p: 10 / p, lambda p: 1000 / p**2),
        (lambda p: 0.02 * p, lambda p: 1.0 * p**0),
    )


def costs(run, runs, *more, target="64"):
    outcome = run("rank", runs, "--target", target, *more, "-f", "json")
    assert outcome.status == 0, outcome.err
    return json.loads(outcome.out)


def test_call_paths_are_ordered_by_energy_and_have_it_as_a_column(run, runs):
    by_time = costs(run, runs)["rows"]
    assert [row["callpath"] for row in by_time[:2]] == ["main/exchange", "main/work"]
    assert by_time[1]["energy"] == pytest.approx(1000 / 64**2, rel=0.05)
    outcome = run("rank", runs, "--target", "8", "--by", "energy", "-f", "csv")
    first, second, *_ = csv.DictReader(io.StringIO(outcome.out))
    assert [first["callpath"], second["callpath"]] == ["main/work", "main/exchange"]
    assert float(first["energy[J]"]) == pytest.approx(1000 / 64, rel=0.05)
    assert float(second["energy[J]"]) == pytest.approx(1.0, rel=0.05)
    for row in (first, second):
        assert float(row["energy_low[J]"]) < float(row["energy[J]"]) < float(row["energy_high[J]"])


def test_the_order_by_energy_differs_from_that_by_time(run, runs):
    assert "main/exchange" in run("rank", runs, "--target", "32", "-n", "1").out
    out = run("rank", runs, "--target", "16", "--by", "energy", "-n", "1").out
    assert "Of the energy, work takes 80 %" in out.splitlines()[0]
    (header,) = (line for line in out.splitlines() if line.startswith("#"))
    assert " energy " in header
    assert " energy " not in run("rank", runs, "--target", "16").out.split("#", 1)[1].split("\n")[0]


def test_costs_at_the_target_follow_from_the_models(run, runs):
    found = costs(run, runs)
    time = found["run_time"]["at_target"]
    assert found["costs"]["time"]["at_target"] == time
    assert found["costs"]["core_hours"]["at_target"] == pytest.approx(64 * time / 3600)
    own = costs(run, runs, "-m", "energy")
    energy = found["costs"]["energy"]
    for end, name in (("at_target", "at_target"), ("low", "low"), ("high", "high")):
        assert energy[end] == pytest.approx(64 * own["total"][name], rel=1e-9)
    assert energy["metric"] == "energy"
    assert energy["low"] < 64 * (1000 / 64**2 + 1) < energy["high"]


def test_the_greenest_p_lies_inside_and_the_cheapest_at_the_smallest_run(run, runs):
    found = costs(run, runs)["costs"]
    green, cheap = found["energy"]["cheapest"], found["core_hours"]["cheapest"]
    # 1000 / p + p is least at p = 31.6, and 10 + .02 p^2 at p = 1.
    assert green["at"] == pytest.approx(1000**0.5, rel=0.1)
    assert green["low"] < 2 * 1000**0.5 < green["high"]
    assert green["from"] < green["at"] < green["to"]
    assert (green["end"], green["is_monotone"]) == (None, False)
    assert (cheap["at"], cheap["end"], cheap["is_monotone"]) == (1.0, "smallest", True)
    assert cheap["low"] < 10.02 / 3600 < cheap["high"] * 1.01
    out = run("rank", runs, "--target", "64").out
    assert "Cheapest at p = 1, the smallest run: " in out
    assert "Core-hours rise with p over the whole range, and a smaller p was not measured." in out
    assert "Greenest at about p = 3" in out


def test_inside_the_data_the_search_ends_at_the_largest_run(run, runs):
    green = costs(run, runs, target="8")["costs"]["energy"]["cheapest"]
    assert green["until"] == 32
    outcome = run("rank", runs, "--target", "8", "--predicted")
    assert "beyond the largest run" not in outcome.out


def test_an_energy_that_falls_to_the_end_is_said_to_fall(run, tmp_path):
    falling = series(
        tmp_path / "runs",
        (lambda p: 10 / p, lambda p: 1000 / p**2),
        (lambda p: 0.001 * p**0, lambda p: 0.001 * p**0),
    )
    green = costs(run, falling)["costs"]["energy"]["cheapest"]
    assert (green["at"], green["end"]) == (64, "largest")
    out = run("rank", falling, "--target", "64").out
    assert "Greenest at p = 64, the target: " in out
    assert "The energy still falls with p" in out
    assert "a larger p may be greener." in out


def test_costs_that_do_not_change_decide_no_scale(run, tmp_path):
    constant = series(
        tmp_path / "runs",
        (lambda p: 10 / p, lambda p: 1000 / p),
        (lambda p: 0.01 / p, lambda p: 1 / p),
    )
    green = costs(run, constant)["costs"]["energy"]["cheapest"]
    assert not green["is_decided"]
    out = run("rank", constant, "--target", "64").out
    assert "No p is clearly the greenest: p = 1 … 64 may be as green." in out


def test_weak_scaling_has_costs_but_no_cheapest_scale(run, runs):
    found = costs(run, runs, "--scaling", "weak")["costs"]
    assert found["energy"]["at_target"] > 0
    assert found["energy"]["cheapest"] is None is found["core_hours"]["cheapest"]
    out = run("rank", runs, "--target", "64", "--scaling", "weak").out
    assert "A cheapest p needs the same work at every p" in out


def test_maxima_over_processes_have_no_energy_of_the_whole_program(run, runs):
    found = costs(run, runs, "--locations", "max")["costs"]
    assert found["energy"] is None
    assert found["core_hours"]["cheapest"]["at"] == 1


def test_sums_over_processes_have_the_same_energy(run, runs):
    mean, total = costs(run, runs), costs(run, runs, "--locations", "sum")
    pair = [each["costs"]["energy"]["at_target"] for each in (mean, total)]
    assert pair[0] == pytest.approx(pair[1], rel=0.05)


def test_programs_without_energy_have_no_order_by_energy(run, tmp_path):
    path = tmp_path / "app.csv"
    lines = [f"main,{p},{r},{10 / p}" for p in P for r in (1, 2)]
    path.write_text("\n".join(["callpath,p,rep,time", *lines]) + "\n")
    outcome = run("rank", path, "--target", "64", "--by", "energy")
    assert outcome.status == 2
    assert "no metric of these profiles is in joules" in outcome.err
    assert "costs" not in json.loads(run("rank", path, "--target", "64", "-f", "json").out)


def test_several_counters_are_added_up_only_by_the_user(run, tmp_path):
    path = tmp_path / "app.csv"
    lines = [f"main,{p},{r},{10 / p},{20 / p},{5 / p}" for p in P for r in (1, 2)]
    path.write_text("\n".join(["callpath,p,rep,time,node [J],cpu [J]", *lines]) + "\n")
    asked = ("rank", path, "--target", "64", "--by", "energy")
    outcome = run(*asked)
    assert outcome.status == 2
    assert "--define 'energy = node + cpu'" in outcome.err
    added = run(*asked, "--define", "energy = node + cpu", "-f", "json")
    assert added.status == 0, added.err
    (row,) = json.loads(added.out)["rows"]
    assert row["energy"] == pytest.approx(25 / 64, rel=0.02)


def test_growth_without_end_has_no_order_by_energy(run, runs):
    outcome = run("rank", runs, "--target", "inf", "--by", "energy")
    assert outcome.status == 2
    assert "give a finite target" in outcome.err
    assert run("rank", runs, "--target", "inf").status == 0


def test_the_page_has_the_costs(run, runs):
    page = run("report", runs, "--target", "64").out.replace("\N{NO-BREAK SPACE}", " ")
    assert "Greenest at about p = 3" in page


def test_python_reads_the_energy_for_an_order_by_energy(runs):
    import callpath_modeler as cpm

    ranking = cpm.Study(str(runs)).ranking(target=16, by="energy")
    paths = ranking.fitted.experiment.tree.paths(ranking.order[:1])
    assert [*paths] == ["main/work"]
    assert ranking.energy is not None
    assert ranking.energy.fitted.metric.unit == "J"
