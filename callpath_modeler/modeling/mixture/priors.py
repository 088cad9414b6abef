"""The prior of hypotheses: how plain they are, which pairs are tried, and what points tell apart.

See docs/explanation/hypotheses.md, 'How plain a term is'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.constants.hypotheses import (
    ALIKE,
    BEGINNING,
    BESIDE,
    BESIDE_FROM_NOTHING,
    BESIDE_OTHERS,
    COARSE,
    FASTER_THAN_SHARED,
    FASTEST,
    FEWEST_FOR_POWERS,
    FINE,
    FINE_FALLING,
    FLOOR,
    MOST_PAIRED,
    NEIGHBOURS_APART,
    OTHERS_BESIDE_SHARED,
    PAIRED,
    PLAIN,
    SLOWEST,
    SORTED_PRIOR,
    STEEP,
    STEEP_BESIDE_SHARED,
    STEEP_IN_PAIRS,
    SUMS_OF_WHOLE,
    TOGETHER,
    WITH_LOGARITHM,
)
from callpath_modeler.modeling.growth import as_float
from callpath_modeler.modeling.products import (
    FROM_NOTHING,
    TO_OTHERS,
    Break,
    BreakKind,
    Shape,
    TermDifference,
    at_last,
)
from callpath_modeler.modeling.shapes import shape_table
from callpath_modeler.modeling.terms import Term

_BESIDE = {
    **{BreakKind[name]: weight for name, weight in BESIDE.items()},
    **dict.fromkeys(FROM_NOTHING, BESIDE_FROM_NOTHING),
}


def prior_weight(shape: Shape, last: float) -> float:
    """Return the weight of a shape alone, with or without a constant, for points up to `last`."""
    if isinstance(shape, Break) and shape.in_pairs_only(last):
        return 0.0
    return _plainness(shape, STEEP)


def prior_weight_in_pairs(shape: Shape) -> float:
    """Return the weight of a shape in a pair; the weight of the pair is the product of both."""
    return float(_plainness(shape, STEEP_IN_PAIRS) ** TOGETHER)


def prior_weight_of_whole(first: Shape, second: Shape) -> float:
    """Return the weight of a pair of growing terms whose second one is a square or a cube.

    All other pairs get NaN.
    """
    if not (isinstance(first, Term) and isinstance(second, Term)) or second.rate:
        return np.nan
    if first.decreasing or second.exponent not in SUMS_OF_WHOLE:
        return np.nan
    whole = first.is_power and first.exponent.denominator == 1
    if second.log:
        alike = whole and second.log == 1 and first.exponent == second.exponent
        return WITH_LOGARITHM if alike else np.nan
    power = int(second.exponent)
    return SUMS_OF_WHOLE[power] if whole else BESIDE_OTHERS[power] * prior_weight_in_pairs(first)


def _plainness(shape: Shape, steep: float) -> float:
    if isinstance(shape, Term):
        more = 0.0 if shape.rate else steep * _steepness(as_float(shape.exponent))
        return float(np.exp(-description_length(shape) - more))
    if isinstance(shape, TermDifference) and not shape.decreasing:
        return prior_weight_in_pairs(shape.larger) * prior_weight_in_pairs(shape.smaller)
    if not isinstance(shape, Break):
        return 1.0
    if shape.kind is BreakKind.SORTED:
        return SORTED_PRIOR
    if shape.begins or shape.kind is BreakKind.SWELL:
        return BEGINNING
    return FLOOR if shape.kind in (BreakKind.FLOOR, BreakKind.SETTLE) else 1.0


def prior_weight_beside(shape: Shape) -> float:
    """Return the weight of a break with another shape; NaN for shapes other than breaks."""
    return _BESIDE.get(shape.kind, 0.0) if isinstance(shape, Break) else np.nan


def prior_weight_beside_shared(shape: Shape) -> float:
    """Return the weight of a shape with shared work, relative to its weight in other pairs."""
    if not isinstance(shape, Term):
        return 1.0
    others = 0.0 if shape.exponent in (0, 1) else OTHERS_BESIDE_SHARED
    steep = STEEP_BESIDE_SHARED * _steepness(as_float(shape.exponent))
    return float(np.exp(-others - steep))


def description_length(shape: Term) -> float:
    """Return the intricacy of a term, in nats: its distance from the terms of known programs."""
    exponent = as_float(shape.exponent)
    if shape.rate:
        return exponent / 2
    steep = _steepness(exponent)
    logs = max(shape.log - (exponent == 0), 0) * (0.5 if steep == 0 else 2.0)
    fine = (FINE if exponent > 0 else FINE_FALLING).get(shape.exponent.denominator, 0.6)
    if exponent < -1:
        return logs + FASTER_THAN_SHARED
    return steep / 2 + logs + fine * (1 if steep == 0 else 4)


def _steepness(exponent: float) -> float:
    """Return the excess of a power over 1."""
    return max(0.0, exponent - 1)


_BESIDE_OTHER_WORK = Term(Fraction(0), 1), Term(Fraction(1), 0)
"""Terms that are combined with such work."""


def pairings(
    shapes: Sequence[Shape], points: FloatArray, lone: Collection[Shape] = ()
) -> list[tuple[int, int]]:
    """Return the pairs of shapes that are tried, as pairs of codes.

    Growing terms are paired with each other, and a whole power with its product with a logarithm
    (transforms). Plateaus or floors of neighbouring points are paired, since a sum of both levels
    off between the points. So are neighbouring powers, since a sum of both is nearly a power
    between them; `lone` shapes are in no other pair.

    A term is paired with a leap in proportion to it, and with each break at the last point. Shared
    work is paired with its surface and with breaks that begin at a capacity. Falling terms are
    paired with growing terms; other falling powers and sorted shares only with the plainest ones.
    Pairs with a decreasing shape come last.
    """
    rising = [
        (code, shape)
        for code, shape in enumerate(shapes)
        if isinstance(shape, Term) and not shape.decreasing and shape not in lone
    ]
    few = len(rising) <= MOST_PAIRED
    growing = [code for code, shape in rising if few or description_length(shape) <= PAIRED]
    every = [
        code
        for code, shape in enumerate(shapes)
        if shape.decreasing and not isinstance(shape, Break) and not _is_fine(shape)
    ]
    faster = [code for code in every if _is_faster(shapes[code])]
    falling = [code for code in every if code not in faster]
    powers = [code for code in falling if isinstance(shapes[code], Term)]
    dearer = _dearer(shapes, growing + falling, points)
    neighbours = neighbouring_powers(shapes) if len(points) >= FEWEST_FOR_POWERS else []
    pairs = [(a, b) for a in growing for b in growing if a < b]
    pairs += _with_logarithms(shapes) + _levelling(shapes)
    pairs += [(a, b) for a, b in neighbours if not shapes[a].decreasing]
    pairs += [(a, b) for a, b in dearer if a in growing] + [
        (a, b) for a, b in dearer if a in falling
    ]
    if powers:
        beside_shared = *faster, *powers[1:], *_beginning(shapes, points)
        pairs += [(powers[0], b) for b in beside_shared]
    pairs += [(a, b) for a, b in neighbours if shapes[a].decreasing]
    pairs += [(a, b) for a in falling for b in growing]
    plainest = [code for code in growing if shapes[code] in _BESIDE_OTHER_WORK]
    pairs += [(a, b) for a in other_work(shapes) for b in plainest]
    # One process has no others to send to, in growing terms as in falling ones.
    others = [code for code, shape in enumerate(shapes) if shape == TO_OTHERS]
    pairs += [(a, b) for a in falling if a not in powers for b in others]
    # A search space of the user may contain the powers between, so pairs may be duplicates.
    return list(dict.fromkeys(pairs))


def neighbouring_powers(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Return pairs of a power and the next greater one; their sums represent powers between."""
    powers = {
        shape.exponent: code
        for code, shape in enumerate(shapes)
        if isinstance(shape, Term) and shape.is_power
    }
    return [
        (code, powers[at + NEIGHBOURS_APART])
        for at, code in powers.items()
        if at + NEIGHBOURS_APART in powers
    ]


def other_work(shapes: Sequence[Shape]) -> list[int]:
    """Return the codes of work that is sorted, fits into caches, or is shared unevenly."""
    return [code for code, shape in enumerate(shapes) if shape.decreasing and _is_other(shape)]


def _is_other(shape: Shape) -> bool:
    if isinstance(shape, Break):
        return True
    some = isinstance(shape, Term) and FASTEST <= shape.exponent < SLOWEST
    return some and (_is_fine(shape) or _is_faster(shape))


def _with_logarithms(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Return pairs of whole powers and their products with a logarithm."""
    codes = {shape: code for code, shape in enumerate(shapes)}
    powers = [
        shape
        for shape in codes
        if isinstance(shape, Term) and shape.is_power and shape.exponent.denominator == 1
    ]
    every = ((power, Term(power.exponent, 1)) for power in powers if power.exponent > 0)
    return [(codes[power], codes[product]) for power, product in every if product in codes]


def _is_fine(shape: Shape) -> bool:
    """Return whether a decreasing shape is one of many that are nearly alike."""
    return isinstance(shape, Term) and shape.exponent.denominator > COARSE


def _is_faster(shape: Shape) -> bool:
    """Return whether a shape falls faster than 1/p."""
    return isinstance(shape, Term) and shape.exponent < -1


def _dearer(
    shapes: Sequence[Shape], terms: Sequence[int], points: FloatArray
) -> list[tuple[int, int]]:
    """Return pairs of terms and the breaks that make them more expensive from a point on."""
    last = at_last(points)
    late = [code for code, shape in enumerate(shapes) if shape in last]
    leaps = defaultdict(list)
    for code, leap in _of_kind(shapes, BreakKind.LEAP):
        leaps[leap.exponent, leap.log].append(code)
    pairs = []
    for code in terms:
        shape = shapes[code]
        # The leap of a transposition, 1/p - 1/p^2, is in proportion to 1/p.
        term = shape.larger if isinstance(shape, TermDifference) else shape
        assert isinstance(term, Term)
        if description_length(term) <= PLAIN:
            pairs += [(code, step) for step in late]
        if not term.rate:
            pairs += [(code, leap) for leap in leaps[term.exponent, term.log]]
    return pairs


def _levelling(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Return pairs of plateaus or floors of neighbouring points; sums level off between these."""
    pairs = []
    for kind in (BreakKind.PLATEAU, BreakKind.FLOOR):
        linear = [(shape.at, code) for code, shape in _of_kind(shapes, kind) if shape.exponent == 1]
        pairs += [(a, b) for (_, a), (_, b) in pairwise(sorted(linear))]
    return pairs


def _beginning(shapes: Sequence[Shape], points: FloatArray) -> list[int]:
    """Return breaks that begin at a capacity: every second place up to the last but one point."""
    found = []
    for kind in FROM_NOTHING:
        every = sorted((shape.at, code) for code, shape in _of_kind(shapes, kind))
        found += [code for at, code in every[1::2] if at <= points[-2]]
    return found


def _of_kind(shapes: Sequence[Shape], kind: BreakKind) -> list[tuple[int, Break]]:
    return [
        (code, shape)
        for code, shape in enumerate(shapes)
        if isinstance(shape, Break) and shape.kind is kind
    ]


S = TypeVar("S", bound=Shape)


def identifiable_shapes(
    candidates: Sequence[S], points: FloatArray
) -> tuple[list[S], FloatArray, FloatArray]:
    """Return the shapes that vary over the points, their scaled table [S, K] and their scale [S].

    A break that equals another break or a term at the points is left out, unless it differs in
    pairs or beyond the last point.
    """
    table = shape_table(candidates, points)[:-1]
    size, least = np.abs(table).max(axis=1), table.min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        reach = table.max(axis=1) - least[:, 0]
        varies = np.isfinite(size) & (reach > ALIKE * size)
        forms = np.round((table - least) / reach[:, None] / ALIKE)
    kept, seen, late = [], set(), at_last(points)
    for k in np.flatnonzero(varies).tolist():
        form = forms[k].tobytes()
        shape = candidates[k]
        if (
            not isinstance(shape, Break)
            or form not in seen
            or shape.in_pairs_only(float(points[-1]))
            or shape in late
        ):
            kept.append(k)
        seen.add(form)
    kept.sort(key=lambda k: candidates[k].growth.order)
    return [candidates[k] for k in kept], table[kept] / size[kept, None], size[kept]
