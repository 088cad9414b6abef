"""Results on standard output or in a file, in the requested format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from callpath_modeler.cli.console import Console
from callpath_modeler.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.report.formats import Table


DELIMITERS = {"csv": ",", "tsv": "\t"}
"""Delimiters of the formats that are written part by part."""


def render_table(
    console: Console,
    content: Table,
    form: str,
    output: Path | None,
    *,
    force: bool,
    header: bool = True,
) -> None:
    """Write a table as csv, tsv, json, jsonl, markdown, latex or parquet."""
    from callpath_modeler.report import formats
    from callpath_modeler.report.latex import to_latex

    if form in DELIMITERS:
        render_parts(console, [content], form, output, force=force, header=header)
        return
    if form == "parquet":
        console.write(_parquet(content), output, overwrite=force)
        return
    text = {
        "json": lambda: formats.to_json(content),
        "jsonl": lambda: formats.to_jsonl(content),
        "markdown": lambda: formats.to_markdown(content),
        "latex": lambda: to_latex(content),
    }[form]()
    console.write(text, output, overwrite=force)


def render_parts(
    console: Console,
    parts: Iterable[Table],
    form: str,
    output: Path | None,
    *,
    force: bool,
    header: bool = True,
) -> None:
    """Write the parts of a table as csv or tsv, one by one."""
    from callpath_modeler.report.formats import csv_pieces

    pieces = csv_pieces(parts, delimiter=DELIMITERS[form], header=header)
    console.write_pieces(pieces, output, overwrite=force)


def render_lines(
    console: Console, lines: Sequence[Text | str], output: Path | None, *, force: bool
) -> None:
    """Write lines; on a terminal, lines that are too wide are wrapped."""
    from rich.text import Text

    from callpath_modeler.report.layout import wrap

    if output is None:
        for line in lines:
            whole = [line] if isinstance(line, Text) else wrap(console.dress(line), console.width)
            console.lines(whole)
    else:
        text = "".join(console.dress(str(line)) + "\n" for line in lines)
        console.write(text, output, overwrite=force)


def _parquet(content: Table) -> bytes:
    import io
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise UsageError("parquet needs pyarrow", hint="pip install 'callpath-modeler[parquet]'")
    buffer = io.BytesIO()
    content.to_frame().to_parquet(buffer)
    return buffer.getvalue()
