"""Limits to what a change may cost: where a comparison says no."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.diff import Changes, ExperimentDifference
from callpath_modeler.analysis.excess import CARRIES_COST
from callpath_modeler.errors import DataError, UsageError

_WORSE = re.compile(r"worse\s*(?:>\s*(\d+(?:\.\d+)?)\s*%)?")


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """What may not be.

    Attributes
    ----------
    worse : by which fraction something may cost more, at the largest common scale and at the
        target; None = however much
    growth : whether nothing may grow faster than before
    """

    worse: float | None = None
    growth: bool = False

    @classmethod
    def parse(cls, text: str) -> RegressionGate:
        """Return the limits that ``"worse>5%,growth"`` writes; ``worse`` alone is ``worse>0%``.

        Raises
        ------
        UsageError
            If it says something else, or nothing.
        """
        worse, growth = None, False
        for part in (part.strip() for part in text.split(",")):
            said = _WORSE.fullmatch(part)
            if said:
                worse = float(said[1] or 0) / 100
            elif part == "growth":
                growth = True
            else:
                raise UsageError(
                    f"--fail-on {text!r}: {part!r} is no limit",
                    hint="'worse>5%', growth, or both: 'worse>5%,growth'",
                )
        return cls(worse, growth)


@dataclass(frozen=True, slots=True)
class Violation:
    """One limit that is broken.

    Attributes
    ----------
    limit : ``"worse"`` or ``"growth"``
    row : the call path; None = the whole program
    at : where it is worse, by parameter; None = it grows faster
    amount : by which fraction; of growth, how probable
    """

    limit: str
    row: int | None
    at: Mapping[str, float] | None
    amount: float

    @property
    def scale(self) -> float | None:
        """Value of the parameter where it is worse."""
        return None if self.at is None else next(iter(self.at.values()))


def violations(
    found: ExperimentDifference, limits: RegressionGate, rows: NDArray[np.intp]
) -> list[Violation]:
    """Return what breaks the limits among `rows`: only differences that are shown count.

    The whole program is judged if all its call paths are among `rows`. Call paths are judged by
    themselves where they carry cost, before or after.

    Raises
    ------
    DataError
        If nothing could break a limit, because nothing is known of noise or of growth.
    """
    if limits.worse is not None and not found.can_tell:
        raise DataError(
            "--fail-on worse: nothing was repeated and nothing modelled, so no difference is shown",
            hint="repeat the runs of one of the two, or measure at more scales",
        )
    if limits.growth and found.growth is None:
        raise DataError(
            "--fail-on growth: too few scales for models of both",
            hint="measure at more scales, or leave growth out",
        )
    whole = len(rows) == len(found.order)
    broken = []
    for changes in found.answers:
        if limits.worse is not None:
            broken += list(_worse(changes, limits.worse, rows, whole=whole))
    if limits.growth and found.growth is not None:
        mine = rows[(found.growth.mark[rows] > 0) & _carries_cost(found.changes)[:-1][rows]]
        broken += [
            Violation("growth", int(row), None, float(found.growth.faster[row])) for row in mine
        ]
    return broken


def _worse(
    changes: Changes, limit: float, rows: NDArray[np.intp], *, whole: bool
) -> Iterator[Violation]:
    broken = (changes.mark > 0) & (np.nan_to_num(changes.relative) > limit)
    broken &= _carries_cost(changes)
    if whole and broken[-1]:
        yield Violation("worse", None, changes.at, float(changes.relative[-1]))
    for row in rows[broken[rows]]:
        yield Violation("worse", int(row), changes.at, float(changes.relative[row]))


def _carries_cost(changes: Changes) -> NDArray[np.bool_]:
    """Tell what is worth a word by its share of the whole; of what does not add up, everything."""
    before, after = changes.base, changes.new
    if np.isnan(before[-1]) or np.isnan(after[-1]):
        return np.ones(len(before), bool)
    least = CARRIES_COST * np.array([before[-1], after[-1]])
    return np.asarray((before >= least[0]) | (after >= least[1]))
