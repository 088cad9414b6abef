"""Results on standard output or in a file, in the requested format, as wide as the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from callpath_modeler.cli.console import Console, Notes
from callpath_modeler.diagnostics import Finding
from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.units import counted

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.report.table_formats import Table


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


def table_pieces(contents: Sequence[Table], form: str, *, header: bool) -> Iterator[str]:
    """Return tables as csv, tsv, json, jsonl, markdown or latex, block by block.

    Several tables have a blank line between them.
    """
    from callpath_modeler.report import table_formats
    from callpath_modeler.report.model_formulas import latex_pieces

    first, *others = contents
    pieces: dict[str, Callable[[Table], Iterator[str]]] = {
        "csv": partial(table_formats.csv_pieces, header=header),
        "tsv": partial(table_formats.csv_pieces, delimiter="\t", header=header),
        "json": table_formats.json_pieces,
        "jsonl": table_formats.jsonl_pieces,
        "markdown": table_formats.markdown_pieces,
        "latex": latex_pieces,
    }
    of_others = (chain("\n", pieces[form](each)) for each in others)
    return chain(pieces[form](first), *of_others)


def parquet(content: Table) -> bytes:
    """Return a table as parquet."""
    import io
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise UsageError("parquet needs pyarrow", hint="pip install 'callpath-modeler[parquet]'")
    import pyarrow as pa
    import pyarrow.parquet as pq

    titles, buffer = content.titles(), io.BytesIO()
    # A block without any value has no types; those of the others apply.
    blocks = [
        pa.table([pa.array(cells, from_pandas=True) for cells in columns.values()], titles)
        for columns in content.blocks()
    ]
    pq.write_table(pa.concat_tables(blocks, promote_options="permissive"), buffer)
    return buffer.getvalue()


def refuse_incomplete(findings: Iterable[Finding]) -> None:
    """Raise an error if a profile was not used: then nothing failed, but not all was checked.

    Raises
    ------
    InputError
        If a finding says that a profile was not used.
    """
    unused = sorted({finding.subject for finding in findings if finding.code == "CPM101"})
    if unused:
        number = counted(len(unused), "profile")
        raise InputError(
            f"{number} could not be used, so the verdict rests on the other runs: {unused[0]}",
            hint="measure the run again, or name only the profiles to check",
        )
