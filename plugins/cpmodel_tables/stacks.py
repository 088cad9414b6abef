"""Folded stacks: a line per stack with its frames, and one count or two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.units import counted
from cpmodel_tables.text import first_text, whole_text

SAMPLES = "samples"
SECOND = "samples_2"
"""The metric of the second count, which comparisons of two profiles write."""
UNNAMED = "(unnamed)"

_COUNT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", re.IGNORECASE)

Stack = tuple[str, ...]


def begins(path: Path) -> bool:
    """Tell by its first line whether a file holds folded stacks; the line may be very long."""
    text = first_text(path)
    first = next((line for line in text.splitlines() if _is_stack(line)), "")
    if _parted(first) is not None:
        return True
    is_cut = text.endswith(first) and len(first) > 1
    return is_cut and ";" in first


def is_empty(path: Path) -> bool:
    """Tell whether a file begins without any stack."""
    return not any(map(_is_stack, first_text(path).splitlines()))


def read(path: Path) -> tuple[dict[tuple[Stack, str], float], list[Finding]]:
    """Return the values of stacks by metric; those of the same stack are added.

    Raises
    ------
    InputError
        If a line is no stack with a number.
    """
    lines = list(_lines(path))
    parted = [_parted(stack) for _, stack, _ in lines]
    findings: list[Finding] = []
    if len(parted) > 1 and None not in parted:
        message = f"the first is the metric {SAMPLES}, the second the metric {SECOND}"
        findings.append(Finding("CPM163", str(path), message, len(lines)))
    else:
        parted = [None] * len(lines)
    values: dict[tuple[Stack, str], float] = {}
    unnamed = 0
    for (number, stack, count), first in zip(lines, parted, strict=True):
        counts = {SAMPLES: count} if first is None else {SAMPLES: first[1], SECOND: count}
        names = tuple((stack if first is None else first[0]).rstrip("; \t").split(";"))
        if not any(names):
            raise _no_stack(path, number)
        unnamed += "" in names
        names = tuple(name or UNNAMED for name in names)
        for metric, value in counts.items():
            values[names, metric] = values.get((names, metric), 0.0) + value
    if unnamed:
        message = f"{counted(unnamed, 'stack')} with frames called {UNNAMED}"
        findings.append(Finding("CPM162", str(path), message, unnamed))
    return values, findings


def _lines(path: Path) -> Iterator[tuple[int, str, float]]:
    """Yield number, stack and last count of every line."""
    for number, line in enumerate(whole_text(path).split("\n"), start=1):
        if _is_stack(line):
            parted = _parted(line)
            if parted is None:
                raise _no_stack(path, number)
            yield number, *parted


def _is_stack(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _parted(line: str) -> tuple[str, float] | None:
    """Return what stands before the last number of a line, and the number."""
    words = line.rsplit(None, 1)
    if len(words) < 2 or not _COUNT.fullmatch(words[1]):
        return None
    return words[0].strip(), float(words[1])


def _no_stack(path: Path, number: int) -> InputError:
    return InputError(f"{path}: line {number}: no stack with a number", hint="e.g. main;solve 12")
