"""Statements of coNCePTuaL, and their lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from callpath_modeler.printable import printable

_STEP = "  "


@dataclass(slots=True)
class PakinStatement:
    """A statement, or a loop if it has a body.

    Attributes
    ----------
    comments : lines before it
    """

    text: str
    comments: list[str] = field(default_factory=list)
    body: list[PakinStatement] | None = None

    @property
    def is_said(self) -> bool:
        """Whether the program has a line for it."""
        return bool(self.text)


def statement_lines(statement: PakinStatement, depth: int, end: str) -> Iterator[str]:
    """Yield the lines of a statement.

    Parameters
    ----------
    depth : loops around
    end : what follows the statement: a period, THEN, or nothing
    """
    indent = _STEP * depth
    yield from (f"{indent}# {printable(comment)}" for comment in statement.comments)
    if statement.body is None:
        if statement.text:
            yield f"{indent}{statement.text}{end}"
        return
    yield f"{indent}{statement.text} {{"
    last = max((k for k, one in enumerate(statement.body) if one.is_said), default=-1)
    for k, one in enumerate(statement.body):
        yield from statement_lines(one, depth + 1, " THEN" if k < last and one.is_said else "")
    yield f"{indent}}}{end}"


def comments_of(body: Sequence[PakinStatement]) -> list[PakinStatement]:
    """Return the comments of a loop that says nothing."""
    return [PakinStatement("", one.comments) for one in body]
