"""Intel MPI Benchmarks.

A file has a part for each benchmark and number of processes. Times are averages over repetitions,
so a file has one value per mpirun. Reductions that scatter are reported by the size of the whole
vector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from cpmodel_guidelines.campaigns.campaign import Detail, Section
from cpmodel_guidelines.functions import mpi_name
from cpmodel_guidelines.suites.sections import SectionBuilder, Source, block_size

_BENCHMARK = re.compile(r"#\s*Benchmarking\s+(\S+)")
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*(\S+)")
_ROW = re.compile(r"\s*[-+.\d]")
_NEW_MPIRUN = re.compile(r"#\s*Intel\(R\) MPI Benchmarks")
_TIMES = ("t_avg[usec]", "t[usec]", "t_ovrl[usec]")
"""Columns with times, in the order of preference; the last is of non-blocking collectives."""


def matches(head: str) -> bool:
    """Return whether the beginning of a file is output of the Intel MPI Benchmarks."""
    return "Intel(R) MPI Benchmarks" in head or _BENCHMARK.search(head) is not None


def read(source: Source, lines: Iterable[str]) -> list[Section]:
    """Return one section for each mpirun and number of processes in the file.

    Raises
    ------
    InputError
        If a row is malformed; the message names its line.
    """
    reader = _Reader(source)
    line = 0
    for line, raw in enumerate(lines, 1):
        reader.take(line, raw.strip())
    reader.close()
    source.require_rows(line, has_rows=bool(reader.done))
    return reader.done


@dataclass(slots=True)
class _Reader:
    source: Source
    function: str = ""
    processes: int | None = None
    titles: list[str] = field(default_factory=list)
    sections: dict[int, SectionBuilder] = field(default_factory=dict)
    done: list[Section] = field(default_factory=list)

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
        elif (found := _PROCESSES.match(text)) is not None:
            self.processes = self.source.process_count(line, found[1])

    def _take_row(self, line: int, cells: list[str]) -> None:
        self.source.require_titles(line, self.titles)
        count = self.source.require_processes(line, self.processes)
        if count not in self.sections:
            self.sections[count] = SectionBuilder(self.source, line, count, Detail.MEANS)
        _add(self.source, self.sections[count], line, self.function, self.titles, cells)

    def close(self) -> None:
        """Finish the sections of one mpirun."""
        self.done += [section.made() for section in self.sections.values()]
        self.sections, self.function, self.processes, self.titles = {}, "", None, []


def _add(
    source: Source,
    section: SectionBuilder,
    line: int,
    function: str,
    titles: list[str],
    cells: list[str],
) -> None:
    """Add the time of one row."""
    if len(cells) != len(titles):
        source.fail_row(line, cells, titles)
    size = 0
    if "#bytes" in titles:
        size = source.whole(line, cells[titles.index("#bytes")], "message size", 0)
    title = next(each for each in _TIMES if each in titles)
    seconds = source.number(line, cells[titles.index(title)], "time") * 1e-6
    section.add(line, function, block_size(function, float(size), section.processes), seconds)
