"""Valid inputs: every form of the test writers, and small measured files."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import benchmark_output
import caliper_writer
import collectives
import communication
import cube_writer as cw
import extra_prof_writer
import hpctoolkit_files
import kineto_writer
import nsight_writer
import nsys_stats_files
import profiler_files
import rocpd_writer
import rocprof_files
import table_files as tf
import tau_writer
import trace_writer as ow
import workflow_files as wf
from callpath_modeler.history import history_store as history
from callpath_modeler.history.predictions import OutcomeRecord, PredictionRecord, remember
from callpath_modeler.testing.hpctoolkit import Kind, Layout, Measured, Scope, write_database
from fuzz.forms import Directory, bundle, gunzipped, zipped
from program_logs import PROGRAMS

_ROOT = Path(__file__).resolve().parents[2]
_SHARED = _ROOT.parent / "shared" / "data"
_LARGEST = 64 << 10
"""Maximum bytes of a measured file as a seed; larger ones are mutated too rarely."""

_EXTRAP_TEXT_OF_TWO = """PARAMETER p
PARAMETER n
POINTS ( 4 10 ) ( 8 10 ) ( 4 20 )
REGION main
METRIC time
DATA 1 2 3
DATA 1
DATA 2 2
"""
_TALPAS = (
    '{"parameters":{"p":4};"metric":"time";"callpath":"main";"value":2.5}\n'
    '{"parameters":{"p":8};"metric":"time";"callpath":"main->f";"value":3}\n'
)
_EXTRAP_NEW = {
    "parameters": ["p", "n"],
    "measurements": {
        "main": {"time": [{"point": [2, 9], "values": [1.0, 1.5]}, {"point": [4, 9], "values": 3}]},
        "main->f": {"visits": [{"point": [2, 9], "values": [7]}]},
    },
}
_EXTRAP_OLD = {
    "parameters": [{"id": 2, "name": "n"}, {"id": 1, "name": "p"}],
    "metrics": [{"id": 1, "name": "time"}],
    "callpaths": [{"id": 1, "name": "main"}, {"id": 2, "name": "main->f"}],
    "coordinates": [
        {"id": k, "parameter_value_pairs": [{"parameter_id": 2, "parameter_value": "9"},
                                            {"parameter_id": 1, "parameter_value": str(2 * k)}]}
        for k in (1, 2)
    ],
    "measurements": [
        {"id": 1, "coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": 1.0},
        {"id": 2, "coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": "1.5"},
        {"id": 3, "coordinate_id": 2, "callpath_id": 2, "metric_id": 1, "value": 3},
    ],
}  # fmt: skip
_EXTRAP_MEANS = {
    "Extra-P": "4", "parameters": ["p"],
    "measurements": {"main": {"time": [{"coordinate": [2.0], "mean": 5.0, "median": 1.0}]}},
}  # fmt: skip
_CALIPER_SPLIT = {
    "data": [[0.5, 0, None], [1.0, 0, 0], [2.5, 0, 1], [0.7, 1, None], [1.2, 1, 0], [3.5, 1, 1]],
    "columns": ["time", "mpi.rank", "path"],
    "column_metadata": [
        {"is_value": True, "attribute.unit": "sec"}, {"is_value": True}, {"is_value": False}
    ],
    "nodes": [
        {"label": "main", "column": "path"}, {"label": "solve", "column": "path", "parent": 0}
    ],
    "mpi.world.size": "2",
    "cali.caliper.version": "2.10.0",
}  # fmt: skip
_CALIPER_RECORDS = [
    {"mpi.rank": rank, "path": path, "sum#time.duration.ns": seconds * 1e9}
    for rank, path, seconds in ((0, "main", 1.0), (1, "main", 1.2), (0, "main/solve", 2.5))
]
EXPECTATIONS = """schema = 1
target = { p = 4096 }
[defaults]
metric = "time"
confidence = 0.95
[numbers]
processes_per_node = 48
memory = "24 GB"
[[expect]]
name = "local"
callpath = "main/**/Comm*/**"
growth = "<= O(log p)"
[[expect]]
callpath = "main/f"
value = "<= 2.5 s"
share = "<= 5 %"
xfail = "issue 812"
[[expect]]
metric = "bytes_sent"
bound = "bytes_sent * processes_per_node <= 24 GB"
[[rule]]
rule = "{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}"
"""
CONFIGURATION = """[experiment]
name = "app.p{p}.n{n}.r{rep}"
scaling = "weak"
[parameters]
p = { from = "processes" }
n = { from = "metadata:elems_per_edge" }
[defaults]
metric = "time"
at = { p = 4096 }
where = ["p>=2"]
ignore = ["**/MPI_Init"]
confidence = 0.9
jobs = 1
ignore_findings = ["CPM203"]
"""
MANIFEST = """schema = 1
[[run]]
path = "a.csv"
repetition = 1
[[run]]
path = "b.csv"
parameters = { "n" = 30 }
"""


def _texts(*contents: str | object) -> list[bytes]:
    return [(c if isinstance(c, str) else json.dumps(c)).encode() for c in contents]


def _measured(*patterns: str) -> list[bytes]:
    """Return small files of other projects if they are available, one of each directory."""
    found: dict[Path, bytes] = {}
    for pattern in patterns:
        for path in sorted(_SHARED.glob(pattern)) if _SHARED.is_dir() else ():
            if path.is_file() and path.stat().st_size <= _LARGEST:
                found.setdefault(path.parent, path.read_bytes())
    return list(found.values())[:8]


def _measured_folders(*patterns: str) -> list[bytes]:
    """Return parts of directories of other projects, without large and irrelevant files."""
    paths = [path for each in patterns for path in sorted(_SHARED.glob(each))]
    sizes = (sum(each.stat().st_size for each in path.rglob("*")) for path in paths)
    small = [path for path, size in zip(paths, sizes, strict=True) if size <= _LARGEST]
    return [bundle(path) for path in small[:6]]


def csv() -> list[bytes]:
    """Return delimited text."""
    return _texts(
        tf.CSV,
        tf.CSV.replace(",", ";"),
        "# comment\n" + tf.CSV.replace(",", "\t"),
        "\ufeffcallpath,metric,p,value\nmain,time,4,1.5\nmain->f,time,4,2\nmain,visits,4,2\n",
        'name,p,time\n"a ""b""",4,1.5\nb,8,2\n',
        "p,n,time,seed,host\n4,10,1,a,x\n8,20,2,b,y\n",
    ) + _measured("reports/*/*.csv")


def json_lines() -> list[bytes]:
    """Return a line of JSON per row."""
    lists = '{"params": {"p": 4}, "callpath": "main->f", "metric": "time", "value": [2.5, 2.6]}\n'
    named = '{"callpath": ["main", "f"], "p": 4, "time": 1}\n{"callpath": ["main"], "p": 4}\n'
    return _texts(tf.JSON_LINES, tf.JSON_LINES + lists, named) + _measured(
        "reports/*/*.jsonl", "third_party/**/*.jsonl"
    )


def json_rows() -> list[bytes]:
    """Return lists of rows, and frames of pandas in all of their layouts."""
    rows = [{"callpath": "main", "p": 4, "time": 1.5}, {"callpath": "main/f", "p": 4, "time": 1}]
    frame = pd.DataFrame(rows)
    frames = [frame.to_json(orient=orient) for orient in ("split", "index", "columns", "table")]
    whole = {"rows": rows, "units": {"time": "ms"}}
    return _texts(rows, tf.JSON_LINES, whole, *frames)


def parquet() -> list[bytes]:
    """Return tables in columns."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    found = []
    for compression in ("none", "snappy"):
        table = pa.table({"callpath": ["main", "main/f"], "p": [4, 4], "time": [1.5, 0.5]})
        content = io.BytesIO()
        pq.write_table(table, content, compression=compression)
        found.append(content.getvalue())
    return found


def extrap_text() -> list[bytes]:
    """Return Extra-P's text, and that of TaLPas."""
    measured = _measured("third_party/extrap_text/*.txt")
    return _texts(tf.EXTRAP_TEXT, _EXTRAP_TEXT_OF_TWO, _TALPAS) + measured


def extrap_json() -> list[bytes]:
    """Return both layouts of Extra-P's JSON."""
    return _texts(_EXTRAP_NEW, _EXTRAP_OLD) + _measured("reports/*/run*.json")


def extrap_experiment() -> list[bytes]:
    """Return Extra-P's archives, with and without arrays."""
    from callpath_modeler.report.exports import for_extrap
    from callpath_modeler.studies import loading

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "small.txt"
        text.write_text(tf.EXTRAP_TEXT)
        made = for_extrap(loading.load([text]), Path(folder) / "a.extra-p")
    assert isinstance(made, bytes)
    return [made, zipped({"experiment.json": json.dumps(_EXTRAP_MEANS).encode()})]


def folded() -> list[bytes]:
    """Return folded stacks: counts, fractions, two counts, frames of several kinds."""
    return _texts(
        tf.FOLDED,
        "a;b 1 2\na;c 3 4\n",
        "swapper;start_kernel_[k];[unknown] 10\nmain (app);f<a b> 3\n;x 1\n",
    ) + _measured("reports/*/**/*.folded")


def hatchet() -> list[bytes]:
    """Return Hatchet's literal."""
    return _texts(tf.HATCHET)


def logs() -> list[bytes]:
    """Return logs of programs that are lines of text."""
    texts = (program.log(2) for program in PROGRAMS.values())
    return [text.encode() for text in texts if not text.startswith("{")]


def json_logs() -> list[bytes]:
    """Return results of small benchmarks that are JSON."""
    texts = (program.log(2) for program in PROGRAMS.values())
    return [text.encode() for text in texts if text.startswith("{")]


def profilers(*names: str) -> list[bytes]:
    """Return profiles of profilers by the endings of their names."""
    return [content for name, content in profiler_files.FILES.items() if name.endswith(names)]


def cubex() -> list[bytes]:
    """Return CUBE 4 archives in their variants."""
    tree = cw.Tree([-1, 0, 1, 0], ["main", "solve", "MPI_Allreduce", "io"])
    seconds = np.array([[1.0, 2, 3], [4, 5, 6], [0, 1, 0.5], [9, 0, 0]])
    metrics = [
        cw.MetricToWrite("time", tree.subtree_sums(seconds), "INCLUSIVE", unit="sec"),
        cw.MetricToWrite("visits", np.ones((4, 3)), dtype="UINT64"),
        cw.MetricToWrite("min_time", seconds, dtype="MINDOUBLE", unit="sec"),
        cw.MetricToWrite("bytes_sent", 8 * seconds, dtype="TAU_ATOMIC", unit="bytes"),
    ]
    variants = [
        {}, {"codec": "zlib"}, {"gz": True}, {"index": "dense"}, {"tail": ""}, {"endian": ">"},
        {"prefix": "./"},
    ]  # fmt: skip
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for variant in variants:
            path = Path(folder) / "s.cubex"
            cw.write(path, tree, metrics, cw.Machine([1, 2]), **variant)
            found.append(path.read_bytes())
    return found + _measured("third_party/cubex/**/*.cubex", "scorep/variants/*/*.cubex")


def cube3() -> list[bytes]:
    """Return CUBE 3 documents."""
    tree = cw.Tree([-1, 0, 0], ["main", "f<int>", "MPI_Send"])
    values = np.array([[1.0, 2], [3, 4], [0, 1]])
    metrics = [cw.MetricToWrite("time", values, unit="sec"), cw.MetricToWrite("visits", values)]
    return [cw.cube3(tree, metrics, cw.Machine([1, 1])), *_measured("**/*.cube")]


def hpctoolkit4() -> list[bytes]:
    """Return databases of version 4: of today, of the first releases, with spare bytes."""
    contexts = [
        Scope(-1, Kind.FUNCTION, "main thread"),
        Scope(0, Kind.FUNCTION, "main", "/src/main.c", 3),
        Scope(1, Kind.LOOP, file="/src/main.c", line=5),
        Scope(2, Kind.LINE, file="/src/main.c", line=6),
        Scope(3, Kind.FUNCTION, "solve(double)", "/src/solve.c", 20),
        Scope(4, Kind.LINE, file="/src/solve.c", line=21),
    ]

    def costs(rank: int) -> dict[str, np.ndarray]:
        seconds = np.array([0, 0.5, 0, 1.0, 0, 2.0]) * (rank + 1)
        return {"CPUTIME (sec)": seconds, "cycles": 1000 * seconds}

    measured = [Measured({"NODE": 0, "RANK": r, "THREAD": 0}, costs(r)) for r in range(2)]
    found = []
    for layout in (Layout(), Layout(early=True, elide=False), Layout(spare=8)):
        with tempfile.TemporaryDirectory() as folder:
            found.append(bundle(write_database(Path(folder) / "d", contexts, measured,
                                               layout=layout)))  # fmt: skip
    return found + _measured_folders("third_party/hpctoolkit/v4/*")


def hpctoolkit2() -> list[bytes]:
    """Return databases of version 2: XML alone, and with values of threads."""
    found = []
    for threads in (0, 3):
        with tempfile.TemporaryDirectory() as folder:
            database = hpctoolkit_files.write(Path(folder) / "d", threads=threads or 1)
            for thread in range(threads):
                hpctoolkit_files.write_metric_db(database, 0, thread, 1.0)
            found.append(bundle(database))
    return found + _measured_folders("third_party/hpctoolkit/v2/*")


def caliper() -> list[bytes]:
    """Return Caliper's own format."""
    paths = {("main",): [1.0, 1.2], ("main", "solve"): [2.5, 3.5]}
    made = _texts(caliper_writer.summed(problem_size=30), caliper_writer.per_rank(paths))
    return made + _measured("third_party/caliper/**/*.cali", "reports/*/**/*.cali")


def caliper_json() -> list[bytes]:
    """Return Caliper's JSON, split and in records."""
    objects = {"records": _CALIPER_RECORDS, "globals": {"mpi.world.size": "2"}}
    measured = _measured("reports/*/json/*.json")
    return _texts(_CALIPER_SPLIT, _CALIPER_RECORDS, objects) + measured


def traces() -> list[bytes]:
    """Return OTF2 archives: messages, threads, samples, random events."""

    def events(rank: int) -> Iterator[tuple[object, ...]]:
        yield "program_begin", 100, "/opt/app", ()
        yield "enter", 200, "main"
        yield "enter", 300, "MPI_Send"
        yield "mpi_send", 310, 1 - rank, ow.Comm("WORLD"), 7, 1000
        yield "leave", 500 + 100 * rank, "MPI_Send"
        yield "leave", 1200, "main"
        yield "program_end", 1300, 0

    kinds = [
        ow.Trace([[ow.Thread(list(events(rank)))] for rank in range(2)], resolution=1000),
        ow.Trace([[ow.Thread(ow.random_events(3, r, 2, 60))] for r in range(2)]),
        ow.Trace([[ow.Thread(ow.random_events(4, 0, 1, 40))]], counted=False),
    ]
    found = []
    for trace in kinds:
        with tempfile.TemporaryDirectory() as folder:
            ow.write_trace(Path(folder) / "t", trace)
            found.append(bundle(Path(folder) / "t"))
    return found + _measured_folders("third_party/otf2/ping*", "reports/*/trace.p2", "traces/ft.4")


_TAU_PATHS = {
    ".TAU application": (1, 500_000.0),
    ".TAU application => main": (1, 1_000_000.0),
    ".TAU application => main => solve": (10, 2_500_000.0),
    ".TAU application => main => solve => MPI_Allreduce()": (40, 250_000.0),
}


def kineto() -> list[bytes]:
    """Return traces of PyTorch, and a list of events that begin and end separately."""
    edges = [{"ph": phase, "name": "f", "pid": 1, "tid": 1, "ts": ord(phase)} for phase in "BE"]
    made = [kineto_writer.training(steps=1).text().encode(), json.dumps(edges).encode()]
    return made + [gunzipped(each) for each in _measured("gpu/kineto/**/*.json.gz")]


def kineto_ranks() -> list[bytes]:
    """Return directories with a trace for each rank."""
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(2):
            kineto_writer.training(rank, steps=1).write(Path(folder) / f"rank-{rank}.json")
        return [bundle(Path(folder))]


def _tau_threads() -> dict[tuple[int, int, int], list[tau_writer.Timer]]:
    groups = {"MPI_Allreduce()": "MPI", ".TAU application": "TAU_USER"}
    return {(rank, 0, 0): tau_writer.call_paths(_TAU_PATHS, groups) for rank in range(2)}


def tau() -> list[bytes]:
    """Return directories of TAU: flat, call paths, several metrics."""
    threads = _tau_threads()
    flat = {(0, 0, 0): [timer for timer in threads[0, 0, 0] if "=>" not in timer[0]]}
    found = []
    for parts in ({"": threads}, {"": flat}, {"MULTI__TIME": threads, "MULTI__PAPI_FP": threads}):
        with tempfile.TemporaryDirectory() as folder:
            for name, these in parts.items():
                tau_writer.write(Path(folder) / name, these, name.removeprefix("MULTI__") or "TIME")
            found.append(bundle(Path(folder)))
    return found


def tau_packed() -> list[bytes]:
    """Return ParaProf's packed form."""
    threads = {at: {"TIME": timers, "PAPI": timers} for at, timers in _tau_threads().items()}
    return [tau_writer.packed(threads), tau_writer.packed(threads, version=1)]


_JUBE_TITLES = ["nodes", "tasks", "threads", "runtime_avg[s]", "bandwidth[MB/s]"]


@cache
def nsight() -> list[bytes]:
    """Return databases of Nsight Systems: with ranges, with call chains, and with MPI."""
    ranges, chains, messages = nsight_writer.small(), nsight_writer.Report(), nsight_writer.small()
    for depth, symbol in enumerate(("cudaMalloc", "work", "main")):
        chains.add("CUDA_CALLCHAINS", id=0, symbol=chains.text(symbol), module=1, unresolved=None,
                   stackDepth=depth)  # fmt: skip
    chains.call("cudaMalloc", 0, 50, 1, chain=0)
    messages.add("MPI_P2P_EVENTS", start=700, end=710, globalTid=nsight_writer.global_tid(100, 100),
                 textId=messages.text("MPI_Send"), size=8)  # fmt: skip
    messages.add("MPI_RANKS", globalPid=nsight_writer.global_pid(100), rank=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        return [
            report.write(path / f"{k}.sqlite").read_bytes()
            for k, report in enumerate((ranges, chains, messages))
        ]


@cache
def nsys_stats() -> list[bytes]:
    """Return tables of `nsys stats`, of newer and of older versions."""
    return _texts(*nsys_stats_files.TABLES.values(), nsys_stats_files.OLD)


@cache
def rocprof() -> list[bytes]:
    """Return the CSV traces of a process of rocprofv3."""
    files = {f"1_{name}.csv": text.encode() for name, text in rocprof_files.TRACES.items()}
    return [zipped(files)]


@cache
def rocpd() -> list[bytes]:
    """Return a database of rocprofv3."""
    with tempfile.TemporaryDirectory() as folder:
        return [rocpd_writer.small(Path(folder) / "a_results.db").read_bytes()]


@cache
def extra_prof() -> list[bytes]:
    """Return call trees of Extra-Prof with one thread and with two."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        return [
            extra_prof_writer.write(path / str(k), extra_prof_writer.small(k)).read_bytes()
            for k in (1, 2)
        ]


@cache
def jube() -> list[bytes]:
    """Return result tables of JUBE in each style, and on the side."""
    rows = [(1, p, 2, wf.solve_time(p), 100 * p) for p in wf.SCALES]
    pretty = wf.pretty("result", _JUBE_TITLES, rows)
    other = wf.pretty(
        "energy", [*_JUBE_TITLES[:3], "energy[J]"], [(1, p, 2, 5 * p) for p in wf.SCALES]
    )
    columns = zip(_JUBE_TITLES, zip(*rows, strict=True), strict=True)
    turned = [f"| {title} | {' | '.join(map(str, cells))} |\n" for title, cells in columns]
    return _texts(
        pretty,
        wf.pretty("result", _JUBE_TITLES, rows, old=True),
        f"####\n# JUBE\n####\n\n{pretty}\n{other}\ndone\n",
        f"result:\n{''.join(turned)}",
    )


def text_tables() -> list[bytes]:
    """Return tables of people: aligned columns, spaces, comments, notations, wide, events."""
    rows = [(1, p, 2, wf.solve_time(p), 100 * p) for p in wf.SCALES]
    times = [(p, wf.solve_time(p)) for p in wf.SCALES]
    lines = "".join(f"{p}  {t}\n" for p, t in times)
    return _texts(
        wf.aligned(_JUBE_TITLES, rows, "|"),
        wf.aligned(_JUBE_TITLES, rows, " ; "),
        f"# study\n# np  time[s]\n{lines}",
        f"cores   wall time\n{lines}",
        "sep=;\nKnoten;Laufzeit;comm\n;[s];[s]\n"
        + "".join(f"{p};1.{k}00,5;3 ms\n" for k, (p, _) in enumerate(times)),
        "Ranks,total,comp,Speedup\n" + "".join(f"2^{k},9 s,1:02,~{p}x\n" for k, (p, _) in
                                                enumerate(times)) + "mean,3,2,1\n",
        "nodes,run1,run2,state\n" + "".join(f"{p},{t},{t} +- 1,OK\n" for p, t in times),
        "region,p=2,p=4,p=8\nmain,1,2,3\nf,1,N/A,3\n",
        "Start (ns),Duration (ns),Name\n1,2,f\n3,4,g\n",
    )  # fmt: skip


def markdown() -> list[bytes]:
    """Return a page with a table between bars."""
    rows = "".join(f"| {p} | **{wf.solve_time(p)}** | 50 % |\n" for p in wf.SCALES)
    return _texts(
        f"# Text | here\n\n| #ranks | time (s) | eff |\n|---:|:--|--|\n{rows}\nThe end.\n"
    )


def reframe_log() -> list[bytes]:
    """Return performance logs of ReFrame: runs, repetitions, runs that failed."""
    lines = [wf.log_line(p, k) for k, p in enumerate(wf.SCALES * 2)]
    return _texts(wf.perflog(lines), wf.perflog([*lines[:2], wf.log_line(4, 9, result="fail")]))


def reframe_report() -> list[bytes]:
    """Return run reports of ReFrame, of version 4 and before."""
    old = [
        {"name": "StreamTest", "result": "success", "system": "mysys",
         "check_vars": {"num_tasks": p, "tags": []}, "check_params": {"n": p},
         "perfvars": [{"name": "solve_time", "value": wf.solve_time(p), "unit": "s"}]}
        for p in wf.SCALES
    ]  # fmt: skip
    return _texts(wf.report([wf.case_of(p) for p in wf.SCALES]), wf.report(old))


def _ramble() -> list[dict[str, object]]:
    context = {"name": "Copy", "display_name": "Copy", "foms": [wf.fom("Time", "5", "ms")]}
    repeats = [wf.experiment(p, repeat=k, contexts=[context]) for p in (2, 4) for k in (1, 2)]
    return [*repeats, wf.experiment(8, repeat=1, status="FAILED")]


def ramble_json() -> list[bytes]:
    """Return results of Ramble: contexts, repeats, experiments that failed."""
    return _texts(wf.results([wf.experiment(p) for p in wf.SCALES]), wf.results(_ramble()))


def ramble_text() -> list[bytes]:
    """Return the same for people."""
    made = [wf.experiment(p) for p in wf.SCALES]
    return _texts(wf.results_text(made), wf.results_text(_ramble()))


def thicket() -> list[bytes]:
    """Return frames of Thicket, with and without inclusive times and files."""
    return _texts(wf.thicket((2, 4)), wf.thicket((2, 4), inclusive=(), files=False))


def benchmarks() -> list[bytes]:
    """Return benchmarks of collectives: tables without and with sizes, and output of suites."""
    few = 8, 16, 32
    plain = collectives.rows(collectives.latencies, few, repetitions=2)
    sized = collectives.rows(collectives.by_size, few, (8, 64), repetitions=2)
    cells = benchmark_output.times(benchmark_output.flawless, 0)
    some = {key: time for key, time in cells.items() if key[1] < 64}
    head, row = "#@nprocs=4\n", "MPI_Gather"
    predictions = "test nrep count mean_runtime_sec median_runtime_sec pred_method pred_value"
    checked = "mockup message_size run_id runtime"
    forms = (
        benchmark_output.reprompi(some, nrep=2),
        benchmark_output.osu(cells, "Allreduce"),
        benchmark_output.osu(cells, "Reduce_scatter", full=True),
        benchmark_output.imb(cells),
        benchmark_output.skampi(cells),
        f"{head}test nrep count errorcode runtime_sec\n{row} 0 8 0 1e-6\n{row} 1 8 3 9e-6\n",
        f"{head}#@runtime_type=global\nprocess test nrep count loc_tstart_sec loc_tend_sec "
        "gl_tstart_sec gl_tend_sec\n"
        + "".join(f"{rank} {row} 0 8 0.{rank} 0.5 0.{rank} 0.6\n" for rank in range(4)),
        f"{head}test count total_nrep valid_nrep mean_sec median_sec\n{row} 8 20 20 2e-6 1e-6\n",
        f"{head}#@pred_nrep_max=1000\n{predictions}\n{row} 50 8 2e-6 1e-6 rse 0.01\n",
        f"MPI Collective: {row}\n{checked}\ndefault 8 0 2e-6\ngather_as_reduce 8 0 3e-6\n",
        "library,function,p,size,mpirun,time_us\nA,MPI_Gather,4,8,1,2\nA,GL_Gather_as_Reduce,4,8,1,1\n",
        "test,msize,nexp,tmedian\nMPI_Gather,8,1,2e-6\nMPI_Gather,8,2,3e-6\n",
    )
    return _texts(*(table.to_csv(index=False) for table in (plain, sized)), *forms)


def _ping(rank: communication.Rank) -> None:
    for step in range(3):
        (rank.receive if (rank.rank + step) % 2 else rank.send)(1 - rank.rank, 8 * step)


@cache
def communicating() -> bytes:
    """Return the trace of a program that makes every kind of operation."""
    with tempfile.TemporaryDirectory() as folder:
        anchor = communication.traced(
            Path(folder) / "t", 4, communication.everything, communication.HALVES
        )
        return bundle(anchor.parent)


def communication_traces() -> list[bytes]:
    """Return traces of which the communication is told."""
    with tempfile.TemporaryDirectory() as folder:
        anchor = communication.traced(Path(folder) / "t", 2, _ping)
        return [communicating(), bundle(anchor.parent)]


def specifications() -> list[bytes]:
    """Return what is told of these traces, as JSON."""
    from cpmodel_commspec.compression.specify import specify
    from cpmodel_commspec.exchange import to_json

    found = []
    for content in communication_traces():
        with tempfile.TemporaryDirectory() as folder:
            placed = Directory("traces.otf2").place(content, Path(folder))
            found.append(to_json(specify(communication.recorded(placed))).encode())
    return found


@cache
def stores() -> list[bytes]:
    """Return stored experiments: of a mixture, classic, of two parameters."""
    from callpath_modeler import store
    from callpath_modeler.studies import loading
    from callpath_modeler.studies.pipeline import FitOptions, fit

    line = "callpath,p,time\n" + "".join(
        f"{name},{p},{c + d * p}\n" for p in (2, 4, 8, 16, 32) for name, c, d in
        (("main", 1, 0), ("main/f", 2, 0.1))
    )  # fmt: skip
    plane = "callpath,p,n,time\n" + "".join(
        f"main,{p},{n},{1 + 0.1 * p * n}\n" for p in (2, 4, 8, 16, 32) for n in (1, 2, 4, 8, 16)
    )
    found = []
    for text, options in ((line, FitOptions()), (line, FitOptions(method="classic")),
                          (plane, FitOptions())):  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.csv"
            path.write_text(text)
            store.write([fit(loading.load([path]), options=options)], Path(folder) / "e.cpm")
            found.append(bundle(Path(folder) / "e.cpm"))
    return found


@cache
def shards() -> list[bytes]:
    """Return shards: of a table, and of a profile with processes and a damaged one."""
    from callpath_modeler import shards
    from callpath_modeler.studies import loading

    table = "callpath,p,time\n" + "".join(f"main/f,{p},{p}\n" for p in (2, 4, 8, 16, 32))
    found = []
    for contents in ({"a.csv": table.encode()}, {"a.p2.cubex": cubex()[0], "a.p4.cubex": b"PK"}):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in contents.items():
                (Path(folder) / name).write_bytes(content)
            part = loading.load_shard([folder], loading.LoadOptions(), 1, 1)
            shards.write(part, Path(folder) / "part")
            found.append((Path(folder) / "part").read_bytes())
    return found


@cache
def histories() -> list[bytes]:
    """Return histories: of commits, and of a prediction with its outcome."""
    common = {"metric": "time", "unit": "s", "parameter": "p", "reduction": "mean", "scale": 64.0,
              "callpaths": ("main", "main/f")}  # fmt: skip
    band, scales = (2.0, 1.0, 3.0), np.array([2.0, 4.0, 8.0])
    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "a.db", Path(folder) / "b.db"
        for number in range(5):
            values = np.random.default_rng(number).uniform(1, 2, (2, 3, 2))
            record = history.HistoryRecord(
                f"c{number}", float(number), "time", "s", "p", "mean", scales, ("main", "main/f"),
                values, 10 * scales, {"machine": "A"}, {"compiler": "cc 12"}, {"n": 3.0}, 64.0,
                np.full((3, 3), 0.5),
            )  # fmt: skip
            history.add(path, record)
        remember(other, PredictionRecord(
            time=1.0, runs=("a",), inclusive=False, level=0.95, method="mixture",
            scales=(8.0, 16.0), bands=(band, band), trust=(1, 2), models=("2", "2"), total=band,
            is_run_time=False, **common,
        ))  # fmt: skip
        remember(other, OutcomeRecord(
            time=2.0, runs=("b",), own=(2.0, 2.5), whole=(4.0, 2.5), total=4.5, run_time=5.0,
            **common,
        ))  # fmt: skip
        return [each.read_bytes() for each in (path, other)]


def gzipped(of: Callable[[], Sequence[bytes]]) -> Callable[[], list[bytes]]:
    """Return seeds that are packed."""
    return lambda: [gzip.compress(content, 1, mtime=0) for content in of()]
