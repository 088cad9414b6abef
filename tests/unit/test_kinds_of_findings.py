"""Kinds of findings: their codes, their headlines and their order."""

from __future__ import annotations

import re

from callpath_modeler import diagnostics
from callpath_modeler.diagnostics import KINDS, Finding, by_kind, summarise


def test_codes_are_numbers_in_order():
    assert all(re.fullmatch(r"CPM[123]\d\d", code) for code in KINDS)
    assert list(KINDS) == sorted(KINDS)


def test_no_two_kinds_say_the_same():
    headlines = {kind.what for kind in KINDS.values()}
    assert len(headlines) == len(KINDS)


def test_order_of_influence_names_existing_kinds_once():
    ordered = (*diagnostics._MOST_INFLUENTIAL, *diagnostics._REQUESTED)
    assert set(ordered) <= set(KINDS)
    assert len(set(ordered)) == len(ordered)


def test_findings_that_change_the_answer_come_first():
    codes = ["CPM139", "CPM112", "CPM115", "CPM205", "CPM101"]
    found = [Finding(code, "x", "y") for code in codes]
    order = [finding.code for finding, _ in by_kind(found)]
    assert order == ["CPM101", "CPM205", "CPM115", "CPM112", "CPM139"]
    assert "(CPM205)" in summarise(found, limit=3)[1]


def test_a_message_that_ends_a_sentence_gets_no_second_full_stop():
    (line,) = summarise([Finding("CPM205", "target", "p = 8 is far.")])
    assert ".." not in line
