"""Pairs of two products that are tried with every row: plain ones, and related ones.

See docs/explanation/several-parameters.md, 'Pairs'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.modeling.constants.several import (
    MOST_ACCOMPANIED,
    MOST_FIXED,
    MOST_PAIRED,
    SURFACES,
)
from callpath_modeler.modeling.differences import TO_OTHERS, TRANSPOSED
from callpath_modeler.modeling.products import Factor
from callpath_modeler.modeling.several.catalogue import (
    SHARED,
    Catalogue,
    is_seldom,
    plainest,
)
from callpath_modeler.modeling.several.piecewise_products import (
    broken_beside,
    is_onset,
    kinks_beside,
    plain_factors,
)
from callpath_modeler.modeling.terms import Term


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
    found = []
    for k in np.flatnonzero(products.breaks).tolist():
        code, axis = products.code[:, k].tolist(), int(products.axis[k])
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
