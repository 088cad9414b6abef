"""The contract of reader plugins.

A reader recognises and opens the profiles of one tool. It implements `ProfileReader` or
`SeriesReader`, and returns a `ProfileSource` for each run. `ReducedSource`, `ThreadSource`,
`MainThreadSource`, `CallSiteSource`, `StepSource`, `LineSource`, `PlacedSource`, `DividingReader`,
`VerifyingReader` and `ColumnReader` are optional.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast, runtime_checkable

import msgspec
from msgspec import Struct

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shortened

if TYPE_CHECKING:
    from callpath_modeler.arrays import BoolArray, Float32Array, FloatArray, IntArray
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.calltree import CallTree
    from callpath_modeler.profile.groups import LineCosts
    from callpath_modeler.profile.schema import DeclaredMetric, Extent, Placement, Reduction

API_VERSION = 1
"""Version of the contract; it increases with every change that breaks existing readers."""

CREATOR_OF_MODELS = "callpath-modeler"
"""First word of the creator of files that hold predictions of this program."""


class Match(IntEnum):
    """Evidence that a path is a profile of a reader.

    Attributes
    ----------
    NO : the path is not a profile of this reader
    NAME : only the name fits
    CONTENT : the content fits
    """

    NO = 0
    NAME = 1
    CONTENT = 2


@dataclass(frozen=True, slots=True)
class Reduced:
    """One metric of one profile, reduced to one value per call path.

    All values are in the SI base unit that the profile's `DeclaredMetric` states.

    Attributes
    ----------
    exclusive : float64 [call paths], by row of the profile's call tree. 0 is a measured value; NaN
        = the profile has no value
    total : inclusive value of the whole program, with the same reduction, but measured separately
        instead of summed over call paths; NaN for metrics that are not additive
    imbalance : float32 [call paths], the largest over the mean of the processes, 1 = balanced; NaN
        = not measured. None if the reader does not know it, or if the reduction is the imbalance
    run_time : for durations, the inclusive time of the whole program on the slowest process, which
        is the time of its longest thread; the same for every reduction; NaN = not recorded
    """

    exclusive: FloatArray
    total: float
    imbalance: Float32Array | None = None
    run_time: float = float("nan")


class ProfileSource(Protocol):
    """One opened profile.

    Large data are read by `reduce`, not when the profile is opened.
    """

    @property
    def call_tree(self) -> CallTree:
        """The call paths; the experiment adds siblings of the same name."""
        ...

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """All metrics that the profile declares, readable or not."""
        ...

    @property
    def extent(self) -> Extent:
        """Number of processes, threads and nodes of the run."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """Further entries of the profile, such as creator, program and command line."""
        ...

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        The threads of a process are reduced first, then the processes. Threads run side by side, so
        the times of a process are those of its longest thread
        (`callpath_modeler.readers.threads`); other values are sums over its threads. A metric with
        the status ``ABSENT`` is zero everywhere.

        Parameters
        ----------
        metric : name of a metric with the status ``DATA`` or ``ABSENT``
        over_locations : statistic over processes; for a `ReducedSource`, always one of its
            `reductions`

        Returns
        -------
        Reduced
            Values in rows of `call_tree`, in the SI base unit of the metric.

        Raises
        ------
        KeyError
            If the profile does not declare the metric, or if the metric has another status.
        InputError
            If the file cannot be read.
        """
        ...

    def findings(self) -> Sequence[Finding]:
        """Return the findings from opening the profile and from all calls of `reduce` so far."""
        ...


@runtime_checkable
class ReducedSource(Protocol):
    """A profile that was reduced when it was written, so that it has only some reductions."""

    @property
    def reductions(self) -> Sequence[Reduction]:
        """Available reductions, at least one; the default is the mean, or else the first."""
        ...


@runtime_checkable
class CallSiteSource(Protocol):
    """A profile that joins the calls of a function from several lines, unless it is told otherwise.

    A profile that always has them separate needs no method: it states the lines in
    `CallTree.site`.
    """

    def with_call_sites(self) -> ProfileSource:
        """Return the same profile, in which calls from several lines are several call paths."""
        ...


class StepRange(Struct, frozen=True):
    """Numbers of selected steps of a training run or another loop.

    Attributes
    ----------
    first, last : first and last number; None = up to the last step of the run
    """

    first: int = 0
    last: int | None = None

    @classmethod
    def of(cls, text: str) -> StepRange:
        """Return the range of a text such as ``3-``, ``3-5``, ``-5`` or ``3``.

        Raises
        ------
        UsageError
            If the text is no range.
        """
        found = _STEPS.fullmatch(text.strip())
        if found is None or text.strip() in {"", "-"}:
            raise UsageError(
                f"--steps {shortened(text)!r}: not a range of steps", hint="e.g. --steps 3-"
            )
        first, dash, last = found.groups()
        begin = int(first or 0)
        end = (int(last) if last else None) if dash else begin
        if end is not None and end < begin:
            raise UsageError(f"--steps {text}: no step is in this range", hint="e.g. --steps 3-")
        return cls(begin, end)

    def __str__(self) -> str:
        last = "" if self.last is None else str(self.last)
        return last if self.first == self.last else f"{self.first}-{last}"

    def selects(self, number: IntArray) -> BoolArray:
        """Return which steps are selected by their numbers, [k]."""
        return (number >= self.first) & (self.last is None or number <= self.last)


_STEPS = re.compile(r"(\d{0,9})(-?)(\d{0,9})")


@runtime_checkable
class StepSource(Protocol):
    """A profile of a program that repeats steps, which can be selected."""

    def with_steps(self, steps: StepRange) -> ProfileSource:
        """Return the same profile with the events of the selected steps only.

        Raises
        ------
        InputError
            If the profile has no such step.
        """
        ...


@runtime_checkable
class LineSource(Protocol):
    """A profile with values of single lines of the source."""

    def line_costs(self, metric: str, over_locations: Reduction) -> LineCosts:
        """Return the exclusive values of the lines of each call path.

        Parameters
        ----------
        metric : name of an additive metric with the status ``DATA`` or ``ABSENT``
        over_locations : statistic over processes

        Raises
        ------
        KeyError
            If the profile does not declare the metric, or if the metric has another status.
        InputError
            If the file cannot be read.
        """
        ...


class ThreadSums(Struct, frozen=True, eq=False):
    """Sums over groups of call paths, for each thread.

    Attributes
    ----------
    values : float64 [groups, threads], in the SI base unit that the profile's `DeclaredMetric`
        states
    process : intp [threads] number of the process of each thread, ascending; every process from 0
        on has at least one thread
    """

    values: FloatArray
    process: IntArray


@runtime_checkable
class ThreadSource(Protocol):
    """A profile with values of single threads, which can be summed over call paths.

    A maximum over processes of such a sum does not follow from the maxima of call paths. Therefore
    the factors of parallel efficiency need this method; profiles without it have none.
    """

    def sums_of_threads(self, metric: str, group: IntArray, groups: int) -> ThreadSums:
        """Return sums of exclusive values over groups of call paths, for each thread.

        The memory is that of the result and of a few blocks. Invalid values are treated as in
        `ProfileSource.reduce`; missing ones count as zero.

        Parameters
        ----------
        metric : name of an additive metric with the status ``DATA`` or ``ABSENT``
        group : intp [call paths] number of the group of each call path; negative = in no group
        groups : number of groups

        Raises
        ------
        KeyError
            If the profile does not declare the metric, or if the metric has another status.
        InputError
            If the file cannot be read.
        DataError
            If this profile has no values of single threads. The message says why.
        """
        ...


@runtime_checkable
class MainThreadSource(ThreadSource, Protocol):
    """A profile whose main threads do the work, while other threads help them.

    Helpers are no workers beside the main threads, so they have no part in the efficiency.
    """

    def main_threads(self) -> BoolArray:
        """Return which threads are main threads, [threads], in the order of `ThreadSums`."""
        ...


@runtime_checkable
class PlacedSource(Protocol):
    """A profile that states the ranks and compute nodes of its processes.

    Without this method, the ranks of processes are their numbers, and their nodes are not known.
    """

    def placement(self) -> Placement:
        """Return rank and place of each process, in the order of `ThreadSums.process`.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        ...


class RunSource(Struct, frozen=True):
    """One run of a file.

    Attributes
    ----------
    source : the profile of the run
    parameters : values of parameters by name, as the file states them; they have priority over
        names of files and directories
    repetition : number of the repetition, as the file states it; None = the file does not state it
    cases : keys of the metadata that tell programs, inputs or machines apart; runs that differ in
        one of them are never repetitions of each other
    defaults : values of parameters that the file does not state, by name, such as one process in
        each group; they hold if another run states the parameter
    """

    source: ProfileSource
    parameters: Mapping[str, float] = msgspec.field(default_factory=dict)
    repetition: int | None = None
    cases: tuple[str, ...] = ()
    defaults: Mapping[str, float] = msgspec.field(default_factory=dict)


class Reader(Protocol):
    """The common part of `ProfileReader` and `SeriesReader`.

    The import of a reader's module must be fast. Import the library that parses the format only
    when a file is opened.

    Attributes
    ----------
    api_version : the `API_VERSION` for which the reader was written
    name : name for the option ``--reader``
    description : one line of text
    suffixes : endings of file names, such as ``(".cubex",)``
    """

    api_version: ClassVar[int]
    name: ClassVar[str]
    description: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def match(self, path: Path) -> Match:
        """Return the evidence that `path` is a profile of this tool.

        The method reads at most the first block of a file.
        """
        ...


@runtime_checkable
class ProfileReader(Reader, Protocol):
    """A reader of files or directories with one run each."""

    def open(self, path: Path) -> AbstractContextManager[ProfileSource]:
        """Return a context manager that opens `path` and closes it at the end.

        Raises
        ------
        InputError
            If `path` is not a valid profile. The message names the fault.
        """
        ...


@runtime_checkable
class SeriesReader(Reader, Protocol):
    """A reader of files with several runs, or with the parameters of their run."""

    def open_runs(self, path: Path) -> AbstractContextManager[Sequence[RunSource]]:
        """Return a context manager that opens all runs of `path` and closes them at the end.

        The runs of a file differ in parameters or repetition. Findings about the whole file belong
        to its first run.

        Raises
        ------
        InputError
            If `path` is not a valid file. The message names the fault.
        """
        ...


class Workers(Struct, frozen=True):
    """Workers for the parts of one profile.

    Attributes
    ----------
    each : like the builtin `map`, returns the results of a function for parts, in their order.
        Workers may be threads. For processes, also on other nodes, the function, the parts and the
        results are pickled; what cannot be pickled is done by the caller
    parts : number of parts that keeps all workers busy
    """

    each: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
    parts: int


@runtime_checkable
class DividingReader(ProfileReader, Protocol):
    """A reader that can divide the reduction of one profile between workers."""

    def open_for(self, workers: Workers, path: Path) -> AbstractContextManager[ProfileSource]:
        """Return a context manager as `open` does, whose source gives parts of `reduce` to workers.

        The results are the same to the last bit for every number of parts.

        Raises
        ------
        InputError
            As in `open`.
        """
        ...


@cache
def _is_of_series(kind: type[Reader]) -> bool:
    """Return whether a reader is a `SeriesReader`; this takes longer than reading a small table."""
    return hasattr(kind, "open_runs")


@contextmanager
def opened_runs(
    reader: Reader,
    path: Path,
    workers: Workers | None = None,
    choices: ColumnChoices | None = None,
) -> Iterator[Sequence[RunSource]]:
    """Yield the runs of `path`, from `open_runs` or `open` of the reader.

    Parameters
    ----------
    reader : the reader
    path : the profile
    workers : reduce parts of the profile, if the reader can divide it
    choices : roles of columns that the user states; None = none

    Raises
    ------
    TypeError
        If the reader has neither method.
    UsageError
        If the reader knows no columns, and `choices` name some.
    InputError
        If `path` is not a valid profile.
    """
    if choices:
        if isinstance(reader, ColumnReader):
            with reader.open_columns(path, choices) as runs:
                yield runs
            return
        if choices.required:
            option = choices.required[0]
            raise UsageError(
                f"{path}: {option} is for columns of tables; reader {reader.name!r} reads no table",
                hint=f"omit {option}",
            )
    if _is_of_series(type(reader)):
        with cast("SeriesReader", reader).open_runs(path) as runs:
            yield runs
    elif workers is not None and isinstance(reader, DividingReader):
        with reader.open_for(workers, path) as source:
            yield (RunSource(source),)
    elif isinstance(reader, ProfileReader):
        with reader.open(path) as source:
            yield (RunSource(source),)
    else:
        raise TypeError(f"reader {reader.name!r} has neither open nor open_runs")


class Agreement(Struct, frozen=True):
    """Comparison of one metric between a reader and an independent implementation.

    Attributes
    ----------
    metric : name of the metric
    compared : number of compared values
    differing : number of values that differ
    note : reason why no value was compared, or ""
    """

    metric: str
    compared: int
    differing: int
    note: str = ""


@runtime_checkable
class VerifyingReader(Protocol):
    """A reader that can be compared with an independent implementation."""

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Read `path` with both implementations and return one comparison per metric."""
        ...


NUMBER_OF_REPETITION = "number of the repetition"
"""Use of a column that tells repetitions apart."""


OF_COLUMNS = frozenset({"--drop", "--time", "--repetition"})
"""Options that name columns of tables."""


class ColumnChoices(Struct, frozen=True):
    """Roles of columns of tables that the user states.

    Attributes
    ----------
    drop : titles of columns that are not used
    time : title of the column with the run time; "" = not stated
    repetition : title of the column that tells repetitions apart; "" = not stated
    parameters : titles of columns that are parameters, if they exist
    if_there : options whose columns may be missing, because a configuration file names them
    configured : options of a configuration file, which other roles of their columns replace
    """

    drop: tuple[str, ...] = ()
    time: str = ""
    repetition: str = ""
    parameters: tuple[str, ...] = ()
    if_there: frozenset[str] = frozenset()
    configured: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether any role is stated."""
        return bool(self.drop or self.time or self.repetition or self.parameters)

    @property
    def required(self) -> tuple[str, ...]:
        """The options whose columns must exist."""
        given = {"--drop": self.drop, "--time": self.time, "--repetition": self.repetition}
        return tuple(name for name, of in given.items() if of and name not in self.if_there)


NO_CHOICES = ColumnChoices()


class ColumnRole(Struct, frozen=True):
    """The role of a column of a table.

    Attributes
    ----------
    title : title of the column
    use : what the column is used for
    reason : why
    option : how to change that; "" = only by another title
    setting : table, key and value of ``cpmodel.toml`` that state this role; empty = none does
    """

    title: str
    use: str
    reason: str
    option: str = ""
    setting: tuple[str, ...] = ()


class TableReading(Struct, frozen=True):
    """How a table is read.

    Attributes
    ----------
    columns : the role of every column, in the order of the table
    layout : properties of the layout, such as the separator, with their values
    assumed : units that no title states, by metric
    """

    columns: Sequence[ColumnRole]
    layout: Sequence[tuple[str, str]] = ()
    assumed: Mapping[str, str] = msgspec.field(default_factory=dict)


@runtime_checkable
class ColumnReader(SeriesReader, Protocol):
    """A reader of tables, whose columns have roles."""

    def open_columns(
        self, path: Path, choices: ColumnChoices
    ) -> AbstractContextManager[Sequence[RunSource]]:
        """Return a context manager as `open_runs` does, with the roles that the user states.

        Raises
        ------
        UsageError
            If a column does not exist.
        InputError
            As in `open_runs`.
        """
        ...

    def explain(self, path: Path, choices: ColumnChoices) -> TableReading:
        """Return how a table is read.

        Raises
        ------
        UsageError, InputError
            As in `open_columns`.
        """
        ...
