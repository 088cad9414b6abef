"""Databases of Nsight Systems, as `nsys export --type sqlite` makes them.

Tables are made when there is something to store, and columns differ from version to version. The
call path of a call is that of the NVTX ranges around it. Outside of ranges, it is the recorded call
chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from callpath_modeler.arrays import Int32Array, Int64Array
from callpath_modeler.errors import InputError, reading
from callpath_modeler.profile.schema import Region
from callpath_modeler.readers.base import StepRange
from cpmodel_gpu.activities import Copy
from cpmodel_gpu.database import MISSING, Database, opened
from cpmodel_gpu.names import copy_region, kernel_region
from cpmodel_gpu.paths import WHOLE_PROGRAM, Paths
from cpmodel_gpu.steps import NumberedRange, Steps, numbered_ranges, range_region, steps_of_file
from cpmodel_gpu.timeline import NO_CORRELATION, Calls, Launched, Timeline

API_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
_COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
_SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
_GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_RANGES = "NVTX_EVENTS"
_CHAINS = "CUDA_CALLCHAINS"
_MPI = (
    "MPI_P2P_EVENTS",
    "MPI_COLLECTIVES_EVENTS",
    "MPI_START_WAIT_EVENTS",
    "MPI_OTHER_EVENTS",
)
KNOWN = frozenset({API_CALLS, _KERNELS, _COPIES, _SETS, _GRAPHS, _RANGES, *_MPI})
"""Tables of which a profile needs at least one."""

_PROCESS_BITS = 24
"""Bits of the number of a thread in the number of a process and thread."""
_PUSH_POP, _START_END, _DOMAIN = 59, 60, 75
"""Types of events of NVTX: ranges of a stack, ranges between any two moments, and domains."""
_EXTRA_PROF = "de.tu-darmstadt.parallel.extra_prof"
"""Domain of Extra-Prof, whose ranges are named by their call paths."""
_PATH_SEPARATOR = re.compile(r"(?<!operator)->")

_DIRECTIONS = {
    1: Copy.TO_DEVICE,
    2: Copy.TO_HOST,
    3: Copy.TO_DEVICE,
    4: Copy.TO_HOST,
    5: Copy.WITHIN,
    6: Copy.WITHIN,
    7: Copy.WITHIN,
    8: Copy.WITHIN,
    10: Copy.PEER,
    11: Copy.TO_DEVICE,
    12: Copy.TO_HOST,
    13: Copy.PEER,
}
"""Directions of copies by their kind in CUPTI; 9 is from host to host, 11 to 13 are migrations."""
_RECEIVING = re.compile(r"recv", re.IGNORECASE)
_SENDING = re.compile(r"send", re.IGNORECASE)
_LONGEST_CHAIN = 512
_SYSTEM, _ENVIRONMENT = "TARGET_INFO_SYSTEM_ENV", "DeviceEnvironment"
"""Table about the system, and its entry with the environment in which the program was started."""
_LONGEST_ENVIRONMENT = 1 << 20
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
"""Variables with the rank. Launchers of MPI may run in one task of Slurm, so that one is last."""
_RANK = re.compile(
    r"(?<![A-Za-z0-9_])(" + "|".join(_RANKS) + r")[\"']?\s?[=:]\s?[\"']?(\d{1,7})(?![\w.])"
)
"""Variables in the environment; its separators are not documented."""


class NsightFile:
    """Calls and activities of one database.

    Attributes
    ----------
    timeline : calls and activities
    ranks : rank of each process, by the number of the process, as the file states it
    programs : name of the program of each process
    creator : name and version of the tool
    left_out : number of ranges that are no part of a stack
    wrong : number of texts and blobs in columns of numbers
    steps : steps of each process that has some, of those that are selected
    """

    def __init__(self, path: Path, paths: Paths, selected: StepRange | None = None) -> None:
        self.timeline = Timeline(paths)
        self.steps: dict[int, Steps] = {}
        self.left_out = self.wrong = 0
        self._paths = paths
        self._regions: dict[tuple[str, int], int] = {}
        hint = "export the report again: `nsys export --type sqlite REPORT.nsys-rep`"
        with reading(path, hint), opened(path) as database:
            if not KNOWN.intersection(database.tables):
                raise InputError(
                    f"{path}: the database has no CUDA, NVTX or MPI events",
                    hint="record them: `nsys profile --trace cuda,nvtx,mpi PROGRAM`",
                )
            self._database = database
            self._select_steps(path, selected)
            # Ranges are read again with the other events.
            self.left_out = database.wrong = 0
            self._read()
            self.ranks = _ranks(database) or self._rank_of_environment()
            self.programs = _programs(database)
            self.creator = _creator(database)
            self.wrong = database.wrong

    def _select_steps(self, path: Path, selected: StepRange | None) -> None:
        self.steps = steps_of_file(path, self._numbered_ranges(), selected)
        self.timeline.selected = None if selected is None else self.steps

    def _numbered_ranges(self) -> Iterator[NumberedRange]:
        for start, end, thread, ranges in self._ranges():
            names = ("" if is_path else name for name, is_path in ranges)
            yield from numbered_ranges(thread >> _PROCESS_BITS, thread, start, end, names)

    def _rank_of_environment(self) -> dict[int, int]:
        """Return the rank that the launcher gave to the only process; nothing = not known.

        The environment is that of the tool, so it says nothing about one process of several.
        """
        text = self._database.entry(_SYSTEM, _ENVIRONMENT, _LONGEST_ENVIRONMENT)
        stated = dict(_RANK.findall(text))
        process = self.timeline.only_process
        if process < 0 or not stated:
            return {}
        return {process: int(next(stated[name] for name in _RANKS if name in stated))}

    def _read(self) -> None:
        self._add_api_calls()
        self._add_ranges()
        self._add_mpi()
        self.timeline.nest()
        self._add_kernels()
        self._add_copies()
        self._add_sets()
        self._add_graphs()

    def _numbered(self, kind: str, keys: Int64Array, region: Callable[[int], Region]) -> Int32Array:
        """Return the number of the region of each key, [n]."""
        distinct, inverse = np.unique(keys, return_inverse=True)
        found = []
        for key in distinct.tolist():
            if (kind, key) not in self._regions:
                self._regions[kind, key] = self._paths.regions.number(region(key))
            found.append(self._regions[kind, key])
        return np.array(found, np.int32)[inverse]

    def _api_region(self, name: int) -> Region:
        return Region(self._database.string(name) or "(unnamed call)", paradigm="cuda")

    def _add_api_calls(self) -> None:
        chains = _Chains(self._database, self._paths)
        columns = ("start", "end", "globalTid", "correlationId", "nameId", "callchainId")
        for start, end, thread, correlation, name, chain in self._database.blocks(
            API_CALLS, columns
        ):
            region = self._numbered("call", name, self._api_region)
            correlation[correlation < 0] = NO_CORRELATION
            below = chains.callers(chain, region)
            process = thread >> _PROCESS_BITS
            self.timeline.add_calls(Calls(process, thread, start, end, region, correlation, below))

    def _ranges(
        self,
    ) -> Iterator[tuple[Int64Array, Int64Array, Int64Array, list[tuple[str, bool]]]]:
        """Yield start, end, thread and name of the ranges of stacks, in blocks.

        A name has whether it is a call path of Extra-Prof.
        """
        columns = ("start", "end", "globalTid", "eventType", "textId", "domainId")
        # Ranges without a domain are in domain 0.
        extra_prof = (
            {
                domain
                for kind, domain, text in self._database.records(
                    _RANGES, ("eventType", "domainId", "text"), 1 << 12
                )
                if kind == _DOMAIN and text == _EXTRA_PROF
            }
            if self._database.has(_RANGES, "domainId", "text")
            else set()
        )
        for block, texts in self._database.blocks_with_text(_RANGES, columns, "text"):
            start, end, thread, kind, text_id, domain = block
            rows = np.flatnonzero((kind == _PUSH_POP) & (end != MISSING))
            self.left_out += int(np.count_nonzero(kind == _START_END))
            names = [
                (text if isinstance(text, str) else self._database.string(number), of in extra_prof)
                for text, number, of in zip(
                    (texts[row] for row in rows.tolist()),
                    *(text_id[rows].tolist(), domain[rows].tolist()),
                    strict=True,
                )
            ]
            yield start[rows], end[rows], thread[rows], names

    def _add_ranges(self) -> None:
        for start, end, thread, names in self._ranges():
            region = np.array([self._range_number(*each) for each in names], np.int32)
            calls = Calls(thread >> _PROCESS_BITS, thread, start, end, region)
            self.timeline.add_calls(calls)

    def _range_number(self, name: str, is_path: bool) -> int:
        key = f"range {name}", is_path
        found = self._regions.get(key)
        if found is None:
            short = _PATH_SEPARATOR.split(name)[-1] if is_path else name
            paradigm = "mpi" if short.startswith("MPI_") else "user"
            make = Region if is_path else range_region
            region = make(short or "(unnamed range)", paradigm=paradigm)
            found = self._regions[key] = self._paths.regions.number(region)
        return found

    def _add_mpi(self) -> None:
        columns = ("start", "end", "globalTid", "textId", "size", "recvSize")
        for table in _MPI:
            for start, end, thread, text, size, received in self._database.blocks(table, columns):
                region = self._numbered("mpi", text, self._mpi_region)
                values: Mapping[str, Int64Array] = {}
                if "size" in self._database.tables[table]:
                    values = self._message_bytes(text, size, received)
                self.timeline.add_calls(
                    Calls(thread >> _PROCESS_BITS, thread, start, end, region, values=values)
                )

    def _mpi_region(self, text: int) -> Region:
        return Region(self._database.string(text) or "(unnamed call)", paradigm="mpi")

    def _message_bytes(
        self, text: Int64Array, size: Int64Array, received: Int64Array
    ) -> Mapping[str, Int64Array]:
        """Return bytes sent and received; the size of a receive is what it receives."""
        distinct, inverse = np.unique(text, return_inverse=True)
        names = [self._database.string(each) for each in distinct.tolist()]
        receives = np.array(
            [bool(_RECEIVING.search(name)) and not _SENDING.search(name) for name in names],
            np.bool_,
        )[inverse]
        size, received = np.maximum(size, 0), np.maximum(received, 0)
        return {
            "bytes_sent": np.where(receives, 0, size),
            "bytes_received": np.where(receives, size, received),
        }

    def _add_kernels(self) -> None:
        database = self._database
        columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                   "demangledName", "shortName")  # fmt: skip
        for start, end, device, stream, correlation, process, name, short in database.blocks(
            _KERNELS, columns
        ):
            region = self._numbered("kernel", np.where(name == MISSING, short, name), self._kernel)
            self._launched(start, end, device, stream, correlation, process, region)

    def _kernel(self, name: int) -> Region:
        return kernel_region(self._database.string(name) or "(unnamed kernel)")

    def _add_copies(self) -> None:
        columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid",
                   "copyKind", "bytes")  # fmt: skip
        for block in self._database.blocks(_COPIES, columns):
            start, end, device, stream, correlation, process, kind, copied = block
            copy = np.full(len(kind), int(Copy.OTHER), np.int64)
            for number, direction in _DIRECTIONS.items():
                copy[kind == number] = int(direction)
            region = self._numbered("copy", copy, lambda each: copy_region(Copy(each)))
            self._launched(start, end, device, stream, correlation, process, region, copied, copy)

    def _add_sets(self) -> None:
        columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes")
        for block in self._database.blocks(_SETS, columns):
            start, end, device, stream, correlation, process, copied = block
            copy = np.full(len(copied), int(Copy.SET), np.int64)
            region = self._numbered("copy", copy, lambda each: copy_region(Copy(each)))
            self._launched(start, end, device, stream, correlation, process, region, copied, copy)

    def _add_graphs(self) -> None:
        # If the kernels of graphs are recorded, the graphs are no further work.
        columns = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
        if not self._database.has(_GRAPHS) or any(
            (nodes > 0).any() for (nodes,) in self._database.blocks(_KERNELS, ("graphNodeId",))
        ):
            return
        graph = Region("CUDA graph", paradigm="cuda", role="kernel")
        for block in self._database.blocks(_GRAPHS, columns):
            region = np.full(len(block[0]), self._paths.regions.number(graph), np.int32)
            start, end, device, stream, correlation, process = block
            self._launched(start, end, device, stream, correlation, process, region)

    def _launched(
        self,
        start: Int64Array,
        end: Int64Array,
        device: Int64Array,
        stream: Int64Array,
        correlation: Int64Array,
        process: Int64Array,
        region: Int32Array,
        copied: Int64Array | None = None,
        copy: Int64Array | None = None,
    ) -> None:
        number = process >> _PROCESS_BITS
        number[process == MISSING] = self.timeline.only_process
        copied = None if copied is None else np.maximum(copied, 0)
        self.timeline.add_activities(
            Launched(number, correlation, start, end, region, device, stream, copied, copy)
        )


class _Chains:
    """Call paths of recorded call chains, by the number of the chain."""

    def __init__(self, database: Database, paths: Paths) -> None:
        self._paths = paths
        self._frames = _frames(database, paths)
        self._offset = _offset(database, self._frames)
        self._known: dict[tuple[int, int], int] = {}

    def callers(self, chain: Int64Array, region: Int32Array) -> Int32Array | None:
        """Return the call path of the caller of each call, [n]; -1 = no chain is recorded."""
        if not self._frames:
            return None
        pairs = zip(chain.tolist(), region.tolist(), strict=True)
        return np.array([self._caller(*pair) for pair in pairs], np.int32)

    def _caller(self, chain: int, region: int) -> int:
        key = chain, region
        if key not in self._known:
            path = -1
            frames = self._frames.get(chain + self._offset, [])
            if frames:
                regions = self._paths.regions.all
                # The innermost function may be the call itself.
                own = regions[region].name
                names = frames[:-1] if regions[frames[-1]].name == own else frames
                path = WHOLE_PROGRAM
                for each in names:
                    path = self._paths.callee(path, each)
            self._known[key] = path
        return self._known[key]


def _frames(database: Database, paths: Paths) -> dict[int, list[int]]:
    """Return the regions of each chain, the outermost first, without unresolved addresses."""
    found: dict[int, list[tuple[int, int]]] = {}
    numbers: dict[int, int] = {}
    for block in database.blocks(_CHAINS, ("id", "stackDepth", "symbol", "unresolved")):
        chains, depths, symbols, unresolved = (column.tolist() for column in block)
        for chain, depth, symbol, is_unresolved in zip(
            chains, depths, symbols, unresolved, strict=True
        ):
            if is_unresolved > 0:
                continue
            if symbol not in numbers:
                name = database.string(symbol)
                numbers[symbol] = paths.regions.number(Region(name)) if name else -1
            frames = found.setdefault(chain, [])
            if numbers[symbol] >= 0 and len(frames) < _LONGEST_CHAIN:
                frames.append((depth, numbers[symbol]))
    return {
        chain: [region for _, region in sorted(frames, reverse=True)]
        for chain, frames in found.items()
    }


def _offset(database: Database, frames: Mapping[int, object]) -> int:
    """Return the difference between the numbers of chains in two tables.

    Some versions count the chains from 1 in one table and from 0 in the other.
    """
    used: set[int] = set()
    if not frames:
        return 0
    for (chain,) in database.blocks(API_CALLS, ("callchainId",)):
        used.update(np.unique(chain[chain != MISSING]).tolist())
    is_shifted = used and not used.issubset(frames)
    return int(bool(is_shifted) and all(each + 1 in frames for each in used))


def _ranks(database: Database) -> dict[int, int]:
    """Return the MPI rank of each process that the file states."""
    found = {}
    for process, rank in database.blocks("MPI_RANKS", ("globalPid", "rank")):
        for number, each in zip(process.tolist(), rank.tolist(), strict=True):
            found[number >> _PROCESS_BITS] = each
    return found


def _programs(database: Database) -> dict[int, str]:
    found = {}
    for process, name in database.records("PROCESSES", ("globalPid", "name"), 1 << 14):
        if isinstance(process, int) and isinstance(name, str):
            found[process >> _PROCESS_BITS] = name
    return found


def _creator(database: Database) -> str:
    records = database.records("EXPORT_META_DATA", ("name", "value"), 100)
    entries = {name: value for name, value in records if isinstance(value, str)}
    version = entries.get("EXPORT_PRODUCT_VERSION", "")
    return f"Nsight Systems {version}".strip()
