"""Products of factors of three parameters or more, and the screening of their sums.

Each parameter may have any term of the search space. So there are millions of products, which have
numbers instead of a list. See docs/explanation/several-parameters.md, 'Sums of products'.

Along a line, only one parameter varies. There every sum in which the parameter has one term is a
constant and this term. So lines show which terms are possible, whatever the structure of the sum.
All products and sums of the possible terms are compared. See
docs/explanation/several-parameters.md, 'Sums of products'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations
from math import comb, lgamma, prod

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.modeling.constants.evidence import LOG_2PI, NO_PART, PARALLEL, TINY, VARIES
from callpath_modeler.modeling.constants.noise import NEVER
from callpath_modeler.modeling.constants.outcome import FAR
from callpath_modeler.modeling.constants.several import (
    DIGITS_OF_NATS,
    FEWEST_IN_SUMS,
    FEWEST_ON_A_LINE,
    MOST_COMBINED,
    MOST_SUMS,
    NATS_OF_SUMS,
    NATS_ON_LINES,
)
from callpath_modeler.modeling.factor_catalogue import cost_of
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import far_places
from callpath_modeler.modeling.mixture.regressions import likelihood
from callpath_modeler.modeling.mixture.row_models import ShapeColumns
from callpath_modeler.modeling.mixture.scaled_rows import Deviations, ScaledRows
from callpath_modeler.modeling.products import NOTHING, Factor, Product
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


class PromisingSums(Struct, frozen=True):
    """C sums of b products.

    Attributes
    ----------
    positions : [C, b, D] factors of each product
    log_prior : [C] log prior of each sum
    """

    positions: IntArray
    log_prior: FloatArray


def promising_sums(
    data: ScaledRows, weights: FloatArray, space: ProductSpace, ways: Deviations
) -> list[PromisingSums]:
    """Return the sums that may explain the only row of `data`, by their number of products.

    `weights` [K] belong to the points.
    """
    misfit = _Misfit.of(data, weights, ways, len(space.axes))
    on_lines = [_on_lines(axis, data.values[0], weights, misfit) for axis in space.axes]
    needed = {axis for axis, score in enumerate(on_lines) if score[0] < -NATS_ON_LINES}
    found, columns = list[_Scores](), dict[tuple[int, ...], _Columns]()
    for groups, log_prior in space.structures:
        used = tuple(sorted(axis for group in groups for axis in group))
        if used not in columns and needed <= {*used}:
            terms = _combined(on_lines, used)
            columns[used] = _Columns(space, terms, data.values[0], weights)
        if used in columns and columns[used].there:
            score, prior = columns[used].scores(groups, misfit)
            prior = prior + log_prior
            score = np.round(score + prior, DIGITS_OF_NATS)
            found.append(_Scores(groups, columns[used].terms, score, prior))
    return _best(found, len(space.axes))


def _on_lines(axis: Axis, values: FloatArray, weights: FloatArray, misfit: _Misfit) -> FloatArray:
    """Return log probabilities of no term and of each term of a parameter along lines, [1 + T].

    They are relative to the largest one. Each line has a constant and a coefficient of its own.
    """
    there = np.where(axis.lines >= 0, weights[axis.lines], 0.0)
    whole = np.maximum(there.sum(axis=1, keepdims=True), TINY)
    value, table = values[axis.lines], axis.table[1:][:, axis.lines]
    product = there * (value - (there * value).sum(axis=1, keepdims=True) / whole)
    total = float((product * value).sum())
    away = table - (there * table).sum(axis=2, keepdims=True) / whole
    square = (there * away * away).sum(axis=2)
    along = np.maximum((away * product).sum(axis=2), 0.0)
    varies = square > VARIES * whole.T
    gain = np.where(varies, along**2 / np.where(varies, square, 1.0), 0.0).sum(axis=1)
    points = float((there > 0).sum())
    lines = float(((there > 0).sum(axis=1) > 1).sum())
    none = misfit.likelihood(np.array([total]), max(points - lines, 1.0))
    each = misfit.likelihood(np.maximum(total - gain, 0.0), max(points - 2 * lines, 1.0))
    found = np.concatenate([none, each + axis.log_share])
    found[1:][~varies.any(axis=1)] = -np.inf
    # Rounding must not decide between terms that fit equally well.
    return np.asarray(np.round(found - found.max(), DIGITS_OF_NATS))


def _combined(on_lines: Sequence[FloatArray], used: Sequence[int]) -> list[IntArray]:
    """Return the positions of the terms of the parameters `used` that are combined with each other.

    If too many are possible, the least probable ones are left out.
    """
    scores = [on_lines[axis][1:] if axis in used else np.empty(0) for axis in range(len(on_lines))]
    tops = [np.where(np.isfinite(score), score, NEVER).max(initial=NEVER) for score in scores]
    gaps = [score - top for score, top in zip(scores, tops, strict=True)]
    limit = NATS_ON_LINES
    while True:
        found = [1 + np.flatnonzero(gap >= -limit) for gap in gaps]
        if prod(max(len(each), 1) for each in found) <= MOST_COMBINED or limit < 1e-3:
            return found
        limit *= 0.9


class _Misfit(Struct, frozen=True):
    """Log likelihoods of residuals of a row, summed over the deviations without a drift.

    Attributes
    ----------
    variance, log_prior : [V, 1] variances of a point, and their log priors
    dof : degrees of freedom of the noise
    used : number of points with a value
    logs : [M] logarithms of residuals, ascending
    of_size : [D + 2, M] log likelihoods of these residuals, by the number of coefficients
    """

    variance: FloatArray
    log_prior: FloatArray
    dof: float
    used: float
    logs: FloatArray
    of_size: FloatArray

    @classmethod
    def of(cls, data: ScaledRows, weights: FloatArray, ways: Deviations, most: int) -> _Misfit:
        steady = ways.steady()
        variance = data.variance[0] + steady.deviation[:, None] ** 2
        used, whole = float(data.used[0]), float(weights @ data.values[0] ** 2)
        logs = np.linspace(np.log(1e-20 * whole), np.log(10 * whole), 300)
        found = cls(variance, steady.log_prior[:, None], float(data.dof[0]), used, logs, logs)
        sizes = [found.likelihood(np.exp(logs), max(used - size, 0.0)) for size in range(most + 2)]
        return cls(variance, found.log_prior, found.dof, used, logs, np.array(sizes))

    def likelihood(self, residual: FloatArray, freedom: float) -> FloatArray:
        """Return the log likelihoods of residuals [M]."""
        dof, free = np.array(self.dof), np.array(freedom)
        each = likelihood(residual, self.variance, dof, free) + self.log_prior
        return np.asarray(np.logaddexp.reduce(each, axis=0))

    def of_sums(self, residual: FloatArray, size: int) -> FloatArray:
        """Return log likelihoods of residuals of sums with `size` coefficients, interpolated."""
        logs = np.log(np.maximum(residual, TINY))
        return np.asarray(np.interp(logs, self.logs, self.of_size[size]))


class _Products(Struct, frozen=True):
    """N products of the possible terms of a group of parameters.

    Attributes
    ----------
    mean : [N] weighted means
    away, weighted : [N, K] values about the mean; the same times the weights
    along : [N] weighted sums of products with the values of the row
    peak : [N] largest values
    log_share : [N] log prior of the terms
    """

    mean: FloatArray
    away: FloatArray
    weighted: FloatArray
    along: FloatArray
    peak: FloatArray
    log_share: FloatArray


class _Columns:
    """Products of the possible terms of a row, and the regressions of the row on their sums."""

    def __init__(
        self,
        space: ProductSpace,
        terms: Sequence[IntArray],
        values: FloatArray,
        weights: FloatArray,
    ) -> None:
        self.terms = terms
        self._space, self._weights = space, weights
        self._whole = float(weights.sum())
        self._mean = float(weights @ values) / self._whole
        self._away = values - self._mean
        self._total = float(weights @ self._away**2)
        self._least = NO_PART * float(values[(weights > 0) & (values > 0)].min())
        self._known = dict[tuple[int, ...], _Products]()

    @property
    def there(self) -> bool:
        """Whether there are possible terms."""
        return any(each.size for each in self.terms)

    def _of(self, group: tuple[int, ...]) -> _Products:
        if group not in self._known:
            self._known[group] = self._products(group)
        return self._known[group]

    def _products(self, group: tuple[int, ...]) -> _Products:
        table, share = np.ones((1, len(self._weights))), np.zeros(1)
        for axis in group:
            its, which = self._space.axes[axis], self.terms[axis]
            table = (table[:, None] * its.table[which]).reshape(-1, table.shape[1])
            share = (share[:, None] + its.log_share[which - 1]).ravel()
        mean = table @ self._weights / self._whole
        away = table - mean[:, None]
        weighted = away * self._weights
        # A product may be zero at all points; it then has no coefficient.
        peak = np.maximum(table.max(axis=1), TINY)
        return _Products(mean, away, weighted, weighted @ self._away, peak, share)

    def scores(self, groups: Groups, misfit: _Misfit) -> tuple[FloatArray, FloatArray]:
        """Return log evidences and log priors of the sums of a structure, [N1, N2, ...].

        There is a constant if it is positive and explains more than it costs. Sums with another
        coefficient that is not positive are left out, because they are sums of fewer products.
        """
        each = [self._of(group) for group in groups]
        equations, count = _Eliminated.of(each), len(each)
        pivots, rights, means = equations.pivots, equations.rights, equations.means
        residual = self._total - _sum_of(z * z / d for z, d in zip(rights, pivots, strict=True))
        spread = 1 / self._whole + _sum_of(v * v / d for v, d in zip(means, pivots, strict=True))
        constant = self._mean - _sum_of(
            v * z / d for v, z, d in zip(means, rights, pivots, strict=True)
        )
        log_det = np.log(self._whole) + _sum_of(np.log(d) for d in pivots)
        peaks = [_along(k, count, its.peak) for k, its in enumerate(each)]
        volume = lgamma(count + 1) + _sum_of(np.log(peak) for peak in peaks)
        found = np.full([1] * count, -np.inf)
        for size, kept in ((1 + count, constant), (count, np.zeros(1))):
            # Leaving out a constant changes the other coefficients by their covariance.
            left_out = (constant - kept) / spread
            numbers = equations.solution(left_out)
            parts = [number * peak for number, peak in zip(numbers, peaks, strict=True)]
            level = kept + _sum_of(np.maximum(part, 0.0) for part in parts)
            allowed = equations.possible & (kept >= 0)
            for part in parts:
                allowed = allowed & (part > self._least)
            evidence = misfit.of_sums(residual + left_out * (constant - kept), size) + volume
            evidence = evidence - size * np.log(np.maximum(level, TINY)) - log_det / 2
            evidence = evidence + size * LOG_2PI / 2
            found = np.maximum(found, np.where(allowed, evidence, -np.inf))
            log_det = log_det + np.log(spread)
        shares = (_along(k, count, its.log_share) for k, its in enumerate(each))
        return found, _sum_of(shares)


def _sum_of(parts: Iterable[FloatArray]) -> FloatArray:
    """Return the sum of arrays that broadcast against each other."""
    return reduce(np.add, parts)


def _along(place: int, count: int, column: FloatArray) -> FloatArray:
    """Return a column [N] along one of `count` dimensions."""
    return column.reshape([-1 if k == place else 1 for k in range(count)])


class _Eliminated(Struct, frozen=True):
    """Normal equations of sums of b products about their means, after elimination.

    All arrays have b dimensions, one for each product, and are as small as possible.

    Attributes
    ----------
    lower : elements below the diagonal, by row and column
    pivots : elements of the diagonal
    rights, means : right sides: products with the values; means of the products
    possible : where no product is a sum of the others
    """

    lower: dict[tuple[int, int], FloatArray]
    pivots: list[FloatArray]
    rights: list[FloatArray]
    means: list[FloatArray]
    possible: BoolArray

    @classmethod
    def of(cls, each: Sequence[_Products]) -> _Eliminated:
        lower, count = dict[tuple[int, int], FloatArray](), len(each)
        pivots, rights, means = list[FloatArray](), list[FloatArray](), list[FloatArray]()
        possible: BoolArray = np.ones([1] * count, dtype=np.bool_)
        for i, its in enumerate(each):
            for j in range(i):
                sizes = [1] * count
                sizes[i], sizes[j] = len(its.mean), len(each[j].mean)
                product = (each[j].weighted @ its.away.T).reshape(sizes)
                for k in range(j):
                    product = product - lower[i, k] * lower[j, k] * pivots[k]
                lower[i, j] = product / pivots[j]
            square = _along(i, count, (its.away * its.weighted).sum(axis=1))
            pivot, right, mean = square, _along(i, count, its.along), _along(i, count, its.mean)
            for k in range(i):
                pivot = pivot - lower[i, k] ** 2 * pivots[k]
                right = right - lower[i, k] * rights[k]
                mean = mean - lower[i, k] * means[k]
            least = PARALLEL * square + TINY
            possible = possible & (pivot > least)
            pivots.append(np.maximum(pivot, least))
            rights.append(right)
            means.append(mean)
        return cls(lower, pivots, rights, means, possible)

    def solution(self, left_out: FloatArray) -> list[FloatArray]:
        """Return the coefficients; `left_out` is a constant that is left out, by its variance."""
        count = len(self.pivots)
        numbers = [np.zeros(1)] * count
        for i in reversed(range(count)):
            number = (self.rights[i] + self.means[i] * left_out) / self.pivots[i]
            for k in range(i + 1, count):
                number = number - self.lower[k, i] * numbers[k]
            numbers[i] = number
        return numbers


class _Scores(Struct, frozen=True):
    """Log probabilities of the sums of a structure, up to a constant for all structures.

    Attributes
    ----------
    groups : groups of parameters
    terms : for each parameter, the positions of its possible terms
    score, log_prior : [N1, N2, ...] log probabilities and log priors
    """

    groups: Groups
    terms: Sequence[IntArray]
    score: FloatArray
    log_prior: FloatArray


def _best(found: Sequence[_Scores], count: int) -> list[PromisingSums]:
    """Return the most probable sums of all structures, by their number of products."""
    every = np.concatenate([each.score.ravel() for each in found] or [np.empty(0)])
    least = every.max(initial=-np.inf) - NATS_OF_SUMS
    if not np.isfinite(least):
        return []
    if len(every) > MOST_SUMS:
        least = max(least, float(np.partition(every, -MOST_SUMS)[-MOST_SUMS]))
    parts: dict[int, list[tuple[IntArray, FloatArray]]] = {}
    for each in found:
        which = np.nonzero(each.score >= least)
        if not which[0].size:
            continue
        positions = np.zeros((len(which[0]), len(each.groups), count), dtype=np.intp)
        for place, (group, number) in enumerate(zip(each.groups, which, strict=True)):
            chosen = np.unravel_index(number, [len(each.terms[axis]) for axis in group])
            for axis, its in zip(group, chosen, strict=True):
                positions[:, place, axis] = each.terms[axis][its]
        log_prior = np.broadcast_to(each.log_prior, each.score.shape)[which]
        parts.setdefault(len(each.groups), []).append((positions, log_prior))
    return [
        PromisingSums(*(np.concatenate(column) for column in zip(*part, strict=True)))
        for part in parts.values()
    ]
