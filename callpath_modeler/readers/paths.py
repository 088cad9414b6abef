"""Call trees from call paths as text, and exclusive values along the tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region

_ARROW = re.compile(r"(?:(?<!\s)(?<!operator)\s+|(?<!operator))->\s*")
_ARROW_INSIDE = re.compile(r"(?<!operator)->")
_SLASH = re.compile(r"(?<!\\)/")
_SEMICOLON = re.compile(";")
_MPI = re.compile(r"P?MPI_[A-Z]")
_OPENMP = re.compile(r"!\$omp (?:implicit )?(\w+)")
_OPENMP_ROLES = {"for": "loop", "do": "loop"}
_WAITING = re.compile(
    r"<?_*(?:g?omp|openmp|kmpc?)[ _.:](?:\w*[ _.:])?(barrier|idle|wait)", re.IGNORECASE
)
"""Names of waiting in runtime systems of OpenMP, such as ``OpenMP_Implicit_Barrier``."""


def known_region(name: str) -> Region:
    """Return the region called `name`, with the paradigm of MPI functions and OpenMP constructs."""
    if name == PROGRAM:
        return Region(name, role="artificial")
    if _MPI.match(name):
        return Region(name, paradigm="mpi")
    construct = _OPENMP.match(name)
    if construct:
        word = construct[1]
        return Region(name, paradigm="openmp", role=_OPENMP_ROLES.get(word, word))
    waiting = _WAITING.match(name)
    if waiting:
        return Region(name, paradigm="openmp", role=waiting[1].lower())
    return Region(name)


_FEW_PATHS = 32
"""Largest number of paths of a small call tree."""
_MOST_TREES = 16
"""Number of small call trees that are remembered: the tables of a series have the same ones."""


def tree_of(paths: Sequence[tuple[str, ...]]) -> tuple[CallTree, IntArray]:
    """Return the call tree of `paths`, and the row of each path.

    Callers get a row even if they are not in `paths`. Siblings have the order of first occurrence.
    If the artificial program root is in `paths`, it becomes the caller of all other paths, because
    paths as text do not contain it.
    """
    if len(paths) > _FEW_PATHS:
        return _tree_of(paths)
    tree, row = _tree_of_few(tuple(paths))
    return tree, row.copy()


@lru_cache(maxsize=_MOST_TREES)
def _tree_of_few(paths: tuple[tuple[str, ...], ...]) -> tuple[CallTree, IntArray]:
    return _tree_of(paths)


def _tree_of(paths: Sequence[tuple[str, ...]]) -> tuple[CallTree, IntArray]:
    if (PROGRAM,) in paths:
        paths = [path if path[0] == PROGRAM else (PROGRAM, *path) for path in paths]
    number_of: dict[tuple[int, str], int] = {}
    callers: list[int] = []
    names: list[str] = []
    ends = []
    for path in paths:
        node = ROOT
        for name in path:
            found = number_of.setdefault((node, name), len(names))
            if found == len(names):
                names.append(name)
                callers.append(node)
            node = found
        ends.append(node)
    tree, row_of = tree_of_nodes(callers, names)
    return tree, row_of[ends]


def tree_of_nodes(
    callers: Sequence[int],
    names: Sequence[str],
    sites: Sequence[int] | None = None,
    files: Mapping[str, str] | None = None,
) -> tuple[CallTree, IntArray]:
    """Return the call tree of nodes, and the row of each node.

    Siblings stay in order.

    Parameters
    ----------
    callers : for each node, the number of its caller, or `ROOT`; callers come before callees
    names : for each node, the name of its region
    sites : for each node, the line of the call in the source of the caller; None = not known
    files : source file by name of a region
    """
    roots: list[int] = []
    callees: list[list[int]] = [[] for _ in names]
    for node, caller in enumerate(callers):
        (roots if caller == ROOT else callees[caller]).append(node)
    row_of = np.empty(len(names), np.intp)
    parents: list[int] = []
    order: list[int] = []
    stack = [(root, ROOT) for root in reversed(roots)]
    while stack:
        node, caller = stack.pop()
        row = len(order)
        row_of[node] = row
        order.append(node)
        parents.append(caller)
        stack += [(callee, row) for callee in reversed(callees[node])]
    index: dict[str, int] = {}
    region = [index.setdefault(names[node], len(index)) for node in order]
    known = files or {}
    regions = [replace(known_region(name), file=known.get(name, "")) for name in index]
    lines = None if sites is None else [sites[node] for node in order]
    tree = CallTree.from_parents(parents, region, regions, site=lines)
    return tree, row_of


def exclusive_of(tree: CallTree, inclusive: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return exclusive values: each inclusive value less those of the callees.

    Parameters
    ----------
    tree : the call tree
    inclusive : [call paths, runs]; NaN = not measured. The values below are then subtracted from
        the nearest measured caller

    Returns
    -------
    exclusive : ndarray
        [call paths, runs]; rounding may make values negative.
    total : ndarray
        [runs] sum of the values without a measured caller.
    """
    measured = ~np.isnan(inclusive)
    runs = np.arange(inclusive.shape[1])
    nearest = np.full(inclusive.shape, ROOT, np.intp)
    exclusive = inclusive.copy()
    total = np.zeros(inclusive.shape[1])
    for rows in tree.levels():
        parents = tree.parent[rows]
        above = np.where((parents == ROOT)[:, None], ROOT, nearest[parents])
        here = measured[rows]
        nearest[rows] = np.where(here, rows[:, None], above)
        of_caller = here & (above != ROOT)
        values = np.where(here, inclusive[rows], 0.0)
        total += np.where(above == ROOT, values, 0.0).sum(axis=0)
        row, run = np.nonzero(of_caller)
        np.subtract.at(exclusive, (above[row, run], runs[run]), values[row, run])
    return exclusive, total


def split_paths(texts: Sequence[str]) -> list[tuple[str, ...]]:
    r"""Return the names of call paths that are joined by ``->``, ``/`` or ``;``.

    All texts are split at one of these separators: the one that most texts contain, or else the
    first of these. A slash in a name is written ``\/``. The arrow of ``operator->`` is not a
    separator.

    >>> split_paths(["main", "main/solve", "main/solve/state a->b"])[-1]
    ('main', 'solve', 'state a->b')
    """
    ways = (
        (_ARROW, split_at_arrows),
        (_SLASH, split_at_slashes),
        (_SEMICOLON, lambda text: tuple(text.split(";"))),
    )
    counts = [sum(sign.search(text) is not None for text in texts) for sign, _ in ways]
    split = ways[counts.index(max(counts))][1] if max(counts, default=0) else ways[-1][1]
    return [split(text) for text in texts]


def split_at_arrows(text: str) -> tuple[str, ...]:
    """Return the names of a call path in the notation of Extra-P."""
    return tuple(_ARROW.split(text.strip()))


def join_with_arrows(names: Sequence[str]) -> str:
    """Return a call path in the notation of Extra-P; an arrow in a name becomes ``→``."""
    return "->".join(_ARROW_INSIDE.sub("→", " ".join(name.split())) for name in names)


def split_at_slashes(text: str) -> tuple[str, ...]:
    """Return the names of a call path in the notation of this package."""
    return tuple(name.replace("\\/", "/") for name in _SLASH.split(text))
