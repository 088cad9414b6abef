"""Numbers in the notations of people: thousands, decimal commas, powers, durations, deviations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from callpath_modeler.units import decimal_of

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "--", "—", "–", "?", "n.a."})
"""Cells without a value, in lower case."""

_FIRST = 20
"""Number of cells that are read first, because most columns of texts are no numbers."""
_LONGEST = 64
"""Most characters of a number in one of these notations."""

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_PLAIN = re.compile(_NUMBER)
_POWER = re.compile(rf"(?:({_NUMBER})\s*[x*×·]\s*)?(\d+)\s*(?:\^|\*\*)\s*(-?\d+)")
_DEVIATION = re.compile(rf"({_NUMBER})\s*(?:±|\+/?-)\s*{_NUMBER}\s*(%?)(?:\s*([a-zµ]+\.?))?")
_CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d\d(?:\.\d*)?)")
_SPAN = re.compile(r"(?:(\d++)d)?(?:(\d++)h)?(?:(\d++)m(?:in)?)?(?:(\d++(?:\.\d*+)?)s)?")
_QUANTITY = re.compile(rf"({_NUMBER})\s*([A-Za-zµ%]+)\.?")
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:[,'’  \u202f]\d{3})+(?:\.\d+)?")
_GERMAN = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][-+]?\d+)?")
_UNCLEAR = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
_UNCLEAR_UNIT = re.compile(r"\d{3}\s*[A-Za-zµ]*\.?")
"""Behind a comma: three digits, which may be decimals or thousands."""
_SEPARATORS = re.compile(r"[,'’  \u202f]")

TIMES = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "usec", "usecs", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
"""Seconds by unit of time, in lower case; "m" and "d" only stand behind numbers."""

_DECIMAL = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}


@dataclass(frozen=True, slots=True)
class Written:
    """A column of numbers in one notation.

    Attributes
    ----------
    values : numbers, or None = no value; durations are in seconds
    notation : name of the notation, for messages
    unit : unit that the cells state, or ""
    """

    values: list[float | None]
    notation: str
    unit: str = ""


def written_numbers(cells: Sequence[object], *, point: bool = True) -> Written | None:
    """Return the numbers of a column in the first notation that fits all its cells; None = none.

    Parameters
    ----------
    point : whether other columns of the table have a decimal point, so that a comma in ``1,234``
        separates thousands

    Examples
    --------
    >>> written_numbers(["12,345.6", "980.1"]).values, written_numbers(["2^0", "2^20"]).values
    ([12345.6, 980.1], [1.0, 1048576.0])
    >>> written_numbers(["1:02:03", "59:10"]).values, written_numbers(["1.5 ms", "2 s"]).values
    ([3723.0, 3550.0], [0.0015, 2.0])
    >>> written_numbers(["10k", "1.5M"]).values, written_numbers(["10.1 +- 0.2"]).values
    ([10000.0, 1500000.0], [10.1])
    >>> written_numbers(["1,5", "12,25"]).values, written_numbers(["4x2"])
    ([1.5, 12.25], None)
    """
    first = next((cell for cell in cells if isinstance(cell, str) and not is_missing(cell)), "")
    if not any(map(str.isdigit, first)):
        return None
    texts = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
    there = [text for text in texts if isinstance(text, str) and not is_missing(text)]
    if max(map(len, there)) > _LONGEST:
        return None
    for notation, unit, read in _notations(there, point=point):
        try:
            _ = [read(text) for text in there[:_FIRST]]
            values = [_value(text, read) for text in texts]
        except (ValueError, OverflowError):
            continue
        return Written(values, notation, unit)
    return None


def readings(cell: object) -> tuple[str, str] | None:
    """Return both readings of a number whose comma may separate thousands; None = it may not.

    >>> readings("12,345"), readings("1,5"), readings("12,345.6")
    (('12345', '12.345'), None, None)
    """
    text = cell.strip() if isinstance(cell, str) else ""
    if _UNCLEAR.fullmatch(text) is None:
        return None
    return text.replace(",", ""), text.replace(",", ".")


def groups_thousands(cells: Sequence[object], *, are_whole: bool) -> bool:
    """Return whether the commas of a column certainly separate thousands.

    Parameters
    ----------
    are_whole : whether the numbers count something, so that 1,024 cannot be 1.024

    Examples
    --------
    >>> groups_thousands(["12,345.6", "980"], are_whole=False)
    True
    >>> [groups_thousands(["512", "1,024"], are_whole=whole) for whole in (True, False)]
    [True, False]
    >>> groups_thousands(["1,000", "2,000"], are_whole=True)  # 1 and 2 with three decimals
    False
    """
    texts = [str(cell).strip() for cell in cells if not is_missing(cell)]
    with_comma = [text for text in texts if "," in text]
    others = [text for text in texts if "," not in text]
    if not with_comma or not all(map(_THOUSANDS.fullmatch, with_comma)):
        return False
    if not all(map(_PLAIN.fullmatch, others)):
        return False
    if any("." in text or text.count(",") > 1 for text in with_comma):
        return True
    is_count = are_whole and all(map(str.isdigit, others))
    return is_count and (bool(others) or any(not text.endswith(",000") for text in with_comma))


def has_decimal_commas(cells: Sequence[object]) -> bool:
    """Return whether a column has a number whose comma certainly is a decimal comma."""
    texts = (cell.strip() for cell in cells if isinstance(cell, str) and "," in cell)
    return any(_GERMAN.fullmatch(text) and not _THOUSANDS.fullmatch(text) for text in texts)


def is_missing(cell: object) -> bool:
    """Return whether a cell has no value."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def _value(cell: object, read: Callable[[str], float]) -> float | None:
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        return read(cell)
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        return float(cell)
    raise ValueError("neither a text nor a number")


def _notations(
    there: Sequence[str], *, point: bool
) -> list[tuple[str, str, Callable[[str], float]]]:
    """Return the notations that the cells may have: name, unit and the function that reads one."""
    first = there[0]
    found: list[tuple[str, str, Callable[[str], float]]] = []
    with_comma = [text for text in there if "," in text]
    are_thousands = all(_THOUSANDS.fullmatch(text) for text in with_comma)
    is_sure = point or any("." in text or text.count(",") > 1 for text in with_comma)
    if not with_comma or (are_thousands and is_sure):
        found.append(("thousands separators", "", _grouped))
    if with_comma and all(_GERMAN.fullmatch(text) for text in with_comma):
        is_decimal = any(
            _decimals(text) != 3 or text.lstrip("+-").startswith("0,") for text in with_comma
        )
        if is_decimal and not (are_thousands and is_sure):
            found.append(("decimal commas", "", _german))
    found += [
        ("powers", "", _power),
        ("values with deviations", _unit_of_deviation(first), _with_deviation),
        ("durations", "s", _duration),
        ("durations with decimal commas", "s", _german_duration),
        ("percentages", "%", _percent),
        ("factors", "x", _factor),
        ("thousands and millions", "", _prefixed),
    ]
    return found


def _decimals(text: str) -> int:
    return len(text.rpartition(",")[2])


def _plain(text: str) -> float:
    text = text.lstrip("~≈")
    return decimal_of(text)


def _grouped(text: str) -> float:
    return _plain(_SEPARATORS.sub("", text) if _THOUSANDS.fullmatch(text) else text)


def _german(text: str) -> float:
    return _plain(text.replace(".", "").replace(",", ".") if "," in text else text)


def _power(text: str) -> float:
    found = _POWER.fullmatch(text)
    if found is None:
        return _plain(text)
    base, exponent = int(found[2]), int(found[3])
    if abs(exponent) > 400 or base > 1 << 32:
        raise ValueError("too large")
    return decimal_of(found[1] or "1") * float(base) ** exponent


def _with_deviation(text: str) -> float:
    found = _DEVIATION.fullmatch(text)
    if found is None:
        return _plain(text)
    unit = (found[3] or "").rstrip(".").lower()
    return decimal_of(found[1]) * TIMES.get(unit, 1.0)


def _unit_of_deviation(text: str) -> str:
    found = _DEVIATION.fullmatch(text)
    return "s" if found and (found[3] or "").rstrip(".").lower() in TIMES else ""


def _duration(text: str) -> float:
    if text.upper().startswith("PT"):
        text = text[2:].lower()
    clock = _CLOCK.fullmatch(text)
    if clock:
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    quantity = _QUANTITY.fullmatch(text)
    if quantity and quantity[2].lower() in TIMES:
        return decimal_of(quantity[1]) * TIMES[quantity[2].lower()]
    span = _SPAN.fullmatch("".join(text.split()))
    if span and any(span.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in span.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    raise ValueError(f"{text!r} is not a duration")


def _german_duration(text: str) -> float:
    """Return a duration such as ``120,5 s``; ``12,345 s`` has two readings and is none."""
    number, comma, decimals = text.partition(",")
    if not comma or "." in text or (number != "0" and _UNCLEAR_UNIT.fullmatch(decimals)):
        raise ValueError(f"{text!r} is not a duration with a decimal comma")
    return _duration(f"{number}.{decimals}")


def _percent(text: str) -> float:
    if not text.endswith("%"):
        return _plain(text)
    return decimal_of(text[:-1])


def _factor(text: str) -> float:
    if text[-1:] not in "x×":
        raise ValueError(f"{text!r} is not a factor")
    return _plain(text[:-1].strip())


def _prefixed(text: str) -> float:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return _plain(text)
    factor = _DECIMAL.get(found[2]) or _BINARY.get(found[2].removesuffix("B").removesuffix("b"))
    if factor is None:
        raise ValueError(f"{text!r} is not a number")
    return decimal_of(found[1]) * factor
