"""An experiment: the runs of one program at several scales, on one call tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError, did_you_mean
from callpath_modeler.printable import printable, shell_word
from callpath_modeler.profile.balance import Balance
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.groups import MetricValues, RunLines, inclusive_values
from callpath_modeler.profile.metric_formulas import Definition, Formula
from callpath_modeler.profile.omissions import Omission, OmissionKind
from callpath_modeler.profile.runs import (
    Parameter,
    Run,
    RunNumber,
    case_keys,
    case_names,
    refuse_several_cases,
    split_parameters,
)
from callpath_modeler.profile.schema import PROGRAM, Metric, Reduction, Region
from callpath_modeler.support.front_ends import SelectionMixin
from callpath_modeler.units import as_option, counted

if TYPE_CHECKING:
    import pandas as pd


class Scaling(StrEnum):
    """Growth of the problem size with the number of processes.

    Attributes
    ----------
    WEAK : weak scaling: the work per process is constant
    STRONG : strong scaling: the total work of all processes is constant
    UNCLEAR : the runs do not show which of them it is
    """

    WEAK = "weak"
    STRONG = "strong"
    UNCLEAR = "unclear"


REPETITION = "repetition"
"""Column, or level of columns, of data frames."""
FRAME = "callpath_modeler"
"""Key of `DataFrame.attrs` for what `Experiment.to_frame` says of a table."""

TOLD_SCALINGS = (Scaling.WEAK, Scaling.STRONG)
"""Kinds of scaling that a user can choose."""


@dataclass(frozen=True)
class Experiment(SelectionMixin):
    """The runs of one program on one call tree.

    Values are in SI base units: seconds, bytes, and counts without a unit.

    Attributes
    ----------
    name : name for tables and headings
    tree : call tree with the call paths of all runs
    runs : in ascending order of points, then of repetitions
    parameters : parameters that vary between the runs
    constants : values of the parameters that are the same in all runs
    columns : values by metric name, for the metrics that were read
    declared : all metrics of the profiles; the value is "", or the reason why the metric cannot be
        read
    reduction : statistic over processes, such as the mean or the maximum
    scaling : growth of the problem size with p
    scaling_reason : the reason for `scaling`
    findings : data quality findings about the runs
    numbers : numbers in the names of runs, and their interpretation
    balances : [runs] parts of the run time, if they were requested; None = a run has none. Only
        `where` and `at` keep them in agreement with the call tree
    lines : [runs] costs of lines, by metric name, if they were requested
    chains : names of call paths that were folded, the first caller first, by the row of the call
        path below them
    omissions : parts of the measured program that are left out
    definitions : metrics that a user defined by formulas; `columns` has those whose operands were
        read
    """

    name: str
    tree: CallTree
    runs: tuple[Run, ...]
    parameters: tuple[Parameter, ...]
    constants: Mapping[str, float]
    columns: Mapping[str, MetricValues]
    declared: Mapping[str, str]
    reduction: Reduction
    scaling: Scaling
    scaling_reason: str
    findings: tuple[Finding, ...]
    numbers: tuple[RunNumber, ...] = ()
    balances: tuple[Balance | None, ...] = ()
    lines: tuple[RunLines, ...] = ()
    chains: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    omissions: tuple[Omission, ...] = ()
    definitions: tuple[Definition, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.isprintable():
            object.__setattr__(self, "name", printable(self.name))

    def __repr__(self) -> str:
        points = (f"{counted(len(p.values), 'point')} of {p.name}" for p in self.parameters)
        said = ", ".join([counted(len(self.tree), "call path"), *points, *self.columns])
        return f"<Experiment {self.name}: {said}>"

    @property
    def own_constants(self) -> dict[str, float]:
        """Constants without those that only the name of the directory of all runs states.

        Runs elsewhere need not have these.
        """
        common = {number.common_constant for number in self.numbers}
        return {name: value for name, value in self.constants.items() if name not in common}

    @property
    def cases(self) -> tuple[str, ...]:
        """Names of the cases, such as inputs and algorithms; empty = the runs are of one case.

        Models describe one case: `LoadOptions.case` chooses one, and `Study.cases` has each.
        """
        return tuple(dict.fromkeys(filter(None, self.cases_of_runs())))

    def cases_of_runs(self) -> list[str]:
        """Return the name of the case of each run; "" = the runs are of one case."""
        return case_names(case_keys(self.findings), self.runs)

    def refuse_several_cases(self) -> None:
        """Raise `UsageError` if the runs are of several cases; the error says how to choose one."""
        are_selected = any(each.kind is OmissionKind.RUNS for each in self.omissions)
        refuse_several_cases(case_keys(self.findings), self.runs, are_selected=are_selected)

    def metric(self, name: str | None = None) -> Metric:
        """Return the metric called `name`, or the first duration.

        Parameters
        ----------
        name : name of a metric; None = the first duration that is additive

        Returns
        -------
        Metric
            Name, unit and description.

        Raises
        ------
        UsageError
            If there is no such metric.
        DataError
            If no metric has values.
        """
        return self._column(name).metric

    def _column(self, name: str | None) -> MetricValues:
        if name is None:
            timed = (v for v in self.columns.values() if v.metric.can_be_run_time)
            chosen = next(timed, None) or next(iter(self.columns.values()), None)
            if chosen is None:
                raise DataError("no metric has values", hint="see `cpmodel info`")
            return chosen
        if not isinstance(name, str) or name not in self.columns:
            raise unknown_metric(name, self.columns)
        return self.columns[name]

    def values(self, metric: str | None = None, *, inclusive: bool = False) -> FloatArray:
        """Return the values of a metric for each call path and run.

        Parameters
        ----------
        metric : name of the metric; None = the first duration
        inclusive : return inclusive values, which are sums of exclusive values over subtrees, or
            the formula of such sums

        Returns
        -------
        ndarray
            [call paths, runs], SI base units; NaN = the call path did not occur. For every
            reduction, the exclusive values of a subtree add up to the inclusive value of its root,
            if the metric is additive.

        Raises
        ------
        UsageError
            If there is no such metric.
        """
        column = self._column(metric)
        if not inclusive:
            return column.exclusive
        if column.metric.additive:
            return inclusive_values(self.tree, column.exclusive)
        formula = self.formula(column.metric.name)
        if formula is None:
            return column.exclusive
        parts = (self.columns[name].exclusive for name in formula.parts)
        return formula.of([inclusive_values(self.tree, part) for part in parts])

    @property
    def readable(self) -> tuple[str, ...]:
        """Names of all metrics that can be read or are defined by a formula."""
        declared = (name for name, why in self.declared.items() if not why)
        return (*declared, *(each.name for each in self.definitions))

    def formula(self, metric: str) -> Formula | None:
        """Return the formula of a metric over sums; None = the metric adds up, or has no sums.

        Parameters
        ----------
        metric : name of a metric
        """
        if self.columns[metric].metric.additive:
            return None
        additive = {name for name, each in self.columns.items() if each.metric.additive}
        steps, names = [], {metric}
        for each in reversed(self.definitions):
            if each.name in names - additive:
                steps.append(each)
                names = names - {each.name} | {*each.operands}
        if not names <= additive:
            return None
        operands = dict.fromkeys(name for each in steps for name in each.operands)
        parts = tuple(name for name in operands if name in names)
        return Formula(tuple(reversed(steps)), parts)

    def points(self, parameter: str) -> FloatArray:
        """Return the distinct values of `parameter`, [points], ascending.

        Raises
        ------
        UsageError
            If there is no such parameter.
        """
        return np.unique(self.settings((parameter,)))

    def runs_by_setting(self) -> dict[tuple[float, ...], list[int]]:
        """Return the numbers of the runs at each combination of the varying parameters.

        Returns
        -------
        dict
            Keys are values of the parameters, in the order of `parameters`. Values are positions in
            `runs`.
        """
        settings: dict[tuple[float, ...], list[int]] = {}
        for number, run in enumerate(self.runs):
            setting = tuple(run.parameters[parameter.name] for parameter in self.parameters)
            settings.setdefault(setting, []).append(number)
        return settings

    def by_point(
        self,
        metric: str | None,
        parameter: str,
        *,
        inclusive: bool = False,
        rows: IntArray | slice | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the values of a metric for each call path, point and repetition.

        Parameters
        ----------
        metric : name of the metric; None = the first duration
        parameter : name of the parameter
        inclusive : return inclusive values
        rows : the call paths; None = all

        Returns
        -------
        points : ndarray
            [K] values of the parameter, ascending.
        values : ndarray
            [call paths, K, R], SI base units. R is the largest number of repetitions of a point.
            Missing repetitions are NaN.

        Raises
        ------
        UsageError
            If there is no such metric or parameter.
        """
        settings, cube = self.by_setting(metric, (parameter,), inclusive=inclusive, rows=rows)
        return settings[:, 0], cube

    def by_setting(
        self,
        metric: str | None,
        parameters: Sequence[str],
        *,
        inclusive: bool = False,
        rows: IntArray | slice | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the values of a metric for each call path, setting and repetition.

        Parameters
        ----------
        metric : name of the metric; None = the first duration
        parameters : names of D parameters
        inclusive : return inclusive values
        rows : the call paths; None = all

        Returns
        -------
        settings : ndarray
            [K, D] combinations of values of the parameters, ascending.
        values : ndarray
            [call paths, K, R], SI base units. R is the largest number of repetitions of a setting.
            Missing repetitions are NaN.

        Raises
        ------
        UsageError
            If there is no such metric or parameter, or if the runs are of several cases, which are
            not repetitions of each other.
        """
        self.refuse_several_cases()
        values = self.values(metric, inclusive=inclusive)
        if rows is not None:
            values = values[rows]
        settings, of_run = np.unique(self.settings(parameters), axis=0, return_inverse=True)
        of_run = of_run.ravel()
        repetitions = int(np.bincount(of_run).max())
        cube = np.full((len(values), len(settings), repetitions), np.nan)
        filled = np.zeros(len(settings), np.intp)
        for run, setting in enumerate(of_run):
            cube[:, setting, filled[setting]] = values[:, run]
            filled[setting] += 1
        return settings, cube

    def of_program(self, metric: str) -> Experiment | None:
        """Return the run times: an experiment whose only call path is the program.

        Parameters
        ----------
        metric : name of a metric

        Returns
        -------
        Experiment or None
            None if the metric is no duration, or if a run has no recorded run time.
        """
        values = self.columns[metric]
        run_time = values.run_time
        if run_time is None or not np.isnan(values.exclusive[:, np.isnan(run_time)]).all():
            return None
        tree = CallTree.from_parents([ROOT], [0], [Region(PROGRAM)])
        alone = MetricValues(values.metric, run_time[np.newaxis], run_time, run_time=run_time)
        # A run has a single run time, so every reduction returns it.
        return replace(
            self,
            tree=tree,
            columns={metric: alone},
            reduction=Reduction.MAX,
            findings=(),
            lines=(),
        )

    def means(self, metric: str, runs: IntArray | None = None) -> FloatArray:
        """Return means over processes, [call paths, runs], SI base units.

        NaN = the call path did not occur. The values are returned as they are if the profiles do
        not contain means: maxima without imbalance, medians, geometric means and minima.

        Parameters
        ----------
        metric : name of the metric
        runs : the runs; None = all
        """
        return self._means(self._of_runs(metric, runs), self._processes(runs))

    def maxima(self, metric: str, runs: IntArray | None = None) -> FloatArray:
        """Return maxima over processes, [call paths, runs], SI base units.

        NaN = the maximum is not known, or the call path did not occur.

        Parameters
        ----------
        metric : name of the metric
        runs : the runs; None = all
        """
        return self._maxima(self._of_runs(metric, runs), self._processes(runs))

    def means_and_maxima(self, metric: str, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the `means` and the `maxima` of some call paths, each [rows, runs]."""
        values, processes = self.columns[metric].of_rows(rows), self._processes(None)
        return self._means(values, processes), self._maxima(values, processes)

    def _means(self, values: MetricValues, processes: FloatArray) -> FloatArray:
        if self.reduction is Reduction.SUM:
            return values.exclusive / processes
        return values.means(self.reduction)

    def _maxima(self, values: MetricValues, processes: FloatArray) -> FloatArray:
        if self.reduction is Reduction.MAX:
            return values.exclusive
        nothing = np.broadcast_to(np.nan, values.exclusive.shape)  # without memory for each
        if self.reduction not in {Reduction.MEAN, Reduction.SUM}:
            return nothing
        # A call path without cost has no imbalance, and its maximum is zero.
        is_zero = values.exclusive == 0
        if values.imbalance is None and not (processes == 1).any() and not is_zero.any():
            return nothing
        alone = np.where(processes == 1, 1.0, np.nan)
        ratio = alone if values.imbalance is None else np.fmax(values.imbalance, alone)
        return self._means(values, processes) * np.where(is_zero, 1.0, ratio)

    def _of_runs(self, metric: str, runs: IntArray | None) -> MetricValues:
        column = self.columns[metric]
        return column if runs is None else column.of_runs(runs)

    def _processes(self, runs: IntArray | None) -> FloatArray:
        """Return the number of processes of each run, at least 1, [runs]."""
        processes = np.array([max(1, run.extent.processes) for run in self.runs], float)
        return processes if runs is None else processes[runs]

    def imbalance(self, metric: str, row: int, at: Mapping[str, float]) -> float:
        """Return the imbalance of a call path: largest over mean exclusive cost of processes.

        Parameters
        ----------
        metric : name of the metric
        row : number of the call path
        at : values of parameters, by name, that select the runs

        Returns
        -------
        float
            The median over the selected runs. 1 = balanced; the number of processes = one process
            has all cost; NaN = not known.
        """
        known = self.columns[metric].imbalance
        if known is None:
            return float("nan")
        here = [
            all(run.parameters[name] == value for name, value in at.items()) for run in self.runs
        ]
        ratios = known[row, np.array(here, bool)].astype(np.float64)
        ratios = ratios[~np.isnan(ratios)]
        return float(np.median(ratios)) if len(ratios) else float("nan")

    def settings(self, parameters: Sequence[str]) -> FloatArray:
        """Return the values of D parameters in each run, [runs, D].

        Raises
        ------
        UsageError
            If there is no such parameter.
        """
        known = self.runs[0].parameters
        for name in parameters:
            if name not in known:
                raise UsageError(f"no parameter {name!r}", hint=f"parameters: {', '.join(known)}")
        return np.array([[run.parameters[name] for name in parameters] for run in self.runs])

    def modelled_parameter(self, name: str | None = None) -> str:
        """Return the parameter of models: `name`, p if it varies, or the only one that varies.

        Raises
        ------
        UsageError
            If no parameter of that name varies.
        DataError
            If nothing varies, or if several parameters vary independently.
        """
        parameters = self.modelled_parameters(name)
        if len(parameters) > 1:
            raise self._ambiguous(name or parameters[0])
        return parameters[0]

    def modelled_parameters(self, name: str | None = None) -> tuple[str, ...]:
        """Return the parameters of models: the main one, then the independent ones.

        The main parameter is p if it varies, else the first one. A parameter with one value for
        each combination of the previous parameters is dependent and is left out. If `name` is
        dependent, it becomes the main parameter.

        Parameters
        ----------
        name : parameter of interest; None = the main one

        Returns
        -------
        tuple of str
            Names of parameters, the main one first.

        Raises
        ------
        UsageError
            If no parameter of that name varies.
        DataError
            If nothing varies.
        """
        varying = [parameter.name for parameter in self.parameters]
        if not varying:
            raise DataError(
                "all runs are at one scale: nothing to model",
                hint="give profiles of several scales, e.g. p = 8, 16, 32, 64, 128",
            )
        if name is not None and name not in varying:
            raise UsageError(
                f"no parameter {name!r} varies between the runs",
                hint=f"varying: {', '.join(varying)}",
            )
        chosen = self._independent("p" if "p" in varying else varying[0])
        return chosen if name is None or name in chosen else self._independent(name)

    def _independent(self, main: str) -> tuple[str, ...]:
        varying = [parameter.name for parameter in self.parameters]
        chosen = [main]
        number = self._number_of_settings(chosen)
        for other in varying:
            finer = self._number_of_settings([*chosen, other])
            if finer > number:
                chosen.append(other)
                number = finer
        return tuple(chosen)

    def _number_of_settings(self, parameters: Sequence[str]) -> int:
        return len(np.unique(self.settings(parameters), axis=0))

    def _ambiguous(self, wanted: str) -> DataError:
        others = [p for p in self.parameters if p.name != wanted]
        fixed = as_option({p.name: p.values[0] for p in others})
        return DataError(
            f"several parameters vary: {', '.join(p.name for p in self.parameters)}",
            hint=f"fix all but one, e.g. --where {shell_word(fixed)}",
        )

    def where(self, keep: BoolArray) -> Experiment:
        """Return the experiment with a selection of the runs.

        Parameters
        ----------
        keep : [runs] True for the runs to keep
        """
        chosen = np.flatnonzero(keep)
        runs = tuple(self.runs[i] for i in chosen)
        columns = {name: values.of_runs(chosen) for name, values in self.columns.items()}
        origins = {p.name: p.origin for p in self.parameters}
        varying, fixed = split_parameters(runs, origins)
        constants = {**self.constants, **fixed}
        balances = tuple(self.balances[i] for i in chosen) if self.balances else ()
        lines = tuple(self.lines[i] for i in chosen) if self.lines else ()
        return replace(
            self,
            runs=runs,
            columns=columns,
            parameters=varying,
            constants=constants,
            balances=balances,
            lines=lines,
        )

    def at(self, setting: Mapping[str, float]) -> Experiment:
        """Return the experiment with the runs at some values of parameters; {} = all runs."""
        if not setting:
            return self
        return self.where((self.settings(tuple(setting)) == [*setting.values()]).all(axis=1))

    @property
    def dataframe(self) -> pd.DataFrame:
        """Measured values as a table, which `from_frame` reads again.

        The index is the call path, the varying parameters and the repetition. Each metric is a
        column, such as ``time [s]``. NaN = did not occur.
        """
        frame = self.to_frame(layout="long")
        keys = ["callpath", *(each.name for each in self.parameters), REPETITION]
        return frame.set_index(keys)

    def to_frame(
        self,
        metric: str | None = None,
        *,
        inclusive: bool = False,
        layout: Literal["wide", "long"] = "wide",
    ) -> pd.DataFrame:
        """Return measured values as a table, which `from_frame` reads again.

        Parameters
        ----------
        metric : name of the metric; None = the first duration, or all metrics of a long table
        inclusive : return inclusive values
        layout : ``"wide"`` = one column per run; ``"long"`` = one row per call path and run

        Returns
        -------
        pandas.DataFrame
            SI base units; NaN = did not occur. A wide table has a row per call path, and its
            columns are a MultiIndex of the varying parameters and the repetition. A long table has
            columns ``callpath``, one per varying parameter, ``repetition``, and one per metric,
            such as ``time [s]``.

        Raises
        ------
        UsageError
            If there is no such metric or layout.
        """
        import pandas as pd

        if layout not in {"wide", "long"}:
            raise UsageError(f"no layout {layout!r}", hint="wide or long")
        names = [p.name for p in self.parameters]
        keys = [(*(run.parameters[name] for name in names), run.repetition) for run in self.runs]
        paths = pd.Index([self.tree.path(row) for row in range(len(self.tree))], name="callpath")
        columns = pd.MultiIndex.from_tuples(keys, names=[*names, REPETITION])
        metrics = [self.metric(metric)]
        if layout == "long" and metric is None:
            metrics = [self.metric(name) for name in self.columns]
        tables = {
            f"{each.name}{' (inc)' if inclusive else ''} [{each.unit}]": pd.DataFrame(
                self.values(each.name, inclusive=inclusive), paths, columns
            )
            for each in metrics
        }
        title, frame = next(iter(tables.items()))
        if layout == "long":
            rows = {title: table.stack(columns.names, future_stack=True)
                    for title, table in tables.items()}  # fmt: skip
            frame = pd.DataFrame(rows).reset_index()
        frame.attrs[FRAME] = {"metric": title, "parameters": names}
        return frame


def unknown_metric(name: str, metrics: Mapping[str, object]) -> UsageError:
    """Return the error for an unknown metric, with the nearest name as a hint."""
    hint = f"{did_you_mean(str(name), metrics)} metrics: {', '.join(metrics)}".lstrip()
    return UsageError(f"no metric {name!r}", hint=hint)
