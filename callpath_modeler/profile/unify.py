"""The common call tree of several runs.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.arrays import FloatArray, Int32Array, Int64Array, IntArray
from callpath_modeler.profile.calltree import NO_LINE, ROOT, CallTree, without_site
from callpath_modeler.profile.schema import Region

_Identity = tuple[int, str]
_Key = tuple[int, str, str, int, int]
"""Caller, name, annotation without the call site, ordinal, call site."""

_NO_SITE = -(2**40)
"""Call site of a call whose line is not known; no difference of two lines is as small."""


@dataclass(frozen=True, slots=True)
class Unified:
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
    number = {key: index.setdefault(_content(tree), len(index)) for key, tree in objects.items()}
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
    union = _Union()
    numbers = [
        union.add(tree, own, site)
        for tree, own, site in zip(distinct, ordinals, sites, strict=True)
    ]
    tree, place = union.tree()
    mapped = [place[number] for number in numbers]
    added = [len(rows) - len(np.unique(rows)) for rows in mapped]
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


class _Union:
    """The growing common tree: one key per call path, callers before callees."""

    def __init__(self) -> None:
        self._rows: dict[_Key, int] = {}
        self._regions: dict[Region, int] = {}
        self._region: list[int] = []
        self._line: list[int] = []

    def add(self, tree: CallTree, ordinal: Sequence[int], sites: Int64Array) -> IntArray:
        """Add the call paths of `tree`, and return their numbers in the common tree."""
        known = [self._regions.setdefault(r, len(self._regions)) for r in tree.regions]
        names = [region.common_name for region in tree.regions]
        notes = [without_site(note) for note in tree.annotations]
        numbers: list[int] = []
        columns = (tree.parent, tree.region, tree.annotation, sites, tree.site)
        for caller, region, note, site, line in zip(*(c.tolist() for c in columns), strict=True):
            above = ROOT if caller == ROOT else numbers[caller]
            key = (above, names[region], notes[note], ordinal[region], site)
            number = self._rows.setdefault(key, len(self._region))
            if number == len(self._region):
                self._region.append(known[region])
                self._line.append(NO_LINE if site == _NO_SITE else line)
            numbers.append(number)
        return np.array(numbers, np.intp)

    def tree(self) -> tuple[CallTree, IntArray]:
        """Return the common tree in preorder, and the row of each number."""
        keys = list(self._rows)
        parent = np.array([key[0] for key in keys], np.int32)
        place = preorder(parent)
        order = np.argsort(place)
        region_index: dict[int, int] = {}
        note_index: dict[str, int] = {"": 0}
        regions, notes = [], []
        suffix = _sibling_suffixes(keys, self._line)
        for number in order.tolist():
            regions.append(region_index.setdefault(self._region[number], len(region_index)))
            note = keys[number][2] + suffix.get(number, "")
            notes.append(note_index.setdefault(note, len(note_index)))
        callers = parent[order]
        callers = np.where(callers == ROOT, ROOT, place[callers])
        known = list(self._regions)
        used = tuple(known[region] for region in region_index)
        line = np.array(self._line, np.int32)[order]
        site = line if (line != NO_LINE).any() else None
        tree = CallTree.from_parents(callers, regions, used, notes, tuple(note_index), site)
        return tree, place


def preorder(parent: Int32Array) -> IntArray:
    """Return the preorder row of each node; callers come before callees in `parent`."""
    callers = parent.tolist()
    size = [1] * len(callers)
    for node in range(len(callers) - 1, -1, -1):
        if callers[node] != ROOT:
            size[callers[node]] += size[node]
    place = np.empty(len(callers), np.intp)
    free: dict[int, int] = {ROOT: 0}
    rows = []
    for node, caller in enumerate(callers):
        row = free[caller]
        rows.append(row)
        free[caller] = row + size[node]
        free[node] = row + 1
    place[:] = rows
    return place


def _sibling_suffixes(keys: Sequence[_Key], lines: Sequence[int]) -> dict[int, str]:
    """Return the suffixes, by number, of siblings that differ only in their ordinal or call site.

    Parameters
    ----------
    keys : keys of the call paths, by number
    lines : [keys] line of each call
    """
    # Nearly all call paths have ordinal 0 and a single call site, so only the others are grouped.
    special = {key[:3] for key in keys if key[3] > 0}
    if lines and max(lines) > NO_LINE:
        count = Counter(key[:3] for key in keys)
        special |= {key for key, number in count.items() if number > 1}
    if not special:
        return {}
    groups: dict[tuple[int, str, str], dict[int, list[int]]] = {}
    for number, key in enumerate(keys):
        if key[:3] in special:
            groups.setdefault(key[:3], {}).setdefault(key[3], []).append(number)
    suffixes: dict[int, str] = {}
    for by_ordinal in groups.values():
        for position, ordinal in enumerate(sorted(by_ordinal), start=1):
            which = f"#{position}" if position > 1 else ""
            members = by_ordinal[ordinal]
            suffixes |= {n: which + site for n, site in _site_suffixes(members, lines).items()}
    return suffixes


def _site_suffixes(numbers: Sequence[int], lines: Sequence[int]) -> dict[int, str]:
    """Return the suffixes of calls of one function by one caller, by number."""
    if len(numbers) == 1:
        return {numbers[0]: ""}
    known: Counter[int] = Counter()
    suffixes = {}
    for number in sorted(numbers, key=lambda number: (lines[number], number)):
        line = lines[number]
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
    order = np.lexsort((tree.site, keys))
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
    distinct, first, place = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    return distinct[order].tolist(), rank[place]


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
