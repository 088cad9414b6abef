"""Executors beyond one machine: the other ranks of an MPI job, and the workers of a Dask cluster.

All are executors of `concurrent.futures`. Workers need the same build of `callpath_modeler`, and
see profiles by the same paths, on a shared file system. What they return are values and models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor

KINDS = "mpi or dask:ADDRESS"

_DASK = "dask:"
_MOST_PATHS = 1_000
"""Most paths that workers are asked about."""


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
        If there is no such executor, its package is absent, or a worker has another build.
    ServedError
        In ranks of MPI other than the first, when the first one has finished.
    """
    if name == "mpi":
        with _mpi() as executor:
            yield executor
    elif name.startswith(_DASK) and name != _DASK:
        from callpath_modeler.dask_cluster import dask_workers

        with dask_workers(name.removeprefix(_DASK)) as workers:
            yield workers
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
    _refuse_other_builds(MPI.COMM_WORLD)
    # The other ranks work within this line, until the first one leaves its block.
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as executor:
        if executor is not None:
            yield cast("Executor", executor)
            return
    raise ServedError


def _refuse_other_builds(world: Any) -> None:
    """Refuse ranks of other builds; all ranks call this at the same time."""
    import socket

    from callpath_modeler.build_identity import build_identity, same_build

    builds = world.allgather((build_identity(), socket.gethostname()))
    own = builds[0][0]
    for rank, (build, host) in enumerate(builds):
        if not same_build(own, build):
            if world.Get_rank():
                raise ServedError
            raise UsageError(
                f"rank {rank} on {host} has callpath-modeler {build}, rank 0 has {own}",
                hint="start all ranks from one installation",
            )


def refuse_blind_workers(executor: Executor, paths: Iterable[Path]) -> None:
    """Refuse workers that do not see the profiles.

    Parameters
    ----------
    executor : workers; only those of Dask can be asked
    paths : profiles that this process sees, or their folders

    Raises
    ------
    InputError
        If a worker does not see one of them.
    """
    from callpath_modeler.dask_cluster import DaskWorkers

    if isinstance(executor, DaskWorkers):
        executor.check_paths([str(path.absolute()) for path in islice(paths, _MOST_PATHS)])


def workers_of(executor: Executor) -> int:
    """Return the number of workers of an executor, or 8 if it does not tell."""
    # Those of Dask; mpi4py; Python and loky.
    for name in ("count", "num_workers", "_max_workers"):
        told = getattr(executor, name, None)
        if isinstance(told, int) and told > 0:
            return told
    return 8
