"""Readers of single-run profiles of other tools: folded stacks and Hatchet literals."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError
from callpath_modeler.printable import shortened
from callpath_modeler.readers.base import Match, RunSource
from callpath_modeler.support.input_limits import InputLimits, Work
from cpmodel_tables import stacks
from cpmodel_tables.reader import FOLDED
from cpmodel_tables.single_run import SingleRun
from cpmodel_tables.text import COPY_IT_AGAIN, first_text, json_of, whole_text

_LITERAL = re.compile(r'\s*\[\s*\{\s*"')
_NO_VALUES = frozenset({"_hatchet_nid"})


class FoldedStacks:
    """Reader of folded stacks, the input of flame graphs: ``main;solve;MPI_Send 12``."""

    def match(self, path: Path) -> Match:
        """Return whether `path` contains folded stacks, by its first line, or by all its lines."""
        if stacks.is_empty(path):
            return Match.NO
        if not path.name.lower().endswith(FOLDED):
            return Match.CONTENT if stacks.are_all(path) else Match.NO
        return Match.CONTENT if stacks.begins(path) else Match.NAME

    def runs(self, path: Path) -> Sequence[RunSource]:
        """Return the run; counts of equal stacks are added.

        Raises
        ------
        InputError
            If a line is not a stack with a number.
        """
        values, findings = stacks.read(path)
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
