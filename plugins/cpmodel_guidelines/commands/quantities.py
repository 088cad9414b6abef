"""Quantities in options: times, rates and percentages, with their units."""

from __future__ import annotations

from callpath_modeler.errors import UsageError
from callpath_modeler.units import base_and_factor, parse_quantity


def quantity(text: str, option: str, base: str, *, most: float, example: str) -> float:
    """Return the number of an option in its base unit.

    Parameters
    ----------
    text : number with its unit
    option : name of the option, for messages
    base : unit without prefix: ``s``, ``B/s``, or ``1`` for percentages and plain numbers
    most : the number has to be below it, and zero or more
    example : a correct value

    Raises
    ------
    UsageError
        If the text is malformed, has another unit, or is out of range.
    """
    hint = f"e.g. {option} {example}"
    try:
        number, unit = parse_quantity(text)
    except ValueError as cause:
        raise UsageError(f"{option}: {cause}", hint=hint) from None
    found, factor = base_and_factor(unit.removesuffix("/s") if base.endswith("/s") else unit)
    is_unit = found == base.removesuffix("/s") and unit.endswith("/s") == base.endswith("/s")
    if not is_unit or not 0 <= number * factor < most:
        what = {"s": "a time", "B/s": "a bandwidth", "1": "a percentage"}[base]
        limit = f"{most * 100:.0f} %" if base == "1" else f"{most:g} {base}"
        raise UsageError(f"{option} {text!r} is not {what} below {limit}", hint=hint)
    return number * factor
