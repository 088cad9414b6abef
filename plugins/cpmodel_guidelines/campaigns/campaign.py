"""The data model of benchmark campaigns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.readers.assemble import ReadOptions, assemble_runs
from callpath_modeler.readers.paths import split_paths
from callpath_modeler.readers.records import Records, runs_of
from callpath_modeler.support.input_limits import UNLIMITED
from callpath_modeler.units import counted
from cpmodel_guidelines.statistics.repetition_count import RepetitionCount, without_tukey_outliers


class Detail(IntEnum):
    """Level of detail of times in a file; of several files, the most detailed one is used."""

    OBSERVATIONS = 0
    COPIED_OBSERVATIONS = 1  # a table that another tool made from the output of the benchmark
    MEDIANS = 2
    MEANS = 3


@dataclass(frozen=True, slots=True)
class Cell:
    """What was measured: a function with messages of one size.

    Attributes
    ----------
    function : name in the file, such as ``MPI_Bcast`` or ``GL_Gather_as_Reduce``
    size : message size in bytes, in the convention of `cpmodel_guidelines.rules`: the block of one
        process for functions that gather, scatter or exchange, and the whole buffer for others
    """

    function: str
    size: float


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The output of one mpirun, or of a part of it.

    Attributes
    ----------
    source : path of the file
    line : line at which the section begins
    library : name of the MPI library; "" = not stated
    processes : number of processes
    mpirun : number of the mpirun if the file states it; None = this section is one mpirun
    detail : level of detail of the times
    times : times in seconds of each cell, in the order of measurement
    predicted : numbers of repetitions that the benchmark predicted for each cell
    """

    source: str
    line: int
    library: str
    processes: int
    mpirun: int | None
    detail: Detail
    times: dict[Cell, list[float]]
    predicted: dict[Cell, RepetitionCount] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """The times of one cell in one mpirun.

    Attributes
    ----------
    library, processes : MPI library, and number of processes
    cell : function and message size
    mpirun : number of the mpirun, from 1
    times : [n] observed times in seconds in the order of measurement, or one median or mean
    detail : level of detail of `times`
    source : path of the file
    predicted : number of repetitions that the benchmark predicted; None = it predicted none
    """

    library: str
    processes: int
    cell: Cell
    mpirun: int
    times: FloatArray
    detail: Detail
    source: str
    predicted: RepetitionCount | None = None

    @property
    def series(self) -> tuple[str, int]:
        """Return the library and the number of processes."""
        return self.library, self.processes


@dataclass(frozen=True, slots=True, eq=False)
class Campaign:
    """Measurements of several mpiruns.

    Attributes
    ----------
    name : name for messages
    measurements : one for each library, number of processes, function, size and mpirun
    findings : data quality findings
    """

    name: str
    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...] = ()

    def medians(self, *, without_outliers: bool = False) -> FloatArray:
        """Return one median per measurement, in seconds.

        Parameters
        ----------
        without_outliers : remove outliers by Tukey's rule first, as the published code does
        """
        reduce = without_tukey_outliers if without_outliers else np.asarray
        return np.array([_median(reduce(each.times)) for each in self.measurements])

    def mpiruns(self) -> dict[tuple[str, int], int]:
        """Return the number of mpiruns of each library and number of processes."""
        most: dict[tuple[str, int], int] = {}
        for each in self.measurements:
            most[each.series] = max(most.get(each.series, 0), each.mpirun)
        return most


def plain_size(size: float) -> float:
    """Return a size without decimals if it has none."""
    return int(size) if size == int(size) else size


def _median(times: FloatArray) -> float:
    # np.median takes ten times as long for few times.
    ordered, last = np.sort(times), len(times) - 1
    return float(ordered[last // 2] + ordered[(last + 1) // 2]) / 2


def campaign_of(
    name: str, sections: Sequence[Section], findings: Iterable[Finding] = ()
) -> Campaign:
    """Return the campaign of sections, with the mpiruns numbered in the order of the sections.

    Sections with a common function belong to one series, in which each section is the next mpirun.
    So the files of a benchmark that measures one function per program are counted function by
    function.

    Raises
    ------
    DataError
        If there is no section with times.
    """
    sections, told = _most_detailed([each for each in sections if each.times])
    if not sections:
        raise DataError(f"{name}: no time was measured", hint="give the output of a benchmark")
    numbers = _numbered(sections)
    found: dict[tuple[str, int, Cell, int], Measurement] = {}
    for section, number in zip(sections, numbers, strict=True):
        for cell, times in section.times.items():
            key = section.library, section.processes, cell, number
            before = found.get(key)
            values = np.array(times)
            if before is not None:
                values = np.concatenate([before.times, values])
            predicted = section.predicted.get(cell)
            found[key] = Measurement(*key, values, section.detail, section.source, predicted)
    return Campaign(name, tuple(found.values()), (*findings, *told))


def _most_detailed(sections: Sequence[Section]) -> tuple[list[Section], list[Finding]]:
    """Drop times of a function if another file has them in more detail."""
    best: dict[tuple[str, int, str], Detail] = {}
    for section in sections:
        for function in {cell.function for cell in section.times}:
            key = section.library, section.processes, function
            best[key] = min(best.get(key, section.detail), section.detail)
    kept, dropped = [], []
    for section in sections:
        times = {
            cell: values
            for cell, values in section.times.items()
            if best[section.library, section.processes, cell.function] == section.detail
        }
        if len(times) < len(section.times):
            dropped.append(section.source)
        if times:
            kept.append(replace(section, times=times))
    sources = list(dict.fromkeys(dropped))
    if not sources:
        return kept, []
    verb = "repeats" if len(sources) == 1 else "repeat"
    message = f"{counted(len(sources), 'file')} {verb} times that other files have in more detail"
    return kept, [Finding("CPM304", sources[0], message, len(sources))]


def _numbered(sections: Sequence[Section]) -> Iterator[int]:
    """Yield the number of the mpirun of each section."""
    series = _Series()
    for section in sections:
        series.join([(section.library, section.processes, c.function) for c in section.times])
    counts: dict[tuple[str, int, str], int] = {}
    for section in sections:
        if section.mpirun is not None:
            yield section.mpirun
            continue
        first = next(iter(section.times)).function
        key = series.root((section.library, section.processes, first))
        counts[key] = counts.get(key, 0) + 1
        yield counts[key]


class _Series:
    """Functions that occur together, as disjoint sets."""

    def __init__(self) -> None:
        self._parents: dict[tuple[str, int, str], tuple[str, int, str]] = {}

    def root(self, key: tuple[str, int, str]) -> tuple[str, int, str]:
        """Return the representative of the set of a function."""
        while (parent := self._parents.setdefault(key, key)) != key:
            # Halving the path keeps later look-ups short.
            self._parents[key] = key = self._parents[parent]
        return key

    def join(self, keys: Sequence[tuple[str, int, str]]) -> None:
        """Unite the sets of functions."""
        for key in keys[1:]:
            self._parents[self.root(key)] = self.root(keys[0])


METRIC, SIZE, PROCESSES = "latency", "size", "p"
"""Names of the metric and the parameters of the experiment of a campaign."""

_MOST_VALUES = 1 << 24
"""Largest number of combinations of function, setting and mpirun."""


def experiment_of(campaign: Campaign, *, without_outliers: bool = False) -> Experiment:
    """Return an experiment with one call path per function, and the mpiruns as repetitions.

    Values are medians in seconds. If no function has a message size, there is no such parameter.

    Parameters
    ----------
    without_outliers : remove the outliers of each mpirun before its median is computed

    Raises
    ------
    DataError
        If there are too many combinations of functions, sizes and mpiruns.
    """
    every = campaign.measurements
    names = dict.fromkeys((each.library, each.cell.function) for each in every)
    parts = split_paths([function for _, function in names])
    paths = [
        (library, *part) if library else part
        for (library, _), part in zip(names, parts, strict=True)
    ]
    order = {name: k for k, name in enumerate(names)}
    settings = {(each.processes, each.cell.size) for each in every}
    mpiruns = max(campaign.mpiruns().values())
    if len(paths) * len(settings) * mpiruns > _MOST_VALUES:
        raise DataError(
            f"{campaign.name}: {len(paths)} functions, {len(settings)} settings and {mpiruns} "
            "mpiruns have too many combinations",
            hint="check fewer files at once",
        )
    parameters = {PROCESSES: np.array([float(each.processes) for each in every])}
    sizes = np.array([each.cell.size for each in every])
    if sizes.any():
        parameters[SIZE] = sizes
    records = Records(
        subject=campaign.name,
        paths=paths,
        path=np.array([order[each.library, each.cell.function] for each in every], np.intp),
        parameters=parameters,
        repetition=np.array([each.mpirun for each in every], np.intp),
        titles=[METRIC],
        title=np.zeros(len(every), np.intp),
        values=campaign.medians(without_outliers=without_outliers),
        limits=UNLIMITED,
        units={METRIC: "s"},
    )
    made = assemble_runs(campaign.name, runs_of(records), ReadOptions(metrics=None))
    # Functions have different sizes, so they cannot occur in every run.
    kept = tuple(each for each in made.findings if each.code != "CPM113")
    return replace(made, findings=(*campaign.findings, *kept))
