"""Products of terms of several parameters: what models in them are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.breaks import Break
from callpath_modeler.modeling.differences import ONE, TermDifference
from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth
from callpath_modeler.modeling.terms import Term

NOTHING = ONE
"""The factor of a parameter that a product does not depend on."""


Factor = Term | TermDifference | Break


def factor_from_header(header: dict[str, Any]) -> Factor:
    """Read a factor; `ValueError` or `KeyError` if it is not described."""
    if "kind" in header:
        return Break.from_header(header)
    return TermDifference.from_header(header) if "larger" in header else Term.from_header(header)


def factor_text(factor: Factor, parameter: str, *, pretty: bool, exact: bool) -> str:
    """Write what depends on one parameter; only breaks have numbers that may have many digits."""
    if isinstance(factor, Break):
        return factor.text(parameter, pretty=pretty, exact=exact)
    return factor.text(parameter, pretty=pretty)


@dataclass(frozen=True, slots=True)
class Product:
    """A product of one factor per parameter: ``x**i log2(x)**j * (y**k - 1) * ...``.

    Parameters
    ----------
    factors : tuple of Term, Difference or Break
        One per parameter; `NOTHING` where the product does not depend on it.
    """

    factors: tuple[Factor, ...]

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Value at `points` [m, D], above zero; [m]."""
        at = np.asarray(points, dtype=np.float64)
        value = np.ones(len(at))
        for axis, factor in enumerate(self.factors):
            if factor != NOTHING:
                value = value * factor(at[:, axis])
        return value

    @property
    def growth(self) -> Growth:
        """How fast it grows when all parameters grow alike: what orders products."""
        return reduce(mul, (factor.growth for factor in self.factors), CONSTANT_GROWTH)

    @property
    def decreasing(self) -> bool:
        """Whether it rises with no parameter, and falls with one."""
        used = [factor for factor in self.factors if factor != NOTHING]
        return bool(used) and all(factor.decreasing for factor in used)

    @property
    def axes(self) -> frozenset[int]:
        """The parameters that it depends on."""
        used = (axis for axis, factor in enumerate(self.factors) if factor != NOTHING)
        return frozenset(used)

    def text(self, parameter: Sequence[str], *, pretty: bool = False, exact: bool = False) -> str:
        """Write the product as a factor of a formula, for example ``n^3 * p^-1``."""
        written = list[str]()
        for factor, name in zip(self.factors, parameter, strict=True):
            if factor != NOTHING:
                # Else a logarithm would seem to be of all that follows.
                if pretty and written and "log₂" in written[-1]:
                    written[-1] = f"({written[-1]})"
                written.append(factor_text(factor, name, pretty=pretty, exact=exact))
        return (" " if pretty else " * ").join(written)

    def to_header(self) -> dict[str, Any]:
        """Describe the product with texts and numbers that JSON can hold."""
        return {"factors": [factor.to_header() for factor in self.factors]}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Undo `to_header`; `ValueError` or `KeyError` if it does not describe a product."""
        return cls(tuple(factor_from_header(factor) for factor in header["factors"]))


Shape = Factor | Product
"""A term of a model: a factor of one parameter, or a product of one of each."""
