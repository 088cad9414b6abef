"""Advice on the next scale to measure, as text and as a table."""

from __future__ import annotations

from callpath_modeler.analysis.advise import OUTCOMES, Advice
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.answer import omissions
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.formats import Table
from callpath_modeler.report.layout import aligned
from callpath_modeler.report.text_style import TextStyle
from callpath_modeler.units import counted, factor_text, parameter_value, significant

_TELLS = 0.8
"""A run helps little if the ratio of the band's limits stays above this part of today's ratio."""
_KNOWN = 1.1
"""No run is needed if the ratio of the band's limits is below this."""
_SECONDS_PER_HOUR = 3600


def advice_text(fitted: Fitted, advice: Advice, *, style: TextStyle) -> list[str]:
    """Return the lines of `cpmodel info --advise`."""
    parameter, unit = fitted.parameter, fitted.metric.unit
    at = f"{parameter} = {parameter_value(advice.target)}"
    total = amount_text(advice.value, advice.low, advice.high, unit, style=style)
    again = counted(advice.repetitions, "run")
    rows = [("run at", "expected band", "run time", "core-hours")]
    for run in advice.runs:
        hours = significant(run.scale * run.time / _SECONDS_PER_HOUR)
        rows.append(
            (
                f"{parameter}={parameter_value(run.scale)}",
                f"× {factor_text(run.apart)} ({factor_text(run.least)} … {factor_text(run.most)})",
                style.amount(run.time, unit),
                hours if parameter == "p" and fitted.metric.is_time else "-",
            )
        )
    omitted = omissions(fitted.experiment)
    best = min(advice.runs, key=lambda run: run.apart)
    told = f"{parameter} = {parameter_value(best.scale)} narrows the band at {at} most."
    if advice.apart < _KNOWN:
        told = f"The cost at {at} is known well enough: no further run is needed."
    elif best.apart > _TELLS * advice.apart:
        told = f"None of them narrows the band much: measure {at} itself, or repeat the noisy runs."
    return [
        f"At {at} the total is {total}: a band of × {factor_text(advice.apart)}.",
        *(f"Total and run times cover only part of the program ({each})." for each in omitted),
        f"Effect of {again} at one more scale, in {OUTCOMES} simulations (median, min … max):",
        "",
        *aligned(rows, numbers=True),
        "",
        told,
    ]


def advice_table(fitted: Fitted, advice: Advice) -> Table:
    """Return a table with one row per candidate scale; its header holds the target."""
    columns = {
        "scale": [run.scale for run in advice.runs],
        "time": [run.time for run in advice.runs],
        "band_ratio": [run.apart for run in advice.runs],
        "band_ratio_least": [run.least for run in advice.runs],
        "band_ratio_most": [run.most for run in advice.runs],
    }
    header = {
        "experiment": fitted.experiment.name,
        "metric": fitted.metric.name,
        "parameter": fitted.parameter,
        "target": advice.target,
        "value": advice.value,
        "low": advice.low,
        "high": advice.high,
        "band_ratio": advice.apart,
        "repetitions": advice.repetitions,
    }
    return Table(columns, {"time": fitted.metric.unit}, header)
