"""Guidelines predicted at a number of processes, compared with a campaign there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from laws import AbsentError
from results import Table

import callpath_modeler as cpm
from cpmodel_guidelines.benchmark import Benchmark, benchmark_of
from cpmodel_guidelines.campaigns.campaign import experiment_of
from cpmodel_guidelines.rules import patterns
from cpmodel_guidelines.statistics.two_sample_tests import rank_sum_chances
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign
from cpmodel_guidelines.verification import Ask, verify

NOTES = """\
Each row predicts checks at *to p* from campaigns at *from p*, and compares them with a campaign
there. *violated*: checks that a rank-sum test at 5 % rejects there. *found*: the share of them with
a probability above 50 %. *false*: the same share of the other checks. *above 80 %*: checks with
such a probability, and how many of them are violated. *band*: the share of measured slowdowns in
their 95 % band. *as before*: found and false if each check is predicted to be as at the largest
measured p. Open MPI 4.1.4 was measured on two cores, with ten mpiruns. The other libraries are
their selections of algorithms in SimGrid SMPI, on a fat tree of 64 hosts; ten mpiruns have normal
noise of 15 %."""

_QUIET, _LOADED = "Open MPI, idle", "Open MPI, loaded"
_SELECTORS = {"Open MPI in SMPI": "ompi", "MPICH in SMPI": "mpich", "MVAPICH2 in SMPI": "mvapich2"}
_SCALES = (2, 4, 8, 16, 32)
_MPIRUNS, _NOISE = 10, 0.15
_ALPHA = 0.05
_LIKELY, _VERY = 0.5, 0.8
_BENCHMARKS = Path(__file__).resolve().parent
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="node-" suffix="" radical="0-63" speed="2Gf"
 bw="12.5GBps" lat="1.2us" loopback_bw="20GBps" loopback_lat="0.2us" topology="FAT_TREE"
 topo_parameters="2;8,8;1,8;1,1"/></platform>
"""

Read = Callable[[Sequence[int]], Benchmark]


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """Checks at a target, [C]: predicted, violated there, violated before, and in their band."""

    share: np.ndarray
    violated: np.ndarray
    before: np.ndarray
    inside: np.ndarray

    def cells(self) -> tuple[str, ...]:
        """Return the shares as text."""
        told, very = self.share > _LIKELY, self.share > _VERY
        return (
            f"{self.violated.sum()} of {len(self.violated)}",
            *(f"{each:.1%}" for each in self._rates(told)),
            f"{(very & self.violated).sum()} of {very.sum()}",
            f"{self.inside.mean():.0%}",
            " and ".join(f"{each:.1%}" for each in self._rates(self.before)),
        )

    def _rates(self, told: np.ndarray) -> tuple[float, float]:
        return float(told[self.violated].mean()), float(told[~self.violated].mean())


def table(shared: Path) -> Table:
    """Compare predictions with campaigns."""
    outcomes, lines = [], []
    measured = {"idle": lambda scales: _measured(shared, "quiet_", scales),
                "loaded": lambda scales: _measured(shared, "", scales)}  # fmt: skip
    tasks: list[tuple[str, Read, tuple[int, ...], int]] = [
        (_QUIET, measured["idle"], (2, 4), 8),
        (_QUIET, measured["idle"], (4,), 8),
        (_LOADED, measured["loaded"], (4,), 8),
    ]
    with TemporaryDirectory() as folder:
        times = _simulated(Path(folder))
    for library, known in times.items():

        def read(scales: Sequence[int], known: Mapping[int, pd.DataFrame] = known) -> Benchmark:
            return _from_frame([known[p] for p in scales])

        tasks += [(library, read, (2, 4), 8), (library, read, (2, 4, 8), 16),
                  (library, read, (2, 4, 8, 16), 32)]  # fmt: skip
    for name, read, scales, target in tasks:
        outcomes.append(_outcome(read, scales, target))
        lines.append((name, ", ".join(map(str, scales)), str(target), *outcomes[-1].cells()))
    columns = zip(*((o.share, o.violated, o.before, o.inside) for o in outcomes), strict=True)
    lines.append(("all", "", "", *_Outcome(*map(np.concatenate, columns)).cells()))
    head = ("campaigns", "from p", "to p", "violated", "found", "false", "above 80 %", "band",
            "as before")  # fmt: skip
    return Table(head, lines, range(3, 9))


def _outcome(read: Read, scales: Sequence[int], target: int) -> _Outcome:
    """Predict the checks at a target, and judge the campaign there."""
    there = verify(read([target]), patterns(), with_singles=False).here
    found = verify(read(scales), patterns(), ask=Ask(float(target)), with_singles=False)
    ahead, here = found.ahead, found.here
    assert ahead is not None, "a target was given"
    rejected = rank_sum_chances(*there.runs) <= _ALPHA
    known = {_key(c, target): k for k, c in enumerate(there.checks)}
    before = dict(
        zip(
            (_key(c, c.left.setting[0]) for c in here.checks),
            rank_sum_chances(*here.runs) <= _ALPHA,
            strict=True,
        )
    )
    pairs = [(k, known[key]) for k, c in enumerate(ahead.checks)
             if (key := _key(c, target)) in known]  # fmt: skip
    told, true = (np.array(each) for each in zip(*pairs, strict=True))
    bands, factor = ahead.verdicts.take(told), there.verdicts.factor[true]
    last = [before.get(_key(ahead.checks[k], max(scales)), False) for k in told]
    inside = (bands.low <= factor) & (factor <= bands.high)
    return _Outcome(1 - bands.chance, rejected[true], np.array(last), inside)


def _key(check, processes: float) -> tuple[str, float, float]:
    return check.guideline.text, check.left.setting[-1], float(processes)


def _measured(shared: Path, kind: str, scales: Sequence[int]) -> Benchmark:
    """Return measured campaigns.

    Raises
    ------
    AbsentError
        If they are not there.
    """
    folders = [shared / "mpi_guidelines" / f"openmpi414_{kind}p{p}" / "raw_data" for p in scales]
    files = benchmark_files(list(map(str, folders)), None) if folders[0].is_dir() else None
    if files is None:
        raise AbsentError("the campaigns are not in ../shared")
    return benchmark_of(experiment_of(read_campaign(files)))


def _simulated(folder: Path) -> dict[str, dict[int, pd.DataFrame]]:
    """Return mpiruns of simulated libraries by number of processes.

    Raises
    ------
    AbsentError
        If SimGrid SMPI is not there.
    """
    compiler, launcher = shutil.which("smpicc"), shutil.which("smpirun")
    if compiler is None or launcher is None:
        raise AbsentError("SimGrid SMPI is not there")
    program, platform, hosts = folder / "mock_ups", folder / "fat_tree.xml", folder / "hosts"
    platform.write_text(_PLATFORM, "ascii")
    hosts.write_text("".join(f"node-{k}\n" for k in range(64)), "ascii")
    source = str(_BENCHMARKS / "mock_ups.c")
    subprocess.run([compiler, "-O2", "-o", str(program), source], check=True, timeout=120)
    random = np.random.default_rng(0)
    found: dict[str, dict[int, pd.DataFrame]] = {}
    for library, selector in _SELECTORS.items():
        for p in _SCALES:
            command = [launcher, "-np", str(p), "-platform", str(platform), "-hostfile",
                       str(hosts), f"--cfg=smpi/coll-selector:{selector}",
                       "--cfg=smpi/simulate-computation:no", "--log=root.thres:critical",
                       str(program)]  # fmt: skip
            done = subprocess.run(command, check=True, timeout=600, capture_output=True, text=True)
            rows = [
                (name, p, int(size), mpirun, float(time) * np.exp(_NOISE * random.normal()))
                for name, size, time in map(str.split, done.stdout.splitlines())
                for mpirun in range(1, _MPIRUNS + 1)
            ]
            columns = ["call", "p", "size", "mpirun", "latency"]
            found.setdefault(library, {})[p] = pd.DataFrame(rows, columns=columns)
    return found


def _from_frame(frames: Sequence[pd.DataFrame]) -> Benchmark:
    made = cpm.from_frame(
        pd.concat(frames),
        callpath="call",
        parameters=["p", "size"],
        repetition="mpirun",
        metrics={"latency": "s"},
    )
    return benchmark_of(made)
