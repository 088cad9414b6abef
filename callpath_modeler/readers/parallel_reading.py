"""Parallel reading of profiles, with results in the order of the files.

Workers elsewhere may have another working directory, so they get absolute paths. Their answers name
each profile as the user did, so the answers are the same as without workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError, InputError, PluginError
from callpath_modeler.parallel import PROCESS_COSTS, WorkerPool, processors, worth
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.balances import BalanceRequest
from callpath_modeler.readers.base import ColumnChoices, DividingReader, Workers
from callpath_modeler.readers.discover import RunFile
from callpath_modeler.readers.process_selection import ProcessSelection
from callpath_modeler.readers.registry import Registry
from callpath_modeler.readers.runs import ReadRun, read_runs

if TYPE_CHECKING:
    from concurrent.futures import Executor


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
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Iterator[tuple[RunFile, Outcome]]:
    """Yield the runs of each profile, all with the reduction of the first readable one.

    Parameters
    ----------
    files : profiles
    registry : readers
    metrics, reduction, requirements, units, balance, processes : as in `read_runs`
    call_sites, lines, columns : as in `read_runs`
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
    given = requirements, units, balance, processes, call_sites, lines, columns
    tried = partial(_tried, registry, metrics, *given)
    shared = jobs != 1 or executor is not None
    sizes = [_size(file.path) for file in files] if shared else None
    divided: dict[int, Outcome] = {}
    # Other passes than `reduce` would be made by this thread alone.
    if sizes is not None and processes is None and balance is None:
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
    metrics: Sequence[str] | None,
    requirements: bool,
    units: Mapping[str, str] | None,
    balance: BalanceRequest | None,
    processes: ProcessSelection | None,
    call_sites: bool,
    lines: bool,
    columns: ColumnChoices | None,
    reduction: Reduction | None,
    file: RunFile,
    workers: Workers | None = None,
) -> Outcome:
    try:
        return read_runs(
            *(file, registry, metrics, reduction),
            requirements=requirements,
            units=units,
            balance=balance,
            processes=processes,
            call_sites=call_sites,
            lines=lines,
            columns=columns,
            workers=workers,
        )
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
