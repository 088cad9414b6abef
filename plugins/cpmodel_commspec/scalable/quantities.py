"""Formulas of the number of processes and the grid, exact for all traces.

A formula is a sum of few terms. Each term is a rational number times one of {1, x, y, z, xy, p,
p^2, 1/x, 1/y, 1/p, 1/p^2, 1/(p x), 1/(p y), log2 p, sqrt p}, or their kin in three dimensions. Each
trace is left out in turn: the others have to give the same factors, and these are exact for all
traces. Traces of powers of two make many functions alike. So sums with odd denominators have no
meaning, nor have differences of two functions in sizes.

Formulas of sizes can lack a whole value at some number of processes, as 4096 / x at x = 3. Programs
divide elements of 1, 4, 8 or 16 bytes, and round down or up, or give some ranks more. So such a
size has no value, unless the user gives the bytes of an element: then it is rounded down to whole
ones, and `Quantity.is_rounded` tells where. If a trace shows such a size, `blocks.py` has its
formula. Whole sizes can have parts of elements, too, which `Quantity.is_part` tells. A quotient by
several sizes never has a value there, because (64 / x) * (64 / y) and 4096 / (x * y) are rounded
differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import gcd, isqrt

import msgspec

from cpmodel_commspec.scalable.scales import Scale

_OPEN = "is no whole number, and no trace tells how it is rounded"
"""Why a formula has no value at some numbers of processes."""


LOG2, ROOT = "log2", "sqrt"


class Basis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A product of powers of x, y and z, or a function of one.

    Attributes
    ----------
    function : `LOG2`, `ROOT` or none
    rounding : 1 and -1 for functions that are rounded up and down
    """

    powers: tuple[int, int, int]
    function: str = ""
    rounding: int = 0

    def value(self, scale: Scale) -> Fraction | None:
        """Return the value, None where a function is not whole."""
        found = Fraction(1)
        for size, power in zip(scale.sizes, self.powers, strict=True):
            found *= Fraction(size) ** power
        if not self.function:
            return found
        is_log, n = self.function == LOG2, found.numerator
        low = n.bit_length() - 1 if is_log else isqrt(n)
        is_whole = n == (1 << low if is_log else low * low)
        if not is_whole and not self.rounding:
            return None
        return Fraction(low + (self.rounding > 0 and not is_whole))

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
    """A formula has no value at a scale; `is_open` if the program can have one, by rounding."""

    def __init__(self, reason: str, *, is_open: bool = False) -> None:
        super().__init__(reason)
        self.is_open = is_open


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A formula of p, x, y and z.

    Attributes
    ----------
    terms : their sum; () for zero
    unit : bytes of an element; 1 for numbers that are no sizes
    dimensions : of the grid
    rounds : whether the user gave the unit, so that sizes are rounded down to whole elements
    """

    terms: tuple[Term, ...]
    unit: int = 1
    dimensions: int = 1
    rounds: bool = False

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
                raise Unfit(f"{_name(term.basis, self.dimensions)} {_OPEN}", is_open=True)
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
        if self.is_rounding and (exact.denominator > 1 or self.is_part(scale)):
            return exact // self.unit * self.unit
        if exact.denominator == 1:
            return int(exact)
        raise Unfit(f"{self} {_OPEN}", is_open=True)

    def is_part(self, scale: Scale) -> bool:
        """Tell whether a quotient is not a multiple of the bytes that divide all traced sizes."""
        return bool(self.divisors and self.exact(scale) % self.unit)

    @property
    def divisors(self) -> int:
        """The most sizes of the grid that divide a term."""
        below = (-sum(min(0, power) for power in term.basis.powers) for term in self.terms)
        return max(below, default=0)

    @property
    def is_falling(self) -> bool:
        """Whether a term falls below zero as the scale grows."""
        return any(x.numerator < 0 and max(x.basis.powers) > 0 for x in self.terms)

    @property
    def is_rounding(self) -> bool:
        """Whether this formula rounds a value down to whole elements."""
        return self.rounds and self.divisors <= 1

    def is_rounded(self, scale: Scale) -> bool:
        """Tell whether the value was rounded down to whole elements."""
        return self.exact(scale) != self.value(scale)

    @property
    def constant(self) -> int | None:
        """The value if it does not depend on the scale."""
        if all(term.basis.is_constant for term in self.terms):
            return self.value(Scale(1))
        return None

    def plus(self, number: int) -> Quantity:
        """Return the sum with a whole number."""
        rest = tuple(term for term in self.terms if not term.basis.is_constant)
        constant = sum(Fraction(x.numerator, x.denominator) for x in self.terms if x not in rest)
        total = constant + number
        term = Term(total.numerator, total.denominator, Basis((0, 0, 0)))
        terms = (term, *rest) if total else rest
        return msgspec.structs.replace(self, terms=terms)

    def __str__(self) -> str:
        """Return the formula."""
        # The positive term of a difference comes first.
        terms = sorted(self.terms, key=lambda x: x.numerator < 0)
        parts = [_term(term, self.dimensions) for term in terms]
        text = parts[0] if parts else "0"
        for part in parts[1:]:
            text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
        return text


def whole(number: int, dimensions: int = 1) -> Quantity:
    """Return a constant."""
    one = Basis((0, 0, 0))
    return Quantity((Term(number, 1, one),) if number else (), 1, dimensions)


def power(dimensions: int, *names: str) -> Quantity:
    """Return a product of sizes, each named by x, y, z or p."""
    powers = [0, 0, 0]
    for name in names:
        for k in range(dimensions) if name == "p" else ["xyz".index(name)]:
            powers[k] += 1
    return Quantity((Term(1, 1, Basis((powers[0], powers[1], powers[2]))),), 1, dimensions)


def fit(
    scales: Sequence[Scale], values: Sequence[int], dimensions: int, *, is_size: bool = False,
    only_logs: bool = False, unit: int = 0,
) -> list[Quantity]:  # fmt: skip
    """Return the simplest formulas that are exact for every trace; [] = no formula is.

    Parameters
    ----------
    scales, values : of the traces, [n]
    dimensions : of the grid
    is_size, unit : whether values are bytes, and of elements of how many as the user says, or 0
    only_logs : whether the quantity is a number of rounds over powers of two

    Returns
    -------
    several if formulas of the same number of terms fit; they can differ at other scales
    """
    points = dict(zip(scales, values, strict=True))
    made = Quantity((), unit or (gcd(_LARGEST_ELEMENT, *values) if is_size else 1), dimensions,
                    bool(unit))  # fmt: skip
    if len(set(values)) == 1:
        # A constant has no factor to learn, so that every trace but one is a test.
        return [_with_terms(made, [(Fraction(values[0]), Basis((0, 0, 0)))])]
    bases = list(_bases([*points], dimensions, only_logs=only_logs))
    for cost in range(1, len(points)):
        found = [*_fits(points, bases, cost, made, is_size=is_size)]
        if found:
            # Programs count rounds and ranks without quotients where they can.
            return [x for x in found if not (is_size or x.divisors)] or found
    return []


def _fits(
    points: dict[Scale, int], bases: Sequence[Basis], cost: int, made: Quantity, *, is_size: bool
) -> Iterator[Quantity]:
    """Yield the sums of a cost: a term costs 1, and 2 if a size grows with a logarithm."""
    order = sorted(points, key=lambda scale: scale.processes)
    known = {basis: [basis.value(scale) for scale in order] for basis in bases}
    for n in range(1, cost + 1):
        for chosen in combinations(bases, n):
            if sum(1 + (basis.function == LOG2 and is_size) for basis in chosen) != cost:
                continue
            kinds = {x.function for x in chosen if not x.is_constant}
            if len(kinds) > 1:
                # Programs do not add logarithms to other quantities.
                continue
            columns = [known[basis] for basis in chosen]
            rows = [[column[k] for column in columns] for k in range(len(order))]
            values = [points[scale] for scale in order]
            factors = _solved(rows, values)
            if factors is None or not _is_plausible(factors, chosen, is_size=is_size):
                continue
            is_plain = all(f.denominator == 1 and abs(f) <= _PLAIN for f in factors)
            # Whatever trace is left out, the others give the same factors.
            if is_plain or all(
                _solved(rows[:k] + rows[k + 1 :], values[:k] + values[k + 1 :])
                for k in range(len(rows))
            ):
                yield _with_terms(made, list(zip(factors, chosen, strict=True)))


_LARGEST_ELEMENT = 16

_PLAIN = 8
"""Whole factors up to this size need no trace beyond those that determine them."""

_DENOMINATORS = frozenset({1, 2, 3, 4, 6, 8})


def _is_plausible(factors: Sequence[Fraction], chosen: Sequence[Basis], *, is_size: bool) -> bool:
    """Tell whether a program can have such a sum: no difference of growths in a size."""
    if 0 in factors or any(f.denominator not in _DENOMINATORS for f in factors):
        return False
    if any(basis.function == ROOT for basis in chosen) and any(abs(f) != 1 for f in factors):
        # A root is a number of rows, or one more or less.
        return False
    growing = [f > 0 for f, basis in zip(factors, chosen, strict=True) if not basis.is_constant]
    return not is_size or all(growing) or not any(growing)


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


def _bases(scales: Sequence[Scale], dimensions: int, *, only_logs: bool) -> Iterator[Basis]:
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
        yield Basis((2 * a, 2 * b, 2 * c))
        yield Basis((-2 * a, -2 * b, -2 * c))
        for j, k, m in units if dimensions > 1 else ():
            yield Basis((-a - j, -b - k, -c - m))
    named = [(LOG2, one) for one in (reversed(powers) if only_logs else (everything,))]
    if not only_logs:
        named.append((ROOT, everything))
    for function, one in named:
        exact = Basis(one, function)
        if any(exact.value(scale) is None for scale in scales):
            yield Basis(one, function, rounding=1)
            yield Basis(one, function, rounding=-1)
        else:
            yield exact


def _with_terms(made: Quantity, terms: Sequence[tuple[Fraction, Basis]]) -> Quantity:
    own = (Term(f.numerator, f.denominator, basis) for f, basis in terms if f)
    return msgspec.structs.replace(made, terms=tuple(own))


def _name(basis: Basis, dimensions: int) -> str:
    """Return the name of a basis function without a sign of its power."""
    powers = [abs(power) for power in basis.powers[:dimensions]]
    common = min(powers)
    sizes = ["p"] * common
    sizes += [x for x, power in zip("xyz", powers, strict=False) for _ in range(power - common)]
    name = sizes[0] if len(sizes) == 1 else f"({' * '.join(sizes)})"
    if not basis.function:
        return name
    rounding = {0: "", 1: "ceil(", -1: "floor("}[basis.rounding]
    return f"{rounding}{basis.function}({name.strip('()')})" + ")" * bool(basis.rounding)


def _term(term: Term, dimensions: int) -> str:
    number, below = str(term.numerator), str(term.denominator)
    if term.basis.is_constant:
        return number if below == "1" else f"{number} / {below}"
    name = _name(term.basis, dimensions)
    if min(term.basis.powers) < 0:
        return f"{number} / {name}" if below == "1" else f"{number} / ({below} * {name})"
    head = {"1": "", "-1": "-"}.get(number, f"{number} * ")
    return head + name + ("" if below == "1" else f" / {below}")
