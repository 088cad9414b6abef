"""Growths and formulas written by people, such as ``O(p^1.5 log p)`` and ``2 + 0.1 log2(p)``.

Errors in them have a position.

See docs/explanation/modeling.md, 'The method in one page'.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, NoReturn, Protocol, TypeVar

from callpath_modeler.modeling.constants.limits import DEEPEST, LONGEST_NUMBER, LONGEST_TEXT
from callpath_modeler.modeling.growth import (
    CONSTANT_GROWTH,
    VULGAR,
    Function,
    FunctionFactor,
    Growth,
)
from callpath_modeler.support.expression import END, Cursor, ExpressionError, Token


class GrowthSyntaxError(ExpressionError):
    """A text that is not a growth."""


@dataclass(frozen=True, slots=True)
class ParsedGrowth:
    """A growth and its parameter, read from a text.

    Attributes
    ----------
    growth : Growth
        The leading term, for example p^2 of ``O(p^2 + p log p)``.
    parameter : str or None
        Name of the parameter in the text; None for ``O(1)``.
    """

    growth: Growth
    parameter: str | None


def parse_growth(text: str, parameter: str | None = None) -> ParsedGrowth:
    """Return the growth in a text, in our notation or that of papers, with or without ``O( )``.

    ``O(1)``, ``p log p``, ``p*log2(p)^2``, ``log^2 p``, ``p^1.5``, ``p^(2/3)``, ``sqrt(p)``,
    ``p^½``, ``k^3 2^k``, ``2^(k/2)``, ``4^k``, ``p / log p``, ``O(p^2 + p log p)``. Rounded or cut
    decimals of thirds and sixths stand for these: ``p^0.67`` is p^(2/3).

    Parameters
    ----------
    text : str
        The text.
    parameter : str, optional
        The only allowed name of the parameter; by default any name.

    Returns
    -------
    ParsedGrowth
        Growth and parameter.

    Raises
    ------
    GrowthSyntaxError
        If the text cannot be read, has two parameters, or has a coefficient, which a growth does
        not have.
    """
    return ParsedGrowth(*_GrowthReader(text, parameter).read())


def parse_growths(text: str) -> dict[str, Growth]:
    """Return the growth of a text along each of its parameters, while the others stay.

    ``O(n^2 / p)`` is O(n^2) along n and O(p^-1) along p. Of ``O(n^2 / p + n log p)`` the fastest
    growing term counts along each parameter: n^2 and log p.

    Parameters
    ----------
    text : str
        The text, in the notation of `parse_growth`.

    Returns
    -------
    dict
        Growths by parameter, in the order of the text; empty for ``O(1)``.

    Raises
    ------
    GrowthSyntaxError
        If the text cannot be read, or has a coefficient.
    """
    every = _GrowthAlong(text, "")
    every.read()
    return {name: _GrowthAlong(text, name).read()[0] for name in every.names}


def parse_function(text: str) -> tuple[Function, str | None]:
    """Return the function in a text, and the name of its parameter; None = a constant.

    The notation is that of `parse_growth`, with or without ``O( )``. Coefficients, all terms of a
    sum, and differences count: ``0.5 + 2e-3 p log p``. ``log`` is the binary logarithm.

    Parameters
    ----------
    text : str
        The text.

    Raises
    ------
    GrowthSyntaxError
        If the text cannot be read, is too long, or has two parameters.
    """
    if len(text) > LONGEST_TEXT:
        message = f"a formula has at most {LONGEST_TEXT} characters"
        raise GrowthSyntaxError(text, LONGEST_TEXT, message)
    return _FunctionReader(text, None).read()


_SIGNS = "½⅓⅔¼¾⁰¹²³⁴-⁹"
_WORDS = rf"""
    (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{{1,3}}(?!\w))?)
  | (?P<vulgar>[½⅓⅔¼¾])
  | (?P<superscript>⁻?[⁰¹²³⁴-⁹]+)
  | (?P<name>[^\W\d_{_SIGNS}][^\W{_SIGNS}]*)
  | (?P<raise>\^|\*\*)
  | (?P<times>[*·×])
  | (?P<mark>[-+/()√])"""
_GRAMMAR = re.compile(_WORDS, re.VERBOSE)
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_VULGAR_VALUES = {sign: value for value, sign in VULGAR.items()}
_LOGARITHMS = {"log": 1.0, "log2": 1.0, "log₂": 1.0, "ld": 1.0, "lb": 1.0, "lg": 1.0,
               "ln": 0.6931471805599453, "log10": 0.3010299956639812}  # fmt: skip
"""Names of logarithms, and their values for 2."""
_ROOTS = ("sqrt", "√")
_GLUED = re.compile(r"[a-z]?(log[2₂]?|ln|sqrt)[a-z]")
"""One word that consists of two or three names."""


def _with_name(parameter: str | None) -> re.Pattern[str]:
    """Return the grammar in which the name of the parameter is one word, with any characters."""
    if parameter is None or parameter.isidentifier():
        return _GRAMMAR
    return re.compile(rf"(?P<given>{re.escape(parameter)}(?!\w)) | {_WORDS}", re.VERBOSE)


class _Term(Protocol):
    """What a text is read as; factors are multiplied, divided and raised to a power."""

    def __mul__(self: _T, other: _T, /) -> _T: ...
    def __truediv__(self: _T, other: _T, /) -> _T: ...
    def __pow__(self: _T, power: Fraction, /) -> _T: ...


_T = TypeVar("_T", bound=_Term)


class _Reader(Generic[_T]):
    """Reader of one text: a sum of products of powers."""

    def __init__(self, text: str, parameter: str | None) -> None:
        self._words = Cursor(text, _with_name(parameter), GrowthSyntaxError)
        self._wanted = parameter
        self._parameter: str | None = None
        self._depth = 0

    def read(self) -> tuple[_T, str | None]:
        """Return the content of the whole text, and the name of its parameter."""
        words = self._words
        try:
            if words.ahead.text in ("O", "Θ") and words.second().text == "(":
                words.take()
                found = self._bracket()
            else:
                found = self._sum()
        except OverflowError:
            words.fail("the exponents are larger than any number")
        words.expect(END, "the growth ends before this")
        return found, self._parameter

    def _variable(self) -> _T:
        """Return the parameter itself."""
        raise NotImplementedError

    def _constant(self, word: Token) -> _T:
        """Return a number."""
        raise NotImplementedError

    def _power_of_two(self, rate: Fraction) -> _T:
        """Return ``2 ** (rate * p)``."""
        raise NotImplementedError

    def _logarithm_of(self, argument: _T, name: Token) -> _T:
        """Return a logarithm."""
        raise NotImplementedError

    def _added(self, terms: Sequence[_T]) -> _T:
        """Return a sum of two terms or more."""
        raise NotImplementedError

    def _subtracted(self, term: _T) -> _T:
        """Return a term of a sum with the opposite sign."""
        raise NotImplementedError

    def _sum(self) -> _T:
        terms = [self._product()]
        while self._words.ahead.text in ("+", "-"):
            minus = self._words.take().text == "-"
            term = self._product()
            terms.append(self._subtracted(term) if minus else term)
        return terms[0] if len(terms) == 1 else self._added(terms)

    def _product(self) -> _T:
        words = self._words
        product = self._factor()
        while words.ahead.text not in ("+", "-", ")") and words.ahead.kind != END:
            if words.accept("/"):
                product = product / self._factor()
            else:
                words.accept("times")
                product = product * self._factor()
        return product

    def _factor(self) -> _T:
        words = self._words
        if words.ahead.kind in ("number", "vulgar"):
            return self._exponential()
        if words.ahead.text in _LOGARITHMS:
            return self._logarithm()
        if words.accept(*_ROOTS):
            return self._argument() ** (self._power() * Fraction(1, 2))
        base = self._bracket() if words.ahead.text == "(" else self._named()
        return base ** self._power()

    def _bracket(self) -> _T:
        words = self._words
        start = words.take()
        self._depth += 1
        if self._depth > DEEPEST:
            words.fail("too many brackets", start)
        found = self._sum()
        words.expect(")", "a bracket is open; ')' or a factor is missing here")
        self._depth -= 1
        return found

    def _named(self) -> _T:
        self._name()
        return self._variable()

    def _accept(self, name: Token) -> None:
        """Note the name of the parameter; it is an error if it is another one."""
        words = self._words
        if self._wanted is not None and name.text != self._wanted:
            words.fail(f"{name.text!r} is not the parameter, {self._wanted!r}", name)
        if self._parameter not in (None, name.text):
            words.fail(
                f"a growth has one parameter; this is a second one besides {self._parameter!r}",
                name,
            )
        self._parameter = name.text

    def _name(self) -> None:
        words = self._words
        name = words.ahead
        if name.kind not in ("name", "given"):
            words.fail("a factor is missing here; write a growth as in O(p^2 log p)")
        words.take()
        called = words.ahead.text == "(" and words.ahead.column == name.column + len(name.text)
        if called and len(name.text) > 1:
            words.fail(f"no function is called {name.text!r}; log and sqrt are known", name)
        if name.text != self._wanted and _GLUED.fullmatch(name.text):
            words.fail("put a blank between names: p log p", name)
        self._accept(name)

    def _argument(self) -> _T:
        """Read the argument of a logarithm or root: a name, or any growth in brackets."""
        words = self._words
        if words.ahead.text == "(":
            return self._bracket()
        found = self._named()
        if words.ahead.kind in ("raise", "superscript"):
            words.fail("is this power inside or outside? write log(p)^2 or log(p^2)")
        return found

    def _logarithm(self) -> _T:
        words = self._words
        start = words.take()
        before = words.ahead.kind in ("raise", "superscript")
        power = self._power()
        if words.ahead.text in _LOGARITHMS:
            words.fail("logarithms of logarithms are not supported")
        of = self._argument()
        power = power if before else self._power()
        return self._logarithm_of(of, start) ** power

    def _power(self) -> Fraction:
        """Read an optional exponent, which is 1 if it is absent."""
        words = self._words
        if word := words.accept("superscript"):
            return self._number(word)
        if not words.accept("raise"):
            return Fraction(1)
        if words.ahead.kind == "name":
            words.fail("an exponent must be a number; write exponentials with base 2: 2^k")
        enclosed = words.accept("(")
        value = self._signed()
        if enclosed:
            value = value / self._divisor() if words.accept("/") else value
            words.expect(")", "an exponent is a number; ')' is missing here")
        elif words.ahead.text == "/" and words.second().kind == "number":
            words.fail("put a fraction in brackets: p^(2/3)")
        return value

    def _signed(self) -> Fraction:
        negative = self._words.accept("-")
        value = self._number(self._words.take())
        return -value if negative else value

    def _divisor(self) -> Fraction:
        word = self._words.ahead
        return self._number(self._words.take()) or self._words.fail("division by zero", word)

    def _number(self, word: Token) -> Fraction:
        """Read a number; rounded or cut decimals of thirds and sixths stand for these."""
        if word.kind == "vulgar":
            return _VULGAR_VALUES[word.text]
        if word.kind not in ("number", "superscript"):
            self._words.fail("a number is missing here", word)
        exact = Fraction(word.text.translate(_PLAIN)) if len(word.text) <= LONGEST_NUMBER else None
        if exact is None or max(exact.numerator, exact.denominator) >= 10**LONGEST_NUMBER:
            self._words.fail("this number has too many digits", word)
        digits = len(word.text.partition(".")[2])
        sixth = Fraction(round(exact * 6), 6)
        near = digits >= 2 and abs(exact - sixth) < Fraction(1, 10**digits)
        return sixth if near else exact

    def _exponential(self) -> _T:
        """Read a power of two with the parameter in its exponent, or a number."""
        words = self._words
        word = words.take()
        number = self._number(word)
        if words.ahead.kind != "raise":
            return self._constant(word)
        base = number.numerator
        if number.denominator != 1 or base < 2 or base & (base - 1):
            words.fail("the base of an exponential must be 2 or a power of 2", word)
        words.take()
        rate = self._rate(word)
        return self._power_of_two(rate * (base.bit_length() - 1))

    def _rate(self, base: Token) -> Fraction:
        words = self._words
        enclosed = words.accept("(")
        rate = Fraction(-1 if words.accept("-") else 1)
        if not enclosed and words.ahead.kind in ("number", "vulgar"):
            self._coefficient(base)
        named = False
        while True:
            if words.ahead.kind in ("number", "vulgar"):
                rate *= self._number(words.take())
            elif named or words.ahead.kind == END:
                words.fail("an exponent is a number times the parameter, as in 2^(3/2 k)")
            else:
                self._name()
                named = True
            if not enclosed:
                return rate
            while words.accept("/"):
                rate /= self._divisor()
            if words.accept(")"):
                return rate if named else self._coefficient(base)
            words.accept("times")

    def _coefficient(self, number: Token) -> NoReturn:
        self._words.fail(
            "a growth has no coefficients; put fractions in exponents in brackets: p^(2/3)", number
        )


class _GrowthReader(_Reader[Growth]):
    """Reader of a growth: the fastest growing term of a sum, without coefficients."""

    def _variable(self) -> Growth:
        return Growth(Fraction(1), 0)

    def _constant(self, word: Token) -> Growth:
        return CONSTANT_GROWTH if self._number(word) == 1 else self._coefficient(word)

    def _power_of_two(self, rate: Fraction) -> Growth:
        return Growth(Fraction(0), 0, rate)

    def _logarithm_of(self, argument: Growth, name: Token) -> Growth:
        if argument <= CONSTANT_GROWTH or not (argument.rate or argument.exponent):
            message = "the argument of a logarithm must be a growing power of the parameter"
            self._words.fail(message, name)
        return Growth(Fraction(1), 0) if argument.rate else Growth(Fraction(0), 1)

    def _added(self, terms: Sequence[Growth]) -> Growth:
        return max(terms)

    def _sum(self) -> Growth:
        growth = self._product()
        while self._words.accept("+"):
            growth = max(growth, self._product())
        if self._words.ahead.text == "-":
            self._words.fail("a growth has no differences; write only its fastest growing term")
        return growth


class _GrowthAlong(_GrowthReader):
    """Reader of a growth in several parameters along one of them; the others are constants."""

    def __init__(self, text: str, along: str) -> None:
        super().__init__(text, None)
        self._along = along
        self._last = ""
        self.names: dict[str, None] = {}

    def _accept(self, name: Token) -> None:
        self._last = name.text
        self.names[name.text] = None

    def _variable(self) -> Growth:
        return super()._variable() if self._last == self._along else CONSTANT_GROWTH

    def _power_of_two(self, rate: Fraction) -> Growth:
        return super()._power_of_two(rate) if self._last == self._along else CONSTANT_GROWTH

    def _logarithm_of(self, argument: Growth, name: Token) -> Growth:
        if argument == CONSTANT_GROWTH:
            return CONSTANT_GROWTH
        return super()._logarithm_of(argument, name)


class _FunctionReader(_Reader[Function]):
    """Reader of a formula, with coefficients and all terms of a sum."""

    def _variable(self) -> Function:
        return Function(growth=Growth(Fraction(1), 0))

    def _constant(self, word: Token) -> Function:
        if word.kind == "vulgar":
            return Function(float(_VULGAR_VALUES[word.text]))
        return Function(float(word.text))

    def _power_of_two(self, rate: Fraction) -> Function:
        return Function(growth=Growth(Fraction(0), 0, rate))

    def _logarithm_of(self, argument: Function, name: Token) -> Function:
        scale = _LOGARITHMS[name.text]
        growth = argument.growth
        if argument.is_growth and not (growth.log or growth.rate) and growth.exponent > 0:
            power = Growth(Fraction(0), 1)
            return Function(scale * float(growth.exponent), power)
        return Function(scale, factors=(FunctionFactor((argument,), is_logarithm=True),))

    def _added(self, terms: Sequence[Function]) -> Function:
        return Function(factors=(FunctionFactor(tuple(terms)),))

    def _subtracted(self, term: Function) -> Function:
        return Function(-1.0) * term
