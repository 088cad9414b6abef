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
        ("openmp target", "kernel", CallClass.GPU_COMPUTATION),
        ("hip", "gpu copy", CallClass.GPU_COPY),
        ("io", "file_io", CallClass.IO),
        ("measurement", "artificial", CallClass.MEASUREMENT),
        ("compiler", "function", CallClass.COMPUTATION),
        ("user", "function", CallClass.COMPUTATION),
    ],
)
def test_paradigm_and_role_tell_the_class_of_an_unknown_name(paradigm, role, expected):
    assert call_class("a name", paradigm, role) is expected


@cells(
    ("name", "role", "expected"),
    [
        ("cudaLaunchKernel_v7000", "function", CallClass.GPU_LAUNCH),
        ("cudaLaunchKernelExC_v11060", "function", CallClass.GPU_LAUNCH),
        ("cuLaunchKernel", "", CallClass.GPU_LAUNCH),
        ("cudaGraphLaunch_v10000", "", CallClass.GPU_LAUNCH),
        ("hipModuleLaunchKernel", "", CallClass.GPU_LAUNCH),
        ("cudaDeviceSynchronize", "", CallClass.GPU_SYNCHRONISATION),
        ("cudaEventSynchronize_v3020", "", CallClass.GPU_SYNCHRONISATION),
        ("hipStreamSynchronize", "", CallClass.GPU_SYNCHRONISATION),
        ("cudaMemcpyAsync_v3020", "", CallClass.GPU_COPY),
        ("cuMemcpyHtoD_v2", "", CallClass.GPU_COPY),
        ("hipMemsetAsync", "", CallClass.GPU_COPY),
        ("cudaMalloc_v3020", "", CallClass.GPU),
        ("cudaStreamWaitEvent", "", CallClass.GPU),
        ("vector_add(double const*)", "kernel", CallClass.GPU_COMPUTATION),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "kernel", CallClass.GPU_COMMUNICATION),
        ("ncclKernel_AllReduce_RING_LL_Sum_float", "kernel", CallClass.GPU_COMMUNICATION),
        ("void ncclKernel_Broadcast", "kernel", CallClass.GPU_COMMUNICATION),
        ("my_nccl_free_kernel", "kernel", CallClass.GPU_COMPUTATION),
    ],
)
def test_names_of_accelerator_calls_tell_what_they_do(name, role, expected):
    assert call_class(name, "cuda", role) is expected
    assert not expected.waits


def test_the_name_of_an_mpi_function_is_more_exact_than_its_role():
    assert call_class("MPI_Allreduce", "mpi", "coll_all2all") is CallClass.ALLREDUCE


def test_code_of_the_program_called_like_mpi_keeps_its_class():
    # Compiler instrumentation of a wrapper of the program.
    assert call_class("mpi_send", "compiler") is CallClass.COMPUTATION


def test_computation_and_waiting_exclude_each_other():
    assert not any(kind.computes and kind.waits for kind in CallClass)
    assert Region("f", paradigm="openmp", role="loop").call_class.computes
    assert Region("MPI_Wait", paradigm="mpi").call_class.waits
