"""Performance logs and run reports of ReFrame."""

from __future__ import annotations

import json
import math

import pytest

import workflow_files as wf
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.studies.pipeline import fit

PROGRAM = "StreamTest"


def lines(repetitions=2, **told):
    return [
        wf.log_line(p, 10 * r + k, **told)
        for r in range(repetitions)
        for k, p in enumerate(wf.SCALES)
    ]


def codes(experiment):
    return {finding.code: finding.message for finding in experiment.findings}


def check(experiment, value_of, runs):
    assert value_of(experiment, "solve_time", PROGRAM, p=8) == wf.solve_time(8)
    assert value_of(experiment, "triad_bw", PROGRAM, p=8) == 8000
    metrics = {name: values.metric for name, values in experiment.columns.items()}
    assert (metrics["solve_time"].unit, metrics["triad_bw"].unit) == ("s", "MB/s")
    assert not metrics["triad_bw"].additive
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    assert len(experiment.runs) == runs
    assert experiment.runs[0].metadata["program"] == PROGRAM


def test_lines_of_a_log_are_runs_and_repetitions(load, value_of):
    check(load("StreamTest.log", wf.perflog(lines())), value_of, runs=10)


def test_cases_of_a_report_are_runs(load, value_of):
    check(load("run-report.json", wf.report([wf.case_of(p) for p in wf.SCALES])), value_of, runs=5)


def test_an_older_report_lists_its_variables(load, value_of):
    cases = [
        {
            "name": PROGRAM, "result": "success", "system": "mysys",
            "check_vars": {"num_tasks": p, "tags": []}, "check_params": {"n": p},
            "perfvars": [{"name": "solve_time", "value": wf.solve_time(p), "unit": "s"},
                         {"name": "triad_bw", "value": 1000 * p, "unit": "MB/s"}],
        }
        for p in wf.SCALES
    ]  # fmt: skip
    check(load("run-report.json", wf.report(cases)), value_of, runs=5)


def test_runs_with_very_many_different_variables_are_refused(load):
    cases = [
        {
            "name": PROGRAM,
            "result": "success",
            "check_vars": {"num_tasks": 2 + k, f"v{k}": 1},
            "perfvars": [{"name": "solve_time", "value": 1, "unit": "s"}],
        }
        for k in range(800)
    ]
    with pytest.raises(InputError, match="cells of rows and columns"):
        load("run-report.json", wf.report(cases))


def test_one_variable_per_line_with_its_name(load, value_of):
    header = "result|job_completion_time|version|name|num_tasks|pvar|pval|punit|"
    rows = [
        f"pass|2026-01-01|4.1|{PROGRAM}|{p}|{name}|{value}|{unit}|"
        for p in wf.SCALES
        for name, value, unit in (
            ("solve_time", 1000 * wf.solve_time(p), "ms"), ("triad_bw", 1000 * p, "MB/s"))
    ]  # fmt: skip
    check(load("a.log", "\n".join([header, *rows]) + "\n"), value_of, runs=5)


def test_failed_runs_are_counted_and_not_used(load):
    failed = [wf.log_line(32, 50, result="fail", bandwidth="None", time="None"),
              wf.log_line(64, 51, result="fail", time=1e9)]  # fmt: skip
    experiment = load("a.log", wf.perflog([*lines(), *failed]))
    assert codes(experiment)["CPM166"] == "2 of 12 runs failed"
    assert max(run.parameters["p"] for run in experiment.runs) == 16


def test_a_missing_value_of_a_run_that_passed_is_no_zero(load, value_of):
    some = [wf.log_line(p, p, time="None" if p == 4 else None) for p in wf.SCALES]
    experiment = load("a.log", wf.perflog(some))
    assert math.isnan(value_of(experiment, "solve_time", PROGRAM, p=4))
    assert "CPM166" not in codes(experiment)


def test_a_parameter_of_the_test_beside_the_processes_is_one(load):
    rows = [
        wf.log_line(p, k).replace(f"|{p}|StreamTest", f"|{n}|StreamTest")
        for k, (p, n) in enumerate((p, n) for p in wf.SCALES for n in (10, 20, 40))
    ]
    experiment = load("a.log", wf.perflog(rows))
    assert [parameter.name for parameter in experiment.parameters] == ["p", "n"]


def test_several_tests_of_a_report_are_cases(load, value_of):
    cases = [wf.case_of(p, name=name) for name in (PROGRAM, "Other") for p in wf.SCALES]
    whole = load("run-report.json", wf.report(cases))
    assert {*whole.cases} == {PROGRAM, "Other"}
    with pytest.raises(UsageError, match="2 cases of 'program'"):
        fit(whole)
    experiment = load("run-report.json", wf.report(cases), where=f"program={PROGRAM}")
    assert value_of(experiment, "solve_time", PROGRAM, p=8) == wf.solve_time(8)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (wf.perflog([*lines(), "pass|2026"]), "line 12: 2 fields, but 30 titles"),
        (wf.perflog([]), "no result is a number"),
        (wf.perflog([wf.log_line(4, 1, result="fail")]), "the run failed"),
        (wf.perflog(lines(time="x" * 100_000)).replace("MB/s", "x"), None),
        (wf.perflog(lines(time="1e9999")), None),
        ("2020-01-01T10:00:00|reframe 3.9|Stream on x:y|jobid=1|num_tasks=4|triad=1\n", "header"),
        (wf.perflog([wf.log_line(8, 1), wf.log_line(4, 2).replace("|4|null|d", "|null|null|d")]),
         "parameter p has no finite value"),
    ],
)  # fmt: skip
def test_damaged_logs_are_refused_with_the_reason(load, content, reason):
    if reason is None:
        # Words and endless numbers in one variable leave the other.
        assert load("a.log", content).columns["triad_bw"].exclusive.shape[1] == 10
        return
    with pytest.raises(InputError, match=reason):
        load("a.log", content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"session_info": {"data_version": "4.2"}}', "has no test cases"),
        ('{"session_info": {"data_version": "4.2"}, "runs": [{"testcases": [1]}]}', "an object"),
        ('{"session_info": {"data_version": "4.2"}, "runs": ' + "[" * 100_000, "nested|not JSON"),
        (wf.report([wf.case_of(4)])[:-20], "not JSON"),
        (json.dumps({"session_info": {"data_version": "4"}, "runs": [{"testcases": []}]}),
         "no result is a number"),
    ],
)  # fmt: skip
def test_damaged_reports_are_refused_with_the_reason(load, content, reason):
    with pytest.raises(InputError, match=reason):
        load("r.json", content)
