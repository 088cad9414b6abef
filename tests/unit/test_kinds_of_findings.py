"""The text of every kind of finding: complete, short, and in sentences."""

from __future__ import annotations

import re

import pytest

from callpath_modeler import diagnostics
from callpath_modeler.diagnostics import KINDS, Finding, by_kind, summarise

each_kind = pytest.mark.parametrize("code", KINDS)


def test_codes_are_numbers_in_order():
    assert all(re.fullmatch(r"CPM[123]\d\d", code) for code in KINDS)
    assert list(KINDS) == sorted(KINDS)


def test_no_two_kinds_say_the_same():
    headlines = {kind.what for kind in KINDS.values()}
    assert len(headlines) == len(KINDS)


@each_kind
def test_a_kind_is_written_in_sentences(code):
    kind = KINDS[code]
    for text in (kind.what, kind.why, kind.remedy, kind.example):
        assert text == text.strip()
        assert text.isascii()
        assert text.isprintable()
    assert kind.what[0].isupper()
    assert not kind.what.endswith(".")
    for text in (kind.why, kind.remedy):
        assert text[0].isupper()
        assert text.endswith(".")


@each_kind
def test_no_sentence_is_longer_than_25_words(code):
    kind = KINDS[code]
    for text in (kind.what, kind.why, kind.remedy):
        assert all(len(sentence.split()) <= 25 for sentence in text.split(". "))


@each_kind
def test_a_remedy_has_no_condition_that_the_runs_may_not_know(code):
    assert not re.search(r"--where '?\w+[<>=!]", KINDS[code].remedy)


@each_kind
def test_an_example_names_its_subject(code):
    subject, _, message = KINDS[code].example.partition(": ")
    assert subject
    assert message


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
