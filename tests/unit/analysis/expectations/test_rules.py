"""Rules across functions, for known laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.analysis.expectations.check_result import Verdict
from callpath_modeler.analysis.expectations.rules import Leading, Rule, bind, leading
from callpath_modeler.analysis.measured import Measured
from callpath_modeler.errors import UsageError
from callpath_modeler.modeling import Growth, parse_growth
from callpath_modeler.support.expression import ComparisonError, Leaf, parse_comparison
from cells import cells
from synthetic import experiment

POINTS = np.array([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
LAWS = {
    "main": 1 + 0 * POINTS,
    "main/MPI_Allreduce": 0.5 * POINTS,
    "main/MPI_Reduce": 20 * np.log2(POINTS),
    "main/MPI_Bcast": 30 * np.log2(POINTS),
    "main/solve": 2 + 0 * POINTS,
    "main/solve/MPI_Bcast": 10 * np.log2(POINTS),
    "main/solve/work": 4 + 0 * POINTS,
}


def models_of(laws=LAWS, noise=0.005):
    random = np.random.default_rng(5)
    values = {
        path: law[:, None] * (1 + noise * random.standard_normal((len(POINTS), 5)))
        for path, law in laws.items()
    }
    return cpm.fit(experiment(values, POINTS))


@pytest.fixture(scope="module")
def models():
    return models_of()


def rule(models, text, **options) -> Rule:
    return bind(parse_comparison(text), Measured(models), **options)


def holds_in_the_end(found: Rule) -> bool:
    left, right = found.in_the_end()
    return not (left.exceeds(right) if found.comparison.at_most else right.exceeds(left))


def test_a_violation_is_predicted_at_scales_that_nobody_measured(models) -> None:
    found = rule(models, "{**/MPI_Allreduce} <= {**/MPI_Reduce} + {**/MPI_Bcast}")
    assert not found.broken_at().size
    assert holds_in_the_end(found) is False
    left, right = found.in_the_end()
    assert (str(left.growth), str(right.growth)) == ("O(p)", "O(log p)")
    assert right.coefficient == pytest.approx(60, rel=0.02)
    # p / 2 = 60 log2 p
    crossing = found.crossing()
    assert crossing.likely == pytest.approx(1235, rel=0.02)
    assert crossing.likely < crossing.surely < 3000
    assert [found.at(np.array([p])).verdict for p in (64.0, 1235.0, 8192.0)] == [
        Verdict.KEPT,
        Verdict.UNSURE,
        Verdict.BROKEN,
    ]


def test_a_violation_that_was_measured_is_told_with_its_scales(models) -> None:
    found = rule(models, "{**/MPI_Reduce} <= 0.3 * {**/MPI_Allreduce}")
    # 20 log2 p exceeds 0.15 p everywhere up to 1,400.
    assert found.broken_at().tolist() == POINTS.tolist()
    assert holds_in_the_end(found) is True
    assert found.crossing().likely is None
    assert found.at(np.array([64.0])).verdict is Verdict.BROKEN
    assert found.at(np.array([1e5])).verdict is Verdict.KEPT


def test_equal_growth_is_decided_by_coefficients(models) -> None:
    assert holds_in_the_end(rule(models, "{**/MPI_Reduce} <= {**/MPI_Bcast}")) is True
    assert holds_in_the_end(rule(models, "2.5 * {**/MPI_Reduce} <= {**/MPI_Bcast}")) is False
    assert holds_in_the_end(rule(models, "{main/MPI_Bcast} >= {**/MPI_Bcast}")) is False


def test_names_numbers_and_the_parameter_may_stand_in_a_rule(models) -> None:
    assert holds_in_the_end(rule(models, "MPI_Allreduce <= p * work")) is True
    assert holds_in_the_end(rule(models, "MPI_Allreduce <= work")) is False
    limit = rule(models, "MPI_Allreduce <= limit", numbers={"limit": (1000.0, "s")})
    assert holds_in_the_end(limit) is False
    assert limit.crossing().likely == pytest.approx(2000, rel=0.05)


def test_the_largest_of_several_may_bound_another(models) -> None:
    text = "{**/MPI_Reduce} <= max({**/MPI_Bcast}, {**/MPI_Allreduce})"
    assert [str(side.growth) for side in rule(models, text).in_the_end()] == ["O(log p)", "O(p)"]
    text = "{**/MPI_Reduce} <= min({**/MPI_Bcast}, {**/work})"
    assert holds_in_the_end(rule(models, text)) is False


def test_functions_count_what_they_call_where_asked(models) -> None:
    own, whole = (
        rule(models, "{main/solve} <= 3 s", inclusive=inclusive) for inclusive in (False, True)
    )
    assert holds_in_the_end(own) is True
    assert whole.rows["main/solve"].tolist() == [4, 5, 6]
    assert holds_in_the_end(whole) is False
    # A call path that is named twice, directly and below its caller, is added once.
    twice = rule(models, "{main/solve/**} <= 3 s", inclusive=True)
    assert len(set(twice.rows["main/solve/**"].tolist())) == len(twice.rows["main/solve/**"])


def test_call_paths_without_a_model_leave_a_rule_open() -> None:
    gone = np.where(POINTS > 8, np.nan, 2.0)
    models = models_of({**LAWS, "main/gone": gone})
    found = rule(models, "{**/gone} <= {**/work}")
    assert found.modelled.tolist() == [False, True]
    assert found.in_the_end() is None
    assert found.at(np.array([128.0])).verdict is Verdict.UNSURE
    assert found.crossing().likely is None


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("p <= 4", ComparisonError, "no call path is part of the rule"),
        ("{**/MPI_Bcast} <= 4", ComparisonError, "s against a plain number"),
        ("{**/MPI_Bcats} <= {**/MPI_Reduce}", UsageError, "no call path matches"),
        ("{**/~[} <= {**/MPI_Reduce}", UsageError, "malformed"),
    ],
)
def test_rules_that_make_no_sense_are_refused(models, text, error, message) -> None:
    with pytest.raises(error, match=message):
        rule(models, text)


def growth(text: str) -> Growth:
    return parse_growth(text).growth


# Of Shudler et al. 2019: Allreduce <= Reduce + Bcast, Allgather <= Gather + Bcast.
@cells(
    ("left", "right", "warned"),
    [
        ("log p", ("log p", "log p"), False),
        ("p", ("p", "log p"), False),
        ("p^0.5", ("p^0.5 log p", "p^0.5"), False),
        ("p^0.67 log p", ("p^0.5 log p", "p^0.5"), True),
        ("p^1.25", ("p", "p^0.5"), True),
    ],
)
def test_published_guidelines_are_warned_of_as_published(
    left: str, right: tuple[str, str], warned: bool
) -> None:
    comparison = parse_comparison("whole <= first + second")
    of_name = dict(zip(("whole", "first", "second"), (left, *right), strict=True))

    def of_leaf(leaf: Leaf) -> Leading:
        return Leading(growth(of_name[leaf.text]), 1.0)

    left, right = (leading(side, of_leaf) for side in (comparison.left, comparison.right))
    assert left.exceeds(right) is warned


@cells(
    ("text", "growth_text", "coefficient"),
    [
        ("a", "p", 2.0),
        ("a + b", "p", 2.0),
        ("3 * a + c", "p", 11.0),
        ("a * b", "p log p", 8.0),
        ("a / b", "p / log p", 0.5),
        ("a - c", "p", -3.0),
        ("a - a", "p", 0.0),
        ("a - a + b", "log p", 4.0),
        ("max(b, a, c)", "p", 5.0),
        ("min(c, a, b)", "log p", 4.0),
        ("7", "1", 7.0),
        ("0 * a + b", "log p", 4.0),
    ],
)
def test_leading_terms_follow_the_arithmetic(text, growth_text, coefficient) -> None:
    known = {
        "a": Leading(growth("p"), 2.0),
        "b": Leading(growth("log p"), 4.0),
        "c": Leading(growth("p"), 5.0),
    }
    side = parse_comparison(f"{text} <= 1").left
    found = leading(side, lambda leaf: known[leaf.text])
    assert found.coefficient == coefficient
    if coefficient:
        assert found.growth == growth(growth_text)


def test_rounding_makes_no_side_larger() -> None:
    third = Leading(Growth(Fraction(0), 1), 0.1 + 0.2)
    assert not third.exceeds(Leading(Growth(Fraction(0), 1), 0.3))
    assert third.exceeds(Leading(Growth(Fraction(0), 1), 0.2999))
