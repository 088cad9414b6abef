"""Change a module in one place at a time, and check whether its tests fail.

    make mutants MODULE=callpath_modeler/atomic.py TESTS="tests/unit/test_atomic.py"

For developers, not for CI. All modules are imported once; for each change a process is forked, in
which functions of the module get other code, and the tests run. What Python computes while it
imports a class stays as it is. Prints each change that no test notices; an error text whose parts
can be exchanged is one, too.
"""

from __future__ import annotations

import ast
import copy
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FunctionType

HUNG = 600
"""Seconds after which tests hang, which they would not without the change."""
_CONSTANTS = (int, float, str, bytes, tuple, frozenset, dict, re.Pattern)

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


def _install(file: str, tree: ast.Module) -> None:
    """Give the functions and the constants of a module, which is imported, those of a changed one.

    Functions stay the objects that other modules hold, with other code. Classes stay as they are.
    """
    path = Path(file).resolve()
    held = (each for each in list(sys.modules.values()) if getattr(each, "__file__", None))
    module = next(each for each in held if Path(str(each.__file__)).resolve() == path)
    new = {**vars(module)}
    exec(compile(tree, file, "exec"), new)  # noqa: S102 - a module of ours
    for name, value in new.items():
        old = vars(module).get(name)
        if isinstance(value, _CONSTANTS) and type(value) is type(old):
            setattr(module, name, value)
        elif getattr(value, "__module__", None) == module.__name__:
            _exchange(old, value)


def _exchange(old: object, new: object) -> None:
    """Let a function, or each of a class, do what another does."""
    if isinstance(new, type) and isinstance(old, type):
        for name, part in vars(new).items():
            if name in vars(old):
                _exchange(vars(old)[name], part)
        return
    one, other = _function(old), _function(new)
    if (
        one is not None
        and other is not None
        and len(one.__code__.co_freevars) == len(other.__code__.co_freevars)
    ):
        one.__code__, one.__defaults__ = other.__code__, other.__defaults__
        one.__kwdefaults__ = other.__kwdefaults__


def _function(held: object) -> FunctionType | None:
    """Return the function behind a property, a method of a class, or something decorated."""
    for name in ("fget", "func", "__func__", "__wrapped__"):
        inner = getattr(held, name, None)
        if inner is not None:
            return _function(inner)
    return held if isinstance(held, FunctionType) else None


def main() -> None:
    """Run the tests for each change of a module."""
    file, *tests = sys.argv[1:]
    all_changes = list(changes(ast.parse(Path(file).read_bytes())))
    os.environ["CI"] = "true"
    # All that the tests need is imported once, here.
    if _silent(["--collect-only", *tests]) or _fails(tests, file, None):
        sys.exit("the tests fail without a change")
    survivors = 0
    for line, what, tree in all_changes:
        if not _fails(tests, file, tree):
            survivors += 1
            print(f"{file}:{line}: {what}", flush=True)  # noqa: T201
    print(f"{len(all_changes)} changes, {survivors} that no test notices")  # noqa: T201


def _fails(tests: Sequence[str], file: str, tree: ast.Module | None) -> bool:
    """Run tests in a process of their own, and tell whether one fails."""
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(HUNG)
            if tree is not None:
                _install(file, tree)
            status = _silent(["-x", *tests])
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    # Tests that hang are ended by their alarm.
    return ended != 0


def _silent(words: Sequence[str]) -> int:
    """Run pytest without a word."""
    import pytest

    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        return int(pytest.main(["-q", "-p", "no:cacheprovider", *words]))


if __name__ == "__main__":
    main()
