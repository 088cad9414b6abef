"""Specifications for any number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from cpmodel_commspec.operations import Shape
from cpmodel_commspec.scalable.conditions import Condition
from cpmodel_commspec.scalable.forms import Form
from cpmodel_commspec.scalable.groups import Division
from cpmodel_commspec.scalable.numbers import Number
from cpmodel_commspec.scalable.quantities import Quantity
from cpmodel_commspec.scalable.scales import Order, Scale


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


def walk(
    nodes: Sequence[Node], around: tuple[Loop, ...] = ()
) -> Iterator[tuple[Node, tuple[Loop, ...]]]:
    """Yield loops and steps in order, each with the loops around it from the outside."""
    for node in nodes:
        yield node, around
        if isinstance(node, Loop):
            yield from walk(node.body, (*around, node))
