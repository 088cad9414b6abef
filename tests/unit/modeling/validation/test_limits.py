from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callpath_modeler.modeling import Growth, parse_growth
from callpath_modeler.modeling.expected_growth import (
    MPI_SPACE,
    DeviationLimits,
    DeviationMatch,
    ExpectedGrowth,
    default_deviation,
    search_space,
)
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from cells import cells

powers = st.fractions(min_value=-4, max_value=4, max_denominator=12)
growths = st.builds(Growth, powers, powers, powers)


def growth(text: str) -> Growth:
    return parse_growth(text).growth


# Of the tables of Shudler et al. 2019: expected, found, deviation limit, divergence, match.
@cells(
    ("expected", "found", "deviation", "divergence", "match"),
    [
        ("log p", "log p", "sqrt p", "O(1)", DeviationMatch.EXACT),
        ("p log p", "p", "sqrt p", "O(1 / log p)", DeviationMatch.APPROXIMATE),
        ("log p", "p^0.67 log p", "sqrt p", "O(p^(2/3))", DeviationMatch.NONE),
        ("log p", "p^0.5 log p", "sqrt p", "O(p^(1/2))", DeviationMatch.APPROXIMATE),
        ("log p", "p^0.5 log p", None, "O(p^(1/2))", DeviationMatch.NONE),
        ("p", "p^1.25", "sqrt p", "O(p^(1/4))", DeviationMatch.APPROXIMATE),
        ("p", "p^2.75", "sqrt p", "O(p^(7/4))", DeviationMatch.NONE),
        ("p", "p log^2 p", "sqrt p", "O(log^2 p)", DeviationMatch.APPROXIMATE),
        ("1", "p", "sqrt p", "O(p)", DeviationMatch.NONE),
        ("1", "1", None, "O(1)", DeviationMatch.EXACT),
        ("k^3 2^k", "k^4 2^k", None, "O(p)", DeviationMatch.APPROXIMATE),
        ("k^3 2^k", "k^2 2^k", None, "O(p^-1)", DeviationMatch.APPROXIMATE),
        ("p^2 log p", "p^2 log p", None, "O(1)", DeviationMatch.EXACT),
    ],
)
def test_divergence_and_match_are_those_of_the_paper(
    expected: str, found: str, deviation: str | None, divergence: str, match: DeviationMatch
) -> None:
    limit = None if deviation is None else growth(deviation)
    expectation = ExpectedGrowth.of(growth(expected), limit)
    assert str(expectation.divergence(growth(found))) == divergence
    assert expectation.match(growth(found)) is match


@cells(
    ("expected", "deviation"),
    [
        ("p", "O(p^(1/2))"),
        ("p log p", "O(p^(1/2))"),
        ("p^2 log p", "O(p)"),
        ("log p", "O(log^(1/2) p)"),
        ("log^2 p", "O(log p)"),
        ("p^3 2^p", "O(2^(p/2))"),
        ("1", "O(1)"),
        ("1/p", "O(p^(1/2))"),
        ("2^-p", "O(2^(p/2))"),
        ("1/log p", "O(log^(1/2) p)"),
    ],
)
def test_the_default_deviation_is_the_leading_factor_with_half_its_exponent(
    expected: str, deviation: str
) -> None:
    assert str(default_deviation(growth(expected))) == deviation


@settings(max_examples=60)
@given(growths, growths)
def test_a_match_is_a_divergence_within_the_deviation_on_either_side(
    expected: Growth, found: Growth
) -> None:
    expectation = ExpectedGrowth.of(expected)
    divergence = expectation.divergence(found)
    factor = max(divergence, CONSTANT_GROWTH / divergence)
    assert (expectation.match(found) >= DeviationMatch.APPROXIMATE) == (
        factor <= expectation.deviation
    )
    assert (expectation.match(found) is DeviationMatch.EXACT) == (divergence == CONSTANT_GROWTH)


def test_limits_may_be_open_on_either_side() -> None:
    at_most, at_least = DeviationLimits(None, growth("log p")), DeviationLimits(growth("p"), None)
    assert [at_most.side(growth(text)) for text in ("1/p", "log p", "log^2 p")] == [0, 0, 1]
    assert [at_least.side(growth(text)) for text in ("log p", "p", "2^p")] == [-1, 0, 0]


def test_limits_and_deviations_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no growth is above O\(p\) and below O\(1\)"):
        DeviationLimits(growth("p"), growth("1"))
    with pytest.raises(ValueError, match=r"O\(1\) or more, not O\(p\^-1\)"):
        ExpectedGrowth.of(growth("p"), growth("1/p"))


def test_the_space_of_p_has_the_seventeen_terms_of_the_paper() -> None:
    space = search_space(growth("p"))
    assert len(space) == 17
    assert space[:4] == tuple(growth(text) for text in ("1", "log p", "p^0.25", "p^0.25 log p"))
    assert space[-3:] == tuple(growth(text) for text in ("p^1.75", "p^1.75 log p", "p^2"))


def test_the_space_declared_for_mpi_has_the_twenty_six_terms_of_the_paper() -> None:
    assert len(MPI_SPACE) == 26
    assert growth("p^(2/3) log p") in MPI_SPACE
    assert MPI_SPACE[-1] == growth("p^2 log p")


def test_each_step_of_a_search_space_halves_the_exponents() -> None:
    assert [len(search_space(growth("p"), steps)) for steps in range(4)] == [5, 9, 17, 33]
    assert growth("p^(9/8) log p") in search_space(growth("p"), 3)
    with pytest.raises(ValueError, match="-1 steps of halving"):
        search_space(growth("p"), -1)


@cells(
    ("expected", "inside", "beyond"),
    [
        ("log p", "1, log^0.25 p, log^1.75 p, log^2 p", "sqrt p"),
        ("p log p", "1, log^2 p, p, p log^2 p, p^2 log^2 p", "p^2 log^3 p"),
        ("p^3 2^p", "1, p, p^2 2^p, p^4 2^p, 2^(p/4), p^4 2^(7/4 p)", "p^7 2^(2p)"),
        ("1/p", "1, p^-0.25, 1/p, p^-1 log p, p^-2", "log p"),
        ("p / log p", "1, p, p / log p", "p^2"),
    ],
)
def test_spaces_lie_between_a_constant_and_the_square_of_what_is_expected(
    expected: str, inside: str, beyond: str
) -> None:
    space = search_space(growth(expected))
    assert {growth(text) for text in inside.split(",")} <= set(space)
    assert growth(beyond) not in space
    assert growth(expected) in space
    assert list(space) == sorted(set(space))


def test_what_is_expected_to_be_constant_is_looked_for_among_what_grows() -> None:
    assert search_space(CONSTANT_GROWTH) == MPI_SPACE
