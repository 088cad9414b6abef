"""Metrics of attributes, and the processes and threads of records.

Names are chains, read from right to left: ``sum#inclusive#sum#time.duration`` is a time, summed in
each process, with all callees, and summed over processes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import Float32Array, FloatArray, IntArray
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.schema import Metric, base_unit
from cpmodel_caliper.contents import Contents, Quantity

_INCLUSIVE = frozenset({"inclusive", "inclusive_scale", "iscale"})
_SUMS = frozenset({"sum", "scale", *_INCLUSIVE})
_AVERAGES = frozenset({"avg", *_SUMS})
_ALONE = frozenset(
    {"count", "scount", "time.duration", "time.duration.ns", "time.inclusive.duration"}
)
_NO_COST = frozenset({"aggregate.slot"})
"""Attributes whose sum has no meaning."""
_DURATION = re.compile(r"time\.(?:inclusive\.)?duration(\.ns)?")
_ON_GPUS = frozenset(
    {"cupti.activity.duration", "rocm.activity.duration", "rocm.activity.duration.ns", "t.gpu.c",
     "t.gpu.r"}
)  # fmt: skip
"""Durations in nanoseconds, although their names may suggest another unit."""
_TIMES = re.compile(r"time(?: \(?(I|E|inc|exc)\)?)?")
_INCLUSIVE_WORDS = ("I", "inc")


@dataclass(frozen=True, slots=True)
class Stored:
    """An attribute with the values of a metric.

    Attributes
    ----------
    attribute : name
    metric : measured quantity
    factor : factor from stored values to base units
    inclusive : whether values include callees
    summed : whether values are sums over processes
    note : reason why the attribute cannot be used, or ""
    """

    attribute: str
    metric: Metric
    factor: float
    inclusive: bool
    summed: bool
    note: str = ""


def stored_metrics(contents: Contents, *, per_process: bool) -> list[Stored]:
    """Return one attribute per metric, the best one in the file.

    Parameters
    ----------
    per_process : whether records have the rank of their process
    """
    found: dict[str, list[Stored]] = {}
    for name, column in contents.columns.items():
        stored = _recognise(name, contents.quantities.get(name, Quantity()))
        if stored is not None and column.records:
            found.setdefault(stored.metric.name, []).append(stored)
    return [_best(candidates, per_process=per_process) for candidates in found.values()]


def _best(candidates: Iterable[Stored], *, per_process: bool) -> Stored:
    """Return the best attribute: usable, summed over processes, and inclusive."""

    def rank(stored: Stored) -> tuple[bool, bool, bool]:
        return not stored.note, stored.summed and not per_process, stored.inclusive

    return max(candidates, key=rank)


def _recognise(name: str, quantity: Quantity) -> Stored | None:
    *operations, base = name.split("#")
    if base in _NO_COST:
        return None
    titled = _TIMES.fullmatch(name)
    if titled:
        # A report has renamed the column.
        return _stored(name, "time", quantity, inclusive=titled[1] in _INCLUSIVE_WORDS)
    chain = set(operations)
    if not (operations or base in _ALONE) or not chain <= _AVERAGES:
        return None
    inclusive = bool(chain & _INCLUSIVE) or ".inclusive." in base
    if "avg" in chain:
        # Averages over the records of a process are useless. Averages over processes are not.
        if operations[0] != "avg" or len(operations) < 2:
            return None
        note = "only an average over processes with the region; add the sum to the output"
    else:
        note = ""
    called = "time" if _DURATION.fullmatch(base) else base
    scaled = bool(chain & {"scale", "inclusive_scale", "iscale"})
    nanoseconds = base.endswith(".ns") or base in _ON_GPUS
    return _stored(
        name,
        called,
        quantity,
        inclusive=inclusive,
        summed=_is_over_processes(operations, base),
        nanoseconds=nanoseconds and not scaled,
        seconds=nanoseconds and scaled,
        note=note,
    )


def _is_over_processes(operations: Sequence[str], base: str) -> bool:
    """Return whether a value is a sum over processes of aggregated values of each process."""
    first, rest = operations[:1], operations[1:]
    is_aggregated = "sum" in rest or bool(_INCLUSIVE & {*rest}) or (rest and base in _ON_GPUS)
    return first == ["sum"] and bool(is_aggregated)


def _stored(
    name: str,
    called: str,
    quantity: Quantity,
    *,
    inclusive: bool,
    summed: bool = False,
    nanoseconds: bool = False,
    seconds: bool = False,
    note: str = "",
) -> Stored:
    unit, factor = base_unit(quantity.unit)
    if nanoseconds and not quantity.unit:
        unit, factor = "s", 1e-9
    elif seconds and not quantity.unit:
        unit, factor = "s", 1.0
    elif called == "time" and unit != "s":
        unit, note = "s", note or "the file does not state the unit of its times"
    metric = Metric(called, unit, quantity.alias or name)
    return Stored(name, metric, factor, inclusive, summed, note)


_UNDECIDED = 0.01
"""Maximum share of the run time that may depend on whether two outermost regions are slowest on
different processes.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ProcessMaxima:
    """Inclusive maxima over processes, in base units.

    Attributes
    ----------
    largest : [call paths]; 0 = no record
    records : [call paths] number of records
    tree : call paths below the program
    """

    largest: FloatArray
    records: IntArray
    tree: CallTree

    @classmethod
    def of(
        cls, contents: Contents, stored: Stored, tree: CallTree, row_of: IntArray
    ) -> ProcessMaxima | None:
        """Return the maxima beside a sum over processes; None = there are none.

        Parameters
        ----------
        stored : sum over processes of the same quantity
        tree : call paths below the program
        row_of : row of each node; the last one is the time outside all regions
        """
        *operations, base = stored.attribute.split("#")
        name = "#".join(["max", *operations[1:], base])
        column = contents.columns.get(name)
        if column is None or operations[:1] != ["sum"] or "inclusive" not in operations:
            return None
        rows = row_of[np.array(contents.node, np.intp)[np.array(column.records, np.intp)]]
        values = np.array(column.values) * stored.factor
        largest = np.zeros(len(tree))
        np.maximum.at(largest, rows, np.where(np.isfinite(values), values, 0.0))
        return cls(largest, np.bincount(rows, minlength=len(tree)), tree)

    @property
    def run_time(self) -> float:
        """Run time by inclusive maxima.

        NaN if outermost regions of similar length may be slowest on different processes.
        """
        # The record of the program has the time outside all regions.
        outermost = np.append(0, np.flatnonzero(self.tree.parent == 0))
        longest = self.largest[outermost]
        largest, whole = float(longest.max()), float(longest.sum())
        return whole if whole - largest <= _UNDECIDED * largest else float("nan")

    def imbalance(self, mean: FloatArray) -> Float32Array:
        """Return the largest over the mean of the processes, [call paths]; NaN = not known.

        It is known for call paths without callees, whose inclusive and exclusive times are equal.

        Parameters
        ----------
        mean : [call paths] exclusive means over processes
        """
        known = (self.tree.end == np.arange(1, len(self.tree) + 1)) & (self.records == 1)
        known &= (mean > 0) & (self.largest > 0)
        ratio = np.divide(self.largest, mean, out=np.full(len(mean), np.nan), where=known)
        return np.asarray(np.maximum(ratio, 1.0), np.float32)


_ROUNDING = 1e-6
"""Rounding of printed values: Caliper writes six decimal places."""
_WHOLE = 0.01


def processes_of_averages(contents: Contents, attribute: str) -> int:
    """Return the number of processes by the ratio of sums and averages of one quantity.

    Without MPI, every record has the same sum, average, minimum and maximum. With MPI, a region
    that all processes execute has the number of processes as its ratio.

    Parameters
    ----------
    attribute : sum over processes, e.g. ``sum#inclusive#sum#time.duration``

    Returns
    -------
    int
        0 if the file has no averages, or if they contradict each other.
    """
    rest = attribute.removeprefix("sum#")
    sums, averages = (_by_record(contents, f"{first}#{rest}") for first in ("sum", "avg"))
    both = sorted(sums.keys() & averages.keys())
    total = np.array([sums[record] for record in both])
    average = np.array([averages[record] for record in both])
    # Values with few digits do not determine the ratio.
    telling = average > _ROUNDING / _WHOLE
    if not telling.any():
        return 0
    quotient = total[telling] / average[telling]
    whole = np.rint(quotient)
    if (np.abs(quotient - whole) > _WHOLE * whole).any() or (whole < 1).any():
        return 0
    processes = int(whole.max())
    if processes == 1 and not _is_alone(contents, rest, sums):
        return 0
    return processes


def _is_alone(contents: Contents, rest: str, sums: dict[int, float]) -> bool:
    """Return whether minima and maxima are consistent with a single process."""
    for first in ("min", "max"):
        found = _by_record(contents, f"{first}#{rest}")
        for record in sums.keys() & found.keys():
            if abs(found[record] - sums[record]) > _ROUNDING + _WHOLE * abs(sums[record]):
                return False
    return True


def _by_record(contents: Contents, attribute: str) -> dict[int, float]:
    column = contents.columns.get(attribute)
    if column is None:
        return {}
    pairs = zip(column.records, column.values, strict=True)
    return {record: value for record, value in pairs if np.isfinite(value)}


class RecordLocations:
    """Columns of values: one for each thread of each process with a record.

    Attributes
    ----------
    columns : number of columns; each process has at least one
    threads : largest number of threads of a process; 0 = unknown
    """

    def __init__(self, contents: Contents, ranks: Sequence[int], *, per_process: bool) -> None:
        count = len(contents.node)
        process = np.zeros(count, np.intp)
        if per_process and ranks:
            # Records without a rank were excluded before if others have one.
            known = [ranks[0] if rank is None else rank for rank in contents.rank]
            process = np.searchsorted(ranks, known).astype(np.intp)
        self._processes = max(1, len(ranks))
        numbers = contents.thread
        # Records without a thread belong to the first thread.
        first = min(numbers.values(), default=0)
        thread = np.zeros(count, np.intp)
        if numbers:
            known_threads = [numbers.get(k, first) for k in range(count)]
            thread = np.unique(known_threads, return_inverse=True)[1]
        width = int(thread.max(initial=0)) + 1
        of_all = np.arange(self._processes) * width
        used, column = np.unique(np.append(process * width + thread, of_all), return_inverse=True)
        self._of_record = column[:count].astype(np.intp)
        self.columns = len(used)
        self._starts = np.flatnonzero(np.diff(used // width, prepend=-1))
        self.threads = int(np.bincount(used // width).max()) if numbers else 0

    def of(self, records: IntArray) -> IntArray:
        """Return the column of each record."""
        return self._of_record[records]

    @property
    def process(self) -> IntArray:
        """Number of the process of each column, ascending, [columns]."""
        starts = np.zeros(self.columns, np.intp)
        starts[self._starts] = 1
        return np.cumsum(starts) - 1
