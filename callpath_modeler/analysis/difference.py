"""Comparison of two experiments: call paths, limits of cost and growth, and changed causes.

It has three parts, each with its significance: the difference at the largest common scale, the
difference of growth, and the difference at the target. The last one is measured if both
experiments ran the target, else predicted. Call paths of one experiment only are in
the totals, but not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.cause import NOTHING, UNEXPLAINED
from callpath_modeler.analysis.cause_search import find_causes
from callpath_modeler.analysis.changes import (
    Band,
    Changes,
    changes_of,
    compare_bands,
    measured_changes,
)
from callpath_modeler.analysis.days import ScatterOfDays
from callpath_modeler.analysis.excess_work import CARRIES_COST
from callpath_modeler.analysis.pairing import (
    AlignedExperiment,
    ExperimentPair,
    Unmatched,
    diverging,
)
from callpath_modeler.analysis.predict import ABSENT, Predicted, with_callees
from callpath_modeler.analysis.run_time import predicted_run_time
from callpath_modeler.analysis.uncertain import Total, basis_of
from callpath_modeler.arrays import BoolArray, FloatArray, Int8Array, IntArray
from callpath_modeler.errors import CONFIDENCE, DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.expected_growth import growth_probabilities
from callpath_modeler.profile.groups import inclusive_values

BEYOND = 4
"""Multiple of the largest scale at which a difference of growth must show."""


_CHUNK = 8_192
"""Rows whose probabilities of all growths are in memory together."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthChange:
    """Growth before and after, each [n].

    Attributes
    ----------
    before, after : rows of the models of base and of new for a call path; -1 = none
    faster, slower : probability that new grows faster, or more slowly; NaN = one has no model
    mark : 1 = new grows faster with the required probability, -1 = more slowly, else 0
    """

    before: IntArray
    after: IntArray
    faster: FloatArray
    slower: FloatArray
    mark: Int8Array


@dataclass(frozen=True, eq=False)
class ExperimentDifference:
    """Difference of two experiments.

    Attributes
    ----------
    pair : the two experiments
    inclusive : True if values include callees
    confidence : confidence of intervals; 1 - confidence is the false discovery rate
    measured : differences at the largest common scale; None = there is none
    ran : measured differences at the target; None = not both ran it
    predicted : predicted differences at the target; None = there is none
    repetitions : runs of the target in base and in new, if the differences there are measured; else
        zeros
    growth : growth before and after; None = one of the two has no models
    in_base, in_new : [n] True if a call path was measured at the common scales (at any scale, if
        there is none)
    left_out : [n] True if a call path occurs but is not in `predicted`, because one side has no
        model
    order : rows that occur, by the absolute change at the target, else at the largest common scale
    days : scatter from day to day that measured differences allow for; None = not known
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
    days: ScatterOfDays | None = None

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
    confidence: float = CONFIDENCE,
    predicted: bool = False,
) -> ExperimentDifference:
    """Return the difference of two experiments at the largest common scale and at `target`.

    Parameters
    ----------
    target : scale of the second comparison; if both ran it, values are measured
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
    return Differences(pair, confidence).at(target, inclusive=inclusive, predicted=predicted)


class Differences:
    """Differences of two experiments at any target.

    Results that do not depend on the target are computed once.

    Parameters
    ----------
    pair : the two experiments
    confidence : confidence of intervals; 1 - confidence is the false discovery rate
    days : scatter from day to day that both experiments have; None = not known
    """

    def __init__(
        self,
        pair: ExperimentPair,
        confidence: float = CONFIDENCE,
        days: ScatterOfDays | None = None,
    ) -> None:
        self.pair = pair
        self.confidence = confidence
        self.days = days
        self._measured: dict[tuple[float, bool], Changes] = {}
        self._growth: dict[bool, GrowthChange] = {}
        self._predictions: dict[float, PredictedPair] = {}

    @property
    def has_models(self) -> bool:
        """Whether both experiments have models."""
        return self.pair.base.fitted is not None and self.pair.new.fitted is not None

    def at(
        self, target: float | None, *, inclusive: bool = False, predicted: bool = False
    ) -> ExperimentDifference:
        """Return the difference at the largest common scale and at `target`, as `difference`."""
        pair = self.pair
        _check(pair, target, inclusive)
        measured = ran = ahead = None
        left_out = np.zeros(len(pair.tree), bool)
        if len(pair.scales):
            measured = self.measured(float(pair.scales[-1]), inclusive=inclusive)
        if target is not None and self.was_run(target):
            ran = self.measured(target, inclusive=inclusive)
        if target is not None:
            ahead = self._look_ahead(target, self._views(target, inclusive), inclusive)
            left_out = self.predictions(target).left_out
        here = pair.scales if len(pair.scales) else np.union1d(pair.base.points, pair.new.points)
        in_base, in_new = (side.occurs(here) for side in pair.sides)
        if inclusive:
            below = pair.tree.inclusive(np.column_stack([in_base, in_new]).astype(float)) > 0
            in_base, in_new = below.T
        found = ExperimentDifference(
            pair=pair,
            inclusive=inclusive,
            confidence=self.confidence,
            measured=measured,
            ran=ran,
            predicted=ahead,
            repetitions=(0, 0) if predicted or target is None else self.repetitions(target),
            growth=self._growth_of(inclusive) if self.has_models else None,
            in_base=in_base,
            in_new=in_new,
            left_out=left_out,
            order=np.flatnonzero(in_base | in_new),
            days=self.days,
        )
        return replace(found, order=_order(found))

    def was_run(self, target: float) -> bool:
        """Return whether both experiments ran a target."""
        pair = self.pair
        return pair.line.held == pair.line.measured_at and target in pair.scales

    def repetitions(self, target: float) -> tuple[int, int]:
        """Return the numbers of runs of a target on both sides; zeros if not both ran it."""
        if not self.was_run(target):
            return 0, 0
        base, new = (side.repetitions(target) for side in self.pair.sides)
        return (base, new) if base and new else (0, 0)

    def measured(self, scale: float, *, inclusive: bool) -> Changes:
        """Return the measured differences at a common scale."""
        key = scale, inclusive
        if key not in self._measured:
            self._measured[key] = measured_changes(
                self.pair, scale, inclusive, self.confidence, self.days
            )
        return self._measured[key]

    def predictions(self, scale: float) -> PredictedPair:
        """Return the predictions of both at a scale; those of the last two scales are kept.

        Call paths that one side measured and has no model of are left out of both.
        """
        if scale not in self._predictions:
            pair = self.pair
            own = [side.predicted(scale) for side in pair.sides]
            known = [
                (predicted.leader >= 0) | ~side.occurs(side.points)
                for predicted, side in zip(own, pair.sides, strict=True)
            ]
            left_out = ~(known[0] & known[1])
            base, new = (_without(predicted, left_out) for predicted in own)
            before, after = (
                predicted_run_time(side.fitted, scale, predicted.total())
                if pair.has_run_times and side.fitted
                else kept.total()
                for side, predicted, kept in zip(pair.sides, own, (base, new), strict=True)
            )
            last = [*self._predictions.items()][-1:]
            made = PredictedPair((base, new), left_out, (before, after))
            self._predictions = {**dict(last), scale: made}
        return self._predictions[scale]

    def backed(self, changes: Changes, inclusive: bool) -> Changes:
        """Return changes without the marks that measurements do not back.

        Models are made of measurements, and a single slow run may bend one of them. So where both
        were measured at one scale, they must differ there in the same direction by more than
        chance, if only of this one call path.
        """
        if not len(self.pair.scales):
            return changes
        measured = self.measured(float(self.pair.scales[-1]), inclusive=inclusive)
        direction = direction_of(measured.p, measured.change, self.confidence)
        return replace(changes, mark=np.where(changes.mark == direction, changes.mark, 0))

    def _views(self, scale: float, inclusive: bool) -> list[Predicted]:
        """Return the predictions of both, summed over subtrees if they are inclusive."""
        sides, tree = self.predictions(scale).sides, self.pair.tree
        return [with_callees(tree, own) if inclusive else own for own in sides]

    def _look_ahead(self, scale: float, views: Sequence[Predicted], inclusive: bool) -> Changes:
        """Compare predictions."""
        pair, own, additive = self.pair, self.predictions(scale), self.pair.metric.additive
        bands: list[Band] = []
        for view, whole in zip(views, own.whole, strict=True):
            total, low, high = whole if additive else (np.nan,) * 3
            ends = np.append(view.low, low), np.append(view.high, high)
            bands.append((np.append(view.value, total), *ends))
        base, new = bands
        found = compare_bands(base, new, self.confidence)
        before, after = (
            float(np.nansum(kept.value)) if additive else float("nan") for kept in own.sides
        )
        at = pair.line.at(scale)
        changes = changes_of(at, base[0], new[0], found, self.confidence, (before, after))
        return self.backed(changes, inclusive)

    def _growth_of(self, inclusive: bool) -> GrowthChange:
        """Compare growth, and whether predictions beyond the data differ as it does."""
        if inclusive not in self._growth:
            base, new = (side.fitted for side in self.pair.sides)
            assert base is not None, "growth is that of models"
            assert new is not None, "growth is that of models"
            beyond = BEYOND * max(float(side.points[-1]) for side in self.pair.sides)
            views = self._views(beyond, inclusive)
            before, after = (
                np.where(view.leader >= 0, side.own_rows()[view.leader], -1)
                for view, side in zip(views, self.pair.sides, strict=True)
            )
            mark = self._look_ahead(beyond, views, inclusive).mark[:-1]
            self._growth[inclusive] = growth_change(
                base, new, (before, after), mark, self.confidence
            )
        return self._growth[inclusive]


def growth_change(
    base: Fitted,
    new: Fitted,
    rows: tuple[IntArray, IntArray],
    beyond: Int8Array,
    confidence: float,
) -> GrowthChange:
    """Return the changes of growth between models, row by row.

    The hypothesis of a model and its alternatives each have a probability. The probability of a
    pair is the product, because the experiments are independent.

    Parameters
    ----------
    rows : [n] and [n], rows of the two models to compare; -1 = none
    beyond : [n] sign of new minus base well beyond the data
    """
    before, after = rows
    both = np.flatnonzero((before >= 0) & (after >= 0))
    old, new_ranks = _ranks(base.models.shapes.growths, new.models.shapes.growths)
    gains = (new_ranks > old[:, None]).astype(np.float64)
    losses = (new_ranks < old[:, None]).astype(np.float64)
    faster, slower = np.full(len(before), np.nan), np.full(len(before), np.nan)
    for start in range(0, len(both), _CHUNK):
        some = both[start : start + _CHUNK]
        of_base = growth_probabilities(base.models.take(before[some]))
        of_new = growth_probabilities(new.models.take(after[some]))
        faster[some] = ((of_base @ gains) * of_new).sum(axis=1)
        slower[some] = ((of_base @ losses) * of_new).sum(axis=1)
    is_faster = (np.nan_to_num(faster) >= confidence) & (beyond > 0)
    is_slower = (np.nan_to_num(slower) >= confidence) & (beyond < 0)
    mark = is_faster.astype(np.int8) - is_slower.astype(np.int8)
    return GrowthChange(before, after, faster, slower, mark)


def _ranks(base: Sequence[Growth], new: Sequence[Growth]) -> tuple[IntArray, IntArray]:
    """Return the ranks of growths in one order of both; equal growths have one rank."""
    orders = [growth.order for growth in (*base, *new)]
    place = {order: rank for rank, order in enumerate(sorted(set(orders)))}
    ranks = np.array([place[order] for order in orders], np.intp)
    return ranks[: len(base)], ranks[len(base) :]


def direction_of(p: FloatArray, change: FloatArray, confidence: float) -> FloatArray:
    """Return the sign of changes that chance alone hardly explains, each on its own; else 0."""
    differs = np.nan_to_num(p, nan=1.0) <= 1 - confidence
    return np.where(differs, np.sign(np.nan_to_num(change)), 0)


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


def _order(found: ExperimentDifference) -> IntArray:
    """Return the rows that occur; rows without a change at the target come last."""
    keys = []
    for changes in reversed(found.answers):
        cost = np.fmax(np.nan_to_num(changes.base), np.nan_to_num(changes.new))
        known = ~np.isnan(changes.change)
        keys += [-cost[:-1], -np.where(known, np.abs(changes.change), -1.0)[:-1]]
    keys = [key[found.order] for key in keys]
    return found.order[np.lexsort((found.order, *keys))]


@dataclass(frozen=True, slots=True, eq=False)
class PredictedPair:
    """Predictions of two experiments at one scale, on the tree of both.

    Attributes
    ----------
    sides : exclusive predictions of base and of new
    left_out : [n] True if a call path occurs, but one of both has no model of it
    whole : costs of the whole program, as in `Changes`
    """

    sides: tuple[Predicted, Predicted]
    left_out: BoolArray
    whole: tuple[Total, Total]


def _without(own: Predicted, rows: BoolArray) -> Predicted:
    """Return predictions without those of some rows."""
    columns = {name: getattr(own, name).copy() for name in ABSENT}
    for name, column in columns.items():
        column[rows] = ABSENT[name]
    return structs.replace(own, **columns)


def only_in_one(found: ExperimentDifference) -> Unmatched:
    """Return where the call trees of the two diverge, with what that costs at the scale shown."""
    tree, changes = found.pair.tree, found.costs
    costs = []
    for flags, column in ((found.in_base, changes.base), (found.in_new, changes.new)):
        below = column[:-1] if found.inclusive else inclusive_values(tree, column[:-1])
        occurs = tree.inclusive(flags.astype(float)) > 0
        costs.append(np.where(occurs, np.nan_to_num(below), np.nan))
    return diverging(tree, (costs[0], costs[1]), changes.sums)


_WORSE = re.compile(r"worse\s*(?:>\s*([0-9]+(?:\.[0-9]+)?)\s*%)?")


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """Limits of a comparison.

    Attributes
    ----------
    worse : largest relative increase of a cost, at the largest common scale and at the target;
        None = no limit
    growth : True if no call path may grow faster than before
    """

    worse: float | None = None
    growth: bool = False

    @classmethod
    def parse(cls, text: str) -> RegressionGate:
        """Return the limits of a text such as ``"worse>5%,growth"``; ``worse`` is ``worse>0%``.

        Raises
        ------
        UsageError
            If the text is empty or contains anything else.
        """
        worse, growth = None, False
        for part in (part.strip() for part in text.split(",")):
            said = _WORSE.fullmatch(part)
            if said:
                worse = float(said[1] or 0) / 100
            elif part == "growth":
                growth = True
            else:
                raise UsageError(
                    f"--fail-on {text!r}: {part!r} is no limit",
                    hint="'worse>5%', growth, or both: 'worse>5%,growth'",
                )
        return cls(worse, growth)


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken limit.

    Attributes
    ----------
    limit : ``"worse"`` or ``"growth"``
    row : number of the call path; None = the whole program
    at : scale of the increase, by parameter; None = the growth is faster
    amount : relative increase; for growth, its probability
    """

    limit: str
    row: int | None
    at: Mapping[str, float] | None
    amount: float

    @property
    def scale(self) -> float | None:
        """Value of the parameter at the increase."""
        return None if self.at is None else next(iter(self.at.values()))


def violations(
    found: ExperimentDifference, limits: RegressionGate, rows: IntArray
) -> list[Violation]:
    """Return the broken limits of the call paths in `rows`.

    Only significant differences break a limit. The whole program is judged if all its call paths
    are in `rows`. A call path is judged if it carries cost before or after the change.

    Raises
    ------
    DataError
        If no limit could be broken, because neither noise nor growth is known.
    """
    if limits.worse is not None and not found.can_tell:
        raise DataError(
            "--fail-on worse: nothing was repeated and nothing modelled, so no difference is shown",
            hint="repeat the runs of one of the two, or measure at more scales",
        )
    if limits.growth and found.growth is None:
        raise DataError(
            "--fail-on growth: too few scales for models of both",
            hint="measure at more scales, or leave growth out",
        )
    whole = len(rows) == len(found.order)
    broken = []
    for changes in found.answers:
        if limits.worse is not None:
            broken += list(_worse(changes, limits.worse, rows, whole=whole))
    if limits.growth and found.growth is not None:
        mine = rows[(found.growth.mark[rows] > 0) & _carries_cost(found.changes)[:-1][rows]]
        broken += [
            Violation("growth", int(row), None, float(found.growth.faster[row])) for row in mine
        ]
    return broken


def _worse(changes: Changes, limit: float, rows: IntArray, *, whole: bool) -> Iterator[Violation]:
    broken = (changes.mark > 0) & (np.nan_to_num(changes.relative) > limit)
    broken &= _carries_cost(changes)
    if whole and broken[-1]:
        yield Violation("worse", None, changes.at, float(changes.relative[-1]))
    for row in rows[broken[rows]]:
        yield Violation("worse", int(row), changes.at, float(changes.relative[row]))


def _carries_cost(changes: Changes) -> BoolArray:
    """Return which call paths carry cost, by their share; all, if the metric is not additive."""
    before, after = changes.base, changes.new
    if np.isnan(changes.sums).any():
        return np.ones(len(before), bool)
    least = CARRIES_COST * np.array(changes.sums)
    return np.asarray((before >= least[0]) | (after >= least[1]))


@dataclass(frozen=True, slots=True)
class CausePair:
    """Why the time of a call path grows in two experiments.

    Attributes
    ----------
    base, new : labels as those of `Ranking.why`
    """

    base: str
    new: str

    @property
    def is_change(self) -> bool:
        """True if growth has a known cause now, and had another one or none before."""
        return self.new != self.base and self.new not in {NOTHING, UNEXPLAINED}


def causes_of(found: ExperimentDifference, rows: IntArray) -> list[CausePair]:
    """Return the causes of growth of some call paths before and after, [rows].

    Parameters
    ----------
    found : the comparison
    rows : rows of the common call tree

    Returns
    -------
    list of CausePair
        The label is `NOTHING` where a call path does not occur, where an experiment has no models,
        and in inclusive comparisons.
    """
    labels = [_labels(side, found, rows) for side in (found.pair.base, found.pair.new)]
    return [CausePair(*pair) for pair in zip(*labels, strict=True)]


def _labels(side: AlignedExperiment, found: ExperimentDifference, rows: IntArray) -> list[str]:
    told = [NOTHING] * len(rows)
    fitted, own = side.fitted, side.own_rows()[rows]
    if fitted is None or found.inclusive:
        return told
    target = found.at_target.scale if found.at_target else float(fitted.points[-1])
    known = np.flatnonzero(own >= 0)
    causes = find_causes(fitted, target, own[known]) if len(known) else None
    if causes is not None:
        for place, label in zip(known.tolist(), causes.labels, strict=True):
            told[place] = label
    return told
