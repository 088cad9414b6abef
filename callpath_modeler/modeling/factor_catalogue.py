"""The products of factors that laws in several parameters consist of, also with a break.

See docs/explanation/several-parameters.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.hypotheses import ALIKE, FEWEST_FOR_THREE
from callpath_modeler.modeling.constants.several import (
    BESIDE_BREAKS,
    BREAK_COSTS,
    FALLING,
    FRACTION,
    FURTHER_FACTOR,
    KINKED,
    LARGEST_PRODUCT,
    MOST_BESIDE_BREAKS,
    MOST_BROKEN,
    MOST_BROKEN_OF_TWO,
    MOST_FACTORS,
    MOST_OF_MORE,
    MOST_OF_TWO,
    MOST_SELDOM,
    NEIGHBOURS,
    PLAIN,
    PLAIN_BESIDE_BREAKS,
    PLAINEST,
    SECOND_CLASS,
    SELDOM,
    STEEP,
    STEEPEST,
)
from callpath_modeler.modeling.mixture.priors import description_length
from callpath_modeler.modeling.products import (
    NOTHING,
    ONE,
    Break,
    BreakKind,
    Factor,
    Product,
    TermDifference,
    at_last,
    breaks,
    made_of,
    transpositions,
)
from callpath_modeler.modeling.terms import SearchSpace, Term

_COSTS = {BreakKind[name]: cost for name, cost in BREAK_COSTS.items()}


_MORE = BreakKind.STEP, BreakKind.ONCE, BreakKind.ONSET
"""Kinds of breaks that add something from some value on, or at the last value."""

_LEVELLING = BreakKind.FLOOR, BreakKind.PLATEAU
"""Kinds of breaks that level off."""
_BENDING = *_LEVELLING, BreakKind.BEND
"""Kinds of laws that bend between two values; bends are linear."""


_LEAPING = tuple(Fraction(text) for text in ("-1", "1/2", "1", "2"))
"""Powers that may take longer, or less, from some value on."""


def break_cost(factor: Break) -> float:
    """Return the intricacy of a break."""
    return _COSTS[factor.kind]


def identifiable_breaks(factors: Sequence[Factor], values: FloatArray) -> list[Break]:
    """Return the breaks along a parameter that measurements at `values` [K] could show.

    They are the breaks of one parameter, with three differences. Breaks that begin at a capacity
    occur at the last value only. Leaps of the powers among the `factors` occur between any two
    values, because the other parameters distinguish them from growth. Plateaus and floors occur at
    the last value, too: in a pair with the one before, they level off between both values.
    """
    levels = np.unique(values)
    kinds = _COSTS.keys() - {BreakKind.LEAP}
    late = at_last(levels)
    every = [each for each in breaks(levels) if each.kind in kinds]
    found = [each for each in every if each.kind is not BreakKind.ONSET or each in late]
    # A pair of bends at measured values represents a bend between these.
    found = [each for each in found if each.kind not in _BENDING or each.at in levels]
    places = [each.at for each in found if each.kind is BreakKind.STEP]
    powers = [power for power in _LEAPING if Term(power, 0) in factors]
    if len(levels) >= FEWEST_FOR_THREE:
        last = float(levels[-1])
        found += [Break(kind, last, power) for kind in _LEVELLING for power in KINKED]
    return found + [Break(BreakKind.LEAP, at, power) for at in places for power in powers]


def is_leap(factor: Factor) -> TypeGuard[Break]:
    """Return whether a factor is a power from some value on."""
    return isinstance(factor, Break) and factor.kind is BreakKind.LEAP


def only_beside_others(factor: Factor, last: float) -> bool:
    """Return whether a factor is tried in pairs only; `last` is the largest value of the parameter.

    A plateau or floor at the last value equals a power at all measured values.
    """
    late = isinstance(factor, Break) and factor.kind in _LEVELLING and factor.at >= last
    return late or is_leap(factor)


def is_onset(factor: Factor) -> bool:
    """Return whether a factor adds something from some value on."""
    return isinstance(factor, Break) and factor.kind in _MORE


def plain_factors(factors: Sequence[Factor]) -> list[int]:
    """Return the codes of the plain factors of a parameter, which include the factor 1."""
    return [
        code
        for code, factor in enumerate(factors)
        if isinstance(factor, Term) and description_length(factor) <= PLAIN_BESIDE_BREAKS
    ]


def kinks_beside(factors: Sequence[Factor]) -> list[list[int]]:
    """Return the partners, as codes, that make each factor of a parameter bend between two values.

    The partner is the next factor of its kind and power. For the first one it is also the law
    before.
    """
    place = {factor: code for code, factor in enumerate(factors)}
    beside: list[list[int]] = [[] for _ in factors]
    of_kinds: dict[tuple[BreakKind, Fraction], list[Break]] = {}
    for factor in factors:
        if isinstance(factor, Break) and (factor.kind in _LEVELLING or _is_linear(factor)):
            of_kinds.setdefault((factor.kind, factor.exponent), []).append(factor)
    for kinks in of_kinds.values():
        kinks.sort(key=lambda kink: kink.at)
        for kink, later in pairwise(kinks):
            beside[place[kink]].append(place[later])
        before = Term(Fraction(1), 0) if _is_linear(kinks[0]) else NOTHING
        if before in place:
            beside[place[kinks[0]]].append(place[before])
    return beside


def _is_linear(factor: Break) -> bool:
    return factor.kind is BreakKind.BEND and factor.exponent == 1


def broken_beside(factors: Sequence[Factor]) -> list[list[int]]:
    """Return the partners, as codes, of each break among the factors of a parameter.

    The partner of a leap is its power. Breaks that add something have the factor 1 and all plain
    factors as partners. A step down has the factor 1.
    """
    place = {factor: code for code, factor in enumerate(factors)}
    nothing, plain, found = place[NOTHING], plain_factors(factors), []
    for factor in factors:
        if is_leap(factor):
            found.append([place[Term(factor.exponent, 0)]])
        elif is_onset(factor):
            found.append(plain)
        else:
            down = isinstance(factor, Break) and factor.kind is BreakKind.DROP
            found.append([nothing] if down else [])
    return found


_LOGARITHM, SHARED = Term(Fraction(0), 1), Term(Fraction(-1), 0)
"""The terms log2(p) and 1/p."""
_WHOLE = Term(Fraction(1), 0)
"""The term p."""
_PEERS = (
    TermDifference(_WHOLE, ONE),
    TermDifference(ONE, SHARED),
    TermDifference(Term(Fraction(2), 0), _WHOLE),
    TermDifference(ONE, Term(Fraction(-1, 3), 0)),
    TermDifference(ONE, Term(Fraction(-1, 2), 0)),
    TermDifference(_WHOLE, Term(Fraction(2, 3), 0)),
    TermDifference(_WHOLE, Term(Fraction(1, 2), 0)),
)
"""Rare factors: a process communicates with all processes except itself.

The factor p - 1 occurs in rings and exchanges of all with all, p^2 - p in all of these together,
and 1 - 1/p in algorithms that pass everything on. Neighbours in three and in two dimensions are
1 - p^(-1/3) and 1 - p^(-1/2) in the mean, p - p^(2/3) and p - p^(1/2) together. More factors, such
as sqrt(p) - 1, would replace products of fractions where there is noise.
"""
_TREE = Term(Fraction(-1), 1)
"""Rare factor: steps of a tree in which each process handles its share."""


class Catalogue(Struct, frozen=True):
    """Products of factors as numbers, since thousands of objects would take longer than a fit.

    Attributes
    ----------
    factors : factors of each of D parameters; the first factor stands for none
    code : [D, S] factor of each parameter in each product
    cost : [S] intricacy of each product, in powers of two of the prior
    """

    factors: tuple[list[Factor], ...]
    code: IntArray
    cost: FloatArray

    @classmethod
    def of(cls, space: SearchSpace, points: FloatArray) -> Catalogue:
        """Return the plainest products of factors over `points` [K, D].

        Of products with one or two factors, nearly all are kept.
        """
        terms = [_terms(space, column) for column in points.T]
        beside = [_seldom(each, column) for each, column in zip(terms, points.T, strict=True)]
        count = len(terms)
        plain = [sorted(each, key=lambda term: (cost_of(term), term)) for each in terms]
        ordered = [[NOTHING, *rest, *each] for each, rest in zip(plain, beside, strict=True)]
        whole = [len(each) for each in ordered]
        ordered = [
            [*each, *identifiable_breaks(each, x)]
            for each, x in zip(ordered, points.T, strict=True)
        ]
        costs = [np.array([cost_of(factor) for factor in each]) for each in ordered]
        found = []
        for used in range(1, min(count, LARGEST_PRODUCT) + 1):
            sizes, most, limit = whole, MOST_OF_TWO, PLAIN
            if used > 2:
                few = [1 + len(rest) + MOST_FACTORS[used] for rest in beside]
                sizes = [min(each) for each in zip(sizes, few, strict=True)]
                most, limit = MOST_OF_MORE, PLAINEST
            code = np.concatenate(
                [_codes(sizes, axes) for axes in combinations(range(count), used)], 1
            )
            every = cls._costed(ordered, costs, code)
            seldom = every.of_each(is_seldom) > 0
            others, counted = _looked_up(costs, code) * ~seldom, seldom.sum(axis=0)
            usual = every.take(np.flatnonzero(counted == 0))
            found.append(usual.take(plainest(usual.cost, most)))
            plain_beside = others.sum(axis=0) <= limit + ALIKE
            rare = every.take(np.flatnonzero((counted == 1) & plain_beside))
            found.append(rare.take(plainest(rare.cost, MOST_SELDOM)))
        breaking = cls._costed(ordered, costs, _codes_of_breaks(ordered, whole))
        most = MOST_BROKEN if count > 2 else MOST_BROKEN_OF_TWO
        found.append(breaking.take(plainest(breaking.cost, most)))
        codes = np.concatenate([some.code for some in found], axis=1)
        return cls(tuple(ordered), codes, np.concatenate([some.cost for some in found]))

    @classmethod
    def _costed(
        cls, factors: Sequence[list[Factor]], costs: Sequence[FloatArray], code: IntArray
    ) -> Catalogue:
        """Return products with their intricacy; `costs` belong to the factors."""
        further = FURTHER_FACTOR * (len(factors) - 1) * ((code > 0).sum(axis=0) - 1)
        return cls(tuple(factors), code, _looked_up(costs, code).sum(axis=0) + further)

    def take(self, which: IntArray) -> Catalogue:
        """Return the products with the numbers `which`."""
        return structs.replace(self, code=self.code[:, which], cost=self.cost[which])

    @property
    def single(self) -> BoolArray:
        """Whether each product has one factor, [S]."""
        return np.asarray((self.code > 0).sum(axis=0) == 1)

    @property
    def seldom(self) -> BoolArray:
        """Whether each product has a rare factor, [S]."""
        return np.asarray(self.of_each(is_seldom).any(axis=0))

    @property
    def breaks(self) -> BoolArray:
        """Whether each product has a break along a parameter, [S]."""
        return np.asarray(self.of_each(lambda factor: isinstance(factor, Break)).any(axis=0))

    def beside_only(self, points: FloatArray) -> BoolArray:
        """Return which products over `points` [K, D] are tried only in pairs, [S]."""
        each = [
            np.array([only_beside_others(factor, last) for factor in factors])
            for factors, last in zip(self.factors, points.max(axis=0).tolist(), strict=True)
        ]
        return np.asarray(_looked_up(each, self.code).any(axis=0))

    @property
    def axis(self) -> IntArray:
        """Parameter of each product with one factor, [S]; -1 for other products."""
        return np.where(self.single, (self.code > 0).argmax(axis=0), -1)

    @property
    def falls(self) -> BoolArray:
        """Whether each product falls with a parameter, [S]."""
        return np.asarray(self.of_each(lambda term: float(term.decreasing)).any(axis=0))

    @property
    def falling(self) -> BoolArray:
        """Whether each product rises with no parameter, [S], as in `Product.decreasing`."""
        falls = self.of_each(lambda term: float(term == NOTHING or term.decreasing))
        return np.asarray(falls.all(axis=0), dtype=np.bool_)

    def values(self, points: FloatArray) -> FloatArray:
        """Return the values of the products at points [K, D], [S, K]."""
        found = np.ones((self.code.shape[1], len(points)))
        for factors, which, column in zip(self.factors, self.code, points.T, strict=True):
            of = np.array([np.ones(len(column)), *(term(column) for term in factors[1:])])
            found *= of[which]
        return found

    def weight(self, space: SearchSpace) -> FloatArray:
        """Return the weight of each product by the class of its factors, [S]."""
        first_class: dict[Factor, bool] = dict(zip(space.terms, space.first_class, strict=True))
        each = self.of_each(lambda term: 1.0 if first_class.get(term, True) else SECOND_CLASS)
        return np.asarray(each.prod(axis=0))

    def by_growth(self, which: IntArray) -> IntArray:
        """Return the numbers `which` in order of growth, with all parameters growing alike."""
        keys = [
            self.of_each(part)[:, which].sum(axis=0).round(9)
            for part in (
                lambda factor: float(factor.growth.log),
                lambda factor: float(factor.growth.exponent),
                lambda factor: float(factor.growth.rate),
            )
        ]
        return which[np.lexsort(keys)]

    def together(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the intricacy of pairs; the part that both products have in common counts once."""
        alike = self.code[:, first] == self.code[:, second]
        common = (self.of_each(cost_of)[:, first] * alike).sum(axis=0)
        return np.asarray(self.cost[first] + self.cost[second] - common)

    def shapes(self) -> tuple[Product, ...]:
        """Return the products as objects."""
        columns = (
            map(of.__getitem__, codes)
            for of, codes in zip(self.factors, self.code.tolist(), strict=True)
        )
        return tuple(map(Product, zip(*columns, strict=True)))

    def of_each(self, number: Callable[[Factor], float]) -> FloatArray:
        """Return a number of every factor, [D, S]."""
        each = [np.array([number(term) for term in factors]) for factors in self.factors]
        return _looked_up(each, self.code)


def _looked_up(of_factors: Sequence[npt.NDArray[Any]], code: IntArray) -> npt.NDArray[Any]:
    """Return the number of each factor of all products, [D, S]."""
    return np.array([each[which] for each, which in zip(of_factors, code, strict=True)])


def _terms(space: SearchSpace, values: FloatArray) -> list[Term]:
    return [term for term in space.terms if values.min() >= 1 or not term.log]


def _seldom(terms: list[Term], values: FloatArray) -> list[Factor]:
    """Return the rare factors of one parameter, which are combined with plain factors of others."""
    if values.min() < 1:
        return []
    tree = [_TREE] if {SHARED, _LOGARITHM} <= set(terms) else []
    return [*made_of(terms, _PEERS), *transpositions(terms, values), *tree]


def is_seldom(factor: Factor) -> bool:
    """Return whether a factor is rare: it is combined with plain factors only."""
    return isinstance(factor, TermDifference) or factor == _TREE


def _codes_of_breaks(ordered: Sequence[list[Factor]], whole: Sequence[int]) -> IntArray:
    """Return products of one break and plain factors of the other parameters, [D, S].

    Breaks come after the `whole` other factors of each parameter.
    """
    plain = [
        [0]
        + [
            code
            for code in range(1, size)
            if not is_seldom(factors[code]) and cost_of(factors[code]) <= BESIDE_BREAKS + ALIKE
        ]
        for factors, size in zip(ordered, whole, strict=True)
    ]
    found, count = [], len(ordered)
    for axis, (factors, size) in enumerate(zip(ordered, whole, strict=True)):
        others, codes = [each for each in range(count) if each != axis], []
        for used in range(min(MOST_BESIDE_BREAKS, len(others)) + 1):
            for axes in combinations(others, used):
                each = {other: plain[other][1:] for other in axes}
                each[axis] = list(range(size, len(factors)))
                codes += list(product(*(each.get(place, [0]) for place in range(count))))
        found.append(np.array(sorted(codes), dtype=np.intp).reshape(-1, count).T)
    return np.concatenate(found, axis=1)


def _codes(sizes: Sequence[int], axes: Sequence[int]) -> IntArray:
    """Return all products of one factor of each of some parameters, [D, S]."""
    each = np.indices([sizes[axis] - 1 for axis in axes]).reshape(len(axes), -1) + 1
    code = np.zeros((len(sizes), each.shape[1]), dtype=np.intp)
    code[list(axes)] = each
    return code


def cost_of(factor: Factor) -> float:
    """Return the intricacy of a factor: its distance from the factors of known programs."""
    if isinstance(factor, Break):
        return break_cost(factor)
    if isinstance(factor, TermDifference):
        of_neighbours = any(
            term.exponent.denominator > 1 for term in (factor.larger, factor.smaller)
        )
        seldom = SELDOM + NEIGHBOURS * of_neighbours
        return seldom + cost_of(factor.smaller if factor.larger == ONE else factor.larger)
    # Whole powers are plainer than in one parameter: the sizes of problems come in cubes.
    whole = factor.exponent.denominator == 1 and not factor.log
    plain = description_length(factor) / 2 if whole else description_length(factor)
    plain += STEEP * max(0.0, float(factor.exponent) - STEEPEST)
    plain += FRACTION * (factor.exponent.denominator > 1) + FALLING * factor.decreasing
    return plain + SELDOM * (factor == _TREE)


def plainest(costs: FloatArray, most: int) -> IntArray:
    """Return the numbers of up to `most` plainest ones; of equally plain ones, all or none."""
    cost = np.round(costs, 9)
    if len(cost) <= most:
        return np.arange(len(cost))
    return np.flatnonzero(cost < np.partition(cost, most)[most])
