"""Explanations of findings, and the reference page with the same text."""

from __future__ import annotations

from pathlib import Path

from callpath_modeler.cli.explain import explanation, overview, reference_page
from callpath_modeler.diagnostics import KINDS
from cells import cells

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "findings.md"


def test_the_reference_page_has_the_text_of_the_program():
    made = "from callpath_modeler.cli.explain import reference_page as r"
    assert PAGE.read_text("utf-8") == reference_page(), (
        f"regenerate it: python -c '{made}; print(r(), end=\"\")' > docs/reference/findings.md"
    )


@cells("code", KINDS)
def test_an_explanation_has_all_parts_and_fits_a_terminal(code):
    lines = explanation(code)
    text = " ".join(" ".join(lines).split())
    kind = KINDS[code]
    assert lines[0] == f"{code}  {kind.what}"
    for part in (kind.why, kind.remedy, kind.example):
        assert part in text
    assert all(len(line) <= 80 for line in lines[1:])


def test_the_overview_has_a_line_per_kind():
    assert [line.partition("  ")[0] for line in overview()] == list(KINDS)
