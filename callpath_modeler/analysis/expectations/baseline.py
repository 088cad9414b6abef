"""Expectations from today's models: the baseline of later comparisons.

Bounds allow for today's uncertainty. The bound of a growth is the fastest growth that today's data
do not exclude. The bound of a value is the upper end of its band, plus a margin for differences
between days that repetitions do not show. Bands are those of `Subjects.band`: measured at a
scale that was run, else predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.expectations.expectation import CriterionKind
from callpath_modeler.analysis.expectations.growth_of_sums import GrowthOfSubjects
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.sum_models import SumModels
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.analysis.predict import predicted_values
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import FitStatus, Growth
from callpath_modeler.profile.calltree import escape
from callpath_modeler.profile.pattern import Patterns, short_name

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
