"""Change a module in one place at a time, and check whether its tests fail.

    make mutants MODULE=callpath_modeler/atomic.py TESTS="tests/unit/test_atomic.py"

For developers, not for CI. Each change has a new process that imports the changed module and runs
the tests. Commands that a test starts in further processes run the module without the change. The
tool prints each change that no test notices, such as exchanged parts of an error text.
"""

from __future__ import annotations

import ast
import copy
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

HUNG = 600
"""Seconds after which tests hang, which they would not without the change."""

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


class _ChangedModule(PathFinder):
    """Finder that imports a changed syntax tree in place of one module."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self._path = Path(file).resolve()
        self._tree = tree

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: object = None,  # noqa: ARG002 - of the protocol
    ) -> ModuleSpec | None:
        """Return the specification of the changed module; None for all others."""
        found = PathFinder.find_spec(fullname, path)
        if found is None or found.origin is None or Path(found.origin).resolve() != self._path:
            return None
        found.loader = _Loader(fullname, found.origin, self._tree)
        return found


class _Loader(SourceFileLoader):
    """Loader that compiles a syntax tree instead of a file."""

    def __init__(self, fullname: str, path: str, tree: ast.Module) -> None:
        super().__init__(fullname, path)
        self._tree = tree

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - of the protocol
        """Return the code of the syntax tree."""
        return compile(self._tree, self.path, "exec")


def main() -> None:
    """Run the tests for each change of a module."""
    file, *tests = sys.argv[1:]
    all_changes = list(changes(ast.parse(Path(file).read_bytes())))
    os.environ["CI"] = "true"
    if _fails(tests, file, None):
        sys.exit("the tests fail without a change")
    survivors = 0
    for line, what, tree in all_changes:
        if not _fails(tests, file, tree):
            survivors += 1
            print(f"{file}:{line}: {what}", flush=True)  # noqa: T201
    print(f"{len(all_changes)} changes, {survivors} that no test notices")  # noqa: T201


def _fails(tests: Sequence[str], file: str, tree: ast.Module | None) -> bool:
    """Return True if a test fails in a new process with the changed module."""
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(HUNG)
            if tree is not None:
                sys.meta_path.insert(0, _ChangedModule(file, tree))
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
