"""Breaks in the law: shapes beside terms of the normal form.

A program that switches to another algorithm, fills a cache, or adds a level to a tree does not
follow one smooth law. Each shape here is one such break as a function of the parameter, to be
scaled by a coefficient and added to a constant as a term is. A row that is explained by one of them
is outside the model class, and is said to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth, as_float, raised

FloatArray = npt.NDArray[np.float64]


class Kind(StrEnum):
    """Kinds of breaks."""

    STEP = "step"  # 1 beyond `at`, else 0: a protocol or an algorithm switches
    LEAP = "leap"  # a power beyond `at`, else 0: beside that power, all of it takes longer there
    DROP = "drop"  # 1 up to `at`, then 0: to one that takes less
    BEND = "bend"  # flat up to `at`, then a power: a segment of another law
    BEYOND = "beyond"  # 1 - at / p from `at` on: of all partners, those outside of a group
    CLIMB = "climb"  # log2(p / at) from `at` on: levels of a tree above that group
    PLATEAU = "plateau"  # a power up to `at`, then flat: all neighbours are there
    FLOOR = "floor"  # falls by a power up to `at`, then flat: no more work to share
    CEILING = "ceiling"  # 1 - exp(-p / at): saturates
    LEVELS = "levels"  # levels of a tree of fan-out `at`
    BLOCKS = "blocks"  # nodes of `at` processes each


_WITHIN = 1 - 1e-9
"""Rounding must not lift log_3(9) over a level."""

_VALUES: Mapping[Kind, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {
    Kind.STEP: lambda p, at, _: np.where(p > at, 1.0, 0.0),
    Kind.LEAP: lambda p, at, power: np.where(p > at, p**power, 0.0),
    Kind.DROP: lambda p, at, _: np.where(p > at, 0.0, 1.0),
    Kind.BEND: lambda p, at, power: np.maximum(1.0, p / at) ** power,
    Kind.BEYOND: lambda p, at, _: 1 - np.minimum(1.0, at / p),
    Kind.CLIMB: lambda p, at, _: np.log2(np.maximum(1.0, p / at)),
    Kind.PLATEAU: lambda p, at, power: np.minimum(1.0, p / at) ** power,
    Kind.FLOOR: lambda p, at, power: np.maximum(1.0, at / p) ** power,
    Kind.CEILING: lambda p, at, _: -np.expm1(-p / at),
    Kind.LEVELS: lambda p, at, _: np.ceil(np.log(np.maximum(p, 1.0)) / np.log(at) * _WITHIN),
    Kind.BLOCKS: lambda p, at, _: np.ceil(p / at * _WITHIN),
}
_TEXTS: Mapping[Kind, str] = {
    Kind.STEP: "[{p} > {at}]",
    Kind.LEAP: "[{p} > {at}] * {power}",
    Kind.DROP: "[{p} <= {at}]",
    Kind.BEND: "max(1, {p}/{at}){power}",
    Kind.BEYOND: "max(0, 1 - {at}/{p})",
    Kind.CLIMB: "max(0, log2({p}/{at}))",
    Kind.PLATEAU: "min(1, {p}/{at}){power}",
    Kind.FLOOR: "max(1, {at}/{p}){power}",
    Kind.CEILING: "(1 - exp(-{p}/{at}))",
    Kind.LEVELS: "ceil(log_{at}({p}))",
    Kind.BLOCKS: "ceil({p}/{at})",
}


@dataclass(frozen=True, slots=True)
class Break:
    """One shape with a break.

    Parameters
    ----------
    kind : Kind
        What kind.
    at : float
        Where, in the parameter's unit; the fan-out of `LEVELS`, the size of `BLOCKS`.
    exponent : Fraction
        The power beyond a `BEND` or of a `LEAP`, or up to a `PLATEAU`; that of 1 / p up to a
        `FLOOR`.
    """

    kind: Kind
    at: float
    exponent: Fraction = Fraction(0)

    decreasing = False

    def __call__(self, p: npt.ArrayLike) -> FloatArray:
        """Value at `p`, which may be infinite; the shape of `p`."""
        scale = np.asarray(p, dtype=np.float64)
        return break_values([self], scale.ravel()).reshape(scale.shape)

    @property
    def begins(self) -> bool:
        """Whether it begins at a capacity, which may be anywhere."""
        linear = self.kind is Kind.BEND and self.exponent == 1
        return linear or self.kind in {Kind.BEYOND, Kind.CLIMB}

    @property
    def growth(self) -> Growth:
        """How fast it grows in the end."""
        if self.kind in {Kind.BEND, Kind.LEAP}:
            return Growth(self.exponent, 0)
        if self.kind in {Kind.LEVELS, Kind.CLIMB}:
            return Growth(Fraction(0), 1)
        return Growth(Fraction(1), 0) if self.kind is Kind.BLOCKS else CONSTANT_GROWTH

    def text(self, parameter: str = "p", *, pretty: bool = False) -> str:
        """Write the shape as a factor of a formula, for example ``[p > 91]``."""
        base = parameter if self.kind is Kind.LEAP else ""
        power = raised(base, self.exponent, pretty=pretty) if self.exponent else ""
        text = _TEXTS[self.kind].format(p=parameter, at=f"{self.at:.4g}", power=power)
        return text.replace(" * ", " ") if pretty else text

    def to_header(self) -> dict[str, Any]:
        """Describe the shape with texts and numbers that JSON can hold."""
        return {"kind": str(self.kind), "at": self.at, "exponent": str(self.exponent)}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Undo `to_header`; `ValueError` or `KeyError` if it does not describe a shape."""
        return cls(Kind(header["kind"]), float(header["at"]), Fraction(header["exponent"]))


def break_values(shapes: Sequence[Break], p: FloatArray) -> FloatArray:
    """Evaluate breaks at `p` [m], kind by kind; [B, m]."""
    values = np.empty((len(shapes), len(p)))
    numbers = np.array([(each.at, as_float(each.exponent)) for each in shapes]).reshape(-1, 2)
    of_kind: dict[Kind, list[int]] = {}
    for k, each in enumerate(shapes):
        of_kind.setdefault(each.kind, []).append(k)
    for kind, which in of_kind.items():
        at, power = numbers[which].T[..., None]
        values[which] = _VALUES[kind](p, at, power)
    return values


_LEAPS = (-6, -4, -3, 3, 6)
_MOST_PLACES = 400
_BETWEEN = 4
"""What begins at a capacity begins between two points: into so many parts they are divided."""


def breaks(points: FloatArray) -> tuple[Break, ...]:
    """Return the breaks that measurements at `points` [K], ascending, could show.

    A step up or down between any two neighbours, a bend and, of five points or more, a plateau
    and a floor from any inner point on, leaps before the last point, what begins at a capacity at
    or between inner points, a ceiling reached within or beyond the points, levels and blocks of
    usual sizes. None below four points, where every law of two coefficients fits about as well; of
    very many points only some are tried.
    """
    if len(points) < 4 or points[0] <= 0:
        return ()
    every = -(-len(points) // _MOST_PLACES)
    # Among some of many is the last place, where leaps are.
    middle, inner = np.sqrt(points[1:] * points[:-1])[::-every][::-1], points[1:-1:every]
    found = [Break(kind, float(at)) for kind in (Kind.STEP, Kind.DROP) for at in middle]
    found += [Break(Kind.LEAP, float(middle[-1]), Fraction(sixths, 6)) for sixths in _LEAPS]
    for at in inner:
        found += [Break(Kind.BEND, float(at), Fraction(half, 2)) for half in (1, 4)]
    if len(points) > 4:
        found += [
            Break(kind, float(at), Fraction(half, 2))
            for kind in (Kind.PLATEAU, Kind.FLOOR)
            for at in inner
            for half in (1, 2)
        ]
    for at in _capacities(points):
        found += [Break(kind, float(at)) for kind in (Kind.BEYOND, Kind.CLIMB)]
        found.append(Break(Kind.BEND, float(at), Fraction(1)))
    found += [Break(Kind.CEILING, float(at)) for at in np.geomspace(points[0], 2 * points[-1], 4)]
    if points[0] >= 1:
        found += [Break(Kind.LEVELS, float(fan)) for fan in (2, 3, 4, 8, 16, 32)]
        found += [Break(Kind.BLOCKS, float(size)) for size in (24, 36, 48, 64, 96)]
    return tuple(found)


def _capacities(points: FloatArray) -> FloatArray:
    """Return inner points and places between all points, evenly on a logarithmic scale."""
    some = points[:: 2 * _BETWEEN * len(points) // -_MOST_PLACES][::-1]
    parts = np.arange(_BETWEEN) / _BETWEEN
    return np.asarray(some[:-1, None] * (some[1:] / some[:-1])[:, None] ** parts).ravel()[1:]
