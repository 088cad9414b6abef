"""Run times of C programs that are generated from traces, beside the run times of the traces."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median

from environments import WORK
from laws import AbsentError
from results import Table

from cpmodel_commspec.compression.specify import specify
from cpmodel_commspec.generators.c_program import c_source
from cpmodel_commspec.recording.recorder import record
from cpmodel_otf2.reader import opened

NOTES = """\
The traces are of real runs on this kind of machine, with as many ranks as cores. Each program is
compiled with -O2 and run seven times, all programs in turns. The table shows the median. Run times
are those that programs print: from the end of MPI_Init to the begin of MPI_Finalize, of the slowest
rank. *Computing* is the sum of computation, mean of all ranks. The benchmark needs an idle machine.
"""

PROGRAMS = WORK / "generated"
_TRACES = ("ring_long.2", "stencil_long.2", "ft_long.2")
_RUNS, _RANKS = 7, 2
_IDLE = 1.5
"""Largest load of a machine whose run times mean anything."""

_RUN_TIME = re.compile(r"run time: (\S+) s of the trace, (\S+) s of the program")
_COMPUTING = re.compile(r"all lines +(\S+) +(\S+)")
_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "self,vader",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def table(shared: Path) -> Table:
    """Compile and run the programs, and return their run times.

    Raises
    ------
    AbsentError
        If traces or MPI are absent, or if the machine is busy.
    """
    compiler, runner = shutil.which("mpicc"), shutil.which("mpirun")
    if compiler is None or runner is None:
        raise AbsentError("mpicc and mpirun are not there")
    load = os.getloadavg()[0]
    if load > _IDLE:
        raise AbsentError(f"the load is {load:.1f}, and run times need a machine that is idle")
    programs = {name: _compiled(shared / "data" / "traces" / name, compiler) for name in _TRACES}
    runs: dict[str, list[tuple[float, ...]]] = {name: [] for name in _TRACES}
    for _ in range(_RUNS):
        for name, program in programs.items():
            runs[name].append(_times(runner, program))
    lines, errors = [], []
    for name, found in runs.items():
        trace, program, of_trace, of_program = (
            median(column) for column in zip(*found, strict=True)
        )
        errors.append(program / trace - 1)
        lines.append(
            (name, *(f"{x:.4f} s" for x in (trace, program)), f"{errors[-1]:+.1%}",
             *(f"{x:.4f} s" for x in (of_trace, of_program)))
        )  # fmt: skip
    lines.append(("mean of the absolute errors", "", "", f"{mean(map(abs, errors)):.1%}", "", ""))
    head = ("trace", "run time", "program", "error", "computing", "program computing")
    return Table(head, lines, range(1, 6))


def _compiled(trace: Path, compiler: str) -> Path:
    """Return the program of a trace, compiled."""
    anchor = trace / "traces.otf2"
    if not anchor.exists():
        raise AbsentError(f"{anchor} is not there")
    with opened(anchor) as source:
        told = specify(record(source, lambda _done, _total: None))
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    program, source_file = PROGRAMS / trace.name, PROGRAMS / f"{trace.name}.c"
    source_file.write_text(c_source(told))
    _output([compiler, "-O2", "-o", str(program), str(source_file)])
    return program


def _times(runner: str, program: Path) -> tuple[float, ...]:
    """Return run time and computation, each of the trace and of the program."""
    text = _output([runner, "-n", str(_RANKS), str(program)])
    times, computing = _RUN_TIME.search(text), _COMPUTING.search(text)
    if times is None or computing is None:
        raise ValueError(f"{program} printed no times: {text}")
    return tuple(map(float, (*times.groups(), *computing.groups())))


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **_ENVIRONMENT}
    )
    return done.stdout
