"""Advice on the next scale to measure, as text and as a table."""

from __future__ import annotations

from callpath_modeler.analysis.advise import Advice, NextRun
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.headline import at_text, omissions
from callpath_modeler.report.layout import TextStyle, aligned
from callpath_modeler.report.table_formats import Cell, Table, known_or_none
from callpath_modeler.units import as_option, counted, factor_text, setting_text, significant

_TELLS = 0.8
"""A run helps little if the ratio of the band's limits stays above this part of today's ratio."""
_KNOWN = 1.1
"""No run is needed if the ratio of the band's limits is below this."""


def advice_text(fitted: Fitted, advice: Advice, *, style: TextStyle) -> list[str]:
    """Return the lines of `cpmodel info --advise`."""
    unit, at = fitted.metric.unit, at_text(fitted, advice.target)
    total = amount_text(advice.value, advice.low, advice.high, unit, style=style)
    again = counted(advice.repetitions, "run")
    omitted = omissions(fitted.experiment)
    best = min(advice.runs, key=lambda run: run.apart)
    told = f"{setting_text(best.setting)} narrows the band at {at} most."
    if advice.apart < _KNOWN:
        told = f"The cost at {at} is known well enough: no further run is needed."
    elif best.apart > _TELLS * advice.apart:
        told = f"None of them narrows the band much: measure {at} itself, or repeat the noisy runs."
    else:
        told += _per_core_hour(advice, best)
    what = "scale" if fitted.surface is None else "setting"
    effect = f"Effect of {again} at one more {what}, in {advice.outcomes} simulations"
    return [
        f"At {at} the sum of all call paths is {total}: a band of × {factor_text(advice.apart)}.",
        *(f"Total and run times cover only part of the program ({each})." for each in omitted),
        f"{effect} (median, min … max):",
        "",
        *aligned(_rows(fitted, advice, style), numbers=True),
        "",
        told,
    ]


def _rows(fitted: Fitted, advice: Advice, style: TextStyle) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for run in advice.runs:
        known = run.core_hours > 0
        rows.append(
            (
                as_option(run.setting),
                f"× {factor_text(run.apart)} ({factor_text(run.least)} … {factor_text(run.most)})",
                style.amount(run.time, fitted.metric.unit),
                significant(run.core_hours) if known else "-",
                f"{significant(100 * run.gain_per_core_hour)} %" if known else "-",
            )
        )
    return [("run at", "expected band", "run time", "core-hours", "gain/core-h"), *rows]


def _per_core_hour(advice: Advice, best: NextRun) -> str:
    """Return the setting with the largest gain per core-hour, if it is another one."""
    known = [run for run in advice.runs if run.core_hours > 0]
    if not known:
        return ""
    cheapest = max(known, key=lambda run: run.gain_per_core_hour)
    if cheapest is best or cheapest.gain <= 0:
        return ""
    return f" {setting_text(cheapest.setting)} narrows it most per core-hour."


def advice_table(fitted: Fitted, advice: Advice) -> Table:
    """Return a table with one row per candidate setting; its header holds the target."""
    others = [name for name in fitted.parameters if name != fitted.parameter]
    columns: dict[str, list[Cell]] = {
        "scale": [run.scale for run in advice.runs],
        **{name: [run.setting[name] for run in advice.runs] for name in others},
        "time": [run.time for run in advice.runs],
        "core_hours": [known_or_none(run.core_hours) for run in advice.runs],
        "band_ratio": [run.apart for run in advice.runs],
        "band_ratio_least": [run.least for run in advice.runs],
        "band_ratio_most": [run.most for run in advice.runs],
        "gain": [run.gain for run in advice.runs],
        "gain_per_core_hour": [known_or_none(run.gain_per_core_hour) for run in advice.runs],
    }
    header = {
        "experiment": fitted.experiment.name,
        "metric": fitted.metric.name,
        "parameter": fitted.parameter,
        "target": advice.target,
        "at": fitted.at(advice.target),
        "value": advice.value,
        "low": advice.low,
        "high": advice.high,
        "band_ratio": advice.apart,
        "repetitions": advice.repetitions,
    }
    return Table(columns, {"time": fitted.metric.unit}, header)
