"""Values of the single processes of one run in some call paths.

They are sums of threads over groups of call paths, so memory holds a few numbers for each thread,
for any number of call paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from callpath_modeler.profile.calltree import ROOT
from callpath_modeler.profile.placement import Placement
from callpath_modeler.profile.schema import DeclaredMetric, Metric, Reduction
from callpath_modeler.readers.base import PlacedSource, ProfileSource, ThreadSource, ThreadSums
from callpath_modeler.readers.declared_units import DeclaredUnits
from callpath_modeler.readers.reductions import Columns, Fold, statistic
from callpath_modeler.readers.runs import LARGEST
from callpath_modeler.readers.threads import fold_of, with_longest_threads

_MEASURE = "measure with Score-P, HPCToolkit, TAU or OTF2, or write one Caliper file per process"
_SAME = 1e-6
"""Relative difference up to which two sums over processes are the same."""
_ADDING = (Reduction.MEAN, Reduction.SUM)


@dataclass(frozen=True, slots=True, eq=False)
class ProcessValues:
    """Values of the processes of one run, in order of their ranks.

    Attributes
    ----------
    metric : the metric, with its unit
    ranks : intp [processes] MPI ranks, ascending
    values : float64 [processes] one value per process, SI base units: of times the longest thread,
        of other metrics the sum of the threads; NaN = no valid value
    threads : intp [processes] number of threads
    lowest, highest : float64 [processes] smallest and largest value of the threads of a process
    placement : compute nodes and topologies, in the order of `ranks`
    findings : findings of reading these values
    """

    metric: Metric
    ranks: IntArray
    values: FloatArray
    threads: IntArray
    lowest: FloatArray
    highest: FloatArray
    placement: Placement
    findings: tuple[Finding, ...] = ()

    def __len__(self) -> int:
        return len(self.ranks)


@dataclass(frozen=True, slots=True, eq=False)
class ValueChoice:
    """Call paths whose values are summed.

    Attributes
    ----------
    chosen : [rows of the common tree] which call paths are summed
    row : a chosen row whose value is compared with the experiment, or `ROOT` = nothing is compared
    value : its exclusive value in the experiment, reduced over processes
    reduction : statistic over processes
    """

    chosen: BoolArray
    row: int
    value: float
    reduction: Reduction


_AT_ONCE = 30
"""Number of choices whose values are read at once: two bits of an integer for each."""


def process_values(
    source: ProfileSource,
    stated: DeclaredUnits,
    metric: str,
    rows: IntArray,
    choices: Sequence[ValueChoice],
    selected: BoolArray | None = None,
) -> list[ProcessValues | DataError]:
    """Return the values of processes, summed over call paths, for each choice of call paths.

    Choices may have call paths in common. The profile is read once for 30 choices.

    Parameters
    ----------
    source : the opened profile of the run
    stated : its metrics in the units that the user gave
    metric : name of the metric
    rows : intp [call paths of the run] row in the common tree, or `ROOT`
    choices : the call paths
    selected : [processes] which processes are used; None = all

    Returns
    -------
    list
        For a choice whose call paths do not occur, or whose values differ from those of the
        experiment, the error. Its message does not name the profile.

    Raises
    ------
    DataError
        If the profile has no values of single processes.
    InputError
        If the file cannot be read.
    """
    if not isinstance(source, ThreadSource):
        raise DataError("the profile has no values of single processes", hint=_MEASURE)
    declared = _additive(stated.declared, metric)
    found: list[ProcessValues | DataError] = []
    for start in range(0, len(choices), _AT_ONCE):
        part = choices[start : start + _AT_ONCE]
        found += _values_at_once(source, stated, declared, rows, part, selected)
    return found


def _values_at_once(
    source: ProfileSource,
    stated: DeclaredUnits,
    declared: DeclaredMetric,
    rows: IntArray,
    choices: Sequence[ValueChoice],
    selected: BoolArray | None,
) -> list[ProcessValues | DataError]:
    """Return the values of some choices, as `process_values` does."""
    assert isinstance(source, ThreadSource)
    # Call paths with the same code are in the same choices, so they are one group.
    matched = np.flatnonzero(rows != ROOT)
    here, code = rows[matched], np.zeros(len(matched), np.int64)
    refused: list[DataError | None] = []
    for number, choice in enumerate(choices):
        is_here = choice.chosen[here]
        is_checked = is_here & (here == choice.row)
        refused.append(_refused(choice, is_here, is_checked))
        code |= (is_here.astype(np.int64) | is_checked.astype(np.int64) << 1) << (2 * number)
    matched, code = matched[code > 0], code[code > 0]
    codes, of_code = np.unique(code, return_inverse=True)
    group = np.full(len(rows), ROOT)
    group[matched] = of_code
    before = {*source.findings()}
    sums = source.sums_of_threads(declared.metric.name, group, len(codes)) if len(codes) else None
    findings = tuple(each for each in source.findings() if each not in before)
    columns = None if sums is None else Columns.of(sums.process)
    if columns is not None and fold_of(declared) is Fold.LONGEST:
        columns = with_longest_threads(columns, source, source.metrics, len(rows))
    # Reading where processes ran takes long, and is the same for all choices.
    placement = cache(partial(_placement_of, source))
    found: list[ProcessValues | DataError] = []
    for number, (choice, error) in enumerate(zip(choices, refused, strict=True)):
        if error is not None or sums is None or columns is None:
            found.append(error or _absent())
            continue
        bits = codes >> (2 * number) & 3
        own = ThreadSums(sums.values[bits == 3], sums.process)
        whole = ThreadSums(sums.values[bits > 0].sum(axis=0)[np.newaxis], sums.process)
        occurrences = int(np.count_nonzero(code >> (2 * number) & 2))
        try:
            found.append(
                _of_choice(
                    *(placement, columns, stated, declared, choice, own, whole),
                    *(occurrences, selected, findings),
                )
            )
        except DataError as changed:
            found.append(changed)
    return found


def _absent() -> DataError:
    return DataError("the call path does not occur in this run", hint="choose another scale")


def _refused(choice: ValueChoice, is_here: BoolArray, is_checked: BoolArray) -> DataError | None:
    """Return the error about a choice whose call paths do not occur, or None."""
    if not is_here.any():
        return _absent()
    if choice.row != ROOT and not np.isnan(choice.value) and not is_checked.any():
        return DataError(
            "the profile does not have the costliest of the call paths any more",
            hint="read the profiles again, with the same options",
        )
    return None


def _placement_of(source: ProfileSource) -> Placement | None:
    return source.placement() if isinstance(source, PlacedSource) else None


def _of_choice(
    placement_of: Callable[[], Placement | None],
    columns: Columns,
    stated: DeclaredUnits,
    declared: DeclaredMetric,
    choice: ValueChoice,
    checked: ThreadSums,
    sums: ThreadSums,
    occurrences: int,
    selected: BoolArray | None,
    findings: tuple[Finding, ...],
) -> ProcessValues:
    """Return the values of one choice.

    Parameters
    ----------
    placement_of : returns the ranks and nodes of the processes, if the profile states them
    columns : the threads of each process, with the longest ones
    checked, sums : sums of threads over the compared call path, and over all chosen ones
    occurrences : number of call paths of the run that share the compared row
    """
    factor = stated.factors.get(declared.metric.name, 1.0)
    fold = fold_of(declared)
    kept = np.arange(columns.processes) if selected is None else np.flatnonzero(selected)
    if not findings:
        of_checked = checked.values.sum(axis=0)[np.newaxis] * factor
        own = columns.fold(of_checked, fold)[:, kept]
        _compare(own, choice, occurrences)
    whole = sums.values * factor
    whole[whole > LARGEST] = np.nan
    placement = placement_of()
    if placement is None or len(placement.ranks) != columns.processes:
        placement = Placement.unknown(columns.processes)
    order = kept[np.argsort(placement.ranks[kept], kind="stable")]
    return ProcessValues(
        declared.metric.in_one_line(),
        placement.ranks[order],
        columns.fold(whole, fold)[0, order],
        np.bincount(sums.process, minlength=columns.processes)[order],
        columns.fold(whole, Fold.MIN)[0, order],
        columns.fold(whole, Fold.MAX)[0, order],
        placement.of(order),
        findings,
    )


def _additive(declared: Sequence[DeclaredMetric], name: str) -> DeclaredMetric:
    """Return the metric of the experiment as the profile declares it."""
    found = next((each for each in declared if printable(each.metric.name) == name), None)
    if found is None or not found.status.is_readable:
        raise DataError(f"the profile has no metric {name}", hint="see `cpmodel info`")
    if not found.metric.additive:
        raise DataError(
            f"{name} does not add up over call paths, so it has no values of single processes",
            hint="choose a time or a count with -m",
        )
    return found


def _compare(own: FloatArray, expected: ValueChoice, occurrences: int) -> None:
    """Raise `DataError` if the processes have another value than the experiment.

    Only means and sums of several call paths that share a row add up.
    """
    if not occurrences or np.isnan(expected.value) or not np.isfinite(own).all():
        return
    if occurrences > 1 and expected.reduction not in _ADDING:
        return
    with np.errstate(all="ignore"):
        found = float(statistic(own, expected.reduction)[0])
    if np.isclose(found, expected.value, rtol=_SAME, atol=_SAME * 1e-3 * float(own.max())):
        return
    raise DataError(
        f"the profile has changed since it was read: {expected.reduction.words}, the call path has "
        f"{found:.6g} there and {expected.value:.6g} in the experiment",
        hint="read the profiles again, with the same options",
    )
