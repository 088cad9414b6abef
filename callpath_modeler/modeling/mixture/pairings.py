"""Which shapes stand beside each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.breaks import FROM_NOTHING, Break, BreakKind, at_last
from callpath_modeler.modeling.differences import TO_OTHERS, TermDifference
from callpath_modeler.modeling.mixture.complexity_prior import description_length
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.terms import Term

FloatArray = npt.NDArray[np.float64]

_PLAIN = 0.4
"""How intricate a law may be that more begins beside at the last point."""

_MOST_PAIRED = 14
_PAIRED = 1.0
"""In spaces of more growing terms only plain ones are tried in pairs; pairs of near neighbours are
one curve."""

_FEWEST_FOR_BETWEEN = 4
_APART = Fraction(1, 10)
"""Points that tell a power between two others from either, and how far these are apart."""

_FASTEST, _SLOWEST = Fraction(-5, 3), Fraction(-1, 2)
_BESIDE_OTHER_WORK = Term(Fraction(0), 1), Term(Fraction(1), 0)
"""Powers that work other than 1 / p falls by, the second not among them, and what is beside it."""

_COARSE = 3
"""Denominators of powers that fall, beside others; finer ones are nearly alike."""


def pairings(
    shapes: Sequence[Shape], points: FloatArray, lone: Collection[Shape] = ()
) -> list[tuple[int, int]]:
    """Pair growing terms with each other and with decreasing ones, and these with the steepest.

    Transforms and what else takes each number are a power and its product with a logarithm. Work
    that all share falls faster than its surface, and is beside what begins at a capacity. What
    levels off between two points is a sum of what does at either. What takes longer from a point on
    does so in proportion, and the last point also by what is there only, stays or goes on. What
    falls or grows by a power between two others is nearly a sum of these; else what is `lone` is in
    no pair. Work that falls by other powers, or is sorted, is beside what is plainest. Pairs beside
    a decreasing shape come last.
    """
    rising = [
        (code, shape)
        for code, shape in enumerate(shapes)
        if isinstance(shape, Term) and not shape.decreasing and shape not in lone
    ]
    few = len(rising) <= _MOST_PAIRED
    growing = [code for code, shape in rising if few or description_length(shape) <= _PAIRED]
    every = [
        code
        for code, shape in enumerate(shapes)
        if shape.decreasing and not isinstance(shape, Break) and not _is_fine(shape)
    ]
    faster = [code for code in every if _is_faster(shapes[code])]
    falling = [code for code in every if code not in faster]
    powers = [code for code in falling if isinstance(shapes[code], Term)]
    dearer = _dearer(shapes, growing + falling, points)
    neighbours = neighbouring_powers(shapes) if len(points) >= _FEWEST_FOR_BETWEEN else []
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
    # Who sends to all others meets none at one process, in what grows as in what falls.
    others = [code for code, shape in enumerate(shapes) if shape == TO_OTHERS]
    pairs += [(a, b) for a in falling if a not in powers for b in others]
    # Spaces of one's own may have what is between among their terms.
    return list(dict.fromkeys(pairs))


def neighbouring_powers(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Pair powers with the next greater ones: sums of both are what is between."""
    powers = {
        shape.exponent: code
        for code, shape in enumerate(shapes)
        if isinstance(shape, Term) and shape.is_power
    }
    return [(code, powers[at + _APART]) for at, code in powers.items() if at + _APART in powers]


def other_work(shapes: Sequence[Shape]) -> list[int]:
    """Return work that is sorted, fits into caches at last, or is not shared evenly."""
    return [code for code, shape in enumerate(shapes) if shape.decreasing and _is_other(shape)]


def _is_other(shape: Shape) -> bool:
    if isinstance(shape, Break):
        return True
    some = isinstance(shape, Term) and _FASTEST <= shape.exponent < _SLOWEST
    return some and (_is_fine(shape) or _is_faster(shape))


def _with_logarithms(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Pair whole powers with their products with a logarithm."""
    codes = {shape: code for code, shape in enumerate(shapes)}
    powers = [
        shape
        for shape in codes
        if isinstance(shape, Term) and shape.is_power and shape.exponent.denominator == 1
    ]
    every = ((power, Term(power.exponent, 1)) for power in powers if power.exponent > 0)
    return [(codes[power], codes[product]) for power, product in every if product in codes]


def _is_fine(shape: Shape) -> bool:
    """Tell whether a decreasing shape is one of many that are nearly alike."""
    return isinstance(shape, Term) and shape.exponent.denominator > _COARSE


def _is_faster(shape: Shape) -> bool:
    """Tell whether a shape falls faster than work that is shared."""
    return isinstance(shape, Term) and shape.exponent < -1


def _dearer(
    shapes: Sequence[Shape], terms: Sequence[int], points: FloatArray
) -> list[tuple[int, int]]:
    """Pair some terms with what may be beside them from a point on."""
    last = at_last(points)
    late = [code for code, shape in enumerate(shapes) if shape in last]
    leaps = defaultdict(list)
    for code, leap in _of_kind(shapes, BreakKind.LEAP):
        leaps[leap.exponent, leap.log].append(code)
    pairs = []
    for code in terms:
        shape = shapes[code]
        # What is sent to all others is in proportion to 1 / p where it is dearer.
        term = shape.larger if isinstance(shape, TermDifference) else shape
        assert isinstance(term, Term)
        if description_length(term) <= _PLAIN:
            pairs += [(code, step) for step in late]
        if not term.rate:
            pairs += [(code, leap) for leap in leaps[term.exponent, term.log]]
    return pairs


def _levelling(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """Pair plateaus and floors of neighbouring points: sums of them level off anywhere between."""
    pairs = []
    for kind in (BreakKind.PLATEAU, BreakKind.FLOOR):
        linear = [(shape.at, code) for code, shape in _of_kind(shapes, kind) if shape.exponent == 1]
        pairs += [(a, b) for (_, a), (_, b) in pairwise(sorted(linear))]
    return pairs


def _beginning(shapes: Sequence[Shape], points: FloatArray) -> list[int]:
    """Return what begins at a capacity, at every other place up to the last but one point."""
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
