"""Hypotheses in several parameters: products of factors, alone and in pairs.

Every product is paired with every term of one parameter, in fans; a row evaluates a few fans. There
are too many pairs of two products, and too many products of three or four factors. Only the
plainest are kept. These have factors of known programs, or are pairs of which one product follows
from the other. In three parameters or more, sums of products include all other products. Any other
law is approximated by its neighbours; their error is a deviation that widens the band. See
docs/explanation/several-parameters.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, combinations

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.hypotheses import ALIKE, EVERY
from callpath_modeler.modeling.constants.several import (
    BROKEN,
    CLOSEST_OF_SEVERAL,
    HELD,
    MORE_THAN_SHARED,
    MOST_ACCOMPANIED,
    MOST_FIXED,
    MOST_PAIRED,
    OPENED,
    PLAIN,
    PRIOR,
    SURFACES,
)
from callpath_modeler.modeling.factor_catalogue import (
    SHARED,
    Catalogue,
    broken_beside,
    is_onset,
    is_seldom,
    kinks_beside,
    plain_factors,
    plainest,
)
from callpath_modeler.modeling.mixture.one_parameter import (
    Hypotheses,
    HypothesisGroup,
    PairGroups,
    ScreeningLimits,
    assemble_hypotheses,
    shareable,
    with_prior,
)
from callpath_modeler.modeling.products import TO_OTHERS, TRANSPOSED, Factor
from callpath_modeler.modeling.terms import SearchSpace, Term


def always_tested_pairs(products: Catalogue) -> IntArray:
    """Return pairs [P, 2] that are tried with every row, with the slower growing product first."""
    several = np.flatnonzero(~products.single & ~products.breaks)
    few = several[plainest(products.cost[several], MOST_PAIRED)]
    first, second = (few[place] for place in np.triu_indices(len(few), 1))
    # Two that fall in every parameter are nearly one curve.
    both = ~(products.falling[first] & products.falling[second])
    first, second = first[both], second[both]
    kept = plainest(products.together(first, second), MOST_FIXED)
    plain = np.stack([first[kept], second[kept]], axis=1)
    follow = [_companions(products), _shared(products), _broken(products)]
    return np.unique(np.concatenate([plain, *follow]), axis=0)


def _shared(products: Catalogue) -> IntArray:
    """Return pairs [P, 2] of work that all its parameters share, and work that is shared less.

    The second is the surface of a volume, waiting along it, or work that some parameter does not
    share, as in 1/(p n) + 1/p, the work of one thread. There are also pairs of work that each of
    two parameters shares, 1/p + 1/n.
    """
    falling = np.flatnonzero(products.falling & ~products.seldom)
    power = products.of_each(lambda factor: float(factor.growth.exponent))[:, falling]
    logs = products.of_each(lambda factor: float(factor.growth.log))[:, falling].any(axis=0)
    falling, power = falling[~logs], power[:, ~logs]
    whole = np.asarray(np.isin(power, (0, -1)).all(axis=0), dtype=np.bool_)
    single = whole & ((power < 0).sum(axis=0) == 1)
    slower = (power[:, :, None] <= power[:, None]).all(axis=0)
    first, second = np.nonzero(whole[:, None] & slower | single[:, None] & single)
    pairs = np.sort(np.stack([falling[first], falling[second]], axis=1), axis=1)
    return np.asarray(pairs[first != second])


def _companions(products: Catalogue) -> IntArray:
    """Return pairs [P, 2] of which one product follows from the other.

    An exchange with all others has a cost with its size and a cost without. If its size is shared,
    it has a cost for each message. A shared volume has a surface, as n^3/p has n^2/p^(2/3); factors
    that are no part of the volume, such as a number of steps, stay the same.
    """
    number = {tuple(code): k for k, code in enumerate(products.code.T.tolist())}
    seldom = [[is_seldom(each) for each in factors] for factors in products.factors]
    shared, transposed, messages = (
        [factors.index(some) if some in factors else -1 for factors in products.factors]
        for some in (SHARED, TRANSPOSED, TO_OTHERS)
    )
    surfaces = [[_raised(factors, power) for factors in products.factors] for power in SURFACES]
    found = []
    for k in _accompanied(products).tolist():
        code = products.code[:, k].tolist()
        used = [axis for axis, which in enumerate(code) if which]
        peers = [axis for axis in used if seldom[axis][code[axis]]]
        nodes = [axis for axis in used if code[axis] == shared[axis]]
        others: list[tuple[int, ...]] = []
        if peers:
            nothing = [[0] * len(factors) for factors in products.factors]
            others += [_changed(code, part, nothing) for part in _parts(used, peers)]
            others += [
                tuple(messages[axis] * (each == axis) for each in range(len(code)))
                for axis in peers
                if code[axis] == transposed[axis]
            ]
        elif nodes:
            parts = list(_parts(used, nodes))
            others += [_changed(code, (*part, *nodes), to) for part in parts for to in surfaces]
        found += [sorted((number[other], k)) for other in others if other in number]
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def _accompanied(products: Catalogue) -> IntArray:
    """Return the plainest products from which others may follow."""
    several = ~products.single & ~products.breaks
    of_peers, of_nodes = several & products.seldom, several & products.falls & ~products.seldom
    each = [np.flatnonzero(some) for some in (of_peers, of_nodes)]
    return np.concatenate([k[plainest(products.cost[k], MOST_ACCOMPANIED)] for k in each])


def _broken(products: Catalogue) -> IntArray:
    """Return pairs [P, 2] of a product with a break and the law that it changes.

    A plain product has more, or less, of itself from a value on. The change is in proportion to all
    of the product, or to the part that does not depend on the parameter of the break. A plain
    factor has a constant increase for all values of its parameter. Bends at two neighbouring values
    are paired, because at all values and beyond, their sum bends anywhere between these.
    """
    number = {tuple(code): k for k, code in enumerate(products.code.T.tolist())}
    beside = [
        [one + other for one, other in zip(broken_beside(of), kinks_beside(of), strict=True)]
        for of in products.factors
    ]
    plain = [plain_factors(factors) for factors in products.factors]
    codes, axes = products.code.T.tolist(), products.axis.tolist()
    found = []
    for k in np.flatnonzero(products.breaks).tolist():
        code, axis = codes[k], axes[k]
        laws = [
            (*code[:of], other, *code[of + 1 :])
            for of, others in enumerate(beside)
            for other in others[code[of]]
        ]
        if axis >= 0 and is_onset(products.factors[axis][code[axis]]):
            laws += [
                tuple(other * (each == of) for each in range(len(code)))
                for of, others in enumerate(plain)
                for other in others
                if other and of != axis
            ]
        found += [sorted((number[law], k)) for law in laws if law in number]
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def _parts(axes: Sequence[int], without: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Return all nonempty selections of the parameters `axes` that contain none of `without`."""
    rest = [axis for axis in axes if axis not in without]
    return chain.from_iterable(combinations(rest, size) for size in range(1, len(rest) + 1))


def _changed(
    code: Sequence[int], axes: Sequence[int], to: Sequence[Sequence[int]]
) -> tuple[int, ...]:
    """Return a product with the factors of some parameters changed."""
    return tuple(to[axis][which] if axis in axes else which for axis, which in enumerate(code))


def _raised(factors: Sequence[Factor], power: Fraction) -> list[int]:
    """Return the code of each power raised to `power`, if that is a factor, too; -1 = none."""
    place = {factor: code for code, factor in enumerate(factors)}
    found = []
    for factor in factors:
        if isinstance(factor, Term) and not (factor.log or factor.rate):
            found.append(place.get(Term(factor.exponent * power, 0), -1))
        else:
            found.append(-1)
    return found


_KEPT = ScreeningLimits(habits=CLOSEST_OF_SEVERAL, pairs=EVERY, frugal=True)
"""Limits on the hypotheses of a row: all pairs that are tried count.

Under much noise, chance decides which of them are closest.
"""

_NO_PAIRS = np.empty((0, 2), dtype=np.intp)


class _Kind(IntEnum):
    """Kinds of hypotheses; laws of one factor and of several are separate kinds."""

    CONSTANT = 0
    FACTOR = 1  # one factor, growing
    PRODUCT = 2  # a product of several factors, growing
    FALLING = 3
    OFFSET_FACTOR = 4
    OFFSET_PRODUCT = 5
    SUM = 6  # a factor and one of another parameter
    SHARED = 7  # a factor and shared work, a product that falls; or more of that work
    BESIDE = 8  # a factor and any other product
    ONE_PARAMETER = 9  # two factors of one parameter
    PRODUCTS = 10  # two products of several factors
    BREAK = 11  # a break along a parameter: outside the model class
    RISING = 12  # a falling and a growing factor of one parameter: U-shapes
    OF_A_SHARE = 13  # a product that falls with one parameter, times a sum in another
    NEVER = 14


_PRIOR = {_Kind[name]: share for name, share in PRIOR.items()}


def joint_hypotheses(space: SearchSpace, points: FloatArray) -> Hypotheses:
    """Return the hypotheses of a search space over `points` [K, D].

    Raises
    ------
    ValueError
        If no term of the space fits the points.
    """
    return _joint_hypotheses(space, tuple(map(tuple, points.tolist())))


@lru_cache(maxsize=1)
def _joint_hypotheses(space: SearchSpace, at: tuple[tuple[float, ...], ...]) -> Hypotheses:
    """Make the hypotheses once: the cases of a series mostly have the same points."""
    points = np.array(at)
    products = Catalogue.of(space, points)
    # Products that overflow at these points are left out.
    with np.errstate(over="ignore", invalid="ignore"):
        table = products.values(points)
        size = np.abs(table).max(axis=1)
        varies = np.isfinite(size) & (size > 0) & (np.ptp(table, axis=1) > ALIKE * size)
    kept = products.by_growth(np.flatnonzero(varies))
    if not kept.size:
        raise ValueError("no term of the space varies over the points")
    products, table, scale = products.take(kept), table[kept], size[kept]
    group = np.where(products.falling, HypothesisGroup.FALLING, HypothesisGroup.GROWING)
    group[products.breaks] = HypothesisGroup.BREAK
    weight, plain = products.weight(space), 2.0**-products.cost
    fixed = always_tested_pairs(products) if space.max_terms > 1 else _NO_PAIRS
    known = assemble_hypotheses(
        products.shapes(), table / scale[:, None], scale, group, fixed, _KEPT
    )
    each = weight * plain
    of_pair, structure = _kinds_of_pairs(products)
    of_fixed = of_pair[structure[known.first], structure[known.second]]
    both = weight[known.first] * weight[known.second]
    both *= 2.0 ** -products.together(known.first, known.second)
    shared, of_share = _with_sum_of_same(products, known.first, known.second)
    of_fixed[shared], both[shared] = _Kind.SHARED, both[shared] * MORE_THAN_SHARED
    of_fixed[of_share] = _Kind.OF_A_SHARE
    kinds = [_kinds_of_singles(products), of_fixed]
    if space.max_terms > 1 and products.single.any():
        fans = _fans(products, points, len(fixed))
        terms, every = fans.terms, np.arange(len(each))[:, None]
        slower, faster = np.minimum(every, terms).ravel(), np.maximum(every, terms).ravel()
        first, second = np.append(known.first, slower), np.append(known.second, faster)
        known = replace(known, first=first, second=second, fans=fans)
        kinds.append(of_pair[:, structure[terms]][structure].ravel())
        of_fans = each[:, None] * each[terms] * _there_in_fans(products, terms)
        both = np.append(both, of_fans)
    known = replace(known, kinds=np.concatenate(kinds))
    # A rare factor is not tried alone: with a constant, x - 1 is the same as x.
    weight = weight * ~(products.single & products.seldom | products.beside_only(points))
    prior = {**_PRIOR, _Kind.BREAK: min(BROKEN / len(plain), 0.04)}
    known = with_prior(known, weight * np.sqrt(plain), both, prior, HELD)
    return shareable(replace(known, recipe=partial(_joint_hypotheses, space, at)))


def _kinds_of_singles(products: Catalogue) -> IntArray:
    """Return the kinds of the constant and of hypotheses with one shape."""
    single, falling = products.single, products.falling
    alone = np.where(single, _Kind.FACTOR, _Kind.PRODUCT)
    alone[falling] = _Kind.FALLING
    alone[products.breaks] = _Kind.BREAK
    offset = np.where(single, _Kind.OFFSET_FACTOR, _Kind.OFFSET_PRODUCT)
    # A product that rises with one parameter and falls with another is negative somewhere as an
    # offset.
    offset[products.falls & ~falling] = _Kind.NEVER
    return np.concatenate([[_Kind.CONSTANT], alone, offset, alone])


def _kinds_of_pairs(products: Catalogue) -> tuple[IntArray, IntArray]:
    """Return the kinds of pairs by the structures of both shapes, [C, C]; the structures, [S]."""
    shared = products.falls & ~products.single
    of_shape = np.stack([products.single, shared, products.breaks, products.falling, products.axis])
    known, structure = np.unique(of_shape, axis=1, return_inverse=True)
    single, shared, breaks, falling = known[:4].astype(np.bool_)
    axis = known[4]
    pair = np.where(shared[:, None] | shared, _Kind.SHARED, _Kind.BESIDE)
    pair[~single[:, None] & ~single] = _Kind.PRODUCTS
    both = single[:, None] & single
    alike = axis[:, None] == axis
    pair[both] = np.where(alike, _Kind.ONE_PARAMETER, _Kind.SUM)[both]
    pair[both & alike & (falling[:, None] ^ falling)] = _Kind.RISING
    pair[breaks[:, None] | breaks] = _Kind.BREAK
    return pair, structure.ravel()


def _with_sum_of_same(
    products: Catalogue, first: IntArray, second: IntArray
) -> tuple[BoolArray, BoolArray]:
    """Return which pairs [P] are a product times a sum in one parameter, a part of which falls.

    In the first array all other factors grow, as in n^3 (1/p + log2(p)). In the second one all
    fall, as in 1/p (1/t + t): everything the threads of a process do concerns its share.
    """
    one, other = products.code[:, first], products.code[:, second]
    falls = products.of_each(lambda factor: float(factor.decreasing)) > 0
    differ, either = one != other, falls[:, first] | falls[:, second]
    more = differ & (one > 0) & (other > 0) & either
    single, breaks = (each[first] | each[second] for each in (products.single, products.breaks))
    there = ~single & ~breaks & more.any(axis=0) & (differ.sum(axis=0) == 1)
    of_share = there & (differ | (one == 0) | falls[:, first]).all(axis=0)
    return np.asarray(there & ~of_share), np.asarray(of_share)


def _fans(products: Catalogue, points: FloatArray, start: int) -> PairGroups:
    """Return the fans: groups of pairs of every product with every term of one parameter."""
    terms = np.flatnonzero(products.single & ~products.seldom & ~products.breaks)
    terms = terms[np.argsort(products.axis[terms], kind="stable")]
    axes, count = np.unique(products.axis[terms], return_counts=True)
    levels = [np.unique(points[:, axis], return_inverse=True)[1].ravel() for axis in axes]
    return PairGroups(start, count.cumsum(), terms, np.array(levels), OPENED)


def _there_in_fans(products: Catalogue, terms: IntArray) -> BoolArray:
    """Return which pairs of a product and one of the `terms` [T] exist, [S, T]."""
    axis, falling, every = products.axis[:, None], products.falling, np.arange(len(products.cost))
    # Two terms form one pair, not two.
    again = (axis > axis[terms].T) | ((axis == axis[terms].T) & (every[:, None] >= terms))
    single, seldom = products.single[:, None], products.seldom[:, None]
    there = ~(single & again) & ~(falling[:, None] & falling[terms])
    there &= ~products.breaks[:, None]
    there &= ~seldom | ~single & (products.cost[terms] <= PLAIN)
    return np.asarray(there)
