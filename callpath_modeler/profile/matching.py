"""Call paths of one run in the common call tree of several runs.

The common tree may lack call paths that were excluded or folded into their callers. Siblings of the
same name are matched by the line of the call, by file and first line, or else by their order, as in
`profile.unify`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.profile.activities import in_subtrees
from callpath_modeler.profile.calltree import ROOT, CallTree, without_site
from callpath_modeler.profile.pattern import Patterns
from callpath_modeler.profile.pruning import without_call_sites
from callpath_modeler.profile.schema import Region
from callpath_modeler.profile.unify import relative_sites, unify

_ORDINAL = re.compile(r"#\d{1,9}$")
"""Suffix that numbers siblings of the same name."""

_Key = tuple[int, str, str, int]
"""Row of the caller, name of the region, annotation without ordinal and line, and relative line."""


class CommonTree:
    """The common call tree of an experiment, in which call paths of its runs are found.

    Parameters
    ----------
    tree : the tree
    ignored : patterns of call paths that were excluded together with their callees
    hidden : patterns of call paths that were folded into their callers
    renumbered : names of regions that only their order identifies, as in `profile.unify.Unified`
    """

    def __init__(
        self,
        tree: CallTree,
        ignored: Iterable[str] = (),
        hidden: Iterable[str] = (),
        renumbered: Iterable[str] = (),
    ) -> None:
        self._renumbered = frozenset(renumbered)
        self._tree = tree
        self._ignored, self._hidden = tuple(ignored), tuple(hidden)
        self._rows = _siblings(tree, tree.parent)

    def rows_of(self, own: CallTree) -> IntArray:
        """Return the row of each call path of a run.

        Parameters
        ----------
        own : call tree of the run, as its profile has it

        Returns
        -------
        ndarray
            intp [call paths of `own`], rows of the common tree. A folded call path has the row of
            its caller. `ROOT` = the common tree does not have the call path.
        """
        if not self._tree.has_sites:
            own = without_call_sites(own)
        united = unify([own])
        tree = united.tree
        sites = relative_sites(tree).tolist()
        gone = in_subtrees(tree, np.flatnonzero(_named(tree, self._ignored)))
        folded = _named(tree, self._hidden) & (tree.parent != ROOT)
        found = np.full(len(tree), ROOT, np.intp)
        # Callers have smaller rows than their callees, so they are known first.
        own_siblings = _siblings(tree, tree.parent)
        position = {row: k for rows in own_siblings.values() for k, row in enumerate(rows)}
        for row, caller in enumerate(tree.parent.tolist()):
            above = ROOT if caller == ROOT else int(found[caller])
            if gone[row] or (caller != ROOT and above == ROOT):
                continue
            if folded[row]:
                found[row] = above
                continue
            rows = self._rows.get((above, *_name(tree, row), sites[row]), ())
            found[row] = self._chosen(rows, tree.regions[tree.region[row]], position[row])
        return found[united.rows[0]]

    def _chosen(self, rows: list[int] | tuple[()], region: Region, position: int) -> int:
        """Return the row of a call path among siblings of its name."""
        if len(rows) > 1 and region.common_name not in self._renumbered:
            tree = self._tree
            for row in rows:
                if _place(tree.regions[tree.region[row]]) == _place(region):
                    return row
        return rows[position] if position < len(rows) else ROOT


def _named(tree: CallTree, patterns: Iterable[str]) -> BoolArray:
    named = np.zeros(len(tree), np.bool_)
    known = Patterns.of(tree)
    for pattern in patterns:
        named[known.rows(pattern)] = True
    return named


def _siblings(tree: CallTree, callers: Iterable[int]) -> dict[_Key, list[int]]:
    """Return the rows of siblings with the same name and line of the call, in order."""
    found: dict[_Key, list[int]] = {}
    for row, (caller, site) in enumerate(zip(callers, relative_sites(tree).tolist(), strict=True)):
        found.setdefault((int(caller), *_name(tree, row), site), []).append(row)
    for rows in found.values():
        if len(rows) > 1:
            rows.sort(key=lambda row: _ordinal(tree, row))
    return found


def _ordinal(tree: CallTree, row: int) -> int:
    suffix = _ORDINAL.search(without_site(tree.annotations[tree.annotation[row]]))
    return int(suffix[0][1:]) if suffix else 1


def _name(tree: CallTree, row: int) -> tuple[str, str]:
    note = without_site(tree.annotations[tree.annotation[row]])
    return tree.regions[tree.region[row]].common_name, _ORDINAL.sub("", note)


def _place(region: Region) -> tuple[int, str]:
    return region.line, region.file.rpartition("/")[2]
