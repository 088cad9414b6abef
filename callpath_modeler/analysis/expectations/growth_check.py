"""Growths that expectations state, growth limits, and the baseline from today's models.

The model of a sum and the models of its parts are two witnesses. A constant part may hide a growing
one from the model of the sum. A sum has no slower growth than any of its parts, so the parts limit
its growth from below. Small parts do not: the growth of a noisy call path that costs little is not
that of the program.

Bounds allow for today's uncertainty. The bound of a growth is the fastest growth that today's data
do not exclude. The bound of a value is the upper end of its band, plus a margin for differences
between days that repetitions do not show. Bands are those of `Subjects.band`: measured at a
scale that was run, else predicted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from callpath_modeler.analysis.expectations.check_result import Judgement, SubjectVerdicts, Verdict
from callpath_modeler.analysis.expectations.expectation import (
    CriterionKind,
    Expectation,
    Expectations,
    GrowthLimit,
)
from callpath_modeler.analysis.expectations.subjects import Subjects, SumModels
from callpath_modeler.analysis.ideals import CallPathIdeal
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.predict import predict, predicted_values
from callpath_modeler.analysis.scales import scale_to_run
from callpath_modeler.analysis.uncertain import FAR
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import FitStatus, Function, Growth, Models
from callpath_modeler.modeling.expected_growth import (
    MPI_SPACE,
    DeviationLimits,
    ExpectedGrowth,
    GrowthVerdicts,
    deciding_run,
    growth_probabilities,
    judge,
    search_space,
    validate,
)
from callpath_modeler.profile.calltree import CallTree, escape
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.pattern import Patterns, short_name

MATTERS = 0.05
"""Smallest share of a sum, far beyond the data, of the parts that limit its growth."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthOfSubjects:
    """Probabilities of the growth of subjects, each of which is a call path or a sum.

    Attributes
    ----------
    alone : [n, growths] by the model of the subject alone
    table : [n, growths] with the parts of sums
    own : [n] growth of the model of the subject alone, an index into the growths; -1 = no model
    rank : [n] growth to state, another one than `own` if a part grows faster
    part : [n] call path in a sum that grows faster than the model of the sum; -1 = none
    """

    alone: FloatArray
    table: FloatArray
    own: IntArray
    rank: IntArray
    part: IntArray

    @classmethod
    def of(cls, subjects: Subjects, models: Models) -> GrowthOfSubjects:
        """Return the probabilities of growths of subjects with these models."""
        alone = growth_probabilities(models)
        own = models.growth_rank().astype(np.intp)
        table, rank = alone.copy(), own.copy()
        part = np.full(len(subjects), -1, np.intp)
        for k, rows in enumerate(_parts(subjects)):
            if not len(rows) or rank[k] < 0:
                continue
            of_parts = subjects.fitted.models.take(rows)
            place = _places(of_parts, models)
            ranks = place[of_parts.growth_rank()]
            fastest = int(np.argmax(ranks))
            least = int(ranks[fastest])
            if least <= rank[k]:
                continue
            # Slower growths of the sum are at most as probable as those of this part.
            (one,) = growth_probabilities(of_parts.take([fastest]))
            within = np.cumsum(np.bincount(place, one, minlength=alone.shape[1]))
            at_most = np.cumsum(alone[k])
            at_most[:least] = np.minimum(at_most, within)[:least]
            table[k] = np.diff(at_most, prepend=0.0)
            rank[k], part[k] = least, rows[fastest]
        return cls(alone, table, own, rank, part)


def _places(parts: Models, of_sum: Models) -> IntArray:
    """Return the index of each growth of parts among the growths of a sum."""
    growths = of_sum.shapes.growths
    last = len(growths) - 1
    return np.array([min(bisect_left(growths, each), last) for each in parts.shapes.growths])


def _parts(subjects: Subjects) -> list[IntArray]:
    """Return the call paths with a model that matter in each subject; empty if it is no sum."""
    if subjects.rows is not None and not subjects.inclusive:
        return []
    fitted = subjects.fitted
    own = predict(fitted, FAR * float(fitted.points[-1]))
    value, low = np.nan_to_num(own.value), np.where(fitted.modelled, np.nan_to_num(own.low), 0.0)
    tree = fitted.experiment.tree
    begins = np.zeros(1, np.intp) if subjects.rows is None else subjects.rows
    ends = np.array([len(tree)]) if subjects.rows is None else tree.end[subjects.rows]
    found = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        least = MATTERS * float(value[begin:end].sum())
        found.append(begin + np.flatnonzero((low[begin:end] >= least) & (low[begin:end] > 0)))
    return found


_SHOWN = 0.05
"""Smallest probability of a growth that is named."""


@dataclass(frozen=True, eq=False)
class GrowthCheck:
    """Models compared with growth limits.

    Attributes
    ----------
    growths : all growths that subjects can have, slowest first
    adjusted_r2 : [n] of the models
    verdicts : [n] by the models and by the parts of sums
    growth : [n] probabilities of growths
    disagrees : [n] True if the model of a sum decides, but not together with its parts
    models : [n] models with bands; None = the published method, which chooses one growth each
    """

    growths: tuple[Growth, ...]
    adjusted_r2: FloatArray
    verdicts: GrowthVerdicts
    growth: GrowthOfSubjects
    disagrees: BoolArray
    models: Models | None

    @classmethod
    def of(
        cls, subjects: Subjects, models: Models, limits: DeviationLimits, confidence: float
    ) -> GrowthCheck:
        """Return the models of subjects compared with limits."""
        alone, growth = judge(models, limits, confidence), GrowthOfSubjects.of(subjects, models)
        side = np.array([limits.side(each) for each in models.shapes.growths])
        raised = (growth.table != growth.alone).any(axis=1)
        below, within, above = (
            np.where(raised, np.where(side == which, growth.table, 0.0).sum(axis=1), by_model)
            for which, by_model in ((-1, alone.below), (0, alone.within), (1, alone.above))
        )
        # Neither witness decides against the other one.
        kept = alone.kept & (within >= confidence)
        broken = alone.broken & (np.where(alone.outside, above, below + above) >= confidence)
        found = GrowthVerdicts(limits, below, within, above, alone.outside, kept, broken)
        disagrees = (alone.kept & ~kept) | (alone.broken & ~broken)
        return cls(models.shapes.growths, models.adjusted_r2, found, growth, disagrees, models)

    @classmethod
    def published(
        cls, subjects: Subjects, expected: Growth, limits: DeviationLimits
    ) -> GrowthCheck:
        """Return the growths that the published method chooses, compared with limits.

        A growth is chosen from `search_space`. Where nothing of that space grows as a power,
        `MPI_SPACE` is added. Without a choice, the verdict is open.

        References
        ----------
        Shudler, Berens, Calotoiu, Hoefler, Strube, Wolf: Engineering Algorithms for Scalability
        through Continuous Validation of Performance Expectations (TPDS 30(8), 2019), section 3.
        """
        space = search_space(expected)
        if not expected.exponent and not expected.rate:
            space = tuple(sorted({*space, *MPI_SPACE}))
        whole, fitted = subjects.run_time, subjects.fitted
        values = subjects.sums(fitted.measured) if whole is None else whole.measured
        result = validate(fitted.points, values, ExpectedGrowth.of(expected), space)
        chosen = result.chosen.astype(np.intp)
        table = (chosen[:, None] == np.arange(len(space))).astype(np.float64)
        side = np.array([*(limits.side(each) for each in space), 0])[chosen]
        is_known = chosen >= 0
        below, within, above = (
            np.where(is_known, (side == which).astype(np.float64), np.nan) for which in (-1, 0, 1)
        )
        no = np.zeros(len(chosen), np.bool_)
        verdicts = GrowthVerdicts(limits, below, within, above, no, within == 1, side != 0)
        growth = GrowthOfSubjects(table, table, chosen, chosen, np.full(len(chosen), -1))
        return cls(space, result.adjusted_r2, verdicts, growth, no, None)

    # A file has up to 10^5 expectations of one call path each: lists are read faster than arrays.

    @cached_property
    def within(self) -> list[float]:
        """Probability that the growth is within the limit, [n]; NaN = no model."""
        return list(self.verdicts.within.tolist())

    @cached_property
    def is_doubtful(self) -> list[bool]:
        """True if no law explains the measurements, or a model and its parts disagree, [n]."""
        return list((self.verdicts.outside | self.disagrees).tolist())

    @cached_property
    def is_broken(self) -> list[bool]:
        """True if the limit is broken, [n]."""
        return list(self.verdicts.broken.tolist())

    @cached_property
    def is_open(self) -> list[bool]:
        """True if the data do not decide, [n]."""
        return list((~(self.verdicts.kept | self.verdicts.broken)).tolist())

    def is_kept(self, places: IntArray, confidence: float) -> list[bool]:
        """Return whether the limit is met by each subject alone, as `judge_growth` says."""
        within, doubtful = self.verdicts.within[places], self.verdicts.outside | self.disagrees
        met = (1 - within <= 1 - confidence) & ~doubtful[places] & ~self.verdicts.broken[places]
        return list(met.tolist())

    @cached_property
    def ranks(self) -> list[int]:
        """The growth to state, [n]; -1 = no model."""
        return list(self.growth.rank.tolist())

    @cached_property
    def _in_order(self) -> tuple[IntArray, list[int]]:
        """Growths from the most probable to the least, and how many of them are named, [n]."""
        table = self.growth.table
        least = np.minimum(_SHOWN, table.max(axis=1, keepdims=True))
        return np.argsort(-table, axis=1, kind="stable"), (table >= least).sum(axis=1).tolist()

    def probable_growths(self, place: int) -> list[int]:
        """Return the growths of a subject that are named, the most probable first."""
        order, count = self._in_order
        return list(order[place, : count[place]].tolist())


def judge_growth(
    limit: GrowthLimit,
    subjects: Subjects,
    confidence: float,
    check: GrowthCheck,
    places: IntArray,
) -> Judgement:
    """Return the judgement of a growth limit.

    A limit is broken if one subject exceeds it with a probability of at least `confidence`. It is
    met if the probabilities of exceeding it, summed over subjects, are at most 1 - `confidence`.

    Parameters
    ----------
    check : models compared with the limit, those of these subjects among them
    places : their places in it
    """
    its: list[int] = places.tolist()
    known = [check.within[k] == check.within[k] for k in its]
    beyond = [
        1 - check.within[k] if is_known else 1.0 for k, is_known in zip(its, known, strict=True)
    ]
    surely_out, open_ = [check.is_broken[k] for k in its], [check.is_open[k] for k in its]
    within = all(known) and not any(check.is_doubtful[k] for k in its)
    kept = within and sum(beyond) <= (1 - confidence) * len(subjects)
    verdict = Verdict.BROKEN if any(surely_out) else Verdict.KEPT if kept else Verdict.UNSURE
    growths, worst = check.growths, 0
    if len(subjects) > 1:
        fastest = check.growth.table[places] @ np.arange(len(growths))
        worst = int(
            np.lexsort((fastest, np.array(beyond), np.array(open_), np.array(surely_out)))[-1]
        )
    named, probability = list[int](), check.growth.table[its[worst]]
    if known[worst]:
        named = check.probable_growths(its[worst])
        # Rankings show the growth of the model, which need not be the most probable one.
        own = check.ranks[its[worst]]
        if verdict is not Verdict.BROKEN or limit.limits.side(growths[own]):
            named = [own, *(each for each in named if each != own)]
    decides, place = None, its[worst]
    disagrees = bool(check.disagrees[place]) and check.growth.part[place] >= 0
    if verdict is Verdict.UNSURE and not disagrees and check.models is not None:
        undecided = check.models.take([place])
        run = float(deciding_run(undecided, limit.limits, confidence)[0])
        decides = scale_to_run(undecided.points, run) if np.isfinite(run) else None
    return Judgement(
        limit,
        verdict,
        subjects.row(worst),
        judged=len(subjects),
        broken=sum(surely_out),
        unsure=sum(open_),
        unmodelled=float(not known[worst]),
        outside=bool(check.verdicts.outside[place]),
        growths=tuple((growths[k], float(probability[k])) for k in named),
        meaning=subjects.meaning(worst, of_growth=True),
        beyond=beyond[worst] if known[worst] else None,
        adjusted_r2=float(check.adjusted_r2[place]) if known[worst] else None,
        decides=decides,
        alone=growths[int(check.growth.own[place])] if disagrees else None,
        part=int(check.growth.part[place]) if disagrees else None,
        each=SubjectVerdicts(subjects.rows, surely_out, open_),
    )


def unnamed(
    expectations: Expectations,
    size: int,
    is_about: Callable[[Expectation], bool],
    rows_of: Callable[[Expectation], IntArray],
) -> BoolArray:
    """Return the call paths that no expectation names, [call paths]; ``others`` selects from them.

    Parameters
    ----------
    expectations : all expectations of the file
    size : number of call paths
    is_about : whether an expectation is about the metric
    rows_of : function that returns the call paths of a pattern
    """
    found = np.ones(size, bool)
    for one in expectations.expectations:
        if one.callpath is not None and not one.others and is_about(one):
            found[rows_of(one)] = False
    return found


def growth_ideal(
    expectations: Expectations,
    tree: CallTree,
    parameter: str,
    others: Scaling,
    is_about: Callable[[Expectation], bool],
) -> CallPathIdeal:
    """Return the costs that the growths of a file expect.

    A lower limit (``>=``) expects nothing. An inclusive growth applies to the subtree, and the
    growth of the whole program to all call paths, as far as no expectation is closer to the call
    path. Of several limits of one call path, the slowest growth applies.

    Parameters
    ----------
    expectations : the expectations of a file
    tree : the call tree
    parameter : parameter of the scales; growths in other parameters do not apply
    others : scaling of call paths without a growth
    is_about : whether an expectation is about the metric

    Raises
    ------
    UsageError
        If no growth applies to any call path.
    InputError
        If a pattern of the file is malformed.
    """
    written, patterns = expectations.written, Patterns.of(tree)
    patterns.prepare([one.callpath or "" for one in expectations.expectations])

    def rows_of(one: Expectation) -> IntArray:
        try:
            return patterns.rows(one.callpath or "**")
        except UsageError as cause:
            written.refuse((*one.place, "callpath"), cause.message, cause.hint or "")

    known: dict[Growth, int] = {}
    texts: list[str] = []
    own = np.full(len(tree), -1)
    below, whole, without = own.copy(), own.copy(), 0
    growths: list[Growth] = []
    free = unnamed(expectations, len(tree), is_about, rows_of)
    for one in expectations.expectations:
        limit = _upper(one, parameter)
        if limit is None or not is_about(one):
            continue
        number = known.setdefault(limit.expected, len(known))
        if number == len(growths):
            growths.append(limit.expected)
            texts.append(limit.expected.text(parameter))
        if one.callpath is None:
            _set_slower(whole, np.arange(len(tree)), number, growths)
            continue
        rows = rows_of(one)
        rows = rows[free[rows]] if one.others else rows
        without += not len(rows)
        _set_slower(below if one.inclusive else own, rows, number, growths)
    for level in tree.levels()[1:]:
        callers = below[tree.parent[level]]
        below[level] = np.where(below[level] < 0, callers, below[level])
    which = np.where(own >= 0, own, np.where(below >= 0, below, whole))
    if not (which >= 0).any():
        raise UsageError(
            f"{written.path} states no growth in {parameter} for these call paths and this metric",
            hint="add [[expect]] with callpath and growth; `cpmodel check` shows what is selected",
        )
    used, number_of = np.unique(which, return_inverse=True)
    first = int(used[0] >= 0)  # -1 comes first, if it occurs
    numbers = used[used >= 0].tolist()
    functions = tuple((texts[number], Function(growth=growths[number])) for number in numbers)
    which = number_of.ravel() + first - 1
    return CallPathIdeal(written.path, functions, which, others, parameter, without)


def _upper(expectation: Expectation, parameter: str) -> GrowthLimit | None:
    """Return the growth limit of an expectation, unless it is a lower one; None = it has none."""
    for one in expectation.criteria:
        if isinstance(one, GrowthLimit) and one.limits.high is not None:
            return one if one.parameter in (None, parameter) else None
    return None


def _set_slower(which: IntArray, rows: IntArray, number: int, growths: list[Growth]) -> None:
    """Set the growth of call paths where they have none or a faster one."""
    is_faster = np.array([growths[number] < growth for growth in growths] + [True])
    which[rows] = np.where(is_faster[which[rows]], number, which[rows])


COVER = 0.99
MARGIN = 0.1

_EXACT = 1e-5
"""A band narrower than this, relative to its value, belongs to an exact number."""


@dataclass(frozen=True, slots=True)
class BaselineSettings:
    """Options of a baseline.

    Attributes
    ----------
    target : finite scale of the bounds; None = the largest measured one
    cover : share of the cost that the listed call paths have together
    most : largest number of listed call paths; None = as many as `cover` needs
    margin : relative margin above the band of a value
    """

    target: float | None = None
    cover: float = COVER
    most: int | None = None
    margin: float = MARGIN


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """One expectation that today's models meet.

    Attributes
    ----------
    row : number of the call path; None = the whole program
    pattern : pattern that selects only this call path
    growth : the growth of the model; None = no model
    probability : probability of that growth
    limit : the fastest possible growth; None = no law explains the measurements
    value, high : measured or predicted value, and the upper end of its band; of the whole program
        the run time, if it is recorded
    bound : bound of the value; 0 is a bound as well
    share : share of the cost of the program at the target; NaN = the metric is not additive
    """

    row: int | None
    pattern: str
    growth: Growth | None
    probability: float
    limit: Growth | None
    value: float
    high: float
    bound: float
    share: float


@dataclass(frozen=True, eq=False)
class Baseline:
    """Expectations that today's models meet.

    Attributes
    ----------
    fitted : the models
    margin : relative margin above the band of a value
    target : scale of the bounds
    repetitions : number of runs at the target if values are measured; 0 = they are predicted
    entries : the whole program, if the metric is additive, and call paths in descending order of
        cost
    others : common bound of all other call paths with known cost; 0 = there are none
    left : number of these
    """

    fitted: Fitted
    margin: float
    target: float
    repetitions: int
    entries: tuple[BaselineEntry, ...]
    others: float
    left: int


def baseline(fitted: Fitted, settings: BaselineSettings | None = None) -> Baseline:
    """Return expectations that models meet, for the call paths with most of the cost.

    Raises
    ------
    DataError
        If nothing can be predicted.
    """
    settings = settings or BaselineSettings()
    target = float(fitted.points[-1]) if settings.target is None else settings.target
    measured = Measured(fitted)
    point = measured.point(target)
    value = predicted_values(fitted, target) if point is None else fitted.measured[:, point]
    known = np.flatnonzero(~np.isnan(value))
    if not len(known) or not (fitted.modelled.any() or measured.is_repeated):
        raise DataError("no call path has a model: nothing to expect", hint="see `cpmodel rank`")
    order = known[np.argsort(-value[known], kind="stable")]
    number = _how_many(value[order], settings, additive=fitted.metric.additive)
    rows, rest = order[:number], np.sort(order[number:])
    high = _upper_ends(measured, rest, target)
    if number and settings.most is None:
        # What may cost more than the cheapest of these for all we know has a line of its own: the
        # bound of all others is to be as tight as what is known of them.
        uncertain = high > value[order[number - 1]]
        rows, rest, high = np.append(rows, rest[uncertain]), rest[~uncertain], high[~uncertain]
    patterns = Patterns.of(fitted.experiment.tree)
    parts = [Subjects(measured, None)] if fitted.metric.additive else []
    parts += [Subjects(measured, rows)] if len(rows) else []
    return Baseline(
        fitted,
        settings.margin,
        target,
        0 if point is None else measured.repetitions(point),
        tuple(
            entry for part in parts for entry in _entries(part, patterns, target, settings.margin)
        ),
        float(high.max(initial=0.0)) * (1 + settings.margin),
        len(rest),
    )


def _how_many(value: FloatArray, settings: BaselineSettings, *, additive: bool) -> int:
    """Return how many of the largest values make up enough of the sum."""
    number = int((value > 0).sum())
    if additive and number:
        covered = np.cumsum(value) / value.sum()
        number = min(number, int(np.searchsorted(covered, settings.cover * (1 - _EXACT))) + 1)
    return number if settings.most is None else min(number, settings.most)


def _upper_ends(measured: Measured, rows: IntArray, target: float) -> FloatArray:
    """Return upper ends of bands that hold simultaneously for these call paths, [rows]."""
    if not len(rows):
        return np.zeros(0)
    confidence = 1 - (1 - measured.fitted.models.confidence) / len(rows)
    return Subjects(measured, rows).band(CriterionKind.VALUE, target, confidence).high


def _entries(
    subjects: Subjects, patterns: Patterns, target: float, margin: float
) -> list[BaselineEntry]:
    fitted = subjects.fitted
    # Growth and value are judged together, each as much surer.
    confidence = 1 - (1 - fitted.models.confidence) / 2
    models = SumModels(fitted).of_subjects(subjects)
    growths, growth = models.shapes.growths, GrowthOfSubjects.of(subjects, models)
    table, ranks = growth.table, growth.rank.tolist()
    band = subjects.band(CriterionKind.VALUE, target, confidence)
    share = np.full(len(subjects), np.nan)
    if fitted.metric.additive:
        share = subjects.band(CriterionKind.SHARE, target, confidence).value
    rows = [subjects.row(k) for k in range(len(subjects))]
    spelled = patterns_of(patterns, [row for row in rows if row is not None])
    found, has_model = [], fitted.modelled.tolist()
    for k, row in enumerate(rows):
        # The fastest growth beyond which not more is probable than the confidence leaves.
        beyond = 1 - np.cumsum(table[k])
        limit = growths[int(np.argmax(beyond <= 1 - confidence))]
        value, low, high = band.at(k)
        exact = high - low <= _EXACT * value
        own = max(ranks[k], 0)
        modelled = row is None or has_model[row]
        lawful = modelled and models.status[k] != FitStatus.OUTSIDE
        found.append(
            BaselineEntry(
                row,
                "" if row is None else spelled[k],
                growths[own] if modelled else None,
                float(table[k, own]),
                limit if lawful else None,
                value,
                high,
                value if exact else high * (1 + margin),
                float(share[k]),
            )
        )
    return found


def patterns_of(patterns: Patterns, rows: Sequence[int]) -> list[str]:
    """Return a pattern for each call path: with short names, with full names, or its id."""
    tree = patterns.tree
    brief = tree.paths(rows, lambda name: escape(short_name(name)))
    patterns.prepare(brief)
    # Names may hold what patterns give a meaning, or what no file in UTF-8 can hold.
    return [
        next(
            (text for text in texts if text.isprintable() and _names_alone(patterns, text, row)),
            f"@{patterns.ids[row]}",
        )
        for row, *texts in zip(rows, brief, tree.paths(rows), strict=True)
    ]


def _names_alone(patterns: Patterns, pattern: str, row: int) -> bool:
    """Return True if a pattern selects this call path only."""
    try:
        return np.array_equal(patterns.rows(pattern), [row])
    except UsageError:
        return False
