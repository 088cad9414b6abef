"""Hypotheses in one parameter, and their priors before the values of a row are seen.

See docs/explanation/hypotheses.md, 'Hypotheses'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cached_property, lru_cache, reduce
from typing import Any, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.hypotheses import (
    ALONE,
    BETWEEN,
    BREAKS_OF_THREE,
    CEILING,
    CLASS_STRENGTH,
    CLOSEST_PAIRS,
    CLOSEST_WHILE_LEARNING,
    EVERY,
    FEWEST_FOR_POWERS,
    FEWEST_FOR_THREE,
    NATS,
    PRIOR,
    WITHOUT_CONSTANT,
)
from callpath_modeler.modeling.mixture.priors import (
    identifiable_shapes,
    neighbouring_powers,
    other_work,
    pairings,
    prior_weight,
    prior_weight_beside,
    prior_weight_beside_shared,
    prior_weight_in_pairs,
    prior_weight_of_whole,
)
from callpath_modeler.modeling.products import (
    Break,
    BreakKind,
    Shape,
    TermDifference,
    at_last,
    breaks,
    differences,
)
from callpath_modeler.modeling.shapes import Shapes
from callpath_modeler.modeling.terms import SearchSpace, Term

K = TypeVar("K", bound=IntEnum)
N = TypeVar("N", bound=np.generic)


class HypothesisGroup(IntEnum):
    """Kinds of hypotheses; the application shows how common each kind is."""

    CONSTANT = 0
    GROWING = 1  # c1 x or c0 + c1 x, x growing, coefficients positive
    FALLING = 2  # c1 x or c0 + c1 x, x decreasing, positive: strong scaling
    BREAK = 3  # c0 + c1 x (+ c2 z), x a step, bend, capacity, ...: outside the class
    EASING = 4  # as BREAK, x a step down or a plateau: fits much that falls or scatters
    OFFSET = 5  # c1 x - c0, x growing; or c0 - c1 x, x decreasing: positive at all points
    PAIR = 6  # c0 + c1 x + c2 z, all positive, x and z growing; or c1 (x - z)
    SURFACE = 7  # c1 x + c2 z, positive, both decreasing: shared work and its surface
    RISING = 8  # c0 + c1 x + c2 z, positive, x decreasing, z growing: U-shapes


SHARED = (HypothesisGroup.FALLING, HypothesisGroup.SURFACE, HypothesisGroup.RISING)
"""Kinds of shared work, alone or with other terms, which are learnt as one kind.

Call paths that cannot distinguish a constant from growth would otherwise convince each other that
nothing grows.
"""
OUTSIDE = (HypothesisGroup.BREAK, HypothesisGroup.EASING)
"""Kinds that are outside the model class."""

_PRIOR = {HypothesisGroup[name]: share for name, share in PRIOR.items()}
_PRIOR_OF_THREE = {**_PRIOR, HypothesisGroup.BREAK: BREAKS_OF_THREE}

_EASING = (BreakKind.DROP, BreakKind.PLATEAU, BreakKind.FLOOR, BreakKind.SETTLE)
"""Kinds of breaks that are easings."""


@dataclass(frozen=True, slots=True)
class ScreeningLimits:
    """Limits on the hypotheses of a row that are evaluated.

    Many hypotheses that fit somewhat worse would together outweigh the few that fit. In one
    parameter, few pairs differ. In several, each factor that suits one parameter may be paired with
    each that suits another. See docs/explanation/hypotheses.md, 'Screening'.

    Attributes
    ----------
    shapes : number of closest shapes whose hypotheses with one shape are kept
    habits : the same number while priors are learnt
    pairs : number of closest pairs with positive coefficients that are kept, per point
    nats : distance from the best bound, in nats, beyond which a hypothesis is left out
    frugal : whether the constant of every pair has to explain more than it costs; otherwise only
        with shared work
    """

    shapes: int = EVERY
    habits: int = CLOSEST_WHILE_LEARNING
    pairs: int = CLOSEST_PAIRS
    nats: float = NATS
    frugal: bool = False


@dataclass(frozen=True, slots=True)
class PairGroups:
    """Fans: groups of pairs, which are too many to be tried with every row.

    A fan consists of one of S shapes and all terms of one of D parameters. All parameters together
    have H terms. The fan of shape s and parameter d has the number ``s D + d``. The pair of shape s
    and term h has the number ``start + s H + h``. Some pairs only complete the numbering and have
    no prior.

    Attributes
    ----------
    start : number of the first pair
    ends : [D] end of the terms of each parameter; the last one is H
    terms : [H] codes of the terms, parameter by parameter
    levels : [D, K] number of the value that each parameter has at each point
    opened : largest number of fans that are evaluated for a row; the most promising ones
    """

    start: int
    ends: IntArray
    terms: IntArray
    levels: IntArray
    opened: int

    @property
    def begins(self) -> IntArray:
        """Start of the terms of each parameter, [D]."""
        return np.concatenate([[0], self.ends[:-1]])

    @property
    def most(self) -> int:
        """Largest number of pairs in fans that a row is compared with."""
        return self.opened * int((self.ends - self.begins).max())

    def likely(self, log_prior: FloatArray) -> FloatArray:
        """Return the log prior of the most probable pair of each fan, [S D], from all pairs [P]."""
        of_pairs = log_prior[self.start :].reshape(-1, len(self.terms))
        return np.maximum.reduceat(of_pairs, self.begins, axis=1).ravel()


@dataclass(frozen=True)
class Hypotheses:
    """All hypotheses over one set of points.

    A hypothesis has a constant and up to two shapes. Hypotheses with one shape form three families:
    with positive coefficients, offset, and without a constant.

    Attributes
    ----------
    shapes : shapes in ascending order of growth
    table : [S, K] each shape at each point, scaled to a largest magnitude of 1
    scale : [S] largest magnitude of each shape
    first, second : [P] shapes of the pairs
    products : [Q, K] product of both shapes, for the first Q pairs, which are tried with every row
    single_group : [S] group of the hypothesis with one shape and positive coefficients
    kept : limits on the hypotheses of a row that are evaluated
    kinds : [1 + 3 S + P] kind of each hypothesis; the probabilities of kinds are learnt
    strength : [kinds] weight of the prior within a kind, in call paths
    log_prior : [1 + 3 S + P] log prior of constant, single, offset, without a constant, pairs;
        -inf = excluded
    fans : groups of the other pairs; None = there are no others
    recipe : makes equal hypotheses. Another process gets it instead of the arrays, which may hold
        100 MB; None = it gets the arrays
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
    recipe: Callable[[], Hypotheses] | None = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Return what another process makes these hypotheses from."""
        return super().__reduce_ex__(protocol) if self.recipe is None else (self.recipe, ())

    @cached_property
    def for_habits(self) -> Hypotheses:
        """The same hypotheses with the limits that hold while priors are learnt."""
        return replace(self, kept=replace(self.kept, shapes=self.kept.habits), recipe=None)

    @cached_property
    def growing(self) -> int:
        """Number of pairs without a decreasing shape, which come first; all in several parameters.

        In one parameter, a term with shared work may have any small share.
        """
        if self.kept.frugal:
            return len(self.first)
        return int((self.single_group[self.first] != HypothesisGroup.FALLING).sum())

    @cached_property
    def compared(self) -> int:
        """Largest number of hypotheses that a row is compared with."""
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
        """Whether each hypothesis is outside the model class, in the order of `log_prior`."""
        breaks = reduce(np.logical_or, (self.single_group == group for group in OUTSIDE))
        within = np.zeros(len(breaks), dtype=np.bool_)
        pairs = breaks[self.first] | breaks[self.second]
        return _read_only(np.concatenate([[False], breaks, within, breaks, pairs]))

    @cached_property
    def breaks(self) -> BoolArray:
        """Whether each shape is a break, [S + 1]; the last entry stands for no shape."""
        return _read_only(np.append(self.outside[1 : 1 + len(self.shapes)], False))

    @cached_property
    def every_code(self) -> IntArray:
        """Shapes of every hypothesis, [1 + 3 S + P, 2]; -1 = none."""
        every = np.arange(len(self.shapes))
        first = np.concatenate([[-1], every, every, every, self.first])
        second = np.concatenate([np.full(1 + 3 * len(every), -1), self.second])
        return _read_only(np.stack([first, second], axis=-1))

    def codes(self, chosen: IntArray) -> IntArray:
        """Return the shapes of the hypotheses `chosen`, [..., 2]; -1 = none."""
        return self.every_code[chosen]

    @cached_property
    def table_and_none(self) -> FloatArray:
        """The table, and a row of zeros for no shape, [S + 1, K]."""
        return _read_only(np.concatenate([self.table, np.zeros((1, self.table.shape[1]))]))


def hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Return the hypotheses of a search space over `points` [K], ascending.

    Breaks that these points cannot distinguish from another shape are left out.

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    return _hypotheses(space, tuple(points.tolist()))


@lru_cache(maxsize=8)
def _hypotheses(space: SearchSpace, at: tuple[float, ...]) -> Hypotheses:
    """Make the hypotheses once: all metrics of an experiment have the same points."""
    points = np.array(at)
    terms = [term for term in space.terms if points[0] >= 1 or not term.log]
    if not terms:
        raise ValueError(
            "all terms of the search space have logarithms, which are negative below 1"
        )
    of_two = differences(terms, points) if space.max_terms > 1 else ()
    alone = space.alone if len(points) >= FEWEST_FOR_POWERS else ()
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
    single[[shape in lone for shape in shapes]] *= ALONE
    fractions = {term for term in lone if term.exponent.denominator > 1}
    bare = np.array([shape in fractions for shape in shapes], dtype=np.bool_)
    prior = _PRIOR_OF_THREE if three else _PRIOR
    known = with_prior(known, single, _pair_plainness(known), prior, bare=bare)
    known = replace(
        known, kinds=np.where(np.isin(known.kinds, SHARED), HypothesisGroup.FALLING, known.kinds)
    )
    return shareable(known)


def shareable(known: Hypotheses) -> Hypotheses:
    """Return hypotheses whose arrays are read-only, so that several fits can use them."""
    for column in (getattr(known, field.name) for field in fields(known)):
        if isinstance(column, np.ndarray):
            _read_only(column)
    return known


def _read_only(column: npt.NDArray[N]) -> npt.NDArray[N]:
    column.flags.writeable = False
    return column


def _pair_plainness(hypotheses: Hypotheses) -> FloatArray:
    """Return the weights of pairs, [P]: of both shapes, or of the break in the pair."""
    each, broken, beside_shared = (
        np.array([weigh(shape) for shape in hypotheses.shapes])
        for weigh in (prior_weight_in_pairs, prior_weight_beside, prior_weight_beside_shared)
    )
    both = each[hypotheses.first] * each[hypotheses.second]
    shared = hypotheses.single_group[hypotheses.first] == HypothesisGroup.FALLING
    both[shared] *= beside_shared[hypotheses.second[shared]]
    # A growing term is as probable with other falling work as with 1 / p.
    alone = np.array([prior_weight(shape, np.inf) for shape in hypotheses.shapes])
    other = np.isin(hypotheses.first, other_work(hypotheses.shapes))
    other &= hypotheses.single_group[hypotheses.second] == HypothesisGroup.GROWING
    a, b = hypotheses.first[other], hypotheses.second[other]
    both[other] = alone[a] * each[b] * beside_shared[b]
    neighbours = set(neighbouring_powers(hypotheses.shapes))
    pairs = list(zip(hypotheses.first.tolist(), hypotheses.second.tolist(), strict=True))
    if hypotheses.table.shape[1] >= FEWEST_FOR_THREE:
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
    """Return hypotheses without a prior, which `with_prior` adds; each group is a kind."""
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
    """Return the hypotheses with a prior: by kind, and within a kind by weight.

    Hypotheses with one shape have the `weight` [S] of the shape, pairs have `pair_weight` [P]. The
    prior within a kind counts as `held` call paths for each hypothesis. Shapes marked by `bare` [S]
    have no constant.
    """
    alone, without = weight * (1 - WITHOUT_CONSTANT), weight * WITHOUT_CONSTANT
    if hypotheses.table.shape[1] < FEWEST_FOR_THREE:
        alone[hypotheses.single_group == HypothesisGroup.EASING] = 0.0
    # A difference with a constant would be an offset, and a break with an offset another break.
    alone[bare | (hypotheses.single_group == HypothesisGroup.PAIR)] = 0.0
    offset = weight * ~(bare | np.isin(hypotheses.single_group, (*OUTSIDE, HypothesisGroup.PAIR)))
    offset[hypotheses.single_group == HypothesisGroup.FALLING] *= CEILING
    each = np.concatenate([[1.0], alone, offset, without, pair_weight])
    size = max(prior) + 1
    whole = np.bincount(hypotheses.kinds, weights=each, minlength=size)
    of_kind = np.zeros(size)
    of_kind[list(prior)] = list(prior.values())
    share = each * (of_kind / np.where(whole > 0, whole, 1.0))[hypotheses.kinds]
    strength = np.maximum(CLASS_STRENGTH, held * np.bincount(hypotheses.kinds, minlength=size))
    with np.errstate(divide="ignore"):
        log_prior = np.log(share / share.sum())
    return replace(hypotheses, strength=strength, log_prior=log_prior)


def _group(shape: Shape) -> HypothesisGroup:
    if isinstance(shape, Break) and not shape.decreasing:
        return HypothesisGroup.EASING if shape.kind in _EASING else HypothesisGroup.BREAK
    if isinstance(shape, TermDifference) and not shape.decreasing:
        return HypothesisGroup.PAIR
    return HypothesisGroup.FALLING if shape.decreasing else HypothesisGroup.GROWING
