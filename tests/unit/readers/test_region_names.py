"""Paradigm and role of regions that are known by name only."""

from __future__ import annotations

import pytest

from callpath_modeler.profile.balance import Activity, activity_of
from callpath_modeler.readers.paths import known_region
from cells import cells


@cells(
    "name",
    [
        "OpenMP_Implicit_Barrier",
        "omp_barrier",
        "omp barrier",
        "<omp idle>",
        "!$omp implicit barrier @a.c:3",
        "GOMP_barrier",
        "gomp_team_barrier_wait_end",
        "__kmpc_barrier",
    ],
)
def test_waiting_in_openmp_is_known_by_its_name(name):
    assert activity_of(known_region(name)) is Activity.THREADING


@pytest.mark.parametrize("name", ["barrier_model", "computation_wait", "omp_solve", "romp_idle"])
def test_functions_of_the_program_compute(name):
    assert activity_of(known_region(name)) is Activity.COMPUTATION
