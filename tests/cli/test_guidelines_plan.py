"""The command `cpmodel guidelines plan`: files of a campaign, and what they measure."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import benchmark_output as bench
from cells import cells
from cpmodel_guidelines.suites.files import benchmark_files
from cpmodel_guidelines.suites.pgmpi import configured_processes, read_catalogue

BASH = shutil.which("bash")
MACHINE = ("--budget", "1h", "--nodes", "1,2", "--processes-per-node", "4")

FAKE_REPROMPI = f"""#!{sys.executable}
import sys
path = next(each for each in sys.argv if each.startswith("--input-file=")).partition("=")[2]
print("#@datatype_size_bytes=1\\n#@nprocs=8\\ntest nrep count runtime_sec")
import os
seed = sum(map(len, os.listdir("raw_data"))) % 7
for row in open(path):
    name, size, count = row.split()
    slow = 3.0 if name == "MPI_Scan" else 1.0
    for k in range(min(int(count), 3)):
        print(name, k, size, 1e-5 * slow * (1 + 0.01 * ((seed * 3 + k + len(name)) % 5)))
"""
FAKE_OSU = f"""#!{sys.executable}
import sys
words = sys.argv[1:]
name = sys.argv[0].rpartition("_")[2].capitalize()
title = {{"Bcast": "Broadcast", "Alltoall": "All-to-All Personalized Exchange"}}.get(name, name)
print(f"# OSU MPI {{title}} Latency Test v7.3\\n# Datatype: MPI_CHAR.")
if "-m" not in words:
    print("# Avg Latency(us)\\n             3.00")
else:
    low, high = map(int, words[words.index("-m") + 1].split(":"))
    print("# Size       Avg Latency(us)")
    while low <= high:
        print(low, 5.0 + low * 1e-3)
        low *= 2
"""


def plan(run, folder, *words, machine=MACHINE):
    done = run("guidelines", "plan", "-o", folder, *machine, *words)
    assert done.status == 0, done.err
    return done.out, json.loads((folder / "plan.json").read_text())["plans"]


def input_of(folder, p=8):
    rows = (folder / f"p{p}" / "reprompi" / "input.txt").read_text().splitlines()
    found = [re.fullmatch(r"(\w+) (\d+) (\d+)", row) for row in rows]
    assert all(found)
    return {(row[1], int(row[2])): int(row[3]) for row in found}


def program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def execute(script, **environment):
    folder = script.parent
    done = subprocess.run(
        [BASH, str(script)], capture_output=True, check=False, cwd="/",
        env={"PATH": os.environ["PATH"], "SLURM_SUBMIT_DIR": str(folder), **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()


def test_a_plan_has_the_files_of_each_suite_and_scale(run, tmp_path):
    out, plans = plan(run, tmp_path / "plan")
    homes = [tmp_path / "plan" / f"p{p}" for p in (4, 8)]
    assert all(
        (home / suite / "job.sh").is_file() for home in homes for suite in ("reprompi", "osu")
    )
    jobs = input_of(tmp_path / "plan")
    assert {"MPI_Bcast", "GL_Scan_as_ExscanReducelocal", "GL_Bcast_as_ScatterAllgather"} <= {
        name for name, _ in jobs
    }
    assert jobs["MPI_Barrier", 1] == 50
    assert ("MPI_Barrier", 8) not in jobs
    assert [each["suite"] for each in plans] == ["ReproMPI", "OSU"]
    for words in ("node hours", "at one size with a probability of", "Assumed: latency 2.00",
                  "sbatch job.sh", "Gather <= Gatherv: ReproMPI lacks Gatherv"):  # fmt: skip
        assert words in out
    assert (tmp_path / "plan" / "plan.txt").read_text() in out
    # Nothing in the folder is taken for a result.
    assert benchmark_files([str(tmp_path / "plan")]) is None


def test_node_hours_are_times_of_nodes(run, tmp_path):
    _, plans = plan(run, tmp_path / "plan")
    for each in plans:
        for job in each["jobs"]:
            assert job["node_hours"] == pytest.approx(job["seconds"] * job["nodes"] / 3600)
        assert sum(job["seconds"] for job in each["jobs"]) <= 0.8 * 3600
        assert sum(job["limit"] for job in each["jobs"]) <= 3600


def test_lists_and_configurations_are_read_by_our_own_readers(run, tmp_path):
    _, (of_reprompi, _) = plan(run, tmp_path / "plan")
    config = tmp_path / "plan" / "p8" / "reprompi" / "config"
    assert configured_processes(config / "guideline_conf.json") == 8
    told = json.loads((config / "guideline_conf.json").read_text())
    assert (told["nodes"], told["nnp"], told["nmpiruns"]) == (2, 4, of_reprompi["mpiruns"])
    assert told["prediction"]["methods"] == ["rse"]
    entries = read_catalogue(config / "guideline_catalog.json")
    mock_ups = {each.mock_up for each in entries} - {""}
    rows = (tmp_path / "plan" / "mock_ups.txt").read_text().splitlines()[1:]
    assert mock_ups == {row.split()[2] for row in rows}
    assert len(mock_ups) == 17
    assert all(each.sizes == tuple(of_reprompi["sizes"]) for each in entries)
    folder = bench.write(tmp_path, "reprompi", bench.flawless)
    rule = ("--rule", config / "guideline_catalog.json")
    assert run("guidelines", folder, *rule, "-f", "csv").status == 0
    # The same list makes the same plan.
    plan(run, tmp_path / "again", *rule)
    assert input_of(tmp_path / "again") == input_of(tmp_path / "plan")


@pytest.mark.skipif(BASH is None, reason="bash is absent")
def test_scripts_measure_what_the_check_reads(run, tmp_path):
    folder = tmp_path / "a plan; $(touch bad) 'x'"
    binary = program(tmp_path / "mpi bench'$(touch bad)mark", FAKE_REPROMPI)
    osu = tmp_path / "osu programs' $x"
    osu.mkdir()
    words = ("--reprompi", binary, "--osu", osu, "--launcher", "env", "--find", "30%")
    _, plans = plan(run, folder, *words)
    for name in plans[1]["functions"]:
        program(osu / name, FAKE_OSU)
    home = folder / "p8"
    for suite in ("reprompi", "osu"):
        script = home / suite / "job.sh"
        assert subprocess.run([BASH, "-n", str(script)], check=False).returncode == 0
        execute(script)
    files = sorted((home / "reprompi" / "raw_data").iterdir())
    assert len(files) == plans[0]["mpiruns"]
    assert len([*(home / "osu" / "raw_data").iterdir()]) == plans[1]["mpiruns"] * 13
    done = run("guidelines", home / "reprompi", "-f", "csv", "-n", "all")
    rows = [*csv.DictReader(io.StringIO(done.out))]
    checked = {row["guideline"] for row in rows if row["kind"] == "pattern"}
    assert {each["guideline"] for each in plans[0]["guidelines"]} <= checked
    assert {row["guideline"] for row in rows if row["guideline_verdict"] == "violated"
            and row["kind"] == "pattern"} == {"Scan <= Exscan + Reduce_local"}  # fmt: skip
    done = run("guidelines", home / "osu", "-f", "csv", "-n", "all")
    of_osu = {row["guideline"] for row in csv.DictReader(io.StringIO(done.out))}
    assert {"Allreduce <= Reduce + Bcast", "Gather <= Gatherv"} <= of_osu
    assert not [*tmp_path.rglob("bad")]
    # A job that is submitted again measures what is missing only.
    files[3].unlink()
    before = files[0].stat().st_mtime_ns
    execute(home / "reprompi" / "job.sh")
    assert files[3].is_file()
    assert files[0].stat().st_mtime_ns == before


def test_a_pilot_replaces_assumptions(run, tmp_path):
    folder = bench.write(tmp_path, "reprompi", bench.flawless, mpiruns=10)
    out, (of_reprompi, _) = plan(run, tmp_path / "plan", "--pilot", folder)
    assert of_reprompi["assumptions"] is None
    assert "Times by the pilot reprompi.p4" in out
    note = json.loads(run("guidelines", folder, "-f", "json").out)["power"]
    told = re.search(r"violation by (\d+) %", note)
    assert told is not None
    noise = of_reprompi["power"]["noise"]
    assert noise == pytest.approx(0.02 * 2**0.5, rel=0.2)


def test_the_check_and_the_plan_name_the_same_number_of_mpiruns(run, tmp_path):
    folder = bench.write(tmp_path, "reprompi", bench.flawless, mpiruns=6, noise=0.08)
    note = json.loads(run("guidelines", folder, "-f", "json").out)["power"]
    wanted = int(re.search(r"(\d+) mpiruns would find 10 %", note)[1])
    sizes = ",".join(map(str, bench.SIZES))
    words = ("--pilot", folder, "--sizes", sizes, "--startup", "1s")
    machine = ("--budget", "10h", "--nodes", "1", "--processes-per-node", "4")
    _, (of_reprompi, _) = plan(run, tmp_path / "plan", *words, machine=machine)
    # The plan has more checks than the pilot, which matters little.
    assert wanted <= of_reprompi["mpiruns"] <= wanted * 1.1 + 1


def test_a_smaller_budget_has_less_mpiruns_or_sizes_and_says_so(run, tmp_path):
    found = []
    for k, budget in enumerate(("5h", "10min", "8min")):
        machine = ("--budget", budget, "--nodes", "4", "--processes-per-node", "16")
        words = ("--startup", "2s", "--sizes", "8,1024,65536,1000000,4000000,8000000")
        out, plans = plan(run, tmp_path / f"plan{k}", *words, machine=machine)
        found.append((plans[0]["mpiruns"], len(plans[0]["sizes"])))
        assert ("6 message sizes in bytes: " in out) == (len(plans[0]["sizes"]) < 6)
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_a_budget_that_is_too_small_is_an_error(run, tmp_path):
    machine = ("--budget", "5s", "--nodes", "1", "--processes-per-node", "4")
    done = run("guidelines", "plan", "-o", tmp_path / "plan", *machine)
    done.fails(2, "the budget is too small: 5 mpiruns")
    assert not [*tmp_path.iterdir()]


def test_guidelines_of_the_user_are_planned(run, tmp_path):
    words = ("--rule", "Send_Recv <= Isend_Irecv", "--rule", "Bcast <= Allreduce",
             "--rule", "Bcast <= Other")  # fmt: skip
    out, _ = plan(run, tmp_path / "plan", *words)
    names = {name for name, _ in input_of(tmp_path / "plan")}
    assert {"Send_Recv", "Isend_Irecv", "MPI_Allreduce"} <= names
    assert "Bcast <= Other: ReproMPI lacks Other" in out


def test_a_plan_is_replaced_only_on_request_and_never_with_results(run, tmp_path):
    folder = tmp_path / "plan"
    plan(run, folder)
    again = ("guidelines", "plan", "-o", folder, *MACHINE)
    run(*again).fails(6, "exists")
    assert run(*again, "--force").status == 0
    results = folder / "p4" / "reprompi" / "raw_data"
    results.mkdir()
    (results / "mpi_bench_r0.dat").write_text("#@nprocs=4\n")
    run(*again, "--force").fails(6, "something else is in the way")
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    run("guidelines", "plan", "-o", other, *MACHINE, "--force").fails(6, "in the way")


@cells(
    ("words", "said"),
    [
        (("--budget", "much"), "--budget"),
        (("--budget", "10GB"), "is not a time"),
        (("--budget", "0s"), "not above zero"),
        (("--nodes", "0"), "out of range"),
        (("--nodes", "a"), "not a list of numbers"),
        (("--sizes", "8,,9"), "not a list of numbers"),
        (("--bandwidth", "10GB"), "is not a bandwidth"),
        (("--latency", "-1us"), "--latency"),
        (("--nrep", "0"), "out of range"),
        (("--nrep", "rsx=1"), "unknown criterion"),
        (("--slurm", "--partition=a\nrm -rf x"), "not an option of Slurm"),
        (("--slurm", "rm"), "not an option of Slurm"),
        (("--launcher", "'"), "--launcher"),
        (("--reprompi", "a\x1b[31m"), "control characters"),
        (("--rule", "Bcast <="), "--rule"),
    ],
)
def test_impossible_options_are_one_line_with_a_hint(run, tmp_path, words, said):
    done = run("guidelines", "plan", "-o", tmp_path / "plan", *MACHINE, *words)
    done.fails(2, said)
    assert not [*tmp_path.iterdir()]


def test_a_plan_needs_a_folder_a_budget_and_a_machine(run, tmp_path):
    run("guidelines", "plan", *MACHINE).fails(2, "give a folder with -o DIR")
    run("guidelines", "plan", "-o", tmp_path / "x").fails(2, "needs a budget and a machine")


def test_a_pilot_has_to_be_the_output_of_a_benchmark(run, tmp_path, samples):
    words = ("-o", tmp_path / "plan", *MACHINE, "--pilot", samples / "lulesh")
    run("guidelines", "plan", *words).fails(2, "not the output of a benchmark")


def test_blocks_that_are_too_large_for_mpi_are_left_out(run, tmp_path):
    out, plans = plan(run, tmp_path / "plan", "--sizes", "8,64,512,1024,1000000000")
    assert max(plans[0]["sizes"]) == 1024
    assert "1 size whose blocks together exceed 2 GiB" in out


def test_mock_ups_of_a_list_that_the_benchmark_lacks_are_named(run, tmp_path):
    path = tmp_path / "list.json"
    path.write_text('[{"orig": "MPI_Bcast", "mock": "MPI_Bcast_with_MPI_Allgatherv"}]')
    out, _ = plan(run, tmp_path / "plan", "--rule", path)
    assert "Your ReproMPI needs GL_Bcast_as_Allgatherv" in out
    assert ("GL_Bcast_as_Allgatherv", 8) in input_of(tmp_path / "plan")
