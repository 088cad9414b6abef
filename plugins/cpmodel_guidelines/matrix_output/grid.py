"""Grids of narrow cells that fit the terminal, in several blocks of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from callpath_modeler.report.layout import GAP, shorten, wrap

_LEAST_COLUMNS = 6
"""Columns that must fit beside the names; otherwise names have lines of their own."""
_LEAST = 3
"""Least width of a cell: that of three stars."""
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class GridCell:
    """A short text with its style."""

    text: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows with names, and columns with titles.

    Attributes
    ----------
    title : title of the names
    names : name of each row
    heads : title of each column
    cells : cells of each row
    """

    title: str
    names: Sequence[str]
    heads: Sequence[str]
    cells: Sequence[Sequence[GridCell]]

    def lines(self, width: int | None, ellipsis: str = "…") -> list[Text]:
        """Return the lines: blocks of columns, with the names on the right of each block.

        On a narrow terminal, each name has its own line above its cells.

        Parameters
        ----------
        width : width of the terminal in cells; None = unlimited
        ellipsis : text in place of omitted characters
        """
        if not self.names:
            return []
        widths = [
            max(_LEAST, *(cell_len(text) for text in (head, *(row[k].text for row in self.cells))))
            for k, head in enumerate(self.heads)
        ]
        longest = max(map(cell_len, (self.title, *self.names)))
        beside = longest + GAP
        least = sum(each + 1 for each in widths[:_LEAST_COLUMNS]) + beside
        is_beside = width is None or least <= width
        room = None if width is None else width - (beside if is_beside else len(_INDENT))
        lines: list[Text] = []
        for block in _blocks(widths, room):
            lines += [Text("")] if lines else []
            lines += self._block(block, widths, width, ellipsis, is_beside=is_beside)
        return lines

    def _block(
        self,
        block: range,
        widths: Sequence[int],
        width: int | None,
        ellipsis: str,
        *,
        is_beside: bool,
    ) -> Iterator[Text]:
        heads = [GridCell(self.heads[k], "bold") for k in block]
        rows = [(heads, self.title), *zip(self.cells, self.names, strict=True)]
        for number, (cells, name) in enumerate(rows):
            style = "bold" if not number else ""
            chosen = cells if not number else [cells[k] for k in block]
            line = _line(chosen, [widths[k] for k in block])
            if is_beside:
                line.append(" " * GAP)
                line.append(name, style or None)
                yield line
                continue
            if number:
                room = None if width is None else max(width, 1)
                yield from _named(name, room, ellipsis)
            yield Text(_INDENT, no_wrap=True, overflow="ignore").append_text(line)


def _named(name: str, width: int | None, ellipsis: str) -> Iterator[Text]:
    """Yield the lines of a name; single words that are too long are cut."""
    for line in wrap(name, width, "", _INDENT):
        yield Text(shorten([line.plain], width, ellipsis))


def _blocks(widths: Sequence[int], room: int | None) -> Iterator[range]:
    """Yield ranges of columns that fit into `room`, at least one column each."""
    start = taken = 0
    for k, each in enumerate(widths):
        if room is not None and k > start and taken + each + 1 > room + 1:
            yield range(start, k)
            start, taken = k, 0
        taken += each + 1
    if widths:
        yield range(start, len(widths))


def _line(cells: Sequence[GridCell], widths: Sequence[int]) -> Text:
    line = Text(no_wrap=True, overflow="ignore")
    for k, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        line.append(" " * bool(k) + " " * (width - cell_len(cell.text)))
        line.append(cell.text, cell.style or None)
    return line
