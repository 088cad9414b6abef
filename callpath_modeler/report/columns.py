"""Columns that rankings and views share: costs, verdicts, verification."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.uncertain import marks_text
from callpath_modeler.arrays import FloatArray
from callpath_modeler.printable import shell_word
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.table_formats import Cell
from callpath_modeler.units import counted, parameter_value, percent, setting_text, signed_percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer, Ranking
    from callpath_modeler.analysis.expectations.check_result import Check
    from callpath_modeler.analysis.verification import BandCalibration, Verification
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.report.layout import Invocation


MODEL_NOTE = "model: error of the models' prediction against the measurement at the target"
"""Definition of the column ``model``."""


def value_titles(answer: Answer) -> tuple[str, str]:
    """Return the titles of values at the largest scale and at the target: ``p=125``, ``p=1000``.

    In a comparison, the first title is that of the smaller scale.
    """
    fitted, target = answer.fitted, answer.target
    if fitted.has_unknown_scale:
        return fitted.metric.name, fitted.metric.name
    before = answer.base if answer.is_comparison else fitted.points[-1]
    largest, there = (f"{fitted.parameter}={parameter_value(at)}" for at in (before, target))
    # The prediction for the largest scale is next to the measurement there.
    return largest, "predicted" if there == largest and not answer.repetitions else there


def band_title(answer: Answer) -> str:
    """Return the title of the column of prediction bands, or of confidence intervals."""
    confidence = answer.fitted.models.confidence
    return f"{confidence:.0%} {'interval' if answer.repetitions else 'band'}"


def band_text(low: float, high: float, unit: str, *, style: TextStyle) -> str:
    """Return a band or an interval as text; ``-`` without one."""
    return "-" if math.isnan(low) else style.interval(low, high, unit)


def amount_text(value: float, low: float, high: float, unit: str, *, style: TextStyle) -> str:
    """Return a value with its band or interval, if it has one: ``2.03 s (1.99 … 2.06 s)``."""
    amount = style.amount(value, unit)
    if math.isnan(low):
        return amount
    return f"{amount} ({style.interval(low, high, unit)})"


def marks_cells(marks: Iterable[int]) -> list[Cell]:
    """Return marks of trust as cells of files; None = no band."""
    return [int(mark) if mark >= 0 else None for mark in marks]


def mark_text(mark: int | None) -> str:
    """Return a cell of marks of trust as text."""
    return marks_text(-1 if mark is None else mark)


def share_texts(answer: Answer, before: Sequence[float], after: Sequence[float]) -> list[str]:
    """Return shares at the largest scale and at the target; only one if the scales are the same."""
    if repeats_the_largest(answer) or answer.fitted.is_measured_only:
        return [percent(share) for share in after]
    pairs = zip(before, after, strict=True)
    return [f"{percent(first)} → {percent(then)}" for first, then in pairs]


def repeats_the_largest(answer: Answer) -> bool:
    """Return whether the values at the target are the values at the largest scale."""
    return answer.repetitions > 0 and answer.target == answer.fitted.points[-1]


def has_maxima(fitted: Fitted, maximum: FloatArray) -> bool:
    """Return whether maxima over processes differ from the exclusive values (means or sums)."""
    several = any(run.extent.processes > 1 for run in fitted.experiment.runs)
    reduced = fitted.experiment.reduction in {Reduction.MEAN, Reduction.SUM}
    return several and reduced and not bool(np.isnan(maximum).all())


def max_title(fitted: Fitted) -> str:
    """Return the title of maxima over processes, which are of the largest scale."""
    if fitted.has_unknown_scale:
        return "max"
    return f"max {fitted.parameter}={parameter_value(fitted.points[-1])}"


def ratio_text(ratio: float) -> str:
    """Return an imbalance as text; ``-`` if it is not known."""
    return "-" if math.isnan(ratio) else f"{ratio:.2f}"


def verdict_note(check: Check, invocation: Invocation) -> str:
    """Return counts of the results of all expectations, and the command with the details."""
    from callpath_modeler.report.test_reports import last_line

    command = invocation.line("check", shell_word(check.path))
    return f"expectations: {last_line(check)}. Details: {command}"


def verdict_header(check: Check) -> dict[str, object]:
    """Return the JSON fields of all expectations; ``program`` is the one of the whole program."""
    program = check.of_call_paths().get(None)
    return {
        "file": check.path,
        "passed": check.passed,
        "counts": {str(status): number for status, number in check.counts().items()},
        "program": None if program is None else str(program[0]),
    }


def verification_sentences(ranking: Ranking, found: Verification, *, style: TextStyle) -> list[str]:
    """Return the measured and the predicted total, and how many bands hold."""
    from callpath_modeler.analysis.verification import FROM

    fitted, unit = ranking.fitted, ranking.fitted.metric.unit
    where = f"measured at {parameter_value(ranking.target)}"
    if fitted.parameter != "p" or fitted.held:
        where = f"measured at {setting_text(fitted.at(ranking.target))}"
    lines = []
    if fitted.metric.additive:
        said = amount_text(*found.predicted, unit, style=style)
        verdict = "the band holds" if found.holds else "the band does NOT hold"
        lines.append(
            f"{where}: {style.amount(found.total, unit)}; predicted: {said}; "
            f"error {signed_percent(found.error)}, {verdict}."
        )
    judged, held = int(found.judged.sum()), int((found.judged & found.inside).sum())
    of_what = f"with at least {percent(FROM, 1)} of the measured {fitted.metric.name}"
    lines.append(
        f"{where}, {counted(found.runs, 'run')}: the bands of {held} of "
        f"{counted(judged, 'call path')} {of_what} hold, given the scatter of "
        f"{'a single run' if found.runs == 1 else counted(found.runs, 'run')}."
    )
    missing = int((found.counts & ~found.modelled).sum())
    if missing:
        lines.append(f"{counted(missing, 'call path')} of these have no prediction.")
    if fitted.metric.additive and found.unknown > FROM * found.total:
        unknown = style.amount(found.unknown, unit)
        lines.append(f"Call paths that the models have never seen take {unknown} there.")
    return lines


def verification_header(found: Verification) -> dict[str, object]:
    """Return the JSON fields of a verification."""
    from callpath_modeler.analysis.verification import FROM

    value, low, high = found.predicted
    return {
        "runs": found.runs,
        "total": {
            "measured": found.total,
            "predicted": value,
            "low": low,
            "high": high,
            "error": found.error,
            "holds": found.holds,
        },
        "from_share": FROM,
        "callpaths": int(found.judged.sum()),
        "held": int((found.judged & found.inside).sum()),
        "without_prediction": int((found.counts & ~found.modelled).sum()),
        "unknown": found.unknown,
    }


def calibration_header(known: BandCalibration) -> dict[str, object]:
    """Return the JSON fields of a calibration."""
    return {
        "level": known.level,
        "predictions": known.predictions,
        "held": known.held,
        "sets": known.sets,
        "coverage": known.coverage,
        "probability": known.probability,
        "too_narrow": known.is_too_narrow,
        "factor": known.factor,
    }
