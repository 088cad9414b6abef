"""Descriptions of an experiment: its data, how it was read, and the next scale to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.text import Text

from callpath_modeler import config
from callpath_modeler.analysis.advise import Advice, NextRun
from callpath_modeler.diagnostics import Finding, count_by_code, in_full
from callpath_modeler.fitted import Fitted
from callpath_modeler.printable import printable, shell_word
from callpath_modeler.profile.experiment import TOLD_SCALINGS, Experiment
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.runs import NO_VALUE, Run, RunNumber, case_keys
from callpath_modeler.readers.base import NUMBER_OF_REPETITION, ColumnRole, TableReading
from callpath_modeler.readers.inference import NUMBERS_REPETITIONS
from callpath_modeler.readers.parameters import COLUMN
from callpath_modeler.report.columns import amount_text
from callpath_modeler.report.headline import at_text, left_out, omissions, scaling_words
from callpath_modeler.report.layout import TextStyle, aligned, wrap
from callpath_modeler.report.table_formats import (
    Cell,
    Table,
    definitions_json,
    findings_json,
    parameters_json,
)
from callpath_modeler.support.toml import key_in_toml, text_in_toml
from callpath_modeler.units import (
    as_option,
    counted,
    factor_text,
    parameter_value,
    percent,
    setting_text,
    significant,
)

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
        "parameters": parameters_json(experiment),
        "constants": dict(experiment.constants),
        "metrics": [
            {"name": v.metric.name, "unit": v.metric.unit, "description": v.metric.description}
            for v in experiment.columns.values()
        ],
        **definitions_json(experiment),
        "numbers": _numbers_json(experiment),
        "unreadable": {name: why for name, why in experiment.declared.items() if why},
        "findings": findings_json(experiment.findings),
    }
    return Table(columns, {}, header)


def _numbers_json(experiment: Experiment) -> list[dict[str, object]]:
    """Return the JSON field of the numbers in run names."""
    names = ("name", "values", "in", "understood_as")
    return [dict(zip(names, row, strict=True)) for row in number_rows(experiment)[1:]]


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
        "core_hours": [run.core_hours for run in advice.runs],
        "band_ratio": [run.apart for run in advice.runs],
        "band_ratio_least": [run.least for run in advice.runs],
        "band_ratio_most": [run.most for run in advice.runs],
        "gain": [run.gain for run in advice.runs],
        "gain_per_core_hour": [run.gain_per_core_hour for run in advice.runs],
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


_LISTS = frozenset({"drop", "unit"})
_MOST_CASES = 8

Setting = tuple[str, ...]
"""Table, key and value of ``cpmodel.toml``."""


class SourceReading:
    """How sources are read.

    Parameters
    ----------
    experiments : the runs of each case, by its name; a single case has the name ""
    table : a table among the sources, and how it is read; None = there is none
    files : number of files
    """

    def __init__(
        self,
        experiments: Mapping[str, Experiment],
        table: tuple[Path, TableReading] | None,
        files: int,
    ) -> None:
        self.experiments = experiments
        self.table = None if table is None else table[1]
        self.files = files

    @property
    def first(self) -> Experiment:
        """The runs of the first case."""
        return next(iter(self.experiments.values()))

    @property
    def columns(self) -> Sequence[ColumnRole]:
        """The roles of the columns, if a table is among the sources."""
        return () if self.table is None else self.table.columns

    def layout(self) -> list[tuple[str, str]]:
        """Return the properties of the layout, with their values."""
        return [] if self.table is None else [*self.table.layout]

    def properties(self) -> list[Row]:
        """Return cases, repetitions, units and scaling: what they are, why, and their option."""
        scalings = {(str(each.scaling), each.scaling_reason) for each in self.experiments.values()}
        kind, reason = scalings.pop() if len(scalings) == 1 else ("differs between cases", "")
        assumed = {} if self.table is None else self.table.assumed
        return [
            ("", "read as", "because", "change it with"),
            ("cases", *self._cases()),
            ("repetitions", *self._repetitions()),
            *(
                (f"unit of {printable(name)}", unit, "assumed: no title or cell states one",
                 f"--unit {shell_word(f'{printable(name)}=ms')}")
                for name, unit in assumed.items()
            ),
            ("scaling", kind, reason, _other_scalings(kind)),
        ]  # fmt: skip

    def _cases(self) -> Row:
        names = [name for name in self.experiments if name]
        if not names:
            return "none", "no words tell runs of one scale apart", ""
        keys = ", ".join(case_keys(self.first.findings)) or self._keys_of_cases()
        more = f", and {len(names) - _MOST_CASES} more" if len(names) > _MOST_CASES else ""
        shown = ", ".join(printable(name) or NO_VALUE for name in names[:_MOST_CASES])
        reason = f"{keys or 'words'} tell runs of one scale apart: {shown}{more}"
        return str(len(names)), reason, f"--case {shell_word(names[0])}"

    def _keys_of_cases(self) -> str:
        return ", ".join(role.title for role in self.columns if role.use == "case")

    def _repetitions(self) -> Row:
        settings = (each.runs_by_setting().values() for each in self.experiments.values())
        counts = {len(runs) for of_case in settings for runs in of_case}
        least, most = min(counts), max(counts)
        number = str(least) if least == most else f"{least} to {most}"
        told = next((role for role in self.columns if role.use == NUMBER_OF_REPETITION), None)
        in_names = next((n for n in self.first.numbers if _is_repetition(n)), None)
        if told is not None:
            return f"{number} of each scale", f"column {told.title}: {told.reason}", told.option
        if in_names is not None:
            reason = f"{in_names.name} in {in_names.place} {in_names.reason}"
            option = f"--param {shell_word(in_names.name)}=name"
            return f"{number} of each scale", reason, option
        if most == 1:
            return "none", "each scale was run once", ""
        return f"{number} of each scale", "runs of one scale without other differences", ""

    def settings(self) -> list[Setting]:
        """Return the settings that state what was found, so that nothing is inferred."""
        found = [role.setting for role in self.columns if role.setting]
        known = {(table, key) for table, key, _ in found if table == config.PARAMETERS}
        parameters = [(p.name, p.origin) for p in self.first.parameters]
        names = {name for name, _ in parameters}
        for name, origin in parameters:
            if (config.PARAMETERS, name) not in known and (self.table is None or origin == "name"):
                found.append((config.PARAMETERS, name, origin))
        for number in self.first.numbers:
            is_open = " " in number.values and not _is_repetition(number)
            if is_open and number.name not in names and _is_name(number.name):
                found.append((config.PARAMETERS, number.name, "none"))
        if self.table is not None:
            units = (f"{name}={unit}" for name, unit in self.table.assumed.items())
            found += [(config.DEFAULTS, "unit", each) for each in units]
        kinds = {each.scaling for each in self.experiments.values()}
        if len(kinds) == 1 and kinds <= {*TOLD_SCALINGS}:
            found.append((config.EXPERIMENT, "scaling", str(next(iter(kinds)))))
        return found

    def configuration(self) -> str:
        """Return the text of a ``cpmodel.toml`` with the settings."""
        lines = []
        settings = self.settings()
        for table in (config.EXPERIMENT, config.PARAMETERS, config.DEFAULTS):
            mine = [(key, value) for of, key, value in settings if of == table]
            lines += ["", f"[{table}]"] if mine else []
            for key in dict.fromkeys(key for key, _ in mine):
                values = [value for each, value in mine if each == key]
                name = key_in_toml(key)
                text = ", ".join(map(text_in_toml, values))
                if table == config.PARAMETERS:
                    text = f"{{ from = {text} }}"
                lines.append(f"{name} = {f'[{text}]' if key in _LISTS else text}")
        return "\n".join(lines[1:]) + "\n" if lines else ""


def _other_scalings(kind: str) -> str:
    """Return the options that choose another kind of scaling."""
    return ", ".join(f"--scaling {each}" for each in TOLD_SCALINGS if each != kind)


def _is_repetition(number: RunNumber) -> bool:
    return number.reason.startswith(NUMBERS_REPETITIONS)


def _is_name(name: str) -> bool:
    """Return whether a number in names stands beside a word."""
    return name != "number"


def reading_text(reading: SourceReading, source: str) -> list[str]:
    """Return the lines of `cpmodel info --explain`.

    Parameters
    ----------
    reading : how the sources are read
    source : name of the table, for the first line; "" = there is none
    """
    lines: list[str] = []
    if source:
        others = f", the first of {reading.files} files" if reading.files > 1 else ""
        lines += [f"table {printable(source)}{others}", ""]
    if reading.layout():
        lines += [*aligned([("layout", ""), *reading.layout()]), ""]
    if reading.columns:
        lines += [*aligned(column_rows(reading.columns)), ""]
    if reading.first.numbers:
        lines += [*aligned(number_rows(reading.first)), ""]
    lines += [*aligned(parameter_rows(reading.first)), "", *aligned(reading.properties()), ""]
    text = reading.configuration()
    if text:
        lines += ["# as cpmodel.toml beside the data:", *text.splitlines()]
    return lines


def reading_table(reading: SourceReading) -> Table:
    """Return one row per column, with all other decisions in the header."""
    roles = reading.columns
    _, *properties = reading.properties()
    names = ("name", "read_as", "because", "change_with")
    header = {
        "layout": dict(reading.layout()),
        "numbers": _numbers_json(reading.first),
        "parameters": [
            {
                "name": p.name,
                "values": [parameter_value(value) for value in p.values],
                "from": origin_words(p.origin),
            }
            for p in reading.first.parameters
        ],
        "properties": [dict(zip(names, row, strict=True)) for row in properties],
        "files": counted(reading.files, "file"),
        "cpmodel_toml": reading.configuration(),
    }
    return Table(
        {
            "column": [role.title for role in roles],
            "used_as": [role.use for role in roles],
            "because": [role.reason for role in roles],
            "change_with": [role.option for role in roles],
        },
        {},
        header,
    )
