"""Formulas of the number of processes and the grid, exact for all traces.

A formula is a sum of few terms, each a rational number times one of {1, x, y, z, xy, p, 1/x, 1/y,
1/p, 1/p^2, log2 p} and their kin in three dimensions. The factors come from all traces but the
largest. A formula is accepted if it is exact for the largest as well. Its number of terms is
smaller than that of the traces.

Formulas of sizes can lack a whole value at some number of processes, as 4096 / x at x = 3. Programs
divide whole elements: 512 / 3 * 8 = 1360. So such a size is rounded down to whole elements, of 8
bytes if all sizes are multiples of 8. `Quantity.is_rounded` tells where this happens. If a trace
shows such a size, the formula says so by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd

import msgspec

from cpmodel_commspec.scalable.scales import Scale

_UNITS = (8, 4, 2, 1)
"""Bytes of the elements that programs may count, the largest first."""


class Basis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A product of powers of x, y and z, or the logarithm of one."""

    powers: tuple[int, int, int]
    is_log: bool = False

    def value(self, scale: Scale) -> Fraction | None:
        """Return the value, None where a logarithm is not whole."""
        found = Fraction(1)
        for size, power in zip(scale.sizes, self.powers, strict=True):
            found *= Fraction(size) ** power
        if not self.is_log:
            return found
        bits = found.numerator.bit_length() - 1
        return Fraction(bits) if found == 1 << bits else None

    @property
    def is_constant(self) -> bool:
        """Whether it is 1."""
        return self.powers == (0, 0, 0)


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rational number times a basis function."""

    numerator: int
    denominator: int
    basis: Basis


class Unfit(Exception):  # noqa: N818 (no error of the program)
    """A formula has no value at a scale."""


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A formula of p, x, y and z.

    Attributes
    ----------
    terms : their sum; () for zero
    unit : bytes of an element, of which a size has a whole number; 0 for other quantities
    dimensions : of the grid
    is_quotient : whether traces show that the quotient is one of whole elements
    """

    terms: tuple[Term, ...]
    unit: int = 0
    dimensions: int = 1
    is_quotient: bool = False

    def exact(self, scale: Scale) -> Fraction:
        """Return the value before it is rounded.

        Raises
        ------
        Unfit
            If a logarithm has no whole value.
        """
        total = Fraction(0)
        for term in self.terms:
            value = term.basis.value(scale)
            if value is None:
                raise Unfit(f"{_name(term.basis, self.dimensions)} is no whole number")
            total += Fraction(term.numerator, term.denominator) * value
        return total

    def value(self, scale: Scale) -> int:
        """Return the value.

        Raises
        ------
        Unfit
            If it is no whole number.
        """
        exact = self.exact(scale)
        if exact.denominator == 1 and not self.is_quotient:
            return int(exact)
        if self.unit:
            return exact // self.unit * self.unit
        raise Unfit(f"{self} is no whole number")

    def is_rounded(self, scale: Scale) -> bool:
        """Tell whether the value was rounded down to whole elements."""
        return self.exact(scale) != self.value(scale) and not self.is_quotient

    @property
    def constant(self) -> int | None:
        """The value if it does not depend on the scale."""
        if all(term.basis.is_constant for term in self.terms):
            return self.value(Scale(1))
        return None

    @property
    def _in_elements(self) -> Term:
        [term] = self.terms
        factor = Fraction(term.numerator, term.denominator * self.unit)
        return Term(factor.numerator, factor.denominator, term.basis)

    def __str__(self) -> str:
        """Return the formula."""
        if self.is_quotient and self.unit > 1:
            return f"{_term(self._in_elements, self.dimensions)} * {self.unit}"
        parts = [_term(term, self.dimensions) for term in self.terms]
        text = parts[0] if parts else "0"
        for part in parts[1:]:
            text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return text


def whole(number: int, dimensions: int = 1) -> Quantity:
    """Return a constant."""
    one = Basis((0, 0, 0))
    return Quantity((Term(number, 1, one),) if number else (), 0, dimensions)


def power(dimensions: int, *names: str) -> Quantity:
    """Return a product of sizes, each named by x, y, z or p."""
    powers = [0, 0, 0]
    for name in names:
        for k in range(dimensions) if name == "p" else ["xyz".index(name)]:
            powers[k] += 1
    return Quantity((Term(1, 1, Basis((powers[0], powers[1], powers[2]))),), 0, dimensions)


def fit(
    scales: Sequence[Scale],
    values: Sequence[int],
    dimensions: int,
    *,
    is_size: bool = False,
    only_logs: bool = False,
) -> list[Quantity]:
    """Return the simplest formulas that are exact for every trace; [] = no formula is.

    Parameters
    ----------
    scales, values : of the traces, [n]; the one of most processes is kept back
    dimensions : of the grid
    is_size : whether values may be rounded down to whole elements
    only_logs : whether the quantity is a number of rounds over powers of two

    Returns
    -------
    several if formulas of the same number of terms fit; they can differ at other scales
    """
    unit = next(unit for unit in _UNITS if gcd(*values) % unit == 0) if is_size else 0
    points = dict(zip(scales, values, strict=True))
    if len(set(values)) == 1:
        # A constant has no factor to learn, so that every trace but one is a test.
        return [_quantity([(Fraction(values[0]), Basis((0, 0, 0)))], unit, dimensions)]
    bases = list(_bases(dimensions, only_logs=only_logs))
    for cost in range(1, len(points)):
        found = [*_fits(points, bases, cost, unit, dimensions, is_size=is_size)]
        if is_size and cost == 1 and not found:
            found = [*_rounded(points, bases, dimensions)]
        if found:
            return found
    return []


def _fits(
    points: dict[Scale, int], bases: Sequence[Basis], cost: int, unit: int, dimensions: int, *,
    is_size: bool,
) -> Iterator[Quantity]:  # fmt: skip
    """Yield the sums of a cost: a term costs 1, and 2 if a size grows with a logarithm."""
    order = sorted(points, key=lambda scale: scale.processes)
    known = {basis: [basis.value(scale) for scale in order] for basis in bases}
    for n in range(1, cost + 1):
        for chosen in combinations(bases, n):
            if sum(1 + (basis.is_log and is_size) for basis in chosen) != cost:
                continue
            if any(x.is_log for x in chosen) and not all(x.is_log or x.is_constant for x in chosen):
                # Programs do not add logarithms to other quantities.
                continue
            columns = [known[basis] for basis in chosen]
            rows = [[column[k] for column in columns] for k in range(len(order))]
            factors = _solved(rows[:-1], [points[scale] for scale in order[:-1]])
            if factors is None or 0 in factors or any(None in row for row in rows):
                continue
            total = sum(f * x for f, x in zip(factors, rows[-1], strict=True) if x is not None)
            if total == points[order[-1]]:
                yield _quantity(list(zip(factors, chosen, strict=True)), unit, dimensions)


def _rounded(
    points: dict[Scale, int], bases: Sequence[Basis], dimensions: int
) -> Iterator[Quantity]:
    """Yield quotients of whole elements, as 512 / x * 8, for sizes that no exact formula gives."""
    *small, _ = sorted(points, key=lambda scale: scale.processes)
    for unit in sorted({16, *_UNITS}, key=lambda unit: (unit != _UNITS[0], -unit)):
        if any(value % unit for value in points.values()):
            continue
        for basis in bases:
            if basis.is_log or min(basis.powers) >= 0:
                continue
            for scale in small:
                size = basis.value(scale)
                assert size is not None
                factor = points[scale] / size
                told = _quantity([(factor, basis)], unit, dimensions, is_quotient=True)
                if all(told.value(other) == value for other, value in points.items()):
                    yield told
                    return


def _solved(
    rows: Sequence[Sequence[Fraction | None]], values: Sequence[int]
) -> list[Fraction] | None:
    """Return the only exact solution of linear equations, by elimination; else None."""
    table = [[*row, Fraction(value)] for row, value in zip(rows, values, strict=True)]
    if any(None in row for row in table):
        return None
    matrix = [[Fraction(x or 0) for x in row] for row in table]
    n = len(matrix[0]) - 1
    for k in range(n):
        pivot = next((j for j in range(k, len(matrix)) if matrix[j][k]), None)
        if pivot is None:
            return None
        matrix[k], matrix[pivot] = matrix[pivot], matrix[k]
        matrix[k] = [x / matrix[k][k] for x in matrix[k]]
        for j in range(len(matrix)):
            if j != k and matrix[j][k]:
                factor = matrix[j][k]
                matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[k], strict=True)]
    if any(row[n] for row in matrix[n:]):
        return None
    return [matrix[k][n] for k in range(n)]


def _bases(dimensions: int, *, only_logs: bool) -> Iterator[Basis]:
    """Yield the basis functions that differ on a grid of so many dimensions."""
    units = [tuple(int(k == j) for k in range(3)) for j in range(dimensions)]
    products = [tuple(map(sum, zip(*chosen, strict=True)))
                for n in range(1, dimensions + 1) for chosen in combinations(units, n)]  # fmt: skip
    powers = [(a, b, c) for a, b, c in products]
    everything = powers[-1]
    if not only_logs:
        yield Basis((0, 0, 0))
        for one in powers:
            yield Basis(one)
        for a, b, c in powers:
            yield Basis((-a, -b, -c))
        a, b, c = everything
        yield Basis((-2 * a, -2 * b, -2 * c))
        yield Basis(everything, is_log=True)
        return
    for one in reversed(powers):
        yield Basis(one, is_log=True)


def _quantity(
    terms: Sequence[tuple[Fraction, Basis]],
    unit: int,
    dimensions: int,
    *,
    is_quotient: bool = False,
) -> Quantity:
    made = (Term(f.numerator, f.denominator, basis) for f, basis in terms if f)
    return Quantity(tuple(made), unit, dimensions, is_quotient)


def _name(basis: Basis, dimensions: int) -> str:
    """Return the name of a basis function without a sign of its power."""
    powers = [abs(power) for power in basis.powers[:dimensions]]
    if len(set(powers)) == 1:
        name = "p" if powers[0] == 1 else "(p * p)"
    else:
        sizes = [size for size, power in zip("xyz", powers, strict=False) if power]
        name = sizes[0] if len(sizes) == 1 else f"({' * '.join(sizes)})"
    return f"log2({name.strip('()')})" if basis.is_log else name


def _term(term: Term, dimensions: int) -> str:
    number, below = str(term.numerator), str(term.denominator)
    if term.basis.is_constant:
        return number if below == "1" else f"{number} / {below}"
    name = _name(term.basis, dimensions)
    if min(term.basis.powers) < 0:
        return f"{number} / {name}" if below == "1" else f"{number} / ({below} * {name})"
    head = {"1": "", "-1": "-"}.get(number, f"{number} * ")
    return head + name + ("" if below == "1" else f" / {below}")
