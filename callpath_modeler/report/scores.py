"""Scores of remembered predictions: text, table, and a sentence about corrected bands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.text import Text

from callpath_modeler.analysis.uncertain import marks_text
from callpath_modeler.analysis.verification import FROM, BandCalibration
from callpath_modeler.history.predictions import Scoreboard, ScoredPrediction
from callpath_modeler.printable import shell_word
from callpath_modeler.report.columns import (
    amount_text,
    band_text,
    calibration_header,
    mark_text,
    marks_cells,
)
from callpath_modeler.report.further_columns import holds_text
from callpath_modeler.report.layout import DEFAULT_STYLE, TextColumn, TextStyle, table
from callpath_modeler.report.table_formats import (
    Column,
    Table,
    shown_columns,
    table_of,
    text_table_of,
)
from callpath_modeler.units import (
    counted,
    parameter_value,
    percent,
    setting_text,
    signed_percent,
    significant,
)

_MOST_TARGETS = 8


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


def marks_columns(found: Scoreboard, style: TextStyle) -> list[TextColumn]:
    """Return how many bands hold by marks of trust."""
    scores = [each for each in found.marks if each.predictions]
    held = [f"{each.held} ({percent(each.held / each.predictions)})" for each in scores]
    return shown_columns(
        [
            Column("marks", [each.marks for each in scores], "marks", marks_text),
            Column("predictions", [each.predictions for each in scores], "predictions"),
            Column("held", held, "bands hold"),
            Column("median_error", [each.error for each in scores], "median error", percent),
        ],
        style,
    )


def path_columns(
    found: Scoreboard, rows: Sequence[tuple[ScoredPrediction, int]], style: TextStyle
) -> list[Column[None]]:
    """Return the columns of some scored call paths."""
    made = [case.prediction for case, _ in rows]
    units = {each.prediction.unit for each in found.cases}
    unit = units.pop() if len(units) == 1 else None
    first = found.cases[-1].prediction.parameter if found.cases else ""

    def of_rows(name: str) -> list[Any]:
        return [getattr(case, name)[row] for case, row in rows]

    def amounts(values: Iterable[float]) -> list[str]:
        return [style.amount(v, each.unit) for v, each in zip(values, made, strict=True)]

    bands, measured = of_rows("bands"), [*map(float, of_rows("measured"))]
    predicted, low, high = ([float(band[k]) for band in bands] for k in range(3))
    intervals = [
        band_text(least, most, each.unit, style=style)
        for least, most, each in zip(low, high, made, strict=True)
    ]
    holds, paths = [*map(bool, of_rows("holds"))], of_rows("callpaths")
    doubts = ["" if each else "bold" for each in holds]
    found_at = [of.callpaths.index(path) for of, path in zip(made, paths, strict=True)]
    return [
        Column("callpath", paths),
        Column("metric", [each.metric for each in made]),
        Column("parameter", [each.parameter for each in made]),
        Column("target", [each.scale for each in made], first, parameter_value, place=0),
        Column("values", ["inclusive" if each.inclusive else "exclusive" for each in made]),
        Column("predicted", predicted, "predicted", unit=unit, text=amounts(predicted)),
        Column("low", low, "band", unit=unit, text=intervals),
        Column("high", high, unit=unit),
        Column("measured", measured, "measured", unit=unit, text=amounts(measured), place=1),
        Column("error", [*map(float, of_rows("error"))], "error", signed_percent, droppable=1),
        Column("holds", holds, "holds", holds_text, right=False, styles=doubts),
        Column("trust", marks_cells(of_rows("trust")), "trust", mark_text, droppable=1),
        Column("model", [of.models[at] for of, at in zip(made, found_at, strict=True)]),
        Column("method", [each.method for each in made]),
        Column("commit", [each.commit or None for each in made]),
        Column("predicted_at", [each.time for each in made]),
        Column("measured_at", [case.outcome.time for case, _ in rows]),
    ]


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
    lines = style.lines([score_verdict(found)], "bold")
    lines += style.lines(score_remarks(found, store), "dim")
    if not found.cases:
        return lines
    lines += style.lines(case_text(case, style) for case in reversed(found.cases))
    scores = [column.spelled(style.say) for column in marks_columns(found, style)]
    body = table(scores, [[""]] * len(scores[0].cells), None, title="")
    lines += [Text(""), *(Text(line.plain.rstrip()) for line in body)]
    rows = score_rows(found)
    shown = rows[:top]
    columns = shown_columns(path_columns(found, shown, style), style)
    lines += [Text(""), *style.table(columns, [[case.callpaths[row]] for case, row in shown])]
    if len(rows) > len(shown):
        lines.append(Text(f"{counted(len(rows) - len(shown), 'other')}: -n all", style="dim"))
    note = f"call paths with at least {percent(FROM, 1)} of the measured {found.metric}"
    return [*lines, *style.lines([note], "dim")]


def scores_table(found: Scoreboard, top: int | None = None) -> Table:
    """Return scores as a table: one row for each predicted call path that was measured."""
    columns = path_columns(found, score_rows(found)[:top], DEFAULT_STYLE)
    marks = [
        {
            "marks": each.marks,
            "predictions": each.predictions,
            "held": each.held,
            "median_error": each.error,
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
    return table_of(columns, header)


def scores_text_tables(found: Scoreboard, top: int | None, style: TextStyle) -> list[Table]:
    """Return the tables of `scores_text`: marks of trust, and call paths."""
    (first, *others), rows = marks_columns(found, style), score_rows(found)[:top]
    columns = shown_columns(path_columns(found, rows, style), style)
    return [
        text_table_of(others, first.cells, first.header),
        text_table_of(columns, [case.callpaths[row] for case, row in rows]),
    ]


def _total_json(case: ScoredPrediction) -> dict[str, object]:
    made = case.prediction
    value, low, high = made.total
    return {
        "parameter": made.parameter,
        "target": made.scale,
        "held_parameters": dict(made.held),
        "scales": list(made.scales),
        "labels": dict(made.labels),
        "predicted": value,
        "low": low,
        "high": high,
        "measured": case.total,
        "error": case.total_error,
        "holds": case.total_holds,
        "callpaths": len(case.holds),
        "callpaths_held": int(case.holds.sum()),
    }
