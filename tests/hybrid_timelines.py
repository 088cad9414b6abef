"""One timeline of a hybrid program, as profiles of all formats with threads.

All threads of a process compute in `solve`. Then the first thread calls MPI, and the others are
idle. Where a format states the region that started the threads, they are below it. In the other
formats they have roots of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

import caliper_writer
import cube_writer as cw
import tau_writer
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from hpctoolkit_files import metric_db
from trace_writer import Comm, Event, Thread, Trace, write_trace


@dataclass(frozen=True)
class Timeline:
    """The seconds of a process.

    Attributes
    ----------
    solve : computation of each thread; the first one computes longest
    mpi : communication of the first thread
    are_waits_recorded : whether the tool records the time of idle threads
    """

    solve: Sequence[float]
    mpi: float
    are_waits_recorded: bool

    @property
    def run_time(self) -> float:
        return self.solve[0] + self.mpi

    @property
    def waits(self) -> list[float]:
        """Recorded waiting of each thread; the first one never waits."""
        recorded = self.are_waits_recorded
        return [recorded * (self.run_time - own) if k else 0.0 for k, own in enumerate(self.solve)]

    def without_waits(self) -> Timeline:
        return replace(self, are_waits_recorded=False)


Write = Callable[[Path, Sequence[Timeline]], Path]
"""A function that writes a profile with a timeline of each process into a new folder."""


def tau(folder: Path, processes: Sequence[Timeline]) -> Path:
    threads = {}
    groups = {"MPI_Allreduce()": "MPI", "OpenMP_Implicit_Barrier": "OpenMP"}
    for rank, one in enumerate(processes):
        for k, (solve, wait) in enumerate(zip(one.solve, one.waits, strict=True)):
            root = ".TAU application"
            within = f"{root} => main" if k == 0 else root
            times = {root: (1.0, 0.0), within: (1.0, 0.0), f"{within} => solve": (1.0, solve * 1e6)}
            if k == 0:
                times[f"{within} => MPI_Allreduce()"] = (1.0, one.mpi * 1e6)
            if wait:
                times[f"{within} => OpenMP_Implicit_Barrier"] = (1.0, wait * 1e6)
            threads[rank, 0, k] = tau_writer.call_paths(times, groups)
    return tau_writer.write(folder, threads)


HPCTOOLKIT = (
    (-1, "main thread"),
    (0, "main"),
    (1, "solve"),
    (1, "MPI_Allreduce"),
    (-1, "application thread"),
    (4, "worker"),
    (5, "solve"),
    (5, "<omp barrier>"),
)
"""Callers and names of the contexts of both versions."""
STATEMENT, CALL = 3 + len(HPCTOOLKIT), 3 + 2 * len(HPCTOOLKIT)
"""Numbers of the first statement and of the first call in version 2."""
MASTER_SOLVE, MASTER_MPI, WORKER_SOLVE, WORKER_WAIT = 2, 3, 6, 7


def _of_contexts(one: Timeline, thread: int) -> dict[int, float]:
    if thread == 0:
        return {MASTER_SOLVE: one.solve[0], MASTER_MPI: one.mpi}
    return {WORKER_SOLVE: one.solve[thread], WORKER_WAIT: one.waits[thread]}


def hpctoolkit4(folder: Path, processes: Sequence[Timeline]) -> Path:
    contexts = [Scope(caller, Kind.FUNCTION, name, f"{name}.c", 1) for caller, name in HPCTOOLKIT]
    contexts += [Scope(k, Kind.LINE, file="a.c", line=k + 1) for k in range(len(HPCTOOLKIT))]
    measured = []
    for rank, one in enumerate(processes):
        for thread in range(len(one.solve)):
            costs = np.zeros(len(contexts))
            for context, value in _of_contexts(one, thread).items():
                costs[len(HPCTOOLKIT) + context] = value
            ids = {"NODE": 0, "RANK": rank, "THREAD": thread}
            measured.append(Measured(ids, {"REALTIME (sec)": costs}))
    return write_database(folder, contexts, measured)


def hpctoolkit2(folder: Path, processes: Sequence[Timeline]) -> Path:
    folder.mkdir(parents=True)
    names = [
        f'<Procedure i="{100 + k}" n="{escape(name)}"/>' for k, (_, name) in enumerate(HPCTOOLKIT)
    ]
    total = np.zeros(len(HPCTOOLKIT))
    for rank, one in enumerate(processes):
        for thread in range(len(one.solve)):
            costs = np.zeros(len(HPCTOOLKIT))
            for context, value in _of_contexts(one, thread).items():
                costs[context] = value * 1e6
            # The program comes first, then the functions, their statements and their calls.
            rows = np.zeros((2 + 3 * len(HPCTOOLKIT), 2))
            rows[0, 0] = costs.sum()
            rows[STATEMENT - 1 : CALL - 1] = costs[:, np.newaxis]
            metric_db(folder, rank, thread, rows)
            total += costs
    (folder / "experiment.xml").write_text(_xml(names, total))
    return folder


def _xml(names: Sequence[str], total: np.ndarray) -> str:
    below: list[list[int]] = [[] for _ in HPCTOOLKIT]
    for k, (caller, _) in enumerate(HPCTOOLKIT):
        if caller >= 0:
            below[caller].append(k)

    def sums(inclusive: float, exclusive: float) -> str:
        return f'<M n="10" v="{inclusive!r}"/><M n="11" v="{exclusive!r}"/>'

    def whole(k: int) -> float:
        return float(total[k]) + sum(whole(callee) for callee in below[k])

    def frame(k: int) -> str:
        own = float(total[k])
        statement = f'<S i="{STATEMENT + k}" l="9">{sums(own, own)}</S>'
        calls = "".join(f'<C i="{CALL + c}" l="{c}">{frame(c)}</C>' for c in below[k])
        head = f'<PF i="{2 + k}" n="{100 + k}" lm="2" f="3" l="{k}">'
        return f"{head}{sums(whole(k), own)}{statement}{calls}</PF>"

    roots = "".join(frame(k) for k, (caller, _) in enumerate(HPCTOOLKIT) if caller < 0)
    return (
        '<?xml version="1.0"?>\n'
        "<!DOCTYPE HPCToolkitExperiment [<!ELEMENT HPCToolkitExperiment ANY>]>\n"
        '<HPCToolkitExperiment version="2.2"><Header n="app"/><SecCallPathProfile><SecHeader>'
        '<MetricTable><Metric i="10" n="REALTIME (usec):Sum (I)" t="inclusive" md="time"/>'
        '<Metric i="11" n="REALTIME (usec):Sum (E)" t="exclusive"/></MetricTable><MetricDBTable>'
        '<MetricDB i="0" n="REALTIME (usec) (I)" db-id="0" db-num-metrics="2"/>'
        '<MetricDB i="1" n="REALTIME (usec) (E)" db-id="1" db-num-metrics="2"/></MetricDBTable>'
        '<LoadModuleTable><LoadModule i="2" n="/bin/app"/></LoadModuleTable>'
        '<FileTable><File i="3" n="./src/app.c"/></FileTable>'
        f"<ProcedureTable>{''.join(names)}</ProcedureTable></SecHeader>"
        f'<SecCallPathProfileData><M n="10" v="{float(total.sum())!r}"/>{roots}'
        "</SecCallPathProfileData></SecCallPathProfile></HPCToolkitExperiment>\n"
    )


def scorep(folder: Path, processes: Sequence[Timeline]) -> Path:
    names = ["main", "solve", "MPI_Allreduce", "!$omp parallel", "solve", "!$omp implicit barrier"]
    roles = {
        "!$omp parallel": "parallel",
        "!$omp implicit barrier": "implicit barrier",
        "MPI_Allreduce": "all2all",
    }
    tree = cw.Tree([-1, 0, 0, 0, 3, 3], names, roles=roles)
    columns = []
    for one in processes:
        for thread, (solve, wait) in enumerate(zip(one.solve, one.waits, strict=True)):
            is_first = thread == 0
            columns.append([0, is_first * solve, is_first * one.mpi, 0, (not is_first) * solve,
                            wait])  # fmt: skip
    time = np.array(columns, float).T
    metrics = [cw.MetricToWrite("time", tree.subtree_sums(time), "INCLUSIVE", unit="sec")]
    folder.mkdir(parents=True)
    machine = cw.Machine([len(one.solve) for one in processes])
    return cw.write(folder / "profile.cubex", tree, metrics, machine)


def caliper(folder: Path, processes: Sequence[Timeline]) -> Path:
    writer, name = caliper_writer.Writer(), "sum#sum#time.duration"
    for rank, one in enumerate(processes):
        for thread, (solve, wait) in enumerate(zip(one.solve, one.waits, strict=True)):
            at = {"mpi.rank": rank, "omp.thread.id": thread}
            within = ("main",) if thread == 0 else ()
            writer.record((*within, "solve"), {**at, name: solve})
            if thread == 0:
                writer.record((*within, "MPI_Allreduce"), {**at, name: one.mpi})
            if wait:
                writer.record(within, {**at, "omp.sync": "barrier", name: wait})
    writer.globals({"mpi.world.size": len(processes)})
    folder.mkdir(parents=True)
    (folder / "run.cali").write_text(writer.text())
    return folder / "run.cali"


def otf2(folder: Path, processes: Sequence[Timeline]) -> Path:
    def ticks(seconds: float) -> int:
        return round(seconds * 10**9)

    teams = {f"team {rank}": [rank] for rank in range(len(processes))}
    written = []
    for rank, one in enumerate(processes):
        team, solve, end = Comm(f"team {rank}"), ticks(one.solve[0]), ticks(one.run_time)
        first: list[Event] = [
            ("enter", 0, "main"),
            ("thread_team_begin", 0, team),
            ("enter", 0, "solve"),
            ("leave", solve, "solve"),
            ("enter", solve, "MPI_Allreduce"),
            ("leave", end, "MPI_Allreduce"),
            ("thread_team_end", end, team),
            ("leave", end, "main"),
        ]
        threads = [Thread(first)]
        for own, wait in list(zip(one.solve, one.waits, strict=True))[1:]:
            stop = ticks(own)
            events: list[Event] = [
                ("thread_team_begin", 0, team),
                ("enter", 0, "solve"),
                ("leave", stop, "solve"),
            ]
            if wait:
                events += [("enter", stop, "!$omp implicit barrier"),
                           ("leave", end, "!$omp implicit barrier")]  # fmt: skip
            threads.append(Thread([*events, ("thread_team_end", end, team)]))
        written.append(threads)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return write_trace(folder, Trace(written, communicators=teams))


FORMATS: dict[str, Write] = {
    "tau": tau,
    "hpctoolkit2": hpctoolkit2,
    "hpctoolkit4": hpctoolkit4,
    "scorep": scorep,
    "caliper": caliper,
    "otf2": otf2,
}
