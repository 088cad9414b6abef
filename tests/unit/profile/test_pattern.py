from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.pattern import Patterns, find_one, match, matcher_of, short_name
from callpath_modeler.profile.schema import PROGRAM, Region
from cells import cells
from synthetic import call_tree, chain

TREE = call_tree(
    [
        "main",
        "main/solve",
        "main/solve/CommSBN",
        "main/solve/CommSBN/MPI_Waitall",
        "main/solve/CommMonoQ",
        "main/solve/CommMonoQ/MPI_Wait",
        "main/MPI_Waitall",
        "main/solver",
    ]
)


def found(pattern, tree=TREE):
    return [tree.path(int(row)) for row in np.flatnonzero(match(tree, pattern))]


@cells(
    ("pattern", "rows"),
    [
        ("main", [0]),
        ("main/solve", [1]),
        ("main/*", [1, 6, 7]),
        ("main/solve*", [1, 7]),
        ("main/solve?", [7]),
        ("main/**", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("**", [0, 1, 2, 3, 4, 5, 6, 7]),
        ("main/**/MPI_*", [3, 5, 6]),
        ("main/**/Comm*/**", [2, 3, 4, 5]),
        ("**/MPI_Waitall", [3, 6]),
        ("main/**/{MPI_Wait,solver}", [5, 7]),
        ("main/solve/Comm{SBN,MonoQ}", [2, 4]),
        ("main/~^solve$", [1]),
        ("main/**/~Wait", [3, 5, 6]),
        ("main->solve->CommSBN", [2]),
        ("/main/solve/", [1]),
        ("main/nothing", []),
    ],
)
def test_a_pattern_names_call_paths(pattern, rows):
    assert np.flatnonzero(match(TREE, pattern)).tolist() == rows


def test_a_pattern_that_fits_nowhere_from_the_root_is_tried_at_any_depth():
    assert found("CommSBN/MPI_Waitall") == ["main/solve/CommSBN/MPI_Waitall"]
    assert found("MPI_Wait") == ["main/solve/CommMonoQ/MPI_Wait"]


def test_a_name_at_the_root_hides_the_same_name_below():
    tree = call_tree(["f", "f/g", "g"])
    assert found("g", tree) == ["g"]


def test_an_id_names_its_call_path():
    ids = TREE.ids()
    assert found(f"@{ids[3]}") == [TREE.path(3)]
    assert found(f"@{ids[3][:5]}") == [TREE.path(3)]


def test_a_slash_in_a_name_is_written_with_a_backslash():
    regions = [Region("main"), Region("a/b"), Region("c/")]
    tree = CallTree.from_parents([ROOT, 0, 0], [0, 1, 2], regions)
    assert found("main/a\\/b", tree) == ["main/a\\/b"]
    assert found("main/c\\/", tree) == found("/main/c\\//", tree) == ["main/c\\/"]


@cells("name", ["f[0]", "a.b", "x+y", "(anonymous)", "p|q", "$!omp", "^a$"])
def test_signs_of_regular_expressions_stand_for_themselves(name):
    tree = CallTree.from_parents([ROOT, ROOT], [0, 1], [Region(name), Region("axb")])
    assert match(tree, name).tolist() == [True, False]


def test_the_artificial_root_is_no_part_of_patterns():
    tree = CallTree.from_parents([ROOT, 0], [0, 1], [Region(PROGRAM), Region("main")])
    assert match(tree, "main").tolist() == [False, True]
    assert match(tree, PROGRAM).tolist() == [True, False]


def test_a_c_plus_plus_function_goes_by_its_short_name_and_without_its_scope():
    names = ["int main(int, char**)", "void ns::solve<double>(ns::Grid const&)"]
    tree = CallTree.from_parents([ROOT, 0], [0, 1], list(map(Region, names)))
    for pattern in ("main/solve", "main/ns::solve", "main/void ns::solve<double>(ns::Grid const&)"):
        assert match(tree, pattern).tolist() == [False, True]


def test_parameters_of_a_call_can_be_named():
    tree = call_tree(["main", "main/f", "main/f"], ["", "[n=4]", "[n=8]"])
    assert match(tree, "main/f[n=8]").tolist() == [False, False, True]
    assert match(tree, "main/f*").tolist() == [False, True, True]


def test_a_chain_of_50000_calls_is_matched():
    assert match(chain(50_000), "**/f/f").sum() == 49_999


@cells("pattern", ["", "/", "//", "~(", "main/~[", "main/~*"])
def test_a_malformed_pattern_is_a_usage_error(pattern):
    with pytest.raises(UsageError):
        match(TREE, pattern)


def test_plain_names_name_what_has_them_whatever_was_asked_before():
    under_program = call_tree([PROGRAM, f"{PROGRAM}/a", f"{PROGRAM}/a/b", f"{PROGRAM}/a/b/a"])
    for tree in (call_tree(["a", "a/b", "a/b/a", "a/b/a/b", "a/c", "c"]), under_program):
        patterns, rows = Patterns.of(tree), range(len(tree))
        for length in (1, 2, 3):
            for names in product("abc", repeat=length):
                whole = [row for row in rows if tree.names(row) == names]
                ending = [row for row in rows if tree.names(row)[-length:] == names]
                assert patterns.rows("/".join(names)).tolist() == (whole or ending)
                assert patterns.rows("/".join(("**", *names))).tolist() == ending


def test_patterns_that_are_searched_together_name_what_each_names_alone():
    names = sorted({TREE.name(row) for row in range(len(TREE))})
    paths = ["/".join(path) for n in (1, 2, 3) for path in product(names, repeat=n)]
    patterns = [*paths, "**", "*/" + names[0], "/" + names[0], names[0] + "/", "no/such/path", ""]
    together = Patterns.of(TREE)
    together.prepare(patterns)
    for pattern in filter(None, patterns):
        assert together.rows(pattern).tolist() == Patterns.of(TREE).rows(pattern).tolist(), pattern


def test_find_one_returns_the_row_or_says_which_there_are():
    assert find_one(TREE, "main/solve") == 1
    with pytest.raises(UsageError, match="names 2 call paths") as caught:
        find_one(TREE, "**/MPI_Waitall")
    assert "main/solve/CommSBN/MPI_Waitall" in caught.value.hint


def test_find_one_suggests_the_nearest_function():
    with pytest.raises(UsageError) as caught:
        find_one(TREE, "main/MPI_Wiatall")
    assert "MPI_Waitall" in caught.value.hint


@cells(
    ("name", "short"),
    [
        ("MPI_Wait", "MPI_Wait"),
        ("int main(int, char**)", "main"),
        ("f()", "f"),
        ("void f(int) const", "f"),
        ("void A::f(int) &&", "A::f"),
        ("ns::A<int, B<C>>::f(B<C> const&)", "ns::A::f"),
        ("static std::vector<int> f(void (*)(int))", "f"),
        ("(anonymous namespace)::f(int)", "f"),
        ("ns::(anonymous namespace)::f(int)", "ns::f"),
        ("int StrToInt(const char*, T*) [with T = int]", "StrToInt"),
        ("f(int) [clone .constprop.0]", "f"),
        ("f[abi:cxx11](int)", "f"),
        ("f(int)#2", "f#2"),
        ("f(int)[n=4]", "f[n=4]"),
        ("f(int)[n=4]#2", "f[n=4]#2"),
        ("A::operator()(int)", "A::operator()(int)"),
        ("bool operator<(A, A)", "bool operator<(A, A)"),
        ("!$omp parallel @f.f90:23", "!$omp parallel @f.f90:23"),
        ("broken(", "broken("),
        ("()", "()"),
        ("", ""),
    ],
)
def test_short_names_leave_out_types_and_arguments(name, short):
    assert short_name(name) == short


def test_patterns_may_have_more_segments_than_a_number_has_bits():
    tree = chain(100)
    assert np.flatnonzero(match(tree, "/".join("f" * 90))).tolist() == [89]
    assert np.flatnonzero(match(tree, "**/" + "/".join("f" * 90))).tolist() == list(range(89, 100))


@cells(
    ("pattern", "meant"),
    [
        ("main/solve/ComSBN/MPI_Waitall", "main/solve/CommSBN/MPI_Waitall"),
        ("main/**/CommSBM/**", "main/**/CommSBN/**"),
        ("**/MPI_Waital", "**/MPI_Waitall"),
        ("mian->sovle", "main/solve"),
        ("main/mpi_waitall", "main/MPI_Waitall"),
        ("main/CommSBN", "**/CommSBN"),
        ("main/solve/elsewhere/MPI_Wait", "**/MPI_Wait"),
        ("nothing/like/it", ""),
        ("**/zzz*/**", ""),
        ("@1234567", ""),
        ("~main.*MPI_Waital", ""),
    ],
)
def test_what_names_nothing_may_be_near_to_what_does(pattern, meant):
    assert not match(TREE, pattern).any()
    assert Patterns.of(TREE).nearest(pattern) == meant
    assert not meant or match(TREE, meant).any()


def test_names_that_are_no_patterns_are_no_suggestions():
    tree = call_tree(["main", "main/a{b", "main/operator*", "main/f~g"])
    for pattern in ("main/a{b}", "main/operator", "main/fg"):
        assert Patterns.of(tree).nearest(pattern) in {"", "**/main"}


def test_long_alternatives_in_braces_are_refused_at_once():
    with pytest.raises(UsageError, match="alternatives of more than 20000 characters"):
        matcher_of("main" * 10_000 + "{a,b}*")
    assert matcher_of("{" + ",".join(f"kernel_{k}" for k in range(900)) + "}*")("kernel_899_x")
