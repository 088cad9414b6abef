from __future__ import annotations

import re
from pathlib import Path

import pytest

import callpath_modeler
from callpath_modeler.diagnostics import KINDS, Finding, count_by_code, summarise
from synthetic import fitted

ROOT = Path(callpath_modeler.__file__).parent.parent
SOURCES = [*ROOT.glob("callpath_modeler/**/*.py"), *ROOT.glob("plugins/**/*.py")]


def test_every_code_in_the_source_is_a_known_kind():
    used = {code for path in SOURCES for code in re.findall(r"CPM\d+", path.read_text("utf-8"))}
    assert used == set(KINDS)


def test_a_finding_is_one_line_whatever_files_are_called():
    finding = Finding("CPM101", "runs/app\nx.p8\x1b[31m", "cut\tshort")
    assert finding.subject == r"runs/app\nx.p8\x1b[31m"
    assert finding.message == r"cut\tshort"


def test_counts_are_sums_over_items_in_order_of_code():
    found = [
        Finding("CPM202", "m", "x", 7),
        Finding("CPM102", "a", "x"),
        Finding("CPM202", "m", "y"),
    ]
    assert list(count_by_code(found).items()) == [("CPM102", 1), ("CPM202", 8)]


def test_a_message_says_what_happened_why_it_matters_and_what_to_do():
    found = [Finding("CPM102", "run a", "first"), Finding("CPM102", "run b", "second")]
    (line,) = summarise(found)
    kind = KINDS["CPM102"]
    assert line == f"{kind.what}: run a: first. {kind.why} {kind.remedy} (CPM102 x2)"


@pytest.mark.parametrize("code", ["CPM101"])
def test_what_was_left_out_is_named_one_by_one(code):
    found = [Finding(code, f"run {k}", "bad") for k in range(3)]
    assert len(summarise(found)) == 3


def test_a_short_summary_says_how_much_more_there_is():
    found = [Finding(code, "x", "y") for code in list(KINDS)[:8]]
    lines = summarise(found, limit=5)
    assert len(lines) == 6
    assert lines[-1] == "3 more notes: cpmodel -v ..."
    assert summarise(found, 7, "cpmodel info runs")[-1] == "1 more note: cpmodel info runs"
    assert summarise(found, limit=8) == summarise(found)
    assert summarise([]) == []


@pytest.mark.parametrize(("alone", "said"), [(1, "1 call path, "), (2, "2 call paths, ")])
def test_call_paths_without_a_model_are_counted_in_words(alone, said):
    values = {"main": [1.0, 2.0, 4.0, 8.0, 16.0]}
    values |= {f"main/f{k}": [1.0, *[float("nan")] * 4] for k in range(alone)}
    (finding,) = [found for found in fitted(values).findings if found.code == "CPM201"]
    assert (
        finding.message
        == f"{said}{3 * alone} % of the cost of all scales, measured at too few points"
    )
