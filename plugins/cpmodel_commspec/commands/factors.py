"""Factors on the command line."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import click

_FACTOR = re.compile(r"\+?(\d{1,12}(\.\d{0,12})?|\.\d{1,12})([eE][+-]?\d{1,2})?", re.ASCII)
_LARGEST = 1e9
_SMALLEST = 1e-9


# A subscript would need a newer click.
class Factor(click.ParamType):  # type: ignore[type-arg]
    """A decimal number, exactly: 0, or from 1e-9 to 1e9."""

    name = "factor"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Fraction:
        """Return the number."""
        if isinstance(value, Fraction):
            return value
        text = str(value)
        found = Fraction(text) if _FACTOR.fullmatch(text) else Fraction(-1)
        if found != 0 and not _SMALLEST <= found <= _LARGEST:
            what = f"{text[:40]!r} is not a number between 0 and 1e9, such as 0.5 or 4"
            self.fail(what, param, ctx)
        return found


FACTOR = Factor()
