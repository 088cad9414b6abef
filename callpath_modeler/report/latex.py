"""Tables for LaTeX: numbers with four digits, growths and models as mathematics."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from callpath_modeler.printable import in_one_line
from callpath_modeler.profile.calltree import escape
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.readers.paths import split_at_slashes
from callpath_modeler.report.expressions import latex_formula, latex_growth, latex_number
from callpath_modeler.report.table_formats import Cell, Table

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_GROWTH = re.compile(r"O\((?:[^()]|\([^()]*\))*\)")
_ESCAPED = str.maketrans(_SPECIAL)


def to_latex(table: Table) -> str:
    """Return a ``tabular`` for the package booktabs; a missing value is an empty cell."""
    columns = {name: _column(name, list(cells)) for name, cells in table.columns.items()}
    form = "".join(
        "l" if any(isinstance(cell, str) for cell in cells) else "r"
        for cells in table.columns.values()
    )
    titles = (title.replace("_", " ").replace("[", " [") for title in table.titles())
    head = " & ".join(title.translate(_ESCAPED) for title in titles)
    rows = [_row(cells) for cells in zip(*columns.values(), strict=True)]
    lines = [rf"\begin{{tabular}}{{{form}}}", r"\toprule", rf"{head} \\", r"\midrule",
             *(rf"{row} \\" for row in rows), r"\bottomrule", r"\end{tabular}"]  # fmt: skip
    return "\n".join(["% \\usepackage{booktabs}", *lines, ""])


def _row(cells: Sequence[str]) -> str:
    """Return a row; braces keep LaTeX from reading a bracket or a star as part of the row's end."""
    row = " & ".join(cells)
    return f"{{}}{row}" if row.lstrip()[:1] in {"[", "*"} else row


def _column(name: str, cells: list[Cell]) -> list[str]:
    """Return the cells of a column; growths and models are mathematics."""
    texts = [cell if isinstance(cell, str) else "" for cell in cells]
    if name.startswith("growth"):
        return [_growth(text) for text in texts]
    if name.startswith("model"):
        write = latex_formula()
        return [_formula(text, write) for text in texts]
    if name == "callpath":
        return [_text(path) for path in _short(texts)]
    return [_cell(cell) for cell in cells]


def _short(paths: list[str]) -> list[str]:
    """Return call paths with short function names, unless two would then look the same."""
    parts = map(split_at_slashes, paths)
    short = ["/".join(escape(short_name(name)) for name in names) for names in parts]
    count = Counter(short)
    return [s if count[s] == 1 else path for s, path in zip(short, paths, strict=True)]


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


def _text(text: str) -> str:
    escaped = re.sub(r"\s+", " ", in_one_line(text)).translate(_ESCAPED)
    # Two of these in a row would become a dash or a quotation mark.
    return re.sub(r"([-`',])(?=\1)|([?!])(?=`)", r"\1\2{}", escaped)
