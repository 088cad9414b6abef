"""Suites that print means: OSU micro-benchmarks, Intel MPI Benchmarks and SKaMPI.

Each size has one value, the mean over iterations. So a file has one value per mpirun. Reductions
that scatter are reported by the size of the whole vector.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable

from callpath_modeler.printable import shortened
from cpmodel_guidelines.campaigns.campaign import Detail, Section
from cpmodel_guidelines.functions import mpi_name
from cpmodel_guidelines.suites.sections import SectionBuilder, Source, block_size

_ROW = re.compile(r"\s*[-+.\d]")


class MeansReader(ABC):
    """Reader of the lines of one file.

    Attributes
    ----------
    source : the file
    function : function of the current benchmark
    """

    def __init__(self, source: Source) -> None:
        self.source, self.function = source, ""
        self._sections: dict[int, SectionBuilder] = {}
        self._done: list[Section] = []

    @staticmethod
    @abstractmethod
    def matches(head: str) -> bool:
        """Return whether the beginning of a file is output of the suite."""

    @classmethod
    def read(cls, source: Source, lines: Iterable[str]) -> list[Section]:
        """Return the sections of a file.

        Raises
        ------
        InputError
            If a row is malformed; the message names its line.
        """
        reader, line = cls(source), 0
        for line, raw in enumerate(lines, 1):
            reader.take(line, raw.strip())
        reader.close()
        source.require_rows(line, has_rows=bool(reader._done))
        return reader._done

    @abstractmethod
    def take(self, line: int, text: str) -> None:
        """Take one line."""

    def add(
        self, line: int, size: int, seconds: float, processes: int, begun: int | None = None
    ) -> None:
        """Add the time of one row.

        Parameters
        ----------
        begun : first line of its section; None = the first row
        """
        if processes not in self._sections:
            first = line if begun is None else begun
            section = SectionBuilder(self.source, first, processes, Detail.MEANS)
            self._sections[processes] = section
        whole = block_size(self.function, float(size), processes)
        self._sections[processes].add(line, self.function, whole, seconds)

    def close(self) -> None:
        """Finish the sections of one mpirun or benchmark."""
        self._done += [section.made() for section in self._sections.values()]
        self._sections = {}


_LIBRARIES = ("MPI", "NCCL")
_COLUMNS = re.compile(r"#\s*(Size\b|Avg Latency|Latency)")
_COLUMN = re.compile(
    r"Size|Iterations|Validation|[A-Za-z0-9][A-Za-z0-9 .%]{0,30}?\s*\(\w+(?:/\w+)?\)"
)
_UNIT = re.compile(r"\((us|ms|s|ns)\)")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "ns": 1e-9}
_NAMES = {
    "all-to-all personalized exchange": "MPI_Alltoall",
    "all-to-allv personalized exchange": "MPI_Alltoallv",
    "all-to-allw personalized exchange": "MPI_Alltoallw",
    "broadcast": "MPI_Bcast",
    "": "Latency",
    "multi": "Multi_latency",
}


class OsuReader(MeansReader):
    """OSU micro-benchmarks, versions 5 to 7, in both forms: one section for each title."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.titled, self.columns = 1, list[str]()

    @staticmethod
    def matches(head: str) -> bool:
        """Return whether the beginning of a file is output of an OSU benchmark."""
        return any(_subject(line.strip()) is not None for line in head.splitlines())

    def take(self, line: int, text: str) -> None:
        """Take one line: titles, or a row."""
        if (subject := _subject(text)) is not None:
            self.close()
            self.function, self.titled, self.columns = _function(subject), line, []
        elif text.startswith("#"):
            if _COLUMNS.match(text) is not None:
                self.columns = _columns(self.source, line, text)
        elif _ROW.match(text):
            self._take_row(line, text.split())
        elif text:
            self.source.skip(line)

    def _take_row(self, line: int, cells: list[str]) -> None:
        columns, source = self.columns, self.source
        source.require_titles(line, columns)
        # A latency is between two processes.
        pair = 2 if self.function == "Latency" else None
        processes = source.require_processes(line, pair)
        if len(cells) != len(columns):
            source.fail_row(line, cells, columns)
        has_size = columns[0] == "Size"
        size = source.whole(line, cells[0], "message size", 0) if has_size else 0
        unit = _UNIT.search(columns[has_size])
        assert unit is not None, "the titles were checked"
        seconds = source.number(line, cells[has_size], "time") * _SECONDS[unit[1]]
        self.add(line, size, seconds, processes, self.titled)


def _subject(text: str) -> str | None:
    """Return the subject of a title: Broadcast of "# OSU MPI Broadcast Latency Test v5.6"."""
    words = text.removeprefix("#").split()
    if not text.startswith("#") or words[:1] != ["OSU"]:
        return None
    end = next((k for k, word in enumerate(words) if word.rstrip(",.:") == "Test"), 0)
    if end < 3 or not words[1].startswith(_LIBRARIES):
        return None
    return " ".join(words[2 : end - 1 if words[end - 1] == "Latency" else end])


def _function(subject: str) -> str:
    """Return the function that the subject of a title names."""
    known = _NAMES.get(subject.lower())
    return mpi_name(subject) if known is None else known


def _columns(source: Source, line: int, text: str) -> list[str]:
    """Return the titles of the columns, with one column of times at least."""
    titles = [" ".join(found[0].split()) for found in _COLUMN.finditer(text)]
    place = 1 if titles[:1] == ["Size"] else 0
    if len(titles) <= place or "Latency" not in titles[place]:
        what = f"the column {shortened(titles[place])!r}" if len(titles) > place else "no column"
        source.fail(line, f"{what} is not a latency", "give a latency benchmark")
    if _UNIT.search(titles[place]) is None:
        source.fail(
            line, f"the unit of {shortened(titles[place])!r} is unknown", "correct the file"
        )
    return titles


_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(\S+)")
_COUNT_OF_PROCESSES = re.compile(r"#\s*#processes\s*=\s*(\S+)")
_NEW_MPIRUN = re.compile(r"#\s*Intel\(R\) MPI Benchmarks")
_TIMES = ("t_avg[usec]", "t[usec]", "t_ovrl[usec]")
"""Columns with times, in the order of preference; the last is of non-blocking collectives."""


class ImbReader(MeansReader):
    """Intel MPI Benchmarks: a part for each benchmark and number of processes."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.processes: int | None = None
        self.titles: list[str] = []

    @staticmethod
    def matches(head: str) -> bool:
        """Return whether the beginning of a file is output of the Intel MPI Benchmarks."""
        return "Intel(R) MPI Benchmarks" in head or _BENCHMARK.search(head) is not None

    def take(self, line: int, text: str) -> None:
        """Take one line."""
        if "#repetitions" in text:
            self.titles = text.split()
            if not {*_TIMES} & {*self.titles}:
                self.source.fail(line, "no column has times", "give a benchmark with times")
        elif text.startswith("#"):
            self._take_comment(line, text)
        elif not text:
            self.titles = []
        elif self.function and _ROW.match(text):
            self._take_row(line, text.split())
        else:
            self.source.skip(line)

    def _take_comment(self, line: int, text: str) -> None:
        if _NEW_MPIRUN.match(text):
            self.close()
        elif (found := _BENCHMARK.match(text)) is not None:
            self.function = mpi_name(found[1])
            self.processes, self.titles = None, []
        elif (found := _COUNT_OF_PROCESSES.match(text)) is not None:
            self.processes = self.source.process_count(line, found[1])

    def _take_row(self, line: int, cells: list[str]) -> None:
        source, titles = self.source, self.titles
        source.require_titles(line, titles)
        processes = source.require_processes(line, self.processes)
        if len(cells) != len(titles):
            source.fail_row(line, cells, titles)
        size = 0
        if "#bytes" in titles:
            size = source.whole(line, cells[titles.index("#bytes")], "message size", 0)
        title = next(each for each in _TIMES if each in titles)
        seconds = source.number(line, cells[titles.index(title)], "time") * 1e-6
        self.add(line, size, seconds, processes)

    def close(self) -> None:
        """Finish the sections of one mpirun."""
        super().close()
        self.function, self.processes, self.titles = "", None, []


_VERSION = re.compile(r"#?\s*SKaMPI Version")
_BEGIN = re.compile(r"(?:#\s*)?begin result\s+\"([^\"]{1,200})\"")
_END = re.compile(r"(?:#\s*)?end result")
_FIELD = re.compile(r"(?<!\w)(\w++)\s*+=\s*+(\S++)")
_PROCESSES = ("nodes", "procs", "p")
_COUNT = ("count", "size")
_NUMBERS = 2
"""Least numbers after the parameters: time and standard error."""


class SkampiReader(MeansReader):
    """Tables of SKaMPI 5: parts ``begin result`` to ``end result``, with times in microseconds.

    A row has named parameters, such as ``nodes= 4`` and ``count= 8``, then their values again as
    numbers where SKaMPI prints them, and the columns time, standard error and number of
    repetitions. The rest of a row has times of single processes.
    """

    @staticmethod
    def matches(head: str) -> bool:
        """Return whether the beginning of a file is output of SKaMPI."""
        return _VERSION.search(head) is not None or _BEGIN.search(head) is not None

    def take(self, line: int, text: str) -> None:
        """Take one line."""
        if (found := _BEGIN.match(text)) is not None:
            self.function = mpi_name(found[1].partition("-")[0])
        elif _END.match(text):
            self.function = ""
        elif not text or text.startswith("#"):
            return
        elif not self.function or "=" not in text:
            self.source.skip(line)
        else:
            self._take_row(line, text)

    def _take_row(self, line: int, text: str) -> None:
        source = self.source
        fields = dict(_FIELD.findall(text))
        numbers = _FIELD.sub(" ", text).split()
        stated = next((fields[name] for name in _PROCESSES if name in fields), None)
        count = next((fields[name] for name in _COUNT if name in fields), None)
        processes = source.require_processes(
            line, None if stated is None else source.process_count(line, stated)
        )
        elements = 0 if count is None else source.whole(line, count, "number of elements", 0)
        size = elements
        # The size in bytes comes first, where the table has a number of elements.
        if count is not None and len(numbers) > _NUMBERS:
            size = source.whole(line, numbers[0], "message size", 0)
            numbers = numbers[1:]
        if len(numbers) < _NUMBERS:
            source.fail(
                line,
                f"{shortened(text)!r} has no time",
                "the row is cut off; run the benchmark again",
            )
        seconds = source.number(line, numbers[0], "time") * 1e-6
        self.add(line, size, seconds, processes)
