"""Executors beyond one machine: other ranks of an MPI job, and the workers of a Dask cluster.

All are executors of `concurrent.futures`. Workers need the same build of `callpath_modeler`, and
see profiles by the same paths, on a shared file system. They return values and models.

Workers are checked before they get their first task: their build has to be that of this command,
and they have to see the profiles. A scheduler or workers that are lost end the work with an error.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from callpath_modeler.errors import InputError, UsageError, WorkerDiedError
from callpath_modeler.support.atomic import DISTRIBUTION, build_identity, same_build

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


Result = TypeVar("Result")

_ADDRESS = re.compile(
    r"(?:(?:tcp|tls|ws|wss|ucx)://)?(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})/?",
    re.ASCII,
)
_SECONDS_TO_CONNECT = 10.0
_SECONDS_TO_FIRST_WORKER = 10.0
_SECONDS_TO_ANSWER = 30.0
_SECONDS_TO_CLOSE = 5.0
_SECONDS_WITHOUT_WORKER = 60.0
_LOGGERS = ("distributed", "tornado", "asyncio")


class DaskWorkers(Executor):
    """The workers of a scheduler.

    Attributes
    ----------
    address : address of the scheduler
    """

    def __init__(self, client: Any, address: str) -> None:
        self.address = address
        self._client = client
        self._executor = client.get_executor(pure=False)
        self._checked: set[str] = set()
        self._last_worker = time.monotonic()

    def submit(
        self, function: Callable[..., Result], /, *args: Any, **kwargs: Any
    ) -> Future[Result]:
        """Send a task to any worker."""
        found: Future[Result] = self._executor.submit(function, *args, **kwargs)
        return found

    @property
    def count(self) -> int:
        """Number of threads of all workers."""
        return max(1, sum(self._threads().values()))

    def check_workers(self) -> None:
        """Raise an error if no task can end any more.

        Raises
        ------
        WorkerDiedError
            If the scheduler is lost, or has had no worker for a minute.
        UsageError
            If a new worker has another build.
        """
        if self._client.status != "running" or not _is_open(self.address, _SECONDS_TO_CONNECT):
            raise self._lost()
        workers = self._threads()
        now = time.monotonic()
        if workers:
            self._last_worker = now
        elif now - self._last_worker > _SECONDS_WITHOUT_WORKER:
            raise WorkerDiedError(
                f"the scheduler at {self.address} has had no worker for "
                f"{_SECONDS_WITHOUT_WORKER:.0f} s",
                hint=f"start some: dask worker {self.address}",
            )
        self.check_builds([each for each in workers if each not in self._checked])

    def check_builds(self, workers: Sequence[str] | None = None) -> None:
        """Raise `UsageError` if a worker has another build than this process."""
        if workers is not None and not workers:
            return
        own = build_identity()
        for worker, theirs in sorted(self._told_by(build_identity, workers=workers).items()):
            if isinstance(theirs, str) and same_build(own, theirs):
                self._checked.add(worker)
                continue
            is_known = isinstance(theirs, str)
            known = f"{DISTRIBUTION} {theirs}" if is_known else self._version_of(worker)
            raise UsageError(
                f"worker at {worker} has {known}, this command has {DISTRIBUTION} {own}",
                hint="start the workers from the installation of this command: "
                f"dask worker {self.address}",
            )

    def check_paths(self, paths: Sequence[str]) -> None:
        """Raise `InputError` if a worker does not see one of these absolute paths."""
        for worker, missing in sorted(self._told_by(first_missing, list(paths)).items()):
            if isinstance(missing, str):
                raise InputError(
                    f"worker at {worker} does not see {missing}",
                    hint="profiles must lie where all nodes see them, by the same path",
                )

    def _version_of(self, worker: str) -> str:
        theirs = self._told_by(version, DISTRIBUTION, workers=[worker]).get(worker)
        named = f"{DISTRIBUTION} {theirs}" if isinstance(theirs, str) else f"no {DISTRIBUTION}"
        return f"{named} of another build" if isinstance(theirs, str) else named

    def _told_by(
        self, function: Callable[..., Any], *args: Any, workers: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Return what a function returns on each worker, or its error."""
        try:
            told: dict[str, Any] = self._client.sync(
                *(self._client._run, function, *args),  # noqa: SLF001 - `run` has no time limit
                workers=workers,
                on_error="return",
                callback_timeout=_SECONDS_TO_ANSWER,
            )
        except TimeoutError as cause:
            raise UsageError(
                f"--executor dask: a worker of {self.address} does not answer within "
                f"{_SECONDS_TO_ANSWER:.0f} s",
                hint="end the workers that do not answer",
            ) from cause
        except OSError as cause:
            raise self._lost() from cause
        return told

    def _threads(self) -> dict[str, int]:
        try:
            found: dict[str, int] = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=_SECONDS_TO_CONNECT
            )
        except OSError as cause:  # TimeoutError is one
            raise self._lost() from cause
        return found

    def _lost(self) -> WorkerDiedError:
        return WorkerDiedError(
            f"the scheduler at {self.address} does not answer any more",
            hint="start scheduler and workers again, then repeat this command",
        )


def first_missing(paths: Sequence[str]) -> str | None:
    """Return the first path that this process does not see; on a worker."""
    return next((path for path in paths if not os.path.lexists(path)), None)


@contextmanager
def dask_workers(address: str) -> Iterator[DaskWorkers]:
    """Connect to the workers of a scheduler, and disconnect at the end.

    Raises
    ------
    UsageError
        If the address is malformed, no scheduler answers there, it has no worker, or a worker has
        another build.
    """
    if not _is_address(address):
        raise UsageError(
            f"--executor dask: {address!r} is no address of a scheduler",
            hint="the scheduler prints its address, e.g. --executor dask:tcp://node17:8786",
        )
    try:
        from distributed import Client
    except ImportError as cause:
        raise UsageError(
            f"--executor dask: distributed cannot be imported: {cause}",
            hint="pip install 'callpath_modeler[dask]'",
        ) from cause
    _silence()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        client = _connected(Client, address)
        try:
            _await_worker(client, address)
            workers = DaskWorkers(client, address)
            workers.check_builds()
            yield workers
        finally:
            with suppress(Exception):
                client.close(timeout=_SECONDS_TO_CLOSE)
            client.status = "closed"


def _connected(client_type: Any, address: str) -> Any:
    """Return a client of a scheduler."""
    refused = UsageError(
        f"--executor dask: no scheduler answers at {address}",
        hint="start `dask scheduler` and `dask worker`; the scheduler prints its address",
    )
    if not _is_open(address, _SECONDS_TO_CONNECT):
        raise refused
    # A client that fails in its constructor closes itself when it is deleted, with a traceback.
    client = client_type.__new__(client_type)
    errors: list[Exception] = []

    def connect() -> None:
        try:
            client.__init__(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
        except Exception as cause:  # noqa: BLE001 - the calling thread reports it
            errors.append(cause)

    # Another program at this address may never answer, whatever the time limit of Dask.
    attempt = threading.Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(_SECONDS_TO_CONNECT)
    if errors or attempt.is_alive():
        client.status = "closed"
        raise refused from (errors[0] if errors else None)
    return client


def _await_worker(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_SECONDS_TO_FIRST_WORKER)
    except TimeoutError as cause:
        raise UsageError(
            f"--executor dask: the scheduler at {address} has no worker, nor gets one within "
            f"{_SECONDS_TO_FIRST_WORKER:.0f} s",
            hint=f"start some: dask worker {address}",
        ) from cause


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found["port"]) < 2**16


def _is_open(address: str, seconds: float) -> bool:
    """Return whether a program listens at an address."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return False
    try:
        with socket.create_connection((found["host"].strip("[]"), int(found["port"])), seconds):
            return True
    except (OSError, UnicodeError):
        return False


def _silence() -> None:
    """Silence the messages of Dask until the end; they are for the authors of programs that use it.

    This package has a message of its own for each of them that matters to a user.
    """
    known = [*_LOGGERS, *(each for each in logging.root.manager.loggerDict if _is_of_dask(each))]
    for name in known:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _is_of_dask(logger: str) -> bool:
    return logger.partition(".")[0] in _LOGGERS
