"""What call paths do, in the terms of parallel efficiency."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.profile.call_class import OVERHEAD, CallClass
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Region


class Activity(IntEnum):
    """What a call path does outside its callees.

    Attributes
    ----------
    COMPUTATION : work of the program, also inside OpenMP constructs
    COMMUNICATION : calls of MPI or SHMEM, with everything below them
    THREADING : waiting and management in OpenMP or POSIX threads
    MEASUREMENT : work of the measurement itself, which the program has no part in
    """

    COMPUTATION = 0
    COMMUNICATION = 1
    THREADING = 2
    MEASUREMENT = 3


_CALLS = frozenset(
    each
    for each in CallClass
    if each.is_collective
    or each
    in {
        CallClass.POINT_TO_POINT,
        CallClass.ONE_SIDED,
        CallClass.WAIT,
        CallClass.MANAGEMENT,
    }
)
"""Classes of communication calls; input and output in the paradigm MPI is one as well."""
_COMMUNICATION = frozenset({"mpi", "shmem"})
_THREADS = frozenset({CallClass.OPENMP, CallClass.THREADS})
_BODIES = frozenset({"master", "masked"})
"""Roles of OpenMP constructs whose own time is that of the statements inside them."""
_ARTIFICIAL = "artificial"
_OMP_STATES, _OMP_WORK = "<omp ", "<omp work>"
"""HPCToolkit's names of the states of OpenMP threads, and of the state with work."""


def activity_of(region: Region) -> Activity:
    """Return what a region does, from its class, its role and its name."""
    kind = region.call_class
    if region.paradigm in _COMMUNICATION or kind in _CALLS:
        return Activity.COMMUNICATION
    if region.name.startswith(_OMP_STATES) and region.name != _OMP_WORK:
        return Activity.THREADING
    if kind in _THREADS and not _is_body(region):
        return Activity.THREADING
    # Other artificial regions have the time of the program outside of all measured functions.
    if kind is CallClass.MEASUREMENT and (region.role != _ARTIFICIAL or region.name in OVERHEAD):
        return Activity.MEASUREMENT
    return Activity.COMPUTATION


def activities_of(tree: CallTree) -> IntArray:
    """Return the activity of each call path, [call paths].

    Everything below a communication call belongs to it, such as the functions of the MPI library.
    Old versions of Score-P have a root of MPI around the program. As in Cube's own tools, its own
    time is communication. Without any function of the program, this time has the computation.
    """
    regions = tree.regions
    of_region = np.array([activity_of(region) for region in regions], np.intp)
    is_call = np.array([region.role != _ARTIFICIAL for region in regions])
    if not any(region.is_own and call for region, call in zip(regions, is_call, strict=True)):
        of_region[~is_call & (of_region == Activity.COMMUNICATION)] = Activity.COMPUTATION
    found = of_region[tree.region]
    begins = np.flatnonzero((of_region == Activity.COMMUNICATION)[tree.region]
                            & is_call[tree.region])  # fmt: skip
    found[in_subtrees(tree, begins)] = Activity.COMMUNICATION
    return found


def in_subtrees(tree: CallTree, roots: IntArray) -> BoolArray:
    """Return which call paths are in the subtrees of `roots`, [call paths]."""
    depth = np.zeros(len(tree) + 1, np.intp)
    np.add.at(depth, roots, 1)
    np.add.at(depth, tree.end[roots], -1)
    return np.asarray(np.cumsum(depth[:-1]) > 0)


def innermost(tree: CallTree, chosen: IntArray) -> IntArray:
    """Return, for each call path, the innermost of some call paths around it, [call paths].

    Parameters
    ----------
    tree : the call tree
    chosen : rows of these call paths, ascending

    Returns
    -------
    ndarray
        Positions in `chosen`; `ROOT` = none is around the call path. A call path is around itself.
    """
    found = np.full(len(tree), ROOT, np.intp)
    # Callers come before callees, so inner call paths replace outer ones.
    for position, row in enumerate(chosen.tolist()):
        found[row : tree.end[row]] = position
    return found


def _is_body(region: Region) -> bool:
    """Return whether an OpenMP region has statements of the program."""
    role = region.role.replace("_", " ")
    return role.endswith("sblock") or role in _BODIES
