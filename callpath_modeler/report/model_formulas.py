"""Models as text: growths, formulas in Python and LaTeX, alternatives, change points."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.arrays import Int16Array, Int64Array, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Alternative, FitStatus, Growth, change_point, changes_since
from callpath_modeler.modeling.constants.hypotheses import JUST_BELOW
from callpath_modeler.printable import in_one_line
from callpath_modeler.profile.calltree import escape
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.readers.paths import split_at_slashes
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.table_formats import BLOCK, Cell, Table
from callpath_modeler.units import parameter_value, percent, scientific

if TYPE_CHECKING:
    from numpy.typing import NDArray


_LOGARITHM = re.compile(r"log_([\d.]+)\(")
_SIDE_BY_SIDE = re.compile(r"(\d) (?=[^\W\d])")
_POWER = re.compile(r"\^(?:\(([^)]*)\)|(-?[\w.]+))")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_MARK, _SIGN, _SLASHED = re.compile(r"[\\^~]"), re.compile(r"[%$#&_{}]"), r"\\\g<0>"
_GROWS = re.compile(r"[A-Za-z_0-9 ^()./-]*")

_FUNCTIONS = {"max": "np.maximum", "min": "np.minimum", "log2": "np.log2", "exp": "np.exp"}
_ADDS, _TIMES, _POWERS, _ATOM = range(4)
"""Precedences of the parts of an expression."""


def python_formulas(formulas: Iterable[str]) -> list[str]:
    """Return formulas as Python expressions of floats or arrays of floats.

    Parameters
    ----------
    formulas : texts of `Models.formulas` with ``pretty=False``; names of parameters are identifiers
    """
    return list(map(_translator(repr, _python, " * "), formulas))


def latex_formula() -> Callable[[str], str]:
    """Return a function that writes formulas as LaTeX mathematics, with numbers of four digits.

    It raises `SyntaxError`, `ValueError` or `KeyError` for text that is not a formula.
    """
    return _translator(latex_number, lambda shape: _in_brackets(shape, _TIMES), r"\,")


def latex_growth(growth: str) -> str:
    """Return a growth, such as ``O(p^(1/2) log p)``, as LaTeX mathematics.

    Raises
    ------
    ValueError
        If the name of its parameter cannot be a variable.
    """
    shape = growth.removeprefix("O")
    if len({*_WORD.findall(shape)} - {"log"}) > 1 or not _GROWS.fullmatch(shape):
        raise ValueError(f"no growth in a variable: {growth}")
    powers = _POWER.sub(lambda found: f"^{{{found[1] or found[2]}}}", shape)
    return "O" + _WORD.sub(lambda it: r"\log" if it[0] == "log" else latex_name(it[0]), powers)


def latex_number(value: float) -> str:
    r"""Return a number with four digits: ``2.1 \cdot 10^{-4}``."""
    digits, power = scientific(value)
    return rf"{digits} \cdot 10^{{{power}}}" if power else digits


def latex_name(name: str) -> str:
    """Return the name of a variable in LaTeX; characters without an equivalent become blanks."""
    plain = _MARK.sub(" ", name)
    return (
        plain
        if len(plain) == 1 and plain.isalpha()
        else rf"\mathit{{{_SIGN.sub(_SLASHED, plain)}}}"
    )


def _translator(
    number: Callable[[float], str], shape: Callable[[ast.expr], str], times: str
) -> Callable[[str], str]:
    """Return a function that translates sums of products; it caches shapes, which are few."""
    known: dict[str, str] = {}

    def product(text: str) -> str:
        first, _, rest = text.partition(" * ")
        if rest and rest not in known:
            known[rest] = shape(_tree(rest))
        return f"{number(float(first))}{times}{known[rest]}" if rest else number(float(first))

    def formula(text: str) -> str:
        parts = _parts(text)
        return " ".join(part if part in ("+", "-") else product(part) for part in parts)

    return formula


def _parts(formula: str) -> list[str]:
    """Return the products of a sum and the signs between them."""
    parts, depth = [""], 0
    for word in formula.split(" "):
        if depth == 0 and word in ("+", "-"):
            parts += [word, ""]
        else:
            parts[-1] += f" {word}" if parts[-1] else word
        depth += sum(map(word.count, "([")) - sum(map(word.count, ")]"))
    return parts


def _tree(shape: str) -> ast.expr:
    """Return the syntax tree of a shape, after conditions and powers are replaced by Python's."""
    text = shape.replace("^", "**").replace(" = ", " == ").replace("[", "(").replace("]", ")")
    text = _SIDE_BY_SIDE.sub(r"\1 * ", _LOGARITHM.sub(r"log(\1, ", text))
    return ast.parse(text, mode="eval").body


def _python(shape: ast.expr) -> str:
    text = ast.unparse(_Python().visit(shape))
    adds = isinstance(shape, ast.BinOp) and isinstance(shape.op, ast.Add | ast.Sub)
    return f"({text})" if adds or isinstance(shape, ast.Compare) else text


class _Python(ast.NodeTransformer):
    """The translation of function calls to numpy."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return a function call in numpy."""
        self.generic_visit(node)
        name, words = _name(node), [ast.unparse(each) for each in node.args]
        if name == "ceil":
            text = f"np.ceil(({words[0]}) * {JUST_BELOW!r})"
        elif name == "log":
            text = f"np.log(np.maximum({words[1]}, 1)) / np.log({words[0]})"
        else:
            text = f"{_FUNCTIONS[name]}({', '.join(words)})"
        return ast.parse(text, mode="eval").body


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _latex(node: ast.expr) -> tuple[str, int]:
    """Return an expression in LaTeX, and its precedence."""
    match node:
        case ast.Name(id=name):
            return latex_name(name), _ATOM
        case ast.Constant(value=int() | float() as value):
            return latex_number(value), _TIMES if scientific(value)[1] else _ATOM
        case ast.UnaryOp(operand=operand):
            return f"-{_in_brackets(operand, _TIMES)}", _TIMES
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            sign = {ast.Gt: ">", ast.LtE: r"\le", ast.Eq: "="}[type(operator)]
            return f"[{_latex(left)[0]} {sign} {_latex(right)[0]}]", _ATOM
        case ast.BinOp(left=left, op=operator, right=right):
            return _operation(left, operator, right)
        case ast.Call(args=words):
            return _call(_name(node), words)
    raise ValueError(f"not part of a formula: {ast.dump(node)}")


def _operation(left: ast.expr, operator: ast.operator, right: ast.expr) -> tuple[str, int]:
    if isinstance(operator, ast.Pow):
        power = f"^{{{_latex(right)[0]}}}"
        if isinstance(left, ast.Call) and _name(left) == "log2":
            return rf"\log_2{power} {_in_brackets(left.args[0], _ATOM)}", _TIMES
        return f"{_in_brackets(left, _ATOM)}{power}", _POWERS
    if isinstance(operator, ast.Mult | ast.Div):
        divides = isinstance(operator, ast.Div)
        sign = "/" if divides else r"\,"
        after = _in_brackets(right, _POWERS if divides else _TIMES)
        return f"{_in_brackets(left, _TIMES)}{sign}{after}", _TIMES
    sign = "-" if isinstance(operator, ast.Sub) else "+"
    return f"{_latex(left)[0]} {sign} {_in_brackets(right, _TIMES)}", _ADDS


def _call(name: str, words: list[ast.expr]) -> tuple[str, int]:
    listed = ", ".join(_latex(word)[0] for word in words)
    if name == "ceil":
        return rf"\lceil {listed} \rceil", _ATOM
    if name in {"max", "min"}:
        return rf"\{name}({listed})", _ATOM
    if name == "exp":
        return f"e^{{{listed}}}", _POWERS
    base = "2" if name == "log2" else _latex(words[0])[0]
    below = base if len(base) == 1 else f"{{{base}}}"
    return rf"\log_{below} {_in_brackets(words[-1], _ATOM)}", _TIMES


def _in_brackets(node: ast.expr, least: int) -> str:
    """Return an expression, in brackets if its precedence is below `least`."""
    text, tightness = _latex(node)
    return text if tightness >= least else f"({text})"


_WORTH_A_WORD = 0.01
"""Relative weight from which another hypothesis is listed."""
_MUCH_ALIKE = 1.1
"""Hypotheses whose predictions at the target differ by at most this factor are merged."""
NO_OTHER = "no other compared model fits as well"
"""Text in place of an empty list of alternatives."""
_SUMS = {1: "single terms", 2: "sums of two terms"}


@dataclass(frozen=True, slots=True)
class HypothesisSummary:
    """The possible models of a call path.

    Attributes
    ----------
    weight : probability of the model and all hypotheses with nearly the same prediction at the
        target
    others : alternatives, the most probable first; each includes all hypotheses with nearly the
        same prediction
    is_outside : whether no law of the model class fits
    """

    weight: float
    others: Sequence[Alternative]
    is_outside: bool

    @property
    def sentence(self) -> str:
        """Return the probability of the model, with a note if another model is more probable."""
        text = f"probability {percent(self.weight)}"
        if self.is_outside:
            # If no law fits, the weight of the closest form is no probability for the next scale.
            text = "no law fits; the closest form is shown"
        if any(other.weight > self.weight for other in self.others):
            text += "; chosen because its prediction is in the middle of all"
        return text


def hypotheses(fitted: Fitted, row: int, target: float, *, style: TextStyle) -> HypothesisSummary:
    """Return the possible models of a call path that are probable enough to list.

    Hypotheses in several parameters that are the same along one parameter are listed once.
    """
    models = fitted.models
    of_classic = models.method == "classic"
    weight, value = float(models.weight[row]), np.nan
    if np.isfinite(target) and not of_classic:
        value = float(models.take([row]).values([target])[0, 0])
    found: list[tuple[Alternative, float]] = []
    for other in models.alternatives(row, fitted.parameter, pretty=not style.ascii_only):
        its = np.nan if np.isnan(value) else float(other.values([target])[0])
        if _alike(its, value):
            weight += other.weight
            continue
        for place, (first, at) in enumerate(found):
            if first.formula == other.formula or _alike(its, at):
                found[place] = structs.replace(first, weight=first.weight + other.weight), at
                break
        else:
            found.append((other, its))
    ordered = sorted((other for other, _ in found), key=lambda other: -other.weight)
    outside = FitStatus(int(models.status[row])) is FitStatus.OUTSIDE
    listed = [other for other in ordered if other.weight >= _WORTH_A_WORD]
    return HypothesisSummary(min(weight, 1.0), listed, outside and not of_classic)


def _alike(one: float, other: float) -> bool:
    """Return whether two predictions are nearly the same; unknown predictions are not."""
    # Comparisons with NaN are false.
    return one <= _MUCH_ALIKE * other and other <= _MUCH_ALIKE * one


def compared_text(fitted: Fitted) -> str:
    """Return the kinds of models that were compared, and the kind that needs an option.

    ``compared: powers, logarithms, sums of two terms, breaks; not compared: exponentials``
    """
    models, space = fitted.models, fitted.models.space
    kinds = ["powers", *["logarithms"] * any(space.logs)]
    kinds.append(_SUMS.get(space.max_terms, f"sums of up to {space.max_terms} terms"))
    kinds += ["breaks"] * (models.method != "classic")
    if space.exponential:
        return f"compared: {', '.join([*kinds, 'exponentials'])}"
    return f"compared: {', '.join(kinds)}; not compared: exponentials"


def from_text(fitted: Fitted, row: int) -> str:
    """Return the scale from which the model of a call path holds: `` from p = 256 on``, or ""."""
    since = float(changes_since(fitted.models.take([row]))[0])
    return f" from {fitted.parameter} = {parameter_value(since)} on" if since else ""


def formula_from_text(fitted: Fitted, rows: NDArray[np.integer]) -> str:
    """Return the scale from which the formula of a sum of call paths holds, or "".

    Formulas with a break hold for all scales.
    """
    since = float(fitted.models.since[rows].max(initial=0.0))
    return f"  from {fitted.parameter} = {parameter_value(since)} on" if since else ""


def from_texts(fitted: Fitted, rows: IntArray) -> list[str]:
    """Return the first scales of models for cells of a table: `` from 256``; rows of -1 give ""."""
    since = np.where(rows >= 0, changes_since(fitted.models.take(rows)), 0.0)
    return [f" from {parameter_value(at)}" if at else "" for at in since.tolist()]


def law_text(fitted: Fitted, row: int, *, pretty: bool) -> str:
    """Return both laws of a call path with a change point, "" for other call paths.

    ``200 + 20 p^½ from p = 256 on; 2 p before``
    """
    found = change_point(fitted.models, row, fitted.parameter, pretty=pretty)
    if found is None:
        return ""
    return f"{found.law}{from_text(fitted, row)}; {found.before} before"


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


def growth_text(ranking: Ranking, row: int, *, pretty: bool = False) -> str:
    """Return the fastest growth among the parts of a ranked value; "" without a model."""
    return growth_texts(ranking, np.array([row]), pretty=pretty)[0]


def growth_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of each ranked value, as `growth_text` does."""
    fitted, leader = ranking.fitted, ranking.leader[rows]
    texts = fitted.models.growth_texts(leader, fitted.parameter, pretty=pretty)
    return [text if row >= 0 else "" for text, row in zip(texts, leader.tolist(), strict=True)]


def growth_range_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of each ranked value; a range if the data leave it open."""
    return model_range_texts(ranking.fitted, ranking.leader[rows], pretty=pretty)


def model_range_texts(fitted: Fitted, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the growth of the models of call paths; a range if the data leave it open.

    A range is short: ``O(p^½ … p)`` has no logarithms, ``O(1 … log p)`` has the same powers. Rows
    of -1 stand for no model and give "".
    """
    name, between = fitted.parameter, " … " if pretty else " ... "
    texts = []
    for ends in growth_ends(fitted, rows):
        if ends is None:
            texts.append("")
            continue
        far = ends[0].exponent != ends[1].exponent
        low, high = (replace(end, log=0) if far else end for end in ends)
        first, last = low.text(name, pretty=pretty), high.text(name, pretty=pretty)
        range_ = f"{first[:-1]}{between}{last.removeprefix('O(')}"
        texts.append(first if low == high else range_)
    return texts


def growth_ends(fitted: Fitted, rows: IntArray) -> list[tuple[Growth, ...] | None]:
    """Return the slowest and the fastest possible growth of call paths; None for rows of -1."""
    return growths_of(fitted, rows, fitted.models.growth_ends(rows))


def growths_of(
    fitted: Fitted, rows: IntArray, ends: Int64Array | Int16Array
) -> list[tuple[Growth, ...] | None]:
    """Return growths by their ranks, which `Models.growth_ends` returns; None for rows of -1."""
    growths = fitted.models.shapes.growths
    return [
        tuple(growths[rank] for rank in pair) if row >= 0 else None
        for pair, row in zip(ends.tolist(), rows.tolist(), strict=True)
    ]


def formula_texts(ranking: Ranking, rows: IntArray, *, pretty: bool = False) -> list[str]:
    """Return the models of ranked values: of the call path, or the sum over its subtree, or ""."""
    fitted, tree = ranking.fitted, ranking.fitted.experiment.tree
    models, name, leader = fitted.models, fitted.parameter, ranking.leader[rows].tolist()
    if ranking.inclusive:
        subtrees = (np.arange(row, tree.end[row]) for row in rows)
        texts = [models.sum_formula(subtree, name, pretty=pretty) for subtree in subtrees]
    else:
        texts = models.formulas(rows, name, pretty=pretty)
    return [text if row >= 0 else "" for text, row in zip(texts, leader, strict=True)]
