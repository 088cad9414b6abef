"""From one profile on disk to the runs in it, read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import (
    COMPUTED,
    DeclaredMetric,
    Extent,
    MetricStatus,
    Reduction,
)
from callpath_modeler.readers.base import (
    ProfileSource,
    Reduced,
    ReducedSource,
    RunSource,
    opened_runs,
)
from callpath_modeler.readers.declared_units import in_given_units
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.plugin_errors import naming_the_reader
from callpath_modeler.readers.registry import Registry
from callpath_modeler.units import counted, parameter_value

READABLE = (MetricStatus.DATA, MetricStatus.ABSENT)

_LARGEST = 1e100
"""Nobody measures more: bits were flipped. Squares of larger values would be infinite."""


@dataclass(frozen=True, slots=True)
class ReadRun:
    """One run, read.

    Attributes
    ----------
    name : path of the profile, and which of its runs where it holds several
    file : the profile on disk
    stated : parameters that the profile states
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


def read_runs(
    file: RunFile,
    registry: Registry,
    metrics: Sequence[str] | None,
    reduction: Reduction | None,
    *,
    requirements: bool = False,
    units: Mapping[str, str] | None = None,
) -> list[ReadRun]:
    """Read the run or the runs of a profile.

    Parameters
    ----------
    metrics : names to read; empty = the first duration, or else the first metric; None = all
    reduction : over locations; None = the mean, or what there is
    requirements : read besides what call paths need beside time
    units : units of metrics whose profiles do not state them

    Raises
    ------
    InputError
        If it cannot be read.
    DataError
        If it was reduced in another way when it was written.
    """
    reader = registry.find(file.path)
    read: list[ReadRun] = []
    with naming_the_reader(reader, file.path), opened_runs(reader, file.path) as runs:
        if not runs:
            raise InputError(f"{file.path}: holds no run", hint="measure again, or leave it out")
        for run in runs:
            several = len(runs) > 1
            reduction = reduction_of(run.source, reduction, file.path)
            read.append(
                read_run(
                    *(file, run, reader.name, metrics, reduction),
                    several=several,
                    requirements=requirements,
                    units=units,
                )
            )
    return read


def reduction_of(source: ProfileSource, requested: Reduction | None, path: Path) -> Reduction:
    """Return how to reduce over locations: as asked, or refuse with a `DataError`."""
    can = tuple(source.reductions) if isinstance(source, ReducedSource) else COMPUTED
    if requested is None:
        return Reduction.MEAN if Reduction.MEAN in can else can[0]
    if requested not in can:
        raise DataError(
            f"{path}: holds no {requested} over processes: it was reduced when it was written",
            hint=f"--locations {' or '.join(can)}"
            if Reduction.GIVEN not in can
            else "leave --locations out",
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
) -> ReadRun:
    """Read one run, which may be one of `several` in its file.

    Parameters are those of `read_runs`; `reader` is the name of the reader.
    """
    source, name = run.source, str(file.path)
    if several:
        # The name of a file of several runs cannot tell one run's parameters from another's.
        others = {k: v for k, v in file.parameters.items() if k not in run.parameters}
        file, name = replace(file, parameters=others), f"{name}[{_which(run)}]"
    if run.repetition is not None:
        file = replace(file, repetition=run.repetition)
    stated = in_given_units(tuple(source.metrics), units or {}, source.extent)
    declared = stated.declared
    values: dict[str, Reduced] = {}
    noticed: list[Finding] = []
    for metric in _wanted(declared, metrics, requirements=requirements):
        found = stated.converted(metric, source.reduce(metric, reduction), reduction)
        values[metric], beyond = _sensible(found)
        if beyond:
            message = f"{metric}: {counted(beyond, 'value')} beyond {_LARGEST:g}"
            noticed.append(Finding("CPM117", name, message, beyond))
    noticed += stated.findings(name, values, reduction)
    return ReadRun(
        name,
        file,
        # Tables name their parameters: a control character would reach every terminal and page.
        {printable(name): value for name, value in run.parameters.items()},
        reader,
        source.call_tree,
        source.extent,
        dict(source.metadata),
        declared,
        reduction,
        values,
        (*source.findings(), *noticed),
    )


def _sensible(found: Reduced) -> tuple[Reduced, int]:
    """Make values that cannot be measured missing, and say how many there were."""
    beyond = np.abs(found.exclusive) > _LARGEST
    count = int(np.count_nonzero(beyond))
    if not count and not abs(found.total) > _LARGEST:
        return found, 0
    exclusive = np.where(beyond, np.nan, found.exclusive)
    total, unknown = float(np.nansum(exclusive)), float("nan")
    found = replace(found, exclusive=exclusive, total=total, run_time=unknown)
    return found, max(1, count)


def _which(run: RunSource) -> str:
    """Say which run of its file it is, e.g. ``p=64,n=30 r1``."""
    setting = ",".join(f"{k}={parameter_value(v)}" for k, v in run.parameters.items())
    return f"{setting} r{run.repetition}".strip() if run.repetition is not None else setting


def _wanted(
    declared: Iterable[DeclaredMetric], metrics: Sequence[str] | None, *, requirements: bool
) -> list[str]:
    readable = [d for d in declared if d.status in READABLE]
    if metrics is None:
        return [d.metric.name for d in readable]
    # Whatever is asked for, the run time comes along: it tells weak from strong scaling.
    timed = [d.metric.name for d in readable if d.metric.is_time and d.metric.additive][:1]
    if not metrics and not timed:
        timed = [d.metric.name for d in readable][:1]
    asked = [d.metric.name for d in readable if d.metric.name in metrics]
    needed = [d.metric.name for d in readable if requirements and d.is_requirement]
    return list(dict.fromkeys([*asked, *timed, *needed]))
