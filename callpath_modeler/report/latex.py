"""Tables for LaTeX: numbers with four digits, growths and models as mathematics."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from callpath_modeler.printable import in_one_line
from callpath_modeler.profile.calltree import escape
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.readers.paths import split_at_slashes
from callpath_modeler.report.expressions import latex_formula, latex_growth, latex_number
from callpath_modeler.report.table_formats import BLOCK, Cell, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_GROWTH = re.compile(r"O\((?:[^()]|\([^()]*\))*\)")
_MICRO = re.compile(r"(?<=\d )u(?=[A-Za-z])")
"""The prefix of a unit in ASCII, which is how growths are written for LaTeX."""
_SIGNS = {"→": r"$\to$", "●": r"$\bullet$", "○": r"$\circ$", "Δ": r"$\Delta$"}
"""Signs in tables for people that the fonts of LaTeX lack as text."""
_ESCAPED = str.maketrans(_SPECIAL)


def to_latex(table: Table) -> str:
    """Return a ``tabular`` for the package booktabs; a missing value is an empty cell."""
    return "".join(latex_pieces(table))


def latex_pieces(table: Table) -> Iterator[str]:
    """Yield the text of a table block by block, as `to_latex` returns it.

    In tables of one block, call paths have short function names where these tell them apart.
    """
    is_long = len(table) > BLOCK
    for k, columns in enumerate(table.blocks()):
        if not k:
            form = "".join("lr"[_is_right(table, *column)] for column in columns.items())
            titles = (title.replace("_", " ").replace("[", " [") for title in table.titles())
            head = " & ".join(_with_signs(title) for title in titles)
            yield "% \\usepackage{booktabs}\n"
            yield f"\\begin{{tabular}}{{{form}}}\n\\toprule\n{head} \\\\\n\\midrule\n"
        cells = [_column(*column, table, is_long=is_long) for column in columns.items()]
        yield "".join(rf"{_row(row)} \\" + "\n" for row in zip(*cells, strict=True))
    yield "\\bottomrule\n\\end{tabular}\n"


def _is_right(table: Table, name: str, cells: Sequence[Cell]) -> bool:
    if table.heads is not None:
        return table.heads[name][1]
    return not any(isinstance(cell, str) for cell in cells)


def _row(cells: Sequence[str]) -> str:
    """Return a row; braces keep LaTeX from reading a bracket or a star as part of the row's end."""
    row = " & ".join(cells)
    return f"{{}}{row}" if row.lstrip()[:1] in {"[", "*"} else row


def _column(name: str, cells: Sequence[Cell], table: Table, *, is_long: bool) -> list[str]:
    """Return the cells of a column; growths and models are mathematics."""
    if table.heads is not None:
        is_growth = table.heads[name][0] == "growth"
        return [_growths(str(cell)) if is_growth else _with_signs(str(cell)) for cell in cells]
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    if name.startswith("growth"):
        return [_growth(text) for text in texts]
    if name.startswith("model"):
        write = latex_formula()
        return [_formula(text, write) for text in texts]
    if name == "callpath":
        return [_text(path) for path in (texts if is_long else _short(texts))]
    return [_cell(cell) for cell in cells]


def _short(paths: list[str]) -> list[str]:
    """Return call paths with short function names, unless two would then look the same."""
    parts = map(split_at_slashes, paths)
    short = ["/".join(escape(short_name(name)) for name in names) for names in parts]
    count = Counter(short)
    return [s if count[s] == 1 else path for s, path in zip(short, paths, strict=True)]


def _growths(text: str) -> str:
    """Return a cell with growths as a terminal shows it: ``O(1 ... p)``, or ``O(1) → O(p)``."""
    written, at = "", 0
    for found in _GROWTH.finditer(text):
        written += _with_signs(text[at : found.start()]) + _range(found[0])
        at = found.end()
    return written + _with_signs(text[at:])


def _range(text: str) -> str:
    """Return a growth, or the slowest and the fastest one, as mathematics."""
    ends = [_growth(f"O({end})") for end in text[2:-1].split(" ... ")]
    if not all(end.startswith("$") for end in ends):
        return _text(text)
    first, *others = ends
    return "".join([first, *others]).replace(")$$O(", r" \ldots ")


def _growth(text: str) -> str:
    """Return a growth, as text if the name of its parameter cannot be a variable."""
    try:
        return f"${latex_growth(text)}$" if _GROWTH.fullmatch(text) else _text(text)
    except ValueError:
        return _text(text)


def _formula(text: str, write: Callable[[str], str]) -> str:
    """Return a formula, as text if the name of a parameter cannot be a variable."""
    if not text.isascii():
        return _text(text)
    try:
        return f"${write(text)}$" if text else ""
    except (SyntaxError, ValueError, KeyError):
        return _text(text)


def _cell(cell: Cell) -> str:
    if cell is None or cell != cell:  # noqa: PLR0124 - only NaN differs from itself
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        size = r"\infty" if math.isinf(cell) else latex_number(abs(cell))
        return f"${'-' if cell < 0 else ''}{size}$"
    return _text(str(cell))


def _with_signs(text: str) -> str:
    """Return a text for people, with its signs as mathematics."""
    written = _MICRO.sub(r"$\\mu$", _text(text))
    return "".join(_SIGNS.get(sign, sign) for sign in written)


def _text(text: str) -> str:
    escaped = re.sub(r"\s+", " ", in_one_line(text)).translate(_ESCAPED)
    # Two of these in a row would become a dash or a quotation mark.
    return re.sub(r"([-`',])(?=\1)|([?!])(?=`)", r"\1\2{}", escaped)
