"""Predictions against runs that the models have not seen: a sentence, columns and JSON fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.layout import TextColumn, TextStyle
from callpath_modeler.report.table_formats import Cell, json_number
from callpath_modeler.units import counted, parameter_value, percent, setting_text, signed_percent

if TYPE_CHECKING:
    from callpath_modeler.analysis.calibration import BandCalibration
    from callpath_modeler.analysis.rank import Ranking
    from callpath_modeler.analysis.verification import Verification


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


def verification_cells(
    ranking: Ranking, found: Verification, rows: IntArray, others: IntArray, *, style: TextStyle
) -> list[TextColumn]:
    """Return the columns of measurements at the target, and of the bands that hold."""
    unit, additive = ranking.fitted.metric.unit, ranking.fitted.metric.additive
    amounts = [style.amount(value, unit) for value in found.value[rows].tolist()]
    holds = [_word(value) for value in _holds(found, rows)]
    if len(others):
        amounts.append(style.amount(float(np.nansum(found.value[others])), unit))
        holds.append("")
    if additive and ranking.has_imbalance:
        amounts.append("")
        holds.append("")
    if additive:
        amounts.append(style.amount(found.total, unit))
        holds.append(_word(found.holds))
    styles = ["bold" if word == "NO" else "" for word in holds]
    return [
        TextColumn("measured", amounts),
        TextColumn("holds", holds, right=False, styles=styles),
    ]


def _word(holds: Cell) -> str:
    return "" if holds is None else "yes" if holds else "NO"


def verification_columns(found: Verification, rows: IntArray) -> dict[str, list[Cell]]:
    """Return the columns ``verified_value`` and ``holds`` for machines."""
    return {
        "verified_value": [*found.value[rows].tolist()],
        "holds": _holds(found, rows),
    }


def _holds(found: Verification, rows: IntArray) -> list[Cell]:
    known = found.modelled & ~np.isnan(found.value)
    return [bool(found.inside[row]) if known[row] else None for row in rows.tolist()]


def verification_header(found: Verification) -> dict[str, object]:
    """Return the JSON fields of a verification."""
    from callpath_modeler.analysis.verification import FROM

    value, low, high = (json_number(number) for number in found.predicted)
    return {
        "runs": found.runs,
        "total": {
            "measured": json_number(found.total),
            "predicted": value,
            "low": low,
            "high": high,
            "error": json_number(found.error),
            "holds": found.holds,
        },
        "from_share": FROM,
        "callpaths": int(found.judged.sum()),
        "held": int((found.judged & found.inside).sum()),
        "without_prediction": int((found.counts & ~found.modelled).sum()),
        "unknown": json_number(found.unknown),
    }


def calibration_header(known: BandCalibration) -> dict[str, object]:
    """Return the JSON fields of a calibration."""
    return {
        "level": known.level,
        "predictions": known.predictions,
        "held": known.held,
        "sets": known.sets,
        "coverage": json_number(known.coverage),
        "probability": known.probability,
        "too_narrow": known.is_too_narrow,
        "factor": known.factor,
    }
