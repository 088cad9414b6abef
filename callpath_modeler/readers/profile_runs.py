"""Runs from profiles on disk, read one by one or in parallel.

Workers elsewhere may have another working directory, so they get absolute paths. Their answers name
each profile as the user did, so the answers are the same as without workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct, structs

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError, PluginError, UsageError
from callpath_modeler.printable import printable
from callpath_modeler.profile.balance import Balance
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.groups import LineCosts, RunLines
from callpath_modeler.profile.pruning import without_call_sites
from callpath_modeler.profile.schema import (
    COMPUTED,
    TIMES_OF_DEVICES,
    DeclaredMetric,
    Extent,
    Reduction,
)
from callpath_modeler.readers.base import (
    ColumnChoices,
    DividingReader,
    ProfileSource,
    Reduced,
    RunSource,
    StepRange,
    Workers,
    opened_runs,
)
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.registry import Registry, naming_the_reader
from callpath_modeler.readers.threads import (
    BalanceRequest,
    DeclaredUnits,
    in_given_units,
    read_balance,
)
from callpath_modeler.support.parallel import PROCESS_COSTS, WorkerPool, processors, worth
from callpath_modeler.units import counted, parameter_value

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from callpath_modeler.readers.process_groups import ProcessTimes
    from callpath_modeler.readers.process_selection import ProcessSelection


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
    defaults : values of parameters that the profile does not state
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
    defaults: Mapping[str, float] = msgspec.field(default_factory=dict)


class ReadRequest(Struct, frozen=True):
    """Contents of profiles to read.

    Attributes
    ----------
    metrics : names of metrics; empty = the first duration, or else the first metric; None = all
    requirements : read requirements (visits, bytes, operations), energy and times of GPUs, too
    units : units of metrics, by name, if the profile does not state them
    balance : parts of the run time to read; None = none
    processes : selected processes and their groups; None = all in one group
    call_sites : calls of a function from several lines are several call paths
    lines : read the costs of lines, too, except those of requirements
    columns : roles of columns of tables that the user states
    steps : selected steps of a loop; None = all that the profiles have
    """

    metrics: Sequence[str] | None = None
    requirements: bool = False
    units: Mapping[str, str] = msgspec.field(default_factory=dict)
    balance: BalanceRequest | None = None
    processes: ProcessSelection | None = None
    call_sites: bool = True
    lines: bool = False
    columns: ColumnChoices | None = None
    steps: StepRange | None = None


def read_runs(
    file: RunFile,
    registry: Registry,
    request: ReadRequest,
    reduction: Reduction | None,
    *,
    workers: Workers | None = None,
) -> list[ReadRun]:
    """Return the runs of a profile.

    Parameters
    ----------
    file : the profile
    registry : readers
    request : contents to read
    reduction : statistic over processes; None = the mean, or else the first available one
    workers : reduce parts of the profile, if its reader can divide it

    Raises
    ------
    UsageError
        If a column that the user states does not exist.
    InputError
        If the profile cannot be read.
    DataError
        If the profile was written with another reduction.
    """
    reader = registry.reader_of(file.path, file.reader)
    read: list[ReadRun] = []
    with (
        naming_the_reader(reader, file.path),
        opened_runs(reader, file.path, workers, request.columns) as runs,
    ):
        if not runs:
            raise InputError(f"{file.path}: holds no run", hint="measure again, or omit the file")
        for run in runs:
            reduction = reduction_of(run.source, reduction, file.path)
            read.append(read_run(file, run, reader.name, request, reduction, several=len(runs) > 1))
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
    from callpath_modeler.readers.process_selection import process_times

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


def of_steps(source: ProfileSource, steps: StepRange | None) -> ProfileSource:
    """Return a profile with the selected steps; None = with all events.

    Raises
    ------
    UsageError
        If the format of the profile knows no steps.
    InputError
        If the profile has no such step.
    """
    if steps is None:
        return source
    if not hasattr(source, "with_steps"):
        raise UsageError(
            f"--steps {steps}: profiles of this format have no steps", hint="omit --steps"
        )
    selected: ProfileSource = source.with_steps(steps)
    return selected


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
    request: ReadRequest,
    reduction: Reduction,
    *,
    several: bool,
) -> ReadRun:
    """Return one run with its values.

    Parameters
    ----------
    file : the profile
    run : the opened run
    reader : name of the reader
    request : contents to read
    reduction : statistic over processes
    several : True if the file has several runs
    """
    source, name = of_steps(run.source, request.steps), name_of(file, run, several=several)
    metrics, processes = request.metrics, request.processes
    if request.call_sites and hasattr(source, "with_call_sites"):
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
    stated = in_given_units(tuple(source.metrics), request.units, source.extent)
    alone = _sums_of_one_thread(stated.declared, metrics or (), source.extent)
    declared = (*stated.declared, *(each.of_all_threads() for each in alone.values()))
    values: dict[str, Reduced] = {}
    noticed: list[Finding] = []
    for metric in _wanted(
        declared, metrics, requirements=request.requirements, devices=request.balance is not None
    ):
        own = alone[metric].metric.name if metric in alone else metric
        found = stated.converted(own, source.reduce(own, reduction), reduction)
        found = replace(found, run_time=float("nan")) if metric in alone else found
        values[metric], beyond = _sensible(found)
        if beyond:
            message = f"{metric}: {counted(beyond, 'value')} beyond {LARGEST:g}"
            noticed.append(Finding("CPM117", name, message, beyond))
    noticed += stated.findings(name, values, reduction)
    of_lines = {}
    if request.lines and processes is None:
        chosen = _wanted(declared, metrics, requirements=False)
        of_lines = _line_costs(opened, stated, chosen, reduction)
    parts = None
    if request.balance is not None:
        try:
            parts = _balance(opened, stated, request.balance, processes)
        except DataError as error:
            noticed.append(Finding("CPM170", name, error.message))
    return ReadRun(
        name,
        file,
        _printable_names(run.parameters),
        reader,
        source.call_tree if request.call_sites else without_call_sites(source.call_tree),
        source.extent,
        dict(source.metadata),
        declared,
        reduction,
        values,
        (*source.findings(), *noticed),
        parts,
        of_lines,
        run.cases,
        _printable_names(run.defaults),
    )


def _printable_names(parameters: Mapping[str, float]) -> dict[str, float]:
    """Return parameters whose names, which may come from tables, have no control characters."""
    return {printable(name): value for name, value in parameters.items()}


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
    declared: Iterable[DeclaredMetric], metrics: Sequence[str] | None, *, requirements: bool,
    devices: bool = False,
) -> list[str]:  # fmt: skip
    readable = [d for d in declared if d.status.is_readable]
    if metrics is None:
        return [d.metric.name for d in readable]
    # The run time is always read, because it distinguishes weak from strong scaling.
    timed = [d.metric.name for d in readable if d.metric.can_be_run_time][:1]
    if not metrics and not timed:
        timed = [d.metric.name for d in readable][:1]
    asked = [d.metric.name for d in readable if d.metric.name in metrics]
    needed = [d.metric.name for d in readable if requirements and d.is_beside_run_time]
    # Factors of efficiency include those of GPUs.
    needed += [d.metric.name for d in readable if devices and d.metric.name in TIMES_OF_DEVICES]
    return list(dict.fromkeys([*asked, *timed, *needed]))


def with_absolute_path(file: RunFile) -> RunFile:
    """Return a profile with its absolute path."""
    return structs.replace(file, path=file.path.absolute())


def named_as(file: RunFile, outcome: list[ReadRun] | InputError) -> list[ReadRun] | InputError:
    """Return the runs or the error of a profile, which name it as `file` does."""
    long, short = str(file.path.absolute()), str(file.path)
    if long == short:
        return outcome
    if isinstance(outcome, InputError):
        hint = outcome.hint and outcome.hint.replace(long, short)
        return InputError(outcome.message.replace(long, short), hint=hint)
    return [
        structs.replace(
            run,
            name=run.name.replace(long, short),
            file=structs.replace(run.file, path=file.path),
            findings=tuple(_renamed(each, long, short) for each in run.findings),
        )
        for run in outcome
    ]


def _renamed(finding: Finding, long: str, short: str) -> Finding:
    subject, message = (text.replace(long, short) for text in (finding.subject, finding.message))
    return structs.replace(finding, subject=subject, message=message)


Progress = Callable[[int, int], None]
Outcome = list[ReadRun] | InputError

_SECONDS_PER_FILE, _SECONDS_PER_BYTE = 3e-3, 1e-8
"""Typical time of reading; cached files take less, traces take more."""

_SMALLEST_DIVIDED = 1 << 26
"""Size of a profile, in bytes, from which on several workers may read it together."""

_PARTS_PER_THREAD = 4
"""A thread gets several parts of a profile, because other work may delay it."""

_SECONDS_TO_OPEN, _SECONDS_PER_STORED_BYTE = 0.2, 1e-9
"""Typical time of opening a profile of this size, and of reducing its values from memory."""


def read_files(
    files: Sequence[RunFile],
    registry: Registry,
    request: ReadRequest,
    reduction: Reduction | None,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[RunFile, Outcome]]:
    """Yield the runs of each profile, all with the reduction of the first readable one.

    Parameters
    ----------
    files : profiles
    registry : readers
    request, reduction : as in `read_runs`
    jobs : maximum number of processes, or of threads that share one large profile; 0 = one for each
        processor
    executor : reads the profiles instead of processes and threads of this machine
    progress : function that gets the number of profiles read, and the number of all profiles

    Yields
    ------
    file : RunFile
        The profile.
    outcome : list of ReadRun, or InputError
        Its runs, or the error.

    Raises
    ------
    DataError
        If a profile was written with another reduction.
    WorkerDiedError
        If a reading process is killed.
    """

    def told(done: int) -> None:
        if progress:
            progress(done, len(files))

    asked = files
    if executor is not None:
        files = [with_absolute_path(file) for file in files]
    tried = partial(_tried, registry, request)
    shared = jobs != 1 or executor is not None
    sizes = [_size(file.path) for file in files] if shared else None
    divided: dict[int, Outcome] = {}
    # Other passes than `reduce` would be made by this thread alone.
    if sizes is not None and request.processes is None and request.balance is None:
        # Threads suffice: they reduce arrays, which needs no interpreter.
        with WorkerPool(jobs or processors(), threads=True, executor=executor) as pool:
            parts = pool.count if executor else _PARTS_PER_THREAD * pool.count
            begin = 0.0 if executor else PROCESS_COSTS
            for number in _divided(files, sizes, registry, pool.count, begin):
                each = partial(pool.map, named=partial(_name, files[number]))
                # An error that ends the reading is raised when it is the turn of its profile.
                with suppress(DataError, PluginError):
                    divided[number] = tried(reduction, files[number], workers=Workers(each, parts))
                told(len(divided))
    early = len(divided)
    others = [number for number in range(len(files)) if number not in divided]
    sizes = sizes and [sizes[number] for number in others]
    seconds = _SECONDS_PER_FILE * len(others) + _SECONDS_PER_BYTE * sum(sizes or ())
    agreed = reader = None
    with WorkerPool(min(len(others), worth(jobs, seconds)), executor=executor) as pool:
        outcomes = pool.map(
            partial(tried, reduction),
            [files[number] for number in others],
            sizes=sizes,
            told=lambda done: told(early + done),
            named=_name,
        )
        for number, file in enumerate(asked):
            outcome = divided.pop(number) if number in divided else next(outcomes)
            if executor is not None:
                outcome = named_as(file, outcome)
            if isinstance(outcome, InputError):
                yield file, outcome
                continue
            agreed = agreed or outcome[0].reduction
            reader = reader or outcome[0].reader
            # A profile may have another default reduction than the series, so it is read again. A
            # profile of another tool is reported when all runs are known.
            alike = outcome[0].reduction is agreed or outcome[0].reader != reader
            yield file, outcome if alike else tried(agreed, file)


def _tried(
    registry: Registry,
    request: ReadRequest,
    reduction: Reduction | None,
    file: RunFile,
    workers: Workers | None = None,
) -> Outcome:
    try:
        return read_runs(file, registry, request, reduction, workers=workers)
    except InputError as error:
        return error


def _divided(
    files: Sequence[RunFile], sizes: Sequence[int], registry: Registry, workers: int, begin: float
) -> list[int]:
    """Return the numbers of the profiles that are divided between all workers, one after the other.

    These are the largest ones, as many as the least estimated time needs.

    Parameters
    ----------
    begin : seconds until workers begin with the other profiles
    """
    opening, rate = _SECONDS_TO_OPEN, _SECONDS_PER_STORED_BYTE
    order = sorted(range(len(files)), key=lambda number: -sizes[number])
    left = sum(sizes)
    best, least, before = 0, float("inf"), 0.0
    for count, number in enumerate(order):
        # The others are read at the same time, each by one worker.
        whole = begin + opening + rate * max(sizes[number], left / workers)
        if before + whole < least:
            best, least = count, before + whole
        if sizes[number] < _SMALLEST_DIVIDED:
            break
        before += opening + rate * sizes[number] / workers
        left -= sizes[number]
    else:
        best = len(files) if before < least else best
    readers = ((number, registry.match(files[number].path)) for number in order[:best])
    return [number for number, reader in readers if isinstance(reader, DividingReader)]


def _name(file: RunFile, _part: object = None) -> str:
    return str(file.path)


def _size(profile: Path) -> int:
    """Return the size of a profile in bytes, including its directory or that of a trace."""
    folders = [profile, profile.with_suffix("")]
    files = [file for folder in folders if folder.is_dir() for file in folder.rglob("*")]
    return sum(file.stat().st_size for file in [profile, *files] if file.is_file())
