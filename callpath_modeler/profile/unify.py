"""One call tree out of many runs'.

Two call paths are the same if all their callers are and they agree in region name, parameters
and ordinal. The ordinal tells functions of one name apart (static functions of several files, say),
by first line, then file. Files and lines themselves are no keys, because build directories and
generated file names change between builds, and neither is the name of the executable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Region

_Identity = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Unified:
    """A call tree that holds the call paths of all runs.

    Attributes
    ----------
    tree : the union; no two siblings share a name and annotation
    rows : per run, intp [call paths of the run]: the row of `tree` that each belongs to
    added : per run, how many call paths share a row with a sibling of the same name
    renumbered : region names whose first lines differ between runs, so that the order alone
        told their regions apart
    """

    tree: CallTree
    rows: tuple[NDArray[np.intp], ...]
    added: tuple[int, ...]
    renumbered: tuple[str, ...]


def unify(trees: Sequence[CallTree]) -> Unified:
    """Unite the call trees of several runs of one program.

    The order of siblings is that of the first run that has them.
    """
    # Runs of one binary mostly have one tree, those of one table the same; it is walked once.
    index: dict[tuple[object, ...], int] = {}
    objects = {id(tree): tree for tree in trees}
    number = {key: index.setdefault(_content(tree), len(index)) for key, tree in objects.items()}
    which = [number[id(tree)] for tree in trees]
    distinct = [trees[which.index(k)] for k in range(len(index))]
    ordinals, renumbered = _ordinals(distinct)
    union = _Union()
    numbers = [union.add(tree, own) for tree, own in zip(distinct, ordinals, strict=True)]
    tree, place = union.tree()
    mapped = [place[number] for number in numbers]
    added = [len(rows) - len(np.unique(rows)) for rows in mapped]
    return Unified(
        tree, tuple(mapped[k] for k in which), tuple(added[k] for k in which), renumbered
    )


def scatter_to_union(
    values: NDArray[np.float64], rows: NDArray[np.intp], n_rows: int, *, additive: bool = True
) -> NDArray[np.float64]:
    """Bring the values of one run's call paths to the rows of the unified tree.

    Parameters
    ----------
    values : [call paths of the run]; NaN = not measured
    rows : [call paths of the run] row in the unified tree
    n_rows : length of the unified tree
    additive : whether values add up; of those that do not, the largest stands

    Returns
    -------
    [n_rows]; values that meet in one row are added; NaN where the run has no value
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
    """The growing union: one key per call path, callers before callees."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str, str, int], int] = {}
        self._regions: dict[Region, int] = {}
        self._region: list[int] = []

    def add(self, tree: CallTree, ordinal: Sequence[int]) -> NDArray[np.intp]:
        """Add the call paths of `tree` and return the union's number of each."""
        known = [self._regions.setdefault(r, len(self._regions)) for r in tree.regions]
        names = [region.common_name for region in tree.regions]
        numbers: list[int] = []
        columns = (tree.parent.tolist(), tree.region.tolist(), tree.annotation.tolist())
        for caller, region, note in zip(*columns, strict=True):
            above = ROOT if caller == ROOT else numbers[caller]
            key = (above, names[region], tree.annotations[note], ordinal[region])
            number = self._rows.setdefault(key, len(self._region))
            if number == len(self._region):
                self._region.append(known[region])
            numbers.append(number)
        return np.array(numbers, np.intp)

    def tree(self) -> tuple[CallTree, NDArray[np.intp]]:
        """Return the union in preorder and the row of each number in it."""
        keys = list(self._rows)
        parent = np.array([key[0] for key in keys], np.int32)
        place = preorder(parent)
        order = np.argsort(place)
        region_index: dict[int, int] = {}
        note_index: dict[str, int] = {"": 0}
        regions, notes = [], []
        suffix = _sibling_suffixes(keys)
        for number in order.tolist():
            regions.append(region_index.setdefault(self._region[number], len(region_index)))
            note = keys[number][2] + suffix.get(number, "")
            notes.append(note_index.setdefault(note, len(note_index)))
        callers = parent[order]
        callers = np.where(callers == ROOT, ROOT, place[callers])
        known = list(self._regions)
        used = tuple(known[region] for region in region_index)
        tree = CallTree.from_parents(callers, regions, used, notes, tuple(note_index))
        return tree, place


def preorder(parent: NDArray[np.int32]) -> NDArray[np.intp]:
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


def _sibling_suffixes(keys: Sequence[tuple[int, str, str, int]]) -> dict[int, str]:
    """Return a number for siblings that differ in nothing but their ordinal."""
    # Nearly all call paths have ordinal 0, so only the few others are grouped.
    special = {key[:3] for key in keys if key[3] > 0}
    groups: dict[tuple[int, str, str], list[tuple[int, int]]] = {}
    for number, key in enumerate(keys):
        if key[:3] in special:
            groups.setdefault(key[:3], []).append((key[3], number))
    return {
        number: f"#{position}"
        for members in groups.values()
        for position, (_, number) in enumerate(sorted(members), start=1)
        if position > 1
    }


def _content(tree: CallTree) -> tuple[object, ...]:
    columns = (tree.parent.tobytes(), tree.region.tobytes(), tree.annotation.tobytes())
    return (*columns, tree.regions, tree.annotations)


def _ordinals(trees: Sequence[CallTree]) -> tuple[list[list[int]], tuple[str, ...]]:
    """Return a number per region among those of its name, the same in all trees.

    Where the runs agree on lines and files, the number is the place in the union of all runs, so a
    region that one run lacks does not shift the others; where they do not (another
    build), it is the place within the run.
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
    """Return the names that several regions bear."""
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
