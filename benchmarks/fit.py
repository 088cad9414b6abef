"""Modelling: five points of five repetitions, the same draws for everyone."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import EXTRAP, WORK
from measure import TASKS, run
from results import Row

DRAWS = WORK / "draws.json"
GOAL = 300
SEED = 1

_ROWS = 5000
_COMPARED = 600
"""Rows that Extra-P models too; it takes 10 to 20 ms for each."""

_CONSTANT = "0,0"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came out for some rows.

    Attributes
    ----------
    truths : the drawn rows
    classes : of the models, as ``"exponent,log"``
    far : predictions at 16 times the largest point
    """

    truths: Sequence[dict[str, Any]]
    classes: Sequence[str]
    far: Sequence[float]

    def where(self, wanted: Callable[[dict[str, Any]], bool]) -> Outcome:
        """Return the rows whose truth is wanted."""
        kept = [k for k, truth in enumerate(self.truths) if wanted(truth)]
        return Outcome(
            [self.truths[k] for k in kept],
            [self.classes[k] for k in kept],
            [self.far[k] for k in kept],
        )

    def exact(self) -> float:
        """Return the share of rows whose class was found."""
        pairs = zip(self.truths, self.classes, strict=True)
        return statistics.fmean(truth["class"] == found for truth, found in pairs)

    def error(self) -> float:
        """Return the median relative error of the predictions."""
        pairs = zip(self.truths, self.far, strict=True)
        return float(statistics.median(abs(far / truth["far"] - 1) for truth, far in pairs))

    def growing(self) -> float:
        """Return the share of rows that were modelled as growing."""
        return statistics.fmean(not _falls(found) for found in self.classes)


def rows() -> list[Row]:
    """Measure, and return the rows of the table."""
    python = EXTRAP.executable()
    writer = TASKS.parent / "write_draws.py"
    run([sys.executable, writer, DRAWS, str(_ROWS), str(SEED)], reports=False)
    told: list[str | Path] = [DRAWS, str(_COMPARED)]
    ours = run([sys.executable, TASKS / "fit_ours.py", *told]).report
    peer = run([python, TASKS / "fit_extrap.py", *told]).report
    truths = json.loads(DRAWS.read_text(encoding="ascii"))["rows"][:_COMPARED]
    found = [_speed(ours, peer)]
    for noise in sorted({truth["noise"] for truth in truths}):
        found += _accuracy(
            noise,
            Outcome(truths, ours["classes"], ours["far"]),
            Outcome(truths, peer["classes"], peer["far"]),
            set(ours["searched"]),
        )
    return found


def _speed(ours: dict[str, Any], peer: dict[str, Any]) -> Row:
    here, there = (1000 * min(each["seconds"]) / each["rows"] for each in (ours, peer))
    return Row(
        "fit: 5 points x 5 repetitions, one model",
        f"{here:.3g} ms",
        f"{there:.3g} ms {EXTRAP.name}",
        there / here,
        f">= {GOAL} x",
        there / here >= GOAL,
    )


def _accuracy(noise: int, ours: Outcome, peer: Outcome, searched: set[str]) -> list[Row]:
    def row(what: str, figure: Callable[[Outcome], str], *, growing: bool, known: bool) -> Row:
        def wanted(truth: dict[str, Any]) -> bool:
            grows = truth["class"] != _CONSTANT
            return (
                truth["noise"] == noise
                and grows == growing
                and (not known or truth["class"] in searched)
            )

        return Row(
            f"fit: {noise} % noise, {what}",
            figure(ours.where(wanted)),
            f"{figure(peer.where(wanted))} {EXTRAP.name}",
        )

    return [
        row("exact class", _exact, growing=True, known=False),
        row("exact class, of those both search", _exact, growing=True, known=True),
        row("median error at 16 x", _error, growing=True, known=False),
        row("median error at 16 x, of those both search", _error, growing=True, known=True),
        row("constants that 'grow'", _growing, growing=False, known=False),
    ]


def _exact(outcome: Outcome) -> str:
    return f"{outcome.exact():.0%}"


def _error(outcome: Outcome) -> str:
    return f"{outcome.error():.3f}"


def _growing(outcome: Outcome) -> str:
    return f"{outcome.growing():.1%}"


def _falls(found: str) -> bool:
    return found == _CONSTANT or found.startswith("-")
