"""Every expression and every matcher takes steps in proportion to foreign text.

Steps are counted for a text and for one of twice its length: seconds would depend on the machine.
"""

from __future__ import annotations

import ast
import fnmatch
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from re import _constants as ops
from re import _parser

import pytest

from backtracking import Counting, TooManyError
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import Patterns, matcher_of, short_name
from callpath_modeler.profile.schema import Region
from callpath_modeler.readers.discover import natural_order
from callpath_modeler.readers.paths import read_title, split_paths
from callpath_modeler.readers.run_cases import RunCondition
from callpath_modeler.readers.tokens import tokens_in
from callpath_modeler.units import parse_quantity
from cells import cells
from counting import work_of
from cpmodel_hpctoolkit.names import match_key

ROOTS = Path(__file__).resolve().parents[2], Path(__file__).resolve().parents[2] / "plugins"
LENGTHS = (20, 200, 800)
"""Lengths that are doubled: repetitions of up to so many times cost more only below them."""
USES = {"search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split"}


def sources() -> Iterator[tuple[str, Path]]:
    for root, packages in zip(ROOTS, ("callpath_modeler", "cpmodel_*"), strict=True):
        for package in sorted(root.glob(packages)):
            for path in sorted(package.rglob("*.py")):
                if "re." in path.read_text():
                    parts = path.relative_to(root).with_suffix("").parts
                    yield ".".join(parts).removesuffix(".__init__"), path


def expressions() -> Iterator[tuple[str, re.Pattern, set[str]]]:
    """Yield every compiled expression of a module, and every expression in a call."""
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
            # Text for another module is matched token by token.
            yield f"{name}.{key}", expression, uses.get(key, {"match"})


def text_of(nodes: Iterable, times: int) -> str:
    """Return a text that matches a part of an expression, with its repetitions `times` times."""
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
    """Return texts that match parts of an expression; their repetition costs the most time."""
    nodes, found = list(nodes), set()
    for first in range(len(nodes)):
        # Of a long expression: short parts, what it begins with, and what it ends with.
        last = len(nodes) if not first else min(first + 6, len(nodes))
        for end in {*range(first + 1, last + 1), len(nodes)}:
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


def found(expression: re.Pattern, method: str, text) -> list[tuple[int, int]]:
    """Return where an expression is found in a text by `re`."""
    if method in {"search", "match", "fullmatch"}:
        first = getattr(expression, method)(text)
        return [first.span()] if first else []
    return [each.span() for each in expression.finditer(text)]


def counted(counting: Counting, method: str, text) -> list[tuple[int, int]]:
    """Return the same as `found`, with all steps counted."""
    if method in {"search", "match", "fullmatch"}:
        first = getattr(counting, method)(text)
        return [first] if first else []
    return counting.everywhere(text)


def is_linear(
    expression: re.Pattern,
    method: str,
    text_of_length: Callable[[int], str],
    counting: Counting | None = None,
) -> bool:
    """Tell whether twice the text takes no more than about twice the steps.

    `counting` is the expression for many texts, which takes longer to make than to try.
    """
    counting = counting or Counting(expression)
    for length in LENGTHS:
        steps = []
        for size in (length, 2 * length):
            text = text_of_length(size)
            if isinstance(expression.pattern, bytes):
                text = text.encode("latin-1", "replace")
            counting.steps = 0
            try:
                assert counted(counting, method, text) == found(expression, method, text)
            except TooManyError:
                return False
            steps.append(counting.steps)
        if steps[1] <= 2.3 * steps[0] + 20:
            return True
    return False


def repeated(piece: str, end: str) -> Callable[[int], str]:
    return lambda size: piece * max(1, size // len(piece)) + end


def assert_linear(name: str, expression: re.Pattern, methods: set[str]) -> None:
    flags = expression.flags
    if isinstance(expression.pattern, bytes):
        flags &= ~re.UNICODE
    counting = Counting(expression)
    for piece in sorted(pieces_of(_parser.parse(expression.pattern, flags))):
        for method in methods:
            text = repeated(f"{'x' * (method == 'search')}{piece}", "!\n")
            assert is_linear(expression, method, text, counting), (name, piece, method)


def test_every_expression_takes_linear_time():
    checked = 0
    for name, expression, methods in expressions():
        assert_linear(name, expression, methods)
        checked += 1
    assert checked > 80


@cells(
    ("expression", "method", "piece"),
    [
        ("(a+)+b", "match", "a"),
        ("(a|a)*b", "match", "a"),
        ("a+b", "search", "a"),
        ("a*a*b", "match", "a"),
        (r"\s+$", "sub", " "),
        ("<a.*?</a>", "findall", "<a"),
        (r"(a*)\1b", "match", "a"),
    ],
)
def test_what_is_not_linear_is_noticed(expression, method, piece):
    assert not is_linear(re.compile(expression, re.DOTALL), method, repeated(piece, "!\n"))


HOSTILE = [
    "a", "a ", " ", "/", ")[", "(<[", ".isra.1", " [clone ", "->", "1", "1.1", "((", "[",
]  # fmt: skip


def takes_linear_work(call: Callable[[str], object], text_of_length: Callable[[int], str]) -> bool:
    work = [work_of(lambda size=size: call(text_of_length(size))) for size in (1000, 2000, 4000)]
    # What is made once, for the first text, is in the first count alone.
    return work[2] <= 2.3 * work[1] + 200


def quantity(text: str) -> None:
    try:
        parse_quantity(f"+{text}+ +")
    except ValueError as error:
        told = str(error)
    else:
        return
    assert len(told) < 1000


TAKEN_APART = [
    *(short_name, tokens_in, natural_order, read_title, match_key, quantity),
    lambda text: split_paths([text, "a/b"]),
]


@cells("end", ["", "x", "+"])
@cells("piece", HOSTILE)
def test_names_are_taken_apart_in_linear_time(piece, end):
    for take_apart in TAKEN_APART:
        assert takes_linear_work(take_apart, repeated(piece, end)), take_apart


def test_work_that_is_not_linear_is_noticed():
    def shorten(text: str) -> None:
        while text:
            text = text[1:]

    def ask(text: str) -> None:
        for _ in range(len(text)):
            text.count("b")

    assert not takes_linear_work(shorten, repeated("a", ""))
    assert not takes_linear_work(ask, repeated("a", ""))
    assert takes_linear_work(lambda text: [sign for sign in text], repeated("a", ""))  # noqa: C416


def tree_of(*names: str) -> CallTree:
    return CallTree.from_parents([ROOT] * len(names), range(len(names)), [*map(Region, names)])


STARS = ["*a" * 40 + "b", "a*" * 40 + "b", "*?" * 40 + "b", "*{a,aa}" * 6 + "b"]


@pytest.mark.parametrize("pattern", STARS)
def test_stars_take_no_more_than_the_product_of_both_lengths(pattern):
    expression = matcher_of(pattern).__self__
    counting = Counting(expression)
    for name in ("a" * 1000, "a" * 1000 + "b"):
        counting.steps = 0
        assert (counting.fullmatch(name) is not None) == name.endswith("b")
        # An expression with braces is several.
        assert counting.steps <= 4 * len(expression.pattern) * len(name)
    assert is_linear(expression, "fullmatch", repeated("a", ""))
    assert Patterns.of(tree_of("a" * 10_000, "a" * 10_000 + "b")).rows(pattern).tolist() == [1]


def test_conditions_on_texts_take_linear_time():
    pattern = "*a" * 40 + "b"
    assert is_linear(re.compile(fnmatch.translate(pattern)), "match", repeated("a", ""))
    assert not RunCondition("key", "=", pattern).holds("a" * 10_000)
    assert RunCondition("key", "=", pattern).holds("a" * 10_000 + "b")


@cells(
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
