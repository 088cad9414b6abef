"""`cpmodel explain`: the meaning of a finding."""

from __future__ import annotations

import pytest

from callpath_modeler.diagnostics import KINDS


@pytest.mark.parametrize("code", ["CPM115", "cpm115"])
def test_a_code_is_explained_whatever_its_case(run, code):
    told = run("explain", code)
    assert told.status == 0
    assert told.err == ""
    assert told.out.startswith("CPM115  ")
    assert "Why it matters: " in told.out
    assert "`--locations mean`" in told.out


def test_without_a_code_all_findings_are_listed(run):
    told = run("explain")
    assert told.status == 0
    assert [line[:6] for line in told.out.splitlines()] == list(KINDS)


def test_quiet_still_prints_the_explanation(run):
    assert run("-q", "explain", "CPM115").out == run("explain", "CPM115").out


def test_an_unknown_code_is_refused_with_the_nearest_one(run):
    run("explain", "CPM1155").fails(2, "no finding 'CPM1155'", "did you mean CPM1")
    run("explain", "nonsense").fails(2, "no finding 'nonsense'", "lists all findings")
