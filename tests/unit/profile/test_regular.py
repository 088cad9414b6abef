"""Regular expressions behind ``~`` mean what they mean in Python, in a bounded number of steps."""

from __future__ import annotations

import random
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import Patterns, matcher_of
from callpath_modeler.profile.regular import Machine
from callpath_modeler.profile.schema import Region
from callpath_modeler.support.expression import ExpressionError
from cells import cells

LETTERS = "abAB_1 .-\n"
ONE = st.sampled_from([
    *("a", "b", "A", "_", "1", ".", "-", " ", r"\.", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"),
    *("[ab]", "[^a]", "[a-z1]", "[]-]", r"[\d_]", r"\x61", r"\u0062", r"\n", "}", "]"),
])  # fmt: skip
BORDER = st.sampled_from(["^", r"\A", r"\Z", r"\b", r"\B"])
TIMES = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}", "{0}", "{1,}", "{,}", "{2}?"]
)


def larger(inner):
    rows = st.lists(inner, max_size=3).map("".join)
    group = st.tuples(st.sampled_from(["(", "(?:"]), st.lists(rows, min_size=1, max_size=3)).map(
        lambda made: f"{made[0]}{'|'.join(made[1])})"
    )
    return st.one_of(group, st.tuples(group, TIMES).map("".join), rows)


EXPRESSIONS = st.recursive(
    st.one_of(ONE, BORDER, st.tuples(ONE, TIMES).map("".join)), larger, max_leaves=12
)


@given(
    st.sampled_from(["", "(?i)"]),
    EXPRESSIONS,
    st.lists(st.text(LETTERS, min_size=1, max_size=9), min_size=1, max_size=5),
)
def test_an_expression_fits_where_it_does_in_python(option, expression, names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        python = re.compile(option + expression)
    machine = Machine(option + expression)
    for name in names:
        assert machine.search(name) == (python.search(name) is not None), name


@cells(
    ("expression", "fitting", "others"),
    [
        ("^MPI_(Send|Recv)$", ["MPI_Send", "MPI_Recv"], ["MPI_Sendrecv", "xMPI_Send", "MPI_"]),
        (r"\bsolve\b", ["solve", "ns::solve<int>"], ["solver", "resolve"]),
        ("(?i)mpi", ["MPI_Send", "pmpi"], ["omp"]),
        ("(?P<kind>i?send)_", ["isend_", "send_"], ["send"]),
        (r"[^\W\d]{3}$", ["abc", "1xyz"], ["ab1", "a c"]),
        ("f$", ["f"], ["f\n"]),
        ("é+", ["créer"], ["creer"]),
        ("", ["anything"], []),
    ],
)
def test_what_an_expression_fits(expression, fitting, others):
    test = matcher_of(f"~{expression}")
    assert [name for name in (*fitting, *others) if test(name)] == fitting


@cells(
    "expression",
    [
        *("(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*)*x", "((a*)*)*b", "(a?){200}a{200}b"),
        *("a*a*a*a*b", ".*.*.*.*x", "(a|b|ab)*c", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a*)+$b"),
        r"(\w+\s?)*\.",
    ],
)
@cells("piece", ["a", "ab", "a "])
def test_an_expression_takes_no_more_steps_for_a_longer_name(expression, piece):
    machine = Machine(expression)
    steps = []
    for length in (1_000, 2_000, 10_000):
        machine.search(piece * (length // len(piece)))
        steps.append(machine.steps)
    # Nothing new is met in the longer names but their length: each state is known.
    assert steps[0] == steps[1] == steps[2] < 1_000


def test_an_expression_of_very_many_states_takes_a_step_for_each_character_at_most():
    # After 2^300 different texts it could be in a state of its own.
    machine = Machine("(a|b)*a(a|b){300}c")
    rng = random.Random(1)
    name = "".join(rng.choice("ab") for _ in range(10_000))
    assert not machine.search(name)
    assert machine.steps <= len(name)
    assert machine.search(f"{name}a{name[:300]}c")
    assert not machine.search(f"{name}b{name[:300]}c")


def test_what_a_machine_remembers_is_bounded():
    machine = Machine("x.{3}y")
    for first in range(0x4E00, 0x4E00 + 30_000, 1000):
        assert not machine.search("".join(map(chr, range(first, first + 1000))))
        # States hold what follows each character: all together what was added since it forgot.
        assert sum(map(len, machine._states.values())) <= 20_001
        assert len(machine._accepted) <= 20_001
    assert machine.search("一xabcy")


@cells(
    ("expression", "message", "column"),
    [
        ("(", "a group has no end", 2),
        ("a)", "no group begins before this end", 2),
        ("[a", "a set has no end", 1),
        ("[b-a]", "bad character range b-a", 1),
        ("*a", "nothing is repeated here", 1),
        ("a|+", "nothing is repeated here", 3),
        ("a**", "a repetition is not repeated", 3),
        ("a*+", "a repetition is not repeated", 3),
        ("^*", "a place is not repeated", 2),
        ("a{3,2}", "the lower number of times is the larger one", 2),
        ("a{99999}", "so many times are too many", 2),
        (f"a{{{'9' * 5000}}}", "so many times are too many", 2),
        (r"(a)\1", "such an escape is not read", 4),
        (r"a\q", "such an escape is not read", 2),
        ("a\\", "such an escape is not read", 2),
        ("a(?=b)", "such a group is not read", 2),
        ("a(?i)", "such a group is not read", 2),
        ("(?>a)", "such a group is not read", 1),
        ("(" * 101 + ")" * 101, "groups lie in each other more than 100 times", 101),
        ("(a{99}){99}", "with its repetitions written out, it has more than 2000 steps", 1),
        ("(){1999}" * 2, "with its repetitions written out, it has more than 2000 steps", 1),
        ("((){1999}){1999}", "with its repetitions written out, it has more than 2000 steps", 1),
        ("a" * 2000, "with its repetitions written out, it has more than 2000 steps", 1),
    ],
)
def test_what_is_not_read_is_refused_with_its_place(expression, message, column):
    with pytest.raises(ExpressionError) as caught:
        Machine(expression)
    assert (caught.value.message, caught.value.column + 1) == (message, column)


def test_the_error_of_a_pattern_says_what_is_read():
    with pytest.raises(UsageError) as caught:
        matcher_of(r"~(a)\1")
    assert caught.value.message == (
        r"pattern '~(a)\\1' is malformed: such an escape is not read, at column 4 of '(a)\\1'"
    )
    assert caught.value.hint == (
        r"behind ~: letters . [a-z] \d \w \s * + ? {2,3} ( ) | ^ $ \b, and (?i) in front"
    )


def test_patterns_take_expressions_that_python_would_never_end():
    names = ["a" * 10_000, "a" * 10_000 + "b"]
    tree = CallTree.from_parents([ROOT, 0], [0, 1], [*map(Region, names)])
    assert Patterns.of(tree).rows("**/~^(a+)+b$").tolist() == [1]
