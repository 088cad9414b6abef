"""Formulas and growths in Python with numpy, and in LaTeX."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from callpath_modeler.modeling.constants.hypotheses import JUST_BELOW
from callpath_modeler.units import scientific

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
