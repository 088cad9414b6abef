"""Changes between two campaigns as a table for programs, with one row per check."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from callpath_modeler.report.table_formats import Cell, Table, json_number
from callpath_modeler.units import as_option
from cpmodel_guidelines.changes.comparison import (
    CampaignChange,
    FunctionChange,
    GuidelineChange,
    Ratios,
    VerdictChange,
)
from cpmodel_guidelines.table import header_of

_NUMBERS = ("experiment", "inputs", "findings", "power", "not_measured")
"""Fields that describe one of both campaigns."""


def change_table(changes: CampaignChange, top: int | None = None) -> Table:
    """Return one row per check, the most urgent guidelines first.

    Parameters
    ----------
    top : number of guidelines; None = all
    """
    rows = [row for each in changes.guidelines[:top] for row in _rows(changes, each)]
    names = [*rows[0]] if rows else []
    unit = changes.after.benchmark.metric.unit
    columns: dict[str, list[Cell]] = {name: [row[name] for row in rows] for name in names}
    return Table(columns, dict.fromkeys(("before_left", "after_left"), unit), _header(changes))


def _rows(changes: CampaignChange, of: GuidelineChange) -> Iterator[dict[str, Cell]]:
    for number in of.pairs:
        pair = changes.pairs[number]
        row: dict[str, Cell] = {
            "group": "/".join(of.group),
            "guideline": of.guideline.text,
            "kind": str(of.guideline.kind),
            "function": of.guideline.left.function,
            "at": as_option(dict(pair.setting)),
            "change": str(pair.change),
            "guideline_change": str(of.change),
        }
        for name, side, k in (("before", changes.before, pair.before),
                              ("after", changes.after, pair.after)):  # fmt: skip
            verdicts = side.here.verdicts
            row |= {
                f"{name}_verdict": str(verdicts.verdict(k)),
                f"{name}_factor": float(verdicts.factor[k]),
                f"{name}_low": float(verdicts.low[k]),
                f"{name}_high": float(verdicts.high[k]),
                f"{name}_rate": float(verdicts.rate[k]),
                f"{name}_left": float(side.here.left[k]),
            }
        row |= _named("factor", changes.factors, number)
        row |= _named("time", changes.times, changes.of_left[number])
        yield row


def _named(name: str, of: Ratios, k: int) -> dict[str, Cell]:
    """Return one ratio with its interval, its error rate and what it shows."""
    shown = "larger" if of.larger[k] else "smaller" if of.smaller[k] else None
    return {
        f"{name}_ratio": float(of.ratio[k]),
        f"{name}_ratio_low": float(of.low[k]),
        f"{name}_ratio_high": float(of.high[k]),
        f"{name}_ratio_rate": float(of.rate[k]),
        f"{name}_is": shown,
    }


def _header(changes: CampaignChange) -> dict[str, object]:
    sides = [header_of(each) for each in (changes.before, changes.after)]
    common = {key: value for key, value in sides[1].items()
              if key in {"metric", "processes", "size", "tolerance", "confidence", "test",
                         "control", "error_rate"}}  # fmt: skip
    before, after = ({key: side[key] for key in _NUMBERS} for side in sides)
    return {
        "before": before,
        "after": after,
        **common,
        "tested": changes.is_tested,
        "counts": {str(each): len(changes.that_are(each)) for each in VerdictChange},
        "only_before": list(changes.only_before),
        "only_after": list(changes.only_after),
        "functions": [_function(changes, each) for each in changes.functions],
    }


def _function(changes: CampaignChange, of: FunctionChange) -> dict[str, object]:
    times, rows = changes.times, np.array(of.rows, np.intp)
    mean = _named("mean_time", changes.means, of.number)
    return {
        "group": "/".join(of.group),
        "function": of.function,
        "settings": len(of.rows),
        "slower": int(times.larger[rows].sum()),
        "faster": int(times.smaller[rows].sum()),
        **{key: json_number(value) if isinstance(value, float) else value
           for key, value in mean.items()},
    }  # fmt: skip
