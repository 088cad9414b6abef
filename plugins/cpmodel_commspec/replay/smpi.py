"""Run time of a generated program on SimGrid SMPI, which simulates a network with contention.

The program runs unchanged, compiled by ``smpicc``, in a temporary directory, for a limited time.
Computation takes the time that the program states, so the result is the same each time. SimGrid
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
from collections.abc import Sequence
from pathlib import Path

from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.printable import printable, shortened

SELECTORS = ("ompi", "mpich", "mvapich2", "impi")
"""Choices of collective algorithms, each as in an MPI library."""

_MOST_SECONDS = 600
_MOST_BYTES = 1 << 26
_MOST_OUTPUT = 1 << 20
_TIME = re.compile(r"Simulated time: ([0-9.eE+-]+) seconds")
_FAULT = re.compile(r"(?:critical|error|exception)[^\n]*", re.IGNORECASE)
_PLATFORM, _SOURCE, _PROGRAM = "platform.xml", "program.c", "program"
_INSTALL = "install SimGrid (Debian: apt install libsimgrid-dev), or leave out --smpi"


def smpi_seconds(source: str, processes: int, platform: Path, selector: str) -> float:
    """Return the run time of a program on a platform, from the begin to the end of all ranks.

    Parameters
    ----------
    source : the program in C
    platform : an XML file of SimGrid
    selector : one of `SELECTORS`

    Raises
    ------
    UsageError
        If SimGrid is not installed, or if the platform cannot be read.
    DataError
        If the program cannot be compiled or does not come to its end.
    """
    compiler, runner = _found("smpicc"), _found("smpirun")
    content = _content(platform)
    with tempfile.TemporaryDirectory(prefix="cpmodel-smpi-") as name:
        folder = Path(name)
        (folder / _PLATFORM).write_bytes(content)
        (folder / _SOURCE).write_text(source, encoding="utf-8")
        _run("smpicc", [compiler, "-O2", "-o", _PROGRAM, _SOURCE, "-lm"], folder)
        said = _run(
            "smpirun",
            [
                runner,
                "-np",
                str(processes),
                "-platform",
                _PLATFORM,
                "--cfg=smpi/display-timing:yes",
                "--cfg=smpi/simulate-computation:no",
                "--cfg=smpi/wtime:0",
                f"--cfg=smpi/coll-selector:{selector}",
                f"./{_PROGRAM}",
            ],
            folder,
        )
    time = _TIME.search(said)
    if time is None:
        raise DataError(
            f"smpirun printed no simulated time: {_last(said)}", hint="check the version of SimGrid"
        )
    return float(time[1])


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UsageError(f"{name} is not installed", hint=_INSTALL)
    return path


def _content(platform: Path) -> bytes:
    """Return the content of a platform file.

    Raises
    ------
    UsageError
        If it cannot be read, or is not XML.
    """
    try:
        with platform.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as cause:
        raise UsageError(
            f"{platform}: {cause.strerror}", hint="give a platform file of SimGrid in XML"
        ) from cause
    if len(content) > _MOST_BYTES or not content.lstrip().startswith(b"<"):
        raise UsageError(
            f"{platform}: no platform in XML of at most 64 MiB",
            hint="--smpi needs a platform file of SimGrid; leave it out for LogGP",
        )
    return content


def _run(name: str, command: Sequence[str], folder: Path) -> str:
    """Run a command in a folder, and return its output and its messages.

    Raises
    ------
    DataError
        If it fails, or takes too long.
    """
    said = folder / f"{name}.out"
    with said.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - no shell, and no foreign words
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
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
    with said.open("rb") as file:
        text = file.read(_MOST_OUTPUT).decode("utf-8", "replace")
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MOST_OUTPUT))
        end = file.read(_MOST_OUTPUT).decode("utf-8", "replace")
    if status:
        raise DataError(
            f"{name} failed with status {status}: {_last(text)}",
            hint="check the platform file: it needs a host for each rank",
        )
    return end


def _last(text: str) -> str:
    """Return the message that says most in an output."""
    faults = _FAULT.findall(text) or text.strip().splitlines()[-1:]
    return shortened(printable(faults[0].strip()), 200) if faults else "no message"
