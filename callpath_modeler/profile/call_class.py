"""Classes of code regions: what a call path does, from the paradigm, the role and the name.

A class decides which cost law can explain the time of a call path. Profilers describe regions in
different ways: Score-P and OTF2 store a paradigm and a role, other tools only a name. Names of MPI
functions are read in C spelling (``MPI_Send``, ``PMPI_Send``) and in Fortran spelling
(``mpi_send_``). The collective operations follow chapter 6 of the MPI standard 4.1.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache


class CallClass(StrEnum):
    """The class of a code region.

    Attributes
    ----------
    COMPUTATION : code of the program
    POINT_TO_POINT : messages between two processes, and neighbourhood collectives
    ONE_SIDED : access to the memory of another process
    BROADCAST, SCATTER, GATHER, REDUCE : rooted collective operations
    ALLGATHER, ALLREDUCE, ALLTOALL, REDUCE_SCATTER, SCAN : collective operations without a root
    COLLECTIVE : a collective operation of another kind
    BARRIER : synchronisation of all processes
    WAIT : synchronisation with a message or a request
    MANAGEMENT : start and end of MPI, communicators, data types, and other local calls
    IO : input and output
    OPENMP_WORK : OpenMP constructs that contain the program's computation
    OPENMP : OpenMP synchronisation and management
    THREADS : synchronisation of threads
    GPU_COMPUTATION : kernels of the program
    GPU_COMMUNICATION : kernels of NCCL, RCCL and similar libraries, which wait for other processes
    GPU_COPY : copies between memories of hosts and devices, memory sets, and calls that start them
    GPU_SYNCHRONISATION : calls in which the host waits for a device
    GPU_LAUNCH : calls that start kernels
    GPU : other calls of an accelerator's library
    MEASUREMENT : overhead of the measurement
    """

    COMPUTATION = "computation"
    POINT_TO_POINT = "point-to-point"
    ONE_SIDED = "one-sided"
    BROADCAST = "broadcast"
    SCATTER = "scatter"
    GATHER = "gather"
    REDUCE = "reduce"
    ALLGATHER = "allgather"
    ALLREDUCE = "allreduce"
    ALLTOALL = "alltoall"
    REDUCE_SCATTER = "reduce-scatter"
    SCAN = "scan"
    COLLECTIVE = "collective"
    BARRIER = "barrier"
    WAIT = "wait"
    MANAGEMENT = "management"
    IO = "io"
    OPENMP_WORK = "openmp work"
    OPENMP = "openmp"
    THREADS = "threads"
    GPU_COMPUTATION = "gpu computation"
    GPU_COMMUNICATION = "gpu communication"
    GPU_COPY = "gpu copy"
    GPU_SYNCHRONISATION = "gpu synchronisation"
    GPU_LAUNCH = "gpu launch"
    GPU = "gpu"
    MEASUREMENT = "measurement"

    @property
    def computes(self) -> bool:
        """True for computation of the program, with or without OpenMP."""
        return self in _COMPUTING

    @property
    def waits(self) -> bool:
        """True if the region may wait for other processes or threads."""
        return self in _WAITING

    @property
    def is_collective(self) -> bool:
        """True if all processes of a communicator take part."""
        return self in _COLLECTIVE


_COMPUTING = frozenset({CallClass.COMPUTATION, CallClass.OPENMP_WORK})
_COLLECTIVE = frozenset(
    {
        CallClass.BROADCAST,
        CallClass.SCATTER,
        CallClass.GATHER,
        CallClass.REDUCE,
        CallClass.ALLGATHER,
        CallClass.ALLREDUCE,
        CallClass.ALLTOALL,
        CallClass.REDUCE_SCATTER,
        CallClass.SCAN,
        CallClass.COLLECTIVE,
        CallClass.BARRIER,
    }
)
_WAITING = _COLLECTIVE | {
    CallClass.POINT_TO_POINT,
    CallClass.ONE_SIDED,
    CallClass.WAIT,
    CallClass.MANAGEMENT,
    CallClass.OPENMP,
    CallClass.THREADS,
}

_OPENMP_WORK = frozenset({"loop", "parallel", "sections", "section", "single", "task", "workshare"})
"""Roles of OpenMP regions with the program's own computation; the other regions wait."""

_PARADIGMS = {
    "mpi": CallClass.MANAGEMENT,
    "openmp": CallClass.OPENMP,
    "pthread": CallClass.THREADS,
    "shmem": CallClass.ONE_SIDED,
    "gaspi": CallClass.ONE_SIDED,
    "measurement": CallClass.MEASUREMENT,
    "measurement_system": CallClass.MEASUREMENT,
    "io": CallClass.IO,
    "posix": CallClass.IO,
    **dict.fromkeys(
        ("cuda", "opencl", "openacc", "hip", "level zero", "openmp_target", "openmp target"),
        CallClass.GPU,
    ),
}
_ROLES = {
    "point2point": CallClass.POINT_TO_POINT,
    "rma": CallClass.ONE_SIDED,
    "barrier": CallClass.BARRIER,
    "implicit_barrier": CallClass.BARRIER,
    "coll_one2all": CallClass.BROADCAST,
    "coll_all2one": CallClass.REDUCE,
    "coll_all2all": CallClass.COLLECTIVE,
    "coll_other": CallClass.COLLECTIVE,
    "coll": CallClass.COLLECTIVE,
    "wait": CallClass.WAIT,
    "file_io": CallClass.IO,
    "file_io_metadata": CallClass.IO,
}
"""Classes of MPI and SHMEM regions by role, if the name is not known."""
OVERHEAD = frozenset({"MEASUREMENT OFF", "TRACE BUFFER FLUSH"})
"""Artificial regions with time of the measurement."""

_GPU_ROLES = {
    "kernel": CallClass.GPU_COMPUTATION,
    "gpu copy": CallClass.GPU_COPY,
    "gpu synchronisation": CallClass.GPU_SYNCHRONISATION,
}
"""Classes of GPU activities by role."""
_GPU_MESSAGES = re.compile(
    r"(?:void )?(?:\w+::)*(?:[nr]ccl|msccl|oneccl|nvshmem)\w*kernel",
    re.IGNORECASE,
)
"""Kernels of communication libraries, such as ``ncclDevKernel_AllReduce_Sum_f32_RING_LL``."""
_GPU_CALLS = (
    (
        re.compile(r"(?:cuda|cu|hip)(?:Ctx|Device|Stream|Event|Thread)Synchronize\w*"
                   r"|hsa_signal_wait\w*|cl(?:Finish|WaitForEvents)|ze\w+Synchronize"),
        CallClass.GPU_SYNCHRONISATION,
    ),
    (
        re.compile(r"(?:cuda|cu|hip)(?:Mem(?:cpy|set)|GraphAddMem)\w*|cl(?:EnqueueRead|EnqueueWrite"
                   r"|EnqueueCopy|EnqueueFill)\w*|hsa_\w*memory_(?:async_)?(?:copy|fill)\w*"
                   r"|zeCommandListAppendMemory\w*"),
        CallClass.GPU_COPY,
    ),
    (
        re.compile(r"(?:cuda|cu|hip)(?:Module|Ext|Graph|Hcc\w*)?Launch\w*|hipLaunch\w*"
                   r"|clEnqueue(?:NDRangeKernel|Task)|zeCommandListAppendLaunch\w*|kernel launch"),
        CallClass.GPU_LAUNCH,
    ),
)  # fmt: skip
"""Calls of CUDA, HIP, OpenCL and Level Zero by name."""

_MPI = re.compile(r"p?mpi_[a-z][a-z0-9_]*", re.IGNORECASE)
_BINDINGS = ("_f08ts", "_f08", "_f", "_c")
"""Endings of names in Fortran bindings, and of functions with large counts."""
_COLLECTIVES = {
    "bcast": CallClass.BROADCAST,
    "scatter": CallClass.SCATTER,
    "scatterv": CallClass.SCATTER,
    "gather": CallClass.GATHER,
    "gatherv": CallClass.GATHER,
    "reduce": CallClass.REDUCE,
    "allgather": CallClass.ALLGATHER,
    "allgatherv": CallClass.ALLGATHER,
    "allreduce": CallClass.ALLREDUCE,
    "alltoall": CallClass.ALLTOALL,
    "alltoallv": CallClass.ALLTOALL,
    "alltoallw": CallClass.ALLTOALL,
    "reduce_scatter": CallClass.REDUCE_SCATTER,
    "reduce_scatter_block": CallClass.REDUCE_SCATTER,
    "scan": CallClass.SCAN,
    "exscan": CallClass.SCAN,
    "barrier": CallClass.BARRIER,
}
_TRAINING = re.compile(
    r"(?:wait for )?(?:(?:[nrmxh]|one)?ccl|gloo|mpi|ucc|c10d)::?_?(?P<name>[a-z]\w*?)(?:_base)?_*"
)
"""Collective operations of PyTorch: ``nccl:all_reduce``, ``c10d::allgather_``, and waits."""
_OF_TRAINING = {
    "coalesced": CallClass.COLLECTIVE,
    "recv_any_source": CallClass.POINT_TO_POINT,
    **dict.fromkeys(("send", "recv", "isend", "irecv"), CallClass.POINT_TO_POINT),
    "broadcast": CallClass.BROADCAST,
}
_ENDS_OF_TRAINING = ("coalesced", "into_tensor", "tensor", "base")
_MESSAGES = re.compile(
    r"(?:(?:p|i)?[bsr]?send|p?i?m?recv|i?sendrecv(?:_replace)?|i?m?probe|start|startall"
    r"|[bsrp]?s?send|pready(?:_range|_list)?|parrived|i?neighbor_\w+)(?:_init)?"
)
_BLOCKING = re.compile(r"[bsr]?send|m?recv|m?probe")
_WAITS = re.compile(r"(?:wait|test)(?:all|any|some)?")
_ACCESSES = re.compile(
    r"r?put|r?get|r?accumulate|r?get_accumulate|fetch_and_op|compare_and_swap"
    r"|win_(?:fence|start|complete|post|wait|test|lock|unlock|lock_all|unlock_all|flush\w*|sync)"
)
_FILES = re.compile(r"file_\w+|register_datarep")
_LOCAL = re.compile(
    r"init|init_thread|initialized|finalize|finalized|query_thread|is_thread_main|abort|wtime|wtick"
    r"|comm_\w+|intercomm_\w+|group_\w+|cart_\w+|graph_\w+|dist_graph_\w+|cartdim_get|topo_test"
    r"|dims_create|type_\w+|op_\w+|info_\w+|win_\w+|attr_\w+|keyval_\w+|errhandler_\w+|error_\w+"
    r"|add_error_\w+|session_\w+|buffer_\w+|get_\w+|pack\w*|unpack\w*|request_\w+|status_\w+"
    r"|cancel|pcontrol|address|alloc_mem|free_mem|open_port|close_port|publish_name|lookup_name"
    r"|unpublish_name|t_\w+|aint_\w+|grequest_\w+|keyval_create|reduce_local"
)


def call_class(name: str, paradigm: str = "", role: str = "") -> CallClass:
    """Return the class of a region.

    Parameters
    ----------
    name : demangled name of the region
    paradigm : kind of instrumentation as the profile states it, such as ``"mpi"``; "" = not known
    role : role as the profile states it, such as ``"point2point"``; "" = not known

    Returns
    -------
    CallClass
        Code of an unknown kind is computation.

    Examples
    --------
    >>> call_class("mpi_allreduce_"), call_class("PMPI_Waitall"), call_class("solve")
    (<CallClass.ALLREDUCE: 'allreduce'>, <CallClass.WAIT: 'wait'>, <CallClass.COMPUTATION: 'computation'>)
    """  # noqa: E501 - the output of the example is one line
    return _class_of(name, paradigm.lower(), role.lower().replace(" ", "_"))


def blocks_for_a_message(name: str) -> bool:
    """Return whether a region is an MPI function that sends, receives or probes, and blocks.

    Examples
    --------
    >>> blocks_for_a_message("mpi_recv_"), blocks_for_a_message("MPI_Sendrecv")
    (True, False)
    """
    plain = _without_decoration(name)
    return plain is not None and _BLOCKING.fullmatch(plain) is not None


def starts_a_collective(name: str) -> bool:
    """Return whether a region is an MPI function that starts a collective and does not wait.

    Examples
    --------
    >>> starts_a_collective("MPI_Iallreduce"), starts_a_collective("MPI_Allreduce")
    (True, False)
    """
    plain = _without_decoration(name)
    return plain is not None and plain not in _COLLECTIVES and _collective(plain) is not None


@cache
def _class_of(name: str, paradigm: str, role: str) -> CallClass:
    if name in OVERHEAD:
        return CallClass.MEASUREMENT
    if paradigm in {"", "mpi", "unknown", "sampling", "user"} and ":" in name:
        known = _training_class(name)
        if known is not None:
            return known
    if paradigm in {"", "mpi", "unknown", "sampling"}:
        known = _mpi_class(name)
        if known is not None:
            return known
    if role in _ROLES and paradigm in {"mpi", "shmem", "gaspi"}:
        return _ROLES[role]
    if paradigm == "openmp" and role in _OPENMP_WORK:
        return CallClass.OPENMP_WORK
    other = CallClass.IO if role.startswith("file_io") else CallClass.COMPUTATION
    found = _PARADIGMS.get(paradigm, other)
    return _gpu_class(name, role) if found is CallClass.GPU else found


def _gpu_class(name: str, role: str) -> CallClass:
    """Return the class of a call of an accelerator's library, or of an activity of a GPU."""
    found = _GPU_ROLES.get(role.replace("_", " "))
    if found is CallClass.GPU_COMPUTATION and _GPU_MESSAGES.match(name):
        return CallClass.GPU_COMMUNICATION
    if found is not None:
        return found
    return next((kind for names, kind in _GPU_CALLS if names.fullmatch(name)), CallClass.GPU)


def _training_class(name: str) -> CallClass | None:
    """Return the class of a collective operation of training; None = another name.

    >>> _training_class("nccl:_all_gather_base"), _training_class("wait for gloo:all_reduce")
    (<CallClass.ALLGATHER: 'allgather'>, <CallClass.ALLREDUCE: 'allreduce'>)
    """
    found = _TRAINING.fullmatch(name)
    if found is None:
        return None
    plain = found["name"]
    if plain in _OF_TRAINING:
        return _OF_TRAINING[plain]
    for end in _ENDS_OF_TRAINING:
        plain = plain.removesuffix(f"_{end}")
    joined = plain.replace("_", "").replace("reducescatter", "reduce_scatter")
    return _COLLECTIVES.get(joined)


def _mpi_class(name: str) -> CallClass | None:
    """Return the class of an MPI function; None = another name."""
    plain = _without_decoration(name)
    if plain is None:
        return None
    known = _collective(plain)
    if known is not None:
        return known
    rules = (
        (_MESSAGES, CallClass.POINT_TO_POINT),
        (_WAITS, CallClass.WAIT),
        (_ACCESSES, CallClass.ONE_SIDED),
        (_FILES, CallClass.IO),
        (_LOCAL, CallClass.MANAGEMENT),
    )
    return next((kind for names, kind in rules if names.fullmatch(plain)), None)


def _collective(plain: str) -> CallClass | None:
    """Return the class of a collective operation, blocking or not; None = another name."""
    base = plain.removesuffix("_init")
    return _COLLECTIVES.get(base) or _COLLECTIVES.get(base.removeprefix("i"))


def _without_decoration(name: str) -> str | None:
    """Return the name of an MPI function without prefix, arguments and binding; None = another.

    >>> _without_decoration("PMPI_Send_c"), _without_decoration("mpi_bcast__"), _without_decoration("f")
    ('send', 'bcast', None)
    """  # noqa: E501 - the output of the example is one line
    head, bracket, note = name.partition(" [")
    spelled, parenthesis, arguments = head.partition("(")
    if bracket and not note.endswith("]"):
        return None
    if (parenthesis and not arguments.endswith(")")) or not _MPI.fullmatch(spelled):
        return None
    plain = spelled.lower().partition("mpi_")[2]
    for _ in range(2):
        plain = plain.removesuffix("_")
    for binding in _BINDINGS:
        if plain.endswith(binding):
            return plain.removesuffix(binding)
    return plain
