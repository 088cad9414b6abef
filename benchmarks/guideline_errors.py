"""Error rates and power of `cpmodel guidelines` for campaigns of mpiruns.

All tables judge simulated or measured medians of mpiruns with the whole family of checks: patterns
with measured mock-ups, longer messages, and pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
from laws import AbsentError
from results import Table

from callpath_modeler.analysis.two_samples import SampleComparison
from cpmodel_guidelines.answer import Method, Test
from cpmodel_guidelines.benchmark import Benchmark, benchmark_of
from cpmodel_guidelines.campaigns.campaign import Campaign, Cell, Detail, Measurement
from cpmodel_guidelines.campaigns.conversion import experiment_of
from cpmodel_guidelines.measured_checks import (
    MeasuredSides,
    MeasuredVerdicts,
    judge_measured,
)
from cpmodel_guidelines.published import PATTERNS
from cpmodel_guidelines.rules import patterns
from cpmodel_guidelines.statistics.adjustment import Control
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign
from cpmodel_guidelines.verification import measured_sides

SIZES = (1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 1024, 1500, 2048, 4096, 5000, 8192, 10000,
         16384, 32768, 102400)  # fmt: skip
MPIRUNS, CORRELATIONS, DEVIATIONS = (5, 10, 30), (0.0, 0.5, 0.9), (0.05, 0.15)
METHODS = {
    "permutation": Method(Test.MEANS, Control.PERMUTATION),
    "Holm": Method(Test.MEANS, Control.HOLM),
    "BH": Method(Test.MEANS, Control.DISCOVERY),
    "rank-sum, Holm": Method(Test.RANK_SUM, Control.HOLM),
    "rank-sum, none": Method(Test.RANK_SUM, Control.NONE),
}
"""Methods by name. The last one is the published one."""

ERROR_NOTES = """\
Each cell has 300 campaigns of 9 collectives, 15 mock-ups and 21 sizes. All functions take equally
long at all sizes, so every guideline just holds. Medians of mpiruns have a normal logarithm with
this deviation, and correlate over the sizes of a function. The figures are shares of campaigns in
which a guideline is called violated. The stated rate is 5 %, plus two standard errors: 7.5 %. For
BH, the rate is that of false discoveries, which is the same if every guideline holds. *rank-sum,
none* is the published method. It promises no rate for a campaign."""

POWER_NOTES = """\
The campaigns are those of the table of error rates, with 100 campaigns in a cell and a correlation
of 0.5. `MPI_Scan` is slower than its mock-up by 10 % or 50 %, at one size or at all of them. The
figures are shares of campaigns in which this guideline is called violated."""

SPLIT_NOTES = """\
Measured campaigns of Open MPI 4.1.4 with ten mpiruns. The mpiruns are divided into two halves in
all 126 ways. One half stands for each function, and the other for a mock-up of it. So nothing
differs but the mpiruns. The figures are shares of divisions in which a function is called slower
than itself. The stated rate is 5 %."""

_CAMPAIGNS, _POWERED = 300, 100
_MEASURED = ("openmpi414_p4", "openmpi414_p8", "openmpi414_quiet_p2", "openmpi414_quiet_p4")


def errors(shared: Path) -> Table:  # noqa: ARG001 - all of it is made here
    """Measure the share of campaigns with a false violation."""
    lines = []
    for runs, correlation, deviation in product(MPIRUNS, CORRELATIONS, DEVIATIONS):
        shares = rates(runs, correlation, deviation, _CAMPAIGNS)
        line = (str(runs), f"{correlation:g}", f"{deviation:.0%}", *map(_share, shares))
        print(*line, sep=" | ", flush=True)
        lines.append(line)
    return Table(("mpiruns", "correlation", "deviation", *METHODS), lines, range(8))


def power(shared: Path) -> Table:  # noqa: ARG001 - all of it is made here
    """Measure the share of campaigns in which a planted violation is found."""
    lines = []
    for slower, where, runs, deviation in product((1.1, 1.5), ("one", "all"), MPIRUNS, DEVIATIONS):
        rows = slice(5, 6) if where == "one" else slice(None)
        shares = rates(runs, 0.5, deviation, _POWERED, slower, rows)
        said = f"+{slower - 1:.0%} at {where}"
        line = (said, str(runs), f"{deviation:.0%}", *map(_share, shares))
        print(*line, sep=" | ", flush=True)
        lines.append(line)
    return Table(("violation", "mpiruns", "deviation", *METHODS), lines, range(1, 8))


def splits(shared: Path) -> Table:
    """Measure the share of divisions of mpiruns in which a function is slower than itself."""
    home = shared / "data" / "mpi_guidelines"
    if not home.is_dir():
        raise AbsentError(f"{home} is absent")
    lines = []
    for name in _MEASURED:
        shares = split_rates(home / name / "raw_data")
        line = (name, *map(_share, shares))
        print(*line, sep=" | ", flush=True)
        lines.append(line)
    return Table(("campaign", *METHODS), lines, range(1, 6))


def _share(value: float) -> str:
    return f"{value:.1%}"


def functions() -> list[str]:
    """Return the collectives, and then the mock-ups in the order of `PATTERNS`."""
    names = [f"MPI_{left}" for left in dict.fromkeys(left for left, _ in PATTERNS)]
    return names + [
        f"MPI_{left}_with_{'_'.join(f'MPI_{part}' for part in parts)}" for left, parts in PATTERNS
    ]


def template(
    names: Sequence[str], sizes: Sequence[float], runs: int, libraries: Sequence[str] = ("",)
) -> Benchmark:
    """Return a benchmark of functions at sizes in which all times are equal."""
    time = np.ones(1)
    measurements = tuple(
        Measurement(library, 4, Cell(name, float(size)), run, time, Detail.MEDIANS, "simulated")
        for library, name, size, run in product(libraries, names, sizes, range(1, runs + 1))
    )
    return benchmark_of(experiment_of(Campaign("simulated", measurements)))


def with_values(benchmark: Benchmark, values: np.ndarray) -> Benchmark:
    """Return a benchmark with other values, [functions, sizes, mpiruns]."""
    made = Benchmark(
        *(benchmark.experiment, benchmark.metric, benchmark.functions, benchmark.names),
        *(benchmark.processes, benchmark.size, benchmark.per_call),
    )
    # The benchmark keeps its values as this cached property.
    made.__dict__["_cube"] = benchmark.settings, values
    return made


def rates(
    runs: int,
    correlation: float,
    deviation: float,
    campaigns: int,
    slower: float = 1.0,
    sizes: slice = slice(0),
) -> list[float]:
    """Return the share of campaigns with a violation for each method.

    Parameters
    ----------
    slower, sizes : slowdown of ``MPI_Scan`` at these sizes, which has one mock-up; then only the
        violation of this guideline is counted
    """
    names = functions()
    rng = np.random.default_rng([runs, round(100 * correlation), round(100 * deviation)])
    empty = template(names, SIZES, runs)
    found = np.zeros(len(METHODS))
    for _ in range(campaigns):
        common, own = (rng.standard_normal((len(names), count, runs)) for count in (1, len(SIZES)))
        scatter = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
        values = 1e-5 * np.exp(deviation * scatter)
        if slower > 1:
            values[names.index("MPI_Scan"), sizes] *= slower
        only = "Scan <= Exscan + Reduce_local" if slower > 1 else ""
        found += [*violated(with_values(empty, values), only)]
    return [float(share) for share in found / campaigns]


def violated(benchmark: Benchmark, only: str = "", *, alone: bool = False) -> Iterator[bool]:
    """Yield for each method whether a guideline is called violated.

    Parameters
    ----------
    only : text of the guideline that counts; "" = all of them
    alone : whether this guideline is the whole family
    """
    sides = measured_sides(benchmark, patterns())
    counts = np.array([not only or check.guideline.text == only for check in sides.checks])
    if alone:
        sides, counts = _taken(sides, np.flatnonzero(counts)), counts[counts]
    for method in METHODS.values():
        found = judge_measured(sides, method, tolerance=0.05, confidence=0.95)
        yield bool(found.verdicts.violated[counts].any()) or _mean_is_violated(found, only)


def _taken(sides: MeasuredSides, rows: np.ndarray) -> MeasuredSides:
    columns = (sides.comparison.difference, sides.comparison.low, sides.comparison.high,
               sides.comparison.p)  # fmt: skip
    comparison = SampleComparison(*(column[rows] for column in columns))
    checks = [sides.checks[row] for row in rows]
    return MeasuredSides(checks, comparison, sides.left[rows], sides.right[rows], sides.is_repeated)


def _mean_is_violated(found: MeasuredVerdicts, only: str) -> bool:
    return any(
        mean.violated and (not only or guideline.text == only)
        for (guideline, _), mean in found.means.items()
    )


def split_rates(folder: Path, most: int = 126) -> list[float]:
    """Return the share of divisions of mpiruns with a violation, for each method."""
    files = benchmark_files([str(folder)])
    assert files is not None, "the folder has a campaign"
    campaign = read_campaign(files)
    names = sorted({each.cell.function for each in campaign.measurements})
    sizes = sorted({each.cell.size for each in campaign.measurements})
    runs = max(each.mpirun for each in campaign.measurements)
    table = np.full((len(names), len(sizes), runs), np.nan)
    for each, median in zip(campaign.measurements, campaign.medians(), strict=True):
        place = names.index(each.cell.function), sizes.index(each.cell.size), each.mpirun - 1
        table[place] = median
    halves = [half for half in combinations(range(runs), runs // 2) if 0 in half][:most]
    # Each function has a library of its own, with itself as the collective and as its mock-up.
    libraries = [f"library {number}" for number in range(len(names))]
    empty = template(("MPI_Gather", "GL_Gather_as_Allgather"), sizes, runs // 2, libraries)
    found = np.zeros(len(METHODS))
    for half in halves:
        other = [k for k in range(runs) if k not in half]
        both = np.stack([table[..., list(half)], table[..., other]], axis=1)
        values = both.reshape(-1, *both.shape[2:])
        found += [*violated(with_values(empty, values), "Gather <= Allgather", alone=True)]
    return [float(share) for share in found / len(halves)]
