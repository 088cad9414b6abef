"""Functions of a scale that a formula states: products of a growth and of sums of such products.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from callpath_modeler.modeling.growth import CONSTANT_GROWTH, Growth


@dataclass(frozen=True, slots=True)
class FunctionFactor:
    """A power of a sum, or of the binary logarithm of a sum.

    Attributes
    ----------
    terms : the terms of the sum
    is_logarithm : True = the logarithm of the sum
    power : exponent
    """

    terms: tuple[Function, ...]
    is_logarithm: bool = False
    power: Fraction = Fraction(1)

    def __call__(self, p: float) -> float:
        """Return the value at a scale."""
        value = sum(term(p) for term in self.terms)
        with np.errstate(all="ignore"):
            if self.is_logarithm:
                value = float(np.log2(value))
            return float(np.float64(value) ** np.float64(float(self.power)))


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one parameter: coefficient, growth, and further factors, multiplied.

    Attributes
    ----------
    coefficient : the constant factor
    growth : powers, logarithms and exponentials of the parameter
    factors : powers of sums
    """

    coefficient: float = 1.0
    growth: Growth = CONSTANT_GROWTH
    factors: tuple[FunctionFactor, ...] = ()

    @property
    def is_growth(self) -> bool:
        """True if the function is nothing but a growth."""
        return self.coefficient == 1 and not self.factors

    def __mul__(self, other: Function) -> Function:
        """Return the product of two functions."""
        return Function(
            self.coefficient * other.coefficient,
            self.growth * other.growth,
            self.factors + other.factors,
        )

    def __truediv__(self, other: Function) -> Function:
        """Return the quotient of two functions."""
        return self * other ** Fraction(-1)

    def __pow__(self, power: Fraction) -> Function:
        """Return a power of the function."""
        factors = tuple(
            FunctionFactor(each.terms, each.is_logarithm, each.power * power)
            for each in self.factors
        )
        with np.errstate(all="ignore"):
            coefficient = float(np.float64(self.coefficient) ** np.float64(float(power)))
        return Function(coefficient, self.growth**power, factors)

    def __call__(self, p: float) -> float:
        """Return the value at a scale; NaN or infinite where there is none.

        Raises
        ------
        OverflowError
            If an exponent is larger than any number.
        """
        value = self.coefficient * float(self.growth(p))
        for factor in self.factors:
            value *= factor(p)
        return value

    def ratio(self, base: float, scale: float) -> float:
        """Return the value at a scale over the value at the base; NaN = there is none.

        Rounding errors are small: the ratio of ``1/p`` is exactly base over scale.

        Parameters
        ----------
        base, scale : values of the parameter, above zero
        """
        try:
            if self.factors:
                before, after = self(base), self(scale)
            else:
                rate, exponent, log = self.growth.order
                before, after = self.coefficient, self.coefficient
                with np.errstate(all="ignore"):
                    after *= np.power(base / scale, -exponent) * np.exp2(rate * (scale - base))
                    if log:
                        after *= np.power(np.log2(scale) / np.log2(base), log)
                        before *= base > 1
        except OverflowError:
            return np.nan
        is_known = 0 < before < np.inf and 0 <= after < np.inf
        return float(after / before) if is_known else np.nan
