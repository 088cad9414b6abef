"""Comparison of two experiments, call path by call path.

It has three parts, each with its significance: the difference at the largest common scale, the
difference of growth, and the difference at the target. The last one is measured if both
experiments ran the target at least twice, else predicted. Call paths of one experiment only are in
the totals, but not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.analysis.common_noise import factors_of_runs, relative_to_others
from callpath_modeler.analysis.growth_change import GrowthChange, growth_change
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.pairing import AlignedExperiment, ExperimentPair
from callpath_modeler.analysis.predict import Predicted, predict, with_callees
from callpath_modeler.analysis.sample import Sample, sample_at
from callpath_modeler.analysis.target_costs import basis_of
from callpath_modeler.analysis.two_samples import (
    Band,
    SampleComparison,
    compare_bands,
    compare_samples,
    deviation_of_models,
    false_discovery_rate,
)
from callpath_modeler.analysis.unmatched import Unmatched, diverging
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre
from callpath_modeler.profile.experiment import inclusive_values

BEYOND = 4
"""Multiple of the largest scale at which a difference of growth must show."""


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """Differences at one scale: of each call path and, last, of the whole program, [n + 1].

    Attributes
    ----------
    at : value of the parameter, and fixed values of the others
    base, new : costs in the unit of the metric; NaN = does not occur, or no prediction
    change : new minus base; a call path that does not occur costs nothing
    relative, low, high : change over base with its interval, if both have costs
    p : probability of a difference of this size, or larger, by chance
    rate : false discovery rate if this difference is the least significant one shown
    mark : 1 = new is significantly worse, -1 = better, 0 = no significant difference
    """

    at: Mapping[str, float]
    base: FloatArray
    new: FloatArray
    change: FloatArray
    relative: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    rate: FloatArray
    mark: Int8Array

    @property
    def scale(self) -> float:
        """Value of the parameter."""
        return next(iter(self.at.values()))


@dataclass(frozen=True, eq=False)
class ExperimentDifference:
    """Difference of two experiments.

    Attributes
    ----------
    pair : the two experiments
    inclusive : True if values include callees
    confidence : confidence of intervals; 1 - confidence is the false discovery rate
    measured : differences at the largest common scale; None = there is none
    ran : measured differences at the target, even of single runs; None = not both ran it
    predicted : predicted differences at the target; None = there is none
    repetitions : runs of the target in base and in new, if the differences there are measured; else
        zeros
    growth : growth before and after; None = one of the two has no models
    in_base, in_new : [n] True if a call path was measured at the common scales (at any scale, if
        there is none)
    left_out : [n] True if a call path occurs but is not in `predicted`, because one side has no
        model
    order : rows that occur, by the absolute change at the target, else at the largest common scale
    """

    pair: ExperimentPair
    inclusive: bool
    confidence: float
    measured: Changes | None
    ran: Changes | None
    predicted: Changes | None
    repetitions: tuple[int, int]
    growth: GrowthChange | None
    in_base: BoolArray
    in_new: BoolArray
    left_out: BoolArray
    order: IntArray

    def __repr__(self) -> str:
        base, new = (side.experiment.name for side in self.pair.sides)
        return f"<Difference {base} to {new}: {len(self.order)} call paths>"

    @property
    def can_tell(self) -> bool:
        """True if the noise is known, so that a difference can be significant."""
        return any(not np.isnan(changes.p).all() for changes in self.answers)

    @property
    def is_measured(self) -> bool:
        """True if the differences at the target are measured."""
        return all(self.repetitions)

    @property
    def at_target(self) -> Changes | None:
        """Differences at the target, measured or predicted; None = there is no target."""
        return self.ran if self.is_measured else self.predicted

    @property
    def basis(self) -> str | None:
        """``"measured"`` or ``"predicted"``, for the target; None = no target."""
        return None if self.at_target is None else basis_of(self.is_measured)

    @property
    def answers(self) -> tuple[Changes, ...]:
        """Differences at the target, and at the largest common scale if it is another one."""
        largest = None if self.measured is self.at_target else self.measured
        return tuple(changes for changes in (self.at_target, largest) if changes is not None)

    @property
    def changes(self) -> Changes:
        """Differences that determine the order: those at the target, else the measured ones."""
        return self.answers[0]

    @property
    def costs(self) -> Changes:
        """Costs to show: measured ones, at the target if it was run; else predicted ones."""
        return self.changes if self.is_measured else self.answers[-1]


def difference(
    pair: ExperimentPair,
    target: float | None,
    *,
    inclusive: bool = False,
    confidence: float = 0.95,
    predicted: bool = False,
) -> ExperimentDifference:
    """Return the difference of two experiments at the largest common scale and at `target`.

    Parameters
    ----------
    target : scale of the second comparison; if both ran it at least twice, values are measured
    inclusive : compare inclusive values
    confidence : confidence of intervals; 1 - confidence is the false discovery rate
    predicted : use predictions even if both ran the target

    Raises
    ------
    DataError
        If there is neither a common scale nor a target.
    UsageError
        If inclusive values of a metric are requested that is not additive.
    """
    _check(pair, target, inclusive)
    measured = ran = ahead = growth = None
    if len(pair.scales):
        measured = _measured(pair, float(pair.scales[-1]), inclusive, confidence)
    was_run = pair.line.held == pair.line.measured_at and target in pair.scales
    if target is not None and was_run:
        is_largest = target == pair.scales[-1]
        ran = measured if is_largest else _measured(pair, target, inclusive, confidence)
    if pair.base.fitted and pair.new.fitted:
        look = _Comparison(pair, inclusive, confidence, measured)
        growth = _growth(look, pair.base.fitted, pair.new.fitted)
        if target is not None:
            ahead = _look_ahead(look, target)
    here = pair.scales if len(pair.scales) else np.union1d(pair.base.points, pair.new.points)
    in_base, in_new = (side.occurs(here) for side in pair.sides)
    if inclusive:
        below = pair.tree.inclusive(np.column_stack([in_base, in_new]).astype(float)) > 0
        in_base, in_new = below.T
    found = ExperimentDifference(
        pair=pair,
        inclusive=inclusive,
        confidence=confidence,
        measured=measured,
        ran=ran,
        predicted=ahead.changes if ahead else None,
        repetitions=(0, 0) if predicted or ran is None else _repetitions(pair, ran.scale),
        growth=growth,
        in_base=in_base,
        in_new=in_new,
        left_out=ahead.left_out if ahead else np.zeros(len(pair.tree), bool),
        order=np.flatnonzero(in_base | in_new),
    )
    return replace(found, order=_order(found))


def _check(pair: ExperimentPair, target: float | None, inclusive: bool) -> None:
    """Raise an error if the comparison is not possible."""
    if inclusive and not pair.metric.additive:
        raise UsageError(
            f"no inclusive comparison: {pair.metric.name} does not add up over call paths",
            hint="--exclusive",
        )
    if target is not None and not (pair.base.fitted and pair.new.fitted):
        raise UsageError("no models to predict with", hint="compare fitted experiments")
    if target is None and not len(pair.scales):
        raise DataError(
            f"the two were measured at no common scale of {', '.join(pair.line.names)}",
            hint="--target P compares what their models predict there",
        )


def _repetitions(pair: ExperimentPair, target: float) -> tuple[int, int]:
    """Return the numbers of runs of a target on both sides; zeros if one has fewer than two."""
    counts = []
    for side in pair.sides:
        assert side.fitted is not None, "difference() has targets only with models"
        runs = Measured(side.fitted)
        point = runs.point(target)
        counts.append(0 if point is None else runs.repetitions(point))
    return (counts[0], counts[1]) if all(counts) else (0, 0)


def _order(found: ExperimentDifference) -> IntArray:
    """Return the rows that occur; rows without a change at the target come last."""
    keys = []
    for changes in reversed(found.answers):
        cost = np.fmax(np.nan_to_num(changes.base), np.nan_to_num(changes.new))
        known = ~np.isnan(changes.change)
        keys += [-cost[:-1], -np.where(known, np.abs(changes.change), -1.0)[:-1]]
    keys = [key[found.order] for key in keys]
    return found.order[np.lexsort((found.order, *keys))]


def _measured(pair: ExperimentPair, scale: float, inclusive: bool, confidence: float) -> Changes:
    """Return the measured differences at a common scale."""
    samples, costs, views, points = [], [], [], []
    for side in pair.sides:
        point = int(np.searchsorted(side.points, scale))
        rows = inclusive_values(pair.tree, side.values) if inclusive else side.values
        views.append(rows)
        points.append(point)
        samples.append(sample_at(_with_total(pair, rows, side.values), point))
        # Centres are those that are modelled, and sums are of centres: as `cpmodel rank` shows.
        own = centre(side.values[:, [point]], pair.centre)
        view = inclusive_values(pair.tree, own) if inclusive else own
        costs.append(_with_total(pair, view, own)[:, 0])
    if not any(sample.is_repeated for sample in samples):
        samples = [
            _unrepeated(sample, side, inclusive)
            for sample, side in zip(samples, pair.sides, strict=True)
        ]
    test = compare_samples(samples[0], samples[1], confidence)
    if pair.metric.is_time:
        shared = [factors_of_runs(side.values) for side in pair.sides]
        test = _or_relative(test, relative_to_others(views, shared, points, confidence))
    at = {pair.parameter: scale, **pair.line.measured_at}
    return _changes(at, costs[0], costs[1], test, confidence)


def _or_relative(test: SampleComparison, relative: SampleComparison | None) -> SampleComparison:
    """Return a test of call paths alone, or relative to the others if that is more certain.

    The probability of the better one of two tests is doubled (Bonferroni). The whole program is
    compared alone, because nothing is beside it.
    """
    if relative is None:
        return test
    # A call path that changed less than the others did not become better.
    agrees = np.sign(relative.difference) == np.sign(test.difference[:-1])
    other = np.where(agrees, relative.p, 1.0)
    p = np.minimum(2 * np.fmin(test.p[:-1], other), 1.0)
    return replace(test, p=np.append(np.where(np.isnan(test.p[:-1]), np.nan, p), test.p[-1]))


def _with_total(pair: ExperimentPair, values: FloatArray, exclusive: FloatArray) -> FloatArray:
    """Append the total of the program to values [n, ...], where anything was measured."""
    total = np.full((1, *values.shape[1:]), np.nan)
    if pair.metric.additive:
        ran = ~np.isnan(exclusive).all(axis=0)
        total[0, ran] = np.nansum(exclusive, axis=0)[ran]
    return np.concatenate([values, total])


def _unrepeated(sample: Sample, side: AlignedExperiment, inclusive: bool) -> Sample:
    """Return the sample with the deviations from models as its noise."""
    if side.fitted is None:
        return sample
    variance, dof = deviation_of_models(side.fitted, inclusive=inclusive)
    of_rows = [side.spread(column[:-1]) for column in (variance, dof)]
    return replace(
        sample,
        variance=np.append(of_rows[0], variance[-1]),
        dof=np.append(of_rows[1], dof[-1]),
    )


def _changes(
    at: Mapping[str, float],
    base: FloatArray,
    new: FloatArray,
    test: SampleComparison,
    confidence: float,
) -> Changes:
    change = np.nan_to_num(new) - np.nan_to_num(base)
    change[np.isnan(base) & np.isnan(new)] = np.nan
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = np.where((base > 0) & (new > 0), new / base - 1.0, np.nan)
        low, high = np.expm1(test.low), np.expm1(test.high)
    rate = false_discovery_rate(test.p)
    is_shown = np.nan_to_num(rate, nan=1.0) <= 1 - confidence
    # Repetitions may say one thing and their centres another: then nothing is shown.
    agrees = np.sign(change) == np.sign(test.difference)
    mark = np.where(is_shown & agrees, np.sign(change), 0).astype(np.int8)
    return Changes(at, base, new, change, relative, low, high, test.p, rate, mark)


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """How to look ahead: with which callees, how sure, and what was measured of both."""

    pair: ExperimentPair
    inclusive: bool
    confidence: float
    measured: Changes | None

    def backed(self, changes: Changes) -> Changes:
        """Return changes without the marks that measurements do not back.

        Models are made of measurements, and a single slow run may bend one of them. So where both
        were measured at one scale, they must differ there in the same direction by more than
        chance, if only of this one call path.
        """
        if self.measured is None:
            return changes
        differs = np.nan_to_num(self.measured.p, nan=1.0) <= 1 - self.confidence
        direction = np.where(differs, np.sign(np.nan_to_num(self.measured.change)), 0)
        return replace(changes, mark=np.where(changes.mark == direction, changes.mark, 0))


@dataclass(frozen=True, slots=True, eq=False)
class _ChangesAhead:
    """What models say of a scale: changes, whose models lead (own rows of each side), no model."""

    changes: Changes
    leaders: tuple[IntArray, IntArray]
    left_out: BoolArray


def _look_ahead(look: _Comparison, scale: float) -> _ChangesAhead:
    """Compare predictions; what one side measured and has no model of is left out of both."""
    pair = look.pair
    own = [_predict(side, scale) for side in pair.sides]
    known = [
        (predicted.leader >= 0) | ~side.occurs(side.points)
        for predicted, side in zip(own, pair.sides, strict=True)
    ]
    left_out = ~(known[0] & known[1])
    bands: list[Band] = []
    leaders = []
    for predicted, side in zip(own, pair.sides, strict=True):
        kept = _without(predicted, left_out)
        view = with_callees(pair.tree, kept) if look.inclusive else kept
        total, low, high = kept.total() if pair.metric.additive else (np.nan,) * 3
        ends = np.append(view.low, low), np.append(view.high, high)
        bands.append((np.append(view.value, total), *ends))
        leaders.append(np.where(view.leader >= 0, side.own_rows()[view.leader], -1))
    base, new = bands
    found = compare_bands(base, new, look.confidence)
    changes = _changes(pair.line.at(scale), base[0], new[0], found, look.confidence)
    return _ChangesAhead(look.backed(changes), (leaders[0], leaders[1]), left_out)


def _predict(side: AlignedExperiment, scale: float) -> Predicted:
    """Predict a side on the tree of both."""
    assert side.fitted is not None, "difference() looks ahead only with models"
    own = predict(side.fitted, scale)
    return Predicted(
        side.spread(own.value),
        side.spread(own.low),
        side.spread(own.high),
        side.spread(own.added, absent=0.0),
        side.spread(np.where(own.leader >= 0, side.rows[own.leader], -1), absent=-1),
        side.spread(own.growth, absent=-1),
        side.spread(own.lead, absent=0.0),
        own.confidence,
    )


def _without(own: Predicted, rows: BoolArray) -> Predicted:
    columns = (own.value, own.low, own.high, own.leader, own.growth, own.lead)
    absent = (np.nan, np.nan, np.nan, -1, -1, 0.0)
    value, low, high, leader, growth, lead = (
        np.where(rows, x, c) for x, c in zip(absent, columns, strict=True)
    )
    added = np.where(rows[:, None], 0.0, own.added)
    return Predicted(value, low, high, added, leader, growth, lead, own.confidence)


def _growth(look: _Comparison, base: Fitted, new: Fitted) -> GrowthChange:
    """Compare growth, and whether predictions beyond the data differ as it does."""
    beyond = BEYOND * max(float(side.points[-1]) for side in look.pair.sides)
    ahead = _look_ahead(look, beyond)
    return growth_change(base, new, ahead.leaders, ahead.changes.mark[:-1], look.confidence)


def only_in_one(found: ExperimentDifference) -> Unmatched:
    """Return where the call trees of the two diverge, with what that costs at the scale shown."""
    tree, changes = found.pair.tree, found.costs
    totals = float(changes.base[-1]), float(changes.new[-1])
    costs = []
    for flags, column in ((found.in_base, changes.base), (found.in_new, changes.new)):
        below = column[:-1] if found.inclusive else inclusive_values(tree, column[:-1])
        occurs = tree.inclusive(flags.astype(float)) > 0
        costs.append(np.where(occurs, np.nan_to_num(below), np.nan))
    return diverging(tree, (costs[0], costs[1]), totals)
