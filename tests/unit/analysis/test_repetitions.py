from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from callpath_modeler.analysis.data_quality import (
    repetition_findings,
    run_groups,
    shortages,
    slow_runs,
)
from callpath_modeler.diagnostics import summarise
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.schema import Metric
from callpath_modeler.studies.pipeline import fit
from cells import cells
from synthetic import POINTS, experiment

NAN = np.nan


def half_width(values):
    """Return half the 95 % interval of the mean, relative to the mean, from SciPy."""
    _, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return high / np.mean(values) - 1


def needed(values):
    """Find the number of repetitions by trying one number after the other."""
    spread = np.std(values, ddof=1) / np.mean(values)
    return next(
        n for n in range(2, 10_000) if stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n) <= 0.05
    )


@cells("noise", [0.04, 0.1, 0.3])
@cells("repetitions", [2, 3, 5])
def test_what_is_missing_agrees_with_student_by_hand(noise, repetitions):
    rng = np.random.default_rng(round(100 * noise) + repetitions)
    values = 10 * (1 + noise * rng.standard_normal((2, 3, repetitions)))
    made = experiment({"main": values[0], "main/f": values[1]}, POINTS[:3])
    found = {s.setting: s for s in shortages(made)}
    for k, point in enumerate(POINTS[:3]):
        worst = int(np.argmax([half_width(row[k]) for row in values]))
        width = half_width(values[worst, k])
        if width <= 0.05:
            assert (point,) not in found
        else:
            shortage = found[(point,)]
            assert shortage.row == worst
            assert shortage.within == pytest.approx(width)
            assert (shortage.made, shortage.needed) == (repetitions, needed(values[worst, k]))


def test_with_the_repetitions_named_the_mean_is_known():
    rng = np.random.default_rng(1)
    few = experiment({"main": 1 + 0.2 * rng.standard_normal((1, 40))}, POINTS[:1])
    (short,) = shortages(few)
    widths = [half_width(1 + 0.2 * rng.standard_normal(short.needed)) for _ in range(400)]
    assert np.median(widths) == pytest.approx(0.05, rel=0.15)


def test_more_repetitions_than_are_worth_a_number_may_have_been_made():
    values = 1 + 0.2 * np.random.default_rng(2).standard_normal((1, 1200))
    assert shortages(experiment({"main": values}, POINTS[:1])) == []


def test_call_paths_that_carry_no_cost_ask_for_nothing():
    steady = {"main": [[100.0, 100.1, 99.9]], "main/tiny": [[0.1, 0.4, 0.9]]}
    assert not shortages(experiment(steady, [8.0]))
    assert not repetition_findings(experiment(steady, [8.0]))
    alone = Metric("peak", "B", additive=False)
    assert shortages(experiment(steady, [8.0], metric=alone))[0].row == 1


def test_what_was_measured_once_cannot_be_judged():
    once = {"main": [[1.0, NAN, NAN], [1.0, 2.0, 3.0]]}
    assert [s.setting for s in shortages(experiment(once, [8.0, 16.0]))] == [(16.0,)]
    assert not shortages(experiment({"main": [1.0, 2.0]}, [8.0, 16.0]))


def test_one_finding_counts_the_points_and_names_what_to_add():
    values = {
        "main": [[1.0, 1.0, 1.0], [1.0, 1.1, 1.2], [1.0, 3.0, 1.0]],
        "main/f": [[0.0] * 3] * 3,
    }
    (finding,) = repetition_findings(experiment(values, [2.0, 4.0, 8.0]))
    assert (finding.code, finding.subject, finding.count) == ("CPM134", "time", 2)
    at_4, at_8 = (needed(values["main"][k]) - 3 for k in (1, 2))
    worst = 100 * half_width([1.0, 3.0, 1.0])
    assert finding.message == (
        f"the mean of main at p = 8 may be off by {worst:.0f} %; runs to add: {at_4} at p = 4; "
        f"{at_8} at p = 8"
    )


def test_more_than_a_thousand_missing_repetitions_are_not_counted():
    (finding,) = repetition_findings(experiment({"main": [[0.01, 1.0]]}, [8.0]))
    assert finding.message.endswith("to add: over 1000")


def test_points_that_lack_as_many_repetitions_stand_together():
    values = {"main": [[0.01, 1.0, 0.01], [1.0, 1.1, 1.2], [0.01, 1.0, 0.01], [0.01, 2.0, 0.01]]}
    (finding,) = repetition_findings(experiment(values, [2.0, 4.0, 8.0, 16.0]))
    add = needed(values["main"][1]) - 3
    assert finding.message.endswith(f"; runs to add: over 1000 at p = 2, 8, 16; {add} at p = 4")


def test_many_points_that_lack_repetitions_are_counted():
    noisy = {"main": [[0.01, 1.0, 0.01]] * 6}
    (finding,) = repetition_findings(experiment(noisy, [2.0**k for k in range(1, 7)]))
    assert finding.message.endswith("; runs to add: over 1000 at p = 2, 4, 8 and 3 others")


def test_a_finding_on_many_points_is_a_line_that_people_read():
    rng = np.random.default_rng(1)
    points = [2.0**k for k in range(8)]
    noisy = {"main": 5 * np.exp(2 * rng.standard_normal((8, 3)))}
    (line,) = summarise(repetition_findings(experiment(noisy, points)))
    assert len(line) < 350
    assert "to know means to 5 %" in line
    assert "to add: " in line
    assert line.endswith("Add repetitions, or measure on a quieter machine. (CPM134 x8)")


def test_a_fit_says_so_too():
    rng = np.random.default_rng(2)
    noisy = {"main": 5 * (1 + 0.2 * rng.standard_normal((5, 3)))}
    codes = [finding.code for finding in fit(experiment(noisy)).findings]
    assert codes.count("CPM134") == 1
    steady = {"main": 5 * (1 + 0.001 * rng.standard_normal((5, 3)))}
    assert "CPM134" not in [finding.code for finding in fit(experiment(steady)).findings]


STATES = {
    "normal": lambda rng, shape: 1 + 0.1 * rng.standard_normal(shape),
    "one-sided": lambda rng, shape: 1 + 0.2 * rng.exponential(size=shape),
    "half-normal": lambda rng, shape: 1 + 0.2 * abs(rng.standard_normal(shape)),
    "of all sizes": lambda rng, shape: np.exp(0.5 * rng.standard_normal(shape)),
}


@cells("noise", STATES.values())
@cells("runs", [4, 5, 8])
def test_repetitions_of_one_state_are_hardly_ever_two_groups(noise: Any, runs: int) -> None:
    times = noise(np.random.default_rng(runs), (2000, runs))
    made = experiment({"main": times}, np.arange(1.0, 2001))
    assert len(run_groups(made)) <= 0.01 * 2000 + 2 * np.sqrt(20)


def test_repetitions_in_two_states_of_a_machine_are_named() -> None:
    times = 10 * np.ones((3, 5)) + 0.1 * np.random.default_rng(5).standard_normal((3, 5))
    times[1, [1, 3]] *= 1.36
    made = experiment({"main": 0.3 * times, "main/f": 0.7 * times}, [2.0, 4.0, 8.0])
    (group,) = run_groups(made)
    assert group.slow == (6, 8)
    assert set(group.fast) == {5, 7, 9}
    assert group.longer == pytest.approx(0.36, abs=0.03)
    (finding,) = [each for each in repetition_findings(made) if each.code == "CPM185"]
    first, second = (made.runs[run].source for run in group.slow)
    assert sorted(finding.message.split(": ")[1].split(" by ")[0].split(", ")) == [first, second]
    assert finding.message.endswith("2 of 5 runs")


def test_one_run_or_a_small_distance_makes_no_groups() -> None:
    times = np.full((3, 5), 10.0) + np.arange(5) / 1000
    times[0, 2], times[1, :2] = 20.0, 10.3
    assert run_groups(experiment({"main": times}, [2.0, 4.0, 8.0])) == []


def many_call_paths(seed: int, factors: dict[tuple[int, int], float]) -> Experiment:
    """Return 30 functions at three scales, five runs each, some of them slower by a factor."""
    rng = np.random.default_rng(seed)
    of_runs = np.ones((3, 5))
    for place, factor in factors.items():
        of_runs[place] = factor
    noise = np.exp(0.05 * rng.standard_normal((30, 3, 5)))
    size = rng.lognormal(0, 2, 30)
    values = {"main": np.full((3, 5), 1e-3)}
    values |= {f"main/f{k}": size[k] * noise[k] * of_runs for k in range(30)}
    return experiment(values, [2.0, 4.0, 8.0])


def test_a_run_that_was_slower_as_a_whole_is_named_with_its_size() -> None:
    made = many_call_paths(3, {(1, 2): 1.3, (2, 4): 1.6})
    found = {slow.run: slow for slow in slow_runs(made)}
    assert sorted(found) == [7, 14]
    assert found[7].longer == pytest.approx(0.3, abs=0.05)
    assert found[14].share > 0.9
    (finding,) = [each for each in repetition_findings(made) if each.code == "CPM136"]
    assert finding.count == 2
    first, second = (made.runs[run].source for run in (14, 7))
    assert finding.message.startswith("longer than repetitions: ")
    assert finding.message.index(first) < finding.message.index(second)


@cells("seed", range(5))
def test_noise_of_each_call_path_and_faster_runs_make_no_run_slow(seed: int) -> None:
    assert slow_runs(many_call_paths(seed, {(0, 1): 0.6})) == []


def test_few_call_paths_or_runs_and_counts_make_no_run_slow() -> None:
    made = many_call_paths(4, {(1, 2): 1.5})
    few = {f"f{k}": made.values()[k + 1].reshape(3, 5) for k in range(10)}
    assert slow_runs(experiment(few, [2.0, 4.0, 8.0])) == []
    two = {f"f{k}": made.values()[k + 1].reshape(3, 5)[:, 1:3] for k in range(30)}
    assert slow_runs(experiment(two, [2.0, 4.0, 8.0])) == []
    counts = Metric("visits", "occ", additive=True)
    all_of = {f"f{k}": made.values()[k + 1].reshape(3, 5) for k in range(30)}
    assert slow_runs(experiment(all_of, [2.0, 4.0, 8.0], metric=counts)) == []
    assert slow_runs(experiment(all_of, [2.0, 4.0, 8.0])) != []
