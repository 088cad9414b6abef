"""The recipes of the how-to page on continuous integration."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from callpath_modeler.analysis.expectations.clauses import read
from recipes import blocks, furnish, shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "continuous-integration.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "expectation-files.md").read_text(encoding="utf-8")


@pytest.fixture
def workplace(tmp_path, samples):
    return furnish(tmp_path, samples / "lulesh")


def test_the_shell_recipes_begin_keep_and_break(workplace):
    begin, script = blocks(PAGE, "sh")
    assert shell(begin, workplace).returncode == 0
    kept = shell(script, workplace)
    assert (kept.returncode, kept.stdout.splitlines()[-1]) == (0, "scales as expected")
    assert (workplace / "scaling.xml").read_text().startswith("<?xml")
    (workplace / "scaling.xml").unlink()
    with (workplace / "expectations.toml").open("a") as file:
        file.write("[[expect]]\nname = 'too much'\nvalue = '<= 1 s'\n")
    broken = shell(script, workplace)
    assert (broken.returncode, broken.stdout.splitlines()[-1]) == (1, "does not scale as expected")
    assert 'failures="1"' in (workplace / "scaling.xml").read_text()


def test_the_pytest_recipe_passes_and_fails(workplace):
    [recipe] = [block for block in blocks(PAGE, "python") if "def test_" in block]
    (workplace / "test_scaling.py").write_text(recipe)
    run = f"{sys.executable} -m pytest -q -p no:cacheprovider test_scaling.py"
    (workplace / "expectations.toml").write_text(
        "schema = 1\ntarget = { p = 125 }\n[[expect]]\nvalue = '<= 1 h'\n"
    )
    assert shell(run, workplace).returncode == 0
    (workplace / "expectations.toml").write_text(
        "schema = 1\ntarget = { p = 125 }\n[[expect]]\nname = 'fast'\nvalue = '<= 1 s'\n"
    )
    failed = shell(run, workplace)
    assert failed.returncode == 1
    assert "expectations.toml:3: fast: " in failed.stdout


@pytest.mark.parametrize("page", [PAGE, REFERENCE], ids=["how-to", "reference"])
def test_expectation_files_of_the_pages_are_understood(tmp_path, page):
    found = blocks(page, "toml")
    assert found
    for k, text in enumerate(found):
        path = tmp_path / f"{k}.toml"
        path.write_text(text)
        assert read(path).expectations


def test_the_reference_names_every_key():
    from callpath_modeler.analysis.expectations.expectation import Document, ExpectEntry, RuleEntry

    for table in (Document, ExpectEntry, RuleEntry):
        for key in table.__struct_fields__:
            assert f"`{key}`" in REFERENCE or f"[{key}]" in REFERENCE, key
