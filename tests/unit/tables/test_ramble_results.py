"""Results of Ramble and Benchpark."""

from __future__ import annotations

import json

import pytest

import workflow_files as wf
from callpath_modeler.errors import InputError

PROGRAM = "lulesh"


def codes(experiment):
    return {finding.code: finding.message for finding in experiment.findings}


@pytest.fixture
def series():
    return [wf.experiment(p) for p in wf.SCALES]


def test_figures_of_merit_are_metrics_of_the_program(load, value_of, series):
    experiment = load("results.latest.json", wf.results(series))
    assert value_of(experiment, "Time", PROGRAM, p=8) == wf.solve_time(8)
    assert value_of(experiment, "FOM", PROGRAM, p=8) == 800
    metrics = {name: values.metric for name, values in experiment.columns.items()}
    assert metrics["Time"].unit == "s"
    assert not metrics["FOM"].additive
    assert experiment.metric().name == "Time"
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    assert experiment.constants["threads"] == 2
    assert experiment.runs[0].metadata["size"] == "30"
    assert experiment.runs[0].metadata["program"] == PROGRAM
    assert codes(experiment) == {"CPM125": "Compiler"}


def test_text_tells_the_parameters_in_the_names_of_experiments(load, value_of, series):
    experiment = load("results.latest.txt", wf.results_text(series))
    assert value_of(experiment, "Time", PROGRAM, p=8) == wf.solve_time(8)
    assert codes(experiment)["CPM142"].endswith("it is the only number that varies")


def test_contexts_are_call_paths_below_the_program(load, value_of):
    def context(name, value):
        return {"name": name, "display_name": name, "foms": [wf.fom("Time", value, "ms")]}

    whole = [wf.fom("Elapsed", 5, "s")]
    series = [
        wf.experiment(p, figures=whole, contexts=[context("Copy", 1000 * p), context("Add", 500)])
        for p in wf.SCALES
    ]
    experiment = load("results.json", wf.results(series))
    assert value_of(experiment, "Time", f"{PROGRAM}/Copy", p=8) == 8
    assert value_of(experiment, "Time", f"{PROGRAM}/Add", p=8) == 0.5
    assert value_of(experiment, "Elapsed", PROGRAM, p=8) == 5


def test_failed_experiments_are_counted_and_not_used(load, series):
    series += [wf.experiment(32, status="FAILED"), wf.experiment(64, status="UNKNOWN")]
    experiment = load("results.json", wf.results(series))
    assert codes(experiment)["CPM166"] == "2 of 7 runs failed"
    assert len(experiment.runs) == 5


def test_repeats_are_repetitions_and_their_summary_is_left_out(load):
    summary = [wf.fom("Time", 1e6, "s", "summary::mean"), wf.fom("Time", 2, "s", "summary::stdev")]
    series = [each for p in wf.SCALES for each in (
        {**wf.experiment(p, figures=summary), "N_REPEATS": 2},
        wf.experiment(p, repeat=1), wf.experiment(p, repeat=2))]  # fmt: skip
    experiment = load("results.json", wf.results(series))
    assert len(experiment.runs) == 10
    assert experiment.values("Time").max() == wf.solve_time(16)
    assert {run.repetition for run in experiment.runs} == {1, 2}


def test_means_count_where_the_repeats_are_not_listed(load, value_of):
    series = [
        {**wf.experiment(p, figures=[
            wf.fom("Experiment Summary", 2, "repeats", "summary::n_total_repeats"),
            wf.fom("Time", 1, "s", "summary::min"),
            wf.fom("Time", wf.solve_time(p), "s", "summary::mean")]), "N_REPEATS": 2}
        for p in wf.SCALES
    ]  # fmt: skip
    experiment = load("results.json", wf.results(series))
    assert value_of(experiment, "Time", PROGRAM, p=8) == wf.solve_time(8)
    assert set(codes(experiment)) == {"CPM130"}


def test_a_variable_that_varies_is_a_parameter(load):
    series = [wf.experiment(p, variables={"size": str(n)}) for p in wf.SCALES for n in (10, 30, 60)]
    for number, each in enumerate(series):
        each["name"] += f"_{number}"
    experiment = load("results.json", wf.results(series))
    assert [parameter.name for parameter in experiment.parameters] == ["p", "size"]


def test_yaml_is_refused_with_what_to_give(load):
    with pytest.raises(InputError, match="Ramble's results in YAML are not read") as raised:
        load("results.latest.yaml", "experiments:\n- RAMBLE_STATUS: SUCCESS\n  name: x\n")
    assert "results.latest.json" in raised.value.hint


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"workspace_hash": "x", "experiments": 3}', "list of experiments is missing"),
        ('{"workspace_hash": "x", "experiments": [3]}', "experiment 1 is not an object"),
        ('{"workspace_hash": "x", "experiments": []}', "no result is a number"),
        (wf.results([wf.experiment(4, status="FAILED")]), "the run failed"),
        (wf.results([{**wf.experiment(4), "CONTEXTS": {"a": 1}}]), "experiment 1 has no list of"),
        (wf.results([wf.experiment(4)])[:-9], "not JSON"),
        ('{"RAMBLE_STATUS": ' + "[" * 100_000, "nested|not JSON"),
        ('{"RAMBLE_STATUS": ' + "9" * 10_000 + "}", "not JSON"),
        (wf.results([wf.experiment(4, figures=[wf.fom("a", "fast", "")])]), "no result is"),
        (wf.results([wf.experiment(4, figures=[wf.fom("a", 1, "s"), wf.fom("a", 1, "B")])]),
         "a is in B, but in s before"),
    ],
)  # fmt: skip
def test_damaged_results_are_refused_with_the_reason(load, content, reason):
    with pytest.raises(InputError, match=reason):
        load("results.json", content)


def test_names_with_control_characters_reach_no_output(load):
    figures = [wf.fom("Time\x1b[2J", 1, "s"), wf.fom("a\nb", 2, "s")]
    strange = {"size\x1b": "7"}
    series = [wf.experiment(p, figures=figures, variables=strange) for p in wf.SCALES]
    series[0]["application_name"] = series[1]["application_name"] = "lu\x07lesh"
    for each in series:
        each["application_name"] = "lu\x07lesh"
    experiment = load("results.json", wf.results(series))
    texts = [*experiment.columns, *experiment.constants, experiment.tree.path(0)]
    assert all(text.isprintable() for text in texts)


def test_a_huge_number_is_set_aside(load):
    series = [wf.experiment(p) for p in wf.SCALES]
    series[0]["CONTEXTS"][0]["foms"][0]["value"] = 10**400
    text = json.dumps({"experiments": series, "workspace_hash": "x"})
    experiment = load("results.json", text)
    assert "CPM117" in codes(experiment) or "Time" in codes(experiment)["CPM125"]
