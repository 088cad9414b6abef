"""False alarms and named slowdowns of `cpmodel watch`, with the noise of measured programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from histories import named_after
from laws import AbsentError
from results import Table

import callpath_modeler as cpm
from callpath_modeler.arrays import FloatArray
from callpath_modeler.history.alarms import AlarmRule
from callpath_modeler.history.commits import WORTH
from callpath_modeler.history.judgement import JudgedHistory, judge

PROGRAMS = ("lulesh.weak", "snap.weak", "npb_ft.strong", "comd.weak", "amg.weak")
SLOWDOWNS = (1.1, 1.2, 1.5, 2.0)
NOISES = (0.03, 0.1, None)
"""Medians over call paths that the noise is scaled to; None = as measured."""
_COMMITS, _SCALES, _REPETITIONS, _HISTORIES = 100, 5, 3, 20
_SHARE = 0.05
_RULE = AlarmRule()

NOTES = f"""\
The Score-P runs of five programs, on a machine with two overloaded cores, have five repetitions at
each scale. Each simulated run takes the deviations of all call paths from one measured run, so it
has their common noise, tails and dependence. Noise is the standard deviation of the logarithm of a
call path, as the median over call paths: as measured, or scaled. A history has {_COMMITS} commits,
and the {_SCALES} largest scales with {_REPETITIONS} repetitions. "False": histories of
{_HISTORIES} without a change in which a call path is named; 3 are allowed. The other columns are
slowdowns of one call path of {_SHARE:.0%} of the time or more: histories of {_HISTORIES} in which
it is named no later than the third commit with it, and in brackets those in which it is named at
all, after 20 to 60 commits with it."""


@dataclass(frozen=True, slots=True)
class MeasuredNoise:
    """Costs and noise of the call paths of a measured program.

    Attributes
    ----------
    scales : [K] numbers of processes
    cost : [n, K] typical values
    deviation : [n, m] deviations of logarithms, of each measured run
    """

    scales: FloatArray
    cost: FloatArray
    deviation: FloatArray

    @classmethod
    def of(cls, directory: Path) -> MeasuredNoise:
        """Return the noise of the repetitions in a directory of runs."""
        scales, values = cpm.load([directory]).by_point("time", "p")
        scales, values = scales[-_SCALES:], values[:, -_SCALES:]
        measured = (np.nan_to_num(values) > 0).all(axis=(1, 2))
        cost = np.exp(np.log(values[measured]).mean(axis=2))
        worth = (cost >= WORTH * cost.sum(axis=0)).any(axis=1)
        logs, count = np.log(values[measured][worth]), values.shape[2]
        deviation = (logs - logs.mean(axis=2, keepdims=True)) * np.sqrt(count / (count - 1))
        return cls(scales, cost[worth], deviation.reshape(len(logs), -1))

    @property
    def typical(self) -> float:
        """Median of the standard deviations of the call paths."""
        return float(np.median(self.deviation.std(axis=1)))

    def history(self, random: np.random.Generator, noise: float | None) -> FloatArray:
        """Return a history without a change, [n, commits, scales, repetitions]."""
        shape = _COMMITS, len(self.scales), _REPETITIONS
        drawn = self.deviation[:, random.integers(self.deviation.shape[1], size=shape)]
        factor = 1.0 if noise is None else noise / self.typical
        return np.asarray(self.cost[:, None, :, None] * np.exp(factor * drawn))

    def judged(self, values: FloatArray) -> JudgedHistory:
        """Return the judgement with the default rule."""
        return judge(values, self.scales, 8 * float(self.scales[-1]), _RULE)


def table(shared: Path) -> Table:
    """Measure false alarms and slowdowns.

    Raises
    ------
    AbsentError
        If the measurements are absent.
    """
    lines = []
    for program in PROGRAMS:
        directory = shared / "data" / "scorep" / program
        if not directory.is_dir():
            raise AbsentError(f"no {directory}")
        measured = MeasuredNoise.of(directory)
        for noise in NOISES:
            lines.append((program, *_line(measured, noise)))
            print(*lines[-1], flush=True)
    sizes = (f"+{size - 1:.0%}" for size in SLOWDOWNS)
    return Table(("program", "call paths", "noise", "false", *sizes), lines, range(1, 8))


def _line(measured: MeasuredNoise, noise: float | None) -> tuple[str, ...]:
    said = f"{measured.typical:.0%} measured" if noise is None else f"{noise:.0%}"
    alarms = sum(
        bool(measured.judged(measured.history(np.random.default_rng([seed, 0]), noise)).own)
        for seed in range(_HISTORIES)
    )
    found = [_named(measured, noise, size) for size in SLOWDOWNS]
    cells = (f"{soon} ({named})" for soon, named in found)
    return str(len(measured.cost)), said, str(alarms), *cells


def _named(measured: MeasuredNoise, noise: float | None, size: float) -> tuple[int, int]:
    """Return in how many histories a slowdown is named within three commits, and at all."""
    share = measured.cost[:, -1] / measured.cost[:, -1].sum()
    costly = np.flatnonzero(share >= _SHARE)
    after = []
    for seed in range(_HISTORIES):
        random = np.random.default_rng([seed, 1])
        row, commit = int(random.choice(costly)), int(random.integers(40, 80))
        values = measured.history(random, noise)
        values[row, commit:] *= size
        after.append(named_after(measured.judged(values), row, commit))
    return sum(n is not None and n <= 3 for n in after), sum(n is not None for n in after)
