"""Growths: classes of functions with an order, and functions of a scale that a formula states.

A growth is ``2**(rate p) * p**exponent * log2(p)**log``. These three kinds of factors are the
classes F3, F2 and F1 of Shudler, Berens, Calotoiu, Hoefler, Strube, Wolf: Engineering Algorithms
for Scalability through Continuous Validation of Performance Expectations (TPDS 30(8), 2019). A
function is a product of a growth and of sums of such products.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from callpath_modeler.arrays import FloatArray

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
VULGAR = {
    Fraction(1, 2): "½",
    Fraction(1, 3): "⅓",
    Fraction(2, 3): "⅔",
    Fraction(1, 4): "¼",
    Fraction(3, 4): "¾",
}
"""Fractions that have a character."""


def raised(base: str, exponent: Fraction | int, *, pretty: bool) -> str:
    """Return ``base ** exponent`` as text: ``p``, ``p^2``, ``p^(2/3)``; pretty: ``p²``, ``p^⅔``."""
    power = Fraction(exponent)
    if power == 1:
        return base
    if power.denominator == 1:
        return base + str(power).translate(_SUPERSCRIPTS) if pretty else f"{base}^{power}"
    if pretty and abs(power) in VULGAR:
        return f"{base}^{'-' if power < 0 else ''}{VULGAR[abs(power)]}"
    return f"{base}^({power})"


def exponential_text(rate: Fraction, parameter: str, *, pretty: bool) -> str:
    """Return ``2 ** (rate * parameter)`` as text; the rate is not zero."""
    sign, size = "-" if rate < 0 else "", abs(rate)
    if size == 1:
        return f"2^{sign}{parameter}"
    if size.numerator == 1:
        return f"2^({sign}{parameter}/{size.denominator})"
    factor = VULGAR.get(size, str(size)) if pretty else str(size)
    return f"2^({sign}{factor} {parameter})"


@total_ordering
@dataclass(frozen=True, slots=True)
class Growth:
    """Growth of a function: its leading term without a coefficient.

    The larger of two growths is the one that is larger in the end. Growths form a group under
    multiplication: ``O(p) / O(log p)`` is the growth of the quotient of any two functions with
    these growths.

    Parameters
    ----------
    exponent : Fraction
        The power of the parameter.
    log : Fraction or int
        The power of the binary logarithm; decides between equal exponents.
    rate : Fraction
        The rate of an exponential ``2 ** (rate * p)``; decides first.
    """

    exponent: Fraction
    log: Fraction | int
    rate: Fraction = Fraction(0)

    @property
    def order(self) -> tuple[float, float, float]:
        """Sort key of growths: rate, exponent and log.

        Distinct growths have distinct floats, which compare much faster than fractions.
        """
        return as_float(self.rate), as_float(self.exponent), as_float(self.log)

    def __lt__(self, other: Growth) -> bool:
        return self.order < other.order

    def __mul__(self, other: Growth) -> Growth:
        """Return the growth of a product."""
        return Growth(self.exponent + other.exponent, self.log + other.log, self.rate + other.rate)

    def __truediv__(self, other: Growth) -> Growth:
        """Return the growth of a quotient."""
        return Growth(self.exponent - other.exponent, self.log - other.log, self.rate - other.rate)

    def __pow__(self, power: Fraction | int) -> Growth:
        """Return the growth of a power, which may be a fraction and below zero."""
        exact = Fraction(power)
        return Growth(self.exponent * exact, self.log * exact, self.rate * exact)

    def __call__(self, p: npt.ArrayLike) -> FloatArray:
        """Return the values of the function with coefficient 1.

        Parameters
        ----------
        p : array_like
            Values of the parameter, above zero; infinity is allowed.

        Returns
        -------
        ndarray
            Same shape as `p`; infinite on overflow, NaN where the function is not defined, such as
            the root of a logarithm below 1.
        """
        values = growth_values(np.array([self.order]), np.asarray(p, dtype=np.float64))
        return np.asarray(values[0])

    def text(self, parameter: str = "p", *, pretty: bool = False) -> str:
        """Return the growth in O notation.

        Parameters
        ----------
        parameter : str
            Name of the parameter.
        pretty : bool
            Use superscripts and fractions beyond ASCII: ``O(p^½)``, ``O(log² p)``.

        Returns
        -------
        str
            For example ``O(1)``, ``O(log^2 p)``, ``O(p^(1/2) log p)``, ``O(p^-1)``,
            ``O(p^(1/2) / log p)``.
        """
        factors = []
        if self.exponent:
            factors.append(raised(parameter, self.exponent, pretty=pretty))
        if self.rate:
            factors.append(exponential_text(self.rate, parameter, pretty=pretty))
        power = self.log if self.log > 0 else -self.log
        logarithm = f"{raised('log', power, pretty=pretty)} {parameter}"
        if self.log > 0:
            factors.append(logarithm)
        product = " ".join(factors) or "1"
        return f"O({product} / {logarithm})" if self.log < 0 else f"O({product})"

    def __str__(self) -> str:
        """Canonical ASCII text over ``p``."""
        return self.text()


def as_float(exact: Fraction | int) -> float:
    """Return a fraction as a float, several times as fast as `float` does."""
    above, below = exact.as_integer_ratio()
    return above / below


def growth_values(orders: FloatArray, p: FloatArray) -> FloatArray:
    """Return growths with `Growth.order` of `orders` [n, 3] at `p` [...], [n, ...]."""
    rate, exponent, log = orders.T.reshape(3, -1, *(1 for _ in p.shape))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value: FloatArray = np.power(p, exponent) * np.power(np.log2(p), log)
        # A rate of zero times an infinite p is zero here.
        return value * np.exp2(np.where(rate != 0, rate * p, 0.0)) if rate.any() else value


CONSTANT_GROWTH = Growth(Fraction(0), 0)
"""The growth O(1)."""


class FunctionFactor(Struct, frozen=True):
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


class Function(Struct, frozen=True):
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
