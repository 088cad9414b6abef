"""Scores of remembered predictions: text, table, and a sentence about corrected bands."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.uncertain import marks_text
from callpath_modeler.analysis.verification import FROM, BandCalibration
from callpath_modeler.history.predictions import MarkScore, Scoreboard, ScoredPrediction
from callpath_modeler.printable import shell_word
from callpath_modeler.report.columns import amount_text, band_text, calibration_header
from callpath_modeler.report.layout import TextColumn, TextStyle, table
from callpath_modeler.report.table_formats import Cell, Table, json_number
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    setting_text,
    signed_percent,
    significant,
)

_MOST_TARGETS = 8
MARK_TITLES = ("marks", "predictions", "bands hold", "median error")
PATH_TITLES = ("measured", "predicted", "band", "error", "holds", "trust")


def score_verdict(found: Scoreboard) -> str:
    """Return how many bands hold, in one sentence."""
    known = found.calibration
    if not known.predictions:
        return "No remembered prediction was measured yet."
    return (
        f"{found.metric}: {known.held} of {counted(known.predictions, 'prediction band')} hold, "
        f"in {counted(known.sets, 'independent set')} of runs."
    )


def score_remarks(found: Scoreboard, store: Path) -> list[str]:
    """Return what the scores mean, and what to do."""
    known, lines = found.calibration, []
    if known.predictions:
        lines.append(_promise(known))
        if known.factor != 1:
            lines.append(
                f"Correct later bands: cpmodel rank EXP --target P --calibrated "
                f"{shell_word(str(store))} makes them {_times(known.factor)}."
            )
    if found.open:
        scales = sorted({(each.parameter, each.scale) for each in found.open})
        targets = ", ".join(setting_text({name: scale}) for name, scale in scales[:_MOST_TARGETS])
        number = counted(len(found.open), "remembered ranking")
        lines.append(f"Not measured yet, at {targets}: {number}.")
    if found.others:
        number = counted(found.others, "ranking")
        lines.append(f"Not compared, because of another metric, level or label: {number}.")
    return lines


def _promise(known: BandCalibration) -> str:
    """Return whether bands hold as often as promised."""
    share, promise = percent(known.coverage), percent(known.level)
    weighed = "With the same weight for each set, " * (known.sets > 1) + f"{share} hold"
    bound = percent(known.probability, 0 if known.probability >= 0.01 else 1)
    if known.coverage >= known.level:
        return f"{weighed}: the promise of {promise} is kept so far."
    chance = f"a probability of at most {bound} if each band keeps the promise of {promise}"
    if known.is_too_narrow:
        return f"{weighed}. Bands are too narrow: so many misses have {chance}."
    few = " A single set of runs never suffices." * (known.sets == 1)
    return f"{weighed}. This does not yet show narrow bands: so many misses have {chance}.{few}"


def _times(factor: float) -> str:
    return f"{significant(factor)} times as wide as those of the models, on a logarithmic scale"


def calibration_sentence(found: Scoreboard, store: Path) -> str:
    """Return how bands of a ranking were corrected, and on how many predictions this rests."""
    known, name = found.calibration, store.name
    if not known.predictions:
        return f"Bands are those of the models: {name} has no scored prediction like these."
    rests = (
        f"{counted(known.predictions, 'scored prediction')} in "
        f"{counted(known.sets, 'independent set')} of runs ({name}; {percent(known.coverage)} held)"
    )
    if known.factor == 1:
        return f"Bands are those of the models; {rests} ask for no wider ones."
    return f"Bands are {_times(known.factor)}. This rests on {rests}."


def case_text(case: ScoredPrediction, style: TextStyle) -> str:
    """Return the total of one prediction, and how many bands of call paths hold."""
    made, unit = case.prediction, case.prediction.unit
    where = setting_text({made.parameter: made.scale, **made.held})
    ends = " … ".join(dict.fromkeys(parameter_value(made.scales[end]) for end in (0, -1)))
    what = "run time" if made.is_run_time else "total"
    held = f"{int(case.holds.sum())} of {counted(len(case.holds), 'call path')} hold"
    commit = f" of commit {made.commit}" * bool(made.commit)
    begin = f"{where}, predicted from {made.parameter} = {ends}{commit}: "
    if case.total_holds is None:
        return f"{begin}the bands of {held}."
    said = amount_text(*made.total, unit, style=style)
    verdict = "the band holds" if case.total_holds else "the band does NOT hold"
    return (
        f"{begin}{what} {style.amount(case.total, unit)}, predicted {said}, error "
        f"{signed_percent(case.total_error)}, {verdict}; the bands of {held}."
    )


def score_marks_cells(score: MarkScore) -> tuple[str, str, str, str]:
    """Return the texts of one row of the calibration table."""
    number = score.predictions
    held = f"{score.held} ({percent(score.held / number)})" if number else "-"
    error = "-" if math.isnan(score.error) else percent(score.error)
    return marks_text(score.marks), str(number), held, error


def score_path_cells(case: ScoredPrediction, row: int, style: TextStyle) -> tuple[str, ...]:
    """Return the texts of one predicted call path, in the order of `PATH_TITLES`."""
    unit = case.prediction.unit
    value, low, high = case.bands[row].tolist()
    return (
        style.amount(float(case.measured[row]), unit),
        style.amount(value, unit),
        band_text(low, high, unit, style=style),
        signed_percent(float(case.error[row])),
        "yes" if case.holds[row] else "NO",
        marks_text(int(case.trust[row])),
    )


def score_rows(found: Scoreboard) -> list[tuple[ScoredPrediction, int]]:
    """Return all scored call paths: the newest prediction first, then by measured value."""
    return [
        (case, row)
        for case in reversed(found.cases)
        for row in np.argsort(-case.measured, kind="stable").tolist()
    ]


def scores_text(found: Scoreboard, store: Path, top: int, style: TextStyle) -> list[Text]:
    """Return scores as lines of text.

    Parameters
    ----------
    store : file of the history
    top : number of call paths that are listed
    """
    say = style.say
    lines = style.lines([score_verdict(found)], "bold")
    lines += style.lines(score_remarks(found, store), "dim")
    if not found.cases:
        return lines
    lines += style.lines(case_text(case, style) for case in reversed(found.cases))
    scores = [score_marks_cells(each) for each in found.marks if each.predictions]
    columns = [
        TextColumn(title, [say(cells[k]) for cells in scores])
        for k, title in enumerate(MARK_TITLES)
    ]
    lines.append(Text(""))
    lines += [
        Text(line.plain.rstrip()) for line in table(columns, [[""]] * len(scores), None, title="")
    ]
    rows = score_rows(found)
    shown = rows[:top]
    cells = [score_path_cells(case, row, style) for case, row in shown]
    columns = [
        TextColumn(
            title,
            [each[k] for each in cells],
            right=title != "holds",
            droppable=1 if title in {"trust", "error"} else 0,
            styles=["bold" if each[k] == "NO" else "" for each in cells],
        )
        for k, title in enumerate(PATH_TITLES)
    ]
    scales = [parameter_value(case.prediction.scale) for case, _ in shown]
    columns.insert(0, TextColumn(found.cases[-1].prediction.parameter, scales))
    lines += [Text(""), *style.table(columns, [[case.callpaths[row]] for case, row in shown])]
    if len(rows) > len(shown):
        lines.append(Text(f"{counted(len(rows) - len(shown), 'other')}: -n all", style="dim"))
    note = f"call paths with at least {percent(FROM, 1)} of the measured {found.metric}"
    return [*lines, *style.lines([note], "dim")]


def scores_table(found: Scoreboard, top: int | None = None) -> Table:
    """Return scores as a table: one row for each predicted call path that was measured."""
    rows = score_rows(found)[:top]
    columns: dict[str, list[Cell]] = {
        "callpath": [case.callpaths[row] for case, row in rows],
        "metric": [case.prediction.metric for case, _ in rows],
        "parameter": [case.prediction.parameter for case, _ in rows],
        "target": [case.prediction.scale for case, _ in rows],
        "values": ["inclusive" if case.prediction.inclusive else "exclusive" for case, _ in rows],
        "predicted": [float(case.bands[row, 0]) for case, row in rows],
        "low": [float(case.bands[row, 1]) for case, row in rows],
        "high": [float(case.bands[row, 2]) for case, row in rows],
        "measured": [float(case.measured[row]) for case, row in rows],
        "error": [float(case.error[row]) for case, row in rows],
        "holds": [bool(case.holds[row]) for case, row in rows],
        "trust": [mark if (mark := int(case.trust[row])) >= 0 else None for case, row in rows],
        "model": [
            case.prediction.models[case.prediction.callpaths.index(case.callpaths[row])]
            for case, row in rows
        ],
        "method": [case.prediction.method for case, _ in rows],
        "commit": [case.prediction.commit or None for case, _ in rows],
        "predicted_at": [case.prediction.time for case, _ in rows],
        "measured_at": [case.outcome.time for case, _ in rows],
    }
    units = {each.prediction.unit for each in found.cases}
    united = ("predicted", "low", "high", "measured")
    marks = [
        {
            "marks": each.marks,
            "predictions": each.predictions,
            "held": each.held,
            "median_error": json_number(each.error),
        }
        for each in found.marks
    ]
    header = {
        "metric": found.metric,
        "calibration": calibration_header(found.calibration),
        "marks": marks,
        "totals": [_total_json(case) for case in reversed(found.cases)],
        "without_runs": len(found.open),
        "others": found.others,
    }
    return Table(columns, dict.fromkeys(united, units.pop()) if len(units) == 1 else {}, header)


def _total_json(case: ScoredPrediction) -> dict[str, object]:
    made = case.prediction
    value, low, high = (json_number(each) for each in made.total)
    return {
        "parameter": made.parameter,
        "target": made.scale,
        "held_parameters": dict(made.held),
        "scales": list(made.scales),
        "labels": dict(made.labels),
        "predicted": value,
        "low": low,
        "high": high,
        "measured": json_number(case.total),
        "error": json_number(case.total_error),
        "holds": case.total_holds,
        "callpaths": len(case.holds),
        "callpaths_held": int(case.holds.sum()),
    }
