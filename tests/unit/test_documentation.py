"""Man pages, and pages of the site that are generated from the code."""

from __future__ import annotations

import subprocess
import sys

import click

from build_site import contents, relinked
from callpath_modeler.cli.group import cpmodel
from cells import cells
from command_tree import ROOT, command_texts
from man_pages import FOLDER, escaped, man_page, man_pages

TEXTS = {text.name: text for text in command_texts()}


def test_each_command_of_the_help_has_a_text():
    names = cpmodel.list_commands(click.Context(cpmodel))
    assert {"cpmodel", *(f"cpmodel-{name}" for name in names)} <= TEXTS.keys()
    assert "cpmodel-trace-spec" in TEXTS


def test_the_stored_man_pages_are_those_of_the_commands():
    stored = {path.name: path.read_text("ascii") for path in FOLDER.iterdir()}
    assert stored == man_pages(), "run `make man`"


def test_texts_of_commands_need_no_numpy():
    """A tool that builds or completes commands need not have the libraries of models."""
    hidden = ("numpy", "scipy", "pandas", "networkx", "textual", "otf2", "pycubexr", "loky")
    code = f"""
import sys
sys.modules.update(dict.fromkeys({hidden!r}))
sys.path.append({str(ROOT / "docs" / "scripts")!r})
from command_tree import command_texts
print(len(command_texts()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == f"{len(TEXTS)}\n", done.stderr


@cells(
    ("text", "source"),
    [
        ("--top", "\\-\\-top"),
        (".hidden", "\\&.hidden"),
        ("'p>=64'", "\\(aqp>=64\\(aq"),
        ("C:\\runs", "C:\\eruns"),
        ("p^½", "p\\(ha\\[u00BD]"),
    ],
)
def test_signs_of_roff_are_escaped(text, source):
    assert escaped(text) == source


def test_a_paragraph_of_commands_keeps_its_lines():
    shown = man_page(TEXTS["cpmodel-completion"], "1.0").split(".nf\n")[1].split("\n.fi")[0]
    assert len(shown.split("\n")) == 3


@cells(
    ("page", "link", "relative"),
    [
        ("docs/how-to/compare.md", "../reference/output.md#trust", "../reference/output.md#trust"),
        ("docs/how-to/compare.md", "../../README.md", "../index.md"),
        ("CHANGELOG.md", "docs/how-to/tau.md", "how-to/tau.md"),
        ("benchmarks/RESULTS.md", "../docs/index.md", "../index.md"),
        ("docs/index.md", "reference/findings.md#cpm115", "reference/findings/CPM115.md"),
        ("docs/index.md", "https://www.example.org/a.md", "https://www.example.org/a.md"),
    ],
)
def test_links_hold_on_the_site(page, link, relative):
    assert relinked(f"[text]({link})", page) == f"[text]({relative})"


def test_pages_that_the_index_does_not_link_come_last():
    tree = contents("[B](how-to/b.md)", ["how-to/a.md", "how-to/b.md"])
    assert "\nhow-to/b\nhow-to/a\n" in tree
