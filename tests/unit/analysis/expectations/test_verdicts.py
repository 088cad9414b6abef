"""Statuses, their order, and verdicts on single call paths."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from callpath_modeler.analysis.expectations.check_result import (
    Judgement,
    Outcome,
    Status,
    SubjectVerdicts,
    Verdict,
    is_worse,
    status_of,
)
from cells import cells

KEPT, BROKEN, UNSURE = Verdict.KEPT, Verdict.BROKEN, Verdict.UNSURE


def expectation(unsure="warn", xfail=None, at_least=1):
    return SimpleNamespace(unsure=unsure, xfail=xfail, at_least=at_least)


def judgement(verdict, *, rows=None, broken=(), unsure=()):
    size = 1 if rows is None else len(rows)
    each = SubjectVerdicts(
        None if rows is None else np.array(rows),
        np.isin(np.arange(size), broken),
        np.isin(np.arange(size), unsure),
    )
    return Judgement(None, verdict, None, size, len(broken), len(unsure), each=each)


def outcome(*judgements, status=Status.PASS, matched=1, **words):
    return Outcome(expectation(**words), None, 1, status, matched, judgements)


@cells(
    ("verdict", "words", "status"),
    [
        (KEPT, {}, Status.PASS),
        (KEPT, {"xfail": "known"}, Status.XPASS),
        (BROKEN, {}, Status.FAIL),
        (BROKEN, {"xfail": "known"}, Status.XFAIL),
        (UNSURE, {}, Status.UNSURE),
        (UNSURE, {"unsure": "fail"}, Status.UNSURE),
        (UNSURE, {"unsure": "pass"}, Status.PASS),
        (UNSURE, {"unsure": "pass", "xfail": "known"}, Status.PASS),
    ],
)
def test_a_verdict_becomes_a_status(verdict, words, status):
    assert status_of(verdict, expectation(**words)) is status


def test_statuses_are_ordered_by_urgency():
    ordered = [Status.PASS, Status.XFAIL, Status.XPASS, Status.UNSURE, Status.FAIL]
    for k, one in enumerate(ordered):
        assert [is_worse(one, other) for other in ordered] == [k > j for j in range(5)]


@cells(
    ("verdicts", "whole"),
    [
        ([KEPT, KEPT], KEPT),
        ([KEPT, UNSURE], UNSURE),
        ([UNSURE, BROKEN], BROKEN),
        ([BROKEN, KEPT], BROKEN),
        ([], KEPT),
    ],
)
def test_the_worst_criterion_decides(verdicts, whole):
    found = outcome(*map(judgement, verdicts))
    assert found.verdict is whole
    if verdicts:
        assert found.decisive is found.judgements[verdicts.index(whole)]
    else:
        assert found.decisive is None


def test_a_pattern_that_selects_too_few_call_paths_is_broken():
    assert outcome(judgement(KEPT), matched=1, at_least=2).verdict is BROKEN
    assert outcome(judgement(KEPT), matched=2, at_least=2).verdict is KEPT


@cells(
    ("status", "words", "fails"),
    [
        (Status.PASS, {}, False),
        (Status.FAIL, {}, True),
        (Status.XFAIL, {"xfail": "known"}, False),
        (Status.XPASS, {"xfail": "known"}, False),
        (Status.UNSURE, {}, False),
        (Status.UNSURE, {"unsure": "fail"}, True),
        (Status.UNSURE, {"unsure": "fail", "xfail": "known"}, False),
        (Status.PASS, {"unsure": "fail"}, False),
    ],
)
def test_only_broken_expectations_fail_and_unsure_ones_where_it_is_asked_for(status, words, fails):
    assert outcome(status=status, **words).failed is fails


def test_each_call_path_has_the_status_of_its_worst_criterion():
    first = judgement(BROKEN, rows=[4, 7, 9], broken=[1], unsure=[2])
    second = judgement(UNSURE, rows=[4, 9], unsure=[0])
    assert outcome(first, second).statuses() == {
        4: Status.UNSURE, 7: Status.FAIL, 9: Status.UNSURE
    }  # fmt: skip
    assert outcome(second, first).statuses() == outcome(first, second).statuses()


def test_a_call_path_that_is_broken_and_unsure_is_broken():
    each = SubjectVerdicts(np.array([1, 2]), np.array([True, False]), np.array([True, True]))
    assert each.verdicts() == [(1, BROKEN), (2, UNSURE)]


def test_the_whole_program_is_one_subject_without_a_row():
    assert outcome(judgement(BROKEN, broken=[0])).statuses() == {None: Status.FAIL}
    assert outcome(judgement(KEPT)).statuses() == {None: Status.PASS}
    without = Judgement(None, KEPT, None, 1, 0, 0)
    assert outcome(without).statuses() == {}


def test_a_judgement_is_predicted_of_known_models_unless_it_says_otherwise():
    plain = Judgement(None, KEPT, None, 1, 0, 0)
    assert (plain.basis, plain.unmodelled, plain.outside) == ("predicted", 0.0, False)
    assert Judgement(None, KEPT, None, 1, 0, 0, measured=True).basis == "measured"


def test_judgements_are_equal_by_their_reasons_and_not_by_single_subjects():
    assert judgement(KEPT, rows=[1]) == judgement(KEPT, rows=[2])
    assert "each" not in repr(judgement(KEPT, rows=[1]))
