"""Change a module in one place at a time, and see whether its tests notice.

    make mutants MODULE=callpath_modeler/atomic.py TESTS="tests/unit/test_atomic.py"

For developers, not for CI: the tests run once for each change. The source stays as it is: the
changed module is compiled as Python imports it, in the process of the tests alone. That process is
forked from this one, which has imported what others wrote. Prints each change that no test notices;
an error text whose parts can be exchanged is one, too.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

HUNG = 600
"""Seconds after which tests hang, which they would not without the change."""
OF_OTHERS = ("pytest", "numpy", "scipy.optimize", "scipy.stats", "msgspec", "networkx",
             "click", "rich.table")  # fmt: skip
"""What takes long to import and is no module of ours."""

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
    """Yield each change of a module: its line, what it is, and the changed module."""
    for place in _places(tree):
        for which in range(3):
            changed = copy.deepcopy(tree)
            node = next(node for k, node in enumerate(ast.walk(changed)) if k == place)
            before = ast.unparse(node)
            if not _change(node, which):
                break
            after = ast.unparse(node)
            yield getattr(node, "lineno", 0), f"{before[:90]}  ->  {after[:90]}", changed


def _places(tree: ast.Module) -> list[int]:
    """Return the numbers of the nodes that run: annotations are not evaluated."""
    held = (
        getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")
    )
    idle = {id(part) for annotation in held if annotation for part in ast.walk(annotation)}
    return [k for k, node in enumerate(ast.walk(tree)) if id(node) not in idle]


def _change(node: ast.AST, which: int) -> bool:
    """Change a node in one of several ways; return whether there are so many ways."""
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
    """Exchange two values of a text: tests that match a part of it do not notice."""
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
    """Let Python import a changed module in the place of the one in a file."""
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
    for name in OF_OTHERS:
        importlib.import_module(name)
    if _fails(tests, file, None):
        sys.exit("the tests fail without a change")
    survivors = 0
    for number, (line, what) in enumerate(all_changes):
        if not _fails(tests, file, number):
            survivors += 1
            print(f"{file}:{line}: {what}", flush=True)  # noqa: T201
    print(f"{len(all_changes)} changes, {survivors} that no test notices")  # noqa: T201


def _fails(tests: Sequence[str], file: str, number: int | None) -> bool:
    """Run tests in a process of their own, and tell whether one fails."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = _status(tests, file, number)
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    # Tests that hang are ended by their alarm.
    return ended != 0


def _status(tests: Sequence[str], file: str, number: int | None) -> int:
    import pytest

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    signal.alarm(HUNG)
    os.environ["CI"] = "true"
    if number is not None:
        _install(file, number)
    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))


if __name__ == "__main__":
    main()
