"""Terms of the performance model normal form (PMNF), and search spaces of terms.

The normal form is ``f(p) = c0 + sum_k c_k p**i_k log2(p)**j_k`` (Calotoiu, Hoefler, Poke, Wolf:
Using Automated Performance Modeling to Find Scalability Bugs in Complex Codes, SC13).

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import total_ordering
from numbers import Integral, Rational
from typing import Any, Self

import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling.constants.limits import (
    BESIDE_EXPONENTIALS,
    FINEST,
    LARGEST_POWER,
    MOST_TERMS_OF_SPACE,
)
from callpath_modeler.modeling.growth import Growth, exponential_text, raised
from callpath_modeler.printable import shortened
from callpath_modeler.units import fraction_of

ExponentLike = Fraction | int | float | str
_HUGE = re.compile(r"[eE][-+]?[0-9_]{3,}")
"""A power of ten that would take minutes to compute."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Term:
    """A term of the normal form without its coefficient: ``p**exponent * log2(p)**log``.

    Parameters
    ----------
    exponent : Fraction
        The power of the parameter; negative for a decreasing term.
    log : Fraction or int
        The power of the binary logarithm, zero or more; an int if it is whole.
    rate : Fraction
        Rate of an exponential factor ``2 ** (rate * p)``, zero or more. Exponentials suit
        parameters of algorithms, such as dimensions, but not numbers of processes.
    """

    exponent: Fraction
    log: Fraction | int
    rate: Fraction = Fraction(0)

    def __lt__(self, other: Term) -> bool:
        return self.growth < other.growth

    def __call__(self, p: npt.ArrayLike) -> FloatArray:
        """Return the values of the term.

        Parameters
        ----------
        p : array_like
            Values of the parameter, above zero; infinity is allowed.

        Returns
        -------
        ndarray
            Same shape as `p`.
        """
        return self.growth(p)

    @property
    def growth(self) -> Growth:
        """The growth of the term."""
        return Growth(self.exponent, self.log, self.rate)

    @property
    def is_power(self) -> bool:
        """Whether the term is a power without further factors."""
        return not self.log and not self.rate.numerator

    @property
    def decreasing(self) -> bool:
        """Whether the term falls as the parameter rises."""
        # Comparing numbers is several times as fast as comparing fractions.
        return self.exponent.numerator < 0 and not self.rate.numerator

    def text(self, parameter: str = "p", *, pretty: bool = False) -> str:
        """Return the term as a factor of a formula, for example ``p^(1/2) * log2(p)``."""
        factors = []
        if self.exponent:
            factors.append(raised(parameter, self.exponent, pretty=pretty))
        if self.rate:
            factors.append(exponential_text(self.rate, parameter, pretty=pretty))
        if self.log and pretty:
            factors.append(f"{raised('log₂', self.log, pretty=True)} {parameter}")
        elif self.log:
            factors.append(raised(f"log2({parameter})", self.log, pretty=False))
        return (" " if pretty else " * ").join(factors)

    def to_header(self) -> dict[str, Any]:
        """Return the term as texts and numbers for JSON."""
        log = power_of_log_to_header(self.log)
        return {"exponent": str(self.exponent), "log": log, "rate": str(self.rate)}

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Return the term of a header; `ValueError` or `KeyError` if it is not one."""
        log = as_power_of_log(header["log"])
        return cls(Fraction(header["exponent"]), log, Fraction(header["rate"]))


class SearchSpaceError(UsageError, ValueError):
    """A search space that is not valid."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="e.g. SearchSpace.of(['0', '1/2', '1'], logs=(0, 1, 2))")


def as_exponent(value: ExponentLike, what: str = "an exponent") -> Fraction:
    """Return an exponent as an exact fraction.

    Parameters
    ----------
    value : Fraction, int, float or str
        ``"1/3"``, ``0.5``, ``2``; a float stands for the nearest fraction with a denominator up
        to 100.
    what : str
        What it is, for errors.

    Returns
    -------
    Fraction
        The exponent.

    Raises
    ------
    SearchSpaceError
        If the text is not a number, or the number is not finite.
    """
    is_long = isinstance(value, str) and (len(value) > MOST_TERMS_OF_SPACE or _HUGE.search(value))
    try:
        number = math.nan if is_long else value
        fraction = fraction_of(number) if isinstance(number, str) else Fraction(number)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise SearchSpaceError(f"{_short(value)} is not {what}; write 2, 0.5 or 1/3") from error
    if isinstance(value, float):
        fraction = fraction.limit_denominator(100)
    if abs(fraction) > LARGEST_POWER or fraction.denominator > FINEST:
        raise SearchSpaceError(
            f"{_short(value)} is not an allowed exponent; exponents lie between "
            f"-{LARGEST_POWER} and {LARGEST_POWER}"
        )
    return fraction


def as_power_of_log(value: ExponentLike) -> Fraction | int:
    """Return a power of the logarithm: an int if it is whole, else a fraction.

    Raises
    ------
    SearchSpaceError
        As `as_exponent`.
    """
    power = as_exponent(value, "a power of the logarithm")
    return int(power) if power.denominator == 1 else power


def power_of_log_to_header(power: Fraction | int) -> int | str:
    """Return a power of the logarithm for JSON: a number if it is whole, else a text."""
    return int(power) if power.denominator == 1 else str(power)


def _short(value: object) -> str:
    """Return a value as it was written, shortened if it is long."""
    try:
        shown = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return shortened(shown, MOST_TERMS_OF_SPACE)


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Terms of which models are made.

    Parameters
    ----------
    exponents : tuple of Fraction
        Exponents of zero or more, each combined with each of `logs`.
    logs : tuple of Fraction or int
        Powers of the logarithm.
    max_terms : int
        Largest number of terms of a model, without the constant.
    decreasing : tuple of Fraction
        Negative exponents, without logarithms, as in ``2560 (1 - p**-1/2)`` and ``25165824 / p``.
    secondary : tuple of Fraction
        Further exponents, combined with `logs`. The classic method chooses one if it at least
        halves the cross-validated error of the best hypothesis of `exponents`. The mixture method
        gives them half the prior.
    thinned : bool
        True = secondary exponents above 1 have no squared logarithm, and those above 3/2 have no
        logarithm, because measurements cannot distinguish these terms.
    exponential : tuple of Fraction
        Rates above zero of exponentials ``2 ** (rate * x)``, alone and times whole powers of the
        parameter. They suit parameters of algorithms, not numbers of processes.
    alone : tuple of Fraction
        Exponents of terms that occur in no sum, without logarithms. Fractions have no constant
        either. Only the mixture method uses them, in one parameter.

    Raises
    ------
    SearchSpaceError
        If the space has no term, or if a field is out of range.
    """

    exponents: tuple[Fraction, ...]
    logs: tuple[Fraction | int, ...]
    max_terms: int = 5
    decreasing: tuple[Fraction, ...] = ()
    secondary: tuple[Fraction, ...] = ()
    thinned: bool = False
    exponential: tuple[Fraction, ...] = ()
    alone: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        """Check the ranges; every later step relies on them."""
        rising = (*self.exponents, *self.secondary, *self.alone)
        fractions = (*rising, *self.decreasing, *self.exponential, *self.logs)
        if not all(isinstance(each, Rational) for each in fractions):
            raise SearchSpaceError("exponents, powers of the logarithm and rates must be fractions")
        if not isinstance(self.max_terms, Integral):
            raise SearchSpaceError("the number of terms must be whole")
        if self.max_terms < 1:
            raise SearchSpaceError(
                f"max_terms is {self.max_terms}; a model needs room for at least one term"
            )
        if any(not 0 <= log <= LARGEST_POWER for log in self.logs):
            raise SearchSpaceError(
                f"powers of the logarithm must lie between 0 and {LARGEST_POWER}"
            )
        if any(abs(each) > LARGEST_POWER or each.denominator > FINEST for each in fractions):
            raise SearchSpaceError(f"exponents and rates must be at most {LARGEST_POWER}")
        if any(exponent < 0 for exponent in rising):
            raise SearchSpaceError("negative exponents belong to the decreasing terms")
        if any(exponent >= 0 for exponent in self.decreasing):
            raise SearchSpaceError("exponents of decreasing terms must be below zero")
        if any(rate <= 0 for rate in self.exponential):
            raise SearchSpaceError("rates of exponentials must be above zero")
        if not self.terms:
            raise SearchSpaceError("the search space has no term besides the constant")

    @classmethod
    def of(
        cls,
        exponents: Iterable[ExponentLike],
        logs: Iterable[ExponentLike] = (0, 1, 2),
        max_terms: int = 5,
    ) -> Self:
        """Return a space in which all exponents have the same prior.

        Parameters
        ----------
        exponents : iterable of Fraction, int, float or str
            Exponents; those below zero become decreasing terms without logarithms.
        logs : iterable of Fraction, int, float or str
            Powers of the logarithm.
        max_terms : int
            Largest number of terms of a model, without the constant.

        Returns
        -------
        SearchSpace
            The space.

        Raises
        ------
        SearchSpaceError
            If an exponent cannot be read or the space is empty.
        """
        fractions = sorted({as_exponent(exponent) for exponent in exponents})
        return cls(
            tuple(exponent for exponent in fractions if exponent >= 0),
            tuple(sorted({as_power_of_log(log) for log in logs})),
            max_terms,
            decreasing=tuple(exponent for exponent in fractions if exponent < 0),
        )

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms except the constant, in order of growth; `Models` refers to them by index."""
        grown = [
            Term(exponent, log)
            for exponent in (*self.exponents, *self.secondary)
            for log in self._logs_of(exponent)
            if exponent or log
        ]
        powers = {exponent for exponent in self.exponents if exponent.denominator == 1}
        # Subspaces of k dimensions cost up to k^5 each, so whole powers go beyond cubes here.
        beyond = BESIDE_EXPONENTIALS if max(powers, default=0) >= 3 else ()
        exploding = [
            Term(power, 0, rate)
            for rate in self.exponential
            for power in sorted({Fraction(0), *powers, *beyond})
        ]
        falling = [Term(exponent, 0) for exponent in self.decreasing]
        # Numbers distinguish terms several times as fast as fractions do.
        known = {term.growth.order: term for term in (*grown, *exploding, *falling)}
        return tuple(known[order] for order in sorted(known))

    def _logs_of(self, exponent: Fraction) -> Iterable[Fraction | int]:
        if not self.thinned or exponent < 1 or exponent in self.exponents:
            return self.logs
        most = 1 if exponent < Fraction(3, 2) else 0
        return (log for log in self.logs if log <= most)

    @property
    def first_class(self) -> tuple[bool, ...]:
        """For each of `terms`: True if its exponent is not a secondary one."""
        second = set(self.secondary) - set(self.exponents)
        return tuple(term.exponent not in second for term in self.terms)

    def describe(self) -> str:
        """Return the space as one line of text."""

        def listed(values: Iterable[object]) -> str:
            return "{" + ", ".join(str(value) for value in values) + "}"

        text = f"I={listed(self.exponents)} J={listed(self.logs)} n={self.max_terms}"
        if self.decreasing:
            text += f" decreasing={listed(self.decreasing)}"
        text += f" secondary={listed(self.secondary)}" if self.secondary else ""
        text += f" exponential={listed(self.exponential)}" if self.exponential else ""
        return text + (f" alone={listed(self.alone)}" if self.alone else "")

    def to_header(self) -> dict[str, Any]:
        """Return the space as texts and numbers for JSON."""
        return {
            "exponents": [str(exponent) for exponent in self.exponents],
            "logs": [power_of_log_to_header(log) for log in self.logs],
            "max_terms": self.max_terms,
            "decreasing": [str(exponent) for exponent in self.decreasing],
            "secondary": [str(exponent) for exponent in self.secondary],
            "thinned": self.thinned,
            "exponential": [str(rate) for rate in self.exponential],
            "alone": [str(exponent) for exponent in self.alone],
        }

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """Return the space of a header that `to_header` made.

        Raises
        ------
        ValueError
            If the header does not describe a space.
        """
        try:
            return cls(
                tuple(as_exponent(text) for text in header["exponents"]),
                tuple(as_power_of_log(log) for log in header["logs"]),
                int(header["max_terms"]),
                tuple(as_exponent(text) for text in header["decreasing"]),
                tuple(as_exponent(text) for text in header["secondary"]),
                bool(header["thinned"]),
                tuple(as_exponent(text) for text in header["exponential"]),
                tuple(as_exponent(text) for text in header["alone"]),
            )
        except (KeyError, TypeError, ArithmeticError) as error:
            raise ValueError(f"not a search space: {error}") from error


CLASSIC_SPACE = SearchSpace(
    exponents=tuple(Fraction(half, 2) for half in range(7)),
    logs=(0, 1, 2),
    max_terms=5,
    decreasing=(Fraction(-1), Fraction(-1, 2)),
    # The paper, and after it Extra-P, use these finer fractions for codes that are known to scale.
    secondary=tuple(
        sorted(
            {
                Fraction(numerator, denominator)
                for denominator in (3, 4)
                for numerator in range(1, 3 * denominator)
            }
            - {Fraction(half, 2) for half in range(7)}
        )
    ),
)
"""The search space of the classic method, whose finer fractions have to halve the error."""

_FALLING = tuple(map(Fraction, ("-1", "-9/10", "-3/4", "-2/3", "-1/2", "-1/3", "-1/4")))
"""Exponents of falling terms.

The surface of shared volumes falls by thirds in strong scaling of halo exchanges. Work that is
shared almost perfectly falls somewhat more slowly than 1/p.
"""
_FALLING_FASTER = tuple(map(Fraction, ("-3", "-2", "-5/3", "-3/2", "-4/3", "-5/4")))
"""Exponents of terms that fall faster than 1/p.

Each process sorts or solves its share, or the share fits into its caches from some scale on.
"""


def _tenths(least: int, most: int, *, besides: Iterable[Fraction]) -> tuple[Fraction, ...]:
    """Return powers between those of programs, which sums would otherwise represent."""
    every = {Fraction(number, 10) for number in range(least, most + 1)}
    return tuple(sorted(every.difference(besides)))


DEFAULT_SPACE = replace(
    CLASSIC_SPACE,
    max_terms=2,
    thinned=True,
    decreasing=tuple(sorted({*_FALLING, *_FALLING_FASTER, *_tenths(-15, -2, besides=())})),
    # Electrons correlated by perturbation (n^5) and in clusters (n^6, n^7).
    alone=(*_tenths(2, 19, besides=CLASSIC_SPACE.exponents), *map(Fraction, range(4, 8))),
)
"""The search space of the mixture method in one parameter."""

JOINT_SPACE = replace(
    DEFAULT_SPACE,
    exponents=(*DEFAULT_SPACE.exponents, Fraction(4), Fraction(5)),
    secondary=tuple(sorted({*DEFAULT_SPACE.secondary, Fraction(4, 5)})),
    decreasing=_FALLING,
    alone=(),
)
"""The search space for several parameters.

Problem sizes are lengths, and work is proportional to their volumes times the number of steps.
"""
