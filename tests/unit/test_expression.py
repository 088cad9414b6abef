"""Arithmetic in expectation files."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.support.expression import (
    CallPathsNode,
    ComparisonError,
    NameNode,
    as_units,
    check_same_unit,
    evaluate,
    leaves,
    parse_comparison,
    units_of,
)
from cells import cells

METRICS = {"bytes": (5e8, "B"), "time": (2.0, "s"), "heap: peak": (1e9, "B"), "n": (48.0, "1")}


def value(text, side="left"):
    node = getattr(parse_comparison(text), side)
    return float(evaluate(node, lambda leaf: np.asarray(METRICS[leaf.text][0])))


@cells(
    ("text", "expected"),
    [
        ("bytes * n <= 0", 2.4e10),
        ("2 - 3 - 4 <= 0", -5),
        ("-2 + 3 * 2 <= 0", 4),
        ("8 / 2 / 2 <= 0", 2),
        ("2 * (1 + 2) <= 0", 6),
        ("-(1 + 2) <= 0", -3),
        ("max(1, 2 * 3, 4) - min(5, 2) <= 0", 4),
        ("'heap: peak' / time <= 0", 5e8),
        ("24 GB <= 0", 2.4e10),
        ("1 GiB <= 0", 2**30),
        ("5 % <= 0", 0.05),
        ("1.5e3 ms <= 0", 1.5),
        (".5 min <= 0", 30),
    ],
)
def test_arithmetic_goes_by_the_usual_rules(text, expected):
    assert value(text) == pytest.approx(expected)


def test_the_larger_of_a_number_and_a_value_at_each_scale_is_found():
    node = parse_comparison("max(time, 2, min(time, 5)) <= 0").left
    found = evaluate(node, lambda _: np.array([1.0, 3.0, 7.0]))
    assert found.tolist() == [2.0, 3.0, 7.0]


def test_a_long_sum_is_no_deep_one():
    assert value(" + ".join(["1"] * 20_000) + " <= 0") == 20_000


def test_both_comparisons_are_told_apart():
    assert parse_comparison("bytes <= 1").at_most
    assert not parse_comparison("bytes >= 1").at_most


def test_call_paths_stand_in_braces_which_patterns_have_too():
    sides = parse_comparison("{**/MPI_{All,}reduce} <= 2 * {main/f} + a.b")
    assert [*leaves(sides.left), *leaves(sides.right)] == [
        CallPathsNode("**/MPI_{All,}reduce", 0),
        CallPathsNode("main/f", 29),
        NameNode("a.b", 40),
    ]


@cells(
    ("text", "column", "message"),
    [
        ("bytes", 5, "a comparison is needed"),
        ("bytes < 3", 6, "is not allowed here"),
        ("bytes <= ", 8, "is needed"),
        ("bytes * <= 3", 8, "is needed"),
        ("(bytes <= 3", 7, "closing bracket"),
        ("max() <= 3", 4, "is needed"),
        ("bytes <= 3 <= 4", 11, "has ended"),
        ("1 GB 3 <= 4", 5, "a comparison is needed"),
        ("bytes / 0 GB <= 3", 8, "divided by zero"),
        ("(" * 60 + "1" + ")" * 60 + " <= 2", 50, "more than 50 brackets"),
    ],
)
def test_a_fault_is_pointed_at(text, column, message):
    with pytest.raises(ComparisonError) as fault:
        parse_comparison(text)
    assert fault.value.column == column
    assert message in fault.value.message


def units(text):
    parsed = parse_comparison(text)
    sides = [
        units_of(text, s, lambda leaf: as_units(METRICS[leaf.text][1]))
        for s in (parsed.left, parsed.right)
    ]
    check_same_unit(text, *sides)
    return sides[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes * n <= 24 GB", (("B", 1),)),
        ("bytes / time <= 3 GB / 2 s", (("B", 1), ("s", -1))),
        ("bytes / 'heap: peak' <= 50 %", ()),
        ("max(bytes, 'heap: peak') + 1 kB <= 1 GB", (("B", 1),)),
    ],
)
def test_units_go_through_arithmetic(text, expected):
    assert units(text) == expected


@pytest.mark.parametrize(
    "text", ["bytes <= 3 s", "bytes + time <= 3 s", "max(bytes, n) <= 1 B", "bytes * time <= 3 GB"]
)
def test_unlike_things_are_not_compared(text):
    with pytest.raises(ComparisonError, match="against"):
        units(text)
