"""Predictions of programs whose call paths follow drawn laws, compared with Extra-P."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import extrap_models
import numpy as np
from environments import EXTRAP
from numpy.typing import NDArray
from results import Table

from callpath_modeler import modeling
from callpath_modeler.analysis.uncertain import MARKS, WITHIN, marks_of_trust
from callpath_modeler.arrays import FloatArray

Law = Callable[[FloatArray], FloatArray]
Draw = Callable[[np.random.Generator], Law]

_REPETITIONS, _OF_EACH = 3, 12
_MULTIPLE = 16
"""Target, as a multiple of the largest scale."""
_SURE = 2
"""Marks of trust."""


@dataclass(frozen=True, slots=True)
class Programs:
    """One program for each seed, with 12 call paths of each law and three repetitions.

    Attributes
    ----------
    laws : laws by name
    points : [K] measured points
    noise : standard deviation of the logarithms
    seeds : seeds of the random numbers
    """

    laws: Mapping[str, Draw]
    points: FloatArray
    noise: float
    seeds: Sequence[int]

    def table(self, what: str) -> Table:
        """Return the accuracy of predictions, for each law and for all laws."""
        names, target = self.names, _MULTIPLE * self.points[-1:]
        every = [self._predicted(names, target, np.random.default_rng(seed)) for seed in self.seeds]
        columns = [np.stack(each) for each in zip(*every, strict=True)]
        lines = [_line(name, *(each[:, names == name] for each in columns)) for name in self.laws]
        head = (what, "error", EXTRAP.name, "held", "sure and wrong")
        return Table(head, [*lines, _line("all", *columns)], range(1, 5))

    @property
    def names(self) -> NDArray[np.str_]:
        """Names of the laws of the call paths, [n]."""
        return np.repeat(list(self.laws), _OF_EACH)

    def drawn(
        self, names: NDArray[np.str_], targets: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return measurements of a program, [n, K, R], and its laws at `targets` [m], [n, m]."""
        laws = [self.laws[name](rng) for name in names]
        exact = np.array([law(np.concatenate([self.points, targets])) for law in laws])
        known, far = exact[:, : len(self.points)], exact[:, len(self.points) :]
        scatter = rng.standard_normal((*known.shape, _REPETITIONS))
        return known[..., None] * np.exp(self.noise * scatter), far

    def _predicted(
        self, names: NDArray[np.str_], target: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, ...]:
        """Return our errors, Extra-P's errors, coverage of bands, and sure but wrong ones, [n]."""
        y, exact = self.drawn(names, target, rng)
        found, truth = modeling.fit(self.points, y).predict(target), exact[:, 0]
        value, low, high = (each[:, 0] for each in (found.value, found.low, found.high))
        theirs, _ = extrap_models.predict(self.points, y, target)
        marks = marks_of_trust(value, low, high)
        most = np.array(WITHIN)[MARKS - np.maximum(marks, 1)]
        off = np.maximum(value / truth, truth / value)
        return (
            np.abs(value / truth - 1),
            np.abs(theirs[:, 0] / truth - 1),
            (low <= truth) & (truth <= high),
            (marks >= _SURE) & (off > most),
        )


def _line(
    name: str,
    error: FloatArray,
    peer: FloatArray,
    held: NDArray[np.bool_],
    sure: NDArray[np.bool_],
) -> tuple[str, ...]:
    medians = (f"{np.median(each):.3f}" for each in (error, peer))
    return name, *medians, f"{held.mean():.0%}", f"{sure.mean():.0%}"
