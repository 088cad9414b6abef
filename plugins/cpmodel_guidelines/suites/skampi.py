"""Tables of SKaMPI 5: parts ``begin result`` to ``end result``, with times in microseconds.

A row has named parameters, such as ``nodes= 4`` and ``count= 8``, then their values again as
numbers where SKaMPI prints them, and the columns time, standard error and number of repetitions.
The rest of a row has times of single processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from callpath_modeler.printable import shortened
from cpmodel_guidelines.campaigns.campaign import Detail, Section
from cpmodel_guidelines.functions import mpi_name
from cpmodel_guidelines.suites.sections import SectionBuilder, Source, block_size

_VERSION = re.compile(r"#?\s*SKaMPI Version")
_BEGIN = re.compile(r"(?:#\s*)?begin result\s+\"([^\"]{1,200})\"")
_END = re.compile(r"(?:#\s*)?end result")
_FIELD = re.compile(r"(?<!\w)(\w++)\s*+=\s*+(\S++)")
_PROCESSES = ("nodes", "procs", "p")
_COUNT = ("count", "size")
_NUMBERS = 2
"""Least numbers after the parameters: time and standard error."""


def matches(head: str) -> bool:
    """Return whether the beginning of a file is output of SKaMPI."""
    return _VERSION.search(head) is not None or _BEGIN.search(head) is not None


def read(source: Source, lines: Iterable[str]) -> list[Section]:
    """Return one section for each number of processes in the file.

    Raises
    ------
    InputError
        If a row is malformed; the message names its line.
    """
    sections: dict[int, SectionBuilder] = {}
    function = ""
    line = 0
    for line, raw in enumerate(lines, 1):
        text = raw.strip()
        if (found := _BEGIN.match(text)) is not None:
            function = mpi_name(found[1].partition("-")[0])
        elif _END.match(text):
            function = ""
        elif not text or text.startswith("#"):
            continue
        elif not function or "=" not in text:
            source.skip(line)
        else:
            _add(source, sections, line, function, text)
    source.require_rows(line, has_rows=bool(sections))
    return [section.made() for section in sections.values()]


def _add(
    source: Source, sections: dict[int, SectionBuilder], line: int, function: str, text: str
) -> None:
    """Add the time of one row."""
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
            line, f"{shortened(text)!r} has no time", "the row is cut off; run the benchmark again"
        )
    seconds = source.number(line, numbers[0], "time") * 1e-6
    section = sections.setdefault(processes, SectionBuilder(source, line, processes, Detail.MEANS))
    section.add(line, function, block_size(function, float(size), processes), seconds)
