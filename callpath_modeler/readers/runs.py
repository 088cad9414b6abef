"""Runs from one profile on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct, structs

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.printable import printable
from callpath_modeler.profile.balance import Balance
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.metric_values import LineCosts, RunLines
from callpath_modeler.profile.pruning import without_call_sites
from callpath_modeler.profile.schema import (
    COMPUTED,
    DeclaredMetric,
    Extent,
    Reduction,
)
from callpath_modeler.readers.balances import BalanceRequest, read_balance
from callpath_modeler.readers.base import (
    ColumnChoices,
    ProfileSource,
    Reduced,
    RunSource,
    Workers,
    opened_runs,
)
from callpath_modeler.readers.declared_units import DeclaredUnits, in_given_units
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.process_groups import ProcessTimes
from callpath_modeler.readers.process_selection import ProcessSelection, process_times
from callpath_modeler.readers.registry import Registry, naming_the_reader
from callpath_modeler.units import counted, parameter_value

LARGEST = 1e100
"""Largest plausible value; larger ones come from flipped bits, and their squares are infinite."""


class ReadRun(Struct, frozen=True):
    """One run with its values.

    Attributes
    ----------
    name : path of the profile, and the run in it if there are several
    file : the profile on disk
    stated : parameters that the profile states
    reader : name of the reader
    tree : call tree of the run
    extent : number of processes, threads and nodes
    metadata : further entries of the profile
    declared : metrics of the profile
    reduction : statistic over processes
    values : reduced values, by metric name, in SI base units
    findings : findings about the run
    balance : parts of the run time; None = not requested, or not known
    lines : costs of lines, by metric name; empty = not requested, or not known
    cases : keys of the metadata that tell programs, inputs or machines apart
    """

    name: str
    file: RunFile
    stated: Mapping[str, float]
    reader: str
    tree: CallTree
    extent: Extent
    metadata: Mapping[str, str]
    declared: tuple[DeclaredMetric, ...]
    reduction: Reduction
    values: Mapping[str, Reduced]
    findings: tuple[Finding, ...]
    balance: Balance | None = None
    lines: RunLines = msgspec.field(default_factory=dict)
    cases: tuple[str, ...] = ()


def read_runs(
    file: RunFile,
    registry: Registry,
    metrics: Sequence[str] | None,
    reduction: Reduction | None,
    *,
    requirements: bool = False,
    units: Mapping[str, str] | None = None,
    balance: BalanceRequest | None = None,
    processes: ProcessSelection | None = None,
    call_sites: bool = True,
    lines: bool = False,
    columns: ColumnChoices | None = None,
    workers: Workers | None = None,
) -> list[ReadRun]:
    """Return the runs of a profile.

    Parameters
    ----------
    file : the profile
    registry : readers
    metrics : names of metrics; empty = the first duration, or else the first metric; None = all
    reduction : statistic over processes; None = the mean, or else the first available one
    requirements : True: read requirements (visits, bytes, operations), too
    units : units of metrics, by name, if the profile does not state them
    balance : parts of the run time to read; None = none
    processes : selected processes and their groups; None = all in one group
    call_sites : True: calls of a function from several lines are several call paths
    lines : True: read the costs of lines, too, except those of requirements
    columns : roles of columns of tables that the user states
    workers : reduce parts of the profile, if its reader can divide it

    Raises
    ------
    UsageError
        If a column of `columns` does not exist.
    InputError
        If the profile cannot be read.
    DataError
        If the profile was written with another reduction.
    """
    reader = registry.reader_of(file.path, file.reader)
    read: list[ReadRun] = []
    with (
        naming_the_reader(reader, file.path),
        opened_runs(reader, file.path, workers, columns) as runs,
    ):
        if not runs:
            raise InputError(f"{file.path}: holds no run", hint="measure again, or omit the file")
        for run in runs:
            several = len(runs) > 1
            reduction = reduction_of(run.source, reduction, file.path)
            read.append(
                read_run(
                    *(file, run, reader.name, metrics, reduction),
                    several=several,
                    requirements=requirements,
                    units=units,
                    balance=balance,
                    processes=processes,
                    call_sites=call_sites,
                    lines=lines,
                )
            )
    return read


def read_process_times(
    file: RunFile, registry: Registry, metric: str | None, units: Mapping[str, str]
) -> dict[str, ProcessTimes]:
    """Return the times of the processes of each run of a profile, by the name of the run.

    Parameters
    ----------
    metric : name of a duration; None = the first one

    Raises
    ------
    InputError
        If the profile cannot be read.
    DataError
        If it has no times of single processes.
    """
    reader, found = registry.find(file.path), {}
    with naming_the_reader(reader, file.path), opened_runs(reader, file.path) as runs:
        for run in runs:
            declared = in_given_units(tuple(run.source.metrics), units, run.source.extent).declared
            readable = (d for d in declared if d.status.is_readable)
            timed = [d.metric.name for d in readable if d.metric.can_be_run_time]
            chosen = metric if metric in timed else next(iter(timed), None)
            if chosen is None:
                raise DataError(f"{file.path}: has no time", hint="see `cpmodel info`")
            found[name_of(file, run, several=len(runs) > 1)] = process_times(run.source, chosen)
    return found


def name_of(file: RunFile, run: RunSource, *, several: bool) -> str:
    """Return the name of a run: its path, and its parameters if the file has several runs."""
    return f"{file.path}[{_which(run)}]" if several else str(file.path)


def reduction_of(source: ProfileSource, requested: Reduction | None, path: Path) -> Reduction:
    """Return the requested reduction over processes, or the default of a profile.

    Raises
    ------
    DataError
        If the profile does not have the requested reduction.
    """
    # Checks of protocols by `isinstance` take most of the time of a small run.
    can = tuple(source.reductions) if hasattr(source, "reductions") else COMPUTED
    if requested is None:
        return Reduction.MEAN if Reduction.MEAN in can else can[0]
    if requested not in can:
        raise DataError(
            f"{path}: holds no {requested} over processes: it was reduced when it was written",
            hint=f"--locations {' or '.join(can)}"
            if Reduction.GIVEN not in can
            else "omit --locations",
        )
    return requested


def read_run(
    file: RunFile,
    run: RunSource,
    reader: str,
    metrics: Sequence[str] | None,
    reduction: Reduction,
    *,
    several: bool,
    requirements: bool = False,
    units: Mapping[str, str] | None = None,
    balance: BalanceRequest | None = None,
    processes: ProcessSelection | None = None,
    call_sites: bool = True,
    lines: bool = False,
) -> ReadRun:
    """Return one run with its values.

    Parameters
    ----------
    file : the profile
    run : the opened run
    reader : name of the reader
    metrics, requirements, units, balance, processes, call_sites, lines : as in `read_runs`
    reduction : statistic over processes
    several : True if the file has several runs
    """
    source, name = run.source, name_of(file, run, several=several)
    if call_sites and hasattr(source, "with_call_sites"):
        source = source.with_call_sites()
    opened = source
    if processes is not None:
        source = processes.of(source, name, reduction)
    if several:
        # The name of a file with several runs does not determine the parameters of one run.
        others = {k: v for k, v in file.parameters.items() if k not in run.parameters}
        file = structs.replace(file, parameters=others)
    if run.repetition is not None:
        file = structs.replace(file, repetition=run.repetition)
    stated = in_given_units(tuple(source.metrics), units or {}, source.extent)
    alone = _sums_of_one_thread(stated.declared, metrics or (), source.extent)
    declared = (*stated.declared, *(each.of_all_threads() for each in alone.values()))
    values: dict[str, Reduced] = {}
    noticed: list[Finding] = []
    for metric in _wanted(declared, metrics, requirements=requirements):
        own = alone[metric].metric.name if metric in alone else metric
        found = stated.converted(own, source.reduce(own, reduction), reduction)
        found = replace(found, run_time=float("nan")) if metric in alone else found
        values[metric], beyond = _sensible(found)
        if beyond:
            message = f"{metric}: {counted(beyond, 'value')} beyond {LARGEST:g}"
            noticed.append(Finding("CPM117", name, message, beyond))
    noticed += stated.findings(name, values, reduction)
    of_lines = {}
    if lines and processes is None:
        chosen = _wanted(declared, metrics, requirements=False)
        of_lines = _line_costs(opened, stated, chosen, reduction)
    parts = None
    if balance is not None:
        try:
            parts = _balance(opened, stated, balance, processes)
        except DataError as error:
            noticed.append(Finding("CPM170", name, error.message))
    return ReadRun(
        name,
        file,
        # Names of parameters come from tables and may contain control characters.
        {printable(name): value for name, value in run.parameters.items()},
        reader,
        source.call_tree if call_sites else without_call_sites(source.call_tree),
        source.extent,
        dict(source.metadata),
        declared,
        reduction,
        values,
        (*source.findings(), *noticed),
        parts,
        of_lines,
        run.cases,
    )


def _sums_of_one_thread(
    declared: Sequence[DeclaredMetric], metrics: Sequence[str], extent: Extent
) -> dict[str, DeclaredMetric]:
    """Return the times of a run with one thread per process that are sums over threads as well.

    Other runs of the series may have several threads. Only requested metrics are returned, by the
    names of the sums.
    """
    if extent.threads != 1:
        return {}
    times = (each for each in declared if each.metric.can_be_run_time and each.status.is_readable)
    sums = {each.metric.of_all_threads().name: each for each in times}
    return {name: each for name, each in sums.items() if name in metrics}


def _line_costs(
    source: ProfileSource, stated: DeclaredUnits, metrics: Sequence[str], reduction: Reduction
) -> dict[str, LineCosts]:
    """Return the costs of lines, by metric name; {} = the profile has none."""
    if not hasattr(source, "line_costs"):
        return {}
    return {
        metric: source.line_costs(metric, reduction).scaled(stated.factors.get(metric, 1.0))
        for metric in metrics
    }


def _balance(
    source: ProfileSource,
    stated: DeclaredUnits,
    request: BalanceRequest,
    processes: ProcessSelection | None,
) -> Balance:
    """Return the parts of the run time, or raise `DataError` if they are not known."""
    if processes is not None:
        raise DataError("its factors need all processes; omit --ranks and --split-ranks")
    return read_balance(source, stated, request)


def _sensible(found: Reduced) -> tuple[Reduced, int]:
    """Return values with implausible ones as NaN, and the number of these."""
    beyond = np.abs(found.exclusive) > LARGEST
    count = int(np.count_nonzero(beyond))
    if not count and not abs(found.total) > LARGEST:
        return found, 0
    exclusive = np.where(beyond, np.nan, found.exclusive)
    total, unknown = float(np.nansum(exclusive)), float("nan")
    found = replace(found, exclusive=exclusive, total=total, run_time=unknown)
    return found, max(1, count)


def _which(run: RunSource) -> str:
    """Return the parameters of a run in its file, e.g. ``p=64,n=30 r1``."""
    setting = ",".join(f"{k}={parameter_value(v)}" for k, v in run.parameters.items())
    return f"{setting} r{run.repetition}".strip() if run.repetition is not None else setting


def _wanted(
    declared: Iterable[DeclaredMetric], metrics: Sequence[str] | None, *, requirements: bool
) -> list[str]:
    readable = [d for d in declared if d.status.is_readable]
    if metrics is None:
        return [d.metric.name for d in readable]
    # The run time is always read, because it distinguishes weak from strong scaling.
    timed = [d.metric.name for d in readable if d.metric.can_be_run_time][:1]
    if not metrics and not timed:
        timed = [d.metric.name for d in readable][:1]
    asked = [d.metric.name for d in readable if d.metric.name in metrics]
    needed = [d.metric.name for d in readable if requirements and d.is_requirement]
    return list(dict.fromkeys([*asked, *timed, *needed]))
