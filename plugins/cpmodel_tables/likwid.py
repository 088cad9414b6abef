"""CSV of LIKWID: what ``likwid-perfctr -O``, ``-o FILE.csv`` and ``likwid-mpirun -O`` write.

A table per region, group of counters and kind has one row per quantity and one column per hardware
thread: ``HWThread 3``, or with ``likwid-mpirun``, ``HOST:RANK:3``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from callpath_modeler.units import decimal_of
from cpmodel_tables.results import PROCESSES, THREADS, Results
from cpmodel_tables.series import WHOLE
from cpmodel_tables.text import COPY_IT_AGAIN, opened_lines

_SIGN = re.compile(r"^TABLE,(?:Region [^,]*,)?Group \d+ (?:Raw|Metric)", re.MULTILINE)
_TABLE = re.compile(r"TABLE,(?:Region (?P<region>[^,]*),)?Group (?P<group>\d+) (?P<kind>[^,]*),")
_TITLES = frozenset({"Event", "Metric", "Region Info"})
_THREAD = re.compile(r"(?:HWThread|Core) \d+|[^:\s]+:(?P<rank>\d+):\d+")
_TIMES = frozenset({"RDTSC Runtime [s]", "Runtime (RDTSC) [s]"})
_CALLS = "call count"
_UNITS = {"J": "J", "GBytes": "GB"}
"""Units of metrics that are amounts; others are rates and ratios, which do not add up."""
_LONGEST = 100_000


def is_one(text: str) -> bool:
    """Return whether a text is output of LIKWID; that of the program may stand above."""
    return bool(_SIGN.search(text))


@dataclass(slots=True)
class _Amounts:
    """Values of one region by quantity and process, with the threads of each process.

    Attributes
    ----------
    values : sums, by title, unit and rank; times and calls are those of the longest thread
    lines : first line of each quantity
    """

    values: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)


def read(path: Path) -> list[RunSource]:
    """Return the run: regions, or the whole program without regions.

    The longest thread gives the times and calls of its process. Counts are sums over its threads.
    Of several processes, the values are means.

    Raises
    ------
    InputError
        If the file has no values.
    """
    results = Results(path, "LIKWID", all_vary=True, is_nested=False)
    regions: dict[str, _Amounts] = {}
    threads: dict[int, set[str]] = {}
    seen: set[tuple[str, str, str]] = set()
    for region, group, number, kind, name, cells in _rows(path):
        title, unit, is_sum = _quantity(name, is_event=kind == "Event")
        key = region, group, title
        if not title:
            results.words[name] = None
            continue
        if key in seen:
            continue  # the time of a region stands in several tables of a group
        seen.add(key)
        amounts = regions.setdefault(region, _Amounts())
        found = amounts.values.setdefault((title, unit), {})
        amounts.lines.setdefault((title, unit), number)
        own: dict[int, float] = {}
        for thread, (rank, value) in cells.items():
            threads.setdefault(rank, set()).add(thread)
            own[rank] = own.get(rank, 0.0) + value if is_sum else max(own.get(rank, 0.0), value)
        for rank, value in own.items():
            found[rank] = found.get(rank, 0.0) + value
    if not regions:
        raise InputError(f"{path}: LIKWID measured nothing", hint=COPY_IT_AGAIN)
    run: dict[str, object] = {
        "program": "LIKWID",
        PROCESSES: float(len(threads)),
        THREADS: float(max(map(len, threads.values()))),
    }
    results.listed = 1
    for region, amounts in regions.items():
        for (title, unit), of_ranks in amounts.values.items():
            mean = sum(of_ranks.values()) / len(threads)
            results.add(run, (region or WHOLE,), title, mean, unit, amounts.lines[title, unit])
    return results.runs()


def _rows(
    path: Path,
) -> Iterator[tuple[str, str, int, str, str, Mapping[str, tuple[int, float]]]]:
    """Yield region, group, line, kind, quantity, and the rank and value of each thread."""
    region, group, is_of_threads = "", "", False
    titles: Sequence[str] = ()
    with opened_lines(path) as text:
        for number, line in enumerate(text, 1):
            cells = [cell.strip() for cell in line[:_LONGEST].rstrip().split(",")]
            table = _TABLE.match(line)
            if table is not None:
                region, group, titles = table["region"] or "", table["group"], ()
                is_of_threads = not table["kind"].endswith("STAT")
            elif cells[0] in _TITLES:
                titles = cells if is_of_threads else ()
            elif titles and cells[0] and cells[0] != "STRUCT":
                values = _values(titles, cells)
                if values:
                    yield region, group, number, titles[0], cells[0], values
            else:
                titles = ()


def _values(titles: Sequence[str], cells: Sequence[str]) -> dict[str, tuple[int, float]]:
    """Return rank and value by thread; cells without a number have none."""
    found = {}
    for title, cell in zip(titles, cells, strict=False):
        thread = _THREAD.fullmatch(title)
        try:
            value = decimal_of(cell)
        except ValueError:
            continue
        if thread is not None and math.isfinite(value):
            found[title] = int(thread["rank"] or 0), value
    return found


def _quantity(name: str, *, is_event: bool) -> tuple[str, str, bool]:
    """Return title and unit of a quantity, and whether threads are added; "" = a rate or ratio.

    >>> [_quantity(name, is_event=False) for name in ("RDTSC Runtime [s]", "Energy [J]", "CPI")]
    [('time', 's', False), ('Energy', 'J', True), ('', '', False)]
    >>> _quantity("INSTR_RETIRED_ANY", is_event=True)
    ('INSTR_RETIRED_ANY', '1', True)
    """
    if name in _TIMES:
        return "time", "s", False
    if name == _CALLS:
        return "visits", "1", False
    bare, _, unit = name.rstrip("]").partition(" [")
    if unit in _UNITS:
        return bare, _UNITS[unit], True
    return (name, "1", True) if is_event else ("", "", False)
