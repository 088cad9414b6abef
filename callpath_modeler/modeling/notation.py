"""Growths written by people, such as ``O(p^1.5 log p)``, and the position of errors in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from callpath_modeler.modeling.growth import CONSTANT_GROWTH, VULGAR, Growth
from callpath_modeler.syntax import END, Cursor, ExpressionError, Token


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
    return _Reader(text, parameter).read()


_SIGNS = "½⅓⅔¼¾⁰¹²³⁴-⁹"
_WORDS = rf"""
    (?P<number>\d+(?:\.\d*)?|\.\d+)
  | (?P<vulgar>[½⅓⅔¼¾])
  | (?P<superscript>⁻?[⁰¹²³⁴-⁹]+)
  | (?P<name>[^\W\d_{_SIGNS}][^\W{_SIGNS}]*)
  | (?P<raise>\^|\*\*)
  | (?P<times>[*·×])
  | (?P<mark>[-+/()√])"""
_GRAMMAR = re.compile(_WORDS, re.VERBOSE)
_PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_VULGAR_VALUES = {sign: value for value, sign in VULGAR.items()}
_LOGARITHMS = ("log", "log2", "log₂", "ld", "lb", "lg", "ln", "log10")
_ROOTS = ("sqrt", "√")
_GLUED = re.compile(r"[a-z]?(log[2₂]?|ln|sqrt)[a-z]")
"""One word that consists of two or three names."""
_DEEPEST = 50
"""Largest depth of nested brackets."""
_LONGEST = 30
"""Largest number of digits of a number."""


def _with_name(parameter: str | None) -> re.Pattern[str]:
    """Return the grammar in which the name of the parameter is one word, with any characters."""
    if parameter is None or parameter.isidentifier():
        return _GRAMMAR
    return re.compile(rf"(?P<given>{re.escape(parameter)}(?!\w)) | {_WORDS}", re.VERBOSE)


class _Reader:
    """Reader of one text: a sum of products of powers."""

    def __init__(self, text: str, parameter: str | None) -> None:
        self._words = Cursor(text, _with_name(parameter), GrowthSyntaxError)
        self._wanted = parameter
        self._parameter: str | None = None
        self._depth = 0

    def read(self) -> ParsedGrowth:
        """Read the whole text."""
        words = self._words
        if words.ahead.text in ("O", "Θ") and words.second().text == "(":
            words.take()
            growth = self._bracket()
        else:
            growth = self._sum()
        words.expect(END, "the growth ends before this")
        return ParsedGrowth(growth, self._parameter)

    def _sum(self) -> Growth:
        growth = self._product()
        while self._words.accept("+"):
            growth = max(growth, self._product())
        if self._words.ahead.text == "-":
            self._words.fail("a growth has no differences; write only its fastest growing term")
        return growth

    def _product(self) -> Growth:
        words = self._words
        growth = self._factor()
        while words.ahead.text not in ("+", "-", ")") and words.ahead.kind != END:
            if words.accept("/"):
                growth /= self._factor()
            else:
                words.accept("times")
                growth *= self._factor()
        return growth

    def _factor(self) -> Growth:
        words = self._words
        if words.ahead.kind in ("number", "vulgar"):
            return self._exponential()
        if words.ahead.text in _LOGARITHMS:
            return self._logarithm()
        if words.accept(*_ROOTS):
            return self._argument() ** (self._power() * Fraction(1, 2))
        base = self._bracket() if words.ahead.text == "(" else self._named()
        return base ** self._power()

    def _bracket(self) -> Growth:
        words = self._words
        start = words.take()
        self._depth += 1
        if self._depth > _DEEPEST:
            words.fail("too many brackets", start)
        growth = self._sum()
        words.expect(")", "a bracket is open; ')' or a factor is missing here")
        self._depth -= 1
        return growth

    def _named(self) -> Growth:
        self._name()
        return Growth(Fraction(1), 0)

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
        if self._wanted is not None and name.text != self._wanted:
            words.fail(f"{name.text!r} is not the parameter, {self._wanted!r}", name)
        if self._parameter not in (None, name.text):
            words.fail(
                f"a growth has one parameter; this is a second one besides {self._parameter!r}",
                name,
            )
        self._parameter = name.text

    def _argument(self) -> Growth:
        """Read the argument of a logarithm or root: a name, or any growth in brackets."""
        words = self._words
        if words.ahead.text == "(":
            return self._bracket()
        growth = self._named()
        if words.ahead.kind in ("raise", "superscript"):
            words.fail("is this power inside or outside? write log(p)^2 or log(p^2)")
        return growth

    def _logarithm(self) -> Growth:
        words = self._words
        start = words.take()
        before = words.ahead.kind in ("raise", "superscript")
        power = self._power()
        if words.ahead.text in _LOGARITHMS:
            words.fail("logarithms of logarithms are not supported")
        of = self._argument()
        power = power if before else self._power()
        if of <= CONSTANT_GROWTH or not (of.rate or of.exponent):
            words.fail(
                "the argument of a logarithm must be a growing power of the parameter", start
            )
        return (Growth(Fraction(1), 0) if of.rate else Growth(Fraction(0), 1)) ** power

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
        if len(word.text) > _LONGEST:
            self._words.fail("this number has too many digits", word)
        exact = Fraction(word.text.translate(_PLAIN))
        digits = len(word.text.partition(".")[2])
        sixth = Fraction(round(exact * 6), 6)
        near = digits >= 2 and abs(exact - sixth) < Fraction(1, 10**digits)
        return sixth if near else exact

    def _exponential(self) -> Growth:
        """Read a power of two with the parameter in its exponent, or the number 1."""
        words = self._words
        word = words.take()
        number = self._number(word)
        if words.ahead.kind != "raise":
            return CONSTANT_GROWTH if number == 1 else self._coefficient(word)
        base = number.numerator
        if number.denominator != 1 or base < 2 or base & (base - 1):
            words.fail("the base of an exponential must be 2 or a power of 2", word)
        words.take()
        rate = self._rate(word)
        return Growth(Fraction(0), 0, rate * (base.bit_length() - 1))

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
