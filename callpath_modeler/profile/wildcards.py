"""Segments of call-path patterns: ``*``, ``?``, ``{a,b}``, and regular expressions after ``~``."""

from __future__ import annotations

import re
from collections.abc import Callable

from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shortened
from callpath_modeler.syntax import ExpressionError

_MOST_CHOICES, _LONGEST = 1000, 20_000
"""Maximum number of expansions of a segment with braces, and of their characters.

The time for compiling expansions grows with the square of a beginning that all of them share.
"""

_SPECIAL = re.compile(r"[*?]|\{[^{},]*,[^{}]*\}")
_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")


def is_plain(segment: str) -> bool:
    """Return whether a segment is a name without wildcards."""
    return not segment.startswith("~") and not _SPECIAL.search(segment)


def matcher_of(segment: str) -> Callable[[str], object]:
    """Return a function that returns a true value for matching names.

    Raises
    ------
    UsageError
        If the regular expression is not supported, or the segment has too many expansions.
    """
    if not segment.startswith("~"):
        return re.compile("|".join(map(_glob, _without_braces(segment))), re.DOTALL).fullmatch
    # Few patterns are regular expressions.
    from callpath_modeler.profile.regular import Machine

    try:
        return Machine(segment[1:]).search
    except ExpressionError as cause:
        raise UsageError(
            f"pattern {shortened(segment)!r} is malformed: {cause}",
            hint=r"behind ~: letters . [a-z] \d \w \s * + ? {2,3} ( ) | ^ $ \b, and (?i) in front",
        ) from cause


def _without_braces(segment: str) -> list[str]:
    """Return the expansions of ``{a,b}`` in a segment."""
    # Odd parts are choices. Braces without a comma are ordinary characters.
    parts = _BRACES.split(segment)
    found = [parts[0]]
    for choices, text in zip(parts[1::2], parts[2::2], strict=True):
        chosen = [f"{choice}{text}" for choice in choices.split(",")]
        if len(found) * len(chosen) > _MOST_CHOICES:
            raise UsageError(
                f"pattern {shortened(segment)!r} has more than {_MOST_CHOICES} alternatives",
                hint="use fewer braces {a,b}",
            )
        longest = len(chosen) * sum(map(len, found)) + len(found) * sum(map(len, chosen))
        if longest > _LONGEST:
            raise UsageError(
                f"pattern {shortened(segment)!r} has alternatives of more than {_LONGEST} "
                "characters",
                hint="use fewer or shorter braces {a,b}",
            )
        found = [f"{before}{choice}" for before in found for choice in chosen]
    return found


def _glob(segment: str) -> str:
    """Return the regular expression for ``*`` and ``?``; other characters match themselves.

    The text after a star matches at its first occurrence; others are not tried, because the first
    one leaves the most text for the rest. The time for a match is at most proportional to the
    product of both lengths.
    """
    first, *others = (re.escape(part).replace(r"\?", ".") for part in segment.split("*"))
    if not others:
        return first
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return f"{first}{middle}.*{others[-1]}"
