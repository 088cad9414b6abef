"""The documentation site, from the pages in `docs/` and from the code.

`make docs` runs this script. It copies the pages to `build/docs-source`, adds pages generated from
the code, and builds the site in `build/docs`.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Iterable, Sequence

from command_tree import ROOT

sys.path[:0] = [str(ROOT), str(ROOT / "plugins")]

SOURCE = ROOT / "build" / "docs-source"
SITE = ROOT / "build" / "docs"
BESIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/ACCURACY.md": "explanation/accuracy-tables.md",
    "benchmarks/PROJECT.md": "explanation/project.md",
    "benchmarks/RESULTS.md": "explanation/benchmarks.md",
    "benchmarks/cluster/README.md": "explanation/simulated-cluster.md",
    "sample_profiles/README.md": "tutorial/sample-profiles.md",
    "README.md": "index.md",
}
"""Pages outside `docs/`, with their paths on the site; the README leads to the home page."""

SECTIONS = ("tutorial", "how-to", "reference", "explanation")
FOLDERS = {"reference": ("command-line", "python")}
"""Folders of a section that have their own table of contents."""
_LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?(\))")
_FINDING = re.compile(r"#(cpm\d+)$", re.IGNORECASE)


def on_the_site(path: str) -> str:
    """Return the path on the site of a file in the repository."""
    return BESIDE.get(path, path.removeprefix("docs/"))


def relinked(text: str, page: str) -> str:
    """Return a page with links that are valid on the site.

    Parameters
    ----------
    text : the page
    page : its path in the repository
    """

    def link(match: re.Match[str]) -> str:
        opening, target, anchor, closing = match.groups(default="")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        code = _FINDING.match(anchor)
        if path == "docs/reference/findings.md" and code:
            path, anchor = f"docs/reference/findings/{code[1].upper()}.md", ""
        start = posixpath.dirname(on_the_site(page)) or "."
        return f"{opening}{posixpath.relpath(on_the_site(path), start)}{anchor}{closing}"

    return _LINK.sub(link, text)


def contents(index: str, pages: Sequence[str]) -> str:
    """Return the navigation of the site, as blocks of Markdown.

    Parameters
    ----------
    index : text of `index.md`, whose links determine the order of pages in each section
    pages : all pages of the site; pages without a link in `index.md` come last
    """
    linked = [target for _, target, _, _ in _LINK.findall(index)]
    blocks = []
    for section in SECTIONS:
        own = [page for page in pages if posixpath.dirname(page) == section]
        own += [f"{section}/{name}/index.md" for name in FOLDERS.get(section, ())]
        first = [page for page in linked if page in own]
        listed = dict.fromkeys([*first, *own])
        blocks.append(_tree(section.capitalize(), listed))
    blocks.append(_tree("Project", ["changelog.md", "contributing.md"]))
    return "\n".join(blocks)


def _tree(caption: str, pages: Iterable[str]) -> str:
    head = ["```{toctree}", ":hidden:", f":caption: {caption}", ""]
    return "\n".join([*head, *(page.removesuffix(".md") for page in pages), "```", ""])


def write_source() -> None:
    """Copy the pages, and generate the pages from the code."""
    from reference_pages import pages

    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(
        ROOT / "docs", SOURCE, ignore=shutil.ignore_patterns("conf.py", "scripts", "__pycache__")
    )
    originals = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    for page in sorted(originals | (BESIDE.keys() - {"README.md"})):
        text = relinked((ROOT / page).read_text("utf-8"), page)
        if page == "docs/index.md":
            text += "\n" + contents(text, sorted(map(on_the_site, originals | BESIDE.keys())))
        (SOURCE / on_the_site(page)).write_text(text, encoding="utf-8")
    for name, text in pages().items():
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main() -> int:
    """Build the site; warnings are errors."""
    from sphinx.cmd.build import main as sphinx

    write_source()
    shutil.rmtree(SITE, ignore_errors=True)
    options = ["-q", "--fail-on-warning", "--keep-going", "-d", str(ROOT / "build" / "doctrees")]
    return sphinx([*options, "-c", str(ROOT / "docs"), str(SOURCE), str(SITE)])


if __name__ == "__main__":
    sys.exit(main())
