"""The waits that AWAIT COMPLETION cannot say."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import BoolArray
from cpmodel_commspec.operations import Kind, Shape
from cpmodel_commspec.simulation.simulator import completed
from cpmodel_commspec.specification import Loop, Node, Specification, Step, lines_in


@dataclass(frozen=True, slots=True)
class PartialWaits:
    """The waits that are not for all operations of a rank, as AWAIT is.

    An exchange is a send and a wait, which should not wait for what was started before.

    Attributes
    ----------
    partial : by line, the ranks that wait for some operations only, in any round
    last : by line, those of them that wait for all in the last round of the loop around alone;
        only for lines at the end of a loop
    left : ranks with operations at the end that no AWAIT completes
    """

    partial: dict[int, set[int]]
    last: dict[int, set[int]]
    left: list[int]

    @classmethod
    def of(cls, told: Specification) -> PartialWaits:
        """Find them in the operations of each rank."""
        partial: dict[int, set[int]] = {}
        last: dict[int, set[int]] = {}
        left: list[int] = []
        ends = _ends(told.body, 1)
        starts, completing = {Kind.ISEND, Kind.IRECV}, {Kind.WAIT, Kind.EXCHANGE}
        is_start = np.array([shape.kind in starts for shape in told.shapes], np.bool_)
        is_wait = np.array([shape.kind in completing for shape in told.shapes], np.bool_)
        is_exchange = np.array([shape.kind is Kind.EXCHANGE for shape in told.shapes], np.bool_)
        for rank in range(told.processes):
            shapes = told.of_rank(rank).shapes
            here = is_start[shapes] | is_wait[shapes]
            shapes, lines = shapes[here], told.lines_of_rank(rank)[here]
            is_full = _full(told, shapes.tolist(), starts)
            is_kept = is_wait[shapes] & is_full
            for line in np.unique(lines[is_wait[shapes] & ~is_full]).tolist():
                partial.setdefault(line, set()).add(rank)
                rounds = is_full[lines == line].reshape(-1, ends.get(line, 1))
                is_last = not rounds[:, :-1].any() and bool(rounds[:, -1].all())
                if is_last:
                    last.setdefault(line, set()).add(rank)
                else:
                    is_kept &= lines != line
            waits = np.flatnonzero(is_kept)
            begin = int(waits[-1]) if len(waits) else 0
            is_dropped = is_exchange[shapes] & ~is_kept
            if (is_start[shapes] | is_dropped)[begin:].any():
                left.append(rank)
        return cls(partial, last, left)


def _full(told: Specification, shapes: Sequence[int], starts: Set[Kind]) -> BoolArray:
    """Return whether nothing is under way after each wait of a rank, [n]."""
    found = np.zeros(len(shapes), np.bool_)
    started: list[Shape] = []
    for place, number_ in enumerate(shapes):
        shape = told.shapes[number_]
        if shape.kind in starts:
            started += [shape] * shape.is_awaited
            continue
        if shape.kind is Kind.WAIT:
            _, started = completed(started, shape)
        found[place] = not started
    return found


def _ends(nodes: Sequence[Node], line: int) -> dict[int, int]:
    """Return the lines at the end of loops, with the rounds of the loop; loops nest a few deep."""
    found: dict[int, int] = {}
    for node in nodes:
        if isinstance(node, Loop):
            found |= _ends(node.body, line + 1)
            if isinstance(node.body[-1], Step):
                found[line + lines_in(node) - 1] = node.count
        line += lines_in(node)
    return found
