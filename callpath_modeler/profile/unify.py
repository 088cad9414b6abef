"""The common call tree of several runs, and call paths that some runs lack.

Two call paths are the same if their callers are the same and they have the same region name,
parameters, ordinal and call site. The ordinal numbers functions of the same name, such as static
functions of several files, by first line, then by file. Files and lines are not compared, because
build directories and names of generated files change between builds. The name of the executable is
not compared either.

The call site is the line of the call, counted from the first line of the caller. An edit above the
caller moves both, so it changes no call site. Call sites are compared only if all runs have them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from callpath_modeler.arrays import BoolArray, FloatArray, Int32Array, Int64Array, IntArray
from callpath_modeler.diagnostics import Finding
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree, nodes_after, without_site
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import MetricValues
from callpath_modeler.profile.schema import Region
from callpath_modeler.units import percent

_Identity = tuple[int, str]
_MOST_KINDS = 2**31
"""Largest number that stands for a combination; its product with a number of rows is an int64."""

_NO_SITE = -(2**40)
"""Call site of a call whose line is not known; no difference of two lines is as small."""


class Unified(Struct, frozen=True):
    """The common call tree of several runs.

    Attributes
    ----------
    tree : call tree with the call paths of all runs; siblings differ in name or annotation
    rows : for each run, intp [call paths of the run], the row in `tree`
    added : for each run, the number of call paths that share the row of a sibling of the same name
    renumbered : names of regions that only their order identifies, because their first lines differ
        between runs
    without_sites : for each run, True if it has no lines of calls, but another run has; then call
        sites are not compared in any run
    """

    tree: CallTree
    rows: tuple[IntArray, ...]
    added: tuple[int, ...]
    renumbered: tuple[str, ...]
    without_sites: tuple[bool, ...]


def unify(trees: Sequence[CallTree]) -> Unified:
    """Return the common call tree of several runs of one program.

    Siblings have the order of the first run that contains them.
    """
    # Runs of one binary or one table mostly have the same tree; each distinct tree is added once.
    index: dict[tuple[object, ...], int] = {}
    objects = {id(tree): tree for tree in trees}
    if len(objects) == 1:
        index, number = {(): 0}, dict.fromkeys(objects, 0)
    else:
        number = {k: index.setdefault(_content(tree), len(index)) for k, tree in objects.items()}
    which = [number[id(tree)] for tree in trees]
    distinct = [trees[which.index(k)] for k in range(len(index))]
    if len(distinct) == 1 and (alone := _as_it_is(distinct[0])) is not None:
        rows = np.arange(len(alone))
        none = (False,) * len(trees)
        return Unified(alone, (rows,) * len(trees), (0,) * len(trees), (), none)
    ordinals, renumbered = _ordinals(distinct)
    lacking = [len(tree) > 0 and not tree.has_sites for tree in distinct]
    if any(lacking):
        sites = [np.full(len(tree), _NO_SITE) for tree in distinct]
    else:
        sites = [relative_sites(tree) for tree in distinct]
    union = _Union(distinct, ordinals, sites)
    tree, place = union.tree()
    mapped = [place[number] for number in union.numbers]
    added = [len(rows) - int(np.count_nonzero(np.bincount(rows))) for rows in mapped]
    all_lack = all(lacking)
    return Unified(
        tree,
        tuple(mapped[k] for k in which),
        tuple(added[k] for k in which),
        renumbered,
        tuple(lacking[k] and not all_lack for k in which),
    )


def relative_sites(tree: CallTree) -> Int64Array:
    """Return the line of each call, counted from the first line of its caller, [call paths].

    Calls without a line have a number that no line has.
    """
    lines = np.array([*(region.line for region in tree.regions), NO_LINE], np.int64)
    caller = np.where(tree.parent == ROOT, len(tree.regions), tree.region[tree.parent])
    first = lines[caller]
    return np.where(tree.site == NO_LINE, _NO_SITE, tree.site - np.maximum(first, 0))


def scatter_to_union(
    values: FloatArray, rows: IntArray, n_rows: int, *, additive: bool = True
) -> FloatArray:
    """Return the values of one run by row of the common tree.

    Parameters
    ----------
    values : [call paths of the run]; NaN = not measured
    rows : [call paths of the run] row in the common tree
    n_rows : number of rows of the common tree
    additive : True: values in the same row are added; False: the row gets the largest

    Returns
    -------
    ndarray
        [n_rows]; NaN = the run has no value
    """
    if not additive:
        largest = np.full(n_rows, np.nan)
        np.fmax.at(largest, rows, values)
        return largest
    measured = ~np.isnan(values)
    total = np.bincount(rows[measured], weights=values[measured], minlength=n_rows)
    seen = np.bincount(rows[measured], minlength=n_rows)
    return np.where(seen > 0, total, np.nan)


@dataclass(frozen=True, slots=True)
class _Keys:
    """What identifies each call path among the callees of its caller, each [call paths].

    Attributes
    ----------
    name, note : numbers of the name and of the annotation without the call site
    ordinal : number among the regions of the name
    site : call site
    region : number of the region
    line : line of the call; `NO_LINE` = not known, or not compared
    """

    name: IntArray
    note: IntArray
    ordinal: IntArray
    site: Int64Array
    region: IntArray
    line: Int32Array

    def take(self, rows: IntArray) -> _Keys:
        """Return the keys of some call paths."""
        return _Keys(*(getattr(self, field)[rows] for field in self.__slots__))


class _Union:
    """The common tree of several trees. A call path of it is numbered by its first occurrence."""

    def __init__(
        self, trees: Sequence[CallTree], ordinals: Sequence[list[int]], sites: Sequence[Int64Array]
    ) -> None:
        self._regions: dict[Region, int] = {}
        self._notes: dict[str, int] = {"": 0}
        names: dict[str, int] = {}
        each = [
            self._keys(tree, names, ordinal, site)
            for tree, ordinal, site in zip(trees, ordinals, sites, strict=True)
        ]
        keys = _Keys(*(np.concatenate(columns) for columns in zip(*each, strict=True)))
        sizes = [len(tree) for tree in trees]
        first = _first_occurrences(trees, _numbered(keys.name, keys.note, keys.ordinal, keys.site))
        is_first = first == np.arange(len(first))
        number = (np.cumsum(is_first) - 1)[first]
        starts = np.cumsum([0, *sizes[:-1]])
        parent = np.concatenate(
            [
                np.where(tree.parent == ROOT, ROOT, number[tree.parent + start])
                for tree, start in zip(trees, starts, strict=True)
            ]
        )
        self.numbers = np.split(number, starts[1:])
        self._parent = parent[is_first].astype(np.int32)
        self._keys_of = keys.take(np.flatnonzero(is_first))

    def _keys(
        self, tree: CallTree, names: dict[str, int], ordinal: list[int], site: Int64Array
    ) -> tuple[NDArray[Any], ...]:
        """Return the columns of `_Keys` of a tree."""
        regions, notes = self._regions, self._notes
        known = [regions.setdefault(region, len(regions)) for region in tree.regions]
        name = [names.setdefault(region.common_name, len(names)) for region in tree.regions]
        note = [notes.setdefault(without_site(n), len(notes)) for n in tree.annotations]
        of_region = (np.array(column, np.intp)[tree.region] for column in (name, ordinal, known))
        named, placed, region = of_region
        line = np.where(site == _NO_SITE, NO_LINE, tree.site)
        return named, np.array(note, np.intp)[tree.annotation], placed, site, region, line

    def tree(self) -> tuple[CallTree, IntArray]:
        """Return the common tree in preorder, and the row of each number."""
        parent, keys = self._parent, self._keys_of
        place = preorder(parent)
        order = np.argsort(place)
        note = keys.note.copy()
        known = list(self._notes)
        for number, suffix in _sibling_suffixes(parent, keys).items():
            text = known[keys.note[number]] + suffix
            note[number] = self._notes.setdefault(text, len(self._notes))
        used, region = _by_first_use(keys.region[order])
        # The empty annotation always comes first.
        shown, annotation = _by_first_use(np.concatenate([[0], note[order]]))
        callers = parent[order]
        callers = np.where(callers == ROOT, ROOT, place[callers])
        regions, notes = list(self._regions), list(self._notes)
        line = keys.line[order]
        tree = CallTree.from_parents(
            callers,
            region,
            tuple(regions[k] for k in used),
            annotation[1:],
            tuple(notes[k] for k in shown),
            line if (line != NO_LINE).any() else None,
        )
        return tree, place


def _first_occurrences(trees: Sequence[CallTree], key: IntArray) -> IntArray:
    """Return the first call path of all trees that is the same as each call path.

    Parameters
    ----------
    trees : the trees
    key : [call paths of all trees] number of what identifies a call path under its caller

    Returns
    -------
    ndarray
        [call paths of all trees], numbered through.
    """
    starts = np.cumsum([0, *(len(tree) for tree in trees)])
    levels = zip_longest(*(tree.levels() for tree in trees), fillvalue=np.empty(0, np.int32))
    caller = np.concatenate(
        [
            np.where(tree.parent == ROOT, ROOT, tree.parent + start)
            for tree, start in zip(trees, starts[:-1].tolist(), strict=True)
        ]
    )
    first, kinds = np.empty(len(key), np.intp), int(key.max(initial=0)) + 1
    for level in levels:
        rows = np.concatenate([own + start for own, start in zip(level, starts[:-1], strict=True)])
        above = caller[rows]
        above = np.where(above == ROOT, 0, first[above] + 1)
        _, where, inverse = np.unique(above * kinds + key[rows], True, True)
        first[rows] = rows[where][inverse]
    return first


def _numbered(*columns: NDArray[np.integer]) -> IntArray:
    """Return a number below `_MOST_KINDS` for each distinct combination of entries, [n]."""
    number, kinds = np.zeros(len(columns[0]), np.intp), 1
    for column in columns:
        lowest = int(column.min(initial=0))
        span = int(column.max(initial=0)) - lowest + 1
        if span == 1:
            continue
        other = column - lowest
        if span > _MOST_KINDS:
            distinct, other = np.unique(other, return_inverse=True)
            span = len(distinct)
        number, kinds = number * span + other, kinds * span
        if kinds > _MOST_KINDS:
            distinct, number = np.unique(number, return_inverse=True)
            kinds = len(distinct)
    return number


def preorder(parent: NDArray[np.integer]) -> IntArray:
    """Return the preorder row of each node, [n].

    Parameters
    ----------
    parent : [n] caller, which comes before its callees; or `ROOT`
    """
    count = len(parent)
    above = np.where(parent == ROOT, count, parent)
    by_caller = np.argsort(above, kind="stable")
    first = np.searchsorted(above[by_caller], np.arange(count + 1))
    child = np.append(by_caller, count)[first]
    has_callees = np.append(above[by_caller], -1)[first] == np.arange(count + 1)
    after = np.where(has_callees, child, np.append(nodes_after(parent), count)).tolist()
    place = [0] * count
    node = after[count]
    for row in range(count):
        place[node] = row
        node = after[node]
    return np.array(place, np.intp)


def _sibling_suffixes(parent: Int32Array, keys: _Keys) -> dict[int, str]:
    """Return the suffixes, by number, of siblings that differ only in their ordinal or call site.

    Parameters
    ----------
    parent : [call paths] number of the caller
    keys : keys of the call paths
    """
    # Nearly all call paths have ordinal 0 and a single call site, so only the others are grouped.
    is_special = keys.ordinal > 0
    has_lines = bool((keys.line > NO_LINE).any())
    if not has_lines and not is_special.any():
        return {}
    group = _numbered(parent, keys.name, keys.note)
    count = int(group.max(initial=0)) + 1
    special = np.bincount(group[is_special], minlength=count) > 0
    if has_lines:
        special |= np.bincount(group, minlength=count) > 1
    groups: dict[int, dict[int, list[int]]] = {}
    asked = np.flatnonzero(special[group])
    columns = asked, group[asked], keys.ordinal[asked]
    for number, its, ordinal in zip(*(column.tolist() for column in columns), strict=True):
        groups.setdefault(its, {}).setdefault(ordinal, []).append(number)
    suffixes: dict[int, str] = {}
    for by_ordinal in groups.values():
        for position, ordinal in enumerate(sorted(by_ordinal), start=1):
            which = f"#{position}" if position > 1 else ""
            members = by_ordinal[ordinal]
            suffixes |= {n: which + site for n, site in _site_suffixes(members, keys.line).items()}
    return suffixes


def _site_suffixes(numbers: Sequence[int], lines: Int32Array) -> dict[int, str]:
    """Return the suffixes of calls of one function by one caller, by number."""
    if len(numbers) == 1:
        return {numbers[0]: ""}
    known: Counter[int] = Counter()
    suffixes = {}
    for number in sorted(numbers, key=lambda number: (lines[number], number)):
        line = int(lines[number])
        known[line] += 1
        # Builds with different sources may have different calls in one line.
        again = f"#{known[line]}" if known[line] > 1 else ""
        suffixes[number] = _site_suffix(line) + again * (line != NO_LINE)
    return suffixes


def _as_it_is(tree: CallTree) -> CallTree | None:
    """Return a tree as the common tree of runs that all have it; None = siblings share a name.

    Siblings may be calls of one function from several lines. The result is the one of `_Union`,
    which takes seconds for 10^6 call paths.
    """
    names: dict[str, int] = {}
    texts: dict[str, int] = {}
    regions: dict[Region, int] = {}
    name = np.array([names.setdefault(r.common_name, len(names)) for r in tree.regions], np.intp)
    notes = [without_site(note) for note in tree.annotations]
    text = np.array([texts.setdefault(note, len(texts)) for note in notes], np.intp)
    same = np.array([regions.setdefault(r, len(regions)) for r in tree.regions], np.intp)
    if not len(tree) or len(tree) * len(names) * len(texts) > np.iinfo(np.int64).max // 2:
        return None
    note, of_region = text[tree.annotation], same[tree.region]
    keys = ((tree.parent.astype(np.int64) + 1) * len(names) + name[tree.region]) * len(texts) + note
    # Without lines, calls of one function by one caller would all be the same.
    if not tree.has_sites and not (np.diff(np.sort(keys)) > 0).all():
        return None
    order = np.lexsort((tree.site, keys)) if tree.has_sites else np.empty(0, np.intp)
    before, after = order[:-1], order[1:]
    twins = keys[before] == keys[after]
    if (twins & (tree.site[before] == tree.site[after])).any():
        return None
    if (twins & (of_region[before] != of_region[after])).any():
        return None
    several = np.union1d(before[twins], after[twins])
    written = _with_sites(note[several], tree.site[several], texts)
    note[several] = written
    known_regions, known_texts = list(regions), list(texts)
    used, region = _by_first_use(of_region)
    # The empty annotation always comes first.
    shown, annotation = _by_first_use(np.concatenate([[texts.get("", -1)], note]))
    return CallTree.from_parents(
        tree.parent,
        region,
        tuple(known_regions[k] for k in used),
        annotation[1:],
        tuple("" if k < 0 else known_texts[k] for k in shown),
        tree.site if tree.has_sites else None,
    )


def _with_sites(note: IntArray, line: Int32Array, texts: dict[str, int]) -> IntArray:
    """Return annotations with lines, as numbers of `texts`, which gets the new ones."""
    known = list(texts)
    pairs, place = np.unique(np.column_stack([note, line]), axis=0, return_inverse=True)
    numbers = [
        texts.setdefault(known[k] + _site_suffix(at), len(texts)) for k, at in pairs.tolist()
    ]
    return np.array(numbers, np.intp)[place.reshape(-1)]


def _site_suffix(line: int) -> str:
    """Return the suffix of a call whose function its caller calls from other lines, too."""
    return "" if line == NO_LINE else f":{line}"


def _by_first_use(numbers: IntArray) -> tuple[list[int], IntArray]:
    """Return the distinct numbers in the order of their first use, and the place of each number."""
    low = numbers.min(initial=0)
    first = np.full(numbers.max(initial=0) - low + 1, len(numbers))
    # Of several uses, the one that is written last stays.
    first[numbers[::-1] - low] = np.arange(len(numbers))[::-1]
    order = np.argsort(first)[: np.count_nonzero(first < len(numbers))]
    rank = np.empty(len(first), np.intp)
    rank[order] = np.arange(len(order))
    return (order + low).tolist(), rank[numbers - low]


def _content(tree: CallTree) -> tuple[object, ...]:
    columns = (tree.parent, tree.region, tree.annotation, tree.site)
    return (*(column.tobytes() for column in columns), tree.regions, tree.annotations)


def _ordinals(trees: Sequence[CallTree]) -> tuple[list[list[int]], tuple[str, ...]]:
    """Return the ordinal of each region among the regions of its name, and the renumbered names.

    If the runs agree on lines and files, the ordinal is the position among the regions of all runs.
    A region that one run lacks then does not shift the others. If they disagree, as after another
    build, the ordinal is the position among the regions of the run.
    """
    several = frozenset().union(*(_repeated(tree.regions) for tree in trees))
    if not several:
        return [[0] * len(tree.regions) for tree in trees], ()
    tables = [_identities(tree.regions, several) for tree in trees]
    union: dict[str, set[_Identity]] = {}
    largest: dict[str, int] = {}
    for table in tables:
        for name, identities in table.items():
            union.setdefault(name, set()).update(identities)
            largest[name] = max(largest.get(name, 0), len(identities))
    renumbered = tuple(sorted(name for name in several if len(union[name]) > largest[name]))
    by_tree: list[list[int]] = []
    for tree, table in zip(trees, tables, strict=True):
        places: dict[str, dict[_Identity, int]] = {}
        for name, identities in table.items():
            known = identities if name in renumbered else union[name]
            places[name] = {identity: k for k, identity in enumerate(sorted(known))}
        by_tree.append([_place(places, region) for region in tree.regions])
    return by_tree, renumbered


def _place(places: Mapping[str, Mapping[_Identity, int]], region: Region) -> int:
    return places.get(region.common_name, {}).get(_identity(region), 0)


def _repeated(regions: Sequence[Region]) -> frozenset[str]:
    """Return the names that several regions share."""
    names = [region.common_name for region in regions]
    if len(set(names)) == len(names):
        return frozenset()
    return frozenset(name for name, count in Counter(names).items() if count > 1)


def _identities(regions: Iterable[Region], several: frozenset[str]) -> dict[str, set[_Identity]]:
    table: dict[str, set[_Identity]] = {}
    for region in regions:
        if region.common_name in several:
            table.setdefault(region.common_name, set()).add(_identity(region))
    return table


def _identity(region: Region) -> _Identity:
    return region.line, region.file.rpartition("/")[2]


_CODES = frozenset({"CPM113", "CPM137"})

_LOST = 0.2
"""Smallest share of the total of a call path whose absence from a repetition is reported."""
_MOST = 20
"""Maximum number of renamed pairs with a finding each; one more finding counts the others."""


def coverage_findings(tree: CallTree, columns: Mapping[str, MetricValues]) -> list[Finding]:
    """Return findings about call paths that some runs lack, and about pairs that look renamed."""
    for values in columns.values():
        occurs = ~np.isnan(values.exclusive)
        partly = int((~occurs.all(axis=1) & occurs.any(axis=1)).sum())
        if partly:
            message = f"{partly} of {len(occurs)} call paths do not occur in every run"
            found = Finding("CPM113", values.metric.name, message, partly)
            return [found, *_replaced(tree, occurs)]
    return []


def lost_findings(
    tree: CallTree,
    columns: Mapping[str, MetricValues],
    names: Sequence[str],
    points: Sequence[Hashable],
) -> list[Finding]:
    """Return findings about costly call paths that are 0 in a run, but not in its repetitions.

    Parameters
    ----------
    tree : the call tree
    columns : values by metric; the first time, or else the first sum, decides
    names, points : [runs] names, and points that repetitions share
    """
    additive = [v for v in columns.values() if v.metric.additive]
    values = next((v for v in additive if v.metric.can_be_run_time), next(iter(additive), None))
    if values is None:
        return []
    groups: dict[Hashable, list[int]] = {}
    for run, point in enumerate(points):
        groups.setdefault(point, []).append(run)
    found = []
    for group in (each for each in groups.values() if len(each) > 1):
        own = values.exclusive[:, group]
        if not (is_zero := own == 0).any():
            continue
        most = np.nan_to_num(own).max(axis=1)
        share = most / max(float(np.nansum(own, axis=0).max()), np.finfo(float).tiny)
        for row, of in np.argwhere(is_zero & (share >= _LOST)[:, None])[:_MOST].tolist():
            message = f"{tree.path(row)}: 0, but {percent(share[row])} of the total in a repetition"
            found.append(Finding("CPM149", names[group[of]], message))
    return found


def with_coverage_of(experiment: Experiment) -> Experiment:
    """Return an experiment with coverage findings about its own runs and call paths."""
    others = (finding for finding in experiment.findings if finding.code not in _CODES)
    found = coverage_findings(experiment.tree, experiment.columns)
    return replace(experiment, findings=(*others, *found))


def _replaced(tree: CallTree, occurs: BoolArray) -> list[Finding]:
    """Return findings about pairs of siblings that complement each other, as if one was renamed.

    Each run has exactly one sibling of such a pair, and no other sibling occurs in the same runs.

    Parameters
    ----------
    tree : the call tree
    occurs : [call paths, runs]
    """
    runs = occurs.sum(axis=1)
    always = runs == occurs.shape[1]
    called_always = (tree.parent == ROOT) | always[tree.parent]
    siblings: dict[tuple[int, bytes], list[int]] = {}
    for row in np.flatnonzero(~always & (runs > 0) & called_always).tolist():
        siblings.setdefault((int(tree.parent[row]), occurs[row].tobytes()), []).append(row)
    pairs = []
    for (caller, _), rows in siblings.items():
        others = siblings.get((caller, (~occurs[rows[0]]).tobytes()), [])
        if len(rows) == len(others) == 1 and rows[0] < others[0]:
            pairs.append((rows[0], others[0]))
    found = []
    for first, second in pairs[:_MOST]:
        where = f"in {runs[first]} of {occurs.shape[1]} runs"
        message = f"{where}, {tree.path(second)} in the others"
        found.append(Finding("CPM137", tree.path(first), message))
    more = len(pairs) - _MOST
    if more > 0:
        found.append(Finding("CPM137", "other call paths", f"{more} more such pairs", more))
    return found
