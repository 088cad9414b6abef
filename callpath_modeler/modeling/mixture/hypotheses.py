"""What could be true of a row, and how probable it is before its values are seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cached_property, lru_cache, reduce
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.breaks import Break, BreakKind, at_last, breaks
from callpath_modeler.modeling.differences import TermDifference, differences
from callpath_modeler.modeling.mixture.complexity_prior import (
    BETWEEN,
    prior_weight,
    prior_weight_beside,
    prior_weight_beside_shared,
    prior_weight_in_pairs,
    prior_weight_of_whole,
)
from callpath_modeler.modeling.mixture.identifiability import identifiable_shapes
from callpath_modeler.modeling.mixture.pairings import neighbouring_powers, other_work, pairings
from callpath_modeler.modeling.products import Shape
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.terms import SearchSpace, Term

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
K = TypeVar("K", bound=IntEnum)
N = TypeVar("N", bound=np.generic)


class HypothesisGroup(IntEnum):
    """Kinds of hypotheses; how common each is is learnt from the application."""

    CONSTANT = 0
    GROWING = 1  # c1 x or c0 + c1 x, x growing, coefficients positive
    FALLING = 2  # c1 x or c0 + c1 x, x decreasing, positive: strong scaling
    BREAK = 3  # c0 + c1 x, x a step, bend, ceiling, ...; + c2 z at last: outside the model class
    EASING = 4  # as BREAK, x a step down or what levels off, which meet much that falls or scatters
    OFFSET = 5  # c1 x - c0, x growing; or c0 - c1 x, x decreasing: still positive at all points
    PAIR = 6  # c0 + c1 x + c2 z, all positive, x and z growing; or c1 (x - z)
    SURFACE = 7  # c1 x + c2 z, positive, both decreasing: work that is shared, and its surface
    RISING = 8  # c0 + c1 x + c2 z, positive, x decreasing, z growing: U-shapes


SHARED = (HypothesisGroup.FALLING, HypothesisGroup.SURFACE, HypothesisGroup.RISING)
"""Work that is shared, and what is beside it; call paths that cannot tell whether that grows would
talk each other out of it, so that it is one kind."""
OUTSIDE = (HypothesisGroup.BREAK, HypothesisGroup.EASING)
"""Those that are outside the model class."""

_PRIOR = {
    HypothesisGroup.CONSTANT: 0.40,
    HypothesisGroup.GROWING: 0.32,
    HypothesisGroup.FALLING: 0.04,
    HypothesisGroup.SURFACE: 0.016,
    HypothesisGroup.RISING: 0.024,
    HypothesisGroup.BREAK: 0.05,
    HypothesisGroup.EASING: 0.02,
    HypothesisGroup.OFFSET: 0.10,
    HypothesisGroup.PAIR: 0.03,
}
_PRIOR_OF_THREE = {**_PRIOR, HypothesisGroup.BREAK: 0.03}
"""Of three points only what makes the last one dearer is tried."""
_CEILING = 0.3
"""Against other offsets, how probable what rises towards a ceiling is: three points may look so
because the first is of another regime."""
_WITHOUT_CONSTANT = 0.35
"""Of the hypotheses with one shape and positive coefficients, the share that have no constant."""

_EASING = (BreakKind.DROP, BreakKind.PLATEAU, BreakKind.FLOOR, BreakKind.SETTLE)
_FEWEST_FOR_EASING = 5
"""Points that tell what eases to something from a law that falls; to nothing takes four."""

_FEWEST_FOR_ALONE = 4
_ALONE = 0.02
"""Points that tell a law as steep as p^7 from a last one that is dearer, and how probable it is, or
a power between others, against those as plain."""

_FEWEST_FOR_WHOLE = 5
"""Points that tell a constant and two whole powers from a last point that is dearer."""

_CLASS_STRENGTH = 150.0
"""Before it moves, the prior within a kind counts as so many call paths at least."""


@dataclass(frozen=True, slots=True)
class ScreeningLimits:
    """Which hypotheses of a row are looked at.

    Many that fit somewhat worse would together outweigh the few that fit. Along one parameter few
    pairs differ; of several, any that suits one goes with any that suits another.

    Attributes
    ----------
    shapes : of how many shapes hypotheses with one are kept: the closest
    habits : the same, where habits are learnt
    pairs : how many of the pairs with positive coefficients are kept, for each point: the closest.
        The more places there are for breaks, the more pairs are met by chance
    nats : a hypothesis whose bound is by this much below the best, in nats, is left out
    frugal : whether no pair has a constant that explains less than it costs; otherwise only
        where it would be negative
    """

    shapes: int = 10**6
    habits: int = 100
    pairs: int = 7
    nats: float = 6.2
    frugal: bool = False


@dataclass(frozen=True, slots=True)
class PairGroups:
    """Pairs that are too many to be tried with every row: of S shapes with H terms of D parameters.

    A fan is a shape beside all terms of one parameter. That of shape s and parameter d is number
    ``s D + d``; the pair of shape s and term h is number ``start + s H + h``. Some pairs are there
    for the order only, and not probable at all.

    Attributes
    ----------
    start : the number of the first pair
    ends : [D] where the terms of each parameter end; H in all
    terms : [H] the codes of these terms, parameter by parameter
    levels : [D, K] the number of the value that each parameter has at each point
    opened : how many fans are looked into for a row: the most promising ones
    """

    start: int
    ends: IntArray
    terms: IntArray
    levels: IntArray
    opened: int

    @property
    def begins(self) -> IntArray:
        """Where the terms of each parameter begin, [D]."""
        return np.concatenate([[0], self.ends[:-1]])

    @property
    def most(self) -> int:
        """How many pairs of fans a row is compared with at most."""
        return self.opened * int((self.ends - self.begins).max())

    def likely(self, log_prior: FloatArray) -> FloatArray:
        """Return the prior of the most probable pair of each fan, [S D]; that of pairs [P]."""
        of_pairs = log_prior[self.start :].reshape(-1, len(self.terms))
        return np.maximum.reduceat(of_pairs, self.begins, axis=1).ravel()


@dataclass(frozen=True)
class Hypotheses:
    """All hypotheses over one set of points.

    A hypothesis has a constant and up to two shapes. Those with one shape come in three families:
    with positive coefficients, offset, and without a constant. What follows from
    them is found once.

    Attributes
    ----------
    shapes : the shapes, slowest growth first
    table : [S, K] each shape at each point, largest magnitude 1
    scale : [S] that magnitude
    first, second : [P] the shapes of the pairs
    products : [Q, K] of these two, of the Q pairs that are tried with every row, the first ones
    fans : what the other pairs are, if there are others
    single_group : [S] group of the hypothesis with one shape and positive coefficients
    kept : how many a row keeps
    kinds : [1 + 3 S + P] of which kind each is; how common kinds are is learnt
    held : [kinds] as how many call paths the prior within a kind counts before it moves
    log_prior : [1 + 3 S + P] constant, single, offset, without a constant, pairs; -inf = not there
    """

    shapes: Shapes
    table: FloatArray
    scale: FloatArray
    first: IntArray
    second: IntArray
    products: FloatArray
    single_group: IntArray
    kept: ScreeningLimits
    kinds: IntArray
    strength: FloatArray
    log_prior: FloatArray
    fans: PairGroups | None = None

    @cached_property
    def for_habits(self) -> Hypotheses:
        """The same, of which a row keeps as many as habits are learnt from."""
        return replace(self, kept=replace(self.kept, shapes=self.kept.habits))

    @cached_property
    def growing(self) -> int:
        """How many pairs, the first ones, are not beside a decreasing shape.

        Along one parameter: what is beside work that is shared may be as little as it likes.
        """
        if self.kept.frugal:
            return len(self.first)
        return int((self.single_group[self.first] != HypothesisGroup.FALLING).sum())

    @cached_property
    def compared(self) -> int:
        """With how many hypotheses a row is compared at most."""
        opened = 0 if self.fans is None else self.fans.most
        return 1 + 3 * len(self.shapes) + len(self.products) + opened

    @cached_property
    def groups(self) -> IntArray:
        """Group of every hypothesis, in the order of `log_prior`."""
        n, alone = len(self.shapes), self.single_group
        falls = alone == HypothesisGroup.FALLING
        pairs = np.where(falls[self.first], HypothesisGroup.RISING, HypothesisGroup.PAIR)
        pairs[falls[self.first] & falls[self.second]] = HypothesisGroup.SURFACE
        found = np.concatenate(
            [[HypothesisGroup.CONSTANT], alone, np.full(n, HypothesisGroup.OFFSET), alone, pairs]
        )
        found[1 + 3 * n :][self.outside[1 + 3 * n :]] = HypothesisGroup.BREAK
        return _read_only(found)

    @cached_property
    def outside(self) -> BoolArray:
        """Which are outside the model class, in the order of `log_prior`."""
        breaks = reduce(np.logical_or, (self.single_group == group for group in OUTSIDE))
        within = np.zeros(len(breaks), dtype=np.bool_)
        pairs = breaks[self.first] | breaks[self.second]
        return _read_only(np.concatenate([[False], breaks, within, breaks, pairs]))

    @cached_property
    def breaks(self) -> BoolArray:
        """Which shapes are breaks, [S + 1]; the last is none."""
        return _read_only(np.append(self.outside[1 : 1 + len(self.shapes)], False))

    @cached_property
    def every_code(self) -> IntArray:
        """The shapes of every hypothesis, [1 + 3 S + P, 2]; -1 = none."""
        every = np.arange(len(self.shapes))
        first = np.concatenate([[-1], every, every, every, self.first])
        second = np.concatenate([np.full(1 + 3 * len(every), -1), self.second])
        return _read_only(np.stack([first, second], axis=-1))

    def codes(self, chosen: IntArray) -> IntArray:
        """Return the shapes of hypotheses, [..., 2]; -1 = none."""
        return self.every_code[chosen]

    @cached_property
    def table_and_none(self) -> FloatArray:
        """The table, and what no shape is at each point, [S + 1, K]."""
        return _read_only(np.concatenate([self.table, np.zeros((1, self.table.shape[1]))]))


def hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Make the hypotheses of a space over `points` [K], ascending.

    Breaks that no measurement at these points tells from another shape are left out.

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    return _hypotheses(space, tuple(points.tolist()))


@lru_cache(maxsize=8)
def _hypotheses(space: SearchSpace, at: tuple[float, ...]) -> Hypotheses:
    """Make them once: all metrics of an experiment are measured at the same points."""
    points = np.array(at)
    terms = [term for term in space.terms if points[0] >= 1 or not term.log]
    if not terms:
        raise ValueError("all terms of the space have logarithms, which are negative below 1")
    of_two = differences(terms, points) if space.max_terms > 1 else ()
    alone = space.alone if len(points) >= _FEWEST_FOR_ALONE else ()
    lone = dict.fromkeys(Term(power, 0) for power in alone)
    for term in terms:
        lone.pop(term, None)
    three = len(points) == 3
    late = at_last(points)
    broken = late if three else breaks(points)
    every: list[Shape] = [*terms, *lone, *of_two, *broken]
    shapes, table, scale = identifiable_shapes(every, points)
    pairs = pairings(shapes, points, lone) if space.max_terms > 1 else []
    groups = np.array([_group(shape) for shape in shapes], dtype=np.intp)
    known = assemble_hypotheses(shapes, table, scale, groups, pairs)
    single = np.array([prior_weight(shape, float(points[-1])) for shape in shapes])
    single[[shape in late for shape in shapes]] = 1.0
    single[[shape in lone for shape in shapes]] *= _ALONE
    fractions = {term for term in lone if term.exponent.denominator > 1}
    bare = np.array([shape in fractions for shape in shapes], dtype=np.bool_)
    prior = _PRIOR_OF_THREE if three else _PRIOR
    known = with_prior(known, single, _pair_plainness(known), prior, bare=bare)
    known = replace(
        known, kinds=np.where(np.isin(known.kinds, SHARED), HypothesisGroup.FALLING, known.kinds)
    )
    for column in (getattr(known, field.name) for field in fields(known)):
        if isinstance(column, np.ndarray):
            _read_only(column)
    return known


def _read_only(column: npt.NDArray[N]) -> npt.NDArray[N]:
    column.flags.writeable = False
    return column


def _pair_plainness(hypotheses: Hypotheses) -> FloatArray:
    """Weigh pairs, [P]: by both their shapes, or by the break that is beside another shape."""
    each, broken, beside_shared = (
        np.array([weigh(shape) for shape in hypotheses.shapes])
        for weigh in (prior_weight_in_pairs, prior_weight_beside, prior_weight_beside_shared)
    )
    both = each[hypotheses.first] * each[hypotheses.second]
    shared = hypotheses.single_group[hypotheses.first] == HypothesisGroup.FALLING
    both[shared] *= beside_shared[hypotheses.second[shared]]
    # However work falls, what grows beside it is no rarer than beside 1 / p.
    alone = np.array([prior_weight(shape, np.inf) for shape in hypotheses.shapes])
    other = np.isin(hypotheses.first, other_work(hypotheses.shapes))
    other &= hypotheses.single_group[hypotheses.second] == HypothesisGroup.GROWING
    a, b = hypotheses.first[other], hypotheses.second[other]
    both[other] = alone[a] * each[b] * beside_shared[b]
    neighbours = set(neighbouring_powers(hypotheses.shapes))
    pairs = list(zip(hypotheses.first.tolist(), hypotheses.second.tolist(), strict=True))
    if hypotheses.table.shape[1] >= _FEWEST_FOR_WHOLE:
        whole = [
            prior_weight_of_whole(hypotheses.shapes[a], hypotheses.shapes[b]) for a, b in pairs
        ]
        both = np.where(np.isnan(whole), both, whole)
    both[[pair in neighbours for pair in pairs]] = BETWEEN
    return np.where(np.isnan(broken[hypotheses.second]), both, broken[hypotheses.second])


def assemble_hypotheses(
    shapes: Sequence[Shape],
    table: FloatArray,
    scale: FloatArray,
    groups: IntArray,
    pairs: Sequence[tuple[int, int]] | IntArray,
    kept: ScreeningLimits = ScreeningLimits(),
) -> Hypotheses:
    """Put hypotheses together; what to believe of them is for `with_prior` to say.

    Each group is a kind.
    """
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    nothing = np.empty(0)
    known = Hypotheses(
        Shapes(shapes),
        table,
        scale,
        first,
        second,
        table[first] * table[second],
        groups,
        kept,
        np.empty(0, dtype=np.intp),
        nothing,
        nothing,
    )
    return replace(known, kinds=known.groups)


def with_prior(
    hypotheses: Hypotheses,
    weight: FloatArray,
    pair_weight: FloatArray,
    prior: Mapping[K, float],
    held: float = 0.0,
    bare: BoolArray | bool = False,
) -> Hypotheses:
    """Give hypotheses their prior: by kind, and within it by weight.

    Those with one shape weigh as their shapes, `weight` [S], pairs by `pair_weight` [P]. Each
    hypothesis of a kind counts for `held` call paths. Some shapes are `bare` [S]: they have no
    constant.
    """
    alone, without = weight * (1 - _WITHOUT_CONSTANT), weight * _WITHOUT_CONSTANT
    if hypotheses.table.shape[1] < _FEWEST_FOR_EASING:
        alone[hypotheses.single_group == HypothesisGroup.EASING] = 0.0
    # With a constant, differences would be offsets, and offset breaks other breaks.
    alone[bare | (hypotheses.single_group == HypothesisGroup.PAIR)] = 0.0
    offset = weight * ~(bare | np.isin(hypotheses.single_group, (*OUTSIDE, HypothesisGroup.PAIR)))
    offset[hypotheses.single_group == HypothesisGroup.FALLING] *= _CEILING
    each = np.concatenate([[1.0], alone, offset, without, pair_weight])
    size = max(prior) + 1
    whole = np.bincount(hypotheses.kinds, weights=each, minlength=size)
    of_kind = np.zeros(size)
    of_kind[list(prior)] = list(prior.values())
    share = each * (of_kind / np.where(whole > 0, whole, 1.0))[hypotheses.kinds]
    strength = np.maximum(_CLASS_STRENGTH, held * np.bincount(hypotheses.kinds, minlength=size))
    with np.errstate(divide="ignore"):
        log_prior = np.log(share / share.sum())
    return replace(hypotheses, strength=strength, log_prior=log_prior)


def _group(shape: Shape) -> HypothesisGroup:
    if isinstance(shape, Break) and not shape.decreasing:
        return HypothesisGroup.EASING if shape.kind in _EASING else HypothesisGroup.BREAK
    if isinstance(shape, TermDifference) and not shape.decreasing:
        return HypothesisGroup.PAIR
    return HypothesisGroup.FALLING if shape.decreasing else HypothesisGroup.GROWING
