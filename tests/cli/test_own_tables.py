"""Tables of people: titles, layouts and notations that nobody made for cpmodel."""

from __future__ import annotations

import itertools
import json
import re
import shlex
from pathlib import Path
from random import Random

import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.studies import loading, pipeline
from cells import cells

PROCESSES = (
    "p", "np", "n", "ranks", "nranks", "procs", "nprocs", "processes", "Number of processes",
    "numproc", "nb_procs", "ntasks", "tasks", "comm_size", "PEs", "MPI", "MPI ranks", "workers",
    "nworkers", "cores", "#cores", "Number of cores", "CPUs", "nodes", "Number of nodes", "nnodes",
    "GPUs", "num_gpus", "threads", "num_threads", "OMP_NUM_THREADS", "world size", "MPI size",
    "MPI processes", "MPI tasks", "# of processes", "# procs", "No. of ranks", "Processes [#]",
    "processors", "Prozesse", "Anzahl Kerne", "Knoten", "nombre de processus", "npes",
    "total cores", "total ranks", "p (ranks)", "nGPUs", "devices", "hosts", "numRanks",
    "mpi_world_size", "x",
)  # fmt: skip
"""Titles of the number of processes, or of other workers."""
KINDS = {
    "cores": ("cores", "#cores", "Number of cores", "CPUs", "total cores", "Anzahl Kerne"),
    "nodes": ("nodes", "Number of nodes", "nnodes", "Knoten", "hosts"),
    "gpus": ("GPUs", "num_gpus", "nGPUs", "devices"),
    "threads": ("threads", "num_threads", "OMP_NUM_THREADS", "workers", "nworkers"),
}
"""Titles of workers that are no processes. They keep their kind."""
TIMES = (100.0, 51.0, 26.3, 14.1, 8.2)
SCALES = (1, 2, 4, 8, 16)


def answer(run, path, *options):
    return json.loads(run("rank", path, "--target", "64", "-f", "json", *options).out)


def scaling_table(title, time="time (s)"):
    rows = [f"{p},{t}" for p, t in zip(SCALES, TIMES, strict=True)]
    return "\n".join([f"{title},{time}", *rows]) + "\n"


@cells("title", PROCESSES)
def test_every_title_of_the_number_of_processes_is_read_in_any_case(write, title):
    kind = next((kind for kind, titles in KINDS.items() if title in titles), "p")
    for spelled in (title, title.upper(), title.lower(), title.capitalize(), f" {title} "):
        experiment = loading.load(write(scaling_table(spelled)))
        (parameter,) = experiment.parameters
        assert parameter.values == SCALES, spelled
        assert (parameter.name == "p") is (kind == "p"), spelled
        assert experiment.scaling == "strong", spelled
        assert experiment.values(experiment.metric().name).tolist() == [[*TIMES]]


COSTS = (
    "time", "Time", "time (s)", "time [s]", "Time(s)", "wall", "walltime", "Wall time (s)",
    "wall_clock_time", "elapsed", "Elapsed time", "elapsed_sec", "runtime", "Run time", "duration",
    "Duration (s)", "total", "Total time", "total_time", "real", "seconds", "sec", "t (s)",
    "Execution time", "Laufzeit", "Zeit [s]", "temps", "time to solution", "makespan",
)  # fmt: skip
RATES = (
    "speedup", "Speed-up", "efficiency", "Efficiency (%)", "throughput", "GFLOP/s", "gflops",
    "ns/day", "MCUPS", "cells per second", "bandwidth [MB/s]", "steps/s", "zone-cycles/cpu_second",
    "throughput_mcells_s", "Performance",
)  # fmt: skip


@cells("title", COSTS)
def test_every_title_of_a_time_is_the_run_time(write, title):
    experiment = loading.load(write(scaling_table("ranks", title)))
    metric = experiment.metric()
    assert (metric.unit, metric.additive) == ("s", True)
    assert experiment.values(metric.name).tolist() == [[*TIMES]]


@cells("title", RATES)
def test_no_rate_is_a_cost_beside_a_time(write, title):
    lines = [f"{p},{p * 0.9},{t}" for p, t in zip(SCALES, TIMES, strict=True)]
    experiment = loading.load(write("\n".join([f"ranks,{title},elapsed", *lines]) + "\n"))
    assert experiment.metric().name == "elapsed"
    read = loading.ReadOptions(metrics=None)
    everything = loading.load(write("\n".join([f"ranks,{title},elapsed", *lines]) + "\n"),
                              loading.LoadOptions(read))  # fmt: skip
    (other,) = [c.metric for name, c in everything.columns.items() if name != "elapsed"]
    assert other.unit != "s"
    assert not other.additive


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("s", 1),
        ("ms", 1e-3),
        ("ms.", 1e-3),
        ("us", 1e-6),
        ("min", 60),
        ("h", 3600),
        ("hours", 3600),
    ],
)
def test_units_in_titles_are_converted(write, unit, factor):
    experiment = loading.load(write(scaling_table("ranks", f"Time ({unit})")))
    assert experiment.values("Time")[0] == pytest.approx([t * factor for t in TIMES])


def test_conditions_of_several_options_must_all_hold(write, run):
    rows = [
        f"{solver},{machine},{p},{t * k}"
        for p, t in zip(SCALES, TIMES, strict=True)
        for k, (solver, machine) in enumerate(itertools.product(("cg", "gmres"), "ab"), 1)
    ]
    path = write("\n".join(["solver,machine,p,time", *rows]) + "\n")
    refused = run("views", path, "--target", "64")
    refused.fails(2, "2 cases of 'solver': cg, gmres; 2 cases of 'machine': a, b")
    assert "with --case cg/a, or compare all with `cpmodel rank`" in refused.complaint
    asked = ("rank", path, "--target", "64")
    one = run(*asked, "--where", "solver=cg,machine=a").out
    several = run(*asked, "--where", "solver=cg", "--where", "machine=a").out
    assert several == one
    assert "5 points, 5 runs" in one
    assert "--where solver=cg,machine=a" in one
    chosen = run("views", path, "--target", "64", "--where", "solver=cg")
    chosen.fails(2, "choose one by adding --case a")
    grouped = run(*asked, "--where", "machine=a", "--group-by", "solver").out
    assert grouped.count("5 points, 5 runs") == 2


def test_a_word_that_another_one_implies_is_not_asked_for(write, run):
    rows = [
        f"{solver},{library},{p},{t}"
        for p, t in zip(SCALES, TIMES, strict=True)
        for solver, library in (("cg", "x"), ("gmres", "y"))
    ]
    path = write("\n".join(["solver,library,p,time", *rows]) + "\n")
    complaint = run("views", path, "--target", "64").complaint
    assert "choose one with --case cg, or" in complaint
    assert "5 points, 5 runs" in run("rank", path, "--target", "64", "--where", "library=y").out


def test_cases_are_refused_with_an_option_that_works(write, run):
    rows = [f"a=1*;{p};{t}\nb<2, c;{p};{2 * t}" for p, t in zip(SCALES, TIMES, strict=True)]
    path = write("\n".join(["matrix, kind;p;time", *rows]) + "\n")
    refused = run("views", path, "--target", "64")
    refused.fails(2, "2 cases of 'matrix kind': a=1*, b<2, c")
    chosen = shlex.split(refused.complaint.partition("--case ")[2].partition(", or compare")[0])[0]
    out = run("rank", path, "--target", "64", "--case", chosen).out
    assert "5 points, 5 runs" in out
    assert "100 s" not in run("rank", path, "--target", "2", "--case", "b<2, c").out
    pooled = shlex.split(refused.complaint.partition("add --param ")[2])[0]
    assert "5 points, 10 runs" in run("rank", path, "--target", "64", "--param", pooled).out
    grouped = run("rank", path, "--target", "64", "--group-by", "matrix kind").out
    assert grouped.count("5 points, 5 runs") == 2


def test_sizes_in_words_are_never_added_up(write, run):
    lines = ["Matrix Size,Processes,Time (s)"]
    lines += [f"{k}000x{k}000,{p},{k * t}" for k in (1, 2, 4)
              for p, t in zip(SCALES, TIMES, strict=True)]  # fmt: skip
    path = write("\n".join([*lines, ""]))
    out = run("rank", path, "--target", "16").out
    assert "4000x4000 takes longest of 3 cases: 32.8 s. 1000x1000 is the fastest: 8.20 s." in out
    out = run("rank", path, "--where", "Matrix Size=2000x2000", "--target", "16").out
    assert "16.4 s at p = 16" in out


PARTS = """np,compute (s),communication (s),io (s),total (s)
1,100.0,,1.0,101.0
2,50.0,0.5,1.1,51.6
4,25.1,0.9,-,26.0
8,12.6,1.4,1.2,15.2
16,6.4,2.2,N/A,8.6
32,3.3,3.5,1.3,8.1
"""


def test_parts_beside_a_total_are_its_call_paths(write):
    experiment = loading.load(write(PARTS))
    names = {experiment.tree.path(row): row for row in range(len(experiment.tree))}
    assert [*names] == ["<root>", "<root>/compute", "<root>/communication", "<root>/io"]
    column = experiment.columns[experiment.metric().name]
    assert column.total == pytest.approx([101, 51.6, 26, 15.2, 8.6, 8.1])
    assert column.exclusive[names["<root>/compute"]].tolist() == [100, 50, 25.1, 12.6, 6.4, 3.3]


def test_the_rest_of_the_total_is_called_other(write):
    lines = [f"{p},{t},{t / 2},{t / 4}" for p, t in zip(SCALES, TIMES, strict=True)]
    experiment = loading.load(write("\n".join(["cores,time[s],comm[s],io time", *lines]) + "\n"))
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    assert paths == ["<root>", "<root>/comm", "<root>/io", "<root>/other"]
    values = experiment.values("time")
    assert values[3] == pytest.approx([t / 4 for t in TIMES])


def test_times_that_exceed_the_total_are_no_parts(write):
    lines = [f"{16 * p},{t},{16 * p * t}" for p, t in zip(SCALES, TIMES, strict=True)]
    path = write("\n".join(["MPI ranks,Wall t (s),Core t (s)", *lines]) + "\n")
    experiment = loading.load(path)
    assert experiment.metric().name == "Wall t"
    assert len(experiment.tree) == 1


LAYOUTS = {
    "commas.csv": "np,time\n{rows:,}",
    "semicolons.csv": "np;time\n{rows:;}",
    "separator.csv": "sep=;\nnp;time\n{rows:;}",
    "tabs.tsv": "np\ttime\n{rows:\t}",
    "spaces.txt": "np    time\n{rows:    }",
    "spaces.csv": '"np","time"\n{rows: }',
    "savetxt.dat": "# Strong scaling, one node\n# np time[s]\n{rows: }",
    "gnuplot.dat": "# np  wall time\n{rows:  }",
    "comment.csv": "# np,time\n{rows:,}",
    "units.csv": "np,time\n,[s]\n{rows:,}",
    "readme.md": "# Scaling\n\nText | more.\n\n| np | time |\n|---:|:---|\n{bars}\n\nThe end.\n",
    "report.log": "np time\n{rows: }",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_run_time(write, name):
    pairs = list(zip(SCALES, TIMES, strict=True))
    text = LAYOUTS[name]
    separator = text.partition("{rows:")[2].partition("}")[0]
    rows = "\n".join(f"{p}{separator}{t}" for p, t in pairs)
    bars = "\n".join(f"| {p} | {t} |" for p, t in pairs)
    text = text.replace(f"{{rows:{separator}}}", rows).replace("{bars}", bars)
    experiment = loading.load(write(text, name))
    assert experiment.points("p").tolist() == [*SCALES]
    assert experiment.values(experiment.metric().name).tolist() == [[*TIMES]]


TWO = "## Strong\n\n{strong}\n\n## Weak\n\n{weak}\n"


def table_in_bars(*titles):
    """Return lines of a table with the scales, the times and ones."""
    rows = [(p, t, 1) for p, t in zip(SCALES, TIMES, strict=True)]
    lines = [titles, ["---"] * len(titles), *(row[: len(titles)] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def test_of_several_tables_in_bars_the_one_with_scales_and_times_is_read(write, run):
    scaling, other = table_in_bars("np", "time"), table_in_bars("version", "lines", "files")
    for strong, weak in ((scaling, other), (other, scaling)):
        path = write(TWO.format(strong=strong, weak=weak), "a.md")
        assert loading.load(path).values("time")[0].tolist() == [*TIMES]
    path = write(TWO.format(strong=scaling, weak=table_in_bars("nodes", "time")), "a.md")
    refused = run("rank", path, "--target", "64")
    refused.fails(3, "2 tables of measurements; the further ones begin at line 13")
    assert "write each table to a file of its own" in refused.complaint


def test_several_tables_below_titles_in_comments_are_refused(write, run):
    rows = "".join(f"{p} {t}\n" for p, t in zip(SCALES, TIMES, strict=True))
    one = f"# strong\n# np time\n{rows}"
    assert loading.load(write(one, "a.dat")).values("time")[0].tolist() == [*TIMES]
    path = write(f"{one}\n\n# weak\n# np time\n{rows}", "a.dat")
    run("rank", path, "--target", "64").fails(3, "2 tables of measurements", "line 11")


CELLS = {
    "thousands": ('"12,345.6"', '"6,310.2"', "980", '"1,001"', "7.5"),
    "decimal commas": ('"12345,6"', '"6310,2"', "980", "1001", '"7,5"'),
    "deviations": ("12345.6 +- 3", "6310.2 ± 1.5", "980+/-1", "1001", "7.5 +- 0.1"),
    "units": ("12345.6 s", "6310.2 s", "980s", "1001 sec", "7500 ms"),
    "clocks": ("3:25:45.6", "1:45:10.2", "16:20", "16:41", "0:07.5"),
    "spans": ("3h25m45.6s", "PT1H45M10.2S", "16m20s", "16m41s", "7.5s"),
    "about": ("~12345.6", "~6310.2", "980", "~1001", "7.5"),
    "apostrophes": ("12'345.6", "6'310.2", "980", "1'001", "7.5"),
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=[*CELLS])
def test_every_notation_of_numbers_is_read(write, cells):
    lines = [f"{p},{cell}" for p, cell in zip(SCALES, cells, strict=True)]
    experiment = loading.load(write("\n".join(["ranks,elapsed", *lines]) + "\n"))
    found = experiment.values("elapsed")[0]
    assert found == pytest.approx([12345.6, 6310.2, 980, 1001, 7.5])


def test_powers_and_prefixes_are_numbers_of_parameters(write):
    text = "p,n,time\n" + "".join(f"2^{k},10k,{t}\n" for k, t in enumerate(TIMES))
    experiment = loading.load(write(text))
    assert experiment.points("p").tolist() == [*SCALES]
    assert experiment.constants["n"] == 10_000


def test_of_events_durations_are_added_and_starts_are_not(write):
    lines = ["Start (ns),Duration (ns),Throughput (MB/s),Name"]
    lines += ["1000000,5000,,saxpy", "2000000,6000,,saxpy", "3000000,2000,12000.0,memcpy"]
    experiment = loading.load(write("\n".join([*lines, ""]), "trace.p4.csv"))
    assert experiment.metric().name == "Duration"
    assert experiment.values("Duration")[:, 0] == pytest.approx([11e-6, 2e-6])
    assert len(experiment.runs) == 1


def test_events_without_durations_are_refused(write, run):
    text = "Name,Event Type,Timestamp (ns)\nf,Enter,533338240\nf,Leave,534705884\n"
    run("rank", write(text)).fails(3, "a list of events", "one row per name")


def test_a_throughput_is_not_called_the_worst(write, run):
    lines = [f"{p},{p * 1e6}" for p in SCALES]
    path = write("\n".join(["ranks,throughput", *lines]) + "\n")
    out = run("rank", path, "--target", "64").out
    assert out.startswith("At p = 64 (4 × the largest run): throughput is 64.0 M")
    assert "worst" not in out


def test_info_says_what_each_column_is_used_for_and_how_to_change_it(write, run):
    rows = [f"{case};{p};{t};{t / 2};{16 * t};{100 / t};7" for case in ("ref", "test")
            for p, t in zip(SCALES, TIMES, strict=True)]  # fmt: skip
    head = "input;#cores;wall time (s);comm (s);CPU time (s);Speedup;Start (ns)"
    path = write("\n".join([head, *rows]) + "\n")
    lines = run("info", path).out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("column "))
    told = [tuple(re.split(r"\s{2,}", line)) for line in lines[first + 1 : first + 8]]
    assert [each[:2] for each in told] == [
        ("input", "case"),
        ("#cores", "scale: cores"),
        ("wall time (s)", "default metric"),
        ("comm (s)", "call path of the run time"),
        ("CPU time (s)", "metric"),
        ("Speedup", "metric"),
        ("Start (ns)", "not used"),
    ]
    options = {each[0]: each[3] for each in told if len(each) > 3}
    one = ("--where", "input=ref")
    assert options["input"].startswith("--case NAME, --group-by input")
    assert "CPU time" in run("rank", path, *one, "--target", "64",
                             *shlex.split(options["CPU time (s)"])).out  # fmt: skip
    assert "Speedup" in run("rank", path, *one, "--target", "64", "-m", "Speedup").out
    assert run("info", path, *one, *shlex.split(options["#cores"])).status == 0


@pytest.mark.parametrize(
    "titles", [("min", "avg", "max"), ("max", "median", "min"), ("speedup", "user time", "time")]
)
def test_info_names_the_metric_of_rank_as_the_default(write, run, titles):
    lines = [
        f"{p},{','.join(str(t + k) for k in range(len(titles)))}"
        for p, t in zip(SCALES, TIMES, strict=True)
    ]
    path = write("\n".join([",".join(["np", *titles]), *lines]) + "\n")
    ranked = json.loads(run("rank", path, "--target", "64", "--format", "json").out)
    told = [re.split(r"\s{2,}", line) for line in run("info", path).out.splitlines()]
    assert [each[0] for each in told if "default metric" in each] == [ranked["metric"]]


def test_info_does_not_call_an_identifier_a_parameter(write, run):
    numbers = (1001, 1005, 1003, 1010, 1004)
    lines = [f"{p},{job},{t}" for p, job, t in zip(SCALES, numbers, TIMES, strict=True)]
    path = write("\n".join(["np,jobid,time", *lines]) + "\n")
    told = [re.split(r"\s{2,}", line) for line in run("info", path).out.splitlines()]
    (row,) = [each for each in told if each[0] == "jobid"]
    assert row[1] == "metadata"
    assert row[-1] == "--param jobid"
    experiment = loading.load(path)
    assert [parameter.name for parameter in experiment.parameters] == ["p"]
    options = loading.ReadOptions(parameter_sources={"jobid": "name"})
    experiment = loading.load(path, loading.LoadOptions(options))
    assert "jobid" in [parameter.name for parameter in experiment.parameters]


@pytest.mark.parametrize(
    ("titles", "name"),
    [(("run1", "run2", "run3"), "time"), (("t_1", "t_2", "t_3"), "time"),
     (("Time 1 [s]", "Time 2 [s]", "Time 3 [s]"), "time"), (("rep 0", "rep 1", "rep 2"), "time")],
)  # fmt: skip
def test_one_column_per_repetition_holds_repetitions(write, titles, name):
    lines = [f"{p},{t},{t + 1},{t + 2}" for p, t in zip(SCALES, TIMES, strict=True)]
    experiment = loading.load(write("\n".join([",".join(["cores", *titles]), *lines]) + "\n"))
    assert [run.repetition for run in experiment.runs] == [1, 2, 3] * 5
    assert experiment.values(name)[0, :3].tolist() == [100, 101, 102]


@pytest.mark.parametrize("titles", ["1,2,4,8,16", "p=1,p=2,p=4,p=8,p=16", "np1,np2,np4,np8,np16"])
def test_one_column_per_scale_holds_times(write, titles):
    rows = [f"{name},{','.join(str(k * t) for t in TIMES)}" for k, name in ((1, "f"), (2, "g"))]
    experiment = loading.load(write("\n".join([f"region,{titles}", *rows]) + "\n"))
    assert experiment.points("p").tolist() == [*SCALES]
    assert experiment.values("time").tolist() == [[*TIMES], [2 * t for t in TIMES]]


def test_points_that_may_separate_thousands_are_refused(write, run):
    path = write("np;time\n1;1.234\n2;1.051\n4;826\n8;600\n")
    run("rank", path, "--target", "64").fails(3, "line 2: time: '1.234' may be 1234 or 1.234")
    assert loading.load(write("np;time\n1;1.234\n2;1.051\n4;0.826\n8;0.6\n"))


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("np;time\n512;12,345\n1,024;6,789\n2,048;3,456\n", [12345, 6789, 3456]),
        ("np;time\n1,024;12,345\n2,048;6,789\n4,096;345\n", [12345, 6789, 345]),
        ("np;time;bytes\n1;12,345;1,234,567\n2;6,789;9\n4;3,456;8\n", [12345, 6789, 3456]),
        ("np;time\n1,024;12,3\n2,048;6,789\n4,096;0,345\n", [12.3, 6.789, 0.345]),
    ],
)
def test_commas_separate_thousands_if_another_number_shows_it(write, text, times):
    experiment = loading.load(write(text), loading.LoadOptions(loading.ReadOptions(metrics=None)))
    assert experiment.values("time")[0].tolist() == times
    assert experiment.points("p")[-1] in {4, 2048, 4096}


@pytest.mark.parametrize(
    "rows",
    [
        "1;12,345;5\n2;6,789;5\n4;924;5\n",
        "1;12,345;0,5\n2;6,789;0,5\n4;3,456;0,5\n",
        "1,024;12,345;0,5\n2,048;6,789;0,5\n4,096;3,456;0,5\n",
        "1,000;12,345;5\n2,000;6,789;5\n4,000;3,456;5\n",
    ],
)
def test_commas_with_two_readings_are_asked_about(write, run, rows):
    refused = run("rank", write(f"np;time;share\n{rows}"), "--target", "64")
    assert refused.status == 3
    found = re.search(r"line 2: (np|time): '(\d+),(\d+)' may be (\S+) or (\S+)", refused.complaint)
    assert found is not None
    assert (found[4], found[5].rstrip(";,.")) == (found[2] + found[3], f"{found[2]}.{found[3]}")


def generated_table(random):
    """Return the text of a table, its ending, its scales and times, repetitions and case."""
    title, (time, factor) = random.choice(PROCESSES), random.choice(UNITS_OF_TITLES)
    scales = [2**k for k in range(random.randint(0, 3), random.randint(5, 9))]
    times = [random.choice([100.0, 5.0, 1234.5]) * (1 / p + 0.01) for p in [*scales]]
    times.sort(reverse=True)
    further = set(random.sample(FURTHER, random.randint(0, 3)))
    case = random.choice(["input", "Matrix Size", "machine", "colour"])
    rows = []
    for kind in ("small", "large") if "case" in further else ("small",):
        for p, t in zip(scales, times, strict=True):
            for r in range(3 if "run" in further else 1):
                value = t * (7 if kind == "large" else 1)
                row = {title: p, time: f"{value / factor:.9g}"}
                extra = {
                    "case": (case, kind), "run": ("run", r + 1), "size": ("grid size", 1000),
                    "speedup": ("Speedup", round(times[0] / t, 3)),
                    "efficiency": ("Efficiency (%)", f"{100 * times[0] / t / p:.3f}"),
                    "cluster": ("cluster", "fritz"), "date": ("date", f"2024-01-{1 + p % 28:02}"),
                    "host": ("host", f"node{random.randint(1, 99)}"),
                    "cpu": ("CPU time (s)", f"{value * p:.6g}"),
                    "parts": ("comm (s)", f"{value / 5:.9g}"),
                }  # fmt: skip
                row |= dict(extra[each] for each in sorted(further))
                rows.append(row)
    titles = random.sample([*rows[0]], len(rows[0]))
    cells = [[str(row[each]) for each in titles] for row in rows]
    lines = [titles, *cells]
    kind = random.choice([",", ";", "\t", "markdown", "spaces"])
    if kind == "markdown":
        head, *body = (f"| {' | '.join(line)} |" for line in lines)
        text = "\n".join(["# Scaling", "", head, "|---" * len(titles) + "|", *body])
    elif kind == "spaces":
        text = "\n".join("".join(cell.ljust(24) for cell in line).rstrip() for line in lines)
    else:
        text = "\n".join(kind.join(line) for line in lines)
    ending = {"markdown": ".md", "spaces": ".txt"}.get(kind, ".csv")
    return text + "\n", ending, scales, times, 3 if "run" in further else 1, (
        case if "case" in further else None
    )  # fmt: skip


UNITS_OF_TITLES = (("time", 1), ("Time (s)", 1), ("wall_time", 1), ("elapsed [ms]", 1e-3),
                   ("Runtime (min)", 60), ("total time", 1), ("duration_us", 1e-6),
                   ("t[s]", 1), ("Wall clock time (sec)", 1), ("seconds", 1))  # fmt: skip
FURTHER = (
    "case",
    "run",
    "size",
    "speedup",
    "efficiency",
    "cluster",
    "date",
    "host",
    "cpu",
    "parts",
)


@pytest.mark.parametrize("seed", range(4))
def test_generated_tables_are_read_right_or_asked_about(tmp_path, seed):
    random = Random(seed)
    for k in range(50):
        text, ending, scales, times, repetitions, case = generated_table(random)
        path = tmp_path / f"table{ending}"
        path.write_text(text)
        options = None
        if case:
            with pytest.raises(UsageError, match=f"2 cases of '{case}'"):
                pipeline.fit(loading.load(path))
            options = loading.LoadOptions(where=f"{case}=small")
        experiment = loading.load(path, options)
        (parameter,) = experiment.parameters
        total = experiment.columns[experiment.metric().name].total
        assert parameter.values == tuple(scales), (k, text)
        expected = [t for t in times for _ in range(repetitions)]
        assert total == pytest.approx(expected, rel=1e-6), (k, text)
        assert experiment.scaling == "strong", (k, text)


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "your-table.md"
SHAPES = re.findall(r"^```text (\S+)\n(.*?)^```$.*?^(Result|Question): (.*?)(?:\n\n|\Z)",
                    PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)  # fmt: skip


@pytest.mark.parametrize(("name", "text", "kind", "told"), SHAPES, ids=[s[0] for s in SHAPES])
def test_the_page_says_what_comes_out_of_each_table(write, run, name, text, kind, told):
    path = write(text, name)
    if kind == "Question":
        run("views", path, "--target", "64").fails(2, told.strip())
        return
    experiment = loading.load(path)
    scale, values = re.match(r"scale `(.*?)` = ([0-9, ]+);", told).groups()
    scales = {run.parameters[scale] for run in experiment.runs}
    assert sorted(scales) == [*map(float, values.split(","))]
    assert experiment.metric().name == re.search(r"metric `(.*?)`", told)[1]
    paths = [experiment.tree.path(row) for row in range(len(experiment.tree))]
    assert paths == re.findall(r"`(.*?)`", told.partition("call paths")[2])


def test_the_page_has_seven_tables():
    assert len(SHAPES) == 7


ROWS = "".join(f"{p},{t}\n" for p, t in zip(SCALES, TIMES, strict=True))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"Strong scaling of the solver\nnp,time\n{ROWS}", None),
        (f"np,time\n# first node\n{ROWS}", None),
        (f"np,time\n{ROWS}Total,199.6\nmean,39.9\n", None),
        (f"np,time\n{ROWS}32,N/A\n", "CPM101"),
        (f"np,time,state\n{ROWS}".replace(".0\n", ".0,OK\n") + "32,1.0,FAILED\n", "CPM166"),
    ],
)
def test_rows_that_are_no_runs_are_left_out(write, text, code):
    lines = [line + "," * (text.splitlines()[0].count(",") - line.count(","))
             if code == "CPM166" else line for line in text.splitlines()]  # fmt: skip
    experiment = loading.load(write("\n".join(lines) + "\n"))
    assert experiment.points("p").tolist() == [*SCALES]
    assert experiment.values("time").tolist() == [[*TIMES]]
    assert experiment.scaling == "strong"
    codes = {finding.code for finding in experiment.findings} - {"CPM125"}
    assert codes == ({code} if code else set())


@pytest.mark.parametrize("head", ["foo,bar,time", "workers,GPUs,time", "column,bar,elapsed"])
def test_an_option_makes_a_column_the_number_of_processes(write, run, head):
    first, second, _ = head.split(",")
    path = write(
        f"{head}\n" + "".join(f"{p},{3 * p},{t}\n" for p, t in zip(SCALES, TIMES, strict=True))
    )
    for title, factor in ((first, 1), (second, 3)):
        options = loading.LoadOptions(
            loading.ReadOptions(parameter_sources={"p": f"column:{title}"})
        )
        experiment = loading.load(path, options)
        assert experiment.points("p").tolist() == [factor * p for p in SCALES]
        assert experiment.scaling == "strong"
    run("info", path, "--param", "p=column:wrong").fails(2, "no column 'wrong'", first)
    run("info", path, "--param", "p=wrong").fails(2, "unknown source 'wrong'", "column:TITLE")


@pytest.mark.parametrize(
    "head",
    ["np,compute (s),MPI (s),total (s)", "np,comp,MPI,total", "np,solve,halo exchange,wall time"],
)
def test_parts_before_the_total_are_no_parameters(write, head):
    rows = [f"{p},{t * 0.75},{t / 4},{t}" for p, t in zip(SCALES, TIMES, strict=True)]
    for lines in (rows, [f"{p},{90 // p},{10 // p},{100 // p}" for p in (1, 2, 5, 10)]):
        experiment = loading.load(write("\n".join([head, *lines]) + "\n"))
        assert [parameter.name for parameter in experiment.parameters] == ["p"]
        assert len(experiment.tree) == 3


def test_shares_of_a_processor_are_no_scale(write):
    rows = [f"{p},{90 // p},{t}" for p, t in zip(SCALES, TIMES, strict=True)]
    experiment = loading.load(write("\n".join(["np,CPU (%),time", *rows]) + "\n"))
    assert [parameter.name for parameter in experiment.parameters] == ["p"]


@pytest.mark.parametrize(
    ("metric", "subject"),
    [("time", "runs"), ("bytes", "bytes of runs"), ("ipc", "ipc of runs")],
)
def test_growth_without_end_names_the_metric_and_the_range(write, run, metric, subject):
    values = zip(SCALES, (13.4, 84.7, 76.4, 25.5, 49.5), strict=True)
    path = write("\n".join([f"p,{metric}", *(f"{p},{value}" for p, value in values)]) + "\n")
    first = run("rank", path, "--target", "inf").out.splitlines()[0]
    assert first == f"As p grows without end, {subject} is O(1 … p^⅓)."
