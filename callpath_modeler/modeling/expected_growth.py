"""Measurements compared with an expected growth: spaces, limits, matches and verdicts.

The method comes from Shudler, Berens, Calotoiu, Hoefler, Strube, Wolf: Engineering Algorithms for
Scalability through Continuous Validation of Performance Expectations (TPDS 30(8), 2019). In
addition to its match there is a verdict with a probability.

Every term of the space is fitted together with a constant, by relative least squares. The term that
predicts left-out points best is chosen: it has the largest adjusted R^2 of the leave-one-out
residuals, which is zero for a constant.

The published method chooses one growth and compares it. Here every hypothesis of the mixture counts
with its probability. So an expectation is kept or broken only if the data decide.

See docs/explanation/expectations.md, 'Growth', 'Limits, divergence, match' and 'The verdict'.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
from msgspec import structs

from callpath_modeler.arrays import (
    BoolArray,
    FloatArray,
    Int8Array,
    Int16Array,
    Int64Array,
    IntArray,
)
from callpath_modeler.modeling.classic_search import (
    WITH_CONSTANT,
    WITHOUT_CONSTANT,
    Basis,
    OneTerm,
    WeightedRows,
    fit_one_term,
    solve,
)
from callpath_modeler.modeling.constants.limits import FINEST, LARGEST_POWER
from callpath_modeler.modeling.constants.noise import EXACT
from callpath_modeler.modeling.constants.outcome import (
    FAR,
    FURTHEST,
    HIDDEN_FLOOR,
    MATCH_CHUNK,
    PER_DOUBLING,
    VERDICT_CHUNK,
)
from callpath_modeler.modeling.distributions import Mixture
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth
from callpath_modeler.modeling.model_columns import MIN_POINTS, FitStatus
from callpath_modeler.modeling.models import Models
from callpath_modeler.modeling.shapes import evaluate
from callpath_modeler.modeling.terms import SearchSpace


class DeviationMatch(IntEnum):
    """The match of a growth with an expectation; a larger number is a better match."""

    NO_MODEL = -1
    NONE = 0
    APPROXIMATE = 1
    EXACT = 2


@dataclass(frozen=True)
class DeviationLimits:
    """Limits of a growth, which are themselves allowed.

    Parameters
    ----------
    low, high : Growth or None
        Slowest and fastest allowed growth; None = no limit on that side.

    Raises
    ------
    ValueError
        If no growth lies within the limits.
    """

    low: Growth | None
    high: Growth | None

    def __post_init__(self) -> None:
        """Check that some growth lies within the limits."""
        if self.low is not None and self.high is not None and self.high < self.low:
            raise ValueError(f"no growth is above {self.low} and below {self.high}")

    @cached_property
    def _hash(self) -> int:
        return hash((self.low, self.high))

    def __hash__(self) -> int:
        # A file has up to 10^5 growth limits, few of which differ; fractions are slow to hash.
        return self._hash

    def side(self, growth: Growth) -> int:
        """Return -1 for a growth below the limits, 1 above, 0 within."""
        if self.low is not None and growth < self.low:
            return -1
        return int(self.high is not None and growth > self.high)

    def match(self, growth: Growth, expected: Growth) -> DeviationMatch:
        """Return the match of a growth: exact if it is the expected one, approximate within."""
        if growth == expected:
            return DeviationMatch.EXACT
        return DeviationMatch.APPROXIMATE if self.side(growth) == 0 else DeviationMatch.NONE


def default_deviation(expected: Growth) -> Growth:
    """Return the deviation limit of an expectation that names none.

    It is the leading factor of the expectation with half its exponent, in its own class: sqrt(p)
    for p and for p log p, log^(1/2) p for log p, 2^(k/2) for k^3 2^k. For O(1) it is O(1), so that
    only a constant matches. For a falling growth such as 1/p it is sqrt(p), as for p: a deviation
    limit is a factor, and at least 1.
    """
    if expected.rate:
        return Growth(Fraction(0), 0, abs(expected.rate) / 2)
    if expected.exponent:
        return Growth(abs(expected.exponent) / 2, 0)
    return Growth(Fraction(0), Fraction(expected.log if expected.log > 0 else -expected.log) / 2)


@dataclass(frozen=True, slots=True)
class ExpectedGrowth:
    """An expected growth E, and a factor D by which a growth may deviate on either side.

    Parameters
    ----------
    growth : Growth
        The expected growth E.
    deviation : Growth
        The deviation limit D, at least O(1).

    Raises
    ------
    ValueError
        If the deviation limit is below O(1).
    """

    growth: Growth
    deviation: Growth

    def __post_init__(self) -> None:
        """Check the deviation limit; one below O(1) would exchange the limits."""
        if self.deviation < CONSTANT_GROWTH:
            raise ValueError(f"a deviation limit is O(1) or more, not {self.deviation}")

    @classmethod
    def of(cls, growth: Growth, deviation: Growth | None = None) -> Self:
        """Return an expectation, by default with `default_deviation`."""
        return cls(growth, default_deviation(growth) if deviation is None else deviation)

    @property
    def limits(self) -> DeviationLimits:
        """The limits E / D and E D; growths between them match."""
        return DeviationLimits(self.growth / self.deviation, self.growth * self.deviation)

    def divergence(self, growth: Growth) -> Growth:
        """Return the factor by which a growth misses the expectation: delta = G / E."""
        return growth / self.growth

    def match(self, growth: Growth) -> DeviationMatch:
        """Return the match of a growth: exact if it is E, approximate within the limits."""
        return self.limits.match(growth, self.growth)


_ONE, _ZERO = Fraction(1), Fraction(0)

MPI_SPACE = tuple(
    sorted(
        Growth(exponent, log)
        for exponent in {
            Fraction(part, denominator)
            for denominator in (3, 4)
            for part in range(2 * denominator + 1)
        }
        for log in (0, 1)
    )
)
"""The space for MPI in the literature, for all expectations.

It holds quarters and thirds up to 2, each with and without a logarithm. The space of O(log p)
itself has nothing above log^2 p.
"""


def search_space(expected: Growth, steps: int = 2) -> tuple[Growth, ...]:
    """Return the growths to compare, between the boundaries O(1) and E squared.

    The leading factor of E is raised to exponents from 0 to 2, found by recursive halving. It is
    combined with the next lower class as a factor, or stands alone. For E = p the growths are 1,
    log p, p^(1/4), p^(1/4) log p, ..., p, p log p, ..., p^(7/4) log p, p^2. The exponent of the
    lower class rises in whole steps from 0 to one above that of E. It ends at 1 for p, at 2 for p
    log p, and at 4 for k^3 2^k. The lowest class are logarithms.

    For E = O(1) both boundaries are O(1), and everything would match. So `MPI_SPACE` is used, as in
    the literature.

    Parameters
    ----------
    expected : Growth
        The expected growth E, rising or falling.
    steps : int
        How many times the exponents between 1 and E, and between E and its square, are halved.

    Returns
    -------
    tuple of Growth
        The growths, slowest first.

    Raises
    ------
    ValueError
        If `steps` is below 0 or above 10.
    """
    if not 0 <= steps <= 10:
        raise ValueError(f"{steps} steps of halving; expected 0 to 10")
    if expected == CONSTANT_GROWTH:
        return MPI_SPACE
    least, most = sorted((CONSTANT_GROWTH, expected**2))
    shares = [Fraction(part, 2**steps) for part in range(2 ** (steps + 1) + 1)]
    leading, factors = _classes(expected)
    found = {leading**share * factor for share in shares for factor in factors}
    return tuple(sorted({growth for growth in found if least <= growth <= most} | {expected}))


def _classes(expected: Growth) -> tuple[Growth, tuple[Growth, ...]]:
    """Return the leading factor, and the factors of the next lower class that multiply it."""
    if expected.rate:
        return Growth(_ZERO, 0, expected.rate), _ladder(Growth(_ONE, 0), expected.exponent)
    if expected.exponent:
        return Growth(expected.exponent, 0), _ladder(Growth(_ZERO, 1), Fraction(expected.log))
    return expected, (CONSTANT_GROWTH,)


def _ladder(lower: Growth, own: Fraction) -> tuple[Growth, ...]:
    """Return whole powers of the lower class up to one above that of E, and that of E itself."""
    steps = {own, *(Fraction(step) for step in range(max(int(own), 0) + 2))}
    return tuple(lower**step for step in sorted(steps))


def space_with(space: SearchSpace, expected: Growth, limits: DeviationLimits) -> SearchSpace:
    """Return a space in which models can have an expected growth, and those at its limits.

    The default spaces have no exponentials and no fractional powers of the logarithm.

    Parameters
    ----------
    space : SearchSpace
        The space of models that know nothing of the expectation.
    expected : Growth
        The expected growth.
    limits : DeviationLimits
        The limits around it, which are themselves allowed.

    Returns
    -------
    SearchSpace
        The same space if it lacks nothing.
    """
    rates = {expected.rate} if 0 < expected.rate <= LARGEST_POWER else set()
    growths = (expected, limits.low, limits.high)
    powers = {Fraction(each.log) for each in growths if each is not None and not each.rate}
    logs = {power for power in powers if power.denominator > 1 and 0 < power <= LARGEST_POWER}
    fine = all(each.denominator <= FINEST for each in (*rates, *logs))
    if not fine or (rates.issubset(space.exponential) and logs.issubset(space.logs)):
        return space
    return replace(
        space,
        logs=tuple(sorted({*space.logs, *logs})),
        exponential=tuple(sorted({*space.exponential, *rates})),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """Matches of n rows with an expectation, in columns.

    Attributes
    ----------
    expectation : ExpectedGrowth
        The expectation.
    space : tuple of Growth
        The growths that were compared, slowest first.
    chosen : ndarray [n] of int16
        Position of the chosen growth in `space`; -1 without a model.
    constant, coefficient : ndarray [n]
        Constant and coefficient of the fitted term, in the unit of the metric; NaN without a model.
    adjusted_r2 : ndarray [n]
        Adjusted R^2 of the leave-one-out residuals; 0 for a constant.
    cv_error : ndarray [n]
        Root mean square of these residuals, relative.
    match : ndarray [n] of int8
        Codes of `DeviationMatch`.
    """

    expectation: ExpectedGrowth
    space: tuple[Growth, ...]
    chosen: Int16Array
    constant: FloatArray
    coefficient: FloatArray
    adjusted_r2: FloatArray
    cv_error: FloatArray
    match: Int8Array

    def __post_init__(self) -> None:
        """Make every column read-only."""
        for name in ("chosen", "constant", "coefficient", "adjusted_r2", "cv_error", "match"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.chosen)

    def growth(self, row: int) -> Growth | None:
        """Return the chosen growth of a row; None without a model."""
        code = int(self.chosen[row])
        return None if code < 0 else self.space[code]

    def divergence(self, row: int) -> Growth | None:
        """Return the factor by which a row misses the expectation; None without a model."""
        growth = self.growth(row)
        return None if growth is None else self.expectation.divergence(growth)


def validate(
    points: npt.ArrayLike,
    values: npt.ArrayLike,
    expectation: ExpectedGrowth,
    space: Sequence[Growth] | None = None,
) -> Validation:
    """Return the matches of measurements with an expectation.

    Parameters
    ----------
    points : array_like [K]
        Distinct values of the parameter above zero, in any order.
    values : array_like [n, K]
        One value per row and point, zero or more; NaN = missing.
    expectation : ExpectedGrowth
        The expectation for every row.
    space : sequence of Growth, optional
        Growths to compare, by default `search_space`. Logarithms are left out if a point is below
        1. So are growths that overflow at the points.

    Returns
    -------
    Validation
        Rows with fewer than four points, or with a value that is infinite or below zero, have no
        model.

    Raises
    ------
    ValueError
        If shapes or points are not as described, or if no growth of the space can be used.
    """
    scale, y = _checked(points, values)
    among = tuple(sorted(set(search_space(expectation.growth) if space is None else space)))
    terms = _Terms.of(among, scale)
    parts = [
        _choose(y[start : start + MATCH_CHUNK], terms)
        for start in range(0, len(y) or 1, MATCH_CHUNK)
    ]
    chosen = np.concatenate([part[0] for part in parts])
    constant, coefficient, adjusted_r2, cv_error = np.concatenate([part[1] for part in parts], 1)
    # Without a model the code is -1, which selects the last entry.
    matches = np.array(
        [*(expectation.match(growth) for growth in among), DeviationMatch.NO_MODEL], np.int8
    )
    match = matches[chosen]
    return Validation(
        expectation, among, chosen, constant, coefficient, adjusted_r2, cv_error, match
    )


def _checked(points: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    scale, y = np.asarray(points, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if scale.ndim != 1 or not scale.size or not (np.isfinite(scale) & (scale > 0)).all():
        raise ValueError("points must be a list of finite numbers above zero")
    if len(np.unique(scale)) != len(scale):
        raise ValueError("points must differ")
    if y.ndim != 2 or y.shape[1] != len(scale):
        raise ValueError(f"values have shape {y.shape}; expected (rows, {len(scale)})")
    order = np.argsort(scale)
    return scale[order], y[:, order]


@dataclass(frozen=True, slots=True)
class _Terms:
    """Terms that can be fitted, their positions in the space, and that of O(1); -1 = not in it."""

    basis: Basis
    codes: IntArray
    flat: int

    @classmethod
    def of(cls, among: Sequence[Growth], points: FloatArray) -> _Terms:
        """Return the growths of a space that can be evaluated at `points`."""
        flat = among.index(CONSTANT_GROWTH) if CONSTANT_GROWTH in among else -1
        codes = [
            code
            for code, growth in enumerate(among)
            if code != flat
            and (points[0] >= 1 or not growth.log)
            and np.isfinite(growth(points)).all()
        ]
        if not codes:
            raise ValueError("nothing of the search space but O(1) can be evaluated at the points")
        growths = [among[code] for code in codes]
        return cls(Basis.at(points, growths, np.ones(len(codes), np.bool_)), np.array(codes), flat)


def _choose(y: FloatArray, terms: _Terms) -> tuple[Int16Array, FloatArray]:
    """Return the growth of each row, [n]; constant, coefficient, adjusted R^2, error, [4, n]."""
    present = ~np.isnan(y)
    usable = (present.sum(axis=1) >= MIN_POINTS["classic"]) & ~(np.isinf(y) | (y < 0)).any(axis=1)
    chosen = np.full(len(y), -1, dtype=np.int16)
    numbers = np.full((4, len(y)), np.nan)
    zero = usable & ~(y > 0).any(axis=1)
    if terms.flat >= 0:
        chosen[zero], numbers[:, zero] = terms.flat, 0.0
    row = np.flatnonzero(usable & ~zero)
    if row.size:
        unit = np.nanmax(y[row], axis=1)
        some = np.where(present[row], y[row] / unit[:, None], 0.0)
        best, found = _best(WeightedRows.relative(some, present[row], None), terms)
        chosen[row] = np.where(best < 0, terms.flat, terms.codes[best])
        found[0] *= unit
        found[1] *= unit / np.where(best < 0, 1.0, terms.basis.scale[best])
        numbers[:, row] = found
    numbers[:, chosen < 0] = np.nan
    return chosen, numbers


def _best(rows: WeightedRows, terms: _Terms) -> tuple[IntArray, FloatArray]:
    """Return the term of each row, -1 = constant; constant, coefficient, R^2 and error."""
    one = fit_one_term(rows, terms.basis)
    for term in np.flatnonzero(terms.basis.decreasing):
        _without_constant(one, int(term), rows, terms.basis)
    flat = solve(np.ones((*rows.y.shape, 1)), rows)
    freedom = rows.points[:, None] - np.where(one.form == WITH_CONSTANT, 2.0, 1.0)
    reference = flat.cv / (rows.points - 1)
    # Equal exact numbers have no variation that a term could explain.
    reference = np.where(flat.cv > rows.points * EXACT**2, reference, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        adjusted = 1 - one.cv / freedom / reference[:, None]
    adjusted[np.isnan(adjusted) | np.isinf(one.cv)] = -np.inf
    row, best = np.arange(len(adjusted)), adjusted.argmax(axis=1)
    value = adjusted[row, best]
    growing = (value > 0) | ((terms.flat < 0) & np.isfinite(value))
    constant = np.where(growing, one.constant[row, best], flat.coefficients[:, 0])
    slope = np.where(growing, one.slope[row, best], 0.0)
    left = np.where(growing, one.cv[row, best], flat.cv)
    numbers = [constant, slope, np.where(growing, value, 0.0), np.sqrt(left / rows.points)]
    return np.where(growing, best, -1), np.array(numbers)


def _without_constant(one: OneTerm, term: int, rows: WeightedRows, basis: Basis) -> None:
    """Replace the fit of a falling term by one without a constant, which it would fall towards."""
    column = np.broadcast_to(basis.values[term], rows.y.shape)[..., None]
    alone = solve(column, rows)
    one.form[:, term] = WITHOUT_CONSTANT
    one.constant[:, term], one.slope[:, term] = 0.0, alone.coefficients[:, 0]
    one.cv[:, term] = alone.cv


@dataclass(frozen=True, slots=True, eq=False)
class GrowthVerdicts:
    """Verdicts on limits of growth, in columns over n rows.

    Attributes
    ----------
    limits : DeviationLimits
        The limits of the growth.
    below, within, above : ndarray [n]
        Probabilities of growth below, within and above the limits; NaN without a model.
    outside : ndarray [n]
        Whether the law changes within the measurements, or no law explains them. The probabilities
        are then those of incomplete laws.
    kept, broken : ndarray [n]
        Whether the limits are kept, and whether they are broken; if neither, the data do not
        decide.
    """

    limits: DeviationLimits
    below: FloatArray
    within: FloatArray
    above: FloatArray
    outside: BoolArray
    kept: BoolArray
    broken: BoolArray

    def __post_init__(self) -> None:
        """Make every column read-only."""
        for name in ("below", "within", "above", "outside", "kept", "broken"):
            getattr(self, name).flags.writeable = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.kept)


def judge(
    models: Models, limits: DeviationLimits, confidence: float | None = None
) -> GrowthVerdicts:
    """Return verdicts on the growths of models.

    An expectation is kept if the growth is within the limits with a probability of at least
    `confidence`. It is broken if the growth is outside of the limits with at least that
    probability. It is never kept for a row outside the model class, since the next change of its
    law is unknown. It is broken for such a row if the growth is too fast even so, but not because
    nothing grows beyond a step.

    Parameters
    ----------
    models : Models
        Models of n rows. With the classic method, probabilities are Akaike weights among the chosen
        model and its alternatives.
    limits : DeviationLimits
        The limits of the growth.
    confidence : float, optional
        Confidence between 0.5 and 1; by default that of the bands of the models.

    Returns
    -------
    GrowthVerdicts
        Rows without a model are neither kept nor broken.
    """
    sure = models.confidence if confidence is None else confidence
    side, weight = _sides(models, limits)
    modelled = models.status < FitStatus.TOO_FEW_POINTS
    below, within, above = (
        np.where(modelled, np.where(side == which, weight, 0.0).sum(axis=1), np.nan)
        for which in (-1, 0, 1)
    )
    outside = models.status == FitStatus.OUTSIDE
    kept = (within >= sure) & ~outside
    broken = np.where(outside, above, below + above) >= sure
    return GrowthVerdicts(limits, below, within, above, outside, kept, broken)


def growth_probabilities(models: Models) -> FloatArray:
    """Return the probability of each growth in ``models.shapes.growths``, [n, growths].

    A row without a model has probabilities of 0.
    """
    rank, weight = _hypotheses(models)
    table = np.zeros((len(models), len(models.shapes.growths)))
    np.add.at(table, (np.arange(len(models))[:, None], rank), weight)
    return table


def _hypotheses(models: Models) -> tuple[Int64Array, FloatArray]:
    """Return the growth of each hypothesis (a position in `growths`) and its weight, [n, C]."""
    others = models.shapes.growth_rank(models.alternative_terms, models.alternative_coefficients)
    rank = np.concatenate([models.growth_rank()[:, None], others], axis=1)
    weight = np.concatenate([models.weight[:, None], models.alternative_weight], axis=1)
    # A row of zeros has no hypotheses; it is constant.
    weight[weight.sum(axis=1) == 0, 0] = 1.0
    weight = np.where(rank[:, :1] < 0, 0.0, weight)
    return rank, weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)


def _sides(models: Models, limits: DeviationLimits) -> tuple[Int8Array, FloatArray]:
    """Return the side of the limits of each hypothesis, and its probability, [n, C]."""
    rank, weight = _hypotheses(models)
    growths = models.shapes.growths
    side = np.zeros(len(growths), dtype=np.int8)
    # Growths ascend, so this is `DeviationLimits.side` with few comparisons.
    if limits.low is not None:
        side[: bisect_left(growths, limits.low)] = -1
    if limits.high is not None:
        side[bisect_right(growths, limits.high) :] = 1
    found = side[rank]
    if limits.high is not None and limits.high < CONSTANT_GROWTH:
        found = np.where(_falls_on(models, limits) & (found[:, :1] == 0), np.int8(0), found)
    return found, weight


def _falls_on(models: Models, limits: DeviationLimits) -> BoolArray:
    """Return which hypotheses fall nearly as expected up to `FAR` times the largest point, [n, C].

    A hypothesis that levels off beyond may be as probable as the one that falls forever. It breaks
    an expectation only if the data show that it levels off.
    """
    assert limits.high is not None  # the limits fall
    middle = limits.high if limits.low is None else (limits.low * limits.high) ** Fraction(1, 2)
    ends = models.points[-1] * np.array([1.0, FAR])
    expected = middle(ends)
    terms = np.concatenate([models.terms[:, None], models.alternative_terms], axis=1)
    numbers = np.concatenate(
        [models.coefficients[:, None], models.alternative_coefficients], axis=1
    )
    value = evaluate(
        models.shapes,
        terms.reshape(-1, terms.shape[-1]),
        numbers.reshape(-1, numbers.shape[-1]),
        ends,
    ).reshape(*terms.shape[:2], 2)
    least = HIDDEN_FLOOR * expected[1] / expected[0]
    return np.asarray(value[..., 1] <= least * value[..., 0])


def deciding_run(
    models: Models, limits: DeviationLimits, confidence: float | None = None
) -> FloatArray:
    """Return the value of the parameter at which a run would decide whether limits are kept, [n].

    It is the smallest value, in quarters of a doubling, at which the bands of hypotheses on either
    side of a limit do not overlap. Hypotheses on the same side count together, if they have at
    least half of the probability outside of `confidence`.

    Parameters
    ----------
    models : Models
        Models of n rows; some milliseconds each.
    limits : DeviationLimits
        The limits of the growth.
    confidence : float, optional
        As for `judge`; also the confidence of the bands.

    Returns
    -------
    ndarray [n]
        Infinite if no run up to `FURTHEST` times the largest point would decide, for example if
        only one side is probable. NaN for rows without a model, and for rows outside the model
        class, whose law has to be found first. NaN with the classic method, which has no bands of
        hypotheses.
    """
    sure = models.confidence if confidence is None else confidence
    found = np.full(len(models), np.nan)
    inside = (models.status < FitStatus.TOO_FEW_POINTS) & (models.status != FitStatus.OUTSIDE)
    if models.method == "classic":
        return found
    steps = np.arange(1, int(np.log2(FURTHEST)) * PER_DOUBLING + 1)
    scales = models.points[-1] * 2.0 ** (steps / PER_DOUBLING)
    rows = np.flatnonzero(inside)
    for start in range(0, len(rows), VERDICT_CHUNK):
        some = models.take(rows[start : start + VERDICT_CHUNK])
        side, _ = _sides(some, limits)
        found[rows[start : start + VERDICT_CHUNK]] = _deciding(some, side, scales, sure)
    return found


def deciding_run_of_value(
    models: Models, target: float, amount: float, confidence: float
) -> FloatArray:
    """Return the value of the parameter at which a run would decide whether rows exceed `amount`.

    As `deciding_run`, for the values at a finite target; runs beyond the target are not considered.
    """
    found = np.full(len(models), np.nan)
    inside = (models.status < FitStatus.TOO_FEW_POINTS) & (models.status != FitStatus.OUTSIDE)
    steps = np.arange(1, int(np.log2(FURTHEST)) * PER_DOUBLING + 1)
    scales = models.points[-1] * 2.0 ** (steps / PER_DOUBLING)
    scales = scales[scales <= target]
    if models.method == "classic" or not len(scales) or not inside.any():
        return found
    some = models.take(inside)
    above = some.mixture(np.array([target])).centre[..., 0] > amount
    found[inside] = _deciding(some, above.astype(np.int8), scales, confidence)
    return found


def _deciding(models: Models, side: Int8Array, scales: FloatArray, sure: float) -> FloatArray:
    mixture = models.mixture(scales)
    bands = [_band_of(mixture, side == which, sure) for which in (-1, 0, 1)]
    apart = np.ones((len(models), len(scales)), dtype=np.bool_)
    contested = np.zeros(len(models), dtype=np.bool_)
    for first, second in ((0, 1), (1, 2), (0, 2)):
        (one, one_low, one_high), (other, other_low, other_high) = bands[first], bands[second]
        both = np.minimum(one, other) >= (1 - sure) / 2
        apart &= (one_high < other_low) | (other_high < one_low) | ~both[:, None]
        contested |= both
    told = contested & apart.any(axis=1)
    return np.where(told, scales[apart.argmax(axis=1)], np.inf)


def _band_of(
    mixture: Mixture, members: BoolArray, confidence: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probability of some hypotheses, [n], and the band of these alone, [n, m]."""
    weight = np.where(members, mixture.weight, 0.0)
    share = weight.sum(axis=1)
    alone = structs.replace(mixture, weight=weight / np.where(share > 0, share, 1.0)[:, None])
    return share, *alone.band(confidence)
