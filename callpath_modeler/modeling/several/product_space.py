"""The products of factors of three parameters or more, of which sums of products consist.

Each parameter may have any term of the search space. So there are millions of products, which have
numbers instead of a list. See docs/explanation/several-parameters.md, 'Sums of products'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.outcome import FAR
from callpath_modeler.modeling.constants.several import FEWEST_IN_SUMS, FEWEST_ON_A_LINE
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.outcome import ShapeColumns
from callpath_modeler.modeling.mixture.posterior import far_places
from callpath_modeler.modeling.products import NOTHING, Factor, Product
from callpath_modeler.modeling.several.catalogue import cost_of
from callpath_modeler.modeling.terms import SearchSpace

Groups = tuple[tuple[int, ...], ...]
"""Groups of parameters: the terms of a sum, each of which is a product of a factor of each."""


class Axis(Struct, frozen=True):
    """The T terms of one parameter, and one more that stands for none, which comes first.

    Attributes
    ----------
    factors : [1 + T] factors
    table : [1 + T, K] values at the points, scaled to a largest one of 1
    scale : [1 + T] largest values
    far : [1 + T, F] values far beyond the points, scaled alike
    order : [1 + T, 3] order of growth: rate, exponent, logarithm
    log_share : [T] log prior of each term among these
    lines : [G, m] points of G lines along which only this parameter varies; -1 = no point
    """

    factors: tuple[Factor, ...]
    table: FloatArray
    scale: FloatArray
    far: FloatArray
    order: FloatArray
    log_share: FloatArray
    lines: IntArray


class ProductSpace(Struct, frozen=True):
    """The products of terms of D parameters, and the sums of these.

    A product has the number ``start + sum of the positions of its factors times stride``. Smaller
    numbers belong to the shapes of the hypotheses.

    Attributes
    ----------
    axes : the terms of each parameter
    stride : [D] factor of each position
    start : number of shapes of the hypotheses
    structures : groups of parameters that are multiplied, and the log prior of each structure
    depends : [S + 1, D] whether each shape of the hypotheses depends on each parameter
    """

    axes: tuple[Axis, ...]
    stride: IntArray
    start: int
    structures: tuple[tuple[Groups, float], ...]
    depends: BoolArray

    def numbers(self, positions: IntArray) -> IntArray:
        """Return the numbers of products with factors at `positions` [..., D]; -1 for no factor."""
        found = self.start + positions @ self.stride
        return np.where((positions > 0).any(axis=-1), found, -1)

    def positions(self, numbers: IntArray) -> IntArray:
        """Return the positions of the factors of products, [..., D]."""
        sizes = np.array([len(axis.factors) for axis in self.axes])
        return np.asarray((numbers[..., None] - self.start) // self.stride % sizes)

    def product(self, number: int) -> Product:
        """Return a product as an object."""
        each = zip(self.axes, self.positions(np.array(number)).tolist(), strict=True)
        return Product(tuple(axis.factors[position] for axis, position in each))

    def by_growth(self, positions: IntArray) -> IntArray:
        """Return the products of sums [C, b, D] in order of growth, slowest first."""
        order = sum(
            axis.order[which]
            for axis, which in zip(self.axes, np.moveaxis(positions, 2, 0), strict=True)
        )
        rate, exponent, log = np.moveaxis(np.asarray(order).round(9), 2, 0)
        place = np.lexsort((log, exponent, rate), axis=1)
        return np.take_along_axis(positions, place[..., None], axis=1)

    def tables(self, positions: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the values of products at the points, [M, K], and their largest ones, [M].

        Factors are scaled to a largest value of 1, and so are the products.
        """
        found = np.ones((len(positions), self.axes[0].table.shape[1]))
        for axis, which in zip(self.axes, positions.T, strict=True):
            found *= axis.table[which]
        peak = found.max(axis=1)
        return found / peak[:, None], peak

    def columns(
        self, codes: IntArray, hypotheses: Hypotheses, far: FloatArray
    ) -> tuple[IntArray, ShapeColumns]:
        """Return shapes with the numbers `codes` [M, T], -1 = none, as positions and columns."""
        known = ShapeColumns.of(hypotheses, far)
        every = np.unique(codes)
        listed, made = every[(every >= 0) & (every < self.start)], every[every >= self.start]
        positions = self.positions(made)
        table, peak = self.tables(positions)
        scale, beyond = peak.copy(), np.ones((far.shape[0], len(made)))
        for axis, which in zip(self.axes, positions.T, strict=True):
            scale *= axis.scale[which]
            beyond *= axis.far[which].T
        chosen = np.append(listed, -1)
        place = np.full(len(every), -1)
        place[every >= 0] = np.arange((every >= 0).sum())

        def joined(one: FloatArray, other: FloatArray) -> FloatArray:
            return np.concatenate([one[..., chosen[:-1]], other, one[..., -1:]], axis=-1)

        columns = ShapeColumns(
            np.concatenate([listed, made, [-1]]),
            joined(known.scale, scale),
            joined(known.table.T, table.T).T,
            np.concatenate([known.breaks[listed], np.zeros(len(made) + 1, dtype=np.bool_)]),
            joined(known.far, np.minimum(beyond / peak, np.finfo(float).max / 1e9)),
            known.outside,
        )
        return place[np.searchsorted(every, codes)], columns


def product_space(
    space: SearchSpace, hypotheses: Hypotheses, points: FloatArray
) -> ProductSpace | None:
    """Return the products over `points` [K, D].

    The result is None if D is less than three, or if some parameter does not vary along any line
    while the others keep their values.
    """
    if points.ndim == 1 or points.shape[1] < FEWEST_IN_SUMS or space.max_terms < 2:
        return None
    axes = tuple(_axis(space, points, axis) for axis in range(points.shape[1]))
    if not all(len(axis.lines) and len(axis.log_share) for axis in axes):
        return None
    sizes = np.array([len(axis.factors) for axis in axes])
    stride = np.concatenate([[1], sizes[:-1].cumprod()])
    return ProductSpace(
        axes, stride, len(hypotheses.shapes), structures(len(axes)), _depends(hypotheses)
    )


def _depends(hypotheses: Hypotheses) -> BoolArray:
    """Return whether shapes depend on parameters, [S + 1, D]; each factor is compared once."""
    shapes = [shape for shape in hypotheses.shapes if isinstance(shape, Product)]
    every = {id(factor): factor for shape in shapes for factor in shape.factors}
    varies = {name: factor != NOTHING for name, factor in every.items()}
    found = [[varies[id(factor)] for factor in shape.factors] for shape in shapes]
    return np.array([*found, [False] * len(shapes[0].factors)])


def _axis(space: SearchSpace, points: FloatArray, axis: int) -> Axis:
    values = points[:, axis]
    # Measurements cannot distinguish some squares of logarithms, but exact laws may have them.
    every = replace(space, thinned=False).terms
    terms = [term for term in every if values.min() >= 1 or not term.log]
    with np.errstate(over="ignore"):
        table = np.array([np.ones(len(values)), *(term(values) for term in terms)])
        far = np.array([term(far_places(points, FAR)[:, axis]) for term in [NOTHING, *terms]])
    varies = np.isfinite(table).all(axis=1) & (np.ptp(table, axis=1) > 0)
    varies[0] = True
    few = np.flatnonzero(varies)
    factors = [[NOTHING, *terms][k] for k in few]
    scale = table[few].max(axis=1)
    plain = np.array([2.0 ** -cost_of(factor) for factor in factors[1:]])
    return Axis(
        tuple(factors),
        table[few] / scale[:, None],
        scale,
        far[few] / scale[:, None],
        np.array([factor.growth.order for factor in factors]),
        np.log(plain / plain.sum()),
        _lines(points, axis),
    )


def _lines(points: FloatArray, axis: int) -> IntArray:
    """Return the points of lines along a parameter, [G, m]; -1 = no point."""
    others = np.delete(points, axis, axis=1)
    _, line = np.unique(others, axis=0, return_inverse=True)
    count = np.bincount(line.ravel())
    long = np.flatnonzero(count >= FEWEST_ON_A_LINE)
    found = np.full((len(long), int(count.max())), -1, dtype=np.intp)
    for row, which in zip(found, long.tolist(), strict=True):
        row[: count[which]] = np.flatnonzero(line.ravel() == which)
    return found


def structures(count: int) -> tuple[tuple[Groups, float], ...]:
    """Return all divisions of some of `count` parameters into groups, with log priors.

    All numbers of parameters are equally probable, and so are all divisions of as many.
    """
    found = list[tuple[Groups, float]]()
    for used in range(1, count + 1):
        for axes in combinations(range(count), used):
            every = list(partitions(axes))
            prior = 1 / count / comb(count, used) / len(every)
            found += [(groups, float(np.log(prior))) for groups in every]
    return tuple(found)


def partitions(axes: Sequence[int]) -> Iterator[Groups]:
    """Return all divisions of `axes` into groups."""
    if not axes:
        yield ()
        return
    first, rest = axes[0], axes[1:]
    for groups in partitions(rest):
        yield ((first,), *groups)
        for place, group in enumerate(groups):
            yield (*groups[:place], (first, *group), *groups[place + 1 :])
