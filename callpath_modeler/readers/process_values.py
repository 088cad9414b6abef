"""Values of the single processes of one run in some call paths.

They are sums of threads over groups of call paths, so memory holds a few numbers for each thread,
for any number of call paths.

The common tree may lack call paths that were excluded or folded into their callers. Siblings of the
same name are matched by the line of the call, by file and first line, or else by their order, as in
`profile.unify`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, FloatArray, Int64Array, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import DataError
from callpath_modeler.printable import printable
from callpath_modeler.profile.balance import in_subtrees
from callpath_modeler.profile.calltree import ROOT, CallTree, without_site
from callpath_modeler.profile.pattern import Patterns
from callpath_modeler.profile.pruning import SUMS, without_call_sites
from callpath_modeler.profile.schema import DeclaredMetric, Metric, Placement, Reduction, Region
from callpath_modeler.profile.unify import relative_sites, unify
from callpath_modeler.readers.base import PlacedSource, ProfileSource, ThreadSource, ThreadSums
from callpath_modeler.readers.profile_runs import LARGEST
from callpath_modeler.readers.reductions import Columns, Fold, statistic
from callpath_modeler.readers.threads import DeclaredUnits, fold_of, with_longest_threads

_MEASURE = "measure with Score-P, HPCToolkit, TAU or OTF2, or write one Caliper file per process"
_SAME = 1e-6
"""Relative difference up to which two sums over processes are the same."""


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
    if occurrences > 1 and expected.reduction not in SUMS:
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


_ORDINAL = re.compile(r"#\d{1,9}$")
"""Suffix that numbers siblings of the same name."""

_CODE = 2**32
"""Factor of the first of two numbers in one code."""


class CommonTree:
    """The common call tree of an experiment, in which call paths of its runs are found.

    Parameters
    ----------
    tree : the tree
    ignored : patterns of call paths that were excluded together with their callees
    hidden : patterns of call paths that were folded into their callers
    renumbered : names of regions that only their order identifies, as in `profile.unify.Unified`
    wanted : [call paths] which are searched for, so that others need not be found; None = all
    """

    def __init__(
        self,
        tree: CallTree,
        ignored: Iterable[str] = (),
        hidden: Iterable[str] = (),
        renumbered: Iterable[str] = (),
        wanted: BoolArray | None = None,
    ) -> None:
        self._renumbered = frozenset(renumbered)
        self._ignored, self._hidden = tuple(ignored), tuple(hidden)
        self._names, self._lines, self._places = _Numbers(), _Numbers(), _Numbers()
        self._regions = _Numbers()
        self._along: list[Int64Array] | None = None
        self._of_tree = np.arange(len(tree))
        # With folded call paths, a call has another depth in a run.
        if wanted is not None and not self._hidden:
            self._along = self._names_along(tree, wanted)
            tree, self._of_tree = self._narrowed(tree, self._along)
        self._tree = tree
        self._calls, calls = np.unique(self._calls_of(tree), return_inverse=True)
        self._rows, self._start, self._count = _siblings(tree, calls)
        first = self._rows[self._start]
        self._keys = self._key(tree.parent[first], calls[first])
        # Siblings of one name are found by the place of the function, too.
        group = np.repeat(np.arange(len(first)), self._count)
        several = np.flatnonzero(self._count[group] > 1)
        rows = self._rows[several]
        code = _code(group[several], _of_regions(tree, _place, self._places)[rows])
        self._placed, first_placed = np.unique(code, return_index=True)
        self._row_of_placed = rows[first_placed]

    def _names_along(self, tree: CallTree, wanted: BoolArray) -> list[Int64Array]:
        """Return the numbers of the names of wanted call paths and their callers, by depth."""
        needed = wanted.copy()
        rows: NDArray[np.integer] = np.flatnonzero(wanted)
        while len(rows):
            callers = np.unique(tree.parent[rows])
            rows = callers[(callers != ROOT) & ~needed[callers]]
            needed[rows] = True
        names, found = _of_regions(tree, _name, self._regions), []
        rows = np.flatnonzero((tree.parent == ROOT) & needed)
        while len(rows):
            found.append(np.unique(names[rows]))
            below = tree.called_by(rows)
            rows = below[needed[below]]
        return found

    def _narrowed(self, tree: CallTree, along: Sequence[Int64Array]) -> tuple[CallTree, IntArray]:
        """Return the call paths whose names are `along` the wanted ones, and their rows.

        All siblings of one name are among them, or none.
        """
        names, parts = _of_regions(tree, _name, self._regions), []
        rows: NDArray[np.integer] = tree.roots
        for known in along:
            rows = rows[np.isin(names[rows], known)]
            parts.append(rows)
            rows = tree.called_by(rows)
        kept = np.sort(np.concatenate([*parts, np.empty(0, np.intp)])).astype(np.intp)
        callers = tree.parent[kept]
        parent = np.where(callers == ROOT, ROOT, np.searchsorted(kept, callers))
        columns = (tree.region[kept], tree.regions, tree.annotation[kept], tree.annotations)
        return CallTree.from_parents(parent, *columns, tree.site[kept]), kept

    def _calls_of(self, tree: CallTree) -> Int64Array:
        """Return a number for the name and the relative line of each call, [call paths]."""
        pairs, of_row = np.unique(_code(tree.region, tree.annotation), return_inverse=True)
        named = (divmod(pair, _CODE) for pair in pairs.tolist())
        names = [
            self._names[tree.regions[region].common_name, _without_ordinal(tree.annotations[note])]
            for region, note in named
        ]
        known, of_line = np.unique(relative_sites(tree), return_inverse=True)
        lines = [self._lines[line] for line in known.tolist()]
        return _code(np.array(names, np.int64)[of_row], np.array(lines, np.int64)[of_line])

    def _key(self, callers: NDArray[np.integer], calls: IntArray) -> Int64Array:
        """Return one number for callers in the common tree, or `ROOT`, and their calls."""
        return (callers.astype(np.int64) + 1) * max(1, len(self._calls)) + calls

    def rows_of(self, own: CallTree) -> IntArray:
        """Return the row of each call path of a run.

        Parameters
        ----------
        own : call tree of the run, as its profile has it

        Returns
        -------
        ndarray
            intp [call paths of `own`], rows of the common tree. A folded call path has the row of
            its caller. `ROOT` = the common tree does not have the call path, or it is not wanted.
        """
        found = np.full(len(own), ROOT, np.intp)
        some, rows = (
            (own, np.arange(len(own))) if self._along is None else self._narrowed(own, self._along)
        )
        found[rows] = np.append(self._of_tree, ROOT)[self._rows_of(some)]
        return found

    def _rows_of(self, own: CallTree) -> IntArray:
        """Return the row of each call path in the narrowed tree."""
        if not self._tree.has_sites:
            own = without_call_sites(own)
        united = unify([own])
        tree = united.tree
        gone = in_subtrees(tree, np.flatnonzero(_named(tree, self._ignored)))
        folded = _named(tree, self._hidden) & (tree.parent != ROOT)
        of_own = self._calls_of(tree)
        calls, is_known = _positions_in(self._calls, of_own)
        places = _of_regions(tree, _place, self._places)
        is_ordered = np.array([r.common_name in self._renumbered for r in tree.regions], np.bool_)
        order, start, count = _siblings(tree, of_own)
        position = np.empty(len(tree), np.intp)
        position[order] = np.arange(len(tree)) - np.repeat(start, count)
        found = np.full(len(tree), ROOT, np.intp)
        # Callers have a smaller depth than their callees, so they are known first.
        for level in tree.levels():
            callers = tree.parent[level]
            above = np.where(callers == ROOT, ROOT, found[callers])
            here = ~gone[level] & ((callers == ROOT) | (above != ROOT))
            rows, above = level[here], above[here]
            group, is_there = _positions_in(self._keys, self._key(above, calls[rows]))
            is_there &= is_known[rows]
            placed, has_place = _positions_in(self._placed, _code(group, places[rows]))
            has_place &= ~is_ordered[tree.region[rows]]
            in_order = np.where(position[rows] < self._count[group], position[rows], -1)
            chosen = np.where(in_order < 0, ROOT, self._rows[self._start[group] + in_order])
            if len(self._placed):
                chosen = np.where(has_place, self._row_of_placed[placed], chosen)
            found[rows] = np.where(folded[rows], above, np.where(is_there, chosen, ROOT))
        return found[united.rows[0]]


class _Numbers(dict[Hashable, int]):
    """Numbers of distinct things, in the order of their first use."""

    def __missing__(self, key: Hashable) -> int:
        self[key] = len(self)
        return self[key]


def _code(first: NDArray[np.integer], second: NDArray[np.integer]) -> Int64Array:
    """Return one number for two numbers, each below 2^31."""
    return first.astype(np.int64) * _CODE + second


def _positions_in(ordered: Int64Array, wanted: Int64Array) -> tuple[IntArray, BoolArray]:
    """Return the positions of numbers among `ordered` ones, and whether they are there."""
    if not len(ordered):
        return np.zeros(len(wanted), np.intp), np.zeros(len(wanted), np.bool_)
    position = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return position, ordered[position] == wanted


def _of_regions(
    tree: CallTree, kind: Callable[[Region], Hashable], numbers: _Numbers
) -> Int64Array:
    """Return the number of a property of the region of each call path, [call paths]."""
    return np.array([numbers[kind(region)] for region in tree.regions], np.int64)[tree.region]


def _named(tree: CallTree, patterns: Sequence[str]) -> BoolArray:
    named = np.zeros(len(tree), np.bool_)
    if patterns:
        known = Patterns.of(tree)
        for pattern in patterns:
            named[known.rows(pattern)] = True
    return named


def _siblings(tree: CallTree, calls: NDArray[np.integer]) -> tuple[IntArray, IntArray, IntArray]:
    """Return all rows with siblings of one call in order, and their first positions and numbers."""
    ordinal = np.array([_ordinal(note) for note in tree.annotations], np.int64)[tree.annotation]
    order = np.lexsort((ordinal, calls, tree.parent))
    parent, call = tree.parent[order], calls[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (parent[1:] != parent[:-1]) | (call[1:] != call[:-1])
    start = np.flatnonzero(is_first)
    return order, start, np.diff(start, append=len(order))


def _ordinal(annotation: str) -> int:
    suffix = _ORDINAL.search(without_site(annotation))
    return int(suffix[0][1:]) if suffix else 1


def _without_ordinal(annotation: str) -> str:
    return _ORDINAL.sub("", without_site(annotation))


def _name(region: Region) -> str:
    return region.common_name


def _place(region: Region) -> tuple[int, str]:
    return region.line, region.file.rpartition("/")[2]
