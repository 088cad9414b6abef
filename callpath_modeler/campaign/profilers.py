"""Profilers of a series: the environment and the commands that each one needs, and its result."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from callpath_modeler.errors import UsageError

DIRECTORY_VARIABLE = "CPM_RUN_DIRECTORY"
"""Variable that states the directory of a run, for the region timer and PyTorch.

It is not set for other profilers, so that a timer in the program does not disturb them.
"""

FILTER_VARIABLE = "SCOREP_FILTERING_FILE"
"""Variable of Score-P for the file that names the functions which it does not measure."""


class Profiler(Struct, frozen=True):
    """What a measurement tool needs; ``{dir}`` is the directory of the run.

    Attributes
    ----------
    about : what it measures, for the help
    results : patterns of the files that a run must write
    environment : variables
    wrapper : words in front of the program
    afterwards : commands after the run, as lists of words
    missing : what to do if a run wrote no result
    """

    about: str
    results: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    wrapper: Sequence[str] = ()
    afterwards: Sequence[Sequence[str]] = ()
    missing: str = ""

    def words_before(self, folder: Path, launcher: str) -> list[str]:
        """Return the words in front of the program."""
        rank = "SLURM_PROCID" if Path(launcher).name == "srun" else "OMPI_COMM_WORLD_RANK"
        return [word.replace("{dir}", str(folder)).replace("{rank}", rank) for word in self.wrapper]

    def environment_of(self, folder: Path, program: str) -> dict[str, str]:
        """Return the variables of a run of a program in a directory."""
        values = {"CPM_PROGRAM": program, **self.environment}
        return {name: text.replace("{dir}", str(folder)) for name, text in values.items()}

    def commands_after(self, folder: Path) -> list[list[str]]:
        """Return the commands that turn the measurements of a run into a profile."""
        return [[word.replace("{dir}", str(folder)) for word in words] for words in self.afterwards]

    def has_results(self, folder: Path) -> bool:
        """Return whether a run wrote what the profiler should write."""
        return not self.results or any(any(folder.glob(each)) for each in self.results)


_SPOT = "spot(output={dir}/profile.cali,profile.mpi=true)"

PROFILERS = {
    "time": Profiler("wall time and largest memory of the command, without instrumentation"),
    "timer": Profiler(
        "regions of the built-in timer",
        results=("profile.*.0.0",),
        environment={DIRECTORY_VARIABLE: "{dir}"},
        missing="include cpmodel_timer.h, or use callpath_modeler.timer in Python",
    ),
    "scorep": Profiler(
        "Score-P; compile the program with scorep",
        results=("scorep/profile.cubex",),
        environment={
            "SCOREP_EXPERIMENT_DIRECTORY": "{dir}/scorep",
            "SCOREP_ENABLE_PROFILING": "true",
            "SCOREP_ENABLE_TRACING": "false",
            "SCOREP_OVERWRITE_EXPERIMENT_DIRECTORY": "true",
        },
        missing="compile the program with scorep, e.g. scorep mpicc ...",
    ),
    "hpctoolkit": Profiler(
        "HPCToolkit: samples of hpcrun, then hpcstruct and hpcprof",
        results=("database/experiment.xml", "database/profile.db"),
        wrapper=("hpcrun", "-e", "REALTIME", "-o", "{dir}/measurements"),
        afterwards=(
            ("hpcstruct", "{dir}/measurements"),
            ("hpcprof", "-o", "{dir}/database", "{dir}/measurements"),
        ),
        missing="look at the output of hpcrun and hpcprof in this directory",
    ),
    "caliper": Profiler(
        "Caliper; link the program with it",
        results=("profile.cali",),
        environment={"CALI_CONFIG": _SPOT},
        missing="link the program with Caliper, and call MPI_Init or a ConfigManager",
    ),
    "tau": Profiler(
        "TAU with whole call paths",
        results=("profile.*.*.*", "MULTI__*/profile.*.*.*"),
        environment={
            "PROFILEDIR": "{dir}",
            "TAU_CALLPATH": "1",
            "TAU_CALLPATH_DEPTH": "100",
            "TAU_THROTTLE": "0",
            "TAU_PROFILE": "1",
        },
        wrapper=("tau_exec",),
        missing="see the output of tau_exec in this directory",
    ),
    "nsys": Profiler(
        "Nsight Systems, one report per process",
        results=("report.*",),
        wrapper=("nsys", "profile", "--trace", "cuda,nvtx,mpi", "--export", "sqlite", "-o",
                 "{dir}/report.%q{{rank}}"),
        missing="see the output of nsys in this directory",
    ),
    "kineto": Profiler(
        f"PyTorch; the program writes its traces to ${DIRECTORY_VARIABLE}",
        results=("*.pt.trace.json*", "*.json", "*.json.gz"),
        environment={DIRECTORY_VARIABLE: "{dir}"},
        missing=f"call export_chrome_trace with a file in ${DIRECTORY_VARIABLE}",
    ),
}  # fmt: skip


def profiler(name: str) -> Profiler:
    """Return a profiler by its name.

    Raises
    ------
    UsageError
        If there is none with this name.
    """
    try:
        return PROFILERS[name]
    except KeyError:
        raise UsageError(
            f"unknown profiler {name[:40]!r}", hint=f"use one of {', '.join(PROFILERS)}"
        ) from None


def timer_header() -> Path:
    """Return the path of the C header of the region timer."""
    return Path(__file__).parent / "cpmodel_timer.h"


def largest_memory(maximum: int) -> int:
    """Return the largest resident memory in bytes from the field of `getrusage`."""
    return maximum if sys.platform == "darwin" else 1024 * maximum
