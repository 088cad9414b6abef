"""Runs on this machine: their directories, output, time limit, and records.

A run writes to a directory below `STATE`. When it has ended well, one rename makes it a run of the
series. So a killed command, or a full disk, never leaves half a run that a reader would take.
"""

from __future__ import annotations

import csv
import fcntl
import io
import math
import os
import platform
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from callpath_modeler.campaign.plan import STATE, Plan, PlannedRun
from callpath_modeler.campaign.profilers import (
    DIRECTORY_VARIABLE,
    FILTER_VARIABLE,
    Profiler,
    largest_memory,
    profiler,
)
from callpath_modeler.errors import OutputError, UsageError, reason_of
from callpath_modeler.printable import printable, shortened
from callpath_modeler.support.atomic import is_living, process_identity, write_file

RECORD = "run.toml"
OUTPUT, MESSAGES, JOB = "stdout", "stderr", "job"
_RUNNING, _FAILED, _LOCK, _PROCESS = "running", "failed", "lock", "process"

HEAD, _TAIL = 8 << 20, 64 << 10
"""Bytes of the beginning and of the end of an output that are kept."""
_GRACE = 5.0
"""Seconds that a program has to end after the signal to do so."""
_AFTERWARDS_SECONDS = 3600.0
_PIECE = 1 << 16
_MOST_RECORD = 1_000_000
_ENVIRONMENT = re.compile(
    r"(OMP|KMP|GOMP|SLURM|OMPI_MCA|PRTE_MCA|MPICH|I_MPI|MV2|PSM2?|UCX|FI|CUDA|HIP|ROCR|SCOREP|CALI|TAU|"
    r"HPCRUN|NCCL|MKL|OPENBLAS|MALLOC)_[A-Z0-9_]*|LD_PRELOAD|LOADEDMODULES"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL|AUTH|JWT")
_LONGEST_VALUE = 2000


_HELPER = """
import os, signal, sys, time
report, words = int(sys.argv[1]), sys.argv[2:]
os.set_inheritable(report, False)
began = time.perf_counter()
try:
    child = os.posix_spawnp(words[0], words, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
except OSError as cause:
    os.write(report, b"%d" % cause.errno)
    sys.exit(127)
_, status, usage = os.wait4(child, 0)
told = time.perf_counter() - began, os.waitstatus_to_exitcode(status), usage.ru_maxrss
os.write(report, " ".join(map(str, told)).encode())
"""
"""Program that executes the words of a run, and measures it.

The system counts the memory of the process that starts a program as the program's. That of cpmodel
would be up to some hundreds of megabytes, and that of this program is about ten.
"""


class RunRecord(Struct, frozen=True):
    """What is known about a run that has ended.

    Attributes
    ----------
    name, parameters, repetition : the run
    command : its words
    folder : its working directory
    host : machine, or the nodes of a job
    began : date and time
    seconds : wall time of the command, with its launcher
    status : exit status, below zero for a signal
    failure : why it does not count; "" = it counts
    max_memory : largest resident memory of one process in bytes; 0 = not known
    load : load average of the machine before the run; below zero = not known
    megahertz : mean frequency of its processors; 0 = not known
    job : number of the job of a scheduler
    environment : variables that influence run times
    """

    name: str
    parameters: dict[str, int]
    repetition: int
    command: list[str]
    folder: str
    host: str
    began: str
    seconds: float
    status: int
    failure: str = ""
    max_memory: int = 0
    load: float = -1.0
    megahertz: float = 0.0
    system: str = ""
    job: str = ""
    environment: dict[str, str] = {}

    @property
    def core_hours(self) -> float:
        """Wall time times processes, in hours."""
        return self.seconds * self.parameters.get("p", 1) / 3600


class SeriesFolder:
    """The directory of a series: plan, finished, running and failed runs.

    Parameters
    ----------
    path : the directory
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as the user wrote them
        self.state = self.path / STATE
        self.filter = self.state / "filter"

    def variables(self, plan: Plan, folder: Path) -> dict[str, str]:
        """Return the variables of a run in a directory: of the profiler, and of the filter."""
        found = profiler(plan.profiler).environment_of(folder, plan.program)
        return {**found, FILTER_VARIABLE: str(self.filter)} if self.filter.exists() else found

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory, and keep other commands from it.

        Raises
        ------
        OutputError
            If it cannot be made.
        UsageError
            If another command measures this series.
        """
        try:
            (self.state / _RUNNING).mkdir(parents=True, exist_ok=True)
            (self.state / _FAILED).mkdir(exist_ok=True)
            lock = (self.state / _LOCK).open("ab")
        except OSError as cause:
            raise OutputError(
                f"{self.path}: cannot be written: {reason_of(cause)}", hint="choose another -o DIR"
            ) from cause
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{self.path}: another command is measuring this series",
                    hint="wait until it has ended",
                ) from None
            except OSError:
                pass  # a file system without locks
            yield

    def running(self, run: PlannedRun) -> Path:
        """Return the directory of a run until it has ended."""
        return self.state / _RUNNING / run.name

    def begin(self, run: PlannedRun) -> Path:
        """Return a new directory for a run."""
        folder = self.running(run)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def is_done(self, run: PlannedRun) -> bool:
        """Return whether a run has ended well."""
        return (self.path / run.name).exists()

    def finish(self, run: PlannedRun, record: RunRecord) -> None:
        """Keep a run: in the series, or among the failed ones."""
        folder = self.running(run)
        write_file(folder / RECORD, record_text(record).encode(), overwrite=True)
        target = self.path / run.name
        if record.failure:
            taken = {each.name for each in (self.state / _FAILED).iterdir()}
            number = 1
            while f"{run.name}.{number}" in taken:
                number += 1
            target = self.state / _FAILED / f"{run.name}.{number}"
        folder.rename(target)

    def discard(self, run: PlannedRun) -> None:
        """Remove what an interrupted run wrote."""
        shutil.rmtree(self.running(run), ignore_errors=True)

    def remove_interrupted(self) -> None:
        """Remove the runs of a command that was killed.

        Raises
        ------
        UsageError
            If such a run still goes on: it would disturb the measurements.
        """
        for folder in sorted((self.state / _RUNNING).iterdir()):
            if (folder / JOB).exists():
                continue  # the scheduler has it
            with suppress(OSError):
                identity = (folder / _PROCESS).read_text("ascii", "replace")[:200]
                if is_living(identity):
                    number = identity.split("-")[1]
                    raise UsageError(
                        f"{printable(folder.name)} of a killed command still runs: "
                        f"process {number}",
                        hint=f"wait until it has ended, or end it: kill -- -{number}",
                    )
            shutil.rmtree(folder, ignore_errors=True)

    def has_runs(self) -> bool:
        """Return whether a run has ended well, or a job is submitted."""
        patterns = (f"*/{RECORD}", f"{STATE}/{_RUNNING}/*/{JOB}")
        return any(any(self.path.glob(pattern)) for pattern in patterns)

    def records(self) -> list[RunRecord]:
        """Return the records of all runs that ended, also of failed ones."""
        found = []
        for folder in (self.path, self.state / _FAILED):
            with suppress(OSError):
                for each in sorted(folder.iterdir()):
                    record = _read_record(each / RECORD)
                    if record is not None:
                        found.append(record)
        return found


def _read_record(path: Path) -> RunRecord | None:
    """Return a record; None = there is none, or it is damaged."""
    try:
        with path.open("rb") as file:
            record = msgspec.toml.decode(file.read(_MOST_RECORD), type=RunRecord)
    except (OSError, ValueError):
        return None
    is_sound = record.parameters.get("p", 0) > 0 and 0 <= record.seconds < math.inf
    return record if is_sound else None


def record_text(record: RunRecord) -> str:
    """Return a record as TOML."""
    fields = msgspec.to_builtins(record)
    tables = {name: value for name, value in fields.items() if isinstance(value, dict)}
    lines = [f"{name} = {_toml(value)}" for name, value in fields.items() if name not in tables]
    for name, table in tables.items():
        lines += [
            "",
            f"[{name}]",
            *(f"{_toml(key)} = {_toml(value)}" for key, value in table.items()),
        ]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    """Return a value as TOML; strings and lists are those of JSON."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return msgspec.json.encode(printable(value)).decode()
    return repr(value)


def machine_state() -> dict[str, object]:
    """Return load and frequency of this machine, as fields of a record."""
    state: dict[str, object] = {"system": printable(platform.platform())}
    with suppress(OSError):
        state["load"] = round(os.getloadavg()[0], 2)
    found = []
    for path in sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq")):
        with suppress(OSError, ValueError):
            found.append(int(path.read_text("ascii")) / 1000)
    if found:
        state["megahertz"] = round(sum(found) / len(found), 1)
    return state


def told_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that influence run times, without secrets."""
    return {
        name: shortened(printable(value), _LONGEST_VALUE)
        for name, value in sorted(environment.items())
        if _ENVIRONMENT.fullmatch(name) and not _SECRET.search(name)
    }


def write_wall_time(folder: Path, program: str, seconds: float, memory: int) -> None:
    """Write the wall time of a run as a table with one call path."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    metrics = {"time[s]": f"{seconds:.9g}", **({"max_memory[B]": memory} if memory else {})}
    writer.writerows(
        [["callpath", *metrics], [re.sub(r"[/\\<>|]", "_", program), *metrics.values()]]
    )
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", program)[:100]
    write_file(folder / f"{stem}.csv", text.getvalue().encode(), overwrite=True)


class LocalRunner:
    """Runs of a series on this machine, one after the other.

    Parameters
    ----------
    series, plan : the series
    """

    def __init__(self, series: SeriesFolder, plan: Plan) -> None:
        self._series = series
        self._plan = plan

    def results(self, runs: Sequence[PlannedRun], limit: float = 0.0) -> Iterator[RunRecord]:
        """Execute runs, and yield their records.

        Parameters
        ----------
        runs : the runs
        limit : longest time of each in seconds; 0 = that of the plan
        """
        for run in runs:
            yield run_here(self._series, self._plan, run, limit)


def run_here(series: SeriesFolder, plan: Plan, run: PlannedRun, limit: float = 0.0) -> RunRecord:
    """Execute one run on this machine, and keep it.

    Parameters
    ----------
    series, plan, run : the run
    limit : longest time in seconds, if it is shorter than that of the plan; 0 = that of the plan

    Raises
    ------
    OutputError
        If its results cannot be written, e.g. because the disk is full.
    """
    tool = profiler(plan.profiler)
    longest = plan.longest(limit)
    try:
        folder = series.begin(run)
        words = plan.full_words(run, folder)
        inherited = {k: v for k, v in os.environ.items() if k != DIRECTORY_VARIABLE}
        environment = {**inherited, **series.variables(plan, folder)}
        state = machine_state()
        began = datetime.now(UTC).isoformat(timespec="seconds")
        ended = _executed(words, environment, plan.folder, folder, longest)
        failure = ended.failure or after_run(tool, folder, plan.folder)
        if ended.timed_out and limit and limit == longest:
            failure = "it would have exceeded the budget"
        if not failure and plan.profiler == "time":
            write_wall_time(folder, plan.program, ended.seconds, ended.memory)
        record = RunRecord(
            run.name, dict(run.parameters), run.repetition, words, plan.folder,
            socket.gethostname(), began, ended.seconds, ended.status, failure, ended.memory,
            environment=told_environment(environment), **state,  # type: ignore[arg-type]
        )  # fmt: skip
        series.finish(run, record)
    except BaseException as cause:
        series.discard(run)
        if isinstance(cause, OSError):
            raise OutputError(
                f"{run.name}: its results cannot be written: {reason_of(cause)}",
                hint="finished runs are kept: make room, and repeat this command",
            ) from cause
        raise
    return record


def after_run(tool: Profiler, folder: Path, working: str) -> str:
    """Make the profile of a run, and return why there is none; "" = there is one."""
    for words in tool.commands_after(folder):
        if shutil.which(words[0]) is None:
            return f"{words[0]} is not installed"
        ended = _executed(
            words, dict(os.environ), working, folder, _AFTERWARDS_SECONDS, append=True
        )
        if ended.failure:
            return f"{words[0]}: {ended.failure}"
    if not tool.has_results(folder):
        return f"the run wrote no profile: {tool.missing}"
    return ""


class _Ended(Struct, frozen=True):
    """How a program ended."""

    seconds: float
    status: int
    memory: int
    failure: str
    timed_out: bool = False


class _BoundedFile:
    """An output file that keeps the beginning and the end of a long output."""

    def __init__(self, path: Path, *, append: bool) -> None:
        self._file = path.open("ab" if append else "wb", buffering=0)
        self._room = HEAD
        self._tail = bytearray()
        self._left_out = 0

    def write(self, piece: bytes) -> None:
        head, rest = piece[: self._room], piece[self._room :]
        self._room -= len(head)
        while head:
            head = head[self._file.write(head) :]
        self._tail += rest
        surplus = len(self._tail) - _TAIL
        if surplus > 0:
            del self._tail[:surplus]
            self._left_out += surplus

    def close(self) -> None:
        with self._file:
            if self._left_out:
                self._file.write(f"\n... {self._left_out} bytes left out ...\n".encode())
            self._file.write(self._tail)


def _executed(
    words: Sequence[str],
    environment: Mapping[str, str],
    working: str,
    folder: Path,
    limit: float,
    *,
    append: bool = False,
) -> _Ended:
    """Execute a program, and return how it ended; it is ended before any error leaves here."""
    outputs = [_BoundedFile(folder / name, append=append) for name in (OUTPUT, MESSAGES)]
    try:
        child = _Child(words, environment, working)
        try:
            (folder / _PROCESS).write_text(process_identity(child.number), "ascii")
            timed_out = child.drain(outputs, time.perf_counter() + limit if limit else None)
        except BaseException:
            child.end()
            raise
        finally:
            (folder / _PROCESS).unlink(missing_ok=True)
    finally:
        for output in outputs:
            output.close()
    failure = f"it reached the time limit of {limit:g} s" if timed_out else ""
    if not failure and child.refusal:
        failure = f"{printable(words[0])} cannot be executed: {os.strerror(child.refusal)}"
    elif not failure and child.status:
        failure = f"{status_text(child.status)}{last_line(folder)}"
    return _Ended(child.seconds, child.status, child.memory, failure, timed_out)


def status_text(status: int) -> str:
    """Return an exit status, or the signal that ended a program, in words."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"


def last_line(folder: Path) -> str:
    """Return the last line of the messages of a run, after a colon; "" = there is none."""
    with (folder / MESSAGES).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4000))
        lines = file.read().decode("utf-8", "replace").splitlines()
    told = [printable(line.strip()) for line in lines if any(map(str.isalnum, line))]
    return f": {shortened(told[-1], 160)}" if told else ""


class _Child:
    """A program with its helper, as a group of processes, whose end a thread waits for.

    Attributes
    ----------
    number : number of the helper, and of the group
    seconds, status, memory : of the program, when it has ended
    refusal : number of the error if the program could not be executed; 0 = it was
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], working: str) -> None:
        report, write = os.pipe()
        self._has_ended, tell = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - a list of words, without a shell
                [sys.executable, "-I", "-S", "-c", _HELPER, str(write), *words],
                cwd=working, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True, pass_fds=(write,),
            )  # fmt: skip
        except OSError:
            for each in (report, self._has_ended, tell):
                os.close(each)
            raise
        finally:
            os.close(write)
        self.number = self._process.pid
        self.seconds, self.status, self.memory, self.refusal = 0.0, 0, 0, 0
        self._began = time.perf_counter()
        self._thread = threading.Thread(target=self._wait, args=(report, tell), daemon=True)
        self._thread.start()

    def _wait(self, report: int, tell: int) -> None:
        self.status = self._process.wait()
        self.seconds = time.perf_counter() - self._began
        told = os.read(report, 200).split()
        if len(told) == 3:
            self.seconds, self.status = float(told[0]), int(told[1])
            self.memory = largest_memory(int(told[2]))
        elif told:
            self.refusal = int(told[0])
        os.close(report)
        os.close(tell)

    def drain(self, outputs: Sequence[_BoundedFile], deadline: float | None) -> bool:
        """Copy the output until the end of the process; return whether the time was over.

        Processes that it leaves behind are ended, because they would disturb the next run.
        """
        streams = (self._process.stdout, self._process.stderr)
        with selectors.DefaultSelector() as selector:
            for stream, output in zip(streams, outputs, strict=True):
                assert stream is not None
                selector.register(stream, selectors.EVENT_READ, output)
            selector.register(self._has_ended, selectors.EVENT_READ)
            timed_out = has_ended = False
            while len(selector.get_map()) > (0 if has_ended else 1) or not has_ended:
                now = time.perf_counter()
                left = None if deadline is None else max(0.0, deadline - now)
                ready = selector.select(left)
                for key, _ in ready:
                    if key.data is None:
                        selector.unregister(key.fileobj)
                        has_ended = True
                        # A process of the group may hold the pipe open.
                        deadline = time.perf_counter() + 1.0
                    elif piece := os.read(key.fd, _PIECE):
                        key.data.write(piece)
                    else:
                        selector.unregister(key.fileobj)
                if not ready and deadline is not None and time.perf_counter() >= deadline:
                    timed_out = not has_ended
                    break
        self.end()
        return timed_out

    def end(self) -> None:
        """End all processes of the group, and wait for the first one."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.number, number)
            self._thread.join(_GRACE)
            if not self._thread.is_alive() and number == signal.SIGKILL:
                break
        self._thread.join()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        with suppress(OSError):
            os.close(self._has_ended)
