from __future__ import annotations

import csv
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import benchmark_output
import configured
from cells import cells
from collectives import PROCESSES, by_size, latencies, rows
from tuned_library import campaign, slow_allreduce, with_the_rule

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "guidelines.md").read_text(
    encoding="utf-8"
)
INTERVAL = ("-m", "median", "--interval", "ci_median_left,ci_median_right")


def slow(p, m):
    """Allreduce is slower than its parts; Allgather will be slower than Alltoall."""
    times = by_size(p, m)
    times["Allreduce"] = 1.3 * (times["Reduce"] + times["Bcast"])
    return times | {
        "Gather": 1 + 0.05 * p,
        "Allgather": 2 + 0.1 * p,
        "Alltoall": 10 + 4 * np.log2(p),
    }


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "bench.csv"
    rows(slow, PROCESSES, (8, 64), noise=0.02).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def quiet(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("quiet") / "quiet.csv"
    rows(latencies, noise=0.01).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def mpi_data(shared_data) -> Path:
    return shared_data / "third_party" / "mpi_collectives" / "mpi_data.csv"


def table(outcome):
    assert outcome.status == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


# Measured violations.


def test_two_libraries_are_judged_as_those_who_know_them_would(run, mpi_data):
    found = table(run("guidelines", mpi_data, *INTERVAL, "-f", "csv"))
    verdicts = {(row["group"], row["guideline"], row["at"]): row["verdict"] for row in found}
    broken = {key[:2] for key, verdict in verdicts.items() if verdict == "violated"}
    assert broken == {
        ("IntelMPI", "Allgather <= Alltoall"),
        ("IntelMPI", "Allreduce <= Reduce + Bcast"),
        ("OpenMPI", "Allreduce <= Reduce + Bcast"),
    }
    # Intel's algorithm for large numbers of processes begins between 128 and 256.
    at = [verdicts["IntelMPI", "Allgather <= Alltoall", f"p={p}"] for p in (32, 64, 128, 256, 512)]
    assert at == ["holds"] * 3 + ["violated"] * 2
    key = {"group": "IntelMPI", "guideline": "Allgather <= Alltoall", "at": "p=512"}
    (worst,) = [row for row in found if row.items() >= key.items()]
    assert float(worst["factor"]) == pytest.approx(12627.9019 / 3107.73955)
    assert float(worst["low"]) < float(worst["factor"]) < float(worst["high"]) < 4.1


def test_without_any_noise_known_large_violations_alone_are_told(run, mpi_data):
    found = table(run("guidelines", mpi_data.with_suffix(".jsonl"), "-f", "csv"))
    broken = {(r["group"], r["guideline"]) for r in found if r["verdict"] == "violated"}
    assert ("IntelMPI", "Allgather <= Alltoall") in broken
    assert all("processes" not in guideline for _, guideline in broken)


def test_at_a_target_what_will_be_violated_is_told_with_its_place(run, bench):
    done = run("guidelines", bench, "--target", "4096")
    first = done.out.splitlines()[0]
    said = re.search(
        r"1 of these guidelines holds as measured: Allgather ≤ Alltoall, until about p = (\d+)",
        first,
    )
    assert said, first
    assert 350 < int(said[1]) < 530
    found = json.loads(run("guidelines", bench, "--target", "4096", "-f", "json").out)
    ahead = [r for r in found["rows"] if r["basis"] == "predicted"
             and r["guideline"] == "Allgather <= Alltoall"]  # fmt: skip
    assert {row["at"] for row in ahead} == {"p=4096,size=8", "p=4096,size=64"}
    assert all(row["verdict"] == "violated" and row["probability"] > 0.95 for row in ahead)
    assert found["at_target"]["violated"] >= 1
    assert (found["target"], found["size"], found["processes"]) == (4096.0, "size", "p")


def test_a_target_that_was_run_is_measured(run, bench):
    out = run("guidelines", bench, "--target", "64").out
    assert "is violated at p = 64" in out.replace("\n", " ") or "are violated at p = 64" in out
    assert "predicted" not in out


# Options and output formats.


def test_a_pipe_gets_all_columns_and_ascii_if_asked(run, bench):
    out = run("--ascii", "guidelines", bench, "--target", "4096").out
    assert out.isascii()
    header = next(line for line in out.splitlines() if line.startswith("verdict"))
    assert header.split() == ["verdict", "slower", "95%", "interval", "at", "settings", "right",
                              "side", "p=4096", "from", "guideline"]  # fmt: skip


def test_rows_are_counted_that_are_not_shown(run, bench):
    out = run("guidelines", bench, "-n", "1").out
    assert re.search(r"^\d+ other guidelines: .*Use -n all to list them\.$", out, re.MULTILINE)
    assert "Not measured: " in out


def test_tolerance_rules_and_selection_are_heeded(run, bench):
    few = run("guidelines", bench, "--tolerance", "50%").out
    assert "is shown to be violated" in few
    own = table(run("guidelines", bench, "--rule", "Bcast <= Allreduce", "-f", "csv"))
    assert {r["verdict"] for r in own if r["guideline"] == "Bcast <= Allreduce"} == {"holds"}
    some = table(run("guidelines", bench, "--select", "MPI_*reduce", "-f", "csv"))
    assert {row["function"] for row in some} == {"Allreduce"}


def test_rules_may_stand_in_the_configuration(run, bench, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    configured.trust(bench.parent)
    config = bench.parent / "cpmodel.toml"
    config.write_text('[defaults]\nrule = ["Bcast <= Allreduce"]\ntolerance = "50%"\n'
                      'fail_on = ["worse>5%"]\n')  # fmt: skip
    try:
        out = run("guidelines", bench, "-n", "all").out
    finally:
        config.unlink()
    assert "Bcast ≤ Allreduce" in out
    assert "is shown to be violated" in out


def test_a_program_shows_what_could_be_gained(run, bench, samples):
    done = run("guidelines", bench, "--application", samples / "lulesh", "-f", "json")
    found = json.loads(done.out)
    spent = found["application"]["collectives"]["Allreduce"]
    row = next(r for r in found["rows"] if r["verdict"] == "violated")
    assert row["gain_at_most"] == pytest.approx(spent * (1 - 1 / row["factor"]))
    assert found["application"]["at"] == {"p": 125.0}
    text = run("guidelines", bench, "--application", samples / "lulesh").out
    assert "gain up to" in text
    assert "of the run time of lulesh2.0," in text


def test_calls_of_a_program_are_compared_by_call_and_with_a_warning(run, series):
    runs = series(names=("main", "MPI_Reduce", "MPI_Allreduce"))
    done = run("guidelines", runs, "-f", "json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["per_call"] is True
    assert {each["code"] for each in found["findings"]} >= {"CPM301", "CPM302"}
    assert {row["kind"] for row in found["rows"]} == {"pattern"}


def test_the_status_is_1_only_if_asked_for(run, bench, quiet):
    assert run("guidelines", bench).status == 0
    assert run("guidelines", bench, "--fail-on", "violated").status == 1
    assert run("guidelines", quiet, "--fail-on", "violated").status == 0
    future = ("guidelines", bench, "--tolerance", "50%", "--fail-on")
    assert run(*future, "violated", "--target", "4096").status == 0
    assert run(*future, "predicted", "--target", "4096").status == 1


@cells(
    ("words", "status", "said"),
    [
        (("nowhere.csv",), 3, "nowhere.csv"),
        (("--rule", "Gather <= Redcue"), 2, "did you mean 'Reduce'"),
        (("--tolerance", "much"), 2, "'much' is not a quantity"),
        (("--tolerance", "5 s"), 2, "not a percentage"),
        (("--size", "q"), 2, "no parameter 'q'"),
        (("--interval", "a"), 2, "--interval 'a' does not name two metrics"),
        (("--select", "nothing"), 2, "nothing"),
        (("-m", "q"), 2, "no metric 'q'"),
        (("--target", "inf"), 2, "number of processes"),
        (("--at", "size=8"), 2, "does not set the number of processes"),
        (("--at", "p=64,q=8"), 2, "no parameter 'q'"),
        (("--predicted",), 2, "--predicted"),
        (("--fail-on", "predicted"), 2, "--target"),
        (("--columns", "verdict"), 2, "--columns"),
        (("--application", "nowhere"), 3, "nowhere"),
        (("--select", "MPI_Gather", "--where", "p=8,size=8"), 4, "checked with Gather"),
    ],
)
def test_what_is_wrong_is_one_line_with_a_hint(run, bench, words, status, said):
    source = () if words[0] == "nowhere.csv" else (bench,)
    run("guidelines", *source, *words).fails(status, said)


def test_without_collectives_the_status_is_4(run, series):
    run("guidelines", series()).fails(4, "no call path is an MPI collective")


def test_nothing_is_left_half_written(run, bench, tmp_path):
    target = tmp_path / "out.csv"
    assert run("guidelines", bench, "-o", target).status == 0
    before = target.read_bytes()
    run("guidelines", bench, "-o", target).fails(6, "out.csv")
    assert target.read_bytes() == before
    assert run("guidelines", bench, "-o", target, "--force").status == 0


def test_the_help_and_the_list_of_plugins_name_it(run):
    assert re.search(r"guidelines\s+Check MPI performance guidelines", run("--help").out)
    assert "guidelines  " in run("plugins").out


# The how-to page.


def commands():
    shown = "\n".join(re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
    return [line.partition("  #")[0].strip() for line in shown.splitlines()
            if line.startswith("cpmodel ")]  # fmt: skip


def half(name, size, p):
    return slow_allreduce(name, size, p) / 2


@pytest.mark.parametrize("line", commands())
def test_the_commands_of_the_how_to_run(run, bench, samples, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bench.csv").write_bytes(bench.read_bytes())
    (tmp_path / "runs").symlink_to(samples / "lulesh")
    if "tune" in line:
        laws = {"before": slow_allreduce, "after": with_the_rule, "alg3": half, "alg4": half}
        for name, law in laws.items():
            campaign(tmp_path / name, law, seed=len(name))
    elif " diff " in line:
        for name, law in (("old", benchmark_output.flawless), ("new", benchmark_output.planted)):
            folder = benchmark_output.write(tmp_path / name, "reprompi", law)
            for other in {"old": ("before", "openmpi-4.1"), "new": ("after", "openmpi-5.0")}[name]:
                (tmp_path / other).symlink_to(folder)
    done = run(*shlex.split(line)[1:])
    assert done.status == (1 if "--fail-on" in line else 0), done.err


def test_files_of_osu_benchmarks_are_read_as_they_are(run, tmp_path):
    for name, factor in (("allreduce", 3.0), ("reduce", 1.0), ("bcast", 1.0), ("barrier", 0.5)):
        for p in (4, 8, 16):
            for number in range(5):
                time = factor * p * (1 + 0.01 * number)
                lines = [f"{size:<10d}{time + size / 100:18.2f}" for size in (4, 8)]
                body = [f"{time:18.2f}"] if name == "barrier" else lines
                columns = "# Avg Latency(us)" if name == "barrier" else "# Size  Avg Latency(us)"
                title = f"# OSU MPI {name.capitalize()} Latency Test v7.4"
                text = "\n".join([title, "# Datatype: MPI_CHAR.", columns, *body, ""])
                (tmp_path / f"osu_{name}.p{p}.r{number}.txt").write_text(text)
    done = run("guidelines", tmp_path, "-f", "csv")
    verdicts = {(row["guideline"], row["at"]): row["verdict"] for row in table(done)}
    assert verdicts["Allreduce <= Reduce + Bcast", "p=8,size=4"] == "violated"
    assert verdicts["Barrier(0) <= Allreduce(0)", "p=8,size=0"] == "holds"


def test_what_was_measured_once_at_one_scale_cannot_be_decided(run, tmp_path):
    path = tmp_path / "once.csv"
    rows(by_size, (16,), (8, 64), repetitions=1).to_csv(path, index=False)
    out = run("guidelines", path).out
    assert out.startswith("None of ")
    assert "noise unknown" in out


def test_the_table_on_the_page_is_read(run, tmp_path):
    (head,) = re.findall(r"^```\n(call,p,.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    path = tmp_path / "t.csv"
    path.write_text(head)
    titles = head.splitlines()[0].split(",")
    assert titles == ["call", "p", "size", "repetition", "latency_us"]
    assert run("info", path).status == 0
