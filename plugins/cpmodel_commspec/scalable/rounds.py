"""Loops over powers of two: where the powers start again, an outer loop begins a round."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.compression.loops import Loop, Node


def split(
    nodes: Sequence[Node], exponents: Int64Array, families: Collection[int]
) -> tuple[Node, ...]:
    """Return nodes with loops over powers of two apart from the loops around them.

    Folding sees no difference between three times two rounds and six rounds.

    Parameters
    ----------
    exponents : of the partner of each operation, once unrolled, [n]
    families : the operations whose partners are at powers of two
    """
    found: list[Node] = []
    begin = 0
    for node in nodes:
        length = _length(node)
        if isinstance(node, Loop):
            inner = length // node.count
            body = split(node.body, exponents[begin : begin + inner], families)
            place = _first(node.body, families)
            loop = Loop(node.count, body)
            own = exponents[begin + place : begin + length : inner]
            found.append(_loop(loop, own) if place >= 0 else loop)
        else:
            found.append(node)
        begin += length
    return tuple(found)


def _loop(loop: Loop, exponents: Int64Array) -> Loop:
    """Return a loop in an outer one if its exponents [rounds] start again after some rounds."""
    restarts = np.flatnonzero(np.diff(exponents) <= 0) + 1
    if not len(restarts):
        return loop
    period = int(restarts[0])
    if period == 1 or loop.count % period or (restarts % period).any():
        return loop
    return Loop(loop.count // period, (Loop(period, loop.body),))


def _first(body: Sequence[Node], families: Collection[int]) -> int:
    """Return the place of the first operation at a power of two in a round; -1 = none."""
    place = 0
    for node in body:
        if not isinstance(node, Loop) and node in families:
            return place
        place += _length(node)
    return -1


def _length(node: Node) -> int:
    return node.count * sum(map(_length, node.body)) if isinstance(node, Loop) else 1
