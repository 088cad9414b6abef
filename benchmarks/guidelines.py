"""Error rates and findings of `cpmodel guidelines`, for planted violations and for none.

For comparison, the table has the method of guideline verifiers: a separate one-sided rank test of
each check (Wilcoxon, Mann and Whitney, 5 %). This test uses neither the other checks nor a model of
the scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from results import Table
from scipy import stats

import callpath_modeler as cpm
from cpmodel_guidelines.answer import Verification
from cpmodel_guidelines.benchmark import benchmark_of
from cpmodel_guidelines.judge import GuidelineVerdict
from cpmodel_guidelines.rules import GuidelineKind, patterns
from cpmodel_guidelines.verification import Ask, verify

NOTES = """\
The series has 15 collectives at p = 8, 16, ... 128, five repetitions with a normal noise factor of
5 %, and 500 seeds. *found*: the share of planted violations of 10 % that are reported. *settings*:
the same share for the five scales of each violation. *false*: the share of runs that report a
violation of a guideline that holds. Worst case: every replacement of eight collectives takes
exactly as long as the collective, so any of these may be reported by chance. Disturbed: 5 % of the
calls take 2 to 5 times as long. *rank test*: a separate test of each check at 5 %, only for
guidelines between collectives. Crossing: a guideline that holds up to p = 128 and is violated from
p = 430 on, predicted at multiples of the largest scale. Here, *found* is the share of crossings
reported to hold as measured and to be violated at the target. *from* is the median of the reported
positions, with quartiles."""

_SCALES = (8, 16, 32, 64, 128)
_SEEDS, _REPETITIONS, _NOISE, _SLOWER = 500, 5, 0.05, 1.1
_ALPHA = 0.05
_DISTURBED = 0.05

Laws = Callable[[int], dict[str, float]]


@dataclass(frozen=True, slots=True)
class _Rates:
    """The results of all seeds, as shares of the planted violations and of the runs."""

    found: float
    settings: float
    false: float
    rank_found: float
    rank_false: float

    def cells(self) -> tuple[str, ...]:
        """Return the rates as text."""
        shares = (self.found, self.settings, self.false, self.rank_found, self.rank_false)
        return tuple("" if np.isnan(share) else f"{share:.1%}" for share in shares)


def table(shared: Path) -> Table:  # noqa: ARG001 - all of it is made here
    """Measure rates of planted violations, of none, and of crossings."""
    lines = [
        ("four planted", *_rates(_planted, _PLANTED).cells(), ""),
        ("four planted, disturbed", *_rates(_planted, _PLANTED, _DISTURBED).cells(), ""),
        ("none, margins of 9 to 50 %", *_rates(_kept, frozenset()).cells(), ""),
        ("none, worst case", *_rates(_equal, frozenset()).cells(), ""),
        ("none, worst case, disturbed", *_rates(_equal, frozenset(), _DISTURBED).cells(), ""),
        *(_crossings(factor) for factor in (4, 8, 16, 32)),
    ]
    head = ("guidelines", "found", "settings", "false", "rank test: found", "false", "from p")
    return Table(head, lines, range(1, 7))


def _kept(p: int) -> dict[str, float]:
    steps = np.log2(p)
    times = {"Barrier": 1.5 * steps, "Bcast": 2 * steps, "Reduce": 2.2 * steps,
             "Scan": 2.5 * steps, "Exscan": 2.6 * steps, "Reduce_local": 0.3,
             "Gather": 1 + 0.2 * p, "Scatter": 1 + 0.22 * p, "Allgather": 1.5 + 0.3 * p,
             "Alltoall": 2 + 0.4 * p}  # fmt: skip
    times["Allreduce"] = 0.85 * (times["Reduce"] + times["Bcast"])
    irregular = ("Gather", "Scatter", "Allgather", "Alltoall")
    return times | {f"{name}v": 1.1 * times[name] for name in irregular}


def _planted(p: int) -> dict[str, float]:
    times = _kept(p)
    times["Allreduce"] = _SLOWER * (times["Reduce"] + times["Bcast"])
    times["Scan"] = _SLOWER * (times["Exscan"] + times["Reduce_local"])
    times["Gatherv"] = times["Gather"] / _SLOWER
    times["Alltoall"] = times["Allgather"] / _SLOWER
    return times


_PLANTED = frozenset({
    "Allreduce <= Reduce + Bcast", "Scan <= Exscan + Reduce_local", "Gather <= Gatherv",
    "Allgather <= Alltoall",
})  # fmt: skip


def _equal(p: int) -> dict[str, float]:
    times = _kept(p)
    times["Allreduce"] = times["Barrier"] = times["Reduce"] + times["Bcast"]
    times["Scan"] = times["Exscan"] + times["Reduce_local"]
    times["Alltoall"] = times["Allgather"]
    irregular = ("Gather", "Scatter", "Allgather", "Alltoall")
    return times | {f"{name}v": times[name] for name in irregular}


def _crossing(p: int) -> dict[str, float]:
    steps = np.log2(p)
    return {"Allgather": 2 + 0.1 * p, "Alltoall": 10 + 4 * steps, "Gather": 1 + 0.05 * p,
            "Reduce": 2 * steps, "Allreduce": 3 * steps, "Bcast": 1.5 * steps}  # fmt: skip


def _experiment(laws: Laws, seed: int, disturbed: float = 0.0) -> cpm.Experiment:
    random = np.random.default_rng(seed)

    def factor() -> float:
        slow = random.uniform(2, 5) if disturbed and random.random() < disturbed else 1.0
        return slow * (1 + _NOISE * random.standard_normal())

    rows = [
        (f"MPI_{name}", p, number, time * factor())
        for p in _SCALES
        for name, time in laws(p).items()
        for number in range(1, _REPETITIONS + 1)
    ]
    frame = pd.DataFrame(rows, columns=["call", "p", "repetition", "latency"])
    return cpm.from_frame(
        frame, callpath="call", parameters=["p"], repetition="repetition", metrics={"latency": "us"}
    )


def _rates(laws: Laws, planted: frozenset[str], disturbed: float = 0.0) -> _Rates:
    counts: list[tuple[float, ...]] = []
    for seed in range(_SEEDS):
        found = verify(benchmark_of(_experiment(laws, seed, disturbed)), patterns())
        told = found.rows_that_are(GuidelineVerdict.VIOLATED)
        names = {row.guideline.text for row in told}
        settings = sum(row.here.violated for row in told
                       if row.here is not None and row.guideline.text in planted)  # fmt: skip
        by_rank = _by_rank(found)
        counts.append(
            (
                len(names & planted),
                settings / len(_SCALES),
                bool(names - planted),
                len(by_rank & planted),
                bool(by_rank - planted),
            )
        )
    found_, settings_, false, rank_found, rank_false = np.mean(counts, axis=0)
    share = 1 / len(planted) if planted else np.nan
    return _Rates(found_ * share, settings_ * share, false, rank_found * share, rank_false)


def _by_rank(found: Verification) -> set[str]:
    """Return guidelines between collectives that a rank test rejects at some scale."""
    bench = found.benchmark
    scales: Mapping[float, int] = {p: k for k, (p,) in enumerate(bench.settings.tolist())}
    told = set()
    for check in found.here.checks:
        if check.guideline.kind is GuidelineKind.PATTERN and check.can_break:
            k = scales[check.left.setting[0]]
            left = bench.values[check.left.row, k]
            right = np.sum([bench.values[place.row, k] for place in check.right], axis=0)
            if stats.mannwhitneyu(left, right, alternative="greater").pvalue <= _ALPHA:
                told.add(check.guideline.text)
    return told


def _crossings(factor: int) -> tuple[str, ...]:
    """Return the rate and the positions of predicted crossings."""
    target, turning, false, where = float(factor * _SCALES[-1]), 0, 0, []
    for seed in range(_SEEDS):
        found = verify(benchmark_of(_experiment(_crossing, seed)), patterns(), ask=Ask(target))
        for row in found.rows:
            if row.guideline.text == "Allgather <= Alltoall":
                turning += row.turns
                if row.crossing is not None and row.crossing.likely is not None:
                    where.append(row.crossing.likely)
            else:
                false += row.ahead is not None and row.ahead.violated > 0
    first, middle, last = np.percentile(where, [25, 50, 75]) if where else [np.nan] * 3
    place = f"{middle:.0f} ({first:.0f} ... {last:.0f})"
    name = f"crossing, at {factor} times the largest scale"
    return name, f"{turning / _SEEDS:.1%}", "", f"{false / _SEEDS:.1%}", "", "", place
