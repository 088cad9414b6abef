"""The cost of a child process: processor seconds, wall seconds, memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import WORK

TASKS = Path(__file__).resolve().parent / "tasks"
_LAUNCHER = Path(__file__).resolve().parent / "launch.py"

_ONE_CORE = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS"), "1"
)


class TaskError(Exception):
    """A child process failed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one child process, from its start to its end.

    Attributes
    ----------
    cpu : processor seconds, user and system
    wall : seconds
    resident : largest resident set in bytes, with shared pages, without that of this process
    report : values that the child reports
    """

    cpu: float
    wall: float
    resident: int
    report: dict[str, Any]


def run(command: Sequence[str | Path], *, reports: bool = True, one_core: bool = True) -> Cost:
    """Run a command to its end; with `reports`, the last line of its output is JSON.

    With `one_core`, the child uses one core. Linear algebra always uses one thread per process.

    Raises
    ------
    TaskError
        If the child fails.
    """
    WORK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK) as name, tempfile.TemporaryFile(dir=WORK) as output:
        costs = Path(name) / "costs"
        launched = [sys.executable, "-I", "-S", str(_LAUNCHER), str(costs), *map(str, command)]
        done = subprocess.run(
            launched,
            stdout=output,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            check=True,
            env=_environment(),
            preexec_fn=_stay_on_one_core if one_core else None,
        )
        cpu, wall, resident, status = map(float, costs.read_text().split())
        if status:
            said = done.stderr.decode(errors="replace")
            raise TaskError(f"{Path(str(command[1])).name} failed: {said}")
        output.seek(0)
        lines = output.read().decode().splitlines()
    report = json.loads(lines[-1]) if reports else {}
    return Cost(cpu, wall, int(resident), report)


def cheapest(command: Sequence[str | Path], times: int, *, reports: bool = True) -> Cost:
    """Run a command several times, and return the run with the least processor time."""
    return min((run(command, reports=reports) for _ in range(times)), key=lambda cost: cost.cpu)


def _environment() -> dict[str, str]:
    """Return the environment of a child: one core, and a cache of bytecode.

    The peers were compiled at installation. Without a cache, the sources of cpmodel would be
    compiled in every run.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **_ONE_CORE}


def _stay_on_one_core() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
