from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from callpath_modeler.modeling import CLASSIC_SPACE, DEFAULT_SPACE, SearchSpace, Term, default_space
from cells import cells

PUBLISHED = SearchSpace.of([Fraction(half, 2) for half in range(7)])
"""I = {0, 1/2, 1, 3/2, 2, 5/2, 3}, J = {0, 1, 2}, n = 5 (SC13)."""


def test_a_term_is_a_power_times_a_power_of_the_binary_logarithm() -> None:
    term = Term(Fraction(3, 2), 2)
    assert term(np.array([1.0, 4.0, 16.0])).tolist() == [0.0, 32.0, 1024.0]
    assert term.text() == "p^(3/2) * log2(p)^2"
    assert term.text("n", pretty=True) == "n^(3/2) log₂² n"
    assert np.isinf(term([np.inf]))[0]


def test_the_published_space_has_the_terms_of_the_paper() -> None:
    assert len(PUBLISHED.terms) == 7 * 3 - 1
    assert all(PUBLISHED.first_class)
    assert PUBLISHED.max_terms == 5


def test_the_default_space_adds_decreasing_terms_and_finer_fractions_of_second_class() -> None:
    ranks = dict(zip(DEFAULT_SPACE.terms, DEFAULT_SPACE.first_class, strict=True))
    assert set(PUBLISHED.terms) < set(ranks)
    assert ranks[Term(Fraction(-1), 0)]
    assert not ranks[Term(Fraction(1, 3), 1)]
    assert [term.growth for term in DEFAULT_SPACE.terms] == sorted(
        term.growth for term in DEFAULT_SPACE.terms
    )


def test_a_space_of_the_user_takes_numbers_and_fractions_alike() -> None:
    space = SearchSpace.of([0, 0.5, "1/3", Fraction(2, 3), -1, 1 / 3], logs=[1, 0], max_terms=2)
    assert space.exponents == tuple(Fraction(part) for part in ("0", "1/3", "1/2", "2/3"))
    assert space.decreasing == (Fraction(-1),)
    assert all(space.first_class)
    assert space.describe() == "I={0, 1/3, 1/2, 2/3} J={0, 1} n=2 decreasing={-1}"


def test_a_space_survives_json() -> None:
    assert SearchSpace.from_header(json.loads(json.dumps(DEFAULT_SPACE.to_header()))) == (
        DEFAULT_SPACE
    )
    for damage in ({}, {**DEFAULT_SPACE.to_header(), "exponents": ["1/0"]}):
        with pytest.raises(ValueError, match=r"not a search space|not an exponent"):
            SearchSpace.from_header(damage)


def test_powers_of_the_logarithm_may_be_fractions() -> None:
    space = SearchSpace.of([0, 1], logs=[0, "1/2", 1, 1.5])
    assert space.logs == (0, Fraction(1, 2), 1, Fraction(3, 2))
    assert SearchSpace.from_header(json.loads(json.dumps(space.to_header()))) == space
    term = Term(Fraction(0), Fraction(3, 2))
    assert term in space.terms
    assert term(np.array([16.0])).tolist() == [8.0]
    assert (term.text(), str(term.growth)) == ("log2(p)^(3/2)", "O(log^(3/2) p)")
    assert Term.from_header(json.loads(json.dumps(term.to_header()))) == term
    # Whole powers stay numbers in files.
    assert Term(Fraction(1), 2).to_header()["log"] == 2


@cells(
    ("exponents", "logs", "max_terms", "message"),
    [
        (["x"], [0], 1, "'x' is not an exponent"),
        ([float("nan")], [0], 1, "nan is not an exponent"),
        (["1/0"], [0], 1, "not an exponent"),
        ([1], ["x"], 1, "'x' is not a power of the logarithm"),
        ([1], [-1], 1, "powers of the logarithm must lie between 0 and"),
        ([1], [0], 0, "at least one term"),
        ([0], [0], 3, "no term besides the constant"),
        ([], [0], 3, "no term besides the constant"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(
    exponents: list[str], logs: list[int | str], max_terms: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        SearchSpace.of(exponents, logs, max_terms)


def test_fields_of_a_space_are_checked() -> None:
    with pytest.raises(ValueError, match="negative exponents"):
        SearchSpace((Fraction(-1),), (0,))
    with pytest.raises(ValueError, match="below zero"):
        SearchSpace((Fraction(1),), (0,), decreasing=(Fraction(1),))


HALVES = "0, 1/2, 1, 3/2, 2, 5/2, 3"
FINER = "1/4, 1/3, 2/3, 3/4, 5/4, 4/3, 5/3, 7/4, 9/4, 7/3, 8/3, 11/4"
FALLING = (
    "-3, -2, -5/3, -3/2, -7/5, -4/3, -13/10, -5/4, -6/5, -11/10, -1, -9/10, -4/5, -3/4, -7/10, "
    "-2/3, -3/5, -1/2, -2/5, -1/3, -3/10, -1/4, -1/5"
)
ALONE = (
    "1/5, 3/10, 2/5, 3/5, 7/10, 4/5, 9/10, 11/10, 6/5, 13/10, 7/5, 8/5, 17/10, 9/5, 19/10, "
    "4, 5, 6, 7"
)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (
            CLASSIC_SPACE,
            f"I={{{HALVES}}} J={{0, 1, 2}} n=5 decreasing={{-1, -1/2}} secondary={{{FINER}}}",
        ),
        (
            DEFAULT_SPACE,
            (
                f"I={{{HALVES}}} J={{0, 1, 2}} n=2 decreasing={{{FALLING}}} secondary={{{FINER}}} "
                f"alone={{{ALONE}}}"
            ),
        ),
        (
            default_space("mixture", several=True),
            (
                f"I={{{HALVES}, 4, 5}} J={{0, 1, 2}} n=2 "
                f"decreasing={{-1, -9/10, -3/4, -2/3, -1/2, -1/3, -1/4}} "
                f"secondary={{{FINER.replace('5/4', '4/5, 5/4')}}}"
            ),
        ),
    ],
    ids=["classic", "mixture", "several"],
)
def test_the_terms_that_are_looked_for_by_default_are_these(space, expected) -> None:
    assert space.describe() == expected
    assert space.thinned == (space is not CLASSIC_SPACE)
