"""Communicators as parts of the grid: lines, planes, blocks and strides of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.operations import Communicator
from cpmodel_commspec.scalable.quantities import Quantity
from cpmodel_commspec.scalable.scales import Scale

BLOCKS, STRIDES = "blocks", "strides"


class Division(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the ranks are divided into communicators; each has its ranks in order.

    Attributes
    ----------
    kept : the dimensions along which ranks are together, as in `MPI_Cart_sub`; None otherwise
    layout, number : blocks of so many ranks that follow each other, or so many strides
    """

    kept: tuple[int, ...] | None = None
    layout: str = ""
    number: Quantity = Quantity(())

    def colors(self, scale: Scale) -> Int64Array:
        """Return the number of the group of each rank, [processes]."""
        ranks = np.arange(scale.processes)
        if self.kept is not None:
            return _colors(scale, self.kept)
        n = self.number.value(scale)
        colors: Int64Array = ranks // n if self.layout == BLOCKS else ranks % n
        return colors


def _colors(scale: Scale, kept: tuple[int, ...]) -> Int64Array:
    places = scale.places(np.arange(scale.processes))
    places[list(kept)] = 0
    colors: Int64Array = scale.ranks(places)
    return colors


def grouped(colors: Int64Array, members: Int64Array) -> tuple[tuple[int, ...], ...]:
    """Return the ranks of each group in order; `members` [n] are the ranks that are in one."""
    order = members[np.argsort(colors[members], kind="stable")]
    begins = np.flatnonzero(np.diff(colors[order])) + 1
    return tuple(tuple(group.tolist()) for group in np.split(order, begins))


def kept(one: Communicator, scale: Scale) -> Iterator[tuple[int, ...]]:
    """Yield the dimensions that a communicator can keep on a grid; all of them is everybody."""
    members = np.array(sorted(rank for group in one.groups for rank in group), np.int64)
    dimensions = [k for k, size in enumerate(scale.sizes) if size > 1] or [0]
    for flags in product((True, False), repeat=len(dimensions)):
        own = tuple(k for k, is_kept in zip(dimensions, flags, strict=True) if is_kept)
        groups = grouped(_colors(scale, own), members)
        if set(groups) == set(one.groups):
            # A dimension of one place may be kept or not.
            rest = [k for k in range(3) if k not in dimensions]
            for more in product((True, False), repeat=len(rest)):
                yield tuple(sorted((*own, *(k for k, x in zip(rest, more, strict=True) if x))))


def layouts(one: Communicator) -> Iterator[tuple[str, int]]:
    """Yield the layouts that communicators of everybody have, each with its number."""
    processes = sum(map(len, one.groups))
    groups, everybody = set(one.groups), np.arange(processes)
    if {rank for group in one.groups for rank in group} != set(range(processes)):
        return
    for layout, number in ((BLOCKS, len(one.groups[0])), (STRIDES, len(one.groups))):
        colors = everybody // number if layout == BLOCKS else everybody % number
        if set(grouped(colors, everybody)) == groups:
            yield layout, number
