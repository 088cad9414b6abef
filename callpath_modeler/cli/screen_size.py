"""How much of a ranking fits the terminal: rows, findings and what goes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from callpath_modeler.cli.console import Console, Notes

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.diagnostics import Finding

ROWS = 10
"""Rows of a table that goes to a file or a pipe, and those that a terminal shows if it can."""
_MOST = 20
"""Rows that even a tall terminal shows: the others rarely matter."""
_FEW, _LEAST = 4, 3
"""Rows below which findings, and then the lines about the table, go."""
_PROMPT = 1
"""Lines that a shell takes below the answer."""

Lay = Callable[[int, bool], "list[Text | str]"]


def fit_to_screen(
    console: Console, lay: Lay, ranked: int, findings: Sequence[Finding]
) -> tuple[list[Text | str], Notes]:
    """Return the lines of a ranking, and how findings are said, so that both fit the terminal.

    The first line, the table and the total stay visible. Where there is little room, findings
    become short, then rows go, then findings are only counted, and then the lines about the table
    go.

    Parameters
    ----------
    lay : returns the lines for a number of rows, complete or without the lines about the table
    ranked : how many rows there are
    findings : what is said after the answer
    """
    height = console.height
    if height is None:
        return lay(ROWS, True), Notes.FULL
    for notes, least, complete in _ways():
        room = height - _PROMPT - console.lines_of_findings(findings, notes)
        rows = min(max(least, room), ranked, _MOST)
        lines = lay(rows, complete)
        # Widths of columns follow the rows, and few lines below the table follow the columns.
        while len(lines) > room and rows > min(least, ranked):
            rows = max(min(least, ranked), rows - (len(lines) - room))
            lines = lay(rows, complete)
        if len(lines) <= room:
            break
    return lines, notes


def _ways() -> Iterator[tuple[Notes, int, bool]]:
    """Go through ways to show less: how findings are said, the fewest rows, and completeness."""
    yield Notes.FULL, ROWS, True
    yield Notes.SHORT, _FEW, True
    yield Notes.COUNT, _FEW, True
    yield Notes.COUNT, _LEAST, True
    yield Notes.COUNT, _LEAST, False
