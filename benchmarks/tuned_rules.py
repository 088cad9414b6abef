"""Gains that `cpmodel guidelines tune` promises for Open MPI, and that its rules bring."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from environments import WORK
from laws import AbsentError
from results import BENCHMARKS, Table

from cpmodel_guidelines.answer import Method
from cpmodel_guidelines.campaigns.campaign import Campaign
from cpmodel_guidelines.rules import patterns
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign
from cpmodel_guidelines.tuning.choices import Library, group_of
from cpmodel_guidelines.tuning.gains import Question, share_of
from cpmodel_guidelines.tuning.open_mpi import COLLECTIVES, Algorithm
from cpmodel_guidelines.tuning.promises import Kept, hold
from cpmodel_guidelines.tuning.rules_files import open_mpi_text
from cpmodel_guidelines.tuning.tuner import campaign_of_sources, tuned

NOTES = """\
Open MPI 4.1.4 with 4 processes on 2 cores that other programs also used. `benchmarks/collectives.c`
measures seven collectives and three mock-ups at seven sizes, with 50 calls per size and ten
mpiruns. The campaigns are: the library's own choice, each of the six algorithms of Allreduce, then
with the rules of `cpmodel guidelines tune`, and again without. The mpiruns of the first seven
alternate, and so do those of the last two. *promised*: the gain before the rules, as a share of the
time of a call. *with rules* and *again without*: the change that was measured, with its 95 %
interval. A promise is broken if the function is slower with its rule than the promised way. Open
MPI's algorithm of Reduce_scatter_block allocates a buffer in each call, and the mock-up does not.
The last line counts places that are slower than in the first campaign, of all compared places."""

CAMPAIGNS = WORK / "tuned_rules"
_MPIRUNS, _PROCESSES, _CALLS = 10, 4, 50
_LIBRARY, _SWEPT = "ompi", "Allreduce"
_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_DYNAMIC = ("--mca", "coll_tuned_use_dynamic_rules", "1")


def table(_shared: Path) -> Table:
    """Measure, tune, measure again, and return what became of each promise.

    Raises
    ------
    AbsentError
        If there is no Open MPI 4.
    """
    compiler, launcher = shutil.which("mpicc"), shutil.which("mpirun")
    if compiler is None or launcher is None or "Open MPI) 4" not in _output([launcher, "-V"]):
        raise AbsentError("mpicc and mpirun of Open MPI 4 are not there")
    CAMPAIGNS.mkdir(parents=True, exist_ok=True)
    program = CAMPAIGNS / "collectives"
    _output([compiler, "-O2", "-o", str(program), str(BENCHMARKS / "collectives.c")])
    algorithms = [Algorithm(_SWEPT, k + 1) for k in range(len(COLLECTIVES[_SWEPT].algorithms))]
    forced = {
        f"algorithm{each.number}": (
            *_DYNAMIC,
            *("--mca", f"coll_tuned_{_SWEPT.lower()}_algorithm", str(each.number)),
        )
        for each in algorithms
    }
    _measure(launcher, program, {"before": (), **forced})
    sources = [f"{_LIBRARY}={CAMPAIGNS / 'before'}"]
    sources += [
        f"{_LIBRARY}:{_SWEPT.lower()}={each.number}={CAMPAIGNS / f'algorithm{each.number}'}"
        for each in algorithms
    ]
    given, question = campaign_of_sources(sources, None), Question(0.05, 0.0, Method())
    found = tuned(given, patterns(), question)
    rules = found.rules[group_of(found.gains, None), Library.OPEN_MPI]
    file = CAMPAIGNS / "rules.conf"
    file.write_text(open_mpi_text(rules), "ascii")
    loaded = (*_DYNAMIC, "--mca", "coll_tuned_dynamic_rules_filename", str(file))
    _measure(launcher, program, {"after": loaded, "again": ()})
    kept, again = (
        hold(rules, given.campaign, _campaign(name), patterns(), question)
        for name in ("after", "again")
    )
    head = ("function", "bytes", "rule", "promised", "with rules", "outcome", "again without")
    return Table(head, [*_lines(kept, again)], range(3, 5))


def _lines(kept: Kept, again: Kept) -> Iterator[tuple[str, ...]]:
    without = {each.place: each for each in again.promises}
    for each in kept.promises:
        gain, what = each.promised, each.what
        title = f"{what.number} {what.name}" if isinstance(what, Algorithm) else what
        told = _change(gain.factor, gain.low, gain.high)
        ends = [
            "-" if m is None else _change(m.factor, m.low, m.high)
            for m in (each.measured, without[each.place].measured)
        ]
        place = each.place
        yield (
            place.function,
            f"{place.size:.0f}",
            title,
            told,
            ends[0],
            str(each.outcome),
            ends[1],
        )
    slower = [f"{len(each.slower)} of {each.compared}" for each in (kept, again)]
    yield "slower", "", "", "", slower[0], "", slower[1]


def _change(factor: float, low: float, high: float) -> str:
    share, least, most = (f"{100 * share_of(each):.0f}" for each in (factor, low, high))
    return f"{share}% ({least} ... {most})"


def _campaign(name: str) -> Campaign:
    files = benchmark_files([f"{_LIBRARY}={CAMPAIGNS / name}"])
    assert files is not None, "the benchmark writes the output of ReproMPI"
    return read_campaign(files)


def _measure(launcher: str, program: Path, options: dict[str, Sequence[str]]) -> None:
    """Measure campaigns with options of mpirun, all of them in turns; what exists is kept."""
    for run in range(_MPIRUNS):
        for name, told in options.items():
            path = CAMPAIGNS / name / f"mpi_bench_r{run}.dat"
            if path.exists():
                continue
            path.parent.mkdir(exist_ok=True)
            command = [launcher, *told, "--oversubscribe", "-n", str(_PROCESSES), str(program)]
            path.write_text(_output([*command, str(_CALLS)]), "ascii")


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **_ENVIRONMENT}
    )
    return done.stdout
