"""The small inputs of golden outputs, each made when a command names it for the first time.

Measured numbers have six digits, because further digits of `exp` depend on the processor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

import benchmark_output
import caliper_samples
import caliper_writer
import call_sites
import case_series
import collectives
import cube_writer as cw
import efficient_runs
import extra_prof_writer
import hpctoolkit_files
import profiler_files
import program_logs
import table_files
import tau_writer
import tuned_library
import workflow_files
from callpath_modeler import LoadOptions, fit, load, store
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from communication import HALVES, everything, exchange, head_to_head, traced, uneven
from patterns import ring, stencil2
from several_laws import LAWS as IN_TWO_PARAMETERS

ROOT = Path(__file__).resolve().parents[2]
SCALES = (2, 4, 8, 16, 32)

Make = Callable[[Path, Callable[[str], Path]], object]
"""A function of the input's path, and of a function that makes another input."""

INPUTS: dict[str, Make] = {}


def made(name: str) -> Callable[[Make], Make]:
    """Return a decorator that lists a function as the maker of the input `name`."""

    def listed(make: Make) -> Make:
        INPUTS[name] = make
        return make

    return listed


class Inputs:
    """Inputs in a folder, which is the working directory of the commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: set[str] = set()

    def need(self, name: str) -> Path:
        """Make an input with those that it is made of, unless it exists."""
        path = self.folder / name
        if name not in self._made:
            self._made.add(name)
            INPUTS[name](path, self.need)
        return path

    def need_those_of(self, line: str) -> None:
        """Make the inputs that a command line names."""
        for word in re.split(r"[\s=:,/]+", line):
            if word in INPUTS:
                self.need(word)

    @property
    def names(self) -> set[str]:
        """Names of the files and folders that belong to the inputs."""
        return self._made


def rounded(values: object) -> np.ndarray:
    """Return numbers with six digits."""
    return np.vectorize(lambda value: float(f"{value:.6g}"))(np.asarray(values, float))


def scatter(rng: np.random.Generator, shape: Sequence[int], noise: float) -> np.ndarray:
    """Return factors of noise."""
    return np.exp(noise * rng.standard_normal(shape))


def table(
    path: Path,
    laws: Mapping[str, Callable[..., float]],
    points: Mapping[str, Sequence[float]],
    *,
    seed: int,
    noise: float = 0.01,
    repetitions: int = 3,
    metric: str = "time[s]",
) -> None:
    """Write runs with these laws in one or several parameters as a table."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*points.values(), indexing="ij"), -1).reshape(-1, len(points))
    lines = [",".join(["callpath", *points, "rep", metric])]
    for name, law in laws.items():
        for point in grid:
            for rep in range(1, repetitions + 1):
                value = rounded(law(*point) * scatter(rng, (), noise))
                lines.append(",".join([name, *(f"{x:g}" for x in point), f"{rep}", f"{value:.6g}"]))
    path.write_text("\n".join(lines) + "\n")


def stored(path: Path, source: Path, **options: object) -> None:
    """Store runs with their models, so that commands need not fit them again."""
    read = load([source.relative_to(Path.cwd())], LoadOptions(**options).with_requirements())
    store.write([fit(read)], path)


# The samples.


def sample(name: str) -> Make:
    return lambda path, _: path.symlink_to(ROOT / "sample_profiles" / name)


INPUTS["stencil"] = sample("stencil")
INPUTS["truth"] = sample("stencil.p1024")
INPUTS["lulesh"] = sample("lulesh")
INPUTS["snap"] = sample("snap")
INPUTS["stencil.cpm"] = lambda path, need: stored(path, need("stencil"))
INPUTS["lulesh.cpm"] = lambda path, need: stored(path, need("lulesh"))


# One program in a few scales, as profiles of Score-P.

TREE = cw.Tree(
    [-1, 0, 1, 2, 1, 4, 0],
    ["main", "solve", "exchange", "MPI_Waitall", "norm", "MPI_Allreduce", "output"],
)


def profile(folder: Path, p: int, rep: int) -> None:
    """Write a run of p processes, whose rank 1 computes longest and waits least."""
    rng = np.random.default_rng([p, rep])
    own = np.array([0.05, 4.0, 0.2, 0.15 * p**0.5, 0.1, 0.3 * np.log2(p), 0.5])
    time = own[:, None] * scatter(rng, (len(TREE), p), 0.01)
    time[1, 1] *= 1.5
    time[3, 1] *= 0.5
    count = np.array([1, 1, 20, 20, 10 * p, 10 * p, 1])[:, None] * np.ones((1, p))
    sent = np.array([0, 0, 0, 20 * 4096, 0, 80, 0])[:, None] * np.ones((1, p))
    metrics = [
        cw.MetricToWrite("visits", count, dtype="UINT64"),
        cw.MetricToWrite("time", rounded(time), unit="sec"),
        cw.MetricToWrite("bytes_sent", sent, dtype="UINT64", unit="bytes"),
    ]
    place = folder / f"app.p{p}.r{rep}"
    place.mkdir(parents=True)
    cw.write(place / "profile.cubex", TREE, metrics, cw.Machine([1] * p))


def profiles(folder: Path, scales: Sequence[int], repetitions: int = 2) -> None:
    for p in scales:
        for rep in range(1, repetitions + 1):
            profile(folder, p, rep)


INPUTS["one"] = lambda path, _: profiles(path, (8,), 1)
INPUTS["two"] = lambda path, _: profiles(path, (4, 16))
INPUTS["series"] = lambda path, _: profiles(path, SCALES)
INPUTS["beyond"] = lambda path, _: profiles(path, (128,))
INPUTS["series.cpm"] = lambda path, need: stored(path, need("series"))


# Tables in one parameter, before and after a change.

BEFORE = {
    "main": lambda p: 1.0 + 0 * p,
    "main/solve": lambda p: 4.0 + 0 * p,
    "main/halo": lambda p: 0.2 * (p / 2) ** 0.5,
    "main/io": lambda p: 0.5 + 0 * p,
}
AFTER = {
    **BEFORE,
    "main/solve": lambda p: 4.0 * (p / 2) ** 0.5,
    "main/io": lambda p: 0.3 + 0 * p,
    "main/log": lambda p: 0.1 + 0 * p,
}


def of_one(laws: Mapping[str, Callable[..., float]], seed: int, scales=SCALES, **how) -> Make:
    return lambda path, _: table(path, laws, {"p": scales}, seed=seed, **how)


INPUTS["before.csv"] = of_one(BEFORE, 1)
INPUTS["after.csv"] = of_one(AFTER, 2)
INPUTS["later.csv"] = of_one(BEFORE, 3, (128,))
INPUTS["before2.csv"] = of_one(BEFORE, 4, (4, 16))
INPUTS["after2.csv"] = of_one(AFTER, 5, (4, 16))
INPUTS["before1.csv"] = of_one(BEFORE, 6, (8,), repetitions=1)
INPUTS["after1.csv"] = of_one(AFTER, 7, (8,), repetitions=1)
INPUTS["before.cpm"] = lambda path, need: stored(path, need("before.csv"))
INPUTS["after.cpm"] = lambda path, need: stored(path, need("after.csv"))
STRONG = {
    "main": lambda p: 100 / p,
    "main/solve": lambda p: 1000 / p + 0.01 * p,
    "main/MPI_Allreduce": lambda p: 0.2 * np.log2(p),
}
INPUTS["strong.csv"] = of_one(STRONG, 8, (8, 16, 32, 64, 128))
INPUTS["strong.cpm"] = lambda path, need: stored(path, need("strong.csv"))
BACK = {
    "main": lambda p: 2.0 + 0 * p,
    "main/step": lambda p: 1.0 if p < 16 else 3.0,
    "main/rare": lambda p: 0.001 * p**2,
}
CHAIN = "main/start/run/TimeLoop::advance/Integrator::step/Stage::apply/solve"
IN_A_CHAIN = {
    "main": lambda p: 1.0 + 0 * p,
    **{CHAIN.rsplit("/", k)[0]: lambda p: 0.0 * p for k in range(5, 0, -1)},
    CHAIN: lambda p: 0.1 * p,
    f"{CHAIN}/compute": lambda p: 5.0 + 0 * p,
    "main/output": lambda p: 0.0 * p,
    "main/output/write": lambda p: 2.0 + 0 * p,
}
INPUTS["chain.csv"] = of_one(IN_A_CHAIN, 10)
INPUTS["steps.csv"] = of_one(BACK, 9, (2, 4, 8, 16, 32, 64, 128))


# Several parameters.

GRID = {"p": (8, 16, 32, 64, 128), "n": (10, 20, 30, 40)}
SLOW = {
    **IN_TWO_PARAMETERS,
    "main/work": lambda p, n: n**3 / p * (1.5 if n >= 30 else 1.0),
}
INPUTS["grid.csv"] = lambda path, _: table(path, IN_TWO_PARAMETERS, GRID, seed=11)
INPUTS["slow.csv"] = lambda path, _: table(path, SLOW, GRID, seed=12)
INPUTS["grid.cpm"] = lambda path, need: stored(path, need("grid.csv"))
INPUTS["slow.cpm"] = lambda path, need: stored(path, need("slow.csv"))
INPUTS["point.csv"] = lambda path, _: table(
    path, IN_TWO_PARAMETERS, {"p": (512,), "n": (80,)}, seed=13
)


# Call sites with source files, efficiency, and processes that differ.


@made("sites")
def sites(path: Path, _: Callable) -> None:
    path.mkdir()
    call_sites.write_series(path, source="src/main.c")
    call_sites.write_source(path / "app.p64" / "src")


@made("bare-sites")
def sites_without_source(path: Path, _: Callable) -> None:
    path.mkdir()
    call_sites.write_series(path, source="src/main.c")


# Cost per process at p = 4 and 64, with the excess work of LBMHD (strong scaling: 53, 17 and 14 %)
# and of MILC (weak scaling: 33, 22 and 10 %) in Coarfa et al. (ICS 2007).
LBMHD = {
    "mhd": (720.0, 67.0),
    "mhd/caf_allsum_dp": (16.0, 18.0),
    "mhd/decomp": (16.0, 15.0),
    "mhd/stream": (0.0, 0.0),
}
MILC = {"main": (64.0, 65.0), "main/wait_gather": (2.0, 24.0), "main/do_gather": (1.0, 11.0)}


def published(costs: Mapping[str, tuple[float, float]]) -> Make:
    """Return the maker of HPCToolkit databases with these costs at p = 4 and 64."""

    def make(path: Path, _: Callable) -> None:
        for k, p in enumerate((4, 64)):
            known, own = [Scope(-1, Kind.FUNCTION, "main thread")], [0.0]
            for name, cost in costs.items():
                caller, _, last = name.rpartition("/")
                parent = [*costs].index(caller) + 1 if caller else 0
                known.append(Scope(parent, Kind.FUNCTION, last, f"{last}.c", 1))
                own.append(cost[k])
            ranks = [Measured({"RANK": r, "THREAD": 0}, {"REALTIME (sec)": own}) for r in range(p)]
            path.mkdir(exist_ok=True)
            write_database(path / f"app.p{p}", known, ranks)

    return make


INPUTS["lbmhd"] = published(LBMHD)
INPUTS["milc"] = published(MILC)


@made("efficient")
def efficient(path: Path, _: Callable) -> None:
    efficient_runs.write_series(
        path, (4, 8, 16, 32, 64), lambda _: 8.0, 0.8, lambda p: 1 / (1 + 0.02 * p)
    )


@made("hybrid")
def hybrid(path: Path, _: Callable) -> None:
    time = np.zeros((len(efficient_runs.NAMES), 4))
    time[efficient_runs.SOLVE, [0, 2]] = 2
    time[efficient_runs.PARALLEL] = 10, 6, 8, 8
    time[efficient_runs.BARRIER] = 2, 6, 0, 0
    time[efficient_runs.MPI, [0, 2]] = 6, 10
    efficient_runs.write_run(path, "app.p2", [2, 2], time)


@made("sorting")
def sorting(path: Path, _: Callable) -> None:
    case_series.write_folded(path, case_series.few(), "{a}-{i}-p{p}-r{r}")


@made("sorting.csv")
def sorting_table(path: Path, _: Callable) -> None:
    case_series.write_tables(path.parent, case_series.few(), "sorting")


@made("groups")
def groups(path: Path, _: Callable) -> None:
    """Write runs in which the first rank gathers, and the others compute."""
    tree = cw.Tree([-1, 0, 0, 0], ["main", "solve", "gather", "MPI_Allreduce"])
    for p in (8, 16, 32, 64):
        for rep in (1, 2):
            rng = np.random.default_rng([p, rep, 1])
            gather = np.where(np.arange(p) % 4 == 0, 0.02 * p * np.log2(p), 0.05)
            rows = [np.full(p, 0.1), np.full(p, 3 * (8 / p) ** 0.5), gather]
            time = np.array([*rows, np.full(p, 0.02 * np.log2(p))])
            time *= scatter(rng, time.shape, 0.02)
            place = path / f"app.p{p}.r{rep}"
            place.mkdir(parents=True)
            metrics = [
                cw.MetricToWrite("visits", np.ones_like(time), dtype="UINT64"),
                cw.MetricToWrite("time", rounded(time), unit="sec"),
            ]
            cw.write(place / "profile.cubex", tree, metrics, cw.Machine([1] * p))


@made("gpus")
def gpus(path: Path, _: Callable) -> None:
    """Write runs with two streams on each process."""
    names = ["app", "main", "MPI_Allreduce", "KERNELS", "gpu_stencil", "gpu_exchange"]
    roles = {"app": "artificial", "KERNELS": "artificial"}
    tree = cw.Tree([-1, 0, 1, 0, 3, 3], names, roles=roles)
    for p in (2, 4, 8, 16):
        machine = cw.Machine([1] * p, gpus=2)
        own = np.zeros((len(tree), machine.locations))
        for rank, (column,) in enumerate(machine.columns()):
            own[:3, column] = 0.001, 2.0, 0.005 * p
            for stream in range(2):
                place = machine.stream_columns()[rank][stream]
                own[4:, place] = 1 + 0.05 * stream, (0.02 + 0.0001 * rank) * p / (1 + stream)
        own *= scatter(np.random.default_rng(p), own.shape, 0.02)
        folder = path / f"app.p{p}.r1"
        folder.mkdir(parents=True)
        metrics = [
            cw.MetricToWrite("time", tree.subtree_sums(rounded(own)), "INCLUSIVE", unit="sec"),
            cw.MetricToWrite("visits", (own > 0).astype(float), dtype="UINT64"),
        ]
        cw.write(folder / "profile.cubex", tree, metrics, machine)


# Other formats of profiles.


def several(write: Callable[[Path, int], object], scales: Sequence[int] = (4, 8, 16)) -> Make:
    """Return the maker of a folder with one run per scale."""

    def make(path: Path, _: Callable) -> None:
        path.mkdir()
        for p in scales:
            write(path, p)

    return make


def text(content: str) -> Make:
    return lambda path, _: path.write_text(content)


def tau(path: Path, p: int) -> None:
    times = {
        "main": (1, 1e6),
        "main => solve": (10, 2e6 * p**0.5),
        "main => MPI_Wait": (10, 1e5 * p),
    }
    timers = tau_writer.call_paths(times, {"MPI_Wait": "MPI"})
    tau_writer.write(path / f"app.p{p}", {(rank, 0, 0): timers for rank in range(p)})


INPUTS["caliper"] = several(
    lambda path, p: (path / f"app.p{p}.cali").write_text(caliper_writer.summed(p))
)
INPUTS["samples"] = several(
    lambda path, p: (path / f"app.p{p}.cali").write_text(caliper_samples.run_of(p)), (4, 64)
)
INPUTS["tau"] = several(tau)
INPUTS["database"] = lambda path, _: hpctoolkit_files.write(path)


def with_energy(path: Path, _: Callable) -> None:
    """Write profiles of Extra-Prof, whose energy is least between the smallest and largest p."""
    for p in (1, 2, 4, 8):
        for rank in range(p):
            seconds, joules = (4e9 / p, 2e8), (9e6 / p**2, 1e6)
            calls = [
                extra_prof_writer.node(name, [time], energy=[[energy], [2 * energy]])
                for name, time, energy in zip(("work", "exchange"), seconds, joules, strict=True)
            ]
            whole = sum(joules)
            main = extra_prof_writer.node(
                "main", [sum(seconds)], *calls, energy=[[whole], [2 * whole]]
            )
            file = path / f"app.p{p}" / f"rank-{rank}.extra-prof.msgpack"
            extra_prof_writer.write(file, extra_prof_writer.node("", [], main, visits=[]))


INPUTS["energy"] = with_energy
INPUTS["table.csv"] = text(table_files.CSV)
INPUTS["lines.jsonl"] = text(table_files.JSON_LINES)
INPUTS["extrap.txt"] = text(table_files.EXTRAP_TEXT)
INPUTS["folded.p4.folded"] = text(table_files.FOLDED)
INPUTS["hatchet.p4.json"] = text(table_files.HATCHET)
INPUTS.update({f"lammps.{p}.log": text(program_logs.PROGRAMS["LAMMPS"].log(p)) for p in SCALES})
INPUTS["main.perf"] = text(profiler_files.PERF)
INPUTS["ramble.json"] = text(
    workflow_files.results([workflow_files.experiment(p) for p in workflow_files.SCALES])
)
INPUTS["reframe.json"] = text(
    workflow_files.report([workflow_files.case_of(p) for p in workflow_files.SCALES])
)
INPUTS["thicket.json"] = text(workflow_files.thicket())


# Expectations.

INPUTS["limits.toml"] = text("""\
schema = 1
target = { p = 128 }

[[expect]]
name = "the whole run"
value = "<= 1 h"

[[expect]]
name = "the sum does not grow"
callpath = "main/**/MPI_Allreduce"
growth = "<= O(log p)"
control = "calls of the solver"

[[expect]]
name = "calls of the solver"
callpath = "main/solve"
metric = "visits"
growth = "O(1)"

[[expect]]
callpath = "**/MPI_Waitall"
value = "<= 100 ms"

[[expect]]
name = "waiting"
callpath = "**/MPI_Waitall"
growth = "<= O(log p)"
xfail = "issue 812"

[[expect]]
name = "absent"
callpath = "**/MPI_Bcast"
at_least = 0
growth = "<= O(1)"
""")
INPUTS["passing.toml"] = text("""\
schema = 1

[[expect]]
name = "the whole run"
growth = "<= O(p)"
""")
INPUTS["grid.toml"] = text("""\
schema = 1
target = { p = 256, n = 80 }

[[expect]]
name = "work is shared"
callpath = "main/work"
growth = "<= O(1)"

[[expect]]
name = "messages"
callpath = "main/send"
value = "<= 10 s"
""")


# A history of commits.


def commit(number: int, factor: float) -> Make:
    """Return the maker of a table of a commit; `factor` is how much slower main/solve is."""
    laws = {
        "main": lambda p: 1 + 0 * p,
        "main/solve": lambda p: factor * (4 + 0.1 * p),
        "main/halo": lambda p: 0.2 * p**0.5,
        **{f"main/step{k}": lambda p, k=k: 0.5 * k + 0 * p for k in range(1, 7)},
    }
    return lambda path, _: table(path, laws, {"p": (2, 4, 8)}, seed=100 + number, noise=0.02)


COMMITS = 12
for number in range(COMMITS):
    INPUTS[f"c{number:02}.csv"] = commit(number, 1.5 if number >= 10 else 1.0)
INPUTS["commits.txt"] = text("".join(f"c{number:02}\n" for number in range(COMMITS)))


# MPI benchmarks.

MPI_SIZES = (8, 1024)


def slow_collectives(p: float, m: float) -> dict[str, float]:
    """Allreduce is slower than its parts; Allgather will be slower than Alltoall."""
    times = collectives.by_size(p, m)
    times["Allreduce"] = 1.3 * (times["Reduce"] + times["Bcast"])
    return times | {
        "Gather": 1 + 0.05 * p,
        "Allgather": 2 + 0.1 * p,
        "Alltoall": 10 + 4 * np.log2(p),
    }


def collective_table(path: Path, laws: Callable, seed: int) -> None:
    found = collectives.rows(laws, (8, 16, 32, 64), MPI_SIZES, seed=seed, noise=0.02)
    found["latency_us"] = rounded(found["latency_us"])
    found.to_csv(path, index=False)


INPUTS["bench.csv"] = lambda path, _: collective_table(path, slow_collectives, 0)
INPUTS["mended.csv"] = lambda path, _: collective_table(path, collectives.by_size, 1)
INPUTS["slow.p4"] = lambda path, _: tuned_library.campaign(path, tuned_library.slow_allreduce)
INPUTS["ruled.p4"] = lambda path, _: tuned_library.campaign(
    path, tuned_library.with_the_rule, seed=2
)


def suite(name: str) -> Make:
    def make(path: Path, _: Callable) -> None:
        benchmark_output.write(path, name, benchmark_output.planted)

    return make


for name in ("reprompi", "osu", "imb", "skampi"):
    INPUTS[name] = suite(name)


# Traces.


def trace(ranks: int, program: Callable, *more: object) -> Make:
    return lambda path, _: traced(path, ranks, program, *more)


INPUTS["halo.p6"] = trace(6, exchange)
INPUTS["uneven.p8"] = trace(8, uneven)
INPUTS["kinds.p4"] = trace(4, everything, HALVES)
INPUTS["deadlock.p2"] = trace(2, head_to_head)
for p in (4, 8, 16, 32):
    INPUTS[f"ring.p{p}"] = trace(p, ring)
    INPUTS[f"plane.p{p}"] = trace(p, stencil2)
INPUTS["network.toml"] = text("""\
latency = "1.5 us"
overhead = "0.3 us"
gap = "0.1 us"
gap_per_byte = "0.08 ns"
eager = "16 KiB"
algorithms = { allreduce = "ring" }
source = "measured with Netgauge"
""")


# Bad inputs.

INPUTS["text.cubex"] = text("hello\n")
INPUTS["empty.cubex"] = text("")
INPUTS["nothing"] = lambda path, _: path.mkdir()
INPUTS["broken.csv"] = text("callpath,p,time\nmain,2,much\n")
INPUTS["negative.csv"] = text("callpath,p,time\nmain,2,-1\nmain,4,-2\nmain,8,-3\n")
INPUTS["unknown.toml"] = text('schema = 1\n[[expect]]\ncallpath = "main"\ngrows = "O(1)"\n')
INPUTS["config.toml"] = text("[defaults]\ntarget = 256\nconfidence = 0.8\n")
INPUTS["wrong.json"] = text(json.dumps({"schema": 99}))


@made("damaged")
def damaged(path: Path, _: Callable) -> None:
    """Write a series in which one profile is cut, and one run has other call paths."""
    profiles(path, SCALES)
    whole = (path / "app.p8.r1" / "profile.cubex").read_bytes()
    (path / "app.p8.r1" / "profile.cubex").write_bytes(whole[: len(whole) // 2])
