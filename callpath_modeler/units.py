"""Quantities as text; no other module formats numbers.

Python also reads ``1_000``, digits of other scripts and numbers of thousands of digits. No tool
writes them, so such a text is not a number here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from callpath_modeler.printable import shortened

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


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(decimal_of(text))
    except ValueError:
        return False


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


_SMALL = ((1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_TO_ASCII = str.maketrans(
    {"●": "*", "○": ".", "┊": "|", "◆": "X", "…": "...", "→": "->", "░": ":", "·": "-", "×": "x",
     "µ": "u", "∞": "inf", "—": "-", "≥": ">=", "≤": "<="}
)  # fmt: skip
_FACTOR = 10.0
"""Relative change from which a factor is clearer than a percentage."""

_LARGE = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_DECIMAL = {"": 1.0, "K": 1e3, **{prefix: scale for scale, prefix in _LARGE}}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTPE", 1)}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
_QUANTITY = re.compile(
    r"([-+]?(?:\d++(?: \d{3})*+\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?)\s*+([^\s\d_.+-].*)?", re.ASCII
)


def quantity(value: float, unit: str, *, ascii_only: bool = False) -> str:
    """Return `value` in three significant digits with its unit and an SI prefix.

    Seconds only have prefixes below one (``2.5 ms``, ``16 900 s``), all other units only prefixes
    above one (``1.28 M``, ``3.51 MB``).

    >>> quantity(0.0025, "s"), quantity(16938, "s"), quantity(3512000, "B"), quantity(1280, "1")
    ('2.50 ms', '16 900 s', '3.51 MB', '1.28 k')
    """
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return ("-" if value < 0 else "") + ("inf" if ascii_only else "∞")
    if unit == "1":
        unit = ""
    prefix, scale = _prefix(abs(value), seconds=unit == "s")
    if ascii_only:
        prefix = prefix.replace("µ", "u")
    return f"{significant(value / scale)} {prefix}{unit}".strip()


def interval(low: float, high: float, unit: str, *, ascii_only: bool = False) -> str:
    """Return an interval as text; a common unit of both ends is written once.

    >>> interval(9.6, 12.7, "s"), interval(0.0012, 4.0, "s"), interval(0.0, 4.0, "s")
    ('9.60 … 12.7 s', '1.20 ms … 4.00 s', '0 … 4.00 s')
    """
    start, end = (quantity(value, unit, ascii_only=ascii_only) for value in (low, high))
    number, _, measure = start.rpartition(" ")
    shared = number and (low == 0 or end.endswith(f" {measure}")) and measure.isalpha()
    return f"{number if shared else start} … {end}"


def _prefix(size: float, *, seconds: bool) -> tuple[str, float]:
    if seconds:
        for scale, prefix in (("", 1.0), *((p, s) for s, p in _SMALL)):
            # 0.9995 would be rounded up to 1.00 of the next prefix
            if size >= 0.9995 * prefix:
                return scale, prefix
        return ("n", 1e-9) if size > 0 else ("", 1.0)
    for scale_, prefix_ in _LARGE:
        if size >= 0.9995 * scale_:
            return prefix_, scale_
    return "", 1.0


def significant(value: float, digits: int = 3) -> str:
    """Return `value` in `digits` significant digits, with blanks between thousands.

    Very small and very large numbers have an exponent.

    >>> significant(16938.0), significant(0.04), significant(1.5e9), significant(0.0)
    ('16 900', '0.0400', '1.50e+09', '0')
    """
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    magnitude = math.floor(math.log10(abs(rounded)))
    if not -3 <= magnitude < 6:
        return f"{value:.{digits - 1}e}"
    return f"{rounded:,.{max(0, digits - 1 - magnitude)}f}".replace(",", " ")


def scientific(value: float) -> tuple[str, int]:
    """Return four significant digits of a number, and the power of ten of its exponent.

    >>> scientific(12.3456), scientific(2.1e-7)
    (('12.35', 0), ('2.1', -7))
    """
    digits, _, power = f"{value:.4g}".partition("e")
    return digits, int(power or 0)


def factor_text(factor: float) -> str:
    """Return a factor as text.

    >>> factor_text(8.0), factor_text(2.567), factor_text(52400.0)
    ('8', '2.57', '52 400')
    """
    return f"{factor:.3g}" if factor < 1000 else significant(factor)


def counted(number: int, thing: str) -> str:
    """Return a number of things as text.

    >>> counted(1, "call path"), counted(63, "other")
    ('1 call path', '63 others')
    """
    return f"{number} {thing}" + "s" * (number != 1)


def percent(share: float, digits: int = 0) -> str:
    """Return a fraction as a percentage; without decimals, very small ones are ``<1 %``.

    >>> percent(0.318), percent(0.001), percent(0.0), percent(-0.04), percent(0.318, 1)
    ('32 %', '<1 %', '0 %', '-4 %', '31.8 %')
    """
    if not math.isfinite(share):
        return "-"
    if not digits and 0 < share < 0.005:
        return "<1 %"
    return f"{share * 100:z.{digits}f} %"


def signed_percent(relative: float) -> str:
    """Return a relative change as a signed percentage, from 11 on as a factor.

    >>> [signed_percent(x) for x in (0.198, -0.042, 11.0, 0.0, float("nan"))]
    ['+20 %', '-4.2 %', '×12', '0 %', '-']
    """
    if math.isnan(relative):
        return "-"
    if math.isinf(relative):
        return "×∞"
    if relative >= _FACTOR:
        return f"×{1 + relative:.0f}" if relative < 999 else f"×{significant(1 + relative)}"
    number = f"{relative * 100:+.{1 if abs(relative) < 0.0995 else 0}f}"
    return f"{number if float(number) else 0} %"


def parameter_value(value: float) -> str:
    """Return the value of a parameter in full: ``262144``, ``0.5``, ``1e+12``, ``inf``.

    >>> parameter_value(262144.0), parameter_value(0.5), parameter_value(float("inf"))
    ('262144', '0.5', 'inf')
    """
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:g}"


def short_size(value: float) -> str:
    """Return a number of bytes in the shortest exact form.

    >>> [short_size(value) for value in (8.0, 1024.0, 1500.0, 3145728.0, 0.5)]
    ['8', '1Ki', '1500', '3Mi', '0.5']
    """
    for prefix, scale in reversed(_BINARY.items()):
        if value >= scale and value % scale == 0:
            return f"{parameter_value(value / scale)}{prefix}"
    return parameter_value(value)


def rough_value(value: float) -> str:
    """Return the value of a parameter in two digits, or in one below ten.

    >>> rough_value(418.3), rough_value(8.3), rough_value(1.35e6)
    ('420', '8', '1400000')
    """
    return parameter_value(float(f"{value:.{1 if value < 10 else 2}g}"))


def setting_text(values: Mapping[str, float]) -> str:
    """Return values of parameters as text.

    >>> setting_text({"p": 4096.0, "n": 1e6})
    'p = 4096, n = 1000000'
    """
    return ", ".join(f"{name} = {parameter_value(value)}" for name, value in values.items())


def as_option(values: Mapping[str, float]) -> str:
    """Return values of parameters in the syntax of the command line.

    >>> as_option({"p": 4096.0, "n": 1e6})
    'p=4096,n=1000000'
    """
    return ",".join(f"{name}={parameter_value(value)}" for name, value in values.items())


def to_ascii(text: str) -> str:
    """Return `text` in ASCII; a character without an equivalent becomes a question mark.

    >>> to_ascii("1.20 µs … 4.00 s · ●●○○ ü")
    '1.20 us ... 4.00 s - **.. ?'
    """
    return text.translate(_TO_ASCII).encode("ascii", "replace").decode()


def parse_quantity(text: str) -> tuple[float, str]:
    """Return the number and the unit of a quantity; the unit may be empty.

    >>> parse_quantity("2.5 ms"), parse_quantity("5%"), parse_quantity("16 900")
    ((2.5, 'ms'), (5.0, '%'), (16900.0, ''))

    Raises
    ------
    ValueError
        If the text does not begin with a number.
    """
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{shortened(text.strip())!r} is not a quantity")
    return decimal_of(found[1].replace(" ", "")), found[2] or ""


def base_and_factor(unit: str) -> tuple[str, float]:
    """Return the SI base unit of a unit, and the factor to convert to it.

    Bytes, seconds, joules, watts, hertz and plain numbers may have prefixes; any other unit is a
    base unit. The unit of plain numbers is ``"1"``.

    >>> base_and_factor("ms"), base_and_factor("%"), base_and_factor("k"), base_and_factor("page")
    (('s', 0.001), ('1', 0.01), ('1', 1000.0), ('page', 1.0))
    """
    if unit in _SECONDS:
        return "s", _SECONDS[unit]
    if unit == "%":
        return "1", 0.01
    base = next((known for known in ("B", "J", "W", "Hz") if unit.endswith(known)), "")
    prefixes = _DECIMAL | _BINARY if base == "B" else _DECIMAL
    prefix = unit.removesuffix(base)
    return (base or "1", prefixes[prefix]) if prefix in prefixes else (unit, 1.0)
