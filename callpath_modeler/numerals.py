"""Numbers as people and tools write them in files, names and options.

Python also reads ``1_000``, digits of other scripts and numbers of thousands of digits. No tool
writes them, so such a text is not a number here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callpath_modeler.arrays import FloatArray

LONGEST = 400
"""Most characters of a number; the largest float has 309 digits."""

_AT_ONCE = 1 << 12
_WHOLE = re.compile(r"\s*[-+]?[0-9]+\s*", re.ASCII)


def decimal_of(text: str) -> float:
    """Return the number that a text writes; ``inf`` and ``nan`` are numbers.

    >>> decimal_of("1e6"), decimal_of(" -2.5 ")
    (1000000.0, -2.5)

    Raises
    ------
    ValueError
        If the text is not a number.
    """
    _require(text, "_" not in text and text.isascii())
    return float(text)


def whole_of(text: str) -> int:
    """Return the whole number that a text writes.

    >>> whole_of("64")
    64

    Raises
    ------
    ValueError
        If the text is not a whole number.
    """
    _require(text, _WHOLE.fullmatch(text) is not None)
    return int(text)


def fraction_of(text: str) -> Fraction:
    """Return the exact number that a text writes, such as ``1/3`` or ``0.5``.

    Raises
    ------
    ValueError, ZeroDivisionError
        If the text is not a number.
    """
    _require(text, "_" not in text and text.isascii())
    return Fraction(text)


def is_plain(text: str) -> bool:
    """Return whether a text has no signs that only Python takes for those of a number."""
    return len(text) <= LONGEST and "_" not in text and text.isascii()


def are_plain(texts: Sequence[str]) -> bool:
    """Return whether no text has signs that only Python takes for those of a number."""
    return max(map(len, texts), default=0) <= LONGEST and all(
        "_" not in some and some.isascii() for some in map("".join, _parts(texts))
    )


def decimals_of(texts: Sequence[str]) -> FloatArray:
    """Return the numbers that texts write, [n]; raise `ValueError` as `decimal_of` does."""
    import numpy as np

    _require("one of the values", are_plain(texts))
    return np.array(texts, np.float64)


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(texts), _AT_ONCE):
        yield texts[first : first + _AT_ONCE]


def _require(text: str, holds: bool) -> None:
    if len(text) > LONGEST or not holds:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise ValueError(f"{shown!r} is not a number")
