"""Readers of single-run profiles of other tools: folded stacks and Hatchet literals."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.printable import shortened
from callpath_modeler.readers.base import Match, RunSource
from callpath_modeler.support.input_limits import InputLimits, Work, packed_budget
from callpath_modeler.units import counted, decimal_of, is_plain
from cpmodel_tables.reader import FOLDED
from cpmodel_tables.single_run import SingleRun
from cpmodel_tables.text import COPY_IT_AGAIN, first_text, json_of, opened_text, whole_text

_LITERAL = re.compile(r'\s*\[\s*\{\s*"')
_NO_VALUES = frozenset({"_hatchet_nid"})


class FoldedStacks:
    """Reader of folded stacks, the input of flame graphs: ``main;solve;MPI_Send 12``."""

    def match(self, path: Path) -> Match:
        """Return whether `path` contains folded stacks, by its first line, or by all its lines."""
        if _is_empty(path):
            return Match.NO
        if not path.name.lower().endswith(FOLDED):
            return Match.CONTENT if _are_all(path) else Match.NO
        return Match.CONTENT if _begins(path) else Match.NAME

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the run; counts of equal stacks are added.

        Raises
        ------
        InputError
            If a line is not a stack with a number.
        """
        values, findings = _read_stacks(path)
        return SingleRun(path, values).runs("folded stacks", findings)


class HatchetLiterals:
    """Reader of node lists that Hatchet's ``to_literal`` returns, stored as JSON."""

    def match(self, path: Path) -> Match:
        """Return whether `path` is a list of Hatchet nodes, by its beginning."""
        text = first_text(path)
        known = _LITERAL.match(text) and '"frame"' in text and '"metrics"' in text
        return Match.CONTENT if known else Match.NO

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the run in the nodes.

        Raises
        ------
        InputError
            If a node does not have Hatchet's layout.
        """
        roots = json_of(path, whole_text(path, is_json=True))
        profile, added = SingleRun(path), 0
        limits, depths = InputLimits.of(path), 0
        stack: list[tuple[tuple[str, ...], object]]
        stack = [((), node) for node in reversed(_list(path, roots))]
        seen: set[tuple[str, ...]] = set()
        while stack:
            above, node = stack.pop()
            depths += len(above) + 1
            limits.check(Work.NAMES, depths, "write fewer levels of calls")
            names, metrics, children = _node(path, above, node)
            added += names in seen
            seen.add(names)
            for title, value in metrics.items():
                profile.add(names, title, value)
            stack += [(names, child) for child in reversed(children)]
        message = f"{added} call paths added to a sibling of the same name"
        noticed = [Finding("CPM112", str(path), message, added)] if added else []
        return profile.runs("Hatchet", noticed)


def _list(path: Path, nodes: object) -> list[object]:
    if not isinstance(nodes, list):
        raise InputError(
            f"{path}: {shortened(str(nodes))!r} is not a list of nodes", hint=COPY_IT_AGAIN
        )
    return nodes


def _node(
    path: Path, above: tuple[str, ...], node: object
) -> tuple[tuple[str, ...], dict[str, float], list[object]]:
    """Return the call path, the values and the callees of a node."""
    held = node if isinstance(node, dict) else {}
    frame, metrics = held.get("frame"), held.get("metrics")
    name = frame.get("name") if isinstance(frame, dict) else None
    name = name or held.get("name")
    if not isinstance(name, str) or not name or not isinstance(metrics, dict):
        raise InputError(
            f"{path}: a node below {'/'.join(above) or 'the root'} has no name or no metrics",
            hint='e.g. {"frame": {"name": "main"}, "metrics": {"time": 1.5}, "children": []}',
        )
    values: dict[str, float] = {}
    for title, value in metrics.items():
        if title in _NO_VALUES or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        try:
            values[title] = float(value)
        except OverflowError:
            values[title] = math.inf
    return (*above, name), values, _list(path, held.get("children") or [])


SAMPLES = "samples"
SECOND = "samples_2"
"""Metric of the second count, which comparisons of two profiles contain."""
UNNAMED = "(unnamed)"

_COUNT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?", re.IGNORECASE)

_MOST_LINES = 100
_AT_ONCE = 1 << 20
"""Number of characters that are _read_stacks together."""
_OF_A_STACK, _OF_A_FRAME = 500, 120
"""Memory of a stack, and of each of its frames, before the call tree is built, in bytes."""

Stack = tuple[str, ...]


def _begins(path: Path) -> bool:
    """Return whether a file contains folded stacks, by its first line, which may be very long."""
    text = first_text(path)
    first = next((line for line in text.splitlines() if _is_stack(line)), "")
    if _parted(first) is not None:
        return True
    is_cut = text.endswith(first) and len(first) > 1
    return is_cut and ";" in first


def _are_all(path: Path) -> bool:
    """Return whether all first lines of a file of any ending are stacks with several frames."""
    lines = first_text(path).splitlines()[:_MOST_LINES]
    found = [line for line in lines if _is_stack(line)]
    parted = [_parted(line) for line in found]
    return (
        len(found) == len([line for line in lines if line.strip()])
        and all(each is not None for each in parted)
        and any(";" in line.rpartition(" ")[0] for line in found)
    )


def _is_empty(path: Path) -> bool:
    """Return whether a file has no stack at its beginning."""
    return not any(map(_is_stack, first_text(path).splitlines()))


def _read_stacks(path: Path) -> tuple[dict[tuple[Stack, str], float], list[Finding]]:
    """Return the values of stacks by metric, and findings; values of equal stacks are added.

    Raises
    ------
    InputError
        If a line is not a stack with a number.
    """
    stacks = _stacks(path)
    parted = {stack: _parted(stack) for stack in stacks}
    findings: list[Finding] = []
    count = sum(found.lines for found in stacks.values())
    has_two = count > 1 and None not in parted.values()
    if has_two:
        message = f"the first count is metric {SAMPLES}, the second one {SECOND}"
        findings.append(Finding("CPM163", str(path), message, count))
    values: dict[tuple[Stack, str], float] = {}
    unnamed = 0
    for stack, found in stacks.items():
        first = parted[stack] if has_two else None
        counts = {SAMPLES: found.count}
        if first is not None:
            counts = {SAMPLES: found.lines * first[1], SECOND: found.count}
        names = tuple((stack if first is None else first[0]).rstrip("; \t").split(";"))
        if not any(names):
            raise _no_stack(path, found.first)
        unnamed += found.lines * ("" in names)
        names = tuple(name or UNNAMED for name in names)
        for metric, value in counts.items():
            values[names, metric] = values.get((names, metric), 0.0) + value
    if unnamed:
        message = f"{counted(unnamed, 'stack')} with frames called {UNNAMED}"
        findings.append(Finding("CPM162", str(path), message, unnamed))
    return values, findings


@dataclass(slots=True)
class _Found:
    """Lines that have the same text before the last number.

    Attributes
    ----------
    first : number of the first line
    lines : number of lines
    count : sum of their counts
    """

    first: int
    lines: int = 0
    count: float = 0.0


def _stacks(path: Path) -> dict[str, _Found]:
    """Return the stacks in order of appearance; equal texts are stored once."""
    budget, memory, start = packed_budget(path), 0, 1
    stacks: dict[str, _Found] = {}
    with opened_text(path, newline="\n") as text:
        while lines := text.readlines(_AT_ONCE):
            end = start + len(lines)
            first = dict(zip(reversed(lines), range(end - 1, start - 1, -1), strict=True))
            # Highly compressed files have many equal lines, so each different line is parsed once.
            for line, times in Counter(lines).items():
                if not _is_stack(line):
                    continue
                parted = _parted(line)
                if parted is None:
                    raise _no_stack(path, first[line])
                stack, count = parted
                if stack not in stacks:
                    stacks[stack] = _Found(first[line])
                    memory += _OF_A_STACK + len(stack) + _OF_A_FRAME * stack.count(";")
                    if budget is not None:
                        budget.check_memory(memory)
                stacks[stack].lines += times
                stacks[stack].count += times * count
            start = end
    return stacks


def _is_stack(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _parted(line: str) -> tuple[str, float] | None:
    """Return the text before the last number of a line, and the number; None = no number."""
    words = line.rsplit(None, 1)
    if len(words) < 2 or not (is_plain(words[1]) and _COUNT.fullmatch(words[1])):
        return None
    return words[0].strip(), decimal_of(words[1])


def _no_stack(path: Path, number: int) -> InputError:
    return InputError(
        f"{path}: line {number}: not a stack with a number", hint="e.g. main;solve 12"
    )
