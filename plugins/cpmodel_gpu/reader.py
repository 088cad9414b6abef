"""Readers of databases of Nsight Systems and rocprofv3, and of call trees of Extra-Prof."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from callpath_modeler.errors import InputError, MalformedError
from callpath_modeler.readers.base import API_VERSION, Match
from callpath_modeler.support.input_limits import first_block
from cpmodel_gpu.rank_files import ranks_of

if TYPE_CHECKING:
    from callpath_modeler.readers.base import StepRange
    from cpmodel_gpu.database_run import EventFile
    from cpmodel_gpu.paths import Paths
    from cpmodel_gpu.profile import GpuProfile

_REPORTS = (".nsys-rep", ".qdrep", ".qdstrm")
"""Reports of Nsight Systems, whose format is not documented."""
_MAGIC = b"SQLite format 3\x00"
_EXTRA_PROF = b"\xaaEXTRA PROF"
_HEAD = 1 << 16
_NAMES = (b"CUPTI_ACTIVITY_KIND_", b"NVTX_EVENTS")
_TABLES = (
    "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_api_sum",
    "gpukernsum", "gpumemtimesum", "gpumemsizesum", "cudaapisum",
)  # fmt: skip
"""Names of tables of `nsys stats`, which are in the names of its files."""
_OF_REPORT = re.compile(r"(.*)_(?:" + "|".join(_TABLES) + r")\.csv", re.IGNORECASE)
_TRACE = re.compile(r"_?(?:kernel|memory_copy|(?:hip|hsa|rccl|marker)_api)_trace\.csv\Z")
_ROCPD_NAMES = (b"rocpd_region", b"rocpd_kernel_dispatch", b"rocpd_memory_copy")
_OF_PROCESS = re.compile(r"\d+_results\.db")
"""Name that rocprofv3 gives to the database of a process."""
_DATABASES = (".sqlite", ".sqlite3", ".db")


class NsightReader:
    """Reader of databases of one process, of one node, or of a directory with one for each rank."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "nsight"
    description: ClassVar[str] = "Nsight Systems: SQLite exports of CUDA programs"
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite", *_REPORTS)

    def match(self, path: Path) -> Match:
        """Return whether a file is such a database, or a directory has one for each rank."""
        if path.is_dir():
            return Match.CONTENT if _databases_of_ranks(path) else Match.NO
        if path.name.lower().endswith(_REPORTS):
            return Match.NAME if first_block(path, 1) else Match.NO
        return Match.CONTENT if _is_nsight(path) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[GpuProfile]:
        """Open a database, or the databases of all ranks in a directory.

        Raises
        ------
        InputError
            If a file is damaged, is no such database, or is a report that has to be exported first.
        """
        from cpmodel_gpu.database_run import database_run
        from cpmodel_gpu.nsight import NsightFile

        if path.name.lower().endswith(_REPORTS):
            raise InputError(
                f"{path}: the format of reports of Nsight Systems is not documented",
                hint=f"export it: `nsys export --type sqlite {path.name}`",
            )
        if path.is_dir():
            yield database_run(path, _databases_of_ranks(path), NsightFile)
            return
        if first_block(path, len(_MAGIC)) != _MAGIC:
            raise InputError(
                f"{path}: this is no database of Nsight Systems",
                hint="make one: `nsys export --type sqlite REPORT.nsys-rep`",
            )
        yield database_run(path, {-1: path}, NsightFile)


class NsysStatsReader:
    """Reader of one table of `nsys stats`, or of a directory with the tables of one report."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "nsys-stats"
    description: ClassVar[str] = "tables of nsys stats (CSV): sums without call paths"
    suffixes: ClassVar[tuple[str, ...]] = tuple(f"_{table}.csv" for table in _TABLES)

    def match(self, path: Path) -> Match:
        """Return whether a file is such a table, or a directory has those of one report."""
        if path.is_dir():
            return Match.CONTENT if _tables_of_report(path) else Match.NO
        return Match.CONTENT if _is_stats(path) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[GpuProfile]:
        """Open a table, or all tables of a report in a directory.

        Raises
        ------
        InputError
            If a table is malformed, or has no sums of kernels, copies or calls.
        """
        from cpmodel_gpu.nsys_stats import nsys_stats_run

        yield nsys_stats_run(path, _tables_of_report(path) if path.is_dir() else [path])


def _is_stats(path: Path) -> bool:
    head = first_block(path)
    if b"Total" not in head or b"," not in head:
        return False
    from cpmodel_gpu.nsys_stats import is_table

    return is_table(head)


def _tables_of_report(directory: Path) -> list[Path]:
    """Return the tables in a directory if they are several, and of one report."""
    try:
        files = sorted(directory.iterdir())
    except OSError:
        return []
    ours = {file: found[1] for file in files if (found := _OF_REPORT.fullmatch(file.name))}
    is_one = len(ours) > 1 and len(set(ours.values())) == 1
    return [*ours] if is_one and all(map(_is_stats, ours)) else []


class RocpdReader:
    """Reader of databases of rocprofv3: of one process, or of a directory with one for each."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "rocpd"
    description: ClassVar[str] = "rocprofv3 databases (rocpd) of HIP programs"
    suffixes: ClassVar[tuple[str, ...]] = ("_results.db",)

    def match(self, path: Path) -> Match:
        """Return whether a file is such a database, or a directory has those of one run."""
        if path.is_dir():
            return Match.CONTENT if _databases_of_processes(path) else Match.NO
        return Match.CONTENT if _is_rocpd(path) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[GpuProfile]:
        """Open a database, or all databases of a run in a directory.

        Raises
        ------
        InputError
            If a file is damaged, or no such database.
        """
        from cpmodel_gpu.database_run import database_run
        from cpmodel_gpu.rocpd import RocpdFile

        files = _databases_of_processes(path) if path.is_dir() else {-1: path}
        if not path.is_dir() and first_block(path, len(_MAGIC)) != _MAGIC:
            raise InputError(
                f"{path}: this is no database of rocprofv3",
                hint="record the program: `rocprofv3 --runtime-trace -- PROGRAM`",
            )
        yield database_run(path, files, RocpdFile)


class RocprofReader:
    """Reader of a CSV trace of rocprofv3, or of a directory with those of all processes."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "rocprofv3"
    description: ClassVar[str] = "rocprofv3 traces (CSV) of HIP programs"
    suffixes: ClassVar[tuple[str, ...]] = ("_kernel_trace.csv", "_hip_api_trace.csv")

    def match(self, path: Path) -> Match:
        """Return whether a file is such a trace, or a directory has those of one run."""
        if path.is_dir():
            return Match.CONTENT if _traces_of_run(path) else Match.NO
        return Match.CONTENT if _is_rocprof(path) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[GpuProfile]:
        """Open a trace, or all traces of a run in a directory.

        Raises
        ------
        InputError
            If a file is malformed, or no such trace.
        """
        from cpmodel_gpu.database_run import database_run
        from cpmodel_gpu.rocprof_csv import RocprofProcess

        traces = _traces_of_run(path) if path.is_dir() else {path: [path]}
        # The first file of a process stands for all of them.
        files = {-1 - k: file for k, file in enumerate(traces)}

        def read(file: Path, paths: Paths, steps: StepRange | None) -> EventFile:
            return RocprofProcess(traces[file], paths, steps)

        yield database_run(path, files, read)


def _is_rocprof(path: Path) -> bool:
    head = first_block(path)
    if b"_Timestamp" not in head:
        return False
    from cpmodel_gpu.rocprof_csv import has_titles

    return has_titles(head)


def _traces_of_run(directory: Path) -> dict[Path, list[Path]]:
    """Return the traces of each process in a directory, by their first file."""
    try:
        files = sorted(directory.iterdir())
    except OSError:
        return {}
    found: dict[str, list[Path]] = {}
    for file in files:
        if file.name.endswith("_trace.csv") and _is_rocprof(file):
            prefix = _TRACE.sub("", file.name)
            found.setdefault(prefix, []).append(file)
    is_run = sum(map(len, found.values())) > 1
    return {of_process[0]: of_process for of_process in found.values()} if is_run else {}


def _is_rocpd(path: Path) -> bool:
    """Return whether a file is a database with a table of rocprofv3."""
    if first_block(path, len(_MAGIC)) != _MAGIC:
        return False
    from cpmodel_gpu.database import opened
    from cpmodel_gpu.rocpd import suffixes_of

    try:
        with opened(path) as database:
            return bool(suffixes_of(database))
    except MalformedError:
        return any(name in first_block(path, _HEAD) for name in _ROCPD_NAMES)


def _databases_of_processes(directory: Path) -> Mapping[int, Path]:
    """Return the databases of a run: of its ranks, or of its processes by their numbers."""
    ranks = _files_of_ranks(directory, (".db",), _is_rocpd)
    if ranks:
        return ranks
    try:
        files = [each for each in sorted(directory.iterdir()) if _OF_PROCESS.fullmatch(each.name)]
    except OSError:
        return {}
    if len(files) < 2 or not all(map(_is_rocpd, files)):
        return {}
    return {-1 - k: path for k, path in enumerate(files)}


class ExtraProfReader:
    """Reader of the call tree of one process, or of a directory with one for each rank."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "extra-prof"
    description: ClassVar[str] = "Extra-Prof: call trees of CUDA programs, with energy"
    suffixes: ClassVar[tuple[str, ...]] = (".extra-prof.msgpack",)

    def match(self, path: Path) -> Match:
        """Return whether a file is such a call tree, or a directory has one for each rank."""
        if path.is_dir():
            return Match.CONTENT if _trees_of_ranks(path) else Match.NO
        return Match.CONTENT if _is_extra_prof(path) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[GpuProfile]:
        """Open a call tree, or the call trees of all ranks in a directory.

        Raises
        ------
        InputError
            If a file is damaged, or no such call tree.
        """
        from cpmodel_gpu.extra_prof import extra_prof_run

        yield extra_prof_run(path, _trees_of_ranks(path) if path.is_dir() else {-1: path})


def _is_extra_prof(path: Path) -> bool:
    """Return whether a file begins with a list whose first entry is the name of the tool."""
    head = first_block(path, 2 + len(_EXTRA_PROF))
    return head[:1] in (b"\x93", b"\x94", b"\x95", b"\x96") and head[1:].startswith(_EXTRA_PROF)


def _trees_of_ranks(directory: Path) -> Mapping[int, Path]:
    return _files_of_ranks(directory, ExtraProfReader.suffixes, _is_extra_prof)


def _databases_of_ranks(directory: Path) -> Mapping[int, Path]:
    return _files_of_ranks(directory, _DATABASES, _is_nsight)


def _is_nsight(path: Path) -> bool:
    """Return whether a file is a database with a table of Nsight Systems."""
    if first_block(path, len(_MAGIC)) != _MAGIC:
        return False
    from cpmodel_gpu.database import opened
    from cpmodel_gpu.nsight import KNOWN

    try:
        with opened(path) as database:
            return bool(KNOWN.intersection(database.tables)) and "StringIds" in database.tables
    except MalformedError:
        # The names of the tables are in the first pages of a damaged file, too.
        return any(name in first_block(path, _HEAD) for name in _NAMES)


def _files_of_ranks(
    directory: Path, suffixes: tuple[str, ...], is_profile: Callable[[Path], bool]
) -> Mapping[int, Path]:
    """Return the profile of each rank in a directory; nothing if it has no such profiles."""
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        return {}
    ranks = ranks_of([each for each in entries if each.name.lower().endswith(suffixes)])
    return ranks if ranks and all(map(is_profile, ranks.values())) else {}
