"""False alarms and findings of `cpmodel watch` in simulated histories, beside Apache Otava's.

Own noise, common noise, drift and one kernel upgrade are planted; see `NOTES`.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from environments import OTAVA, WORK
from results import Table

from callpath_modeler.arrays import FloatArray
from callpath_modeler.history.alarms import AlarmRule
from callpath_modeler.history.judgement import JudgedHistory, judge

NOTES = """\
Each history has 200 commits, 100 call paths, and 5 scales with 3 repetitions. All noise is
log-normal. Common noise is one factor of each run, own noise one of each value. The machine drifts
by a wave of 5 % and a random walk of 0.3 % a commit. At one commit, a kernel upgrade makes all call
paths slower, each by another amount: 8 % with a standard deviation of 3 %. "Steady" has neither
drift nor upgrade. "Heavy tails": own noise has the tails of Student's t with 4 degrees of freedom.
The stated rate of false alarms is 5 % of histories, and "allowed" adds two standard errors. A
history has a false alarm if a call path is named that was not planted. Slowdown: one call path of 5
% of the time becomes slower by half, and "within three" counts those named no later than the third
commit with it. Growth: under strong scaling, a call path of constant cost, 5 % of the time at the
largest scale, has an additional cost O(log p) of 2 % of the program there. At 8 times that scale,
where the program takes an eighth of the time, this is 20 %. Apache Otava analyses the value of each
call path at the largest scale, relative to the common factor or as it is, with its default options.
It has no question about growth. Its columns count histories with a false alarm, or planted changes
that it dates within three commits."""

COMMITS, CALL_PATHS, REPETITIONS = 200, 100, 3
SCALES = 2.0 ** np.arange(5, 10)
TARGET = 8 * float(SCALES[-1])
NOISES = (0.01, 0.03, 0.1)
COMMON = (0.0, 0.05, 0.1)
_SHARE, _LOG_SHARE = 0.05, 0.02
_PLANTED = 20
_HISTORIES, _PEER_HISTORIES = 25, 3
_RULE = AlarmRule()


@dataclass(frozen=True, slots=True)
class World:
    """The noise of a simulated history.

    Attributes
    ----------
    own, common : standard deviation of logarithms, of each value and of each run
    drifts : True = the machine drifts, and one kernel upgrade
    tails : True = own noise has the tails of Student's t with 4 degrees of freedom
    """

    own: float
    common: float
    drifts: bool = True
    tails: bool = False

    def factors(self, random: np.random.Generator) -> FloatArray:
        """Return the noise of a history, [call paths, commits, scales, repetitions]."""
        shape = (CALL_PATHS, COMMITS, len(SCALES), REPETITIONS)
        logs = self.own * (
            random.standard_t(4, shape) / np.sqrt(2)
            if self.tails
            else random.standard_normal(shape)
        )
        logs += self.common * random.standard_normal(shape[1:])
        if self.drifts:
            wave = np.sin(2 * np.pi * np.arange(COMMITS) / 90 + random.uniform(0, 2 * np.pi))
            walk = np.cumsum(random.standard_normal(COMMITS))
            logs += (0.05 * wave + 0.003 * walk)[:, None, None]
            upgrade = int(random.integers(40, 160))
            slower = 0.08 + 0.03 * random.standard_normal(CALL_PATHS)
            logs[:, upgrade:] += slower[:, None, None, None]
        return np.asarray(np.exp(logs))


def weak(random: np.random.Generator) -> FloatArray:
    """Return true costs that stay constant or grow, [call paths, scales]."""
    cost = random.dirichlet(np.ones(CALL_PATHS)) + 1e-4
    growth = random.choice([0.0, 0.25, 0.5, 1.0], CALL_PATHS)
    return np.asarray(cost[:, None] * (SCALES / SCALES[-1]) ** growth[:, None])


def with_slowdown(world: World, seed: int) -> tuple[FloatArray, int, int]:
    """Return a history in which one call path becomes slower by half, its row, and the commit."""
    random = np.random.default_rng([seed, 1])
    cost, row, commit = (
        weak(random),
        int(random.integers(CALL_PATHS)),
        int(random.integers(60, 180)),
    )
    cost[row] = 0.0
    cost[row] = _SHARE / (1 - _SHARE) * cost.sum(axis=0)
    values = world.factors(random) * cost[:, None, :, None]
    values[row, commit:] *= 1.5
    return values, row, commit


def with_growth(world: World, seed: int) -> tuple[FloatArray, int, int]:
    """Return a history in which one call path begins to grow, its row, and the commit."""
    random = np.random.default_rng([seed, 2])
    row, commit = int(random.integers(CALL_PATHS)), int(random.integers(60, 180))
    cost = random.dirichlet(np.ones(CALL_PATHS))[:, None] * SCALES[-1] / SCALES
    cost[row] = 0.0
    cost[row] = _SHARE / (1 - _SHARE) * cost.sum(axis=0)[-1]
    program = cost.sum(axis=0)[-1]
    later = cost.copy()
    later[row] += _LOG_SHARE * program * np.log2(SCALES) / np.log2(SCALES[-1])
    values = world.factors(random)
    values[:, :commit] *= cost[:, None, :, None]
    values[:, commit:] *= later[:, None, :, None]
    return values, row, commit


def unchanged(world: World, seed: int) -> FloatArray:
    """Return a history in which no call path changes on its own."""
    random = np.random.default_rng([seed, 0])
    cost = weak(random)
    return world.factors(random) * cost[:, None, :, None]


def named_after(found: JudgedHistory, row: int, commit: int) -> int | None:
    """Return how many commits with the change were seen when it was named; None = never."""
    raised = [
        each.raised
        for each in found.own
        if each.row == row and each.raised >= commit and each.is_worse
    ]
    return min(raised) - commit + 1 if raised else None


def judged(values: FloatArray) -> JudgedHistory:
    """Return the judgement with the default rule."""
    return judge(values, SCALES, TARGET, _RULE)


def table(_: Path) -> Table:
    """Measure false alarms, and planted changes."""
    worlds = [
        World(own, common, drifts)
        for drifts in (False, True)
        for own in NOISES
        for common in COMMON
    ]
    worlds.append(World(0.03, 0.05, tails=True))
    lines = []
    for world in worlds:
        lines.append(_false_alarms(world))
        print(*lines[-1], flush=True)
    for own in NOISES:
        lines += _planted(World(own, 0.1))
        print(*lines[-2], *lines[-1], flush=True)
    head = ("histories", "number", "named", "within three", "allowed", "Otava relative", "Otava")
    return Table(head, lines, range(1, 7))


def _false_alarms(world: World) -> tuple[str, ...]:
    seen = sum(bool(judged(unchanged(world, seed)).own) for seed in range(_HISTORIES))
    rate = _RULE.false_alarms
    allowed = int(_HISTORIES * (rate + 2 * np.sqrt(rate * (1 - rate) / _HISTORIES)))
    few = _PEER_HISTORIES
    peers = peer_changes([unchanged(world, seed) for seed in range(few)])
    said = [f"{sum(bool(named) for named in each)} of {few}" for each in peers]
    name = "drift and upgrade" if world.drifts else "steady"
    what = f"false alarms, {name}, {_noise(world)}{', heavy tails' * world.tails}"
    return what, str(_HISTORIES), str(seen), "", str(allowed), *said


def _planted(world: World) -> Iterator[tuple[str, ...]]:
    for name, make in (("slowdown", with_slowdown), ("growth", with_growth)):
        cases = [make(world, seed) for seed in range(_PLANTED)]
        after = [named_after(judged(values), row, commit) for values, row, commit in cases]
        named = sum(each is not None for each in after)
        soon = sum(each is not None and each <= 3 for each in after)
        counts = peer_changes([values for values, _, _ in cases[:_PEER_HISTORIES]])
        said = []
        for each in counts:
            hits = sum(
                any(r == row and abs(at - commit) <= 3 for r, at in found)
                for found, (_, row, commit) in zip(each, cases, strict=False)
            )
            said.append(f"{hits} of {_PEER_HISTORIES}")
        what = f"planted {name}, {_noise(world)}"
        yield what, str(_PLANTED), str(named), str(soon), "", *said


def _noise(world: World) -> str:
    return f"own {100 * world.own:g} %, common {100 * world.common:g} %"


_SCRIPT = """
import json, sys
from otava.analysis import compute_change_points
for line in sys.stdin:
    series = json.loads(line)
    found = [[row, int(each.index)] for row, values in enumerate(series)
             for each in compute_change_points(values)[0]]
    print(json.dumps(found), flush=True)
"""


def peer_changes(histories: list[FloatArray]) -> list[list[list[list[int]]]]:
    """Return the change points [row, commit] of Otava: of relative values, and as they are."""
    inputs = []
    for relative in (True, False):
        for values in histories:
            largest = values[:, :, -1]
            shared = np.exp(np.median(np.log(largest), axis=0)) if relative else 1.0
            inputs.append(json.dumps(np.median(largest / shared, axis=-1).tolist()))
    script = WORK / "otava_change_points.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(_SCRIPT, "utf-8")
    command: list[str | Path] = [OTAVA.executable(), script]
    done = subprocess.run(
        command, input="\n".join(inputs), capture_output=True, text=True, check=True
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [found[: len(histories)], found[len(histories) :]]
