"""Which scale to run next, for people and for machines."""

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
"""By a run that leaves the ends further apart than this part of what they are, little is told."""
_KNOWN = 1.1
"""Where the ends are no further apart, there is nothing left to tell."""
_SECONDS_PER_HOUR = 3600


def advice_text(fitted: Fitted, advice: Advice, *, style: TextStyle) -> list[str]:
    """Return the lines of `cpmodel info --advise`."""
    parameter, unit = fitted.parameter, fitted.metric.unit
    at = f"{parameter} = {parameter_value(advice.target)}"
    total = amount_text(advice.value, advice.low, advice.high, unit, style=style)
    again = counted(advice.repetitions, "run")
    rows = [("run at", "band would be", "a run takes", "core-hours")]
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
    told = f"{parameter} = {parameter_value(best.scale)} would tell most of {at}."
    if advice.apart < _KNOWN:
        told = f"What {at} takes is known: no run is needed for it."
    elif best.apart > _TELLS * advice.apart:
        told = f"None of them would tell much of {at}: run that, or repeat the runs that are noisy."
    return [
        f"At {at} the total is {total}: a band of × {factor_text(advice.apart)}.",
        *(f"The total and what a run takes are without what was {each}." for each in omitted),
        f"With {again} at one more scale, in {OUTCOMES} simulated outcomes (median, least … most):",
        "",
        *aligned(rows, numbers=True),
        "",
        told,
    ]


def advice_table(fitted: Fitted, advice: Advice) -> Table:
    """Return one row per scale, with the target in the header."""
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
