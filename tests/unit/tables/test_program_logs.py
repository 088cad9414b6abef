"""Logs of programs: each value, the runs that count, and a scale that was held out."""

from __future__ import annotations

import json

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.readers.base import Match
from callpath_modeler.studies import loading
from cpmodel_tables import LogReader, TableReader, WorkflowReader
from program_logs import PROGRAMS

SCALES = (1, 2, 4, 8, 16)
HELD_OUT = 32
OF_THREADS = {"STREAM", "Google Benchmark", "LIKWID"}


@pytest.fixture(params=PROGRAMS)
def name(request):
    return request.param


@pytest.fixture
def series(tmp_path):
    """Return the function that writes the logs of a program at several scales."""

    def write(program, scales=SCALES):
        paths = []
        for p in scales:
            is_told = program not in (PROGRAMS["Caliper"], PROGRAMS["Kokkos"])
            folder = f"run{'abcdef'[len(paths)]}" if is_told else f"p{p}"
            path = tmp_path / folder / program.file
            path.parent.mkdir()
            path.write_text(program.log(p))
            paths.append(path)
        return paths

    return write


def loaded(paths):
    return loading.load(paths, loading.LoadOptions(loading.ReadOptions(metrics=None)))


def test_a_series_has_the_times_of_its_logs(name, series):
    program = PROGRAMS[name]
    experiment = loaded(series(program))
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    main = "threads" if name in OF_THREADS else "p"
    assert sorted({run.parameters[main] for run in experiment.runs}) == [*SCALES]
    values = experiment.values("time")
    for k, run in enumerate(experiment.runs):
        times = program.times(int(run.parameters[main]))
        for part, path in zip(program.parts, program.paths, strict=True):
            near = pytest.approx(times[part], rel=2e-3, abs=program.unit)
            assert values[paths.index(path), k] == near, (path, run)


def test_the_whole_is_the_sum_of_the_parts(name, series):
    program = PROGRAMS[name]
    experiment = loaded(series(program))
    whole = {"mpiP": 1.5}.get(name, 1.0)
    for k, run in enumerate(experiment.runs):
        scale = int(run.parameters["threads" if name in OF_THREADS else "p"])
        times = program.times(scale)
        total = whole * times.get("", sum(times.values()))
        near = pytest.approx(total, rel=3e-3, abs=10 * program.unit)
        assert np.nansum(experiment.values("time")[:, k]) == near


def test_a_held_out_scale_is_in_its_band(name, series):
    program = PROGRAMS[name]
    ranking = cpm.rank(cpm.fit(loaded(series(program))), HELD_OUT)
    times = program.times(HELD_OUT)
    paths = [ranking.tree.path(row) for row in range(len(ranking.tree))]
    for part, path in zip(program.parts, program.paths, strict=True):
        row = paths.index(path)
        rounding = program.unit + 2e-3 * times[part]
        assert ranking.low[row] - rounding <= times[part] <= ranking.high[row] + rounding, path


def test_no_other_reader_takes_a_log(name, series):
    (path,) = series(PROGRAMS[name], (4,))
    assert LogReader().match(path) is Match.CONTENT
    assert WorkflowReader().match(path) is not Match.CONTENT


def test_a_table_of_times_is_no_log(tmp_path):
    path = tmp_path / "times.txt"
    path.write_text("p time\n1 4\n2 2\n4 1\n")
    assert LogReader().match(path) is Match.NO
    assert TableReader().match(path) is Match.CONTENT


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("LAMMPS", "Total wall time", "ERROR: Lost atoms"),
        ("GROMACS", "Finished mdrun", "Received the TERM signal"),
        ("OpenFOAM", "\nEnd\n\nFinalising parallel run", "\n--> FOAM FATAL ERROR"),
        ("NPB", "= SUCCESSFUL", "= UNSUCCESSFUL"),
        ("HPL", "PASSED", "FAILED"),
        ("HPCG", "is VALID", "is INVALID"),
        ("STREAM", "Solution Validates", "Failed Validation"),
        ("sacct", "COMPLETED", "TIMEOUT"),
        ("hyperfine", "0,\n", "1,\n"),
    ],
)
def test_a_run_that_failed_has_no_time(name, old, new, series):
    program = PROGRAMS[name]
    (path,) = series(program, (4,))
    text = " ".join(path.read_text().split(" ")).replace("=               SUCC", "= SUCC")
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=r"failed|is a number"):
        loaded([path])


def test_a_failed_run_beside_others_is_a_finding(series):
    paths = series(PROGRAMS["OpenFOAM"])
    paths[2].write_text(paths[2].read_text().replace("End", "").replace("Finalising", ""))
    with pytest.raises(InputError, match="failed"):
        loaded(paths[2:3])
    experiment = loaded(series_of_hpl(paths[0].parent / "HPL.out"))
    assert [run.parameters["n"] for run in experiment.runs] == [500, 800]
    assert any(finding.code == "CPM166" for finding in experiment.findings)


def series_of_hpl(path):
    rows = "".join(
        f"WR11C2R4 {n:>8} 80 1 2 {time:>9.2f} 1e+01\n{'-' * 80}\n||Ax-b||= 0.005 ...... {word}\n"
        for n, time, word in ((500, 1.0, "PASSED"), (800, 3.0, "PASSED"), (900, 9.0, "FAILED"))
    )
    path.write_text(f"HPLinpack 2.3  --  High-Performance Linpack benchmark\n{rows}")
    return [path]


def test_equal_runs_of_a_log_are_repetitions(tmp_path):
    path = tmp_path / "HPL.out"
    rows = "".join(f"WR11C2R4 500 80 2 2 {time} 1e+01\n" for time in (1.0, 1.5, 2.0))
    path.write_text(f"HPLinpack 2.3  --  High-Performance Linpack benchmark\n{rows}")
    experiment = loaded([path])
    assert [run.repetition for run in experiment.runs] == [1, 2, 3]
    assert experiment.values("time").tolist() == [[1.0, 1.5, 2.0]]
    assert {run.parameters["p"] for run in experiment.runs} == {4}


def test_several_runs_of_lammps_are_phases(tmp_path):
    program = PROGRAMS["LAMMPS"]
    text = program.log(4)
    start, end = text.index("Loop time"), text.index("Total wall time")
    path = tmp_path / "log.lammps"
    path.write_text(text[:end] + text[start:])
    experiment = loaded([path])
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    assert "LAMMPS/run 1/Pair" in paths
    assert "LAMMPS/run 2/Pair" in paths
    whole = 2 * program.times(4)[""]
    assert np.nansum(experiment.values("time")) == pytest.approx(whole, rel=1e-3)


def test_logs_that_were_appended_are_runs(tmp_path):
    program = PROGRAMS["LAMMPS"]
    path = tmp_path / "log.lammps"
    failed = program.log(4).partition("Loop time")[0]
    path.write_text(program.log(4) + failed + program.log(4))
    experiment = loaded([path])
    assert [run.repetition for run in experiment.runs] == [1, 2]
    assert [each.message for each in experiment.findings] == ["1 of 3 runs failed"]


def test_numbers_that_differ_between_logs_are_parameters(series):
    program = PROGRAMS["LAMMPS"]
    paths = series(program, (4, 4, 4))
    for k, path in enumerate(paths):
        path.write_text(path.read_text().replace("4000 atoms", f"{4000 << k} atoms"))
    experiment = loaded(paths)
    assert [run.parameters["total_atoms"] for run in experiment.runs] == [4000, 8000, 16000]


def test_processes_that_only_do_long_range_forces_are_left_out(series):
    program = PROGRAMS["GROMACS"]
    (path,) = series(program, (4,))
    row = " PME mesh *             1    1        201      99.000         297.000  10.0\n"
    path.write_text(path.read_text().replace(" NB X/F", f"{row} NB X/F"))
    values = loaded([path]).values("time")
    assert np.nanmax(values) < 99


def test_rounded_sums_are_no_cost_of_their_own(series):
    program = PROGRAMS["GROMACS"]
    (path,) = series(program, (7,))
    experiment = loaded([path])
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    times, visits = experiment.values("time")[:, 0], experiment.values("visits")[:, 0]
    assert times[paths.index("GROMACS")] == 0
    assert times[paths.index("GROMACS/PME mesh")] == 0
    assert visits[paths.index("GROMACS/PME mesh")] == 201
    assert not experiment.findings


def test_parts_that_take_more_than_the_whole_are_a_finding(series):
    program = PROGRAMS["LAMMPS"]
    (path,) = series(program, (4,))
    text = path.read_text()
    whole = program.times(4)[""]
    path.write_text(text.replace(f"Loop time of {whole:.6f}", f"Loop time of {whole - 1:.6f}"))
    findings = loaded([path]).findings
    assert [(each.code, each.message) for each in findings] == [("CPM105", "run 1: down to -1")]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_long_line_is_no_value(tmp_path, ending):
    import gzip

    path = tmp_path / f"cg.out{ending}"
    text = PROGRAMS["NPB"].log(4) + " Time in seconds = " + "1" * 300_000 + "\n"
    path.write_bytes(gzip.compress(text.encode()) if ending else text.encode())
    near = pytest.approx(PROGRAMS["NPB"].times(4)[""], rel=1e-3)
    assert loaded([path]).values("time").item() == near


def test_commands_without_parameters_are_programs_of_their_own(tmp_path):
    path = tmp_path / "times.json"
    listed = [{"command": f"./v{k}", "mean": k, "times": [k]} for k in (1, 2)]
    path.write_text(json.dumps({"results": listed}))
    with pytest.raises(UsageError, match=r"2 programs: \./v1 .*\./v2"):
        loaded([path])


def test_parameters_of_hyperfine_are_parameters(tmp_path):
    path = tmp_path / "times.csv"
    rows = "".join(f"sleep 0.0{n},{n},0,{n},0,0,{n},{n},{n}\n" for n in (1, 2, 3))
    path.write_text(f"command,mean,stddev,median,user,system,min,max,parameter_n\n{rows}")
    experiment = loaded([path])
    assert [run.parameters["n"] for run in experiment.runs] == [1, 2, 3]
    assert experiment.values("time").tolist() == [[1, 2, 3]]


def test_csv_of_google_benchmark_is_read_below_what_it_says_of_the_machine(tmp_path):
    path = tmp_path / "bench.csv"
    rows = "".join(f'"BM_sort/{n}",700,{2 * n},{2 * n},us,,,,,\n' for n in (8, 64, 512))
    means = '"BM_sort/8_mean",3,16,16,us,,,,,\n'
    path.write_text(
        "2026-11-29T10:00:00\nRunning ./bench\nRun on (2 X 2400 MHz CPU s)\n"
        "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,items_per_second,label,"
        f"error_occurred,error_message\n{rows}{means}"
    )
    experiment = loaded([path])
    assert [run.parameters["n"] for run in experiment.runs] == [8, 64, 512]
    assert np.nansum(experiment.values("time"), axis=0).tolist() == pytest.approx(
        [16e-6, 128e-6, 1024e-6]
    )


def test_an_account_without_steps_has_the_times_of_jobs(tmp_path):
    path = tmp_path / "jobs.txt"
    rows = "".join(f"{p}|solver|{p}|1-00:00:{p:02}|COMPLETED\n" for p in SCALES)
    path.write_text(
        f"JobID|JobName|AllocCPUS|Elapsed|State\n{rows}9|solver|2|00:01:00|CANCELLED by 1\n"
    )
    experiment = loaded([path])
    assert [run.parameters["p"] for run in experiment.runs] == [*SCALES]
    assert experiment.values("time").tolist() == [[86_400 + p for p in SCALES]]


def test_events_of_likwid_are_sums_over_threads_and_rates_are_left_out(series):
    experiment = loaded(series(PROGRAMS["LIKWID"], (1, 2, 4)))
    units = {column.metric.name: column.metric.unit for column in experiment.columns.values()}
    assert units == {"time": "s", "visits": "1", "INSTR_RETIRED_ANY": "1", "CAS_COUNT_RD": "1",
                     "Memory data volume": "B"}  # fmt: skip
    assert experiment.values("INSTR_RETIRED_ANY").tolist() == [[1000.0] * 3] * 2
    assert experiment.values("visits").tolist() == [[10.0] * 3] * 2
    assert experiment.values("Memory data volume") == pytest.approx(1.5e9)
    left_out = {each.message for each in experiment.findings if each.code == "CPM125"}
    assert left_out == {"CPI, Memory bandwidth [MBytes/s]"}


def test_likwid_without_regions_measures_the_whole_program(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(
        "STRUCT,Info,3,,\nCPU name:,Xeon,,,\nTABLE,Group 1 Raw,CLOCK,1,\n"
        "Event,Counter,HWThread 0,HWThread 4\nINSTR_RETIRED_ANY,FIXC0,10,-\n"
        "TABLE,Group 1 Metric,CLOCK,2,\nMetric,HWThread 0,HWThread 4,\n"
        "Runtime (RDTSC) [s],1.5,1.25,\nCPI,nan,inf,\n"
    )
    experiment = loaded([path])
    (run,) = experiment.runs
    assert [experiment.tree.path(0)] == ["<root>"]
    assert (run.extent.processes, run.extent.threads) == (1, 2)
    assert experiment.values("time").tolist() == [[1.5]]
    assert experiment.values("INSTR_RETIRED_ANY").tolist() == [[10.0]]


def test_output_of_the_program_may_stand_above_that_of_likwid(series):
    (path,) = series(PROGRAMS["LIKWID"], (4,))
    alone = loaded([path]).values("time").tolist()
    text = path.read_text().replace("STRUCT", "-----\nCPU type:\tXeon\nsolved, 12, 14\nSTRUCT", 1)
    path = path.with_name("slurm.out")
    path.write_text(text)
    assert loaded([path]).values("time").tolist() == alone


def test_likwid_of_several_processes_is_the_mean_over_them(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(
        "TABLE,Region solve,Group 1 Raw,CLOCK,1,\n"
        "Region Info,node1:0:0,node1:0:1,node2:1:0\nRDTSC Runtime [s],1,2,4\n"
        "Event,Counter,node1:0:0,node1:0:1,node2:1:0\nINSTR_RETIRED_ANY,FIXC0,10,20,40\n"
    )
    experiment = loaded([path])
    (run,) = experiment.runs
    assert (run.extent.processes, run.extent.threads) == (2, 2)
    assert experiment.values("time").tolist() == [[3.0]]
    assert experiment.values("INSTR_RETIRED_ANY").tolist() == [[35.0]]
