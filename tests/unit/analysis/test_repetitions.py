from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from callpath_modeler.analysis.repetitions import repetition_findings, shortages
from callpath_modeler.pipeline import fit
from callpath_modeler.profile.schema import Metric
from synthetic import POINTS, experiment

NAN = np.nan


def half_width(values):
    """Half the 95 % interval of the mean, as fraction of it, from scipy."""
    _, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return high / np.mean(values) - 1


def needed(values):
    """Try one number of repetitions after the other."""
    spread = np.std(values, ddof=1) / np.mean(values)
    return next(
        n for n in range(2, 10_000) if stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n) <= 0.05
    )


@pytest.mark.parametrize("noise", [0.04, 0.1, 0.3])
@pytest.mark.parametrize("repetitions", [2, 3, 5])
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
    assert finding.message.startswith("2 points: ")
    assert f"known to {half_width([1.0, 3.0, 1.0]):.0%} at worst (main at p = 8)" in finding.message
    assert finding.message.endswith(f"repetitions to add: {at_4} at p = 4; {at_8} at p = 8")


def test_more_than_a_thousand_are_not_counted():
    (finding,) = repetition_findings(experiment({"main": [[0.01, 1.0]]}, [8.0]))
    assert finding.message.endswith("repetitions to add: over 1000")


def test_a_fit_says_so_too():
    rng = np.random.default_rng(2)
    noisy = {"main": 5 * (1 + 0.2 * rng.standard_normal((5, 3)))}
    codes = [finding.code for finding in fit(experiment(noisy)).findings]
    assert codes.count("CPM134") == 1
    steady = {"main": 5 * (1 + 0.001 * rng.standard_normal((5, 3)))}
    assert "CPM134" not in [finding.code for finding in fit(experiment(steady)).findings]
