"""Every expression and every matcher takes time in proportion to foreign text.

The texts have 100,000 characters. What takes the square of that takes minutes, and is stopped.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import _constants as ops
from re import _parser

import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import Patterns, short_name
from callpath_modeler.profile.schema import Region
from callpath_modeler.readers.discover import natural_order
from callpath_modeler.readers.paths import split_paths
from callpath_modeler.readers.run_filter import RunCondition
from callpath_modeler.readers.titles import read_title
from callpath_modeler.readers.tokens import tokens_in
from callpath_modeler.testing.damage import at_most
from callpath_modeler.units import parse_quantity
from cpmodel_hpctoolkit.names import match_key

ROOTS = Path(__file__).resolve().parents[2], Path(__file__).resolve().parents[2] / "plugins"
MANY = 100_000
SECONDS = 30
USES = {"search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split"}


def sources() -> Iterator[tuple[str, Path]]:
    for root, packages in zip(ROOTS, ("callpath_modeler", "cpmodel_*"), strict=True):
        for package in sorted(root.glob(packages)):
            for path in sorted(package.rglob("*.py")):
                if "re." in path.read_text():
                    parts = path.relative_to(root).with_suffix("").parts
                    yield ".".join(parts).removesuffix(".__init__"), path


def expressions() -> Iterator[tuple[str, re.Pattern, set[str]]]:
    """Yield every compiled expression of a module, and every one that is written in a call."""
    for name, path in sources():
        module = importlib.import_module(name)
        held = {key: each for key, each in vars(module).items() if isinstance(each, re.Pattern)}
        uses: dict[str, set[str]] = {}
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner, method = node.func.value, node.func.attr
            if method not in USES or not isinstance(owner, ast.Name):
                continue
            if owner.id in held:
                uses.setdefault(owner.id, set()).add(method)
            elif owner.id == "re" and isinstance(node.args[0], ast.Constant):
                yield f"{name}:{node.lineno}", re.compile(node.args[0].value), {method}
        for key, expression in held.items():
            # What is handed on to another module is matched token by token.
            yield f"{name}.{key}", expression, uses.get(key, {"match"})


def text_of(nodes: Iterable, times: int) -> str:
    """Return a text that a part of an expression matches, its repetitions `times` times."""
    return "".join(_text_of(op, about, times) for op, about in nodes)


def _text_of(op, about, times: int) -> str:  # noqa: PLR0911 - one case per kind
    if op is ops.LITERAL:
        return chr(about)
    if op is ops.IN:
        return _one_of(about)
    if op in (ops.ANY, ops.NOT_LITERAL):
        return "x" if about != ord("x") else "y"
    if op is ops.BRANCH:
        return text_of(about[1][0], times)
    if op is ops.SUBPATTERN:
        return text_of(about[3], times)
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return text_of(about[2], times) * max(about[0], min(times, about[1]))
    if op is ops.ATOMIC_GROUP:
        return text_of(about, times)
    return ""


def _one_of(members: list) -> str:
    if members[0][0] is ops.NEGATE:
        excluded = {chr(about) for op, about in members if op is ops.LITERAL}
        return next(sign for sign in "x1 ![(" if sign not in excluded)
    op, about = members[0]
    if op is ops.CATEGORY:
        return {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(
            str(about), "!"
        )
    return chr(about[0] if op is ops.RANGE else about)


def pieces_of(nodes) -> set[str]:
    """Return texts that parts of an expression match: repeated, they are what costs most."""
    nodes, found = list(nodes), set()
    for first in range(len(nodes)):
        for end in range(first + 1, len(nodes) + 1):
            found |= {text_of(nodes[first:end], times) for times in (0, 1)}
    for op, about in nodes:
        inner = {
            ops.BRANCH: lambda about=about: about[1],
            ops.SUBPATTERN: lambda about=about: [about[3]],
            ops.MAX_REPEAT: lambda about=about: [about[2]],
            ops.MIN_REPEAT: lambda about=about: [about[2]],
            ops.POSSESSIVE_REPEAT: lambda about=about: [about[2]],
            ops.ATOMIC_GROUP: lambda about=about: [about],
        }.get(op, list)
        for part in inner():
            found |= pieces_of(part)
    return found - {""}


def use(expression: re.Pattern, method: str, text: str) -> None:
    given = text if isinstance(expression.pattern, str) else text.encode("latin-1", "replace")
    if method in {"sub", "subn"}:
        expression.sub(given[:0], given)
    elif method == "finditer":
        sum(1 for _ in expression.finditer(given))
    else:
        getattr(expression, method)(given)


EXPRESSIONS = list(expressions())


def test_the_expressions_are_found():
    assert len(EXPRESSIONS) > 80


@pytest.mark.parametrize(
    ("expression", "methods"), [each[1:] for each in EXPRESSIONS], ids=[e[0] for e in EXPRESSIONS]
)
def test_every_expression_takes_linear_time(expression, methods):
    flags = expression.flags
    if isinstance(expression.pattern, bytes):
        flags &= ~re.UNICODE
    with at_most(SECONDS):
        for piece in sorted(pieces_of(_parser.parse(expression.pattern, flags))):
            text = piece * (MANY // len(piece))
            for method in methods:
                use(expression, method, f"x{text}!\n" if method == "search" else f"{text}!\n")


HOSTILE = [
    "a" * MANY,
    "a " * (MANY // 2),
    " " * MANY + "x",
    "/" * MANY + "x",
    ")[" * (MANY // 2),
    "(<[" * (MANY // 3),
    ".isra.1" * (MANY // 7) + "x",
    " [clone " * (MANY // 8),
    "->" * (MANY // 2),
    "1" * MANY + "+",
    "1.1" * (MANY // 3),
    "((" * (MANY // 2),
    "[" * MANY,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:9]))
def test_names_are_taken_apart_in_linear_time(text):
    with at_most(SECONDS):
        for take_apart in (short_name, tokens_in, natural_order, read_title, match_key):
            take_apart(text)
        split_paths([text, "a/b"])
        with pytest.raises(ValueError, match="no quantity") as caught:
            parse_quantity(f"+{text}+ +")
    assert len(str(caught.value)) < 1000


def tree_of(*names: str) -> CallTree:
    return CallTree.from_parents([ROOT] * len(names), range(len(names)), [*map(Region, names)])


@pytest.mark.parametrize(
    "pattern", ["*a" * 40 + "b", "a*" * 40 + "b", "*?" * 40 + "b", "*{a,aa}" * 6 + "b"]
)
def test_stars_take_no_more_than_the_product_of_both_lengths(pattern):
    name = "a" * (MANY // 10)
    with at_most(SECONDS):
        assert not len(Patterns.of(tree_of(name)).rows(pattern))
        assert len(Patterns.of(tree_of(f"{name}b")).rows(pattern)) == 1


def test_conditions_on_texts_take_linear_time():
    with at_most(SECONDS):
        assert not RunCondition("key", "=", "*a" * 40 + "b").holds("a" * (MANY // 10))


@pytest.mark.parametrize(
    ("pattern", "names", "is_matched"),
    [
        ("a*b*c", ["abc", "a1b2c", "acb"], [True, True, False]),
        ("*ab*", ["aab", "ba"], [True, False]),
        ("a*a", ["a", "aa", "aba"], [False, True, True]),
        ("x{a,ab}c", ["xac", "xabc", "xbc"], [True, True, False]),
        ("*{a,ab}c?", ["abcd", "1ace", "c"], [True, True, False]),
        ("{a*,b}{c,d}", ["a1c", "bd", "ab"], [True, True, False]),
        ("{a}", ["{a}", "a"], [True, False]),
    ],
)
def test_patterns_match_whatever_a_star_may_stand_for(pattern, names, is_matched):
    found = Patterns.of(tree_of(*names)).rows(pattern).tolist()
    assert [k in found for k in range(len(names))] == is_matched


@pytest.mark.parametrize("pattern", ["{a,b}" * 12, "/".join(["**"] * 101)])
def test_patterns_that_stand_for_too_many_are_refused(pattern):
    with pytest.raises(UsageError, match="more than") as caught:
        Patterns.of(tree_of("main")).rows(pattern)
    assert caught.value.hint
