"""Change points: the scale from which on another law holds, and both laws.

See docs/explanation/hypotheses.md, 'Laws beyond a change point'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.breaks import Break, BreakKind
from callpath_modeler.modeling.constants.hypotheses import FEWEST_BEFORE, FEWEST_BEYOND, MOST_OFF
from callpath_modeler.modeling.formulas import sum_of_terms
from callpath_modeler.modeling.terms import Term

if TYPE_CHECKING:
    from callpath_modeler.modeling.models import Models
    from callpath_modeler.modeling.products import Shape

Pieces = dict[Term | None, float]
"""Coefficients of terms; None = the constant."""

_AFTER = frozenset({BreakKind.STEP, BreakKind.LEAP, BreakKind.DROP})
"""Kinds of breaks between two points: the law beyond holds after their place."""


def _power(each: Break, power: Fraction, sign: int = 1) -> Pieces:
    """Return ``(p / at) ** power``, with a sign, as the coefficient of a term."""
    return {Term(power, 0): sign * each.at ** -float(power)}


_SIDES: Mapping[BreakKind, tuple[Callable[[Break], Pieces], Callable[[Break], Pieces]]] = {
    BreakKind.STEP: (lambda _: {}, lambda _: {None: 1.0}),
    BreakKind.LEAP: (lambda _: {}, lambda each: {Term(each.exponent, each.log): 1.0}),
    BreakKind.DROP: (lambda _: {None: 1.0}, lambda _: {}),
    BreakKind.BEND: (lambda _: {None: 1.0}, lambda each: _power(each, each.exponent)),
    BreakKind.ONSET: (lambda _: {}, lambda each: {**_power(each, Fraction(1)), None: -1.0}),
    BreakKind.BEYOND: (lambda _: {}, lambda each: {**_power(each, Fraction(-1), -1), None: 1.0}),
    BreakKind.CLIMB: (
        lambda _: {},
        lambda each: {Term(Fraction(0), 1): 1.0, None: -float(np.log2(each.at))},
    ),
    BreakKind.PLATEAU: (lambda each: _power(each, each.exponent), lambda _: {None: 1.0}),
    BreakKind.FLOOR: (lambda each: _power(each, -each.exponent), lambda _: {None: 1.0}),
}
"""Terms before and beyond the place of a break; other breaks are gradual or have many places."""


class ChangePoint(Struct, frozen=True):
    """The two laws of one row.

    Attributes
    ----------
    since : first point that follows the law beyond
    law, before : formulas of the law beyond and of the earlier law
    """

    since: float
    law: str
    before: str


def changes_since(models: Models) -> FloatArray:
    """Return the first point that follows the law beyond a change point, [n].

    It is 0 without a change point, and where fewer than `FEWEST_BEYOND` points lie beyond or fewer
    than `FEWEST_BEFORE` before.
    """
    if models.points.ndim > 1:
        return np.zeros(len(models))
    place = np.array([*map(_place, models.shapes), -np.inf])
    if not np.isfinite(place).any():
        return models.since
    # The last one of two breaks counts; a break without a single place hides it.
    last = place[models.terms].max(axis=1)
    gradual = np.isnan(place)[models.terms].any(axis=1)
    found = np.searchsorted(models.points, np.nan_to_num(last, nan=0.0, neginf=0.0))
    is_there = np.isfinite(last) & ~gradual & (found >= FEWEST_BEFORE)
    is_there &= found <= len(models.points) - FEWEST_BEYOND
    # A model that misses the values by much is not a law, with or without a break.
    is_there &= models.spread <= MOST_OFF
    since = models.points[np.minimum(found, len(models.points) - 1)]
    return np.where(models.since > 0, models.since, np.where(is_there, since, 0.0))


def change_point(
    models: Models, row: int, parameter: str = "p", *, pretty: bool = False
) -> ChangePoint | None:
    """Return the two laws of a row; None without a change point."""
    its = models.take([row])
    since = float(changes_since(its)[0])
    if not since:
        return None

    def text(pieces: Pieces) -> str:
        ordered = sorted(pieces, key=lambda term: (term is not None, term and term.growth.order))
        written = [term.text(parameter, pretty=pretty) if term else "" for term in ordered]
        pairs = zip((pieces[term] for term in ordered), written, strict=True)
        return sum_of_terms([pair for pair in pairs if pair[0]], pretty=pretty)

    shapes = [models.shapes[code] if code >= 0 else None for code in its.terms[0].tolist()]
    law = list(zip([None, *shapes], its.coefficients[0].tolist(), strict=True))
    if not its.since[0]:
        return ChangePoint(since, text(_sum(law, 1)), text(_sum(law, 0)))
    code = int(its.before[0])
    numbers = its.before_coefficients[0].tolist()
    before = list(zip([None, models.shapes[code] if code >= 0 else None], numbers, strict=True))
    return ChangePoint(since, text(_sum(law, 1)), text(_sum(before, 0)))


def _sum(law: list[tuple[Shape | None, float]], side: int) -> Pieces:
    """Return a law before (0) or beyond (1) its breaks, as coefficients of terms."""
    total: Pieces = defaultdict(float)
    for shape, number in law:
        if isinstance(shape, Break):
            for term, factor in _SIDES[shape.kind][side](shape).items():
                total[term] += number * factor
        else:
            total[shape if isinstance(shape, Term) else None] += number
    return total


def _place(shape: Shape) -> float:
    """Return the place of the break in a shape; -inf without a break, NaN without one place."""
    if not isinstance(shape, Break):
        return -np.inf if isinstance(shape, Term) else np.nan
    if shape.kind not in _SIDES:
        return np.nan
    return float(np.nextafter(shape.at, np.inf)) if shape.kind in _AFTER else shape.at
