"""Output of ``perf script``: samples with their stacks."""

from __future__ import annotations

import re
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables.single_run import SingleRun, Stack, longest
from cpmodel_tables.text import opened_lines

CREATOR = "perf"

_HEADER = re.compile(
    r"(?P<program>\S.*?) +(?P<thread>\d+(?:/\d+)?) +(?:\[\d+\] +)?\d+\.\d+: +"
    r"(?:(?P<period>\d+) +)?(?P<event>[A-Za-z][\w./,=-]*?)(?::[A-Za-z]+)?: *"
)
_FRAME = re.compile(r"\s+[0-9a-f]+ (?P<name>.+?)(?:\+0x[0-9a-f]+)? \([^()]*(?:\([^()]*\))?[^()]*\)")
_OF_NANOSECONDS = frozenset({"cpu-clock", "task-clock"})
_SAMPLES = "samples"
_LONGEST = 4_000
"""Largest number of characters of a line; longer ones are skipped."""


def is_one(text: str) -> bool:
    """Return whether a text is output of perf, by its first sample."""
    lines = [line for line in text.splitlines()[:200] if line and not line.startswith("#")]
    header = bool(lines) and _HEADER.fullmatch(lines[0][:_LONGEST])
    return bool(header) and len(lines) > 1 and bool(_FRAME.fullmatch(lines[1][:_LONGEST]))


def read(path: Path) -> tuple[SingleRun, list[Finding]]:
    """Return the run: sums of the periods of samples by stack.

    Events that count time give seconds. The longest thread gives the times of the process.

    Raises
    ------
    InputError
        If the file cannot be read, or has too many frames for its size.
    """
    limits, frames = InputLimits.of(path), 0
    threads: dict[str, dict[str, dict[Stack, float]]] = {}
    program, stack = "", list[str]()
    header: re.Match[str] | None = None
    with opened_lines(path) as text:
        for whole in text:
            line = whole.rstrip()
            if len(line) > _LONGEST:
                continue
            if header is not None and (frame := _FRAME.fullmatch(line)):
                stack.append(frame["name"])
                continue
            if header is not None:
                frames += len(stack) + 1
                limits.check(Work.NAMES, frames, "split the file")
                _add(threads, header, (program, *reversed(stack)))
            header, stack = _HEADER.fullmatch(line), []
            program = program or (header["program"] if header else "")
    if header is not None:
        _add(threads, header, (program, *reversed(stack)))
    run = SingleRun(path)
    for title, by_thread in threads.items():
        values = longest([*by_thread.values()], is_time=title.startswith("time"))
        for names, value in values.items():
            run.add(names, title, value)
    return run, []


def _add(
    threads: dict[str, dict[str, dict[Stack, float]]], header: re.Match[str], names: Stack
) -> None:
    event = header["event"]
    title = "time [ns]" if event in _OF_NANOSECONDS else event
    for each, value in ((title, header["period"]), (_SAMPLES, "1")):
        if value is not None:
            thread = header["thread"].rpartition("/")[2]
            values = threads.setdefault(each, {}).setdefault(thread, {})
            values[names] = values.get(names, 0.0) + float(value)
