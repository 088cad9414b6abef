"""Formulas of metrics, and what a hostile formula may do."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.metric_formulas import (
    Formula,
    combined_units,
    degree,
    measured_operands,
    needed_for,
    parse_definitions,
)
from callpath_modeler.support.expression import as_units
from cells import cells


def defined(text):
    (found,) = parse_definitions([text])
    return found


def value(text, **operands):
    made = defined(f"x = {text}")
    formula = Formula((made,), made.operands)
    return float(formula.of([np.array([float(operands[name])]) for name in made.operands])[0])


@cells(
    ("text", "expected"),
    [
        ("a / b", 3.0),
        ("a - 2 * b", 2.0),
        ("-(a + b) / 4", -2.0),
        ("min(a, b, 1.5)", 1.5),
        ("max(a, b) * 1e-3", 6e-3),
        ("a / b / b", 1.5),
        ("'a' + `b`", 8.0),
    ],
)
def test_a_formula_is_evaluated_by_the_usual_rules(text, expected):
    assert value(text, a=6, b=2) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["a / b", "b / b", "1 / (b * b)", "a * a * 1e300 / b"])
def test_division_by_zero_is_not_known(text):
    assert np.isnan(value(text, a=6, b=0))


def test_a_value_beyond_all_numbers_is_not_known():
    assert np.isnan(value("a * a", a=1e200))


def test_names_with_other_signs_are_quoted():
    made = defined('"L2 misses per call" = `PAPI::L2 TCM` / visits')
    assert made.name == "L2 misses per call"
    assert made.operands == ("PAPI::L2 TCM", "visits")
    assert parse_definitions([made.text]) == (made,)


@pytest.mark.parametrize("name", ['`it\'s "so"`', "'a`b'", '"x\'y"', "plain.name"])
def test_the_text_of_a_definition_is_read_as_the_same_definition(name):
    made = defined(f"{name} = time + 1")
    assert parse_definitions([made.text]) == (made,)


@cells(
    ("text", "expected"),
    [
        ("a - b", 1),
        ("-2 * (a + b / 3)", 1),
        ("a + 1", None),
        ("a / b", None),
        ("a * b", None),
        ("min(a, b)", None),
        ("max(2, 3) * a", 1),
        ("a + ratio", None),
        ("1 / a", None),
    ],
)
def test_only_linear_formulas_without_a_constant_term_add_up(text, expected):
    assert degree(defined(f"x = {text}").node, lambda name: name != "ratio") == expected


@cells(
    ("text", "expected"),
    [
        ("t - 2 * t", as_units("s")),
        ("n / n", ()),
        ("t / t", ()),
        ("size / t", (("B", 1), ("s", -1))),
        ("size + t", None),
        ("t + 1", None),
        ("unknown / t", None),
        ("t * t * t * t", None),
        ("max(n, 1)", ()),
    ],
)
def test_units_go_through_formulas(text, expected):
    known = {"t": as_units("s"), "n": (), "size": as_units("B"), "unknown": None}
    assert combined_units(defined(f"x = {text}").node, known) == expected


def test_a_definition_needs_the_operands_of_earlier_ones():
    chain = parse_definitions(["a = x + y", "b = a / z", "c = x", "d = b * c"])
    assert measured_operands(chain, "d") == ("x", "y", "z")
    assert [each.name for each in needed_for(chain, "b")] == ["a", "b"]
    assert measured_operands(chain, "time") == ("time",)


@cells(
    ("texts", "message"),
    [
        (["ipc"], "not NAME = FORMULA"),
        (["ipc ="], "not NAME = FORMULA"),
        (["= a"], "not NAME = FORMULA"),
        (["a b = c"], "not NAME = FORMULA"),
        (["`` = c"], "not NAME = FORMULA"),
        (["x = a\n+ b"], "not NAME = FORMULA"),
        (["x\x1b = a"], "not NAME = FORMULA"),
        (["x = a b"], "an operator is needed"),
        (["x = 2 ms"], "an operator is needed"),
        (["x = a <= b"], "an operator is needed"),
        (["x = {main/**}"], "a number, a name or a bracket is needed"),
        (["x = (a"], "a closing bracket is needed"),
        (["x = a / 0"], "nothing can be divided by zero"),
        (["x = a ** b"], "a number, a name or a bracket is needed"),
        (["x = a; b"], "';' is not allowed"),
        (["x = __import__('os').system('id')"], "'.' is not allowed here"),
        (["x = 1 + 2"], "no metric is in it"),
        (["x = x + a"], "uses itself"),
        (["x = y", "y = x"], "uses 'y', which is defined later"),
        (["x = a", "x = b"], "'x' is defined twice"),
        (["x = " + "(" * 60 + "a" + ")" * 60], "more than 50 brackets"),
        (["x = a" + " + a" * 200], "more than 500 characters"),
        (["x = a" + " + 1" * 30], "more than 30 names and numbers"),
        ([f"x{k} = a" for k in range(33)], "more than 32 definitions"),
        (["x = " + "9" * 450 + " * a"], "too many digits"),
    ],
)
def test_what_is_no_definition_is_refused(texts, message):
    with pytest.raises(UsageError) as caught:
        parse_definitions(texts)
    assert message in caught.value.message
    assert caught.value.hint
    assert len(str(caught.value)) < 500


def test_definitions_that_grow_from_line_to_line_stay_small():
    texts = ["d0 = a", *(f"d{k} = d{k - 1} * d{k - 1} + d{k - 1}" for k in range(1, 32))]
    chain = parse_definitions(texts)
    formula = Formula(chain, ("a",))
    assert formula.of([np.array([0.0, 1e3])]).tolist()[0] == 0.0
    units = {"a": as_units("s")}
    for each in chain:
        units[each.name] = combined_units(each.node, units)
    assert units["d31"] is None


def test_a_formula_of_columns_is_that_of_each_column():
    made = defined("x = a / b")
    a, b = np.arange(6.0).reshape(3, 2), np.full((3, 2), 2.0)
    assert Formula((made,), ("a", "b")).of([a, b]).tolist() == (a / 2).tolist()
    assert Formula((made,), ("a", "b")).of([a[:, :0], b[:, :0]]).shape == (3, 0)
