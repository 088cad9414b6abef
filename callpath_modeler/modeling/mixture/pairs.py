"""Which pairs of shapes are worth a look: bounds of their evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.bounds import (
    Look,
    SingleArray,
    apart,
    least,
    profile,
    single,
)
from callpath_modeler.modeling.mixture.data import Data
from callpath_modeler.modeling.mixture.evidence import Doubles, all_pairs, pair_volume
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.spread import EXACT_VARIANCE

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_BLOCK = 64
"""Rows whose pairs are looked at together."""

_NUMBERS = 16_000
"""Rows times pairs that are summed up at once: what is needed for them stays in the cache."""

_FEWEST_FOR_PAIRS = 4

_NOT_THERE = 1e20
"""More than any residual."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Some pairs of some rows, [M].

    Attributes
    ----------
    row, pair : which
    bound : of the evidence, prior included, as of `bounds`
    coefficients : [3, M] under the first drift: constant, first, second
    """

    row: IntArray
    pair: IntArray
    bound: SingleArray
    coefficients: FloatArray

    def take(self, which: IntArray | BoolArray) -> Pairs:
        """Return some of them."""
        return Pairs(
            self.row[which],
            self.pair[which],
            self.bound[which],
            self.coefficients[:, which],
        )


def rows_for_pairs(seen: Look, data: Data, known: Hypotheses) -> IntArray:
    """Return rows that one shape does not explain well within their noise, and that allow two."""
    if not len(known.first):
        return np.zeros(0, dtype=np.intp)
    misfit = seen.residual.min(axis=0) / np.maximum(data.used - 2, 1)
    # What rounding leaves asks for no second shape.
    enough = np.maximum(known.kept.misfit * data.variance, EXACT_VARIANCE)
    return np.flatnonzero((data.used >= _FEWEST_FOR_PAIRS) & (misfit > enough))


def pair_bounds(looks: list[Look], data: Data, known: Hypotheses, log_prior: FloatArray) -> Pairs:
    """Bound the evidence of the pairs that may have positive coefficients."""
    rows = rows_for_pairs(looks[0], data, known)
    parts = [
        _bounded(looks, rows[start : start + _BLOCK], data, known, log_prior)
        for start in range(0, max(len(rows), 1), _BLOCK)
    ]
    names = "row", "pair", "bound", "coefficients"
    return Pairs(*(np.concatenate([getattr(part, name) for part in parts], -1) for name in names))


def _bounded(
    looks: list[Look], rows: IntArray, data: Data, known: Hypotheses, log_prior: FloatArray
) -> Pairs:
    found, others = _regressed(looks, rows, known)
    residuals = [found.residual, *others]
    positive = found.positive
    far = apart([np.where(positive, each, _NOT_THERE) for each in residuals], known.kept.pairs)
    pair, which = np.nonzero(positive & ~far)
    row, here = rows[which], found.take((pair, which))
    freedom = data.used[row] - np.where(here.free, 3, 2)
    left = least([each[pair, which] for each in residuals])
    bound = single(pair_volume(here) + log_prior[1 + 3 * len(known.shapes) :][pair])
    bound += profile(left, data.take(row), freedom)
    return Pairs(row, pair, bound, np.array([here.constant, here.first, here.second]))


def _regressed(
    looks: list[Look], rows: IntArray, known: Hypotheses
) -> tuple[Doubles, list[FloatArray]]:
    """Regress rows on all pairs under the first drift; return what they leave under the others."""
    seen = [(each.sums.take(rows), each.weights[:, rows]) for each in looks]
    found, left = [], []
    size = max(1, _NUMBERS // max(len(rows), 1))
    for start in range(0, max(len(known.first), 1), size):
        part = slice(start, start + size)
        products, first, second = known.products[part], known.first[part], known.second[part]
        sums = [all_pairs(*each, products, first, second) for each in seen]
        found.append(sums[0].regressions())
        left.append([each.residual() for each in sums[1:]])
    return Doubles.joined(found), [np.concatenate(each) for each in zip(*left, strict=True)]
