"""Text from files as it may be shown: in one line, and harmless to a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Return a text with what cannot be printed written as Python does.

    >>> printable("MPI_Init\x1b[31m\n")
    'MPI_Init\\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def in_one_line(text: str, other: str = " ") -> str:
    """Return a text with another sign for each that cannot be printed."""
    return "".join(sign if sign.isprintable() else other for sign in text)
