from __future__ import annotations

import pytest

from callpath_modeler.errors import UsageError
from cells import cells
from cpmodel_guidelines.functions import COLLECTIVES
from cpmodel_guidelines.rules import (
    PAPERS,
    GuidelineError,
    GuidelineKind,
    GuidelineTerm,
    Size,
    of_function,
    parse,
    patterns,
)


def test_every_known_guideline_is_written_as_it_is_read():
    for guideline in patterns():
        assert parse(guideline.text, guideline.source) == guideline
        assert guideline.source in PAPERS or " " in guideline.source


def test_no_guideline_is_known_twice():
    texts = [guideline.text for guideline in patterns()]
    assert len(texts) == len({*texts}) == 25


def test_messages_have_the_sizes_that_the_emulation_needs():
    known = {guideline.short: guideline for guideline in patterns()}
    assert known["Allgather <= Gather + Bcast"].right == (
        GuidelineTerm("Gather"),
        GuidelineTerm("Bcast", Size.ALL),
    )
    assert {term.size for term in known["Bcast <= Scatter + Allgather"].right} == {Size.PART}
    assert known["Barrier <= Allreduce"].left.size is Size.LEAST


@cells("text", ["p*m", "p m", "m*p", "pm", "p * m"])
def test_a_size_may_be_written_in_several_ways(text):
    (term,) = parse(f"gather<=MPI_Reduce({text})").right
    assert term == GuidelineTerm("Reduce", Size.ALL)


@cells(
    ("text", "column", "words"),
    [
        ("", 1, "name of a function"),
        ("Gather", 7, "expected <="),
        ("Gather <= Reduce(q)", 18, "size in parentheses must be m"),
        ("Gather <= Reduce(p*m", 18, "size in parentheses must be m"),
        ("Gather <= Reduce(p)", 18, "size in parentheses must be m"),
        ("Gather <= Reduce Bcast", 18, "unexpected text after"),
        ("Gather(p*m) <= Reduce", 1, "left side"),
        ("Gather <= Gather", 17, "the same function"),
        ("Gather <= 2 Reduce", 11, "is not allowed"),
    ],
)
def test_what_is_no_guideline_is_said_with_its_place(text, column, words):
    with pytest.raises(GuidelineError, match=words) as caught:
        parse(text)
    assert caught.value.column + 1 == column


def test_rules_of_the_user_come_first_and_are_refused_with_an_example():
    first, *_ = patterns(["Bcast <= Allreduce"])
    assert (first.text, first.source) == ("Bcast <= Allreduce", "given by the user")
    with pytest.raises(UsageError, match="--rule: expected <=") as caught:
        patterns(["Bcast"])
    assert "e.g. --rule" in (caught.value.hint or "")


def test_single_functions_have_the_guidelines_that_make_sense_for_them():
    kinds = {name: {each.kind for each in of_function(name)} for name in COLLECTIVES}
    assert kinds["Barrier"] == {GuidelineKind.PROCESSES}
    assert kinds["Reduce_local"] == {GuidelineKind.MONOTONY, GuidelineKind.SPLIT}
    assert kinds["Bcast"] == {GuidelineKind.MONOTONY, GuidelineKind.SPLIT, GuidelineKind.PROCESSES}
