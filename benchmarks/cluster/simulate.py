"""Run mini-applications on simulated clusters, and write their profiles.

    cd benchmarks && python -m cluster.simulate [--applications stencil ...] [--platforms ...]

Each program runs under SimGrid SMPI in virtual time, as if each rank had a node of its own. All
noise is seeded: the same version of SimGrid writes the same bytes. A profile that is there is not
made again, so a run that was stopped goes on where it was. The profiles are DIR/SERIES/RUN, such as
``build/cluster/stencil.fat-tree-fast/stencil.p8.r1/profile.cubex``. With ``--samples``, the
series of the sample profiles is written to ``sample_profiles`` instead.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from cluster.platforms import NETWORKS, TOPOLOGIES, hosts, platform
from cluster.profiles import read_records, write_cubex

SOURCES = Path(__file__).resolve().parent
ROOT = SOURCES.parents[1]
PROFILES = ROOT / "build" / "cluster"

APPLICATIONS = ("stencil", "particles", "spectral")
PLATFORMS = ("fat-tree-fast", "torus-fast", "dragonfly-slow")
SCALES = (8, 16, 32, 64, 128)
REPETITIONS = 3
FAR = (512, 1024)
"""Scales of the truth; each is run once."""

_TOO_LONG = {("spectral", "torus-fast"): 512, ("spectral", "dragonfly-slow"): 512}
"""Largest scales of cases that would take more than half an hour each at 1,024."""

SAMPLE = "stencil.fat-tree-fast"
SAMPLE_FAR = 1024

_WARNINGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra")
_SETTINGS = (
    "--cfg=smpi/host-speed:1Gf",
    # Only what a program asks for takes time.
    "--cfg=smpi/simulate-computation:no",
    "--cfg=smpi/wtime:0",
    "--cfg=smpi/coll-selector:ompi",
    "--log=root.thres:warning",
)
_TOOLS = ("smpicc", "smpirun")
_HINT = "install SimGrid with SMPI, e.g. the package libsimgrid-dev of Debian or Ubuntu"


class AbsentError(Exception):
    """SimGrid or a compiler is not installed."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the matrix.

    Attributes
    ----------
    application, platform : names from `APPLICATIONS` and `PLATFORMS`
    processes : number of ranks
    repetition : number of the repetition, from 1
    """

    application: str
    platform: str
    processes: int
    repetition: int

    @property
    def series(self) -> str:
        """Name of the folder of all runs of this program on this platform."""
        return f"{self.application}.{self.platform}"

    @property
    def name(self) -> str:
        """Name of the folder of the run."""
        return f"{self.application}.p{self.processes}.r{self.repetition}"


def matrix(
    applications: tuple[str, ...] = APPLICATIONS,
    platforms: tuple[str, ...] = PLATFORMS,
    scales: tuple[int, ...] = SCALES,
    far: tuple[int, ...] = FAR,
    repetitions: int = REPETITIONS,
) -> list[Run]:
    """Return all runs, the cheap ones first."""
    runs = [
        Run(application, where, processes, repetition)
        for where in platforms
        for application in applications
        for processes in (*scales, *far)
        if processes <= _TOO_LONG.get((application, where), processes)
        for repetition in range(1, 1 + (repetitions if processes in scales else 1))
    ]
    return sorted(runs, key=lambda run: run.processes)


def version() -> str:
    """Return the version of SimGrid.

    Raises
    ------
    AbsentError
        If it is not installed.
    """
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            raise AbsentError(f"{tool} is not there: {_HINT}")
    said = subprocess.run(["smpicc", "--version"], check=True, capture_output=True, text=True)
    return said.stdout.strip().splitlines()[0].strip()


def compiled(folder: Path, application: str) -> Path:
    """Return a program, compiled with instrumentation and linked to the measurement library.

    Raises
    ------
    CalledProcessError
        If the compiler fails.
    """
    library, program = folder / f"{application}.measure.o", folder / application
    smpicc: list[str | Path] = ["smpicc", *_WARNINGS, f"-I{SOURCES}"]
    subprocess.run([*smpicc, "-c", SOURCES / "measure.c", "-o", library], check=True)
    instrumented: list[str | Path] = ["-finstrument-functions", SOURCES / f"{application}.c"]
    # Calls find our MPI functions and not those of SimGrid.
    linked: list[str | Path] = [library, "-Wl,-Bsymbolic", "-lm", "-ldl", "-o", program]
    subprocess.run([*smpicc, *instrumented, *linked], check=True)
    return program


def simulate(program: Path, run: Run, profile: Path, creator: str) -> float:
    """Run a program and write its profile; return the seconds that it took.

    Raises
    ------
    RuntimeError
        If the simulation fails.
    """
    begin = perf_counter()
    seed = f"{run.series} {run.processes} {run.repetition}"
    topology, _, network = run.platform.rpartition("-")
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        records, where, nodes = (folder / name for name in ("records", "platform.xml", "hosts"))
        where.write_text(platform(topology, network, seed))
        nodes.write_text(hosts(run.processes, seed))
        command: list[str | Path] = ["smpirun", "-np", str(run.processes), "-platform", where]
        command += ["-hostfile", nodes, *_SETTINGS, program]
        environment = {"CLUSTER_OUT": str(records), "CLUSTER_SEED": str(number_of(seed))}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, **environment},
        )
        if done.returncode:
            told = (done.stdout + done.stderr).strip()[-1000:]
            raise RuntimeError(f"{run.series}/{run.name} failed: {told}")
        measured = read_records(records, run.processes, run.application)
    profile.parent.mkdir(parents=True, exist_ok=True)
    partial = profile.with_suffix(".partial")
    write_cubex(partial, measured, creator)
    partial.rename(profile)
    return perf_counter() - begin


def number_of(seed: str) -> int:
    """Return a number from a text, the same everywhere."""
    number = 0
    for byte in seed.encode():
        number = (number * 257 + byte) % 2**61
    return number


def simulate_all(runs: list[Run], folder: Path, jobs: int) -> Iterator[tuple[Run, float]]:
    """Simulate the runs that have no profile in `folder`, and yield each with its costs.

    Raises
    ------
    AbsentError
        If SimGrid is not installed.
    """
    creator = f"SimGrid SMPI ({version()})"
    left = [run for run in runs if not _profile(folder, run).exists()]
    with TemporaryDirectory() as scratch, ThreadPoolExecutor(jobs) as workers:
        programs = {
            name: compiled(Path(scratch), name) for name in {run.application for run in left}
        }
        waiting = {
            workers.submit(
                simulate, programs[run.application], run, _profile(folder, run), creator
            ): run
            for run in left
        }
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            workers.shutdown(cancel_futures=True)


def _profile(folder: Path, run: Run) -> Path:
    return folder / run.series / run.name / "profile.cubex"


def write_samples(folder: Path, jobs: int) -> None:
    """Write the series of the sample profiles, and its truth, into `folder`."""
    application, _, where = SAMPLE.partition(".")
    runs = matrix((application,), (where,), far=(SAMPLE_FAR,))
    with TemporaryDirectory() as scratch:
        for run, seconds in simulate_all(runs, Path(scratch), jobs):
            print(f"{run.name}: {seconds:.0f} s", flush=True)
        for run in runs:
            is_far = run.processes == SAMPLE_FAR
            name = f"{application}.p{SAMPLE_FAR}" if is_far else f"{application}/{run.name}"
            to = folder / name
            to.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_profile(Path(scratch), run), to / "profile.cubex")


def main() -> None:
    """Run the matrix of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    places = [f"{topology}-{network}" for topology in TOPOLOGIES for network in NETWORKS]
    several = {"nargs": "+", "metavar": "N", "type": int}
    parser.add_argument("--applications", nargs="+", choices=APPLICATIONS, default=APPLICATIONS)
    parser.add_argument("--platforms", nargs="+", choices=places, default=PLATFORMS)
    parser.add_argument("--scales", default=SCALES, help="repeated scales", **several)
    parser.add_argument("--far", default=FAR, help="scales that run once", **several)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--jobs", type=int, default=2, help="simulations at a time")
    parser.add_argument("--out", type=Path, default=PROFILES, metavar="DIR")
    parser.add_argument("--samples", action="store_true", help="write the sample profiles")
    told = parser.parse_args()
    try:
        if told.samples:
            write_samples(ROOT / "sample_profiles", told.jobs)
            return
        runs = matrix(
            *(tuple(each) for each in (told.applications, told.platforms, told.scales, told.far)),
            told.repetitions,
        )
        for count, (run, seconds) in enumerate(simulate_all(runs, told.out, told.jobs), start=1):
            print(f"{count}: {run.series}/{run.name}: {seconds:.0f} s", flush=True)
    except (AbsentError, RuntimeError) as error:
        sys.exit(f"cluster: {error}")
    print(f"profiles of {len(runs)} runs are in {told.out}")


if __name__ == "__main__":
    main()
