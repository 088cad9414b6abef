"""Foreign text made safe for the place where it is written: a terminal, C, DOT, Python, a shell.

Names of functions, metrics, parameters and files come from files that nobody checked. Each language
has one function here, and all code that writes the language calls it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_COMMENT_SIGNS = re.compile(r"\*(?=/)|/(?=\*)")


def printable(text: str) -> str:
    r"""Return a text with what cannot be printed written as Python does.

    >>> printable("MPI_Init\x1b[31m\n")
    'MPI_Init\\x1b[31m\\n'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def shortened(text: str, most: int = 60) -> str:
    """Return a text of at most `most` characters: where it is longer, without its middle.

    Whatever an error or a finding quotes from a file passes this function.

    >>> shortened("MPI_Allreduce"), shortened("x" * 1000, 13)
    ('MPI_Allreduce', 'xxxxxxxx...xx')
    """
    if len(text) <= most:
        return text
    end = max(0, most - 3) // 4
    return f"{text[: max(0, most - 3 - end)]}...{text[len(text) - end :]}"


def in_one_line(text: str, other: str = " ") -> str:
    """Return a text with another sign for each that cannot be printed."""
    return "".join(sign if sign.isprintable() else other for sign in text)


def c_comment(text: str) -> str:
    r"""Return a text that cannot end a comment of C, or begin another.

    >>> c_comment("x*/ system(1); /\\*")
    'x* / system(1); /\\*'
    """
    # A backslash stays one: turned into a slash it would make the end of a comment.
    return _COMMENT_SIGNS.sub(r"\g<0> ", printable(text))


def dot_string(text: str) -> str:
    r"""Return a text as a quoted string of the DOT language.

    >>> print(dot_string('a"b\\'))
    "a\"b\\"
    """
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def python_docstring(text: str) -> str:
    """Return a text that can stand in a docstring of Python, in one line."""
    return in_one_line(text).replace("\\", "\\\\").replace('"', "'")


def shell_word(word: str) -> str:
    """Return one word for a POSIX shell, in quotes where it needs them.

    >>> shell_word("p>=64"), shell_word("p=64")
    ("'p>=64'", 'p=64')
    """
    return shlex.quote(printable(word))


def shell_words(words: Iterable[str]) -> str:
    """Return words for a POSIX shell, in one line.

    >>> shell_words(["rank", "a b", "$(id)"])
    "rank 'a b' '$(id)'"
    """
    return " ".join(map(shell_word, words))
