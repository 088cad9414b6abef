"""Text tables that fit the terminal: call paths lose segments, columns go, digits never do."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

GAP = 2
_ROOM = 24
"""A call path gets this many cells before columns that can go stay."""
_LEAST = 8
"""However narrow the terminal, a call path keeps this many."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    header : its title
    cells : text per row
    right : align to the right, as numbers are
    droppable : 0 = stays; else the higher, the earlier it goes when the terminal is narrow
    styles : rich style per row, or empty
    """

    header: str
    cells: Sequence[str]
    right: bool = True
    droppable: int = 0
    styles: Sequence[str] = ()

    @property
    def width(self) -> int:
        """Width in terminal cells."""
        return max(cell_len(text) for text in (self.header, *self.cells))


def table(
    columns: Sequence[Column],
    paths: Sequence[Sequence[str]],
    width: int | None,
    *,
    title: str = "call path",
    ellipsis: str = "…",
) -> list[Text]:
    """Lay out columns and, last, call paths.

    Parameters
    ----------
    columns : what stands before the call path
    paths : names from the root per row; one name stands as it is
    width : of the terminal in cells; None = as wide as it takes

    Returns
    -------
    One line for the header and one per row. Nothing is cut when `width` is None.
    """
    kept = list(columns)
    while width is not None and _taken(kept) + _ROOM > width and any(c.droppable for c in kept):
        kept.remove(max(kept, key=lambda column: column.droppable))
    space = None if width is None else max(_LEAST, width - _taken(kept))
    labels = [shorten(names, space, ellipsis) for names in paths]
    lines = [_line([(c.header, c, "bold") for c in kept], title, "bold")]
    for row, label in enumerate(labels):
        cells = [(c.cells[row], c, c.styles[row] if c.styles else "") for c in kept]
        lines.append(_line(cells, label, ""))
    return lines


def wrap(text: str, width: int | None, style: str = "", indent: str = "") -> list[Text]:
    """Break a line between words where it is wider than `width`."""
    parts = [text] if width is None else textwrap.wrap(text, width, subsequent_indent=indent)
    return [Text(part, style=style) for part in parts or [""]]


def _taken(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _line(cells: Sequence[tuple[str, Column, str]], label: str, style: str) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    for text, column, cell_style in cells:
        pad = " " * (column.width - cell_len(text))
        line.append(pad + text if column.right else text + pad, cell_style or None)
        line.append(" " * GAP)
    line.append(label, style or None)
    line.rstrip()
    return line


def shorten(names: Sequence[str], space: int | None, ellipsis: str = "…") -> str:
    """Join names by ``/``; where that is wider than `space`, drop from the middle.

    The first name stays as long as two of the last do; else the end of the path has all the room,
    because it tells more.

    >>> shorten(["main", "LagrangeLeapFrog", "CommSBN", "MPI_Waitall"], 30)
    'main/…/CommSBN/MPI_Waitall'
    >>> shorten(["main", "LagrangeLeapFrog", "CommSBN", "MPI_Waitall"], 16)
    '…SBN/MPI_Waitall'
    """
    full = "/".join(names)
    if space is None or cell_len(full) <= space:
        return full
    for start in range(2, len(names) - 1):
        short = "/".join([names[0], ellipsis, *names[start:]])
        if cell_len(short) <= space:
            return short
    room = space - cell_len(ellipsis)
    tail = full[-room:] if room > 0 else ""
    while cell_len(tail) > room:  # characters that take two cells
        tail = tail[1:]
    return ellipsis + tail
