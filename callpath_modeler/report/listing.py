"""An answer as a list to choose from: what stands above it, what can be chosen, what below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text


@dataclass(frozen=True, slots=True)
class ListingEntry:
    """Lines that are about one thing.

    Attributes
    ----------
    lines : what there is to say, at least one
    callpath : the call path it is about, as text; "" = about none, or about one of elsewhere
    """

    lines: Sequence[Text]
    callpath: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A list, laid out for a width.

    Attributes
    ----------
    head, foot : lines above and below
    entries : in order
    chosen : number of the entry to begin with
    """

    head: Sequence[Text]
    entries: Sequence[ListingEntry]
    foot: Sequence[Text]
    chosen: int = 0
