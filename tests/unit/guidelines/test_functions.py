from __future__ import annotations

from cells import cells
from cpmodel_guidelines.functions import COLLECTIVES, Function, canonical, functions_in


@cells("name", COLLECTIVES)
@cells("form", ["MPI_{}", "{}", "PMPI_{}", "osu_{}", "MPI_{}_c", "mpi_{}_"])
def test_a_collective_is_known_by_any_of_its_names(name, form):
    assert canonical(form.format(name)) == name
    assert canonical(form.format(name).lower()) == name
    assert canonical(form.format(name).upper()) == name


@cells(
    "name",
    ["MPI_Iallreduce", "MPI_Send", "MPI_Neighbor_allgather", "MPI_Bcast_init", "MPI_", "", "main",
     "MPI_Reduction", "my_reduce", "MPI_Barriers"],
)  # fmt: skip
def test_functions_that_are_no_collectives_have_no_canonical_name(name):
    assert canonical(name) is None
    assert functions_in([(name,)]) == [None]


def test_what_stands_beside_the_name_is_its_group():
    paths = [
        ("OpenMPI", "MPI_Bcast", "latency"),
        ("OpenMPI", "MPI_Bcast latency"),
        ("allreduce",),
        ("IntelMPI",),
    ]
    assert functions_in(paths[:2] + paths[3:]) == [
        Function(("OpenMPI", "latency"), "Bcast"),
        Function(("OpenMPI", "latency"), "Bcast"),
        None,
    ]
    assert functions_in([paths[2]]) == [Function((), "Allreduce")]


def test_beside_calls_of_mpi_functions_of_the_program_are_no_collectives():
    paths = [("main", "reduce"), ("main", "reduce", "MPI_Reduce"), ("main", "scatter")]
    assert functions_in(paths) == [None, Function(("main", "reduce"), "Reduce"), None]
    assert functions_in(paths[2:]) == [Function(("main",), "Scatter")]
