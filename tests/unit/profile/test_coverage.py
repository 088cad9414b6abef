"""Call paths that do not occur in every run, and functions that were renamed."""

from __future__ import annotations

import numpy as np

from callpath_modeler.profile.unify import coverage_findings
from synthetic import experiment

GONE, NAN = [1.0, 1.0, np.nan, np.nan, np.nan], float("nan")
CAME = [NAN, NAN, 2.0, 2.0, 2.0]
ALWAYS = [1.0] * 5


def found(values):
    made = experiment(values)
    return {
        (finding.code, finding.subject): finding.message
        for finding in coverage_findings(made.tree, made.columns)
    }


def test_call_paths_of_all_runs_are_nothing_to_speak_of():
    assert found({"main": ALWAYS, "main/f": ALWAYS, "main/never": [NAN] * 5}) == {}


def test_a_function_that_was_renamed_is_named_with_its_new_name():
    told = found({"main": ALWAYS, "main/solve": GONE, "main/solve_v2": CAME, "main/f": ALWAYS})
    assert told == {
        ("CPM113", "time"): "2 of 4 call paths do not occur in every run",
        ("CPM137", "main/solve"): "in 2 of 5 runs, main/solve_v2 in the others",
    }


def test_callees_of_a_renamed_function_are_not_named():
    names = {"main/old": GONE, "main/old/f": GONE, "main/new": CAME, "main/new/f": CAME}
    told = found({"main": ALWAYS, **names})
    assert [subject for code, subject in told if code == "CPM137"] == ["main/old"]


def test_call_paths_that_overlap_or_are_many_or_have_other_callers_are_not_one_renamed():
    overlaps = {"main/old": [1.0, 1.0, 1.0, NAN, NAN], "main/new": CAME}
    many = {"main/old": GONE, "main/new": CAME, "main/too": CAME}
    elsewhere = {"main/f": ALWAYS, "main/f/old": GONE, "main/new": CAME}
    for values in (overlaps, many, elsewhere):
        assert [code for code, _ in found({"main": ALWAYS, **values})] == ["CPM113"]


def test_of_very_many_a_few_are_named_and_all_are_counted():
    values = {"main": ALWAYS}
    for k in range(50):
        values |= {f"main/f{k}": ALWAYS, f"main/f{k}/old": GONE, f"main/f{k}/new": CAME}
    made = experiment(values)
    findings = coverage_findings(made.tree, made.columns)[1:]
    assert sum(finding.count for finding in findings) == 50
    assert findings[-1].message == "30 more such pairs"
    assert len(findings) == 21
