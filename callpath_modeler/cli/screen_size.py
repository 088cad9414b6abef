"""Adjustment of a ranking to the size of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from callpath_modeler.cli.console import Console, Notes

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.diagnostics import Finding

ROWS = 10
"""Rows of a table in a file or a pipe, and rows that a terminal shows if they fit."""
_MOST = 20
"""Largest number of rows on a tall terminal; further ones rarely matter."""
_FEW, _LEAST = 4, 3
"""Numbers of rows below which findings, and then notes below the table, are dropped."""
_PROMPT = 1
"""Number of lines that the shell needs below the result."""

Lay = Callable[[int, bool], "list[Text | str]"]


def fit_to_screen(
    console: Console, lay: Lay, ranked: int, findings: Sequence[Finding]
) -> tuple[list[Text | str], Notes]:
    """Return the lines of a ranking and the form of findings, so that both fit the terminal.

    The first line, the table and the total stay visible. On a small terminal, findings become
    short, then rows are dropped, then findings are only counted, and then the notes below the table
    are dropped.

    Parameters
    ----------
    console : the terminal
    lay : returns the lines for a number of rows, with or without notes below the table
    ranked : number of rows
    findings : findings after the result
    """
    height = console.height
    if height is None:
        return lay(ROWS, True), Notes.FULL
    for notes, least, complete in _ways():
        room = height - _PROMPT - console.lines_of_findings(findings, notes)
        rows = min(max(least, room), ranked, _MOST)
        lines = lay(rows, complete)
        # The rows determine the columns, and the columns determine the notes below the table.
        while len(lines) > room and rows > min(least, ranked):
            rows = max(min(least, ranked), rows - (len(lines) - room))
            lines = lay(rows, complete)
        if len(lines) <= room:
            break
    return lines, notes


def _ways() -> Iterator[tuple[Notes, int, bool]]:
    """Yield ways to show less: form of findings, least number of rows, notes or not."""
    yield Notes.FULL, ROWS, True
    yield Notes.SHORT, _FEW, True
    yield Notes.COUNT, _FEW, True
    yield Notes.COUNT, _LEAST, True
    yield Notes.COUNT, _LEAST, False
