"""Options that are one of a few words, given from Python, where no command line checks them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from callpath_modeler.errors import UsageError, did_you_mean

_Kind = TypeVar("_Kind", bound=StrEnum)


def member(kind: type[_Kind], value: str, what: str) -> _Kind:
    """Return what a word, or itself, stands for.

    Parameters
    ----------
    what : the option, for people

    Raises
    ------
    UsageError
        If there is no such word.
    """
    check_choice(value, kind, what)
    return kind(value)


def check_choice(value: str, known: Iterable[str], what: str) -> None:
    """Raise `UsageError` where a word is none of those that are known."""
    words = [str(word) for word in known]
    if value not in words:
        meant = f"{did_you_mean(str(value), words)} known: {', '.join(words)}".lstrip()
        raise UsageError(f"no {what} {value!r}", hint=meant)
