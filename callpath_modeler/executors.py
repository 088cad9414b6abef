"""Executors beyond one machine: the other ranks of an MPI job, and the workers of a Dask cluster.

All are executors of `concurrent.futures`. Workers need the same version of `callpath_modeler`, and
see profiles by the same paths, on a shared file system. What they return are values and models.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

KINDS = "mpi or dask:ADDRESS"

_DASK = "dask:"
_SECONDS_TO_CONNECT = 10


class ServedError(Exception):
    """The work of another process is done, and this process was one of its workers."""


@contextmanager
def open_executor(name: str) -> Iterator[Executor]:
    """Connect to the executor of a name, and disconnect at the end.

    Parameters
    ----------
    name : ``"mpi"``, for a command that MPI started with several ranks; or ``"dask:ADDRESS"`` with
        the address of a scheduler, such as ``"dask:tcp://node17:8786"``

    Raises
    ------
    UsageError
        If there is no such executor, or its package is absent.
    ServedError
        In ranks of MPI other than the first, when the first one has finished.
    """
    if name == "mpi":
        with _mpi() as executor:
            yield executor
    elif name.startswith(_DASK) and name != _DASK:
        with _dask(name.removeprefix(_DASK)) as executor:
            yield executor
    else:
        raise UsageError(f"there is no executor {name!r}", hint=KINDS)


@contextmanager
def _mpi() -> Iterator[Executor]:
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError) as cause:
        raise UsageError(
            f"--executor mpi: mpi4py cannot be imported: {cause}",
            hint="pip install 'callpath_modeler[mpi]', with the module of your MPI library loaded",
        ) from cause
    if MPI.COMM_WORLD.Get_size() < 2:
        raise UsageError(
            "--executor mpi: there is one rank, and it cannot give its work to others",
            hint="mpiexec -n 8 cpmodel ... --executor mpi: the first rank gives work to seven",
        )
    # The other ranks work within this line, until the first one leaves its block.
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
        if executor is not None:
            yield cast("Executor", executor)
            return
    raise ServedError


@contextmanager
def _dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as cause:
        raise UsageError(
            f"--executor dask: distributed cannot be imported: {cause}",
            hint="pip install 'callpath_modeler[dask]'",
        ) from cause
    try:
        client: Any = Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as cause:
        raise UsageError(
            f"--executor dask: no scheduler answers at {address}",
            hint="start `dask scheduler` and `dask worker`; the scheduler prints its address",
        ) from cause
    with client:
        if not client.nthreads():
            raise UsageError(
                f"--executor dask: the scheduler at {address} has no worker",
                hint=f"start some: dask worker {address}",
            )
        executor: Executor = client.get_executor(pure=False)
        yield executor


def workers_of(executor: Executor) -> int:
    """Return the number of workers of an executor, or 8 if it does not tell."""
    client = getattr(executor, "_client", None)  # Dask
    if client is not None:
        return max(1, int(sum(client.nthreads().values())))
    for name in ("num_workers", "_max_workers"):  # mpi4py; Python and loky
        told = getattr(executor, name, None)
        if isinstance(told, int) and told > 0:
            return told
    return 8
