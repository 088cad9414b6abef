"""Shapes that come to nothing at one process: a term less a slower one, as ``p - p**(2/3)``.

Messages between neighbours in a grid of d dimensions are ``2 d (p - p**((d - 1) / d))`` in all,
those of everybody to everybody ``p**2 - p``, and what each sends to all others of data that both
sides share, as in a transposition, is ``(p - 1) / p**2``. As two terms with coefficients of their
own they would be negative somewhere; as one shape they have one coefficient and are positive
beyond 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.growth import Growth
from callpath_modeler.modeling.terms import Term

ONE = Term(Fraction(0), 0)
_P = Term(Fraction(1), 0)


@dataclass(frozen=True, slots=True)
class TermDifference:
    """A term less a slower one that is as large at 1.

    Parameters
    ----------
    larger, smaller : Term
        The terms; one of them may be 1.
    """

    larger: Term
    smaller: Term

    @property
    def decreasing(self) -> bool:
        """Whether it falls, from 2 on."""
        return self.larger.decreasing

    def __call__(self, p: npt.ArrayLike) -> FloatArray:
        """Value at `p`, which may be infinite; the shape of `p`. It is not positive up to 1."""
        return difference_of(self.larger(p), self.smaller(p))

    @property
    def growth(self) -> Growth:
        """How fast it grows."""
        return self.larger.growth

    def text(self, parameter: str = "p", *, pretty: bool = False) -> str:
        """Write the shape as a factor of a formula, for example ``(p - p^(2/3))``."""
        larger, smaller = (
            term.text(parameter, pretty=pretty) or "1" for term in (self.larger, self.smaller)
        )
        return f"({larger} - {smaller})"

    def to_header(self) -> dict[str, Any]:
        """Describe the shape with texts and numbers that JSON can hold."""
        return {"larger": self.larger.to_header(), "smaller": self.smaller.to_header()}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Undo `to_header`; `ValueError` or `KeyError` if it does not describe a difference."""
        return cls(Term.from_header(header["larger"]), Term.from_header(header["smaller"]))


def difference_of(larger: FloatArray, smaller: FloatArray) -> FloatArray:
    """Return the difference of values of two terms; infinite where the larger one is."""
    # What is infinite less what is infinite is no number.
    return np.asarray(larger - np.where(np.isinf(larger), 0.0, smaller))


def made_of(terms: Iterable[Term], found: Iterable[TermDifference]) -> tuple[TermDifference, ...]:
    """Return those differences whose terms are among some, or 1."""
    known = {ONE, *terms}
    return tuple(each for each in found if {each.larger, each.smaller} <= known)


_SEEN_ANYWHERE = (
    TermDifference(_P, Term(Fraction(1, 2), 0)),
    TermDifference(_P, Term(Fraction(2, 3), 0)),
    TermDifference(Term(Fraction(2), 0), _P),
)
TO_OTHERS = TermDifference(_P, ONE)
_SEEN_EARLY = (TO_OTHERS, TermDifference(Term(Fraction(1), 1), Term(Fraction(0), 1)))
_EARLY = 8.0
"""From 16 on, p - 1 is p to less than noise and deviations, and terms beside p do the rest."""
TRANSPOSED = TermDifference(Term(Fraction(-1), 0), Term(Fraction(-2), 0))
"""What each sends to all others of data that both sides share."""
_FROM_TWO = 2.0, 16.0
"""Where points may begin that tell it from 1 / p: what grows beside either is little at first."""


def differences(terms: Iterable[Term], points: FloatArray) -> tuple[TermDifference, ...]:
    """Return the differences of some terms that measurements at `points` [K] could show.

    None if the points, ascending, begin below 1; some only where they begin early.
    """
    if points[0] < 1:
        return ()
    known = set(terms)
    found = made_of(known, (*_SEEN_ANYWHERE, *(_SEEN_EARLY if points[0] <= _EARLY else ())))
    return (*found, *transpositions(known, points))


def transpositions(terms: Collection[Term], points: FloatArray) -> tuple[TermDifference, ...]:
    """Return `TRANSPOSED` if work is shared, and points [K] begin where the two differ."""
    least, most = _FROM_TWO
    shared = TRANSPOSED.larger in terms
    return (TRANSPOSED,) if shared and least <= points.min() <= most else ()
