"""Classes of code regions."""

from __future__ import annotations

from callpath_modeler.profile.call_class import CallClass, call_class
from callpath_modeler.profile.schema import Region
from cells import cells


@cells(
    ("name", "expected"),
    [
        ("MPI_Send", CallClass.POINT_TO_POINT),
        ("mpi_isend_", CallClass.POINT_TO_POINT),
        ("PMPI_Irecv", CallClass.POINT_TO_POINT),
        ("MPI_Sendrecv_replace", CallClass.POINT_TO_POINT),
        ("MPI_Startall", CallClass.POINT_TO_POINT),
        ("MPI_Neighbor_alltoallv", CallClass.POINT_TO_POINT),
        ("MPI_Waitall", CallClass.WAIT),
        ("MPI_Testsome()", CallClass.WAIT),
        ("MPI_Barrier", CallClass.BARRIER),
        ("MPI_Ibcast", CallClass.BROADCAST),
        ("MPI_Allreduce_c", CallClass.ALLREDUCE),
        ("MPI_Allreduce_init", CallClass.ALLREDUCE),
        ("mpi_allreduce_f08_", CallClass.ALLREDUCE),
        ("PMPI_Allgatherv [libmpi.so]", CallClass.ALLGATHER),
        ("MPI_Reduce_scatter_block", CallClass.REDUCE_SCATTER),
        ("MPI_Exscan", CallClass.SCAN),
        ("MPI_Alltoallw", CallClass.ALLTOALL),
        ("MPI_Put", CallClass.ONE_SIDED),
        ("MPI_Win_fence", CallClass.ONE_SIDED),
        ("MPI_Win_create", CallClass.MANAGEMENT),
        ("MPI_Init_thread", CallClass.MANAGEMENT),
        ("MPI_Comm_split", CallClass.MANAGEMENT),
        ("MPI_Cart_sub", CallClass.MANAGEMENT),
        ("MPI_File_write_at_all", CallClass.IO),
        ("solve", CallClass.COMPUTATION),
        ("mpi_exchange_halo", CallClass.COMPUTATION),
        ("sendrecv", CallClass.COMPUTATION),
        ("TRACE BUFFER FLUSH", CallClass.MEASUREMENT),
    ],
)
def test_a_name_without_a_paradigm_tells_the_class(name, expected):
    assert call_class(name) is expected


@cells(
    ("paradigm", "role", "expected"),
    [
        ("mpi", "point2point", CallClass.POINT_TO_POINT),
        ("mpi", "coll_all2all", CallClass.COLLECTIVE),
        ("mpi", "barrier", CallClass.BARRIER),
        ("mpi", "function", CallClass.MANAGEMENT),
        ("MPI", "file_io", CallClass.IO),
        ("openmp", "loop", CallClass.OPENMP_WORK),
        ("openmp", "implicit barrier", CallClass.OPENMP),
        ("pthread", "function", CallClass.THREADS),
        ("cuda", "function", CallClass.GPU),
        ("hip", "function", CallClass.GPU),
        ("openmp target", "kernel", CallClass.GPU),
        ("io", "file_io", CallClass.IO),
        ("measurement", "artificial", CallClass.MEASUREMENT),
        ("compiler", "function", CallClass.COMPUTATION),
        ("user", "function", CallClass.COMPUTATION),
    ],
)
def test_paradigm_and_role_tell_the_class_of_an_unknown_name(paradigm, role, expected):
    assert call_class("a name", paradigm, role) is expected


def test_the_name_of_an_mpi_function_is_more_exact_than_its_role():
    assert call_class("MPI_Allreduce", "mpi", "coll_all2all") is CallClass.ALLREDUCE


def test_code_of_the_program_called_like_mpi_keeps_its_class():
    # Compiler instrumentation of a wrapper of the program.
    assert call_class("mpi_send", "compiler") is CallClass.COMPUTATION


def test_computation_and_waiting_exclude_each_other():
    assert not any(kind.computes and kind.waits for kind in CallClass)
    assert Region("f", paradigm="openmp", role="loop").call_class.computes
    assert Region("MPI_Wait", paradigm="mpi").call_class.waits
