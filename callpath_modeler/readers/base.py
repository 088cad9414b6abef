"""What a reader plugin has to provide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from callpath_modeler.arrays import Float32Array, FloatArray
    from callpath_modeler.diagnostics import Finding
    from callpath_modeler.profile.calltree import CallTree
    from callpath_modeler.profile.schema import DeclaredMetric, Extent, Reduction

API_VERSION = 1
"""Raised whenever a reader written for the previous number would stop working."""


class Match(IntEnum):
    """How sure a reader is that a path is one of its profiles."""

    NO = 0
    NAME = 1
    CONTENT = 2


@dataclass(frozen=True, slots=True)
class Reduced:
    """One metric of one profile, reduced over its locations.

    Attributes
    ----------
    exclusive : [call paths] in rows of the profile's call tree, SI base units; NaN where the
        profile has nothing to say of a call path (zero is a measured value)
    total : the inclusive value of the whole program, reduced the same way but measured on
        its own, not summed over call paths; NaN for metrics that do not add up
    imbalance : [call paths], beside another reduction the largest over the mean of the processes,
        where a reader has seen them all in passing; NaN where nothing was measured
    run_time : of a duration, under every reduction: the inclusive time of the whole program on
        the slowest process, which is that of its slowest thread; NaN where it is not recorded
    """

    exclusive: FloatArray
    total: float
    imbalance: Float32Array | None = None
    run_time: float = float("nan")


class ProfileSource(Protocol):
    """One opened profile. Nothing large is read before `reduce` asks for it."""

    @property
    def call_tree(self) -> CallTree:
        """The call paths; two siblings may carry one name, the experiment adds them."""
        ...

    @property
    def metrics(self) -> Sequence[DeclaredMetric]:
        """Every metric the profile declares, readable or not."""
        ...

    @property
    def extent(self) -> Extent:
        """Processes, threads and nodes of the run."""
        ...

    @property
    def metadata(self) -> Mapping[str, str]:
        """What else the profile says of the run: creator, program, command line, ..."""
        ...

    def reduce(self, metric: str, over_locations: Reduction) -> Reduced:
        """Return one exclusive value per call path.

        Threads are folded into their process first, then processes into one value. A metric
        with status ``ABSENT`` is zero everywhere. A profile that can do only some reductions
        is a `ReducedSource` as well and is asked for no other.

        Raises
        ------
        KeyError
            If the profile declares no such metric, or its status is neither DATA nor ABSENT.
        InputError
            If the file turns out to be unreadable.
        """
        ...

    def findings(self) -> Sequence[Finding]:
        """Return what was noticed in opening the profile and in all reads so far."""
        ...


@runtime_checkable
class ReducedSource(Protocol):
    """A profile whose locations were reduced when it was written: not every reduction is left."""

    @property
    def reductions(self) -> Sequence[Reduction]:
        """What `reduce` can be asked for; the first is taken where nobody asks."""
        ...


@dataclass(frozen=True, slots=True)
class RunSource:
    """One of the runs that a file holds.

    Attributes
    ----------
    source : its profile
    parameters : what the file states of its parameters; this counts before names
    repetition : number of the repetition as the file states it, or None
    """

    source: ProfileSource
    parameters: Mapping[str, float] = field(default_factory=dict)
    repetition: int | None = None


class Reader(Protocol):
    """What `ProfileReader` and `SeriesReader` have in common.

    Importing the module that holds a reader must be cheap: import the library that
    parses the format where a file is opened.
    """

    api_version: ClassVar[int]
    name: ClassVar[str]
    description: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def match(self, path: Path) -> Match:
        """Say whether `path` is a profile of this tool, reading at most its first block."""
        ...


@runtime_checkable
class ProfileReader(Reader, Protocol):
    """Opens the profiles of one tool: one path, one run."""

    def open(self, path: Path) -> AbstractContextManager[ProfileSource]:
        """Open `path`, or raise `InputError` saying what is wrong with it."""
        ...


@runtime_checkable
class SeriesReader(Reader, Protocol):
    """Opens files that may hold several runs, or that state the parameters of their run."""

    def open_runs(self, path: Path) -> AbstractContextManager[Sequence[RunSource]]:
        """Open all runs of `path`, or raise `InputError` saying what is wrong with it.

        No two runs of a file agree in parameters and repetition. What is to be said of
        the file as a whole is a finding of its first run.
        """
        ...


@contextmanager
def opened_runs(reader: Reader, path: Path) -> Iterator[Sequence[RunSource]]:
    """Open the run or the runs of `path`, whichever way `reader` has."""
    if isinstance(reader, SeriesReader):
        with reader.open_runs(path) as runs:
            yield runs
    elif isinstance(reader, ProfileReader):
        with reader.open(path) as source:
            yield (RunSource(source),)
    else:
        raise TypeError(f"reader {reader.name!r} has neither open nor open_runs")


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one metric compares between a reader and an independent one.

    Attributes
    ----------
    metric : metric name
    compared : number of values compared
    differing : number of values that differ
    note : why nothing could be compared, or ""
    """

    metric: str
    compared: int
    differing: int
    note: str = ""


@runtime_checkable
class VerifyingReader(Protocol):
    """A reader that can check itself against an independent implementation."""

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Read `path` twice, with both implementations, and compare value by value."""
        ...
