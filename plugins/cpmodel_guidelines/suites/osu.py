"""OSU micro-benchmarks, versions 5 to 7, in both forms.

Each program prints averages over its iterations: one value for each size. So a file has one value
per mpirun. Reductions that scatter are reported by the size of the whole vector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from callpath_modeler.printable import shortened
from cpmodel_guidelines.campaigns.campaign import Detail, Section
from cpmodel_guidelines.functions import mpi_name
from cpmodel_guidelines.suites.sections import SectionBuilder, Source, block_size

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
_ROW = re.compile(r"\s*[-+.\d]")


def matches(head: str) -> bool:
    """Return whether the beginning of a file is output of an OSU benchmark."""
    return any(_subject(line.strip()) is not None for line in head.splitlines())


def read(source: Source, lines: Iterable[str]) -> list[Section]:
    """Return one section for each title of a benchmark in the file.

    Raises
    ------
    InputError
        If a row is malformed; the message names its line.
    """
    reader = _Reader(source)
    line = 0
    for line, raw in enumerate(lines, 1):
        text = raw.strip()
        if text.startswith("#"):
            reader.take_comment(line, text)
        elif _ROW.match(text):
            reader.take_row(line, text.split())
        elif text:
            source.skip(line)
    reader.close()
    source.require_rows(line, has_rows=bool(reader.done))
    return reader.done


@dataclass(slots=True)
class _Reader:
    source: Source
    function: str = ""
    titled: int = 1
    columns: list[str] = field(default_factory=list)
    section: SectionBuilder | None = None
    done: list[Section] = field(default_factory=list)

    def take_comment(self, line: int, text: str) -> None:
        """Take the title of a benchmark, or the titles of columns."""
        if (subject := _subject(text)) is not None:
            self.close()
            self.function, self.titled, self.columns = _function(subject), line, []
        elif _COLUMNS.match(text) is not None:
            self.columns = _columns(self.source, line, text)

    def take_row(self, line: int, cells: list[str]) -> None:
        """Add the time of one row."""
        self.source.require_titles(line, self.columns)
        if self.section is None:
            # A latency is between two processes.
            pair = 2 if self.function == "Latency" else None
            processes = self.source.require_processes(line, pair)
            self.section = SectionBuilder(self.source, self.titled, processes, Detail.MEANS)
        _add(self.source, self.section, line, self.function, self.columns, cells)

    def close(self) -> None:
        """Finish a section."""
        if self.section is not None:
            self.done.append(self.section.made())
        self.section = None


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


def _add(
    source: Source,
    section: SectionBuilder,
    line: int,
    function: str,
    columns: list[str],
    cells: list[str],
) -> None:
    """Add the time of one row."""
    if len(cells) != len(columns):
        source.fail_row(line, cells, columns)
    has_size = columns[0] == "Size"
    size = source.whole(line, cells[0], "message size", 0) if has_size else 0
    unit = _UNIT.search(columns[has_size])
    assert unit is not None, "the titles were checked"
    seconds = source.number(line, cells[has_size], "time") * _SECONDS[unit[1]]
    section.add(line, function, block_size(function, float(size), section.processes), seconds)
