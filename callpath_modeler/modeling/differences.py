"""Differences of terms that are zero on one process, such as ``p - p**(2/3)``.

All messages between neighbours in a grid of d dimensions are ``2 d (p - p**((d - 1) / d))``. All
messages of an exchange of all with all are ``p**2 - p``. In a transposition each process sends
``(p - 1) / p**2`` of data that both sides share. As two terms with separate coefficients these
would be negative somewhere. As one shape they have one coefficient, and are positive beyond 1.

See docs/explanation/hypotheses.md, 'Pairs and differences'.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.shapes import EARLY, FROM_TWO
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.terms import Term

ONE = Term(Fraction(0), 0)
"""The constant term 1."""
_P = Term(Fraction(1), 0)


@dataclass(frozen=True, slots=True)
class TermDifference:
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
