"""Products of factors of several parameters: the shapes of models in them.

See docs/explanation/several-parameters.md, 'Factors and products'.
"""

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
"""Factor of a parameter that a product does not depend on."""


Factor = Term | TermDifference | Break


def factor_from_header(header: dict[str, Any]) -> Factor:
    """Return the factor of a header; `ValueError` or `KeyError` if it is not one."""
    if "kind" in header:
        return Break.from_header(header)
    return TermDifference.from_header(header) if "larger" in header else Term.from_header(header)


def factor_text(factor: Factor, parameter: str, *, pretty: bool, exact: bool) -> str:
    """Return a factor as text; only breaks have numbers with many digits, which `exact` keeps."""
    if isinstance(factor, Break):
        return factor.text(parameter, pretty=pretty, exact=exact)
    return factor.text(parameter, pretty=pretty)


@dataclass(frozen=True, slots=True)
class Product:
    """A product of one factor per parameter: ``x**i log2(x)**j * (y**k - 1) * ...``.

    Parameters
    ----------
    factors : tuple of Term, TermDifference or Break
        One factor per parameter; `NOTHING` if the product does not depend on the parameter.
    """

    factors: tuple[Factor, ...]

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Return the values at `points` [m, D], which are above zero, [m]."""
        at = np.asarray(points, dtype=np.float64)
        value = np.ones(len(at))
        for axis, factor in enumerate(self.factors):
            if factor != NOTHING:
                value = value * factor(at[:, axis])
        return value

    @property
    def growth(self) -> Growth:
        """The growth if all parameters grow alike, by which products are ordered."""
        return reduce(mul, (factor.growth for factor in self.factors), CONSTANT_GROWTH)

    @property
    def decreasing(self) -> bool:
        """Whether the product rises with no parameter, and falls with at least one."""
        used = [factor for factor in self.factors if factor != NOTHING]
        return bool(used) and all(factor.decreasing for factor in used)

    @property
    def axes(self) -> frozenset[int]:
        """The parameters on which the product depends."""
        used = (axis for axis, factor in enumerate(self.factors) if factor != NOTHING)
        return frozenset(used)

    def text(self, parameter: Sequence[str], *, pretty: bool = False, exact: bool = False) -> str:
        """Return the product as a factor of a formula, for example ``n^3 * p^-1``."""
        written = list[str]()
        for factor, name in zip(self.factors, parameter, strict=True):
            if factor != NOTHING:
                # Otherwise a logarithm would seem to include all factors after it.
                if pretty and written and "log₂" in written[-1]:
                    written[-1] = f"({written[-1]})"
                written.append(factor_text(factor, name, pretty=pretty, exact=exact))
        return (" " if pretty else " * ").join(written)

    def to_header(self) -> dict[str, Any]:
        """Return the product as texts and numbers for JSON."""
        return {"factors": [factor.to_header() for factor in self.factors]}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Return the product of a header; `ValueError` or `KeyError` if it is not one."""
        return cls(tuple(factor_from_header(factor) for factor in header["factors"]))


Shape = Factor | Product
"""Shape of a term of a model: a factor of one parameter, or a product of one factor of each."""
