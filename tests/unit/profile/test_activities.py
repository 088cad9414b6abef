"""What call paths do, in the terms of parallel efficiency."""

from __future__ import annotations

import numpy as np

from callpath_modeler.profile.balance import Activity, activities_of, activity_of, innermost
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region
from cells import cells

ROOT_OF_MPI = Region(PROGRAM, paradigm="mpi", role="artificial")


def tree_of(parents, regions):
    return CallTree.from_parents(parents, np.arange(len(regions)), regions)


@cells(
    ("region", "activity"),
    [
        (Region("main"), Activity.COMPUTATION),
        (Region("solve", paradigm="user"), Activity.COMPUTATION),
        (Region("cudaMemcpy", paradigm="cuda"), Activity.COMPUTATION),
        (Region(PROGRAM, paradigm="measurement", role="artificial"), Activity.COMPUTATION),
        (Region("MPI_Send", paradigm="mpi", role="point2point"), Activity.COMMUNICATION),
        (Region("shmem_put", paradigm="shmem"), Activity.COMMUNICATION),
        (Region("!$omp for", paradigm="openmp", role="loop"), Activity.COMPUTATION),
        (Region("!$omp master", paradigm="openmp", role="master"), Activity.COMPUTATION),
        (Region("!$omp single", paradigm="openmp", role="single sblock"), Activity.COMPUTATION),
        (Region("!$omp critical", paradigm="openmp", role="critical"), Activity.THREADING),
        (Region("!$omp barrier", paradigm="openmp", role="barrier"), Activity.THREADING),
        (Region("pthread_join", paradigm="pthread", role="function"), Activity.THREADING),
        (Region("<omp idle>"), Activity.THREADING),
        (Region("<omp work>"), Activity.COMPUTATION),
        (Region("TRACE BUFFER FLUSH", role="artificial"), Activity.MEASUREMENT),
        (Region("hpcrun_x", paradigm="measurement", role="function"), Activity.MEASUREMENT),
    ],
)
def test_regions_have_an_activity(region, activity):
    assert activity_of(region) is activity


def test_everything_below_a_call_of_mpi_is_communication():
    regions = [Region("main"), Region("MPI_Wait", paradigm="mpi"), Region("poll"), Region("f")]
    found = activities_of(tree_of([ROOT, 0, 1, 0], regions))
    assert found.tolist() == [0, 1, 1, 0]


def test_an_old_root_of_mpi_is_communication_beside_functions_of_the_program():
    regions = [ROOT_OF_MPI, Region("main", paradigm="user"), Region("MPI_Wait", paradigm="mpi")]
    assert activities_of(tree_of([ROOT, 0, 1], regions)).tolist() == [1, 0, 1]


def test_an_old_root_of_mpi_computes_if_only_mpi_was_measured():
    regions = [ROOT_OF_MPI, Region("MPI_Wait", paradigm="mpi")]
    assert activities_of(tree_of([ROOT, 0], regions)).tolist() == [0, 1]


def test_the_innermost_subtree_around_a_call_path_is_found():
    tree = tree_of([ROOT, 0, 1, 1, 0, ROOT], [Region(name) for name in "abcdef"])
    assert innermost(tree, np.array([0, 1, 3])).tolist() == [0, 1, 1, 2, 0, ROOT]
