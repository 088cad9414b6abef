"""Run time of a generated program on SimGrid SMPI, which simulates a network with contention.

The program runs unchanged, compiled by ``smpicc``, in a temporary directory, for a limited time.
Computation takes the time that the program states, on the first host of the platform file; hosts of
other speeds take more or less. So the result is the same each time. SimGrid
(Casanova, Giersch, Legrand, Quinson, Suter: Versatile, Scalable, and Accurate Simulation of
Distributed Applications and Platforms, JPDC 74(10), 2014) reads the platform file; nothing of it is
part of a command line.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path

from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import printable, shortened

SELECTORS = ("ompi", "mpich", "mvapich2", "impi")
"""Choices of collective algorithms, each as in an MPI library."""

_MOST_SECONDS = 600
_MOST_BYTES = 1 << 26
_MOST_OUTPUT = 1 << 20
_MOST_LINES = 5000
_TIME = re.compile(r"Simulated time: ([0-9.eE+-]+) seconds")
_OWN_TIME = re.compile(r"^run time: .*?([0-9.eE+-]+) s of the program", re.MULTILINE)
_SPEED = re.compile(rb"\bspeed\s*=\s*[\"']\s*([0-9.]{1,12}(?:[eE][+-]?[0-9]{1,2})?[kMGTPE]?i?f)")
_FAULT = re.compile(r"(?:critical|error|exception)[^\n]*", re.IGNORECASE)
_HOST = re.compile(r"([A-Za-z0-9_.-]{1,200})(?::([0-9]{1,7}))?", re.ASCII)
_PLATFORM, _SOURCE, _PROGRAM, _HOSTS = "platform.xml", "program.c", "program", "hosts"
_INSTALL = "install SimGrid (Debian: apt install libsimgrid-dev), or leave out --smpi"


@dataclass(frozen=True, slots=True)
class SmpiRun:
    """A simulated run.

    Attributes
    ----------
    seconds : run time that the program measured, or else that of all ranks from begin to end
    said : lines that the program printed
    """

    seconds: float
    said: tuple[str, ...]


def smpi_run(
    source: str, processes: int, platform: Path, selector: str, hosts: Sequence[str] = ()
) -> SmpiRun:
    """Return the run of a program on a platform.

    Parameters
    ----------
    source : the program in C
    platform : an XML file of SimGrid
    selector : one of `SELECTORS`
    hosts : of each rank; () for those of the platform, in its order

    Raises
    ------
    UsageError
        If SimGrid is not installed, or if the platform cannot be read.
    DataError
        If the program cannot be compiled or does not come to its end.
    """
    compiler, runner = _found("smpicc"), _found("smpirun")
    content = _content(platform)
    found = _SPEED.search(content)
    if found is None:
        raise UsageError(
            f"{platform}: no host has a speed", hint='hosts and clusters need one, e.g. speed="2Gf"'
        )
    speed = found[1].decode("ascii")
    with tempfile.TemporaryDirectory(prefix="cpmodel-smpi-") as name:
        folder = Path(name)
        (folder / _PLATFORM).write_bytes(content)
        (folder / _SOURCE).write_text(source, encoding="utf-8")
        _run("smpicc", [compiler, "-O2", "-o", _PROGRAM, _SOURCE, "-lm"], folder)
        (folder / _HOSTS).write_text("".join(f"{host}\n" for host in hosts), encoding="ascii")
        said, messages = _run(
            "smpirun",
            [
                runner,
                "-np",
                str(processes),
                *(["-hostfile", _HOSTS] if hosts else []),
                "-platform",
                _PLATFORM,
                "--cfg=smpi/display-timing:yes",
                "--cfg=smpi/simulate-computation:no",
                "--cfg=smpi/wtime:0",
                # Seconds of the program are seconds of a host with the first speed of the file.
                f"--cfg=smpi/host-speed:{speed}",
                f"--cfg=smpi/coll-selector:{selector}",
                f"./{_PROGRAM}",
            ],
            folder,
        )
    time = _OWN_TIME.search(said) or _TIME.search(messages)
    if time is None:
        raise DataError(
            f"smpirun printed no simulated time: {_last(messages)}",
            hint="check the version of SimGrid",
        )
    lines = tuple(printable(line) for line in said.splitlines()[:_MOST_LINES])
    return SmpiRun(float(time[1]), lines)


def _found(name: str) -> str:
    """Return the path of a program; one in the working directory may come from anywhere."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, entries)))
    if path is None:
        raise UsageError(f"{name} is not installed", hint=_INSTALL)
    return path


def hosts_of(path: Path, processes: int) -> list[str]:
    """Return the host of each rank in a host file: a line for each host, with `:N` for N ranks.

    Raises
    ------
    UsageError
        If it cannot be read, has other lines, or has too few hosts.
    """
    text = _read(path, "give a file with one host in each line").decode("utf-8", "replace")
    hosts = list(islice(_unrolled(path, text), processes))
    if len(hosts) < processes:
        raise UsageError(
            f"{path}: {len(hosts)} hosts for {processes} ranks",
            hint="one host in each line, such as n0, or n0:4 for four ranks",
        )
    return hosts


def _unrolled(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        name = line.partition("#")[0].strip()
        found = _HOST.fullmatch(name)
        if found is None and name:
            raise UsageError(
                f"{path}, line {number}: no host: {shortened(printable(name))!r}",
                hint="one host in each line, such as n0, or n0:4 for four ranks",
            )
        if found is not None:
            yield from repeat(found[1], int(found[2] or 1))


def _read(path: Path, hint: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as cause:
        raise UsageError(f"{path}: {cause.strerror}", hint=hint) from cause


def _content(platform: Path) -> bytes:
    """Return the content of a platform file.

    Raises
    ------
    UsageError
        If it cannot be read, or is not XML.
    """
    content = _read(platform, "give a platform file of SimGrid in XML")
    if len(content) > _MOST_BYTES or not content.lstrip().startswith(b"<"):
        raise UsageError(
            f"{platform}: no platform in XML of at most 64 MiB",
            hint="--smpi needs a platform file of SimGrid; leave it out for LogGP",
        )
    return content


def _run(name: str, command: Sequence[str], folder: Path) -> tuple[str, str]:
    """Run a command in a folder, and return the ends of its output and of its messages.

    Raises
    ------
    DataError
        If it fails, or takes too long.
    """
    paths = folder / f"{name}.out", folder / f"{name}.err"
    with paths[0].open("wb") as output, paths[1].open("wb") as messages:
        process = subprocess.Popen(  # noqa: S603 - no shell, and no foreign words
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=messages,
            start_new_session=True, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        try:
            status = process.wait(_MOST_SECONDS)
        except BaseException as cause:
            # smpirun is a shell script: its children are in its group.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if isinstance(cause, subprocess.TimeoutExpired):
                raise DataError(
                    f"{name} did not end within {_MOST_SECONDS} s",
                    hint="use fewer ranks or rounds, or the replay without --smpi",
                ) from None
            raise
    if status:
        raise DataError(
            f"{name} failed with status {status}: {_last(_end(paths[1], is_begin=True))}",
            hint="check the platform file: it needs a host for each rank",
        )
    return _end(paths[0]), _end(paths[1])


def _end(path: Path, *, is_begin: bool = False) -> str:
    """Return the end of a text, or its begin."""
    with path.open("rb") as file:
        if not is_begin:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_OUTPUT))
        return file.read(_MOST_OUTPUT).decode("utf-8", "replace")


def _last(text: str) -> str:
    """Return the message that says most in an output."""
    faults = _FAULT.findall(text) or text.strip().splitlines()[-1:]
    return shortened(printable(faults[0].strip()), 200) if faults else "no message"
