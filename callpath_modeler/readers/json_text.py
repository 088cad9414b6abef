"""JSON of other people: decoded in full, or refused with a `ValueError`."""

from __future__ import annotations

import json
import re

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def memory_of_json(text: str) -> int:
    """Return about how many bytes the values of a text of JSON take, rather more than less."""
    objects, lists = text.count("{"), text.count("[")
    return 240 * objects + 64 * lists + 30 * text.count('"') + 40 * text.count(",")


def json_value(text: str) -> object:
    """Return what a text of JSON holds; NaN and infinity are numbers.

    Raises
    ------
    json.JSONDecodeError
        If the text is no JSON.
    ValueError
        If a number has thousands of digits, or half a character stands in a text.
    RecursionError
        If lists and objects are nested too deeply.
    """
    value = json.loads(text)
    # The escape of half a character (a lone surrogate) makes a text that cannot be written.
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as cause:
            half = f"{ord(cause.object[cause.start]):04x}"
            raise ValueError(f"\\u{half} is half a character") from None
    return value
