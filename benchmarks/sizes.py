"""Laws of algorithms in the problem size: integer powers, some with a logarithm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from programs import Draw, FloatArray, Law, Programs
from results import Table

NOTES = """\
The programs have 12 call paths of each law, at n = 64, 128, ..., 2048, with three repetitions, 2 %
log-normal noise and 3 seeds. The first term is 20 to 90 % of the value at the largest size. The
other terms share the rest in random parts. Error: the median at 16 times the largest size. Held:
the share of 95 % bands there that contain the truth. Sure and wrong: predictions with two marks of
trust or more that are further off than the marks state.
"""

_POINTS = 64 * 2.0 ** np.arange(6)
_NOISE, _SEEDS = 0.02, (81, 82, 83)
_LEAST, _MOST = 0.2, 0.9
"""Share of the first term at the largest size."""

_LAWS: dict[str, tuple[tuple[int, int], ...]] = {
    "n + c": ((1, 0), (0, 0)),
    "n log n + n": ((1, 1), (1, 0)),
    "n log n + n + c": ((1, 1), (1, 0), (0, 0)),
    "n^2 + c": ((2, 0), (0, 0)),
    "n^2 + n": ((2, 0), (1, 0)),
    "n^2 + n + c": ((2, 0), (1, 0), (0, 0)),
    "n^2 + n log n + c": ((2, 0), (1, 1), (0, 0)),
    "n^2 log n + n^2": ((2, 1), (2, 0)),
    "n^3 + n^2": ((3, 0), (2, 0)),
    "n^3 + n + c": ((3, 0), (1, 0), (0, 0)),
    "n^3 + n^2 + c": ((3, 0), (2, 0), (0, 0)),
    "n^3 + n^2 + n": ((3, 0), (2, 0), (1, 0)),
    "n^3 log n + n^3": ((3, 1), (3, 0)),
}
"""Powers of n and of the logarithm, the steepest first."""


def _sum_of(terms: tuple[tuple[int, int], ...]) -> Draw:
    def drawn(rng: np.random.Generator) -> Law:
        first = rng.uniform(_LEAST, _MOST)
        shares = [first, *(1 - first) * rng.dirichlet(np.ones(len(terms) - 1))]

        def law(n: FloatArray) -> FloatArray:
            part, logs = n / _POINTS[-1], np.log2(n) / np.log2(_POINTS[-1])
            each = [s * part**i * logs**j for s, (i, j) in zip(shares, terms, strict=True)]
            return np.asarray(np.sum(each, axis=0))

        return law

    return drawn


PROGRAMS = Programs(
    {name: _sum_of(terms) for name, terms in _LAWS.items()}, _POINTS, _NOISE, _SEEDS
)
"""Programs of these laws; those of one seed are modelled as one program."""


def table(_: Path) -> Table:
    """Measure all laws."""
    return PROGRAMS.table("law")
