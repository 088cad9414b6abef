"""Strict decoding of JSON from untrusted sources."""

from __future__ import annotations

import json
import re

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def memory_of_json(text: str) -> int:
    """Return an upper estimate of the memory of the values of a JSON text, in bytes."""
    objects, lists = text.count("{"), text.count("[")
    return 240 * objects + 64 * lists + 30 * text.count('"') + 40 * text.count(",")


def json_value(text: str) -> object:
    """Return the value of a JSON text; NaN and infinity are numbers.

    Raises
    ------
    json.JSONDecodeError
        If the text is not JSON.
    ValueError
        If a number has thousands of digits, or if a string contains a lone surrogate.
    RecursionError
        If lists and objects are nested too deeply.
    """
    value = json.loads(text)
    # A text with a lone surrogate cannot be written as UTF-8.
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as cause:
            half = f"{ord(cause.object[cause.start]):04x}"
            raise ValueError(f"\\u{half} is a lone surrogate") from None
    return value
