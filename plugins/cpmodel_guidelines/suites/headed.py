"""Tables with titles: ReproMPI, PGMPI, PGChecker, and tables of users.

The titles decide how a table is read. ReproMPI alone writes five forms: observations, observations
with error codes of windows, begin and end on each process, summaries, and predictions of the number
of repetitions.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from operator import itemgetter

from callpath_modeler.printable import shortened
from callpath_modeler.units import decimal_of
from cpmodel_guidelines.campaigns.campaign import Cell, Detail, Section
from cpmodel_guidelines.functions import canonical
from cpmodel_guidelines.statistics.repetition_count import RepetitionCount
from cpmodel_guidelines.suites.sections import SectionBuilder, Source

_FUNCTION = ("test", "mockup", "function", "func", "call", "callpath", "mpi_call")
_SIZE = {
    "msize_bytes": "bytes", "msize": "bytes", "message_size": "bytes", "msg_size": "bytes",
    "size": "bytes", "size_bytes": "bytes", "bytes": "bytes", "m": "bytes", "count": "elements",
}  # fmt: skip
_PROCESSES = ("p", "nprocs", "np", "procs", "processes", "ranks")
_MPIRUN = ("mpirun", "nexp", "repetition", "rep")
_OBSERVATION = ("nrep", "run_id", "observation")
_LIBRARY = ("library", "lib")
_BEGIN, _END = "loc_tstart_sec", "loc_tend_sec"
_GLOBAL_BEGIN, _GLOBAL_END = "gl_tstart_sec", "gl_tend_sec"
_UNITS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "usec": 1e-6, "ns": 1e-9}
_TIMES = {
    "runtime_sec": (Detail.OBSERVATIONS, 1.0),
    "median_sec": (Detail.MEDIANS, 1.0),
    "mean_sec": (Detail.MEANS, 1.0),
    "median_runtime_sec": (Detail.MEDIANS, 1.0),
    "mean_runtime_sec": (Detail.MEANS, 1.0),
    "tmedian": (Detail.MEDIANS, 1.0),
    "tmean": (Detail.MEANS, 1.0),
}
"""Level of detail and unit of columns with times, in the order of preference."""
_OF_CHECKER = {
    "mockup_median": (Detail.MEDIANS, 1e-3),
    "runtime_median": (Detail.MEDIANS, 1e-3),
    "median_ms": (Detail.MEANS, 1e-3),  # the values are means, whatever the title says
    "runtime": (Detail.MEANS, 1e-3),
}
"""The same for tables of PGChecker. Its table ``raw`` has the title ``runtime`` for seconds."""
_GROUPED, _FASTEST = "collective", "fastest_mockup"
"""Titles of PGChecker's grouped table: the function, and the mock-up that is faster, if any."""
_RATIOS = "relative_runtime"
"""Title of PGChecker's table of ratios."""
_OF_GROUPED = {"default_median": (Detail.MEDIANS, 1e-3)}
_OTHERS = frozenset(
    {"process", "errorcode", "total_nrep", "valid_nrep", "min_sec", "max_sec", "pred_method",
     "pred_value", "ci_lower", "ci_upper", "ssize", "sd", "q1", "q3", "nnp", "n", "nodes", "ppn",
     "default_mean", "default_median", "mockup_mean", "runtime_mean", "z_value", "critical_val",
     "critical_value", "violation", "slowdown", "has_barrier", "diff<barrier"}
)  # fmt: skip
_OF_USERS = re.compile(r"(?:time|latency|runtime|duration|t)(?:_(s|sec|ms|us|usec|ns))?")
_PROPERTY = re.compile(r"#\s*@(\w+)=(.*)")
_NEW_MPIRUN = re.compile(r"#\s*command-line arguments:", re.IGNORECASE)
_CHECKER = re.compile(r"MPI Collective:\s*(\w+)\s*$")
_CHECKER_FILE = re.compile(
    r"data_(MPI_[A-Za-z_]+?)_(default|[a-z]+(?:_[a-z]+)*_as_\w+)\.dat(?:\.gz)?"
)
_NAME = re.compile(r"[A-Za-z]\w*\*?", re.ASCII)
_DELIMITERS = ",;\t"


@dataclass(frozen=True)
class Columns:
    """The meaning of the columns of a table.

    Attributes
    ----------
    titles : titles in lower case
    delimiter : separator of cells; "" = blanks
    time : title of the column with times; "" = begin and end of each process
    detail, unit : level of detail of the times, and their unit in seconds
    """

    titles: tuple[str, ...]
    delimiter: str
    time: str
    detail: Detail
    unit: float

    @cached_property
    def place(self) -> int:
        """Return the position of the times."""
        return self.titles.index(self.time)

    @cached_property
    def key(self) -> Callable[[Sequence[str]], tuple[str, ...]]:
        """Return a function that returns the cells of a row that tell its cell and its mpirun."""
        free = {self.time, *_OBSERVATION}
        places = [k for k, title in enumerate(self.titles) if title not in free]
        # An item getter of one place returns no tuple.
        return itemgetter(*places, places[0])

    @cached_property
    def is_plain(self) -> bool:
        """Return whether every row has one observation."""
        return self.index(("pred_method", "default_median")) is None

    def index(self, names: Iterable[str]) -> int | None:
        """Return the position of the first of some titles; None = there is none."""
        return next((self.titles.index(name) for name in names if name in self.titles), None)

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line."""
        if not self.delimiter:
            return line.split()
        row = next(csv.reader([line], delimiter=self.delimiter), [])
        return [cell.strip() for cell in row]


def columns_of(line: str, *, of_checker: bool = False) -> Columns | None:
    """Return the columns that a line of titles announces; None = it is no such line.

    Parameters
    ----------
    of_checker : whether PGChecker wrote the table
    """
    delimiter = next((sign for sign in _DELIMITERS if sign in line), "")
    cells = line.split(delimiter) if delimiter else line.split()
    # PGChecker writes N for nodes and n for repetitions.
    titles = tuple("nodes" if cell == "N" else cell.strip().strip('"').lower() for cell in cells)
    is_grouped = of_checker and {_GROUPED, _FASTEST, "default_median"} <= {*titles}
    if not (is_grouped or {*_FUNCTION} & {*titles}) or len({*titles}) < len(titles):
        return None
    if "pred_method" in titles and not {"nrep", "pred_value"} <= {*titles}:
        return None
    time = _time_of(titles, of_checker=of_checker)
    if time is None:
        return None
    known = {*_FUNCTION, *_SIZE, *_PROCESSES, *_MPIRUN, *_OBSERVATION, *_LIBRARY, *_TIMES, *_OTHERS,
             *_OF_CHECKER, _BEGIN, _END, _GLOBAL_BEGIN, _GLOBAL_END, time[0]}  # fmt: skip
    if {*titles} - known - ({_GROUPED, _FASTEST} if is_grouped else {*()}):
        return None
    found = Columns(titles, delimiter, *time)
    # Other tables of users have their own reader, which knows more forms, but needs a scale.
    telling = _PROCESSES, ("nexp", "mpirun"), _SIZE
    if delimiter and all(found.index(titles) is None for titles in telling):
        return None
    return found


def _time_of(titles: Sequence[str], *, of_checker: bool) -> tuple[str, Detail, float] | None:
    if _BEGIN in titles and _END in titles and "process" in titles:
        return "", Detail.OBSERVATIONS, 1.0
    known = _OF_CHECKER if of_checker else _TIMES
    if of_checker and _FASTEST in titles:
        known = _OF_GROUPED
    if of_checker and "run_id" in titles:
        return ("runtime", Detail.COPIED_OBSERVATIONS, 1.0) if "runtime" in titles else None
    for title, (detail, unit) in known.items():
        if title in titles:
            return title, detail, unit
    if of_checker:
        return None
    own = [(title, found) for title in titles if (found := _OF_USERS.fullmatch(title))]
    if len(own) != 1:
        return None
    ((title, found),) = own
    return title, Detail.OBSERVATIONS, _UNITS[found[1] or "s"]


def matches(head: str) -> bool:
    """Return whether the beginning of a file is such a table."""
    of_checker = False
    for line in head.splitlines():
        if _CHECKER.match(line):
            of_checker = True
        elif _PROPERTY.match(line):
            return True
        elif line.strip() and not line.startswith("#"):
            if columns_of(line, of_checker=of_checker) is not None:
                return True
            if not of_checker and _DELIMITERS[0] in line:
                return False
    return False


def has_ratios(head: str) -> bool:
    """Return whether the beginning of a file is PGChecker's table of ratios, without times."""
    lines = head.splitlines()
    return any(_CHECKER.match(line) for line in lines) and any(
        _RATIOS in line.split() for line in lines
    )


def read(source: Source, lines: Iterable[str]) -> list[Section]:
    """Return the sections of a table.

    Raises
    ------
    InputError
        If a row is malformed; the message names its line.
    """
    return _Reader(source).read(lines)


@dataclass(slots=True)
class _Repetition:
    """One repetition that every process reports.

    Attributes
    ----------
    line : line of its first row
    rows : number of rows
    longest : largest time of a process
    begin, end : first begin and last end on the global clock
    failed : whether a process reports an error
    """

    line: int
    rows: int = 0
    longest: float = 0.0
    begin: float = float("inf")
    end: float = float("-inf")
    failed: bool = False


@dataclass(slots=True)
class _Reader:
    source: Source
    properties: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    columns: Columns | None = None
    collective: str = ""
    known: set[str] = field(default_factory=set)
    begun: int = 1
    sections: dict[tuple[str, int | None, int | None], SectionBuilder] = field(default_factory=dict)
    repetitions: dict[tuple[str, float, str], _Repetition] = field(default_factory=dict)
    earlier: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    done: list[Section] = field(default_factory=list)

    def read(self, lines: Iterable[str]) -> list[Section]:
        line = 0
        for line, text in enumerate(lines, 1):
            if not self._take_known(text):
                self._take(line, text.rstrip("\r\n"))
        self._close()
        if self.columns is None and not self.done:
            self.source.fail(
                max(line, 1), "the titles of the columns are missing", "run the benchmark again"
            )
        return self.done

    def _take_known(self, text: str) -> bool:
        """Add the time of a row that differs from an earlier one in its time alone.

        Nearly all rows are of this kind, so files are read ten times as fast. Other rows return
        False and are checked in full.
        """
        columns = self.columns
        if columns is None or not columns.time or '"' in text:
            return False
        cells = text.split(columns.delimiter) if columns.delimiter else text.split()
        if len(cells) != len(columns.titles):
            return False
        times = self.earlier.get(columns.key(cells))
        if times is None:
            return False
        written = cells[columns.place]
        try:
            seconds = decimal_of(written) * columns.unit
        except ValueError:
            return False
        if not 0 < seconds < inf:
            return False
        times.append(seconds)
        return True

    def _take(self, line: int, text: str) -> None:
        if not text.strip():
            return
        if text.lstrip().startswith("#"):
            self._take_comment(line, text.strip())
            return
        if (found := _CHECKER.match(text)) is not None:
            self.collective = found[1]
            return
        columns = columns_of(text, of_checker=bool(self.collective))
        if columns is not None:
            self.columns, self.earlier = columns, {}
        elif self.columns is None:
            self._refuse_titles(line, text)
        else:
            self._take_row(line, text, self.columns)

    def _refuse_titles(self, line: int, text: str) -> None:
        """Raise an error if a line is a row without titles."""
        if text.split(maxsplit=1)[0].startswith(("MPI_", "GL_")):
            hint = "the file begins in the middle; copy it again"
            self.source.fail(line, "a row before the titles of the columns", hint)
        self.source.skip(line)

    def _take_comment(self, line: int, text: str) -> None:
        if _NEW_MPIRUN.match(text):
            self._close()
            self.begun = line
            self.properties.clear()
            self.columns = None
        elif (found := _PROPERTY.match(text)) is not None:
            self.properties[found[1]] = found[2].strip()
            self.lines[found[1]] = line

    def _take_row(self, line: int, text: str, columns: Columns) -> None:
        cells = columns.cells(text)
        place = columns.index((*_FUNCTION, _GROUPED))
        assert place is not None, "titles contain the function"
        name = cells[place].rstrip("*") if place < len(cells) else ""
        if not self._is_row(cells, name, columns):
            self.source.skip(line)
            return
        # PGChecker leaves cells at the end of a row blank.
        least = columns.titles.index(columns.time) + 1 if self.collective else len(columns.titles)
        if not least <= len(cells) <= len(columns.titles):
            self.source.fail_row(line, cells, columns.titles)
        if not name:
            self.source.fail(line, "the name of the function is missing", "correct the file")
        self.known.add(name)
        size = self._size(line, cells, columns)
        name = self._function(name)
        if columns.time:
            self._take_time(line, cells, columns, name, size)
        else:
            self._take_process(line, cells, columns, name, size)

    def _is_row(self, cells: Sequence[str], name: str, columns: Columns) -> bool:
        """Return whether a line belongs to the table; error messages may be mixed with it."""
        if self.collective:
            return name in {"default", self.collective} or "_as_" in name
        if columns.delimiter or name in self.known or name.startswith(("MPI_", "GL_")):
            return True
        if len(cells) != len(columns.titles) or not _NAME.fullmatch(name):
            return canonical(name) is not None
        return True

    def _function(self, name: str) -> str:
        """Return the function of a row; PGChecker states mock-ups in titles and file names."""
        if self.collective:
            return self.collective if name == "default" else name
        found = _CHECKER_FILE.fullmatch(self.source.path.name)
        if found is not None and found[1] == name and found[2] != "default":
            return found[2]
        return name

    def _size(self, line: int, cells: Sequence[str], columns: Columns) -> float:
        place = columns.index(_SIZE)
        if place is None:
            return 0.0
        size = self.source.whole(line, cells[place], "message size", 0)
        is_count = _SIZE[columns.titles[place]] == "elements"
        stated = self.properties.get("datatype_size_bytes")
        if is_count and stated is not None:
            size *= self.source.whole(
                self.lines["datatype_size_bytes"], stated, "size of a datatype", 1
            )
        return float(size)

    def _take_time(
        self, line: int, cells: Sequence[str], columns: Columns, name: str, size: float
    ) -> None:
        place = columns.index(("errorcode",))
        if place is not None and self.source.whole(line, cells[place], "error code", 0):
            self.source.skip(line)
            return
        section = self._section(line, cells, columns)
        # Each method repeats the times.
        if columns.index(("pred_method",)) is not None and not self._is_new(
            line, cells, columns, Cell(name, size), section
        ):
            return
        seconds = self._seconds(line, cells[columns.titles.index(columns.time)], columns.unit)
        section.add(line, name, size, seconds)
        if _FASTEST in columns.titles and len(cells) == len(columns.titles):
            self.source.selected += 1
        is_whole = columns.is_plain and len(cells) == len(columns.titles)
        if is_whole and (times := section.times.get(Cell(name, size))) is not None:
            self.earlier[columns.key(cells)] = times
        place = columns.index(("default_median",))
        if (
            place is not None
            and self.collective
            and Cell(self.collective, size) not in section.times
        ):
            seconds = self._seconds(line, cells[place], columns.unit)
            section.add(line, self.collective, size, seconds)

    def _is_new(
        self,
        line: int,
        cells: Sequence[str],
        columns: Columns,
        cell: Cell,
        section: SectionBuilder,
    ) -> bool:
        """Add a predicted number of repetitions; return whether it is the first row of a cell."""
        nrep, method, written = (
            cells[columns.titles.index(title)] for title in ("nrep", "pred_method", "pred_value")
        )
        count = self.source.whole(line, nrep, "number of repetitions", 1)
        value = self.source.number(line, written, "value of a criterion")
        known = section.predicted.get(cell)
        values = {} if known is None else known.values
        stated = self.properties.get("pred_nrep_max")
        most = None
        if stated is not None:
            most = self.source.whole(self.lines["pred_nrep_max"], stated, "pred_nrep_max", 1)
        # The benchmark goes on up to its maximum if a criterion is not met.
        is_met = most is None or count < most
        section.predicted[cell] = RepetitionCount(count, is_met, {**values, method: value})
        return known is None

    def _seconds(self, line: int, text: str, unit: float) -> float:
        return self.source.number(line, text, "time") * unit

    def _take_process(
        self, line: int, cells: Sequence[str], columns: Columns, name: str, size: float
    ) -> None:
        number = cells[columns.titles.index("nrep")] if "nrep" in columns.titles else "0"
        known = self.repetitions.setdefault((name, size, number), _Repetition(line))
        known.rows += 1
        begin, end = (
            self._seconds(line, cells[columns.titles.index(title)], 1.0) for title in (_BEGIN, _END)
        )
        if end < begin:
            self.source.fail(line, "the end is before the begin", "measure with another clock")
        known.longest = max(known.longest, end - begin)
        place = columns.index(("errorcode",))
        if place is not None and self.source.whole(line, cells[place], "error code", 0):
            known.failed = True
        if _GLOBAL_BEGIN in columns.titles and _GLOBAL_END in columns.titles:
            begin, end = (
                self._seconds(line, cells[columns.titles.index(title)], 1.0)
                for title in (_GLOBAL_BEGIN, _GLOBAL_END)
            )
            known.begin, known.end = min(known.begin, begin), max(known.end, end)

    def _section(self, line: int, cells: Sequence[str], columns: Columns) -> SectionBuilder:
        """Return the section of a row, by its library, number of processes and mpirun."""
        library, processes, mpirun = "", None, None
        if (place := columns.index(_LIBRARY)) is not None:
            library = cells[place]
        if (place := columns.index(_PROCESSES)) is not None:
            processes = self.source.process_count(line, cells[place])
        elif self.collective and {"nodes", "ppn"} <= {*columns.titles}:
            processes = self._nodes_times_processes(line, cells, columns)
        if (place := columns.index(_MPIRUN)) is not None:
            mpirun = self.source.whole(line, cells[place], "number of the mpirun", 0)
        key = library, processes, mpirun
        found = self.sections.get(key)
        if found is None:
            count = self._processes(line) if processes is None else processes
            detail = columns.detail
            found = SectionBuilder(self.source, self.begun, count, detail, library, mpirun)
            self.sections[key] = found
        return found

    def _nodes_times_processes(self, line: int, cells: Sequence[str], columns: Columns) -> int:
        """Return the number of processes: PGChecker writes nodes, and processes per node."""
        nodes, each = (
            self.source.process_count(line, cells[columns.titles.index(title)])
            for title in ("nodes", "ppn")
        )
        return nodes * each

    def _processes(self, line: int) -> int:
        stated = self.properties.get("nprocs")
        if stated is None:
            return self.source.require_processes(line, None)
        return self.source.process_count(self.lines["nprocs"], stated)

    def _close(self) -> None:
        """Finish the sections of one mpirun."""
        if self.repetitions:
            self._add_repetitions()
        self.done += [builder.made() for builder in self.sections.values()]
        self.sections, self.repetitions, self.earlier = {}, {}, {}

    def _add_repetitions(self) -> None:
        first = next(iter(self.repetitions.values())).line
        processes = self._processes(first)
        section = SectionBuilder(self.source, self.begun, processes, Detail.OBSERVATIONS)
        is_global = self.properties.get("runtime_type") == "global"
        for (name, size, number), known in self.repetitions.items():
            if known.failed:
                self.source.skip(known.line)
                continue
            if known.rows != processes:
                self.source.fail(
                    known.line,
                    f"{known.rows} of {processes} processes report repetition {shortened(number)} "
                    f"of {shortened(name)}",
                    "the file is cut off; run the benchmark again",
                )
            told = (
                known.end - known.begin if is_global and known.end > known.begin else known.longest
            )
            section.add(known.line, name, size, told)
        self.sections["", None, None] = section
