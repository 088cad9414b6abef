"""Data of the page of two experiments: models of both on one call tree, and their differences.

The page evaluates the models of both. Whether a difference is beyond noise, and the interval of a
ratio, are those of `cpmodel diff` at each stop of the slider. Between two stops, the page shows
values without intervals, and the doubts of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.changes import Changes
from callpath_modeler.analysis.difference import (
    Differences,
    ExperimentDifference,
    PredictedPair,
)
from callpath_modeler.analysis.pairing import ExperimentPair
from callpath_modeler.analysis.uncertain import MARKS
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.modeling import centre
from callpath_modeler.printable import printable
from callpath_modeler.report.diff_text import growth_cells
from callpath_modeler.report.layout import DEFAULT_STYLE
from callpath_modeler.report.page.page_data import (
    LARGEST,
    MAIN,
    PageColumns,
    add_models,
    add_tree,
    band_codes,
    finite_or_none,
    formulas_of,
    packed,
    shape_numbers,
    targets_between,
)
from callpath_modeler.studies.question import FURTHER
from callpath_modeler.units import setting_text

UNTESTED = 2
"""Stands for the mark of a difference whose noise is not known."""
_SIDES = ("base", "new")


def has_pair_data(found: ExperimentDifference) -> bool:
    """Return whether the page can show other targets: the metric adds up, and models are plain."""
    models = [side.fitted.models for side in found.pair.sides if side.fitted is not None]
    is_plain = all(shape_numbers(shape) is not None for each in models for shape in each.shapes)
    return found.pair.metric.additive and is_plain and len(found.pair.tree) <= LARGEST


@dataclass(frozen=True, slots=True)
class _Stop:
    """Differences at a stop of the slider.

    Attributes
    ----------
    at : value of the parameter
    views : exclusive and inclusive differences
    predicted : predictions of both; None = both ran the scale
    """

    at: float
    views: tuple[Changes, Changes]
    predicted: PredictedPair | None = None

    @property
    def is_measured(self) -> bool:
        """Whether both ran the scale."""
        return self.predicted is None

    def value(self, side: int) -> FloatArray:
        """Return the exclusive values of base (0) or of new (1), [call paths]."""
        changes = self.views[0]
        return (changes.base, changes.new)[side][:-1]

    def ends(self, side: int) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the bands of these values, each [call paths]; NaN = measured."""
        if self.predicted is None:
            nothing = np.full(len(self.value(side)), np.nan)
            return nothing, nothing
        own = self.predicted.sides[side]
        return own.low, own.high


def pair_data(found: ExperimentDifference, show: str) -> str:
    """Return the data of the page, as `page_data.page_data`.

    Parameters
    ----------
    found : the comparison, of a metric that adds up
    show : the command that prints one call path of new, with ``@ID`` for its id
    """
    pair = found.pair
    differences = Differences(pair, found.confidence, found.days)
    target = np.nan if found.at_target is None else found.at_target.scale
    stops = _stops(differences, found, target)
    columns, main = PageColumns(), _main_rows(found, stops)
    header = {
        **add_tree(columns, pair.tree, main),
        **_growths(columns, differences, target),
        "program": pair.new.experiment.name,
        "metric": pair.metric.name,
        "unit": pair.metric.unit,
        "parameter": pair.parameter,
        "held": setting_text(pair.line.held),
        "measuredOnly": not differences.has_models,
        "target": _first_target(found, stops, target),
        "inclusive": found.inclusive,
        "confidence": found.confidence,
        "marks": MARKS,
        "causes": [],
        "isRough": [],
        "show": printable(show),
        "sides": [_add_side(columns, pair, number, stops, main) for number in range(len(_SIDES))],
        "ratios": [_add_ratios(columns, stop, main) for stop in stops],
    }
    return packed({**header, "columns": columns.listed}, columns.blocks)


def _stops(differences: Differences, found: ExperimentDifference, target: float) -> list[_Stop]:
    """Return the stops of the slider: the common scales, then targets of predictions."""
    pair, stops = found.pair, list[_Stop]()
    # Who asks for predictions at a target that both ran wants no measurements there.
    is_predicted = found.ran is not None and not found.is_measured
    for scale in [] if is_predicted else pair.scales.tolist():
        if not differences.has_models or all(differences.repetitions(scale)):
            own, whole = (
                differences.measured(scale, inclusive=inclusive) for inclusive in (False, True)
            )
            stops.append(_Stop(scale, (own, whole)))
    if not differences.has_models:
        return stops
    points = np.concatenate([side.points for side in pair.sides])
    first, last = float(points.min()), float(points.max())
    at = target if np.isfinite(target) else FURTHER * last
    for scale in targets_between(first, last, at, len(pair.tree)).tolist():
        own, whole = (
            differences.at(scale, inclusive=inclusive, predicted=True).changes
            for inclusive in (False, True)
        )
        # The numbers that bands of sums are made of take most memory, and are no longer needed.
        made = differences.predictions(scale)
        sides = [structs.replace(side, added=side.added[:0]) for side in made.sides]
        stops.append(_Stop(scale, (own, whole), replace(made, sides=(sides[0], sides[1]))))
    return stops


def _first_target(found: ExperimentDifference, stops: list[_Stop], target: float) -> float:
    """Return the target of the comparison, else the largest scale that both ran."""
    if np.isfinite(target):
        return target
    measured = [stop.at for stop in stops if stop.is_measured]
    return measured[-1] if measured else FURTHER * float(found.pair.new.points[-1])


def _main_rows(found: ExperimentDifference, stops: list[_Stop]) -> IntArray:
    """Return the call paths whose numbers are stored in full precision."""
    most = np.zeros(len(found.pair.tree))
    for stop in stops:
        for column in (stop.views[1].base, stop.views[1].new):
            cost = np.nan_to_num(column[:-1], posinf=0.0)
            most = np.maximum(most, cost / max(float(cost.max(initial=0.0)), 1e-300))
    rows = [*found.order[: MAIN // 2].tolist(), *np.argsort(-most, kind="stable").tolist()]
    return np.asarray(list(dict.fromkeys(rows))[:MAIN], np.intp)


def _growths(columns: PageColumns, differences: Differences, target: float) -> dict[str, Any]:
    """Add the growths before and after as numbers of texts, and return these texts."""
    numbers = {"": -1}
    rows = np.arange(len(differences.pair.tree))
    at = target if np.isfinite(target) else None
    new = differences.pair.new.fitted
    for name, inclusive in (("", False), ("Below", True)):
        ranks = np.full(len(rows), -1)
        texts = [""] * len(rows)
        if differences.has_models and new is not None:
            at = float(new.points[-1]) if at is None else at
            found = differences.at(at, inclusive=inclusive)
            texts = growth_cells(found, rows, DEFAULT_STYLE)
            assert found.growth is not None, "both have models"
            known = found.growth.after >= 0
            ranks[known] = new.models.growth_rank()[found.growth.after[known]]
        places = [numbers.setdefault(printable(text), len(numbers) - 1) for text in texts]
        columns.add(f"growthText{name}", np.array(places), np.int32)
        columns.add(f"growth{name}", ranks, np.int16)
    return {"growthTexts": [*numbers][1:]}


def _add_side(
    columns: PageColumns, pair: ExperimentPair, number: int, stops: list[_Stop], main: IntArray
) -> dict[str, Any]:
    """Add the measurements and models of one experiment, and return its part of the header."""
    side, name = pair.sides[number], f"{_SIDES[number]}."
    fitted, count = side.fitted, len(side.values)
    columns.add(f"{name}measured", centre(side.values, pair.centre).T, np.float64)
    predicted = [stop for stop in stops if not stop.is_measured]
    known = np.zeros(count, np.bool_)
    for stop in predicted:
        known |= ~np.isnan(stop.value(number))
    columns.add(f"{name}modelled", known, np.uint8)
    if fitted is not None:
        add_models(columns, fitted.models, name, side.rows, count)
    others = np.ones(count, np.bool_)
    others[main] = False
    scales = []
    for stop in stops:
        lowered = np.zeros(count)
        if not stop.is_measured and fitted is not None:
            alone = side.spread(fitted.models.values(np.array([stop.at]))[:, 0])
            with np.errstate(invalid="ignore", divide="ignore"):
                lowered = np.nan_to_num(np.where(alone > 0, 1 - stop.value(number) / alone, 0.0))
            columns.add(f"{name}lowered", lowered[main], np.float64)
            columns.add(f"{name}loweredOthers", lowered[others], np.float32)
        columns.add(f"{name}ends", np.stack(stop.ends(number))[:, main], np.float64)
        scales.append(_scale(stop, number, is_lowered=bool(lowered.any())))
    models = None if fitted is None else fitted.models
    own = side.own_rows()[main]
    formulas = [""] * len(main)
    if fitted is not None:
        written = iter(formulas_of(fitted, own[own >= 0]))
        formulas = [next(written) if row >= 0 else "" for row in own.tolist()]
    return {
        "experiment": printable(side.experiment.name),
        "points": side.points.tolist(),
        "shapes": [] if models is None else [shape_numbers(shape) for shape in models.shapes],
        "formulas": formulas,
        "seen": [each for each in scales if each["kind"] == "seen"],
        "grid": [each for each in scales if each["kind"] == "grid"],
    }


def _scale(stop: _Stop, number: int, *, is_lowered: bool) -> dict[str, Any]:
    """Return the numbers of the whole program at a stop."""
    changes = stop.views[0]
    total = float((changes.base, changes.new)[number][-1])
    band: tuple[float, ...] = (np.nan, np.nan)
    if stop.predicted is not None:
        band = stop.predicted.whole[number][1:]
    return {
        "kind": "seen" if stop.is_measured else "grid",
        "at": stop.at,
        "total": [finite_or_none(end) for end in (total, *band)],
        "whole": finite_or_none(changes.sums[number]),
        "unknown": False,
        "runTime": None,
        "ofTarget": None,
        "expected": None,
        "isLowered": is_lowered,
    }


def _add_ratios(columns: PageColumns, stop: _Stop, main: IntArray) -> list[dict[str, Any]]:
    """Add ratios of new over base with their marks, and return those of the whole program.

    The latter are two: with exclusive and with inclusive values.
    """
    others = np.ones(len(stop.value(0)), np.bool_)
    others[main] = False
    for name, changes in zip(("", "Below"), stop.views, strict=True):
        ratio, low, high = (1 + each[:-1] for each in (changes.relative, changes.low, changes.high))
        columns.add(f"gaps{name}", np.stack([low[main], high[main]]), np.float64)
        codes = band_codes(ratio[others], low[others], high[others])
        columns.add(f"gapCodes{name}", codes, np.uint16)
        columns.add(f"mark{name}", _marks(changes)[:-1], np.int8)
    # Noise is pooled over exclusive or inclusive values, so the intervals of the total differ.
    return [
        {
            "gap": [finite_or_none(1 + float(end[-1])) for end in (changes.low, changes.high)],
            "mark": int(_marks(changes)[-1]),
        }
        for changes in stop.views
    ]


def _marks(changes: Changes) -> FloatArray:
    return np.where(np.isnan(changes.p), UNTESTED, changes.mark)
