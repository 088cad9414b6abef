"""Benchmarks of collectives: values at settings, with their uncertainty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.modeling.distributions import normal_quantile
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import MetricValues as Column
from callpath_modeler.profile.pattern import match, unmatched
from callpath_modeler.profile.schema import Metric, Region
from callpath_modeler.units import as_option, counted
from cpmodel_guidelines.functions import Function, functions_in

_VISITS = "visits"
_PROCESSES = "p"
SIZES = ("size", "bytes", "msize", "message_size", "msg_size", "count", "m")
"""Names of the message size in tables, in lower case."""

KNOWN_WELL = 1e6
"""Degrees of freedom of a value whose uncertainty is given."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Uncertain values, [...].

    Attributes
    ----------
    value : in the unit of the metric; NaN = not measured
    variance : variance of the logarithm of `value`; NaN = unknown
    dof : degrees of freedom of `variance`
    """

    value: FloatArray
    variance: FloatArray
    dof: FloatArray

    def take(self, *index: IntArray) -> Estimates:
        """Return the estimates at an index."""
        return Estimates(self.value[index], self.variance[index], self.dof[index])

    def ravelled(self) -> Estimates:
        """Return the estimates as one row."""
        return Estimates(self.value.ravel(), self.variance.ravel(), self.dof.ravel())

    def followed_by(self, other: Estimates) -> Estimates:
        """Return this row, followed by another one."""
        pairs = zip(self._columns, other._columns, strict=True)
        return Estimates(*(np.concatenate(pair) for pair in pairs))

    @property
    def _columns(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.value, self.variance, self.dof


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Collectives of an experiment.

    Attributes
    ----------
    experiment : one call path for each function, with one metric
    metric : the measured metric
    functions : function of each call path
    names : parameters that vary, and parameters with a role
    processes, size : parameters with the number of processes and the message size; None = unknown
    per_call : whether values come from a program and were divided by its visits
    bounds : lower and upper ends of given intervals, [functions, K] each; None = not given
    """

    experiment: Experiment
    metric: Metric
    functions: tuple[Function, ...]
    names: tuple[str, ...]
    processes: str | None
    size: str | None
    per_call: bool
    bounds: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def _cube(self) -> tuple[FloatArray, FloatArray]:
        return self.experiment.by_setting(self.metric.name, self.names)

    @property
    def settings(self) -> FloatArray:
        """Return the values of the parameters, [K, D], ascending."""
        return self._cube[0]

    @property
    def values(self) -> FloatArray:
        """Return the measured values, [functions, K, R]; NaN = missing."""
        return self._cube[1]

    @property
    def scales(self) -> FloatArray:
        """Return the measured numbers of processes, ascending; empty if they are unknown."""
        axis = self.axis(self.processes)
        return np.empty(0) if axis is None else np.unique(self.settings[:, axis])

    @property
    def is_repeated(self) -> bool:
        """Return whether a function was measured more than once at one setting."""
        return bool(((~np.isnan(self.values)).sum(axis=2) > 1).any())

    @property
    def tells_noise(self) -> bool:
        """Return whether intervals or repetitions give the uncertainty of the values."""
        return self.bounds is not None or self.is_repeated

    def tells_noise_at(self, processes: float) -> bool:
        """Return whether a number of processes was measured, with its uncertainty."""
        axis = self.axis(self.processes)
        assert axis is not None, "a target is a number of processes"
        here = self.settings[:, axis] == processes
        repeated = ((~np.isnan(self.values[:, here])).sum(axis=2) > 1).any()
        return bool(here.any() and (self.bounds is not None or repeated))

    def axis(self, name: str | None) -> int | None:
        """Return the index of a parameter in settings; None = not a parameter."""
        return None if name is None else self.names.index(name)

    def estimates(
        self, confidence: float, deviations: tuple[FloatArray, FloatArray] | None = None
    ) -> Estimates:
        """Return the geometric mean of the mpiruns with its uncertainty, [functions, K].

        Each value has its own variance. Variances that are pooled over functions would be too small
        where mpiruns have two typical times. The uncertainty comes from given intervals, else from
        repetitions, else from `deviations`.

        Parameters
        ----------
        confidence : level of the given intervals
        deviations : relative variances and their degrees of freedom, [functions, K] each:
            deviations from models, which replace missing repetitions
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(self.values > 0, np.log(self.values), np.nan)
            known = ~np.isnan(logs)
            count = known.sum(axis=2).astype(float)
            mean = np.where(known, logs, 0.0).sum(axis=2) / count
            squares = np.where(known, (logs - mean[..., None]) ** 2, 0.0).sum(axis=2)
            variance = np.where(count > 1, squares / (count - 1) / count, np.nan)
        centre = np.exp(mean)
        if self.bounds is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.log(self.bounds[1] / self.bounds[0]) / 2
            error = reach / normal_quantile(0.5 + confidence / 2)
            return Estimates(centre, error**2, np.full_like(centre, KNOWN_WELL))
        if self.is_repeated:
            return Estimates(centre, variance, np.maximum(count - 1, 1.0))
        return Estimates(centre, *(deviations or np.full((2, *centre.shape), np.nan)))

    def findings(self) -> list[Finding]:
        """Return findings about unknown properties of the compared calls."""
        found = []
        if self.per_call:
            message = f"{self.metric.name} divided by {_VISITS}"
            found.append(Finding("CPM302", self.experiment.name, message))
        if self.size is None:
            found.append(
                Finding("CPM301", self.experiment.name, "no parameter is the message size")
            )
        with np.errstate(invalid="ignore"):
            unused = np.argwhere((self.values <= 0).any(axis=2))
        # Calls that a program never makes have no time.
        if len(unused) and not self.per_call:
            row, k = unused[0]
            at = as_option(dict(zip(self.names, self.settings[k].tolist(), strict=True)))
            message = f"{counted(len(unused), 'setting')}: {self.functions[row].title} at {at}"
            found.append(Finding("CPM303", self.experiment.name, message, len(unused)))
        return found


def benchmark_of(
    experiment: Experiment,
    metric: str | None = None,
    *,
    inclusive: bool = False,
    processes: str | None = None,
    size: str | None = None,
    interval: tuple[str, str] | None = None,
    select: str | None = None,
    others: Collection[str] = (),
) -> Benchmark:
    """Return the collectives of an experiment.

    Times are per call if the experiment contains visits.

    Parameters
    ----------
    metric : name of the metric; None = the run time
    inclusive : use values of whole subtrees
    processes, size : names of parameters; None = p, and a parameter with a usual name of sizes
    interval : metrics with the lower and upper end of a confidence interval of each value
    select : pattern of call paths; None = all
    others : names of functions in guidelines of the user that are no collectives

    Raises
    ------
    UsageError
        If a metric, parameter or call path does not exist.
    DataError
        If no call path is a collective, or two call paths in a group are the same collective.
    """
    chosen = experiment.metric(metric)
    tree = experiment.tree
    found = functions_in([tree.names(row) for row in range(len(tree))], others)
    wanted = _selected(tree, select) & ~np.isnan(experiment.values(chosen.name)).all(axis=1)
    rows = np.array([r for r, each in enumerate(found) if each and wanted[r]], np.intp)
    functions = tuple(each for r, each in enumerate(found) if each and wanted[r])
    if not functions:
        raise DataError(
            "no call path is an MPI collective",
            hint="collectives have names such as MPI_Bcast or bcast",
        )
    _check_distinct(functions)
    roles = _roles(experiment, processes, size)
    names = _telling(experiment, roles)
    calls = _calls(experiment, chosen)
    _check_processes(experiment, roles[0])
    values = experiment.values(chosen.name, inclusive=inclusive)[rows]
    if calls is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(calls[rows] > 0, values / calls[rows], np.nan)
    alone = _alone(experiment, functions, Column(chosen, values, np.nansum(values, axis=0)))
    made = Benchmark(alone, chosen, functions, names, *roles, calls is not None)
    if interval is None:
        return made
    return replace(made, bounds=_bounds(experiment, interval, rows, made))


def with_processes(experiment: Experiment, processes: int) -> Experiment:
    """Return an experiment whose runs state their number of processes, if they did not."""
    if _PROCESSES in experiment.runs[0].parameters:
        return experiment
    known = {_PROCESSES: float(processes)}
    runs = [replace(run, parameters={**known, **run.parameters}) for run in experiment.runs]
    return replace(experiment, runs=tuple(runs), constants={**known, **experiment.constants})


def _roles(
    experiment: Experiment, processes: str | None, size: str | None
) -> tuple[str | None, str | None]:
    """Return the parameters with the number of processes and the message size."""
    every = tuple(experiment.runs[0].parameters)
    for given in (processes, size):
        if given is not None and given not in every:
            raise UsageError(f"no parameter {given!r}", hint=f"parameters: {', '.join(every)}")
    if processes is None and _PROCESSES in every:
        processes = _PROCESSES
    if size is None:
        called = {name.lower(): name for name in every if name != processes}
        size = next((called[name] for name in SIZES if name in called), None)
    return processes, size


def _check_processes(experiment: Experiment, processes: str | None) -> None:
    """Raise an error if a number of processes is zero or negative."""
    if processes is None:
        return
    least = min(run.parameters[processes] for run in experiment.runs)
    if least < 1:
        raise DataError(
            f"{experiment.name}: {processes} = {least:g} is not a number of processes",
            hint="correct the table, or name another parameter with --parameter",
        )


def _telling(experiment: Experiment, roles: tuple[str | None, ...]) -> tuple[str, ...]:
    """Return the parameters that vary, and the ones with a role."""
    telling = {*roles, *(each.name for each in experiment.parameters)}
    return tuple(name for name in experiment.runs[0].parameters if name in telling)


def _selected(tree: CallTree, select: str | None) -> BoolArray:
    if select is None:
        return np.ones(len(tree), np.bool_)
    chosen = match(tree, select)
    if not chosen.any():
        raise unmatched(tree, select)
    return chosen


def _check_distinct(functions: Sequence[Function]) -> None:
    (most, times), *_ = Counter(functions).most_common(1)
    if times > 1:
        where = f" in {'/'.join(most.group)}" if most.group else ""
        raise DataError(
            f"{times} call paths are {most.title}{where}", hint="select one of them with --select"
        )


def _calls(experiment: Experiment, metric: Metric) -> FloatArray | None:
    """Return the visits of each call path in each run; None = unknown, or not a time."""
    if _VISITS not in experiment.columns or not (metric.is_time and metric.additive):
        return None
    return experiment.values(_VISITS)


def _alone(experiment: Experiment, functions: Sequence[Function], column: Column) -> Experiment:
    regions = [Region("/".join((*each.group, each.title))) for each in functions]
    tree = CallTree.from_parents([ROOT] * len(regions), range(len(regions)), regions)
    return replace(experiment, tree=tree, columns={column.metric.name: column})


def _bounds(
    experiment: Experiment, interval: tuple[str, str], rows: IntArray, made: Benchmark
) -> tuple[FloatArray, FloatArray]:
    if made.is_repeated:
        raise UsageError(
            "--interval cannot be used with repetitions, which already give the uncertainty",
            hint="omit --interval",
        )
    low, high = (experiment.by_setting(name, made.names)[1][rows, :, 0] for name in interval)
    centre = made.values[:, :, 0]
    if not (((low <= centre) & (centre <= high)) | np.isnan(low + centre + high)).all():
        raise DataError(
            f"{interval[0]} and {interval[1]} do not enclose {made.metric.name}",
            hint="name the lower and the upper metric: --interval LOW,HIGH",
        )
    return low, high
