"""Change a module in one place at a time, and check whether its tests fail.

    make mutants MODULE=callpath_modeler/atomic.py TESTS="tests/unit/test_atomic.py"

This tool is for developers, not for CI, because it runs the tests once for each change. The source
file is not changed. The process of the tests compiles the changed module when Python imports it.
The tool prints each change that no test detects, including exchanged parts of error texts.
"""

from __future__ import annotations

import ast
import copy
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

VARIABLE = "CPMODEL_MUTANT"
"""FILE:NUMBER of the change for the tests."""
HUNG = 600
"""Seconds after which tests hang; without the change, they would not."""

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum",
           "maximum": "minimum", "argmin": "argmax", "argmax": "argmin"}  # fmt: skip


def changes(tree: ast.Module) -> Iterator[tuple[int, str, ast.Module]]:
    """Yield each change of a module: its line, its description, and the changed module."""
    count = sum(1 for _ in ast.walk(tree))
    for place in range(count):
        for which in range(3):
            changed = copy.deepcopy(tree)
            node = next(node for k, node in enumerate(ast.walk(changed)) if k == place)
            before = ast.unparse(node)
            if not _change(node, which):
                break
            after = ast.unparse(node)
            yield getattr(node, "lineno", 0), f"{before[:90]}  ->  {after[:90]}", changed


def _change(node: ast.AST, which: int) -> bool:
    """Change a node in one of several ways; return False if there are fewer ways."""
    if isinstance(node, ast.Constant):
        return _change_constant(node, which)
    if isinstance(node, ast.JoinedStr):
        return _exchange_parts(node, which)
    if which:
        return False
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        node.ops[0] = _COMPARED[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        node.op = _COMPUTED[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Call):
        return _change_call(node)
    else:
        return False
    ast.fix_missing_locations(node)
    return True


def _change_constant(node: ast.Constant, which: int) -> bool:
    value = node.value
    if isinstance(value, bool) and not which:
        node.value = not value
    elif isinstance(value, int | float) and not isinstance(value, bool) and which < 2:
        node.value = value + 1 if which else value * 2 + 1
    else:
        return False
    return True


def _exchange_parts(node: ast.JoinedStr, which: int) -> bool:
    """Exchange two values of a text; tests that match a part of the text do not detect this."""
    parts = [k for k, part in enumerate(node.values) if isinstance(part, ast.FormattedValue)]
    if which or len(parts) < 2:
        return False
    one, other = parts[:2]
    node.values[one], node.values[other] = node.values[other], node.values[one]
    return True


def _change_call(node: ast.Call) -> bool:
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    if name not in _CALLED:
        return False
    if isinstance(function, ast.Attribute):
        function.attr = _CALLED[name]
    elif isinstance(function, ast.Name):
        function.id = _CALLED[name]
    return True


def _install(file: str, number: int) -> None:
    """Let Python import a changed module instead of the one in a file."""
    usual = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if Path(self.path).resolve() != Path(file).resolve():
            return usual(self, fullname)
        tree = ast.parse(Path(file).read_bytes())
        changed = next(each for k, (*_, each) in enumerate(changes(tree)) if k == number)
        return compile(changed, file, "exec")

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def main() -> None:
    """Run the tests for each change of a module."""
    file, *tests = sys.argv[1:]
    tree = ast.parse(Path(file).read_bytes())
    all_changes = [(line, what) for line, what, _ in changes(tree)]
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "mutants", "-p", "no:cacheprovider"]
    if _fails([*words, *tests], ""):
        sys.exit("the tests fail without a change")
    survivors = 0
    for number, (line, what) in enumerate(all_changes):
        if not _fails([*words, *tests], f"{Path(file).resolve()}:{number}"):
            survivors += 1
            print(f"{file}:{line}: {what}", flush=True)  # noqa: T201
    print(f"{len(all_changes)} changes, {survivors} that no test notices")  # noqa: T201


def _fails(words: list[str], mutant: str) -> bool:
    folder = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": folder, VARIABLE: mutant, "CI": "true"}
    try:
        done = subprocess.run(
            words, capture_output=True, check=False, env=environment, timeout=HUNG
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


if __name__ == "__main__":
    main()
elif os.environ.get(VARIABLE):
    _file, _, _number = os.environ[VARIABLE].rpartition(":")
    _install(_file, int(_number))
