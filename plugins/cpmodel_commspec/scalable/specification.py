"""Specifications for any number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

import msgspec
import numpy as np

from callpath_modeler.arrays import FloatArray, Int64Array
from cpmodel_commspec.operations import Communicator, Shape
from cpmodel_commspec.scalable.conditions import Condition
from cpmodel_commspec.scalable.forms import Form
from cpmodel_commspec.scalable.quantities import Quantity, fit, power, whole
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


_MOST_FEATURES = 3
_SAMPLE = 300
"""Values that a solution is guessed from; it is tested on all."""

_FACTORS = (1, -1, 2, -2)
"""Factors of features in numbers that start again after some steps."""


class Number(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A number: a base, and features times factors.

    Attributes
    ----------
    base : a formula of the scale
    factors : by the names of features
    modulus : the sum is the remainder of a division by it, if it is there
    others : further formulas that fit the traces as well as the base
    """

    base: Quantity
    factors: Mapping[str, Quantity] = {}
    modulus: Quantity | None = None
    others: tuple[Quantity, ...] = ()

    def values(self, scale: Scale, features: Mapping[str, Int64Array], n: int) -> Int64Array:
        """Return the numbers [n] of operations with features [n].

        Raises
        ------
        Unfit
            If a formula has no whole value at the scale.
        """
        found = np.full(n, self.base.value(scale), np.int64)
        for name, factor in self.factors.items():
            found += factor.value(scale) * features[name]
        if self.modulus is not None:
            found %= self.modulus.value(scale)
        return found

    def quantities(self) -> Iterator[Quantity]:
        """Yield its formulas."""
        yield self.base
        yield from self.factors.values()
        if self.modulus is not None:
            yield self.modulus

    def __str__(self) -> str:
        """Return the formula."""
        text = str(self.base)
        for name, factor in self.factors.items():
            text = _added(text, str(factor), name)
        return (
            text
            if self.modulus is None
            else f"{grouped_text(text)} % {grouped_text(str(self.modulus))}"
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """Numbers in a trace.

    Attributes
    ----------
    values : [n]
    features : by name, [n]
    """

    scale: Scale
    values: Int64Array
    features: Mapping[str, Int64Array]


@dataclass(frozen=True, slots=True)
class Misfit:
    """The reason why a number has no formula, in words."""

    reason: str


def find(
    samples: Sequence[Sample],
    dimensions: int,
    names: Sequence[str],
    *,
    is_size: bool = False,
    is_rounds: bool = False,
) -> Number | Misfit:
    """Return the simplest number that is exact for all samples.

    Parameters
    ----------
    names : the features that it may depend on, the likely ones first
    is_size : whether it is a number of bytes
    is_rounds : whether it counts rounds over powers of two
    """
    samples = [one for one in samples if len(one.values)]
    if not samples:
        return Number(whole(0))
    used = [
        x for x in names if any((one.features[x] != one.features[x][0]).any() for one in samples)
    ]
    for count in range(min(_MOST_FEATURES, len(used)) + 1):
        for chosen in combinations(used, count):
            found = _linear(samples, chosen, dimensions, is_size=is_size, is_rounds=is_rounds)
            if found is not None:
                return found
    return _cyclic(samples, used, dimensions) or Misfit(_unlike(samples))


def _linear(
    samples: Sequence[Sample],
    chosen: Sequence[str],
    dimensions: int,
    *,
    is_size: bool,
    is_rounds: bool,
) -> Number | None:
    solved = [_solved(one, chosen) for one in samples]
    if any(own is None for own in solved):
        return None
    scales = [one.scale for one in samples]
    bases, factors = [own[0] for own in solved if own], [own[1] for own in solved if own]
    found = {}
    for name in chosen:
        known = {
            scale: own[name] for scale, own in zip(scales, factors, strict=True) if name in own
        }
        fitted = fit([*known], [*known.values()], dimensions) if len(known) > 1 else []
        if not fitted:
            return None
        found[name] = fitted[0]
        for k, one in enumerate(samples):
            if name not in factors[k]:
                # The trace has one value of the feature, so that it does not show the factor.
                bases[k] -= found[name].value(one.scale) * int(one.features[name][0])
    fitted = fit(scales, bases, dimensions, only_logs=True) if is_rounds else []
    fitted = fitted or fit(scales, bases, dimensions, is_size=is_size)
    return Number(fitted[0], found, None, tuple(fitted[1:])) if fitted else None


def _solved(one: Sample, chosen: Sequence[str]) -> tuple[int, dict[str, int]] | None:
    """Return base and factors of a trace, exact for all its values; the factors that it shows."""
    shown = [name for name in chosen if (one.features[name] != one.features[name][0]).any()]
    n = len(one.values)
    rows = np.unique(np.linspace(0, n - 1, min(_SAMPLE, n)).astype(np.int64))
    columns: list[FloatArray] = [np.ones(len(rows))]
    columns += [one.features[name][rows].astype(np.float64) for name in shown]
    matrix = np.stack(columns, axis=1)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        return None
    solution = np.linalg.lstsq(matrix, one.values[rows].astype(np.float64), rcond=None)[0]
    base, *factors = (int(x) for x in np.round(solution))
    total = np.full(n, base, np.int64)
    for name, factor in zip(shown, factors, strict=True):
        total += factor * one.features[name]
    if (total != one.values).any():
        return None
    return base, dict(zip(shown, factors, strict=True))


def _cyclic(samples: Sequence[Sample], names: Sequence[str], dimensions: int) -> Number | None:
    """Return a number that starts again after as many steps as the grid is long."""
    sizes = [axes for n in range(1, dimensions + 1) for axes in combinations("xyz"[:dimensions], n)]
    for count in (1, 2):
        for chosen in combinations(names, count):
            for factors in product(_FACTORS, repeat=count):
                sums = [
                    one.values
                    - sum(f * one.features[name] for f, name in zip(factors, chosen, strict=True))
                    for one in samples
                ]
                for axes in sizes:
                    modulus = power(dimensions, *axes)
                    base = _common_rest(samples, sums, modulus)
                    if base is not None:
                        told = {name: whole(f) for name, f in zip(chosen, factors, strict=True)}
                        return Number(whole(base), told, modulus)
    return None


def _common_rest(
    samples: Sequence[Sample], sums: Sequence[Int64Array], modulus: Quantity
) -> int | None:
    """Return the number that sums leave in a division, if there is one for all traces."""
    rests = set()
    for one, total in zip(samples, sums, strict=True):
        m = modulus.value(one.scale)
        rest = total % m
        if (rest != rest[0]).any() or (one.values < 0).any() or (one.values >= m).any():
            return None
        # Small numbers below zero are likelier than those just below the modulus.
        rests.add(int(rest[0]) if 2 * rest[0] < m or rest[0] < 2 else int(rest[0]) - m)
    return rests.pop() if len(rests) == 1 else None


def _unlike(samples: Sequence[Sample]) -> str:
    """Return the values of each trace, in words."""
    parts = []
    for one in samples:
        low, high = int(one.values.min()), int(one.values.max())
        parts.append(f"{low} at {one.scale}" if low == high else f"{low} to {high} at {one.scale}")
    return ", ".join(parts)


def _added(text: str, factor: str, name: str) -> str:
    sign = "+"
    if factor.startswith("-"):
        sign, factor = "-", factor[1:]
    product = name if factor == "1" else f"{grouped_text(factor)} * {name}"
    if text == "0":
        return product if sign == "+" else f"-{product}"
    return f"{text} {sign} {product}"


def grouped_text(text: str) -> str:
    """Return a formula that can be a factor."""
    return f"({text})" if " " in text else text


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
