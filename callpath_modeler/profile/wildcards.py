"""Segments of patterns: ``*``, ``?``, ``{a,b}``, and regular expressions behind ``~``."""

from __future__ import annotations

import re
from collections.abc import Callable

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shortened
from callpath_modeler.profile.regular import Machine
from callpath_modeler.syntax import ExpressionError

_MOST_CHOICES = 1000
"""Patterns without braces that one with braces may stand for."""

_SPECIAL = re.compile(r"[*?]|\{[^{},]*,[^{}]*\}")
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")


def is_plain(segment: str) -> bool:
    """Tell whether a segment spells a name out."""
    return not segment.startswith("~") and not _SPECIAL.search(segment)


def matcher_of(segment: str) -> Callable[[str], object]:
    """Return what tells whether a segment fits a spelling.

    Raises
    ------
    UsageError
        If its regular expression is not read, or it stands for too many patterns.
    """
    if not segment.startswith("~"):
        return re.compile("|".join(map(_glob, _without_braces(segment))), re.DOTALL).fullmatch
    try:
        return Machine(segment[1:]).search
    except ExpressionError as cause:
        raise UsageError(
            f"pattern {shortened(segment)!r} is malformed: {cause}",
            hint=r"behind ~: letters . [a-z] \d \w \s * + ? {2,3} ( ) | ^ $ \b, and (?i) in front",
        ) from cause


def _without_braces(segment: str) -> list[str]:
    """Return the segments without ``{a,b}`` that one stands for."""
    # Choices stand between texts; braces without a comma stand for themselves.
    parts = _BRACES.split(segment)
    found = [parts[0]]
    for choices, text in zip(parts[1::2], parts[2::2], strict=True):
        chosen = [f"{choice}{text}" for choice in choices.split(",")]
        if len(found) * len(chosen) > _MOST_CHOICES:
            raise UsageError(
                f"pattern {shortened(segment)!r} stands for more than {_MOST_CHOICES} others",
                hint="write fewer {a,b}",
            )
        found = [f"{before}{choice}" for before in found for choice in chosen]
    return found


def _glob(segment: str) -> str:
    """Translate ``*`` and ``?``; every other character stands for itself.

    What follows a star is taken where it first comes up, and no other place is tried: the first
    leaves most for what follows. A match then takes the product of both lengths at most.
    """
    first, *others = (re.escape(part).replace(r"\?", ".") for part in segment.split("*"))
    if not others:
        return first
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return f"{first}{middle}.*{others[-1]}"
