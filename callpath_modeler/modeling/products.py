"""Shapes beyond terms: differences of terms, products of factors, and breaks.

All messages between neighbours in a grid of d dimensions are ``2 d (p - p**((d - 1) / d))``. All
messages of an exchange of all with all are ``p**2 - p``. In a transposition each process sends
``(p - 1) / p**2`` of data that both sides share. As two terms with separate coefficients these
would be negative somewhere. As one shape they have one coefficient, and are positive beyond 1.
See docs/explanation/hypotheses.md, and docs/explanation/several-parameters.md.

A program that switches to another algorithm, fills a cache, or adds a level to a tree does not
follow one smooth law. Each shape here is one such break as a function of the parameter. It is
multiplied by a coefficient and added to a constant, as a term is. A row with a break is outside the
model class, and its status says so. See docs/explanation/hypotheses.md, 'Breaks and easings'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import reduce
from operator import mul
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling.constants.hypotheses import (
    EARLY,
    FEWEST_FOR_THREE,
    FEWEST_ITEMS,
    FROM_TWO,
    JUST_BELOW,
    LEAPS,
    MOST_FOR_LEAPS,
    MOST_PLACES,
    PLACES_BETWEEN,
    SHARPNESS,
    SORTED_ITEMS,
)
from callpath_modeler.modeling.growth import (
    CONSTANT_GROWTH,
    Growth,
    as_float,
    growth_values,
    raised,
)
from callpath_modeler.modeling.terms import Term, as_power_of_log, power_of_log_to_header


class BreakKind(StrEnum):
    """Kinds of breaks."""

    STEP = "step"  # 1 beyond `at`, else 0: another protocol or algorithm
    ONCE = "once"  # 1 at `at`, else 0: a disturbed run
    LEAP = "leap"  # a term beyond `at`, else 0: with that term, all of it takes longer there
    DROP = "drop"  # 1 up to `at`, then 0: a switch to a faster algorithm
    BEND = "bend"  # flat up to `at`, then a power: another law
    ONSET = "onset"  # p / at - 1 from `at` on: queues or spills once it is full
    BEYOND = "beyond"  # 1 - at / p from `at` on: the share of partners outside of a group
    CLIMB = "climb"  # log2(p / at) from `at` on: levels of a tree above that group
    PLATEAU = "plateau"  # a power up to `at`, then flat: the number of neighbours is complete
    FLOOR = "floor"  # falls by a power up to `at`, then flat: all work is shared
    SWELL = "swell"  # flat, then gradually linear: a resource that fills gradually
    SETTLE = "settle"  # falls as 1 / p, then gradually flat: launches take longer than the work
    CEILING = "ceiling"  # 1 - exp(-p / at): saturates
    LEVELS = "levels"  # levels of a tree of fan-out `at`
    BLOCKS = "blocks"  # nodes of `at` processes each
    SORTED = "sorted"  # at/p log2(at/p), divided by `at`: each process sorts its share; not a break


FROM_NOTHING = (BreakKind.ONSET, BreakKind.BEYOND, BreakKind.CLIMB)
"""Kinds of breaks that are zero up to a capacity."""
GRADUAL = (BreakKind.SWELL, BreakKind.SETTLE)
"""Kinds of breaks that change gradually about a place."""


def _gradually(x: FloatArray) -> FloatArray:
    """Return approximately the larger of 1 and `x`."""
    return np.asarray((1 + x**SHARPNESS) ** (1 / SHARPNESS))


_VALUES: Mapping[BreakKind, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {
    BreakKind.STEP: lambda p, at, _: np.where(p > at, 1.0, 0.0),
    BreakKind.ONCE: lambda p, at, _: np.where(p == at, 1.0, 0.0),
    BreakKind.LEAP: lambda p, at, _: np.where(p > at, 1.0, 0.0),
    BreakKind.DROP: lambda p, at, _: np.where(p > at, 0.0, 1.0),
    BreakKind.BEND: lambda p, at, power: np.maximum(1.0, p / at) ** power,
    BreakKind.ONSET: lambda p, at, _: np.maximum(0.0, p / at - 1),
    BreakKind.BEYOND: lambda p, at, _: 1 - np.minimum(1.0, at / p),
    BreakKind.CLIMB: lambda p, at, _: np.log2(np.maximum(1.0, p / at)),
    BreakKind.PLATEAU: lambda p, at, power: np.minimum(1.0, p / at) ** power,
    BreakKind.FLOOR: lambda p, at, power: np.maximum(1.0, at / p) ** power,
    BreakKind.SWELL: lambda p, at, _: _gradually(p / at),
    BreakKind.SETTLE: lambda p, at, _: _gradually(at / p),
    BreakKind.CEILING: lambda p, at, _: -np.expm1(-p / at),
    BreakKind.LEVELS: lambda p, at, _: np.ceil(
        np.log(np.maximum(p, 1.0)) / np.log(at) * JUST_BELOW
    ),
    BreakKind.BLOCKS: lambda p, at, _: np.ceil(p / at * JUST_BELOW),
    BreakKind.SORTED: lambda p, at, _: np.log2(np.maximum(2.0, at / p)) / p,
}
"""Values of each kind of break at the targets p, by its place and power."""
_TEXTS: Mapping[BreakKind, str] = {
    BreakKind.STEP: "[{p} > {at}]",
    BreakKind.ONCE: "[{p} = {at}]",
    BreakKind.LEAP: "[{p} > {at}] * {term}",
    BreakKind.DROP: "[{p} <= {at}]",
    BreakKind.BEND: "max(1, {p}/{at}){power}",
    BreakKind.ONSET: "max(0, {p}/{at} - 1)",
    BreakKind.BEYOND: "max(0, 1 - {at}/{p})",
    BreakKind.CLIMB: "max(0, log2({p}/{at}))",
    BreakKind.PLATEAU: "min(1, {p}/{at}){power}",
    BreakKind.FLOOR: "max(1, {at}/{p}){power}",
    BreakKind.SWELL: "(1 + ({p}/{at})^3)^(1/3)",
    BreakKind.SETTLE: "(1 + ({at}/{p})^3)^(1/3)",
    BreakKind.CEILING: "(1 - exp(-{p}/{at}))",
    BreakKind.LEVELS: "ceil(log_{at}({p}))",
    BreakKind.BLOCKS: "ceil({p}/{at})",
    BreakKind.SORTED: "log2(2^{digits}/{p})/{p}",
}
"""Factor of a formula for each kind of break."""


class Break(Struct, frozen=True):
    """A shape with a break.

    Parameters
    ----------
    kind : BreakKind
        Kind of the break.
    at : float
        Its place, in the unit of the parameter; the fan-out of `LEVELS`, the size of `BLOCKS`.
    exponent : Fraction
        The power beyond a `BEND`, of a `LEAP`, or up to a `PLATEAU`; the power of 1/p up to a
        `FLOOR`.
    log : int
        The power of the binary logarithm of a `LEAP`.
    """

    kind: BreakKind
    at: float
    exponent: Fraction = Fraction(0)
    log: Fraction | int = 0

    @property
    def decreasing(self) -> bool:
        """Whether the shape is shared work."""
        return self.kind is BreakKind.SORTED

    def __call__(self, p: npt.ArrayLike) -> FloatArray:
        """Return the values at `p`, which may be infinite, in the shape of `p`."""
        scale = np.asarray(p, dtype=np.float64)
        return Breaks.of([self]).values(scale.ravel()).reshape(scale.shape)

    @property
    def begins(self) -> bool:
        """Whether the break begins at a capacity, which may be anywhere."""
        linear = self.kind is BreakKind.BEND and self.exponent == 1
        return linear or self.kind in FROM_NOTHING

    def in_pairs_only(self, last: float) -> bool:
        """Return whether the break equals another one up to the `last` point, but not in pairs."""
        return self.kind is BreakKind.LEAP or (self.kind is BreakKind.FLOOR and self.at >= last)

    @property
    def growth(self) -> Growth:
        """The growth of the shape in the end."""
        if self.kind in {BreakKind.BEND, BreakKind.LEAP}:
            return Growth(self.exponent, self.log)
        if self.kind in {BreakKind.LEVELS, BreakKind.CLIMB}:
            return Growth(Fraction(0), 1)
        if self.kind is BreakKind.SORTED:
            return Growth(Fraction(-1), 0)
        linear = self.kind in {BreakKind.BLOCKS, BreakKind.ONSET, BreakKind.SWELL}
        return Growth(Fraction(1), 0) if linear else CONSTANT_GROWTH

    def text(self, parameter: str = "p", *, pretty: bool = False, exact: bool = False) -> str:
        """Return the shape as a factor of a formula, for example ``[p > 91]``.

        The place has four digits, or with `exact` all digits.
        """
        numbers = self.at, float(np.log2(self.at))
        at, digits = (repr(n).removesuffix(".0") if exact else f"{n:.4g}" for n in numbers)
        power = raised("", self.exponent, pretty=pretty) if self.exponent else ""
        term = Term(self.exponent, self.log).text(parameter, pretty=pretty)
        names = {"p": parameter, "at": at, "power": power, "term": term}
        text = _TEXTS[self.kind].format(**names, digits=digits)
        return text.replace(" * ", " ") if pretty else text

    def to_header(self) -> dict[str, Any]:
        """Return the shape as texts and numbers for JSON."""
        log = power_of_log_to_header(self.log)
        numbers = {"at": self.at, "exponent": str(self.exponent), "log": log}
        return {"kind": str(self.kind), **numbers}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Return the shape of a header; `ValueError` or `KeyError` if it is not one."""
        power = Fraction(header["exponent"]), as_power_of_log(header["log"])
        return cls(BreakKind(header["kind"]), float(header["at"]), *power)


class _OfKind(Struct, frozen=True):
    """Breaks of one kind: their positions among all breaks, [b], and their numbers, [b, 1]."""

    kind: BreakKind
    which: IntArray
    at: FloatArray
    power: FloatArray
    orders: FloatArray | None = None

    def values(self, p: FloatArray) -> FloatArray:
        """Return the breaks at `p` [m], [b, m]."""
        found = _VALUES[self.kind](p, self.at, self.power)
        return found if self.orders is None else found * growth_values(self.orders, p)


class Breaks(Struct, frozen=True):
    """Breaks as the numbers that evaluation needs, kind by kind."""

    count: int
    kinds: tuple[_OfKind, ...]

    @classmethod
    def of(cls, shapes: Sequence[Break]) -> Self:
        """Return breaks as numbers."""
        numbers = np.array([(each.at, as_float(each.exponent)) for each in shapes]).reshape(-1, 2)
        of_kind: dict[BreakKind, list[int]] = {}
        for k, each in enumerate(shapes):
            of_kind.setdefault(each.kind, []).append(k)
        kinds = []
        for kind, which in of_kind.items():
            leap = kind is BreakKind.LEAP
            orders = np.array([shapes[k].growth.order for k in which]) if leap else None
            at, power = numbers[which].T[..., None]
            kinds.append(_OfKind(kind, np.array(which), at, power, orders))
        return cls(len(shapes), tuple(kinds))

    def values(self, p: FloatArray) -> FloatArray:
        """Return the breaks at `p` [m], [B, m]."""
        values = np.empty((self.count, len(p)))
        for each in self.kinds:
            values[each.which] = each.values(p)
        return values


def breaks(points: FloatArray) -> tuple[Break, ...]:
    """Return the breaks that measurements at `points` [K], ascending, could show.

    Steps up or down, and leaps, occur between any two neighbours. Bends, plateaus and floors occur
    at any inner point. Breaks that begin at a capacity occur at or between inner points, and
    gradual ones about these places. A ceiling is reached within or beyond the points. Levels and
    blocks have usual sizes.

    A floor at the last point serves in pairs: with the floor at the point before, it represents
    floors anywhere between both. Fewer than four points have no breaks, because every law of two
    coefficients fits them about equally well. With very many points, only some places are tried.
    """
    if len(points) < 4 or points[0] <= 0:
        return ()
    every = -(-len(points) // MOST_PLACES)
    # If only some places are tried, the last one is among them.
    middle, inner = np.sqrt(points[1:] * points[:-1])[::-every][::-1], points[1:-1:every]
    found = [Break(kind, float(at)) for kind in (BreakKind.STEP, BreakKind.DROP) for at in middle]
    leaping = middle if FEWEST_FOR_THREE <= len(points) <= MOST_FOR_LEAPS else middle[-1:]
    for sixths, log in LEAPS if points[0] >= 1 else [each for each in LEAPS if not each[1]]:
        found += [Break(BreakKind.LEAP, float(at), Fraction(sixths, 6), log) for at in leaping]
    for at in inner:
        found += [Break(BreakKind.BEND, float(at), Fraction(half, 2)) for half in (1, 4)]
        for kind in (BreakKind.PLATEAU, BreakKind.FLOOR):
            found += [Break(kind, float(at), Fraction(half, 2)) for half in (1, 2)]
    found.append(Break(BreakKind.FLOOR, float(points[-1]), Fraction(1)))
    found += at_last(points)
    for at in _capacities(points):
        found += [Break(kind, float(at)) for kind in FROM_NOTHING]
        # With a constant this equals an onset; products have it without a constant.
        found.append(Break(BreakKind.BEND, float(at), Fraction(1)))
    if len(points) >= FEWEST_FOR_THREE:
        for at in _capacities(points)[1::2]:
            found += [Break(kind, float(at)) for kind in GRADUAL]
    found += [
        Break(BreakKind.CEILING, float(at)) for at in np.geomspace(points[0], 2 * points[-1], 4)
    ]
    if points[0] >= 1:
        found += [Break(BreakKind.LEVELS, float(fan)) for fan in (2, 3, 4, 8, 16, 32)]
        found += [Break(BreakKind.BLOCKS, float(size)) for size in (24, 36, 48, 64, 96)]
        found += [
            Break(BreakKind.SORTED, 2.0**n)
            for n in SORTED_ITEMS
            if 2.0**n >= FEWEST_ITEMS * points[-1]
        ]
    return tuple(dict.fromkeys(found))


def at_last(points: FloatArray) -> tuple[Break, ...]:
    """Return the breaks for the last one of `points` [K], ascending, if it takes longer.

    They are a lasting step, an outlier of the last point, and growth that begins at the point
    before. Measurements cannot distinguish these, but their predictions at the next scale are far
    apart. Fewer than three points have no breaks. See docs/explanation/hypotheses.md, 'What only
    the last run shows'.
    """
    if len(points) < 3:
        return ()
    before, last = points[-2:].tolist()
    step = Break(BreakKind.STEP, float(np.sqrt(before * last)))
    return step, Break(BreakKind.ONCE, last), Break(BreakKind.ONSET, before)


def _capacities(points: FloatArray) -> FloatArray:
    """Return inner points and places between all points, evenly spaced in the logarithm."""
    some = points[:: 2 * PLACES_BETWEEN * len(points) // -MOST_PLACES][::-1]
    parts = np.arange(PLACES_BETWEEN) / PLACES_BETWEEN
    return np.asarray(some[:-1, None] * (some[1:] / some[:-1])[:, None] ** parts).ravel()[1:]


ONE = Term(Fraction(0), 0)
"""The constant term 1."""
_P = Term(Fraction(1), 0)


class TermDifference(Struct, frozen=True):
    """The difference of a term and a slower one that is equal at 1.

    Parameters
    ----------
    larger, smaller : Term
        The terms; one of them may be 1.
    """

    larger: Term
    smaller: Term

    @property
    def decreasing(self) -> bool:
        """Whether it falls from 2 on."""
        return self.larger.decreasing

    def __call__(self, p: npt.ArrayLike) -> FloatArray:
        """Return the values at `p`, which may be infinite; they are not positive up to 1."""
        return difference_of(self.larger(p), self.smaller(p))

    @property
    def growth(self) -> Growth:
        """The growth of the larger term."""
        return self.larger.growth

    def text(self, parameter: str = "p", *, pretty: bool = False) -> str:
        """Return the shape as a factor of a formula, for example ``(p - p^(2/3))``."""
        larger, smaller = (
            term.text(parameter, pretty=pretty) or "1" for term in (self.larger, self.smaller)
        )
        return f"({larger} - {smaller})"

    def to_header(self) -> dict[str, Any]:
        """Return the shape as texts and numbers for JSON."""
        return {"larger": self.larger.to_header(), "smaller": self.smaller.to_header()}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Return the difference of a header; `ValueError` or `KeyError` if it is not one."""
        return cls(Term.from_header(header["larger"]), Term.from_header(header["smaller"]))


def difference_of(larger: FloatArray, smaller: FloatArray) -> FloatArray:
    """Return the difference of the values of two terms; infinite where the larger one is."""
    # The difference of two infinite values would be NaN.
    return np.asarray(larger - np.where(np.isinf(larger), 0.0, smaller))


def made_of(terms: Iterable[Term], found: Iterable[TermDifference]) -> tuple[TermDifference, ...]:
    """Return the differences whose terms are among `terms`, or 1."""
    known = {ONE, *terms}
    return tuple(each for each in found if {each.larger, each.smaller} <= known)


_SEEN_ANYWHERE = (
    TermDifference(_P, Term(Fraction(1, 2), 0)),
    TermDifference(_P, Term(Fraction(2, 3), 0)),
    TermDifference(Term(Fraction(2), 0), _P),
)
"""Differences that are tried at all points."""
TO_OTHERS = TermDifference(_P, ONE)
"""Messages of a process to all others."""
_SEEN_EARLY = (TO_OTHERS, TermDifference(Term(Fraction(1), 1), Term(Fraction(0), 1)))
"""Differences that are tried only if the points begin early."""
TRANSPOSED = TermDifference(Term(Fraction(-1), 0), Term(Fraction(-2), 0))
"""Messages of a process to all others, of data that both sides share."""


def differences(terms: Iterable[Term], points: FloatArray) -> tuple[TermDifference, ...]:
    """Return the differences of `terms` that measurements at `points` [K], ascending, could show.

    Points that begin below 1 have no differences. Some differences need points that begin early.
    """
    if points[0] < 1:
        return ()
    known = set(terms)
    found = made_of(known, (*_SEEN_ANYWHERE, *(_SEEN_EARLY if points[0] <= EARLY else ())))
    return (*found, *transpositions(known, points))


def transpositions(terms: Collection[Term], points: FloatArray) -> tuple[TermDifference, ...]:
    """Return `TRANSPOSED` if work is shared, and the points [K] begin where both differ."""
    least, most = FROM_TWO
    shared = TRANSPOSED.larger in terms
    return (TRANSPOSED,) if shared and least <= points.min() <= most else ()


NOTHING = ONE
"""Factor of a parameter that a product does not depend on."""


Factor = Term | TermDifference | Break


def factor_from_header(header: dict[str, Any]) -> Factor:
    """Return the factor of a header; `ValueError` or `KeyError` if it is not one."""
    if "kind" in header:
        return Break.from_header(header)
    return TermDifference.from_header(header) if "larger" in header else Term.from_header(header)


def factor_text(factor: Factor, parameter: str, *, pretty: bool, exact: bool) -> str:
    """Return a factor as text; only breaks have numbers with many digits, which `exact` keeps."""
    if isinstance(factor, Break):
        return factor.text(parameter, pretty=pretty, exact=exact)
    return factor.text(parameter, pretty=pretty)


class Product(Struct, frozen=True):
    """A product of one factor per parameter: ``x**i log2(x)**j * (y**k - 1) * ...``.

    Parameters
    ----------
    factors : tuple of Term, TermDifference or Break
        One factor per parameter; `NOTHING` if the product does not depend on the parameter.
    """

    factors: tuple[Factor, ...]

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Return the values at `points` [m, D], which are above zero, [m]."""
        at = np.asarray(points, dtype=np.float64)
        value = np.ones(len(at))
        for axis, factor in enumerate(self.factors):
            if factor != NOTHING:
                value = value * factor(at[:, axis])
        return value

    @property
    def growth(self) -> Growth:
        """The growth if all parameters grow alike, by which products are ordered."""
        return reduce(mul, (factor.growth for factor in self.factors), CONSTANT_GROWTH)

    @property
    def decreasing(self) -> bool:
        """Whether the product rises with no parameter, and falls with at least one."""
        used = [factor for factor in self.factors if factor != NOTHING]
        return bool(used) and all(factor.decreasing for factor in used)

    @property
    def axes(self) -> frozenset[int]:
        """The parameters on which the product depends."""
        used = (axis for axis, factor in enumerate(self.factors) if factor != NOTHING)
        return frozenset(used)

    def text(self, parameter: Sequence[str], *, pretty: bool = False, exact: bool = False) -> str:
        """Return the product as a factor of a formula, for example ``n^3 * p^-1``."""
        written = list[str]()
        for factor, name in zip(self.factors, parameter, strict=True):
            if factor != NOTHING:
                # Otherwise a logarithm would seem to include all factors after it.
                if pretty and written and "log₂" in written[-1]:
                    written[-1] = f"({written[-1]})"
                written.append(factor_text(factor, name, pretty=pretty, exact=exact))
        return (" " if pretty else " * ").join(written)

    def to_header(self) -> dict[str, Any]:
        """Return the product as texts and numbers for JSON."""
        return {"factors": [factor.to_header() for factor in self.factors]}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Return the product of a header; `ValueError` or `KeyError` if it is not one."""
        return cls(tuple(factor_from_header(factor) for factor in header["factors"]))


Shape = Factor | Product
"""Shape of a term of a model: a factor of one parameter, or a product of one factor of each."""
