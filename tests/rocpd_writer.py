"""Small databases with the tables of rocprofv3, as its documented schema has them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

_TABLES = {
    "rocpd_string": "string TEXT NOT NULL",
    "rocpd_info_process": "nid INTEGER, pid INTEGER NOT NULL, command TEXT",
    "rocpd_info_kernel_symbol": "nid INTEGER, pid INTEGER, kernel_name TEXT, display_name TEXT",
    "rocpd_event": "category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, "
    "correlation_id INTEGER, extdata JSONB DEFAULT '{}' NOT NULL",
    "rocpd_region": "nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER NOT NULL, "
    "start BIGINT NOT NULL, end BIGINT NOT NULL, name_id INTEGER NOT NULL, event_id INTEGER",
    "rocpd_kernel_dispatch": "nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER, "
    "agent_id INTEGER NOT NULL, kernel_id INTEGER NOT NULL, queue_id INTEGER NOT NULL, "
    "stream_id INTEGER NOT NULL, start BIGINT NOT NULL, end BIGINT NOT NULL, event_id INTEGER",
    "rocpd_memory_copy": "nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER, "
    "start BIGINT NOT NULL, end BIGINT NOT NULL, name_id INTEGER NOT NULL, dst_agent_id INTEGER, "
    "src_agent_id INTEGER, size INTEGER NOT NULL, queue_id INTEGER, event_id INTEGER",
}


class Database:
    """A database that is written row by row."""

    def __init__(self, path: Path, suffix: str = "_0f1e") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self._suffix = path, suffix
        self._connection = sqlite3.connect(path)
        for name, columns in _TABLES.items():
            self._connection.execute(
                f"CREATE TABLE `{name}{suffix}` (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
                f"guid TEXT DEFAULT 'g' NOT NULL, {columns})"
            )
            self._connection.execute(
                f"CREATE VIEW `{name}` AS SELECT * FROM `{name}{suffix}`"  # noqa: S608
            )
        self._strings: dict[str, int] = {}

    def add(self, table: str, **values: object) -> int:
        """Add a row; return its number."""
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        query = f"INSERT INTO `{table}{self._suffix}` ({names}) VALUES ({marks})"  # noqa: S608
        return int(self._connection.execute(query, [*values.values()]).lastrowid or 0)

    def string(self, text: str) -> int:
        """Return the number of a text."""
        if text not in self._strings:
            self._strings[text] = self.add("rocpd_string", string=text)
        return self._strings[text]

    def event(self, category: str, stack: int, **data: object) -> int:
        """Add an event; return its number."""
        return self.add("rocpd_event", category_id=self.string(category), stack_id=stack,
                        extdata=json.dumps(data))  # fmt: skip

    def call(self, name: str, start: int, end: int, stack: int, process: int = 1) -> None:
        """Add a call of HIP."""
        event = self.event("HIP_RUNTIME_API", stack)
        self.add("rocpd_region", nid=1, pid=process, tid=process, start=start, end=end,
                 name_id=self.string(name), event_id=event)  # fmt: skip

    def range(self, message: str, start: int, end: int, stack: int, process: int = 1) -> None:
        """Add a range of ROCTx."""
        event = self.event("MARKER_CORE_API", stack, message=message)
        self.add("rocpd_region", nid=1, pid=process, tid=process, start=start, end=end,
                 name_id=self.string("roctxThreadRangeA"), event_id=event)  # fmt: skip

    def kernel(self, name: str, start: int, end: int, stack: int, process: int = 1) -> None:
        """Add a kernel."""
        symbol = self.add("rocpd_info_kernel_symbol", kernel_name=name, display_name=name)
        self.add("rocpd_kernel_dispatch", nid=1, pid=process, agent_id=4, kernel_id=symbol,
                 queue_id=1, stream_id=0, start=start, end=end,
                 event_id=self.event("KERNEL_DISPATCH", stack))  # fmt: skip

    def copy(self, start: int, end: int, stack: int, size: int, direction: str) -> None:
        """Add a copy."""
        name = self.string(f"MEMORY_COPY_{direction}")
        self.add("rocpd_memory_copy", nid=1, pid=1, start=start, end=end, name_id=name, size=size,
                 dst_agent_id=4, src_agent_id=0, queue_id=1,
                 event_id=self.event("MEMORY_COPY", stack))  # fmt: skip

    def close(self) -> Path:
        """Write the database; return its path."""
        with closing(self._connection) as connection:
            connection.commit()
        return self.path


def small(path: Path, factor: int = 1) -> Path:
    """Write a program with a range, a copy, two kernels, and a lost launch."""
    database = Database(path)
    database.add("rocpd_info_process", nid=1, pid=77, command="/opt/app/solver -n 5")
    database.range("main", 0, 1000, 1)
    database.call("hipMemcpy", 100, 200, 2)
    database.call("hipLaunchKernel", 210, 230, 3)
    database.call("hipDeviceSynchronize", 240, 600, 4)
    database.copy(120, 190, 2, 8192, "HOST_TO_DEVICE")
    database.kernel("void add<float>(float*)", 250, 250 + 100 * factor, 3)
    database.kernel("old()", 10, 20, 99)
    return database.close()
