"""Descriptions of an experiment, as text and as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.text import Text

from callpath_modeler.diagnostics import Finding, count_by_code, in_full
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.metric_values import MetricValues
from callpath_modeler.profile.runs import Run
from callpath_modeler.readers.base import ColumnRole
from callpath_modeler.readers.parameters import COLUMN
from callpath_modeler.report.headline import left_out, scaling_words
from callpath_modeler.report.layout import aligned, wrap
from callpath_modeler.report.table_formats import Table, definitions_json, findings_json
from callpath_modeler.units import counted, parameter_value, percent

_MOST_COLUMNS = 40
"""Maximum number of columns of a table that are explained."""


def info_text(experiment: Experiment, columns: Sequence[ColumnRole] = ()) -> list[str]:
    """Return the lines of `cpmodel info`.

    Parameters
    ----------
    columns : roles of the columns, if the source is a table
    """
    tables = aligned(parameter_rows(experiment)), aligned(metric_rows(experiment))
    numbers = [*aligned(number_rows(experiment)), ""] if experiment.numbers else []
    lines = [summary(experiment), "", *tables[0], "", *numbers, *tables[1], ""]
    if columns:
        lines += [*aligned(column_rows(columns)), ""]
    unread = {name: why for name, why in experiment.declared.items() if why}
    if unread:
        lines += [f"not readable: {', '.join(f'{n} ({why})' for n, why in unread.items())}", ""]
    lines += [*aligned(coverage_rows(experiment)), ""]
    counts = count_by_code(experiment.findings)
    listed = ", ".join(f"{code} ×{n}" for code, n in counts.items())
    lines.append(f"findings: {listed}; cpmodel info --diagnostics" if listed else "no findings")
    return lines


def summary(experiment: Experiment) -> str:
    """Return a one-line description of an experiment."""
    runs = experiment.runs
    readers = ", ".join(sorted({_tool(run) for run in runs}))
    points = experiment.runs_by_setting()
    sizes = f"{counted(len(runs), 'run')} of {counted(len(points), 'point')}"
    paths = counted(len(experiment.tree), "call path")
    scaling = scaling_words(experiment)
    read = f"{experiment.name} · {readers} · {sizes} · {paths} · {scaling}"
    return read + left_out(experiment)


Row = tuple[str, ...]


def parameter_rows(experiment: Experiment) -> list[Row]:
    """Return a header and one row per parameter: name, values, origin."""
    rows: list[Row] = [("parameter", "values", "from")]
    for parameter in experiment.parameters:
        values = " ".join(parameter_value(value) for value in parameter.values)
        rows.append((parameter.name, values, origin_words(parameter.origin)))
    for name, value in experiment.constants.items():
        rows.append((name, parameter_value(value), "never varies, not modelled"))
    return rows


def number_rows(experiment: Experiment) -> list[Row]:
    """Return a header and one row per number in run names: values, position, meaning, reason."""
    rows: list[Row] = [("number", "values", "in", "understood as")]
    rows += [(each.name, each.values, each.place, each.reason) for each in experiment.numbers]
    return rows


def column_rows(columns: Sequence[ColumnRole]) -> list[Row]:
    """Return a header and one row per column of a table: title, use, reason, option."""
    rows: list[Row] = [("column", "used as", "because", "change it with")]
    rows += [(each.title, each.use, each.reason, each.option) for each in columns[:_MOST_COLUMNS]]
    if len(columns) > _MOST_COLUMNS:
        rows.append((f"... {len(columns) - _MOST_COLUMNS} more", "", "", ""))
    return rows


def metric_rows(experiment: Experiment) -> list[Row]:
    """Return a header and one row per metric: unit, call paths, noise of repetitions, note."""
    values_are = f"exclusive, {experiment.reduction.words}"
    formulas = {each.name: f"= {each.formula}" for each in experiment.definitions}
    rows: list[Row] = [("metric", "unit", "call paths", "noise", values_are)]
    for values in experiment.columns.values():
        used = int(np.any(np.nan_to_num(values.exclusive) != 0, axis=1).sum())
        spread = repetition_spread(experiment, values)
        noise = "-" if np.isnan(spread) else percent(spread, 1)
        note = _note(values, formulas.get(values.metric.name, ""))
        rows.append((values.metric.name, values.metric.unit, str(used), noise, note))
    return rows


def diagnostics_text(findings: Sequence[Finding], width: int | None) -> list[Text]:
    """Return every finding in full: event, consequence, remedy, and code.

    Parameters
    ----------
    findings : the findings
    width : width of the terminal; None = wrap nothing
    """
    lines = in_full(findings) or ["no findings"]
    return [part for line in lines for part in wrap(line, width, indent="  ")]


def info_table(experiment: Experiment) -> Table:
    """Return one row per run, with the experiment in the header."""
    names = list(experiment.runs[0].parameters)
    present = ~np.isnan(next(iter(experiment.columns.values())).exclusive)
    columns: dict[str, list[str | int | float | bool | None]] = {
        "source": [run.source for run in experiment.runs],
        "reader": [run.reader for run in experiment.runs],
        **({"case": [*experiment.cases_of_runs()]} if experiment.cases else {}),
        **{name: [run.parameters[name] for run in experiment.runs] for name in names},
        "repetition": [run.repetition for run in experiment.runs],
        "processes": [run.extent.processes for run in experiment.runs],
        "threads": [run.extent.threads for run in experiment.runs],
        "nodes": [run.extent.nodes for run in experiment.runs],
        "callpaths": [int(n) for n in present.sum(axis=0)],
    }
    header = {
        "experiment": experiment.name,
        "callpaths": len(experiment.tree),
        "scaling": str(experiment.scaling),
        "scaling_reason": experiment.scaling_reason,
        "locations": str(experiment.reduction),
        "parameters": [
            {"name": p.name, "values": list(p.values), "from": p.origin}
            for p in experiment.parameters
        ],
        "constants": dict(experiment.constants),
        "metrics": [
            {"name": v.metric.name, "unit": v.metric.unit, "description": v.metric.description}
            for v in experiment.columns.values()
        ],
        **definitions_json(experiment),
        "numbers": [
            {"name": n.name, "values": n.values, "in": n.place, "understood_as": n.reason}
            for n in experiment.numbers
        ],
        "unreadable": {name: why for name, why in experiment.declared.items() if why},
        "findings": findings_json(experiment.findings),
    }
    return Table(columns, {}, header)


def repetition_spread(experiment: Experiment, values: MetricValues) -> float:
    """Return the typical relative spread of repetitions, weighted by cost; NaN without repetitions.

    It is the ratio of standard deviation to mean of each call path and point, averaged with the
    mean as the weight. So call paths of a microsecond have little influence.
    """
    deviations, means = [], []
    # The squares of numbers from a damaged profile may overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        for runs in experiment.runs_by_setting().values():
            if len(runs) > 1:
                at_point = values.exclusive[:, runs]
                here = ~np.isnan(at_point).any(axis=1)
                deviations.append(at_point[here].std(axis=1, ddof=1))
                means.append(at_point[here].mean(axis=1))
        total = sum(float(m.sum()) for m in means)
        spread = sum(float(d.sum()) for d in deviations) / total if total > 0 else float("nan")
    return spread if np.isfinite(spread) else float("nan")


def coverage_rows(experiment: Experiment) -> list[Row]:
    """Return a header and one row per point: repetitions, and the number of call paths."""
    present = ~np.isnan(next(iter(experiment.columns.values())).exclusive)
    names = ",".join(p.name for p in experiment.parameters) or "run"
    rows: list[Row] = [(names, "repetitions", "call paths")]
    for key, runs in experiment.runs_by_setting().items():
        at = ",".join(parameter_value(value) for value in key) or "all"
        rows.append((at, str(len(runs)), str(int(present[:, runs].any(axis=1).sum()))))
    return rows


def _note(values: MetricValues, formula: str) -> str:
    note = "" if values.metric.additive else "does not add up"
    return ", ".join(filter(None, [formula, note]))


def origin_words(origin: str) -> str:
    """Return the source of a parameter, in words."""
    named = {"name": "run name", "profile": "stated in the file"}
    if origin.startswith(COLUMN):
        return f"the column {origin.removeprefix(COLUMN)}"
    return named.get(origin, f"{origin} in the profile")


def _tool(run: Run) -> str:
    return run.metadata.get("creator") or run.reader
