"""Differences of terms, and products of factors of several parameters.

All messages between neighbours in a grid of d dimensions are ``2 d (p - p**((d - 1) / d))``. All
messages of an exchange of all with all are ``p**2 - p``. In a transposition each process sends
``(p - 1) / p**2`` of data that both sides share. As two terms with separate coefficients these
would be negative somewhere. As one shape they have one coefficient, and are positive beyond 1.
See docs/explanation/hypotheses.md, and docs/explanation/several-parameters.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from operator import mul
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.breaks import Break
from callpath_modeler.modeling.constants.hypotheses import EARLY, FROM_TWO
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth
from callpath_modeler.modeling.terms import Term

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
