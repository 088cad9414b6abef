"""Specifications for any number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TypeAlias

import msgspec
import numpy as np

from callpath_modeler.arrays import Int64Array
from cpmodel_commspec.operations import Communicator, Shape
from cpmodel_commspec.scalable.conditions import Condition
from cpmodel_commspec.scalable.forms import Form
from cpmodel_commspec.scalable.numbers import Number
from cpmodel_commspec.scalable.quantities import Quantity
from cpmodel_commspec.scalable.scales import Order, Scale
from cpmodel_commspec.specification import walk

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


class Step(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="step"):
    """An operation.

    Attributes
    ----------
    shape : number of its shape
    condition : who takes part, of those that execute the loop around
    numbers : by the fields of the shape; those of partners are what `forms` need
    forms : of partners, by the field of the partner
    """

    shape: int
    condition: Condition
    numbers: Mapping[str, Number]
    forms: Mapping[str, Form] = {}


class Loop(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag="loop"):
    """Nodes that ranks repeat; `rounds` may depend on the rank."""

    rounds: Number
    condition: Condition
    body: tuple[Node, ...]

    def is_counted(self, variable: str) -> bool:
        """Tell whether any number depends on the round."""
        return any(
            variable in number.factors
            for node, _ in walk(self.body)
            if isinstance(node, Step)
            for number in node.numbers.values()
        )


Node: TypeAlias = "Step | Loop"


class Group(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Communicators of one split.

    Attributes
    ----------
    members : the ranks that are in one of them
    """

    name: str
    division: Division
    members: Condition = Condition()


class ScalableSpecification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The communication of a program at any number of processes.

    Attributes
    ----------
    program : as it was called, or ""
    scales : of the traces
    dimensions : of the grid
    order : of the sizes of a grid that nobody gives; None if the grids of the traces follow no rule
    shapes, groups : the definitions that steps refer to
    grids : sizes of the Cartesian communicators that shapes make; below zero if periodic
    body : the program, in the order of every rank
    left_out : number of excluded calls in the largest trace, by kind
    """

    program: str
    scales: tuple[Scale, ...]
    dimensions: int
    order: Order | None
    shapes: tuple[Shape, ...]
    groups: tuple[Group, ...]
    grids: Mapping[int, tuple[Quantity, ...]]
    body: tuple[Node, ...]
    left_out: Mapping[str, int]

    @property
    def lines(self) -> int:
        """Number of operations and loops."""
        return sum(1 for _ in walk(self.body))

    @property
    def has_elements(self) -> bool:
        """Whether any trace shows that sizes are divided into whole elements."""
        steps = (node for node, _ in walk(self.body) if isinstance(node, Step))
        return any(number.block for step in steps for number in step.numbers.values())
