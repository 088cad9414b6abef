"""Small languages that users write: their parser, and arithmetic of metrics with units.

Examples of expectation files: ``bytes * processes_per_node <= 24 GB`` and
``{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}``. Names, and names in quotation marks, are
numbers and metrics. Braces contain call-path patterns. Numbers may have units. The operators are
``+ - * /``, brackets, ``max(...)`` and ``min(...)``, with one ``<=`` or ``>=``. The formula of a
metric has neither comparisons nor call paths nor units.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import reduce
from typing import NoReturn

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray
from callpath_modeler.units import base_and_factor, decimal_of, is_plain

END = "end"
"""Kind of the token that marks the end."""

_SHOWN = 200
"""Number of characters that an error quotes."""


class ExpressionError(ValueError):
    """A text with a syntax error.

    Attributes
    ----------
    text : str
        The whole text.
    column : int
        Position of the error, from 0.
    message : str
        What is wrong, and what would be right.
    """

    def __init__(self, text: str, column: int, message: str) -> None:
        # Only the surroundings of the error are quoted, because the text may be a whole file.
        begin = max(0, column - _SHOWN // 2)
        shown = text if len(text) <= _SHOWN else text[begin : begin + _SHOWN]
        super().__init__(f"{message}, at column {column + 1} of {shown!r}")
        self.text = text
        self.column = column
        self.message = message


class Token(Struct, frozen=True):
    """A token: its kind, its text, and its start, from 0."""

    kind: str
    text: str
    column: int


class Cursor:
    """The tokens of a text, read one by one.

    Parameters
    ----------
    text : str
        The input of the user.
    grammar : compiled pattern
        Pattern of one token; the name of the matching group is its kind. Blanks are skipped.
    fault : type of ExpressionError
        The error of this language.

    Raises
    ------
    ExpressionError
        If a character does not start a token.
    """

    def __init__(self, text: str, grammar: re.Pattern[str], fault: type[ExpressionError]) -> None:
        self.text = text
        self._fault = fault
        self._tokens = tuple(self._split(grammar))
        self._next = 0

    def _split(self, grammar: re.Pattern[str]) -> Iterator[Token]:
        column = 0
        while column < len(self.text):
            if self.text[column].isspace():
                column += 1
                continue
            found = grammar.match(self.text, column)
            if found is None or found.lastgroup is None:
                raise self._fault(self.text, column, f"{self.text[column]!r} is not allowed here")
            yield Token(found.lastgroup, found.group(), column)
            column = found.end()
        yield Token(END, "", len(self.text.rstrip()))

    @property
    def ahead(self) -> Token:
        """The next token."""
        return self._tokens[self._next]

    def second(self) -> Token:
        """Return the token after the next."""
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Return the next token and advance."""
        token = self.ahead
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def accept(self, *words: str) -> Token | None:
        """Return the next token and advance if its text or kind is one of `words`, else None."""
        return self.take() if self.ahead.text in words or self.ahead.kind in words else None

    def expect(self, word: str, message: str) -> Token:
        """Return the next token and advance; fail unless its text or kind is `word`."""
        return self.accept(word) or self.fail(message)

    def fail(self, message: str, at: Token | None = None) -> NoReturn:
        """Raise the error of this language at a token, by default at the next one."""
        raise self._fault(self.text, (at or self.ahead).column, message)


_DEEPEST = 50
"""Largest depth of nested brackets."""

_TOKEN = re.compile(
    r"""(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)
      | (?P<name>[^\W\d][\w.]*)
      | (?P<percent>%)
      | (?P<quoted>'[^']*'|"[^"]*"|`[^`]*`)
      | (?P<callpaths>\{(?:[^{}]|\{[^{}]*\})*\})
      | (?P<comparison><=|>=)
      | (?P<sign>[-+*/(),])""",
    re.VERBOSE,
)


class ComparisonError(ExpressionError):
    """Text that is not valid arithmetic."""


class NumberNode(Struct, frozen=True):
    """A number in its SI base unit; plain numbers have the unit ``"1"``."""

    value: float
    unit: str


class NameNode(Struct, frozen=True):
    """The name of a number or a metric."""

    text: str
    column: int


class CallPathsNode(Struct, frozen=True):
    """A pattern of call paths."""

    pattern: str
    column: int


class SumNode(Struct, frozen=True):
    """Terms of a sum; each may be subtracted."""

    terms: tuple[Node, ...]
    negative: tuple[bool, ...]


class ProductNode(Struct, frozen=True):
    """Factors of a product; each may be a divisor."""

    factors: tuple[Node, ...]
    divides: tuple[bool, ...]


class ExtremeNode(Struct, frozen=True):
    """The maximum or the minimum of some terms."""

    largest: bool
    parts: tuple[Node, ...]


Leaf = NameNode | CallPathsNode
Node = NumberNode | Leaf | SumNode | ProductNode | ExtremeNode


class Comparison(Struct, frozen=True):
    """A comparison of two sides.

    Attributes
    ----------
    text : the text of the file
    left, right : the sides
    at_most : True for ``<=``, False for ``>=``
    """

    text: str
    left: Node
    right: Node
    at_most: bool


def parse_comparison(text: str) -> Comparison:
    """Return the comparison that a text with ``<=`` or ``>=`` states.

    Raises
    ------
    ComparisonError
        If the text is invalid.
    """
    reader = _Reader(text)
    left = reader.sum()
    sign = reader.tokens.expect("comparison", "a comparison is needed here: <= or >=")
    right = reader.sum()
    if reader.tokens.ahead.kind != END:
        reader.tokens.fail("the comparison has ended before this")
    return Comparison(text, left, right, sign.text == "<=")


def parse_formula(text: str) -> Node:
    """Return the arithmetic of names and plain numbers that a text states.

    Raises
    ------
    ComparisonError
        If the text is invalid.
    """
    reader = _Reader(text, of_metrics=True)
    found = reader.sum()
    if reader.tokens.ahead.kind != END:
        reader.tokens.fail("an operator is needed here: + - * /")
    return found


class _Reader:
    """Recursive-descent parser of one text.

    Parameters
    ----------
    text : the text
    of_metrics : only names and plain numbers are operands
    """

    def __init__(self, text: str, *, of_metrics: bool = False) -> None:
        self.tokens = Cursor(text, _TOKEN, ComparisonError)
        self._of_metrics = of_metrics
        self._depth = 0

    def sum(self) -> Node:
        tokens = self.tokens
        negative = [tokens.accept("-") is not None]
        terms = [self._product()]
        while tokens.ahead.text in ("+", "-"):
            negative.append(tokens.take().text == "-")
            terms.append(self._product())
        return terms[0] if negative == [False] else SumNode(tuple(terms), tuple(negative))

    def _product(self) -> Node:
        tokens = self.tokens
        divides = [False]
        factors = [self._factor()]
        while tokens.ahead.text in ("*", "/"):
            divides.append(tokens.take().text == "/")
            first = tokens.ahead
            factors.append(self._factor())
            if divides[-1] and isinstance(factors[-1], NumberNode) and factors[-1].value == 0:
                tokens.fail("nothing can be divided by zero", first)
        return factors[0] if len(factors) == 1 else ProductNode(tuple(factors), tuple(divides))

    def _factor(self) -> Node:
        token = self.tokens.take()
        if token.kind == "number":
            if not is_plain(token.text):
                self.tokens.fail("a number has too many digits", token)
            unit = None if self._of_metrics else self.tokens.accept("name", "percent")
            base, factor = base_and_factor(unit.text if unit else "")
            return NumberNode(decimal_of(token.text) * factor, base)
        if token.kind == "callpaths" and not self._of_metrics:
            return CallPathsNode(token.text[1:-1].strip(), token.column)
        if token.text in ("max", "min") and self.tokens.ahead.text == "(":
            self.tokens.take()
            return ExtremeNode(token.text == "max", tuple(self._listed(token)))
        if token.kind in ("name", "quoted"):
            is_quoted = token.kind == "quoted"
            return NameNode(token.text[1:-1] if is_quoted else token.text, token.column)
        if token.text == "(":
            return next(self._listed(token, most=1))
        others = "" if self._of_metrics else ", {call paths}"
        return self.tokens.fail(f"a number, a name{others} or a bracket is needed", token)

    def _listed(self, opening: Token, most: int | None = None) -> Iterator[Node]:
        """Return the terms in brackets, up to the closing one."""
        self._depth += 1
        if self._depth > _DEEPEST:
            self.tokens.fail(f"more than {_DEEPEST} brackets in brackets", opening)
        found = [self.sum()]
        while most is None and self.tokens.accept(","):
            found.append(self.sum())
        self.tokens.expect(")", "a closing bracket is needed here")
        self._depth -= 1
        return iter(found)


def leaves(node: Node) -> Iterator[Leaf]:
    """Return the names and call paths of a side, from left to right."""
    waiting = [node]
    while waiting:
        first = waiting.pop()
        if isinstance(first, NameNode | CallPathsNode):
            yield first
        elif not isinstance(first, NumberNode):
            waiting += reversed(parts_of(first))


def parts_of(node: SumNode | ProductNode | ExtremeNode) -> tuple[Node, ...]:
    """Return the operands of a node."""
    match node:
        case SumNode():
            return node.terms
        case ProductNode():
            return node.factors
        case ExtremeNode():
            return node.parts


def evaluate(node: Node, value_of: Callable[[Leaf], FloatArray]) -> FloatArray:
    """Return the value of a side in SI base units, from the values of its leaves."""
    if isinstance(node, NumberNode):
        return np.asarray(node.value)
    if isinstance(node, NameNode | CallPathsNode):
        return value_of(node)
    values = [evaluate(part, value_of) for part in parts_of(node)]
    if isinstance(node, ExtremeNode):
        return np.asarray(reduce(np.maximum if node.largest else np.minimum, values))
    total = np.asarray(0.0 if isinstance(node, SumNode) else 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(node, SumNode):
            for value, negative in zip(values, node.negative, strict=True):
                total = total - value if negative else total + value
        else:
            for value, divides in zip(values, node.divides, strict=True):
                total = total / value if divides else total * value
    return total


Units = tuple[tuple[str, int], ...]
"""Base units and their powers, by name; empty for plain numbers."""


def as_units(unit: str) -> Units:
    """Return a base unit as `Units`; the unit of plain numbers is ``"1"``."""
    return () if unit == "1" else ((unit, 1),)


def units_of(text: str, node: Node, of_leaf: Callable[[Leaf], Units]) -> Units:
    """Return the unit of a side, from the units of its leaves.

    Raises
    ------
    ComparisonError
        If numbers of different units are added or compared.
    """
    if isinstance(node, NumberNode):
        return as_units(node.unit)
    if isinstance(node, NameNode | CallPathsNode):
        return of_leaf(node)
    found = [units_of(text, part, of_leaf) for part in parts_of(node)]
    if not isinstance(node, ProductNode):
        for other in found[1:]:
            check_same_unit(text, found[0], other)
        return found[0]
    powers: dict[str, int] = {}
    for units, divides in zip(found, node.divides, strict=True):
        for unit, power in units:
            powers[unit] = powers.get(unit, 0) + (-power if divides else power)
    return tuple(sorted((unit, power) for unit, power in powers.items() if power))


def check_same_unit(text: str, left: Units, right: Units) -> None:
    """Raise `ComparisonError` if two units differ."""
    if left != right:
        raise ComparisonError(
            text,
            0,
            " against ".join(
                "a plain number" if one == () else unit_text(one) for one in (left, right)
            ),
        )


def unit_text(units: Units) -> str:
    """Return units as text; ``"1"`` for plain numbers."""
    return " ".join(u if power == 1 else f"{u}^{power}" for u, power in units) or "1"
