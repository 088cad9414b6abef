"""Change a module in one place at a time, and check whether its own tests fail.

    make mutants                                       # all modules of mutants.toml
    make mutants MODULES="callpath_modeler/analysis/answer.py"

For developers, not for CI. ``mutants.toml`` names the tests of each module, and why some changes
have no effect that a test could notice. Each change has a new process that imports the changed
module and runs the tests. Commands that a test starts in further processes run the module without
the change. The tool prints each change that no test notices and that has no reason, and a table. It
fails if there is such a change, a reason without its change, or less than `LEAST` of the changes is
noticed.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import signal
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType

LEAST = 0.9
"""Smallest share of the changes of a module that its own tests have to notice."""
SLOWER = 20
"""Tests that take so many times as long as without a change hang."""
AT_ONCE = 2
"""Number of changes that are tested at one time."""
LIST = Path(__file__).with_suffix(".toml")
_AROUND = 40
"""Number of characters before and after a change that its text shows."""
_LIBRARIES = ("numpy", "scipy.special", "pandas", "networkx", "msgspec", "pytest")
"""Libraries that are imported once, and not by the process of each change."""

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
    unchanged = ast.unparse(tree)
    for place in _places(tree):
        for which in range(3):
            changed = copy.deepcopy(tree)
            node = next(node for k, node in enumerate(ast.walk(changed)) if k == place)
            if not _change(node, which):
                break
            what = _difference(unchanged, ast.unparse(changed))
            yield getattr(node, "lineno", 0), what, changed


def _difference(before: str, after: str) -> str:
    """Return what differs between two texts, with a little of the line around it."""
    start = _same(before, after)
    same_end = _same(before[start:][::-1], after[start:][::-1])
    begin = max(before.rfind("\n", 0, start) + 1, start - _AROUND)
    parts = []
    for text in (before, after):
        end = len(text) - same_end
        line_end = text.find("\n", end)
        stop = min(end + _AROUND, len(text) if line_end < 0 else line_end)
        parts.append(" ".join(text[begin:stop].split()))
    return "  ->  ".join(parts)


def _same(one: str, other: str) -> int:
    """Return how many characters two texts have in common at the beginning."""
    pairs = zip(one, other, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _places(tree: ast.Module) -> list[int]:
    """Return the numbers of the nodes that a result depends on."""
    idle = {id(part) for each in _without_effect(tree) for part in ast.walk(each)}
    return [k for k, node in enumerate(ast.walk(tree)) if id(node) not in idle]


def _without_effect(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield annotations, which are not evaluated, and decorators such as ``dataclass``."""
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if annotation := getattr(node, name, None):
                yield annotation
        yield from getattr(node, "decorator_list", ())


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


@dataclass(frozen=True)
class Listed:
    """A module with its own tests.

    Attributes
    ----------
    file : path of the module
    tests : paths of its tests
    reasons : why no test can notice a change, by the text of the change
    """

    file: str
    tests: Sequence[str]
    reasons: Mapping[str, str]


def main(names: Sequence[str]) -> None:
    """Run the tests of modules for each change of each module."""
    os.environ["CI"] = "true"
    for name in _LIBRARIES:
        importlib.import_module(name)
    known = [Listed(**each) for each in tomllib.loads(LIST.read_text("utf-8"))["module"]]
    rows, complaints = [], 0
    for module in [each for each in known if not names or each.file in names]:
        begin = time.monotonic()
        if _wait(_start(module, None, 0)):
            sys.exit(f"{module.file}: its tests fail without a change")
        limit = 10 + SLOWER * round(time.monotonic() - begin)
        all_changes = list(changes(ast.parse(Path(module.file).read_bytes())))
        survivors = _survivors(module, all_changes, limit)
        unexplained = [what for _, what in survivors if what not in module.reasons]
        idle = module.reasons.keys() - {what for _, what in survivors}
        share = 1 - len(survivors) / len(all_changes)
        rows.append(f"| {module.file} | {len(all_changes)} | {100 * share:.0f} % |")
        for what in sorted(idle):
            print(f"{module.file}: a reason without its change: {what}", flush=True)
        complaints += len(unexplained) + len(idle) + (share < LEAST)
    print("\n".join(["| module | changes | noticed |", "|---|--:|--:|", *rows]))
    sys.exit(complaints > 0)


def _survivors(
    module: Listed, all_changes: Sequence[tuple[int, str, ast.Module]], limit: int
) -> list[tuple[int, str]]:
    """Return line and text of the changes that no test notices; print those without a reason."""
    found: list[tuple[int, str]] = []
    running: dict[int, tuple[int, str]] = {}

    def end(child: int, ended: int) -> None:
        line, what = running.pop(child)
        if not ended:
            found.append((line, what))
            if what not in module.reasons:
                print(f"{module.file}:{line}: {what}", flush=True)

    for line, what, tree in all_changes:
        if len(running) == AT_ONCE:
            end(*os.wait())
        running[_start(module, tree, limit)] = line, what
    while running:
        end(*os.wait())
    return found


def _start(module: Listed, tree: ast.Module | None, limit: int) -> int:
    """Start a process that runs the tests with the changed module; its status is 0 if they pass.

    Tests that hang are ended by an alarm after `limit` seconds; 0 = never.
    """
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.alarm(limit)
        if tree is not None:
            sys.meta_path.insert(0, _ChangedModule(module.file, tree))
        status = _silent(["-x", *module.tests])
    finally:
        os._exit(status)


def _wait(child: int) -> int:
    return os.waitpid(child, 0)[1]


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
    main(sys.argv[1:])
