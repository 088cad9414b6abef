"""Results as lists to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """Lines about one call path, or about something else to choose.

    Attributes
    ----------
    lines : at least one line
    choice : the chosen text, such as a call path; "" = it cannot be chosen, or it is a call path
        of another experiment
    """

    lines: Sequence[Text]
    choice: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list, laid out for a width.

    Attributes
    ----------
    head, foot : lines above and below
    entries : in order
    chosen : number of the entry that is selected first
    """

    head: Sequence[Text]
    entries: Sequence[ListingEntry]
    foot: Sequence[Text]
    chosen: int = 0
