"""Error rates and power of `cpmodel guidelines` for campaigns of mpiruns.

All tables judge simulated or measured medians of mpiruns, with patterns of measured mock-ups and
with longer messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
from laws import AbsentError
from results import Table

from cpmodel_guidelines.published import PATTERNS
from cpmodel_guidelines.statistics.adjustment import Control, adjusted
from cpmodel_guidelines.statistics.permutations import permutation_test
from cpmodel_guidelines.statistics.two_sample_tests import rank_sum_chances, welch_chances
from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 1024, 1500, 2048, 4096, 5000, 8192,
                  10000, 16384, 32768, 102400])  # fmt: skip
MPIRUNS, CORRELATIONS, DEVIATIONS = (5, 10, 30), (0.0, 0.5, 0.9), (0.05, 0.15)
METHODS = ("permutation", "Welch, Holm", "Welch, BH", "ranks, Holm", "ranks, BH", "ranks, none")
"""The last one is the published method."""

ERROR_NOTES = """\
Each cell has 300 campaigns of 9 collectives, 15 mock-ups and 21 sizes. All functions take equally
long at all sizes, so every guideline just holds. The family has 315 checks of patterns and 180 of
longer messages. The 1,890 checks of pieces are left out, because no piece is nearly as fast. They
could only lower these figures. Medians of mpiruns have a normal logarithm with this deviation, and
correlate over the sizes of a function. The figures are shares of campaigns in which a guideline is
called violated. The stated rate is 5 %, and with two standard errors 7.5 %. *ranks* is the rank-sum
test. *ranks, none* is the published method, which promises no rate for a campaign."""

POWER_NOTES = """\
The campaigns are those of the table of error rates, with 50 campaigns in a cell and a correlation
of 0.5. `MPI_Scan` is slower than its only mock-up by 10 % or 50 %, at one size or at all of them.
The figures are shares of campaigns in which this guideline is called violated. With ten mpiruns,
the p-value of a rank-sum test is .00009 or larger, so *ranks, Holm* cannot find anything among
these checks."""

SPLIT_NOTES = """\
Measured campaigns of Open MPI 4.1.4 with ten mpiruns. The mpiruns are divided into two halves in
all 252 ways. One half stands for each function, and the other for a mock-up of it. So nothing
differs but the mpiruns. The figures are shares of divisions in which a function is called slower
than itself. The stated rate is 5 %. Holm's method misses it once: medians of mpiruns with two
typical times are not normal. Permutations need no distribution."""

_CAMPAIGNS, _POWERED, _RATE, _TOLERANCE = 300, 50, 0.05, 0.05
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
        shares = rates(runs, 0.5, deviation, _POWERED, slower, sizes)
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
    means, ranks = welch_chances(left, right), rank_sum_chances(left, right)
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
