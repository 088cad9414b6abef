"""Modules of modelling and the pages of their method name each other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from callpath_modeler import modeling

FOLDER = Path(modeling.__file__).parent
PAGES = FOLDER.parents[1] / "docs" / "explanation"
MODULES = sorted(FOLDER.rglob("*.py"))
PAGE = re.compile(r"docs/explanation/([\w-]+\.md)(?:,\s+'([^']+)')?(?:\s+and\s+'([^']+)')?")


def named_by(module: Path) -> list[tuple[str, ...]]:
    """Return the pages that the docstring of a module names, each with its headings."""
    text = re.sub(r"\s+", " ", ast.get_docstring(ast.parse(module.read_text())) or "")
    return PAGE.findall(text)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_a_module_names_the_page_and_the_heading_of_its_method(module: Path) -> None:
    pages = named_by(module)
    assert pages
    for page, *headings in pages:
        text = (PAGES / page).read_text()
        there = re.findall(r"^#+ (.*?)(?: \{#.*)?$", text, re.MULTILINE)
        assert {heading for heading in headings if heading} <= set(there)


@pytest.mark.parametrize("page", sorted({page for each in MODULES for page, *_ in named_by(each)}))
def test_a_page_names_its_modules(page: str) -> None:
    section = (PAGES / page).read_text().split("\n## Modules\n")[1]
    listed = re.findall(r"^- `([\w/]+\.py)`:", section, re.MULTILINE)
    its = [each for each in MODULES if page in {name for name, *_ in named_by(each)}]
    assert listed == [each.relative_to(FOLDER).as_posix() for each in its]
