"""The style of text for people: width of the terminal, length of names, characters."""

from __future__ import annotations

from dataclasses import dataclass

from callpath_modeler.units import interval, quantity, to_ascii


@dataclass(frozen=True, slots=True)
class TextStyle:
    """The style of the lines of an answer.

    Attributes
    ----------
    width : columns of the terminal; None = lines are neither cut nor wrapped
    full_names : True = functions with return type and arguments
    ascii_only : True = no character beyond ASCII
    """

    width: int | None = None
    full_names: bool = False
    ascii_only: bool = False

    def say(self, text: str) -> str:
        """Return `text` in the characters that may be used."""
        return to_ascii(text) if self.ascii_only else text

    def amount(self, value: float, unit: str) -> str:
        """Return a quantity as text."""
        return quantity(value, unit, ascii_only=self.ascii_only)

    def interval(self, low: float, high: float, unit: str) -> str:
        """Return an interval of quantities as text."""
        return interval(low, high, unit, ascii_only=self.ascii_only)


DEFAULT_STYLE = TextStyle()
"""Lines of any width, short names, all characters."""
