"""Parsing of small languages that users write, with errors that point to the column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from msgspec import Struct

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
