"""Roles of numbers in names, from the design of the experiment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callpath_modeler.readers.inference import Role, infer
from callpath_modeler.readers.tokens import NumberColumn, columns_of
from cells import cells

SCALES = [8.0, 8.0, 27.0, 27.0, 64.0, 64.0]


def roles(names, known=None, **options):
    columns = columns_of([[name, "runs"] for name in names])
    return {d.column.label: d.role for d in infer(columns, known or {}, **options)}


def only(values, label="n", known=None):
    column = columns_of([[f"{label}{value}", "runs"] for value in values])
    (decision,) = infer(column, known or {})
    return decision


@cells("label", ["n", "x", "profile", "job", "bench", "result", "summary"])
@cells("values", [range(1, 7), (3, 1, 6, 2, 5, 4), range(1001, 1007)])
def test_a_number_that_differs_in_every_run_beside_p_is_a_run_number(label, values):
    decision = only(values, label, {"p": SCALES})
    assert decision.role is Role.RUN_NUMBER
    assert decision.is_doubtful


def test_the_only_number_that_varies_is_a_parameter():
    decision = only((100, 200, 400, 800, 1600), "n", {"p": [4.0] * 5})
    assert (decision.role, decision.name) == (Role.PARAMETER, "n")


@pytest.mark.parametrize("label", ["profile", "bench", "job"])
def test_a_number_that_only_counts_the_runs_is_no_parameter(label):
    assert only(range(1, 6), label, {"p": [4.0] * 5}).role is Role.RUN_NUMBER


def test_without_p_a_bare_number_is_p_and_in_doubt():
    decision = only((8, 64, 512), "")
    assert (decision.role, decision.name, decision.is_doubtful) == (Role.PARAMETER, "p", True)


def test_values_that_recur_at_several_scales_are_a_parameter():
    assert only((10, 20, 10, 20, 10, 20), "n", {"p": SCALES}).role is Role.PARAMETER
    partial = only((10, 20, 10, 20, 10, 40), "n", {"p": SCALES})
    assert partial.role is Role.PARAMETER
    one_at_a_time = {"p": [2.0, 4.0, 8.0, 2.0, 2.0]}
    assert only((1, 1, 1, 5, 25), "n", one_at_a_time).role is Role.PARAMETER


@pytest.mark.parametrize(("label", "role"), [("bench", Role.REPETITION), ("n", Role.PARAMETER)])
def test_numbers_that_count_the_runs_of_each_scale_depend_on_their_word(label, role):
    assert only((1, 2, 1, 2, 1, 2), label, {"p": SCALES}).role is role


def test_a_total_size_follows_from_p():
    decision = only((800, 800, 2700, 2700, 6400, 6400), "n", {"p": SCALES})
    assert decision.role is Role.DEPENDENT
    assert only((8, 8, 27, 27, 64, 64), "n", {"p": SCALES}).role is Role.CONFIRMED


def test_sizes_that_differ_in_every_run_and_much_at_each_scale_are_asked_for():
    values = (100, 900, 230, 1500, 70, 3000)
    assert only(values, "n", {"p": SCALES}).role is Role.UNDECIDED
    columns = columns_of([[f"n{value}", "runs"] for value in values])
    (decision,) = infer(columns, {"p": SCALES}, required=["n"])
    assert (decision.role, decision.name) == (Role.PARAMETER, "n")


def test_long_numbers_close_together_are_identifiers():
    assert only((48295, 48301, 48311), "solver", {"p": [4.0] * 3}).role is Role.RUN_NUMBER


def test_a_size_that_some_names_lack_is_asked_for():
    columns = columns_of([["n10", "runs"], ["n20", "runs"], ["x", "runs"]])
    assert [d.role for d in infer(columns, {})] == [Role.UNDECIDED]


@given(st.permutations(range(6)), st.sampled_from([
    ("p{p}.n{n}", {"p": Role.PARAMETER, "n": Role.PARAMETER}),
    ("job{j}_p{p}.n{n}", {"job": Role.RUN_NUMBER, "p": Role.PARAMETER, "n": Role.PARAMETER}),
    ("{p}ranks-n{n}", {"ranks": Role.PARAMETER, "n": Role.PARAMETER}),
]))  # fmt: skip
def test_roles_do_not_depend_on_the_order_of_runs(order, naming):
    form, expected = naming
    points = [(p, n) for p in (8, 27, 64) for n in (10, 20)]
    names = [form.format(p=p, n=n, j=901 + k) for k, (p, n) in enumerate(points)]
    assert roles([names[k] for k in order]) == expected


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=1, max_size=8), st.data())
def test_every_column_gets_one_role(values, data):
    word = columns_of([[data.draw(st.sampled_from(["n1", "job1", "p1", "1", "abc1"])), "x"]])[0]
    column = NumberColumn(word.label, word.word, tuple(values))
    known = {"p": data.draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=len(values),
                                     max_size=len(values)))}  # fmt: skip
    assert len(infer([column], known)) == 1
