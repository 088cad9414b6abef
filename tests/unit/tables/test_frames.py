"""Frames of Thicket, Hatchet and pandas as JSON, CSV and Parquet; pickles and Extra-P's prints."""

from __future__ import annotations

import json
import pickle

import pandas as pd
import pytest

import workflow_files as wf
from callpath_modeler.errors import InputError

FRAME = pd.DataFrame(
    [(name, p, time) for p in wf.SCALES for name, time in (("main", 1000), ("solve", 500 * p))],
    columns=["name", "ranks", "time [ms]"],
)


def codes(experiment):
    return {finding.code for finding in experiment.findings}


@pytest.mark.parametrize("orient", ["records", "split", "index", "columns", "table"])
@pytest.mark.parametrize("title", ["name", "callpath"])
def test_every_layout_of_json_of_a_frame_is_read(load, value_of, orient, title):
    text = FRAME.rename(columns={"name": title}).to_json(orient=orient)
    experiment = load("frame.json", text)
    assert value_of(experiment, "time", "solve", p=8) == 4
    assert value_of(experiment, "time", "main", p=8) == 1


@pytest.mark.parametrize("orient", ["records", "split", "index", "columns", "table"])
def test_frames_of_any_length_are_known_by_their_beginning(load, orient):
    frame = pd.concat([FRAME] * 600, ignore_index=True)
    experiment = load("frame.json", frame.to_json(orient=orient))
    assert len(experiment.runs) == 3000


def test_json_without_call_paths_is_about_the_program(load, value_of):
    text = json.dumps([{"p": p, "time": wf.solve_time(p)} for p in wf.SCALES])
    assert value_of(load("x.json", text), "time", "<root>", p=8) == wf.solve_time(8)


def test_a_frame_of_hatchet_as_csv_adds_functions_of_one_name(load, value_of):
    lines = ["node,profile,nid,time (exc),name,jobsize"]
    lines += [
        f"\"{{'name': '{name}', 'type': 'function'}}\",{78138 + p},{node}.0,{p},{name},{p}"
        for p in wf.SCALES
        for node, name in enumerate(("main", "io", "solve", "solve"))
    ]
    experiment = load("frame.csv", "\n".join(lines) + "\n")
    assert value_of(experiment, "time", "solve", p=8) == 16
    assert "CPM112" in codes(experiment)


def test_inclusive_times_of_a_list_have_no_total(load):
    lines = [f"{name},{p},{t}" for p in wf.SCALES for name, t in (("main", 10), ("solve", 8))]
    experiment = load("x.csv", "\n".join(["name,ranks,time (inc)", *lines]) + "\n")
    assert not experiment.metric("time").additive
    assert "CPM155" in codes(experiment)


def test_inclusive_times_of_one_function_have_a_total(load):
    lines = [f"main,{p},{p}" for p in wf.SCALES]
    experiment = load("x.csv", "\n".join(["name,ranks,time (inc)", *lines]) + "\n")
    assert experiment.metric("time").additive
    assert "CPM155" not in codes(experiment)


class TestThicket:
    def test_call_paths_come_from_the_graph(self, load, value_of):
        experiment = load("t.json", wf.thicket())
        assert value_of(experiment, "time", "main/solve/solve", p=8) == 8
        assert value_of(experiment, "time", "main/solve", p=8) == wf.solve_time(8)
        assert value_of(experiment, "time", "main", p=8) == 1
        assert [parameter.name for parameter in experiment.parameters] == ["p"]
        assert experiment.runs[0].metadata["problem_size"] == "30"
        assert experiment.metric().name == "time"

    def test_profiles_of_one_scale_are_repetitions(self, load):
        experiment = load("t.json", wf.thicket((*wf.SCALES,), files=False))
        assert len(experiment.runs) == 5
        text = json.loads(wf.thicket((4, 5, 8), files=False))
        text["metadata"][1]["mpi.world.size"] = 4
        experiment = load("u.json", json.dumps(text))
        assert [run.parameters["p"] for run in experiment.runs] == [4, 4, 8]

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda d: d["graph"][0].pop("2"), "is not in the graph"),
            (lambda d: d.update(dataframe=[]), "the graph or the values are missing"),
            (lambda d: d["graph"][0]["0"].update(parents=[2]), "no root above"),
            (lambda d: d["graph"][0]["1"].update(parents=[77]), "no root above"),
            (lambda d: d["graph"][0]["1"].update(data={}), "has no name"),
            (lambda d: d["dataframe"][0].update(rank=1), "the values are per rank"),
            (lambda d: [row.pop("time (inc)") and row.pop("Min time/rank")
                        for row in d["dataframe"]], "contain no numbers"),
        ],
    )  # fmt: skip
    def test_damaged_frames_are_refused_with_the_reason(self, load, change, reason):
        document = json.loads(wf.thicket())
        change(document)
        with pytest.raises(InputError, match=reason):
            load("t.json", json.dumps(document))

    def test_a_chain_of_many_callers_is_refused_in_time(self, load):
        many = 50_000
        graph = {str(k): {"data": {"name": "f"}, "children": [k + 1],
                          "parents": [k - 1] if k else []} for k in range(many)}  # fmt: skip
        document = json.loads(wf.thicket()) | {"graph": [graph]}
        with pytest.raises(InputError, match="the call paths are too long"):
            load("t.json", json.dumps(document))


@pytest.mark.parametrize("name", ["frame.pkl", "thicket.pickle", "FRAME.PKL"])
def test_a_pickle_is_refused_without_opening_it(load, name):
    class Evil:
        def __reduce__(self):
            return print, ("opened",)

    with pytest.raises(InputError, match="they can execute any program") as raised:
        load(name, pickle.dumps(Evil()))
    assert "to_json" in raised.value.hint


def test_what_extrap_prints_is_refused_with_what_to_give(load):
    text = "Callpath: main\n\tMetric: time\n\t\tMeasurement point: (4.00E+00) Mean: 1.05E+00\n"
    with pytest.raises(InputError, match="three digits") as raised:
        load("out.txt", text)
    assert "--save-experiment" in raised.value.hint


@pytest.mark.parametrize("name", ["slurm.out", "notes.log", "x.dat", "readme.txt", "conf.yaml"])
def test_a_file_of_a_general_ending_that_is_named_is_never_dropped(load, name):
    with pytest.raises(InputError, match=name):
        load(name, "Hello, world: no table here.\nAnother line\n")


def test_files_of_general_endings_in_a_directory_are_named(tmp_path):
    from callpath_modeler.studies import loading

    (tmp_path / "result.dat").write_text(
        wf.pretty("r", ["tasks", "time[s]"], [(p, wf.solve_time(p)) for p in wf.SCALES])
    )
    (tmp_path / "slurm-1.out").write_text("no table\n")
    (tmp_path / "frame.pkl").write_bytes(b"\x80\x04N.")
    experiment = loading.load([tmp_path])
    assert len(experiment.runs) == 5
    (found,) = [each for each in experiment.findings if each.code == "CPM164"]
    assert "slurm-1.out" in found.message
    assert "frame.pkl" in found.message


@pytest.mark.parametrize("columns", [30_000, 300_000])
def test_very_many_columns_are_refused_in_time(load, columns):
    titles = ",".join(["p", "time", *(f"c{k}" for k in range(columns))])
    with pytest.raises(InputError, match="columns, but at most 20000"):
        load("x.csv", f"{titles}\n{','.join(['1'] * (columns + 2))}\n")
