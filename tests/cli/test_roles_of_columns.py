"""`--drop`, `--time`, `--repetition` and `--param p=column:TITLE` change one decision each."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.readers.base import ColumnChoices
from callpath_modeler.studies import loading

ROWS = [(1, 100.0), (2, 51.0), (4, 26.3), (8, 14.1), (16, 8.2)]


@pytest.fixture
def write(tmp_path):
    def written(head, row, name="runs.csv"):
        path = tmp_path / "data" / name
        path.parent.mkdir(exist_ok=True)
        lines = [",".join(map(str, row(p, t))) for p, t in ROWS]
        path.write_text("\n".join([head, *lines, ""]))
        return path

    return written


def load(path, **choices):
    parameters = choices.pop("parameters", {})
    read = loading.ReadOptions(columns=ColumnChoices(**choices), parameter_sources=parameters)
    return loading.load(path, loading.LoadOptions(read))


def times(experiment):
    return experiment.columns[experiment.metric().name].total.tolist()


def test_a_dropped_column_is_as_if_it_were_not_there(write):
    path = write("p,host,time", lambda p, t: (p, "ab"[p > 2], t))
    assert "host" in load(path).runs[0].metadata
    assert "host" not in load(path, drop=("host",)).runs[0].metadata
    path = write("p,n,time", lambda p, t: (p, p * p, t), "n.csv")
    assert [each.name for each in load(path, drop=("n",)).parameters] == ["p"]
    path = write("p,run1,run2,run3", lambda p, t: (p, t, t, 9 * t), "wide.csv")
    assert len(load(path).runs) == 15
    assert len(load(path, drop=("run3",)).runs) == 10


def test_the_time_may_have_any_title(write):
    path = write("p,total,alpha", lambda p, t: (p, t, t / 2 + 0.25))
    assert times(load(path)) == [t for _, t in ROWS]
    chosen = load(path, time="alpha")
    assert times(chosen) == [t / 2 + 0.25 for _, t in ROWS]
    assert chosen.metric().unit == "s"
    path = write("p,alpha", lambda p, t: (p, t), "alone.csv")
    assert times(load(path, time="alpha")) == [t for _, t in ROWS]
    path = write("region,p,bytes,alpha", lambda p, t: ("main", p, p, t), "paths.csv")
    assert times(load(path, time="alpha")) == [t for _, t in ROWS]


def test_the_parts_of_a_chosen_time_are_its_call_paths(write):
    path = write("p,elapsed,job (s),comm (s)", lambda p, t: (p, 2 * t, t, t / 4))
    chosen = load(path, time="job (s)")
    assert [chosen.tree.path(row) for row in range(len(chosen.tree))] == [
        "<root>", "<root>/comm", "<root>/other",
    ]  # fmt: skip
    assert times(chosen) == pytest.approx([t for _, t in ROWS])


@pytest.mark.parametrize("values", [(101, 102), (1.5, 2.5), ("monday", "friday")])
def test_any_column_may_tell_repetitions_apart(write, values):
    path = write("p,day,time", lambda p, t: (p, values[0], t))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, *(re.sub(",.*,", f",{values[1]},", each)
                                         for each in lines[1:])]))  # fmt: skip
    experiment = load(path, repetition="day")
    assert [each.name for each in experiment.parameters] == ["p"]
    assert sorted(run.repetition for run in experiment.runs) == [1] * 5 + [2] * 5
    experiment.refuse_several_cases()


def test_a_column_of_any_title_and_numbers_may_be_the_scale(write):
    path = write("T1,x2,time", lambda p, t: (17 - p, 3 * p, t))
    experiment = load(path, parameters={"p": "column:x2"}, drop=("T1",))
    assert experiment.points("p").tolist() == [3 * p for p, _ in ROWS]
    path = write("half,time", lambda p, t: (p + 0.5, t), "half.csv")
    experiment = load(path, parameters={"p": "column:half"})
    assert experiment.points("p").tolist() == [p + 0.5 for p, _ in ROWS]


def test_parameters_have_the_order_of_their_sources(write):
    path = write("p,alpha,beta,gamma,time", lambda p, t: (p, p, 2 * p, 3 * p, t))
    names = ["gamma", "alpha", "p", "beta"]
    experiment = load(path, parameters={name: f"column:{name}" for name in names})
    assert [each.name for each in experiment.parameters] == names


def test_every_option_may_stand_in_a_configuration_file(write, run):
    path = write("p,host,trial,alpha,total", lambda p, t: (p, "ab"[p > 2], 1, t, 3 * t))
    asked = ("rank", path, "--target", "64", "-f", "json")
    options = ("--drop", "host", "--time", "alpha", "--repetition", "trial")
    told = json.loads(run(*asked, *options).out)["rows"]
    assert told != json.loads(run(*asked).out)["rows"]
    (path.parent / "cpmodel.toml").write_text(
        '[defaults]\ndrop = ["host"]\ntime_column = "alpha"\nrepetition = "trial"\n'
    )
    assert json.loads(run(*asked).out)["rows"] == told


def test_a_configured_column_may_be_missing(write, run):
    path = write("p,time", lambda p, t: (p, t))
    before = run("rank", path, "--target", "64").out
    (path.parent / "cpmodel.toml").write_text(
        '[defaults]\ndrop = ["host"]\ntime_column = "alpha"\nrepetition = "trial"\n'
    )
    assert run("rank", path, "--target", "64").out == before


@pytest.mark.parametrize("option", ["--drop", "--time", "--repetition"])
def test_a_column_that_does_not_exist_is_refused_with_the_nearest_one(write, run, option):
    path = write("p,Wall time,seed", lambda p, t: (p, t, 7))
    done = run("rank", path, "--target", "64", option, "Walltime (s)")
    done.fails(2, f"{option}: no column 'Walltime (s)'")
    assert "did you mean 'Wall time'?" in done.complaint
    done = run("rank", path, "--target", "64", option, "xyz")
    assert "choose one of p, Wall time, seed" in done.complaint


def test_a_title_may_be_given_without_unit_and_case(write):
    path = write("p,Total (s),CPU (s)", lambda p, t: (p, t, 4 * t))
    assert times(load(path, time="cpu")) == [4 * t for _, t in ROWS]


@pytest.mark.parametrize(
    "option",
    ["--drop trial", "--drop 'Wall t (s)'", "--repetition seed", "--time cpu", "--time trial",
     "--repetition 'Wall t (s)'", "--drop p", "--param p=column:seed"],
)  # fmt: skip
def test_a_role_on_the_command_line_replaces_one_of_a_file(write, run, option):
    path = write(
        "p,trial,seed,Wall t (s),cpu (s)", lambda p, t: (p, 100 - p, 3 * p, t, t + 1 / (p + 1))
    )
    asked = ("rank", path, *shlex.split(option))
    alone = run(*asked)
    (path.parent / "cpmodel.toml").write_text(
        '[parameters]\np = { from = "column:p" }\n'
        '[defaults]\nrepetition = "trial"\ntime_column = "Wall t (s)"\n'
    )
    beside = run(*asked)
    assert "two roles" not in beside.err
    assert beside.status == 0 or beside.complaint == alone.complaint


def test_every_option_that_is_printed_works_beside_the_printed_configuration(write, run):
    path = write("p,repetition,Wall t (s),speedup", lambda p, t: (p, 1, t, 100 / t))
    page = run("info", path, "--explain").out
    table, _, configuration = page.partition("# as cpmodel.toml")
    (path.parent / "cpmodel.toml").write_text(configuration.partition("\n")[2])
    options = re.findall(r"--(?:drop|time|repetition) (?:'[^']+'|\S+)", table)
    assert "--drop 'Wall t (s)'" in options
    for option in options:
        assert run("rank", path, "--target", "64", *shlex.split(option)).status == 0, option


@pytest.mark.parametrize("title", ["ranks", "MPI ranks", "nprocs"])
def test_the_column_of_processes_may_be_renamed_or_dropped_by_its_title(write, title):
    path = write(f"{title},n,time", lambda p, t: (p, 10 * p + 1, t))
    assert "p" in [each.name for each in load(path).parameters]
    renamed = load(path, parameters={"q": f"column:{title}"})
    assert {each.name for each in renamed.parameters} == {"q", "n"}
    assert renamed.points("q").tolist() == [p for p, _ in ROWS]
    dropped = load(path, parameters={title: "none"})
    assert [each.name for each in dropped.parameters] == ["n"]


def test_a_parameter_from_no_column_is_refused_with_the_nearest_one(write, run):
    path = write("ranks,Wall time,seed", lambda p, t: (p, t, 7))
    done = run("rank", path, "--target", "64", "--param", "p=column:seeds")
    done.fails(2, "--param: no column 'seeds'")
    assert "did you mean 'seed'?" in done.complaint
    done = run("rank", path, "--target", "64", "--param", "p=column:xyz")
    assert "choose one of ranks, Wall time, seed" in done.complaint


def test_a_derived_column_is_not_proposed_for_drop(write, run):
    path = write("threads,speedup", lambda p, t: (p, 100 / t))
    page = run("info", path, "--explain").out
    assert "relative time" in page
    assert "--drop 'relative time'" not in page


def test_a_column_has_one_role(write):
    path = write("p,time,seed", lambda p, t: (p, t, 7))
    with pytest.raises(UsageError, match="'seed' is given two roles"):
        load(path, drop=("seed",), repetition="seed")


def test_a_profile_has_no_columns(tmp_path, run):
    path = tmp_path / "app.p4.folded"
    path.write_text("main;solve 12\nmain 3\n")
    done = run("rank", path, "--target", "64", "--drop", "host")
    done.fails(2, "--drop is for columns of tables; reader 'folded' reads no table")


def test_a_refused_table_names_an_option_that_works(write, run):
    path = write("alpha,beta", lambda p, t: (p, t))
    complaint = run("rank", path, "--target", "64").complaint
    option = shlex.split(re.search(r"e\.g\. (--\S+ \S+);", complaint)[1])
    assert option == ["--time", "beta"]
    assert "8.20 s" in run("rank", path, "--target", "16", *option).out


def test_parts_without_a_unit_are_seconds_and_a_note_says_so(write, run):
    path = write("p,solve,exchange,io", lambda p, t: (p, t, 0.5 * p + 0.25, 1.5))
    done = run("rank", path, "--target", "16")
    assert "CPM160" in done.err
    assert "solve, exchange, io" in done.err
    assert "17.9 s at p = 16" in done.out
    done = run("rank", path, "--target", "16", "--unit", "time_total=ms")
    assert "CPM160" not in done.err
    assert "17.9 ms at p = 16" in done.out


def test_whole_numbers_without_a_unit_are_no_times(write, run):
    path = write("p,solve,exchange", lambda p, t: (p, round(t), p))
    run("rank", path, "--target", "16").fails(3, "no column is called a time")


def test_a_rest_of_the_run_time_that_rounding_explains_is_no_call_path(tmp_path, run):
    path = tmp_path / "runs.csv"
    path.write_text(
        "ranks,rep,total,solve,exchange,io\n8,1,10.24,7.01,2.02,1.21\n8,2,10.30,7.05,2.03,1.20\n"
        "16,1,11.28,7.03,3.01,1.22\n16,2,11.25,7.02,3.02,1.21\n32,1,13.36,7.06,5.05,1.24\n"
        "32,2,13.27,7.02,5.00,1.25\n64,1,17.32,7.04,9.03,1.25\n"
    )
    answer = json.loads(run("rank", path, "--target", "128", "-f", "json").out)
    rows = {row["callpath"] for row in answer["rows"]}
    assert rows == {"<root>/solve", "<root>/exchange", "<root>/io"}
    total = answer["total"]
    assert 23 < total["low"] < total["high"] < 28
