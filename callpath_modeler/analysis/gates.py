"""Limits of cost and growth for a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.changes import Changes
from callpath_modeler.analysis.diff import ExperimentDifference
from callpath_modeler.analysis.excess import CARRIES_COST
from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.errors import DataError, UsageError

_WORSE = re.compile(r"worse\s*(?:>\s*([0-9]+(?:\.[0-9]+)?)\s*%)?")


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """Limits of a comparison.

    Attributes
    ----------
    worse : largest relative increase of a cost, at the largest common scale and at the target;
        None = no limit
    growth : True if no call path may grow faster than before
    """

    worse: float | None = None
    growth: bool = False

    @classmethod
    def parse(cls, text: str) -> RegressionGate:
        """Return the limits of a text such as ``"worse>5%,growth"``; ``worse`` is ``worse>0%``.

        Raises
        ------
        UsageError
            If the text is empty or contains anything else.
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
    """One broken limit.

    Attributes
    ----------
    limit : ``"worse"`` or ``"growth"``
    row : number of the call path; None = the whole program
    at : scale of the increase, by parameter; None = the growth is faster
    amount : relative increase; for growth, its probability
    """

    limit: str
    row: int | None
    at: Mapping[str, float] | None
    amount: float

    @property
    def scale(self) -> float | None:
        """Value of the parameter at the increase."""
        return None if self.at is None else next(iter(self.at.values()))


def violations(
    found: ExperimentDifference, limits: RegressionGate, rows: IntArray
) -> list[Violation]:
    """Return the broken limits of the call paths in `rows`.

    Only significant differences break a limit. The whole program is judged if all its call paths
    are in `rows`. A call path is judged if it carries cost before or after the change.

    Raises
    ------
    DataError
        If no limit could be broken, because neither noise nor growth is known.
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


def _worse(changes: Changes, limit: float, rows: IntArray, *, whole: bool) -> Iterator[Violation]:
    broken = (changes.mark > 0) & (np.nan_to_num(changes.relative) > limit)
    broken &= _carries_cost(changes)
    if whole and broken[-1]:
        yield Violation("worse", None, changes.at, float(changes.relative[-1]))
    for row in rows[broken[rows]]:
        yield Violation("worse", int(row), changes.at, float(changes.relative[row]))


def _carries_cost(changes: Changes) -> BoolArray:
    """Return which call paths carry cost, by their share; all, if the metric is not additive."""
    before, after = changes.base, changes.new
    if np.isnan(changes.sums).any():
        return np.ones(len(before), bool)
    least = CARRIES_COST * np.array(changes.sums)
    return np.asarray((before >= least[0]) | (after >= least[1]))
