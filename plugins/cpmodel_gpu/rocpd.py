"""Databases of rocprofv3 (rocpd), with calls of HIP and ranges of ROCTx around GPU activities.

Each table has an identifier behind its name, and a view of the plain name joins all of them. Views
are not read, so every identifier is a group of processes of its own. A call and the activities that
it launches have one number of their stack in the table of events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path, PurePath

import numpy as np

from callpath_modeler.arrays import Int32Array, Int64Array
from callpath_modeler.errors import InputError, reading
from callpath_modeler.profile.schema import Region
from callpath_modeler.readers.base import StepRange
from cpmodel_gpu.activities import Copy
from cpmodel_gpu.database import Database, opened
from cpmodel_gpu.names import copy_region, kernel_region
from cpmodel_gpu.paths import Paths
from cpmodel_gpu.steps import NumberedRange, numbered, numbered_ranges, range_region, steps_of_file
from cpmodel_gpu.timeline import NO_CORRELATION, Calls, Launched, Timeline

REGIONS = "rocpd_region"
_EVENTS = "rocpd_event"
_KERNELS = "rocpd_kernel_dispatch"
_COPIES = "rocpd_memory_copy"
TABLES = (REGIONS, _KERNELS, _COPIES)
_GROUP_BITS = 24
_MOST_GROUPS = 1 << 16
_MARKER = "MARKER"
_DIRECTIONS = {
    "HOST_TO_DEVICE": Copy.TO_DEVICE,
    "DEVICE_TO_HOST": Copy.TO_HOST,
    "DEVICE_TO_DEVICE": Copy.PEER,
}


def suffixes_of(database: Database) -> list[str]:
    """Return the identifiers behind the names of the tables."""
    return sorted(
        {
            name.removeprefix(table)
            for name in database.tables
            for table in TABLES
            if name == table or name.startswith(table + "_")
        }
    )


class RocpdFile:
    """Calls and activities of one database.

    Attributes
    ----------
    timeline : calls and activities
    steps : steps of each process that has some, of those that are selected
    ranks : empty, because these databases state no ranks
    programs : name of the program of each process
    creator : name of the tool
    left_out, wrong : as in `NsightFile`
    """

    def __init__(self, path: Path, paths: Paths, selected: StepRange | None = None) -> None:
        self.timeline = Timeline(paths)
        self.left_out = self.wrong = 0
        self.ranks: dict[int, int] = {}
        self.programs: dict[int, str] = {}
        self.creator = "rocprofv3"
        hint = "record the program again: `rocprofv3 --runtime-trace -- PROGRAM`"
        with reading(path, hint), opened(path) as database:
            suffixes = suffixes_of(database)[:_MOST_GROUPS]
            if not suffixes:
                raise InputError(f"{path}: the database has no tables of rocprofv3", hint=hint)
            groups = [_Group(database, paths, each, k) for k, each in enumerate(suffixes)]
            ranges = chain.from_iterable(group.numbered_ranges() for group in groups)
            self.steps = steps_of_file(path, ranges, selected)
            self.timeline.selected = None if selected is None else self.steps
            # Ranges are read again with the other calls.
            database.wrong = 0
            for group in groups:
                group.add_calls(self.timeline)
            self.timeline.nest()
            for group in groups:
                group.add_kernels(self.timeline)
                group.add_copies(self.timeline)
                self.programs |= group.programs()
            self.wrong = database.wrong


class _Group:
    """The tables with one identifier.

    Parameters
    ----------
    suffix : the identifier with the characters before it
    number : number of the group, which is part of the numbers of its processes
    """

    def __init__(self, database: Database, paths: Paths, suffix: str, number: int) -> None:
        self._database, self._paths = database, paths
        self._suffix, self._number = suffix, number
        self._numbers: dict[tuple[str, int], int] = {}
        names = database.records(f"rocpd_string{suffix}", ("id", "string"), 1 << 20)
        self._strings = {
            number: text
            for number, text in names
            if isinstance(number, int) and isinstance(text, str)
        }
        columns = ("id", "stack_id", "category_id")
        blocks = [*database.blocks(_EVENTS + suffix, columns)]
        joined = [
            np.concatenate([block[k] for block in blocks]) if blocks else np.empty(0, np.int64)
            for k in range(3)
        ]
        order = np.argsort(joined[0], kind="stable")
        self._event, self._stack, self._category = (column[order] for column in joined)
        self._messages = self._messages_of_events()

    def numbered_ranges(self) -> Iterator[NumberedRange]:
        """Yield the ranges with the number of a step in their messages."""
        columns = ("start", "end", "pid", "tid", "event_id")
        if not any(map(numbered, self._messages.values())):
            return
        for start, end, process, thread, event in self._blocks(REGIONS, columns):
            names = (self._messages.get(each, "") for each in event.tolist())
            yield from numbered_ranges(self._process(process), thread, start, end, names)

    def add_calls(self, timeline: Timeline) -> None:
        """Add the calls and ranges of the group."""
        columns = ("start", "end", "pid", "tid", "name_id", "event_id")
        for start, end, process, thread, name, event in self._blocks(REGIONS, columns):
            stack = self._of_events(self._stack, event)
            category = self._of_events(self._category, event)
            regions = [
                self._call_number(*each)
                for each in zip(name.tolist(), category.tolist(), event.tolist(), strict=True)
            ]
            region = np.array(regions, np.int32)
            calls = Calls(self._process(process), thread, start, end, region, stack)
            timeline.add_calls(calls)

    def add_kernels(self, timeline: Timeline) -> None:
        """Add the kernels of the group."""
        table = f"rocpd_info_kernel_symbol{self._suffix}"
        columns = ("id", "kernel_name", "display_name")
        names = {
            k: str(shown or name or "")
            for k, name, shown in self._database.records(table, columns, 1 << 20)
        }

        def region(kernel: int) -> Region:
            return kernel_region(names.get(kernel) or "(unnamed kernel)", "hip")

        of_kernels = ("start", "end", "pid", "agent_id", "queue_id", "kernel_id", "event_id")
        for start, end, process, agent, queue, kernel, event in self._blocks(_KERNELS, of_kernels):
            regions = self._numbered("kernel", kernel, region)
            launched = Launched(
                self._process(process),
                self._of_events(self._stack, event),
                start,
                end,
                regions,
                agent,
                queue,
            )
            timeline.add_activities(launched)

    def add_copies(self, timeline: Timeline) -> None:
        """Add the copies of the group."""
        columns = ("start", "end", "pid", "dst_agent_id", "src_agent_id", "queue_id", "name_id",
                   "size", "event_id")  # fmt: skip
        for block in self._blocks(_COPIES, columns):
            start, end, process, to, source, queue, name, size, event = block
            distinct, inverse = np.unique(name, return_inverse=True)
            directions = np.array([self._direction(k) for k in distinct.tolist()], np.int64)
            copy = directions[inverse]
            copy[(copy == Copy.PEER) & (to == source)] = Copy.WITHIN
            regions = self._numbered("copy", copy, lambda k: copy_region(Copy(k), "hip"))
            # A copy to the host is work of the device that it comes from.
            device = np.where(copy == Copy.TO_HOST, source, to)
            launched = Launched(
                self._process(process), self._of_events(self._stack, event), start, end, regions,
                device, queue, np.maximum(size, 0), copy,
            )  # fmt: skip
            timeline.add_activities(launched)

    def programs(self) -> dict[int, str]:
        """Return the name of the program of each process."""
        table = f"rocpd_info_process{self._suffix}"
        return {
            self._of_group(process): PurePath(command.split()[0]).name
            for process, command in self._database.records(table, ("id", "command"), 1 << 14)
            if isinstance(process, int) and isinstance(command, str) and command.split()
        }

    def _blocks(self, table: str, columns: Sequence[str]) -> Iterator[list[Int64Array]]:
        return self._database.blocks(table + self._suffix, columns)

    def _of_group(self, process: int) -> int:
        return (self._number << _GROUP_BITS) | (process & ((1 << _GROUP_BITS) - 1))

    def _process(self, process: Int64Array) -> Int64Array:
        return (self._number << _GROUP_BITS) | (process & ((1 << _GROUP_BITS) - 1))

    def _of_events(self, column: Int64Array, event: Int64Array) -> Int64Array:
        """Return the value of each event in a column of the table of events; -1 = none."""
        if not len(self._event):
            return np.full(len(event), NO_CORRELATION, np.int64)
        place = np.searchsorted(self._event, event)
        place[place == len(self._event)] = 0
        known = self._event[place] == event
        return np.maximum(np.where(known, column[place], NO_CORRELATION), NO_CORRELATION)

    def _numbered(self, kind: str, keys: Int64Array, region: Callable[[int], Region]) -> Int32Array:
        distinct, inverse = np.unique(keys, return_inverse=True)
        found = []
        for key in distinct.tolist():
            if (kind, key) not in self._numbers:
                self._numbers[kind, key] = self._paths.regions.number(region(key))
            found.append(self._numbers[kind, key])
        return np.array(found, np.int32)[inverse]

    def _call_number(self, name: int, category: int, event: int) -> int:
        """Return the number of the region of a call, or of a range with its message."""
        message = self._messages.get(event, "")
        key = message or f"{category}", -1 if message else name
        if key not in self._numbers:
            kind = self._strings.get(category, "")
            text = message or self._strings.get(name, "") or "(unnamed call)"
            paradigm = "user" if _MARKER in kind else "mpi" if text.startswith("MPI_") else "hip"
            make = range_region if message else Region
            self._numbers[key] = self._paths.regions.number(make(text, paradigm=paradigm))
        return self._numbers[key]

    def _messages_of_events(self) -> dict[int, str]:
        """Return the messages of the ranges of ROCTx by the number of their event."""
        markers = [k for k, text in self._strings.items() if _MARKER in text]
        if not markers or not np.isin(self._category, markers).any():
            return {}
        found = {}
        table = _EVENTS + self._suffix
        blocks = self._database.blocks_with_text(table, ("id", "category_id"), "extdata")
        for (event, category), texts in blocks:
            for row in np.flatnonzero(np.isin(category, markers)).tolist():
                message = _message(texts[row])
                if message:
                    found[int(event[row])] = message
        return found

    def _direction(self, name: int) -> Copy:
        text = self._strings.get(name, "").upper()
        return next((kind for words, kind in _DIRECTIONS.items() if words in text), Copy.OTHER)


def _message(text: object) -> str:
    """Return the message in the further data of an event, or ""."""
    if not isinstance(text, str) or "message" not in text:
        return ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    message = found.get("message") if isinstance(found, dict) else None
    return message if isinstance(message, str) else ""
