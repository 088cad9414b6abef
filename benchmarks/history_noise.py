"""False names, planted slowdowns and joint changes of `cpmodel watch`, in twelve kinds of noise.

`python benchmarks/history_noise.py --histories 10 quiet outliers` measures some kinds quickly.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from histories import named_after, peer_changes
from results import Table

from callpath_modeler.arrays import BoolArray, FloatArray
from callpath_modeler.history.alarms import AlarmRule
from callpath_modeler.history.judgement import JudgedHistory, judge

COMMITS, CALL_PATHS, REPETITIONS, CHANGED = 60, 25, 3, 30
SCALES = 2.0 ** np.arange(3, 7)
HISTORIES, OF_PEER, SLOWDOWNS = 60, 20, (1.2, 1.5)
RULE = AlarmRule()
STREAM = 29
"""Seed of all histories; the constants of the judgement were chosen with another one."""
_QUIET = 0.02
_SHAPE = CALL_PATHS, COMMITS, len(SCALES), REPETITIONS

NOTES = f"""\
Each history has {COMMITS} commits, {CALL_PATHS} call paths, p = 8 ... 64 with {REPETITIONS}
repetitions, and own noise of 2 % of each value besides the named noise. "Pareto tails": instead,
each value is 1 + 0.02 X with the Pareto index 2. "AR": each call path has a factor of each commit
with a standard deviation of 3 % and this correlation from commit to commit. "Sick runs": 5 % of the
runs are slower by 10 to 50 %, each call path by another factor. "Sick nights": each call path is
slower by 12 % in 5 % of the nights, each on its own. "Outliers": 2 % of the values are tripled.
"Machine": at commit {CHANGED}, a third of the call paths become slower by 10 %. "By scale": noise
of 2, 4, 8 and 16 % at the four scales. "Weekly": a wave of 5 % with a period of seven commits, of
each call path. "Day to day": each call path has an independent factor of 5 % of each commit.
"Creep": one call path becomes slower by 1 % with each commit, which is a true change. *false*:
histories in which a call path is named that was not planted; *allowed*: 5 % and two standard
errors. The other columns count histories in which a random call path becomes slower at commit
{CHANGED} and is named no later than the third commit with it; *best scale*: with the runs of the
one scale that names most of them. Apache Otava dates changes in the medians of repetitions of each
call path at the largest scale, relative to those of all, after the last commit: *false* histories,
and those whose planted change it dates within three commits. A group: call paths become slower
by factors of 1.5, 1.9 and 2.3. A third alike: they become slower by 10 %."""

COLUMNS = (
    "noise", "number", "false", "allowed", "+20 %", "+50 %", "+20 %, best scale",
    "Otava: false", "Otava: +20 %",
)  # fmt: skip

Noise = Callable[[np.random.Generator], FloatArray]


def _own(random: np.random.Generator, sd: float | FloatArray = _QUIET) -> FloatArray:
    return np.asarray(sd * random.standard_normal(_SHAPE))


def _regressive(random: np.random.Generator, rho: float) -> FloatArray:
    steps = 0.03 * random.standard_normal((CALL_PATHS, COMMITS))
    steps[:, 1:] *= np.sqrt(1 - rho**2)
    for commit in range(1, COMMITS):
        steps[:, commit] += rho * steps[:, commit - 1]
    return steps[:, :, None, None] + _own(random)


def _sick_runs(random: np.random.Generator) -> FloatArray:
    sick = random.random(_SHAPE[1:]) < 0.05
    slower = np.log1p(random.uniform(0.1, 0.5, _SHAPE))
    return np.where(sick, slower, 0.0) + _own(random)


def _sick_nights(random: np.random.Generator) -> FloatArray:
    sick = random.random(_SHAPE[:2]) < 0.05
    return np.where(sick, np.log(1.12), 0.0)[:, :, None, None] + _own(random)


def _outliers(random: np.random.Generator) -> FloatArray:
    return np.where(random.random(_SHAPE) < 0.02, np.log(3.0), 0.0) + _own(random)


def _machine(random: np.random.Generator) -> FloatArray:
    logs = _own(random)
    rows = random.choice(CALL_PATHS, round(CALL_PATHS / 3), replace=False)
    logs[rows, CHANGED:] += np.log(1.1)
    return logs


def _weekly(random: np.random.Generator) -> FloatArray:
    phase = random.uniform(0, 2 * np.pi, (CALL_PATHS, 1))
    wave = 0.05 * np.sin(2 * np.pi * np.arange(COMMITS) / 7 + phase)
    return wave[:, :, None, None] + _own(random)


def _creep(random: np.random.Generator) -> FloatArray:
    logs = _own(random)
    logs[random.integers(CALL_PATHS)] += 0.01 * np.arange(COMMITS)[:, None, None]
    return logs


NOISES: dict[str, Noise] = {
    "quiet": _own,
    "Pareto tails": lambda random: np.log1p(0.02 * random.pareto(2.0, _SHAPE)),
    "AR 0.8": lambda random: _regressive(random, 0.8),
    "AR 0.95": lambda random: _regressive(random, 0.95),
    "sick runs": _sick_runs,
    "sick nights": _sick_nights,
    "outliers": _outliers,
    "machine": _machine,
    "by scale": lambda random: _own(random, np.array([0.02, 0.04, 0.08, 0.16])[:, None]),
    "weekly": _weekly,
    "day to day": lambda random: (
        0.05 * random.standard_normal(_SHAPE[:2])[:, :, None, None] + _own(random)
    ),
    "creep": _creep,
}


def history(noise: Noise, seed: int, factor: float = 1.0) -> tuple[FloatArray, int]:
    """Return a history, and the call path that becomes slower by a factor."""
    random = np.random.default_rng([seed, STREAM])
    cost = random.dirichlet(np.ones(CALL_PATHS)) + 1e-3
    growth = random.choice([0.0, 0.25, 0.5, 1.0], CALL_PATHS)
    law = cost[:, None] * (SCALES / SCALES[-1]) ** growth[:, None]
    row = int(random.integers(CALL_PATHS))
    values = law[:, None, :, None] * np.exp(noise(random))
    values[row, CHANGED:] *= factor
    return values, row


def judged(values: FloatArray, control: BoolArray | None = None) -> JudgedHistory:
    """Return the judgement with the default rule."""
    return judge(values, SCALES[-values.shape[2] :], None, RULE, control)


def blames(found: JudgedHistory) -> bool:
    """Return whether a call path is named, or a few of them as a group."""
    return bool(found.own) or any(each.is_few for each in found.joint)


def counts(name: str, number: int) -> tuple[int, ...]:
    """Return false names of a noise, and planted slowdowns that are named soon.

    The last number is that of the smaller slowdown at the single scale that shows most of them.
    """
    noise = NOISES[name]
    false = sum(blames(judged(history(noise, seed)[0])) for seed in range(number))
    smaller, larger = (
        [history(noise, seed, factor) for seed in range(number)] for factor in SLOWDOWNS
    )
    single = [
        _soon([(values[:, :, [scale]], row) for values, row in smaller])
        for scale in range(len(SCALES))
    ]
    return false, _soon(smaller), _soon(larger), max(single)


def peer_counts(name: str, number: int) -> tuple[int, int]:
    """Return false histories of Apache Otava, and planted slowdowns that it dates."""
    noise = NOISES[name]
    steady = [history(noise, seed)[0] for seed in range(number)]
    cases = [history(noise, seed, SLOWDOWNS[0]) for seed in range(number)]
    false, _ = peer_changes(steady)
    dated, _ = peer_changes([values for values, _ in cases])
    hits = sum(
        any(own == row and abs(at - CHANGED) <= 3 for own, at in found)
        for found, (_, row) in zip(dated, cases, strict=True)
    )
    return sum(map(bool, false)), hits


def _soon(cases: Sequence[tuple[FloatArray, int]]) -> int:
    """Return the number of histories that name the slower call path by the third commit."""
    after = [named_after(judged(values), row, CHANGED) for values, row in cases]
    return sum(each is not None and each <= 3 for each in after)


JOINT = {
    "group, 2 of 8": (8, (1.5, 1.9)),
    "group, 2 of 12": (12, (1.5, 1.9)),
    "group, 3 of 20": (20, (1.5, 1.9, 2.3)),
    "third alike, 8": (8, (1.1,) * 3),
    "third alike, 12": (12, (1.1,) * 4),
    "third alike, 20": (20, (1.1,) * 7),
    "all drift, 8": (8, ()),
    "all drift, 20": (20, ()),
}


def joint_verdict(name: str, seed: int) -> str:
    """Return what is said about a joint change at the tenth of 13 commits."""
    paths, factors = JOINT[name]
    random = np.random.default_rng([seed, 21])
    cost = 0.1 * np.arange(1.0, paths + 1)[:, None, None, None]
    noise = _QUIET * random.standard_normal((paths, 13, 3, 3))
    values = cost * np.exp(noise)
    if not factors:
        values *= np.exp(0.02 * np.arange(13.0))[:, None, None]
    rows = random.choice(paths, len(factors), replace=False)
    values[rows, 9:] *= np.array(factors).reshape(-1, 1, 1, 1)
    found = judged(values)
    if found.own:
        return "named"
    if any(each.is_few for each in found.joint):
        return "group"
    if any(each.is_alike for each in found.joint):
        return "machine likely"
    return "joint" if found.joint else "passes"


def table(_: Path, names: tuple[str, ...] = (*NOISES,), number: int = HISTORIES) -> Table:
    """Measure false names and planted changes."""
    rate = RULE.false_alarms
    allowed = int(number * rate + 2 * np.sqrt(number * rate * (1 - rate)))
    lines = []
    for name in names:
        false, *soon = counts(name, number)
        limit = "" if name == "creep" else str(allowed)
        few = min(number, OF_PEER)
        peer = [f"{each} of {few}" for each in peer_counts(name, few)]
        lines.append((name, str(number), str(false), limit, *map(str, soon), *peer))
        print(*lines[-1], sep="\t", flush=True)
    return Table(COLUMNS, lines, range(1, len(COLUMNS)))


def main() -> None:
    """Measure some kinds of noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("noises", nargs="*", help=f"default: all of {', '.join(NOISES)}")
    parser.add_argument("--histories", type=int, default=HISTORIES, help="of each kind")
    parser.add_argument("--joint", action="store_true", help="measure joint changes only")
    said = parser.parse_args()
    if said.joint:
        for name in JOINT:
            verdicts = [joint_verdict(name, seed) for seed in range(said.histories)]
            print(name, dict(Counter(verdicts)), sep="\t", flush=True)
        return
    table(Path(), tuple(said.noises) or (*NOISES,), said.histories)


if __name__ == "__main__":
    main()
