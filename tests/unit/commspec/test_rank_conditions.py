"""Sets of ranks as conditions, and the ranks that meet the conditions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cells import cells
from cpmodel_commspec import formulas
from cpmodel_commspec.conditions import Condition, condition


def holds(formula, rank):
    python = formula.replace("&&", "and").replace("||", "or").replace("!(", "not (")
    return eval(python.replace("/", "//"), {"rank": rank}) if formula else True  # noqa: S307


@cells(
    ("ranks", "processes", "formula"),
    [
        (range(9), 9, ""),
        ([4], 9, "rank == 4"),
        (range(1, 9), 9, "rank >= 1"),
        (range(3, 7), 9, "rank >= 3 && rank <= 6"),
        ([0, 1, 2, 3, 5, 6, 7, 8], 9, "rank != 4"),
        ([0, 1, 3, 4, 6, 7], 9, "rank % 3 <= 1"),
        ([1, 4, 7, 10], 12, "rank % 3 == 1"),
        ([0, 3, 6, 9], 11, "rank % 3 == 0"),
        ([2, 5, 8], 10, "rank % 3 == 2"),
        ([5, 9], 17, "rank == 5 || rank == 9"),
        ([4, 5, 7, 8], 9, "rank % 3 >= 1 && rank / 3 >= 1"),
        ([6, 7, 10, 11], 12, "rank % 4 >= 2 && rank / 4 >= 1"),
    ],
)  # fmt: skip
def test_conditions_are_short(ranks, processes, formula):
    assert formulas.condition(condition(list(ranks), processes)) == formula


@given(st.integers(1, 64).flatmap(
    lambda p: st.tuples(st.just(p), st.sets(st.integers(0, p - 1), min_size=1))))  # fmt: skip
def test_conditions_hold_for_these_ranks_and_no_others(drawn):
    processes, ranks = drawn
    formula = formulas.condition(condition(sorted(ranks), processes))
    assert {rank for rank in range(processes) if holds(formula, rank)} == ranks


def test_ranks_without_a_pattern_are_listed():
    assert condition([0, 3, 5, 6], 11) == Condition(listed=(0, 3, 5, 6))
