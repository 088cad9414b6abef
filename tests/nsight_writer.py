"""Small databases with the tables of Nsight Systems."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

PUSH_POP, START_END, DOMAIN = 59, 60, 75
_COLUMNS = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, "
    "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, demangledName INTEGER, shortName INTEGER, graphNodeId INTEGER",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start INTEGER NOT NULL, end INTEGER NOT NULL, "
    "deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, graphId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, "
    "globalTid INTEGER, textId INTEGER, domainId INTEGER",
    "MPI_P2P_EVENTS": "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, "
    "textId INTEGER, commHandle INTEGER, tag INTEGER, remoteRank INTEGER, size INTEGER",
    "MPI_COLLECTIVES_EVENTS": "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, "
    "textId INTEGER, commHandle INTEGER, rootRank INTEGER, size INTEGER, recvSize INTEGER",
    "MPI_RANKS": "globalPid INTEGER, rank INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER NOT NULL, devStateName TEXT NOT NULL, "
    "name TEXT NOT NULL, nameEnum INTEGER NOT NULL, value TEXT NOT NULL",
    "CUDA_CALLCHAINS": "id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, "
    "unresolved INTEGER, stackDepth INTEGER NOT NULL",
}  # fmt: skip


def global_pid(pid: int) -> int:
    """Return the number of a process as the databases have it."""
    return (1 << 56) | (pid << 24)


def global_tid(pid: int, tid: int) -> int:
    """Return the number of a thread as the databases have it."""
    return global_pid(pid) | tid


class Report:
    """A database that is written table by table; texts get numbers."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._rows: dict[str, list[Mapping[str, object]]] = {}

    def text(self, value: str) -> int:
        """Return the number of a text."""
        return self._texts.setdefault(value, len(self._texts) + 1)

    def add(self, table: str, **values: object) -> None:
        """Add a row to a table."""
        self._rows.setdefault(table, []).append(values)

    def call(
        self, name: str, start: int, end: int, correlation: int, pid: int = 100,
        tid: int | None = None, chain: int | None = None, kind: int = 0,
    ) -> None:  # fmt: skip
        """Add a call of CUDA."""
        self.add(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, eventClass=kind, returnValue=0,
            globalTid=global_tid(pid, pid if tid is None else tid), correlationId=correlation,
            nameId=self.text(name), callchainId=chain,
        )  # fmt: skip

    def kernel(
        self, name: str, start: int, end: object, correlation: int, pid: int = 100,
        stream: int = 7, device: int = 0, node: int | None = None,
    ) -> None:  # fmt: skip
        """Add a kernel."""
        self.add(
            "CUPTI_ACTIVITY_KIND_KERNEL", start=start, end=end, deviceId=device, contextId=1,
            streamId=stream, correlationId=correlation, globalPid=global_pid(pid),
            demangledName=self.text(name), shortName=self.text(name.partition("(")[0]),
            graphNodeId=node,
        )  # fmt: skip

    def copy(
        self, start: int, end: int, correlation: int, size: int, kind: int = 1, pid: int = 100
    ) -> None:
        """Add a copy."""
        self.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY", start=start, end=end, deviceId=0, streamId=7,
            correlationId=correlation, globalPid=global_pid(pid), bytes=size, copyKind=kind,
        )  # fmt: skip

    def range(
        self, name: str, start: int, end: object, pid: int = 100, tid: int | None = None,
        kind: int = PUSH_POP, domain: int = 0,
    ) -> None:  # fmt: skip
        """Add a range of NVTX."""
        thread = global_tid(pid, pid if tid is None else tid)
        self.add("NVTX_EVENTS", start=start, end=end, eventType=kind, text=name, globalTid=thread,
                 domainId=domain)  # fmt: skip

    def environment(self, text: str) -> None:
        """Add the environment in which the program was started."""
        self.add("TARGET_INFO_SYSTEM_ENV", globalVid=1, devStateName="Local",
                 name="DeviceEnvironment", nameEnum=1, value=text)  # fmt: skip

    def write(self, path: Path, further: Sequence[str] = ()) -> Path:
        """Write the database, and run further statements of SQL."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as database:
            for table in ["StringIds", *self._rows]:
                database.execute(f"CREATE TABLE {table} ({_COLUMNS[table]})")
                if table != "StringIds":
                    _insert(database, table, self._rows[table])
            texts = [{"id": k, "value": text} for text, k in self._texts.items()]
            _insert(database, "StringIds", texts)
            for each in further:
                database.execute(each)
            database.commit()
        return path


def _insert(database: sqlite3.Connection, table: str, rows: Iterable[Mapping[str, object]]) -> None:
    for row in rows:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*row.values()])  # noqa: S608


def small(pid: int = 100, factor: int = 1) -> Report:
    """Return a program with ranges, two streams, a copy, and a lost launch."""
    report = Report()
    report.range("main", 0, 1000, pid)
    report.range("step", 100, 600, pid)
    report.call("cudaMemcpyAsync_v3020", 110, 130, 1, pid)
    report.call("cudaLaunchKernel_v7000", 140, 150, 2, pid)
    report.call("cudaLaunchKernel_v7000", 160, 175, 3, pid)
    report.call("cudaDeviceSynchronize_v3020", 200, 500, 4, pid)
    report.copy(120, 150, 1, 4096, 1, pid)
    report.kernel("add(float*, int)", 150, 150 + 200 * factor, 2, pid, 7)
    report.kernel("mul(float*)", 250, 450, 3, pid, 8)
    report.kernel("add(float*, int)", 20, 30, 99, pid, 7)
    return report
