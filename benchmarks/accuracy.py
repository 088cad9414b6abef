"""Accuracy on known laws with noise: figures of cpmodel and Extra-P, and goals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import laws
import scores
from best_possible import oracle
from environments import EXTRAP
from laws import APPLICATION, REST, Fitted, Scenario
from results import Row, Table, compared
from scores import Case, Score

SEEDS = (1, 2, 3)

NOTES = """\
Laws, noise and points follow the usual protocol of the field: c0 + c1 p^i log2(p)^j over 42
classes. Noise of n % is a factor 1 + U(-n/2, n/2) / 100. P5 is 8 ... 128, P8 is 8 ... 1024, "x 5"
means five repetitions, and 16 x is 16 times the largest point. The figures are pooled over three
seeds with 300 laws each. Brackets show the smallest and the largest figure of the three. All laws
of a seed are one experiment, unless the line says "one by one". An application has 200 call paths
with different growth, and each seed has 10 applications. Both programs get the same measurements.
The error is the median. Late growth is flat at first, then growing. If a goal depends on Extra-P,
it is Extra-P's figure.
"""

BAND_NOTES = """\
Bands of 95 % over laws in normal form: 300 of each kind for each of 3 seeds, sets of points and
noise. The columns state how many bands hold the truth, and how many hold the median of five fresh
repetitions at the target. The width is relative to the 95 % band of an observer who knows the class
and the noise. Below the goal are laws of strong scaling. In the last line, the rest is a constant,
log2(p), sqrt(p) or p. Its share at the largest point is uniform in its logarithm, from a thousandth
to all.
"""

LIMIT_NOTES = """\
"Somebody who knows" is an oracle. It knows the laws of these applications, their probabilities, the
distribution of their shares, and the noise. It does not know the law of a single call path. Its
predictions are posterior medians. The applications are the same as in the table of
goals.
"""

_NORMAL = {
    "const": "constants",
    "pmnf1": "one term",
    "hidden": "hidden growth, 42 classes",
    "hidden_realistic": "hidden growth",
    "pmnf2": "two terms",
}
_SHARED_WORK = {"strong": "strong scaling", "ushape": "U-shape", REST: "1/p and a rest"}
_ODD = {
    "step": "step",
    "segmented": "late growth",
    "saturating": "saturation",
    "ceillog": "tree depth",
    "ceilnode": "ceil(p / N)",
}
"""Laws outside the performance model normal form."""

_BAND_NOISES = (2, 5, 10, 20, 50)

_NOTHING = 1e-9
"""Errors below this limit are rounding errors, and have no meaningful ratio."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal for a score, pooled over some scenarios.

    Attributes
    ----------
    what : name of the scenarios in the table
    scenarios : scenarios to draw
    score : score of the predictions
    at_least, at_most : goal; without either, the goal is at most the figure of Extra-P
    """

    what: str
    scenarios: Sequence[Scenario]
    score: Score
    at_least: float | None = None
    at_most: float = math.inf


def goals() -> list[Goal]:
    """Return the goals, one per line of the table."""
    found = [*_constants(), *_one_term(), *_applications(), *_other_laws(), *_odd_laws()]
    alone = [Scenario(law, "P5", 5, 10, alone=True) for law in ("const", "pmnf1")]
    everything = list(dict.fromkeys(s for goal in found for s in goal.scenarios))
    return [
        *found,
        _goal("constants", alone[0], scores.FALSE_GROWTH, at_most=0.03),
        _goal("one term", alone[1], scores.EXACT, at_least=0.86),
        Goal("all of the above", everything, scores.NOT_POSITIVE, at_most=0),
    ]


def _goal(
    what: str,
    scenario: Scenario,
    score: Score,
    at_least: float | None = None,
    at_most: float = math.inf,
) -> Goal:
    return Goal(f"{what}, {scenario}", [scenario], score, at_least, at_most)


def _constants() -> Iterator[Goal]:
    for repetitions, noises in ((5, (1, 2, 5, 10, 20, 50, 100)), (1, (2, 10, 50))):
        for noise in noises:
            scenario = Scenario("const", "P5", repetitions, noise)
            yield _goal("constants", scenario, scores.FALSE_GROWTH, at_most=0.03)


def _one_term() -> Iterator[Goal]:
    of_five = ((10, 0.86, 0.006), (20, 0.75, 0.016), (50, 0.5, 0.08), (100, 0.33, 0.25))
    for noise, exact, error in of_five:
        scenario = Scenario("pmnf1", "P5", 5, noise)
        yield _goal("one term", scenario, scores.EXACT, at_least=exact)
        yield _goal("one term", scenario, scores.ERROR_16, at_most=error)
    for noise, exact in ((10, 0.7), (20, 0.55), (50, 0.3)):
        yield _goal("one term", Scenario("pmnf1", "P5", 1, noise), scores.EXACT, at_least=exact)
    hidden = Scenario("hidden_realistic", "P5", 5, 10)
    yield _goal("hidden growth", hidden, scores.ERROR_16, at_most=0.1)
    yield _goal("hidden growth", hidden, scores.DOUBLE_128, at_least=0.75)


def _applications() -> Iterator[Goal]:
    for noise, top, excess in ((10, 0.92, 0.84), (20, 0.86, 0.72), (50, 0.78, 0.58)):
        scenario = Scenario(APPLICATION, "P5", 5, noise)
        yield _goal("application", scenario, scores.TOP, at_least=top)
        yield _goal("application", scenario, scores.TOP_EXCESS, at_least=excess)
        yield _goal("application", scenario, scores.TOTAL, at_most=0.4)
        yield _goal("application", scenario, scores.FALSE_GROWTH, at_most=0.03)


def _other_laws() -> Iterator[Goal]:
    for noise in (0, 2, 5):
        scenario = Scenario("pmnf2", "P8", 5, noise)
        yield _goal("two terms", scenario, scores.ERROR_128, at_most=0.15)
    for noise in (2, 10):
        scenario = Scenario("strong", "P8", 5, noise)
        yield _goal("strong scaling", scenario, scores.DOUBLE_128, at_least=0.95)
        yield _goal("strong scaling", scenario, scores.NOT_POSITIVE, at_most=0)
    for noise in (2, 5):
        scenario = Scenario("ushape", "P8", 5, noise)
        yield _goal("U-shape", scenario, scores.GROWS, at_least=0.8)
        yield _goal("U-shape", scenario, scores.NOT_POSITIVE, at_most=0)


def _odd_laws() -> Iterator[Goal]:
    for law, what in _ODD.items():
        for regime in ("P5", "P8"):
            scenario = Scenario(law, regime, 5, 5)
            yield _goal(what, scenario, scores.TOLD, at_least=0.8)
            yield _goal(what, scenario, scores.ERROR_16)


def table(shared: Path) -> Table:
    """Measure every goal.

    Raises
    ------
    AbsentError
        If the protocol is absent.
    """
    ours, peer = fitted(shared, laws.ours), fitted(shared, laws.extrap)
    rows = []
    for goal in goals():
        found = _by_seed(goal.score, goal.scenarios, ours)
        # Extra-P has no bands, and models each call path separately.
        unlike = goal.score is scores.TOLD or any(s.alone for s in goal.scenarios)
        theirs = None if unlike else _by_seed(goal.score, goal.scenarios, peer)
        rows.append(_row(goal, found, theirs))
    return compared(rows)


def normal_forms() -> list[Scenario]:
    """Return the scenarios for bands: laws in normal form, with noise."""
    return [
        Scenario(law, regime, 5, noise)
        for law in _NORMAL
        for regime in ("P5", "P8")
        for noise in _BAND_NOISES
    ]


def bands(shared: Path) -> Table:
    """Measure the coverage and the width of bands.

    Raises
    ------
    AbsentError
        If the protocol is absent.
    """
    ours, everything = fitted(shared, laws.ours), normal_forms()
    groups = {"all": everything}
    groups |= {what: [s for s in everything if s.law == law] for law, what in _NORMAL.items()}
    groups |= {f"{n} % noise": [s for s in everything if s.noise == n] for n in _BAND_NOISES}
    shown = (scores.HELD_4, scores.HELD_16, scores.AGAIN_4, scores.AGAIN_16, scores.WIDTH_16)
    wanted = ("goal", "92–98%", "92–98%", "", "", "≤ 3")
    lines = [
        (what, *(_figure(score, _by_seed(score, group, ours)) for score in shown))
        for what, group in groups.items()
    ]
    # The protocol does not state their terms, so the least width is not known.
    shared_work = [
        (what, *(_figure(score, _by_seed(score, group, ours)) for score in shown[:-1]), "")
        for law, what in _SHARED_WORK.items()
        for group in [[Scenario(law, r, 5, n) for r in ("P5", "P8") for n in _BAND_NOISES]]
    ]
    every = [*lines, wanted, *shared_work]
    return Table(("laws", *(score.what for score in shown)), every, range(1, 6))


def limits(shared: Path) -> Table:
    """Measure the best possible ranking of applications.

    Raises
    ------
    AbsentError
        If the protocol is absent.
    """
    bench = laws.protocol(shared / "tools" / "bench_accuracy.py")
    ours, knowing = fitted(shared, laws.ours), fitted(shared, partial(oracle, bench))
    ranked = (scores.TOP, scores.TOP_EXCESS, scores.TOTAL)
    lines = [
        (
            f"{goal.what}: {goal.score.what}",
            *(
                _figure(goal.score, _by_seed(goal.score, goal.scenarios, f))
                for f in (ours, knowing)
            ),
        )
        for goal in _applications()
        if goal.score in ranked
    ]
    return Table(("what", "ours", "somebody who knows"), lines, range(1, 3))


Fits = Callable[[Scenario, int], Sequence[Case]]


def fitted(shared: Path, fit: Callable[[laws.Draw], Fitted]) -> Fits:
    """Return a cached function from scenario and seed to fitted draws."""
    bench = laws.protocol(shared / "tools" / "bench_accuracy.py")

    @cache
    def cases(scenario: Scenario, seed: int) -> Sequence[Case]:
        return [(drawn, fit(drawn)) for drawn in laws.draw(bench, scenario, seed)]

    return cases


def _by_seed(score: Score, scenarios: Sequence[Scenario], fits: Fits) -> list[float]:
    """Return the score of all seeds together, then of each seed."""
    seeds = [[case for s in scenarios for case in fits(s, seed)] for seed in SEEDS]
    pooled = [case for seed in seeds for case in seed]
    return [score.over(cases) for cases in (pooled, *seeds)]


def _figure(score: Score, values: Sequence[float]) -> str:
    pooled, *seeds = values
    least, largest = score.text(min(seeds)), score.text(max(seeds))
    return score.text(pooled) + (f" ({least}–{largest})" if least != largest else "")


def _row(goal: Goal, ours: Sequence[float], peer: Sequence[float] | None) -> Row:
    score = goal.score
    row = Row(f"{goal.what}: {score.what}", _figure(score, ours))
    if peer:
        good, bad = (ours[0], peer[0]) if score.rises else (peer[0], ours[0])
        ratio = good / bad if bad > _NOTHING else None
        row = replace(row, peer=f"{_figure(score, peer)} {EXTRAP.name}", ratio=ratio)
    if goal.at_least is not None:
        wanted = f"≥ {score.text(goal.at_least)}"
        return replace(row, goal=wanted, met=ours[0] >= goal.at_least)
    limit = peer[0] if peer and math.isinf(goal.at_most) else goal.at_most
    return replace(row, goal=f"≤ {score.text(limit)}", met=ours[0] <= limit)
