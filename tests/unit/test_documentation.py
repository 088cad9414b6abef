"""Man pages, and pages of the site that are generated from the code."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter

import click
import pytest

import callpath_modeler
from build_site import BESIDE, contents, relinked
from callpath_modeler.cli.group import cpmodel
from callpath_modeler.diagnostics import KINDS
from command_tree import ROOT, command_texts
from man_pages import FOLDER, escaped, man_page, man_pages
from reference_pages import NAMES, pages

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


@pytest.mark.parametrize("name", TEXTS)
def test_a_man_page_has_every_option(name):
    page = man_page(TEXTS[name], "1.0")
    assert TEXTS[name].options
    for spelling, _ in TEXTS[name].options:
        assert f"\\fB{escaped(spelling)}\\fR" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("name", TEXTS)
def test_groff_formats_a_man_page_without_a_warning(name):
    command = ["groff", "-ww", "-man", "-Tascii", "-z"]
    page = man_page(TEXTS[name], "1.0").encode("ascii")
    done = subprocess.run(command, input=page, capture_output=True, check=True)
    assert done.stderr == b""


@pytest.mark.parametrize(
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


def test_each_public_name_is_on_one_page():
    listed = Counter(name for names in NAMES.values() for name in names)
    assert listed == Counter(callpath_modeler.__all__)


def test_each_finding_has_a_page_with_its_parts():
    made = pages()
    for code, kind in KINDS.items():
        page = made[f"reference/findings/{code}.md"]
        assert all(part in page for part in (kind.what, kind.why, kind.remedy, kind.example))


def test_the_citation_has_the_version_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8").splitlines()
    assert f"version: {project['version']}" in citation


TEXT_PAGES = [
    *(ROOT / page for page in BESIDE),
    ROOT / "SECURITY.md",
    *(ROOT / "docs").rglob("*.md"),
]


def test_each_line_of_a_page_fits_into_120_columns():
    wide = {
        f"{page.name}:{number}"
        for page in TEXT_PAGES
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1)
        if len(line) > 120
    }
    assert wide == set()


def test_each_page_outside_docs_exists():
    assert all((ROOT / page).is_file() for page in BESIDE)


@pytest.mark.parametrize(
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


PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
SHOWN = [
    (page, alternative, link)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for alternative, link in PICTURE.findall(page.read_text("utf-8"))
]


@pytest.mark.parametrize(("page", "alternative", "link"), SHOWN)
def test_a_picture_is_small_and_has_an_alternative_text(page, alternative, link):
    assert len(alternative.split()) >= 5
    assert 0 < (page.parent / link).stat().st_size <= 150_000


def test_each_picture_is_shown_and_needs_nothing_from_elsewhere():
    taken = set((ROOT / "docs" / "pictures").iterdir())
    assert taken == {(page.parent / link).resolve() for page, _, link in SHOWN}
    for picture in taken:
        assert picture.suffix == ".png" or "url(" not in re.sub(
            r"url\(#", "", picture.read_text("utf-8")
        )


ARCHITECTURE = ROOT / "docs" / "explanation" / "architecture.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def rows_of(page, heading):
    """Return the cells of the table below a heading, without its head."""
    section = page.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("row", rows_of(ARCHITECTURE, "Glossary"), ids=lambda row: row[0])
def test_a_term_of_the_glossary_has_its_name_in_its_file(row):
    _, meaning, name, path = row
    source = (ROOT / "callpath_modeler" / path.strip("`")).read_text("utf-8")
    assert re.search(rf"^(class|def) {re.escape(name.strip('`'))}\b", source, re.MULTILINE)
    assert 0 < len(meaning.split()) <= 25


TYPES = re.compile(r"^- ((?:`\w+`(?:, )?)+(?:\.\.\.)?) \(((?:`[\w./]+`(?:, )?)+)\)", re.MULTILINE)
LISTED = TYPES.findall(ARCHITECTURE.read_text("utf-8"))


def files_of(paths):
    """Return the files that an entry of the list names: a bare name lies beside the one before."""
    folder = ROOT / "callpath_modeler"
    for path in re.findall(r"`([\w./]+)`", paths):
        homes = [home / path for home in (folder, ROOT / "callpath_modeler", ROOT)]
        found = next((each for each in homes if each.exists()), None)
        assert found is not None, path
        folder = found if found.is_dir() else found.parent
        yield from sorted(found.rglob("*.py")) if found.is_dir() else [found]


def test_the_list_of_types_is_read():
    assert len(LISTED) > 40


@pytest.mark.parametrize(("names", "paths"), LISTED)
def test_each_listed_type_is_defined_in_one_of_its_files(names, paths):
    source = "\n".join(path.read_text("utf-8") for path in files_of(paths))
    for name in re.findall(r"`(\w+)`", names):
        assert re.search(rf"^(?:class |def |){name}\b", source, re.MULTILINE), name


def test_each_file_where_a_change_begins_exists():
    rows = rows_of(CONTRIBUTING, "Where a change begins")
    assert len(rows) >= 10
    for change, first in rows:
        paths = re.findall(r"`([\w./]+/[\w./]*)`", first)
        assert paths, change
        homes = [
            ROOT if path.startswith("plugins/") else ROOT / "callpath_modeler" for path in paths
        ]
        for home, path in zip(homes, paths, strict=True):
            assert (home / path).exists(), path


def test_each_folder_in_the_overview_exists():
    for folder, _ in rows_of(CONTRIBUTING, "Where things are"):
        assert (ROOT / folder.strip("`")).is_dir(), folder
