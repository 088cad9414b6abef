"""Error rates and power of `cpmodel guidelines` for campaigns of mpiruns.

All tables judge simulated or measured medians of mpiruns, with patterns of measured mock-ups and
with longer messages.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from laws import AbsentError
from results import Table

from cpmodel_guidelines.answer import Method
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.campaigns.campaign import experiment_of
from cpmodel_guidelines.functions import reprompi_mock_up
from cpmodel_guidelines.judge import GuidelineVerdict
from cpmodel_guidelines.published import PATTERNS
from cpmodel_guidelines.statistics.permutations import Control, adjusted, permutation_test
from cpmodel_guidelines.statistics.two_sample_tests import mean_chances, rank_sum_chances
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign
from cpmodel_guidelines.suites.pgmpi import guidelines_of
from cpmodel_guidelines.verification import Verification, verify

SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 1024, 1500, 2048, 4096, 5000, 8192,
                  10000, 16384, 32768, 102400])  # fmt: skip
MPIRUNS, CORRELATIONS, DEVIATIONS = (5, 10, 30), (0.0, 0.5, 0.9), (0.05, 0.15)
METHODS = ("permutation", "means, Holm", "means, BH", "ranks, Holm", "ranks, BH", "ranks, none")
"""The last one is the published method."""

KINDS = ("pattern", "monotony", "split")

_CAMPAIGNS = 300
"""Number of campaigns in each cell."""
_FILED = {5: 150, 10: 100, 30: 25}
"""Number of campaigns in files in each cell, by the number of mpiruns; reading takes long."""

ERROR_NOTES = """\
Each cell has 300 campaigns of 9 collectives, 15 mock-ups and 21 sizes. All functions take equally
long at all sizes, so every guideline just holds. The family has 315 checks of patterns and 180 of
longer messages. The 1,890 checks of pieces are left out, because no piece is nearly as fast. They
could only lower these figures. Medians of mpiruns have a normal logarithm with this deviation, and
correlate over the sizes of a function. The figures are shares of campaigns in which a guideline is
called violated. The stated rate is 5 %, and with two standard errors 7.5 %. *means* is Welch's
test of means of logarithms, confirmed by ranks. *ranks* is the rank-sum test. *ranks, none* is the
published method, which promises no rate for a campaign."""

FILE_NOTES = """\
Cells with 5, 10 and 30 mpiruns have 150, 100 and 25 campaigns of 9 collectives, 15 mock-ups and
21 sizes at p = 4. They are written as files of ReproMPI and checked as `cpmodel guidelines`
does: patterns with mock-ups, patterns with sums, longer messages, and messages in pieces. Times
are equal up to 1 KiB, and proportional to the size from there on. So all guidelines of mock-ups
just hold, those of longer messages just hold up to 1 KiB, and those of pieces beyond. Noise is
as in the table above. The figures are shares of campaigns with a violation: of any kind, and of
each kind. The stated rate is 5 %. *limit* is that rate with two standard errors."""

POWER_NOTES = """\
The campaigns are those of the table of error rates, with 300 in a cell and a correlation of 0.5.
`MPI_Scan` is slower than its only mock-up by 10 % or 50 %, at one size or at all of them. The
figures are shares of campaigns in which this guideline is called violated. With ten mpiruns, the
p-value of a rank-sum test is .00009 or larger, so *ranks, Holm* cannot find anything among these
checks. With five, this holds for all methods that test each check alone."""

SPLIT_NOTES = """\
Measured campaigns of Open MPI 4.1.4 with ten mpiruns. The mpiruns are divided into two halves in
all 252 ways. One half stands for each function, and the other for a mock-up of it. So nothing
differs but the mpiruns. The figures are shares of divisions in which a function is called slower
than itself. The stated rate is 5 %. Medians of mpiruns often have two typical times, so Welch's
test alone would miss the rate (6 % in openmpi414_quiet_p2). Ranks have to confirm it, and five
mpiruns are too few for that. Permutations of all checks together need no distribution."""

_RATE, _TOLERANCE = 0.05, 0.05
_MEASURED = ("openmpi414_p4", "openmpi414_p8", "openmpi414_quiet_p2", "openmpi414_quiet_p4")
_FUNCTIONS = tuple(dict.fromkeys(left for left, _ in PATTERNS))
_SCAN = _FUNCTIONS.index("Scan")


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Checks of a campaign, by the positions of their sides in its cells.

    Attributes
    ----------
    left, right : [C] numbers of cells
    guidelines : rows of each guideline
    kinds : [C] number of the kind of guideline
    """

    left: np.ndarray
    right: np.ndarray
    guidelines: list[np.ndarray]
    kinds: np.ndarray


def family() -> Family:
    """Return the checks of 9 collectives and 15 mock-ups, in the order of `PATTERNS`."""
    rows: list[tuple[int, int, int, int]] = []
    count, number = len(SIZES), 0
    for k, (function, _) in enumerate(PATTERNS):
        here, there = _FUNCTIONS.index(function) * count, (len(_FUNCTIONS) + k) * count
        rows += [(here + j, there + j, number, 0) for j in range(count)]
        number += 1
    for f in range(len(_FUNCTIONS)):
        rows += [(f * count + i, f * count + j, number, 1) for i, j in pairwise(range(count))]
        number += 1
    left, right, guideline, kinds = (np.array(column) for column in zip(*rows, strict=True))
    guidelines = [np.flatnonzero(guideline == each) for each in range(number)]
    return Family(left, right, guidelines, kinds)


def errors(shared: Path) -> Table:  # noqa: ARG001 - all of it is made here
    """Measure the share of campaigns with a false violation."""
    lines = []
    for runs, correlation, deviation in product(MPIRUNS, CORRELATIONS, DEVIATIONS):
        shares = rates(runs, correlation, deviation, _CAMPAIGNS)
        line = (str(runs), f"{correlation:g}", f"{deviation:.0%}", *map(_share, shares))
        print(*line, sep=" | ", flush=True)
        lines.append(line)
    return Table(("mpiruns", "correlation", "deviation", *METHODS), lines, range(9))


def power(shared: Path) -> Table:  # noqa: ARG001 - all of it is made here
    """Measure the share of campaigns in which a planted violation is found."""
    lines = []
    for slower, where, runs, deviation in product((1.1, 1.5), ("one", "all"), MPIRUNS, DEVIATIONS):
        sizes = slice(5, 6) if where == "one" else slice(None)
        shares = rates(runs, 0.5, deviation, _CAMPAIGNS, slower, sizes)
        said = f"+{slower - 1:.0%}, {where} size" + "s" * (where == "all")
        line = (said, str(runs), f"{deviation:.0%}", *map(_share, shares))
        print(*line, sep=" | ", flush=True)
        lines.append(line)
    return Table(("violation", "mpiruns", "deviation", *METHODS), lines, range(1, 9))


def splits(shared: Path) -> Table:
    """Measure the share of divisions of mpiruns in which a function is slower than itself."""
    home = shared / "data" / "mpi_guidelines"
    if not home.is_dir():
        raise AbsentError(f"{home} is absent")
    lines = []
    for name in _MEASURED:
        line = (name, *map(_share, split_rates(home / name / "raw_data")))
        print(*line, sep=" | ", flush=True)
        lines.append(line)
    return Table(("campaign", *METHODS), lines, range(1, 7))


def filed_errors(shared: Path) -> Table:  # noqa: ARG001 - all of it is made here
    """Measure the share of campaigns in files with a false violation."""
    lines = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for runs, correlation, deviation in product(MPIRUNS, CORRELATIONS, DEVIATIONS):
            count = _FILED[runs]
            judge = partial(violated_kinds, runs, correlation, deviation)
            found = [*pool.map(judge, range(count), chunksize=10)]
            numbers = [
                sum(map(bool, found)),
                *(sum(kind in one for one in found) for kind in KINDS),
            ]
            limit = _RATE + 2 * float(np.sqrt(_RATE * (1 - _RATE) / count))
            told = [_share(number / count) for number in numbers]
            line = (str(runs), f"{correlation:g}", f"{deviation:.0%}", *told, _share(limit))
            print(*line, sep=" | ", flush=True)
            lines.append(line)
    head = ("mpiruns", "correlation", "deviation", "any", *KINDS, "limit")
    return Table(head, lines, range(8))


def violated_kinds(runs: int, correlation: float, deviation: float, number: int) -> set[str]:
    """Return the kinds of guidelines that the command calls violated in a simulated campaign."""
    with TemporaryDirectory() as folder:
        write_campaign(Path(folder), runs, correlation, deviation, number)
        found = checked(Path(folder))
    return {str(row.guideline.kind) for row in found.rows_that_are(GuidelineVerdict.VIOLATED)}


def write_campaign(
    folder: Path, runs: int, correlation: float, deviation: float, number: int
) -> None:
    """Write a campaign of a flawless library as files of ReproMPI, one for each mpirun."""
    rng = np.random.default_rng([runs, round(100 * correlation), round(100 * deviation), number])
    names = [f"MPI_{each}" for each in _FUNCTIONS] + [reprompi_mock_up(*each) for each in PATTERNS]
    law = 1e-5 * np.maximum(1.0, SIZES / 1024)
    for run in range(runs):
        common = rng.standard_normal((len(names), 1))
        own = rng.standard_normal((len(names), len(SIZES)))
        scatter = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
        times = law * np.exp(deviation * scatter)
        lines = ["#@datatype_size_bytes=1", "#@nprocs=4", "test nrep count runtime_sec"]
        lines += [
            f"{name} 0 {size} {time:.12e}"
            for name, row in zip(names, times.tolist(), strict=True)
            for size, time in zip(SIZES.tolist(), row, strict=True)
        ]
        (folder / f"mpi_bench_r{run}.dat").write_text("\n".join([*lines, ""]))


def checked(folder: Path) -> Verification:
    """Return what `cpmodel guidelines FOLDER` finds."""
    files = benchmark_files([str(folder)])
    assert files is not None, "the folder has a campaign"
    bench = benchmark_of(experiment_of(read_campaign(files)))
    return verify(bench, guidelines_of((), files.catalogues), method=Method(rate=_RATE))


def _share(value: float) -> str:
    return f"{value:.1%}"


def rates(
    runs: int,
    correlation: float,
    deviation: float,
    campaigns: int,
    slower: float = 1.0,
    sizes: slice | None = None,
) -> list[float]:
    """Return the share of campaigns with a violation for each method.

    Parameters
    ----------
    slower, sizes : slowdown of ``MPI_Scan`` at these sizes; then only the violation of the pattern
        of its only mock-up is counted
    """
    rng = np.random.default_rng([runs, round(100 * correlation), round(100 * deviation)])
    checks, found = family(), np.zeros(len(METHODS))
    functions = len(_FUNCTIONS) + len(PATTERNS)
    only = None
    if sizes is not None:
        only = next(k for k, (function, _) in enumerate(PATTERNS) if function == "Scan")
    for _ in range(campaigns):
        common, own = (rng.standard_normal((functions, count, runs)) for count in (1, len(SIZES)))
        scatter = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
        values = 1e-5 * np.exp(deviation * scatter)
        if sizes is not None:
            values[_SCAN, sizes] *= slower
        cells = values.reshape(-1, runs)
        left, right = cells[checks.left], cells[checks.right]
        found += [*violated(left, right, checks.guidelines, checks.kinds, only)]
    return [float(share) for share in found / campaigns]


def violated(
    left: np.ndarray,
    right: np.ndarray,
    guidelines: Sequence[np.ndarray],
    kinds: np.ndarray,
    only: int | None = None,
) -> Iterator[bool]:
    """Yield for each method whether a guideline is called violated.

    A violation also needs an interval above zero in `cpmodel guidelines`, which is left out here.

    Parameters
    ----------
    only : number of the guideline that counts; None = all of them
    """
    rows = np.arange(len(left)) if only is None else guidelines[only]
    which = slice(None) if only is None else slice(only, only + 1)
    difference = np.nanmean(np.log(left), axis=1) - np.nanmean(np.log(right), axis=1)
    is_slower = difference >= np.log1p(_TOLERANCE)
    can_break = np.ones(len(left), bool)
    found = permutation_test(left, right, can_break, guidelines, _RATE)
    is_shown = np.nan_to_num(found.rate, nan=1.0) <= _RATE
    of_means = np.nan_to_num(found.means, nan=1.0) <= _RATE
    of_means &= np.nan_to_num(found.difference) >= np.log1p(_TOLERANCE)
    yield bool((is_shown & is_slower)[rows].any() or of_means[which].any())
    means, ranks = mean_chances(left, right), rank_sum_chances(left, right)
    for chance, control in (
        *product((means, ranks), (Control.HOLM, Control.DISCOVERY)),
        (ranks, Control.NONE),
    ):
        rate = np.nan_to_num(adjusted(chance, control, kinds), nan=1.0)
        yield bool(((rate <= _RATE) & is_slower)[rows].any())


def split_rates(folder: Path) -> list[float]:
    """Return the share of divisions of mpiruns with a violation, for each method."""
    files = benchmark_files([str(folder)])
    assert files is not None, "the folder has a campaign"
    campaign = read_campaign(files)
    cells = list(dict.fromkeys(each.cell for each in campaign.measurements))
    number = {cell: k for k, cell in enumerate(cells)}
    runs = max(each.mpirun for each in campaign.measurements)
    table = np.full((len(cells), runs), np.nan)
    for each, median in zip(campaign.measurements, campaign.medians(), strict=True):
        table[number[each.cell], each.mpirun - 1] = median
    names = np.array([cell.function for cell in cells])
    guidelines = [np.flatnonzero(names == name) for name in dict.fromkeys(names)]
    kinds = np.zeros(len(cells), int)
    halves = [*combinations(range(runs), runs // 2)]
    found = np.zeros(len(METHODS))
    for half in halves:
        other = [k for k in range(runs) if k not in half]
        left, right = table[:, list(half)], table[:, other]
        found += [*violated(left, right, guidelines, kinds)]
    return [float(share) for share in found / len(halves)]
