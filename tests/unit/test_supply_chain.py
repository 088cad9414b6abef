"""What installations, tests and CI take from others: libraries, and actions of GitHub."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME = re.compile(r"[A-Za-z0-9._-]+")
OWN = ("callpath_modeler", *(path.name for path in (ROOT / "plugins").glob("cpmodel_*")))
SOURCES = [
    path
    for folder in ("callpath_modeler", *(f"plugins/{name}" for name in OWN[1:]))
    for path in (ROOT / folder).rglob("*.py")
]
OTHER_NAMES = {
    "caliperreader": "caliper-reader",
    "mpl_toolkits": "matplotlib",
    "_otf2": "otf2",
    "cloudpickle": "loky",
    "dask": "distributed",
}
"""Modules whose names differ from the library that a user installs for them."""
OF_DEVELOPERS = {"hatchling", "pytest"}
"""Libraries of the hook of the build and of the contract tests, which no command imports."""
LOCK = (ROOT / ".ci" / "requirements.txt").read_text("utf-8")


def names(requirements) -> set[str]:
    """Return the names of libraries, in small letters and with hyphens."""
    return {NAME.match(each)[0].lower().replace("_", "-") for each in requirements}


def imports(path: Path) -> set[str]:
    """Return the top packages that a file imports, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    # `_typeshed` exists for type checkers only.
    return found - set(sys.stdlib_module_names) - {"_typeshed", *OWN}


def test_each_library_that_is_imported_is_required():
    """A library that only the tests install would be missing for a user."""
    required = names(PROJECT["dependencies"])
    for part in ("parquet", "caliper", "plot", "mpi", "dask"):
        required |= names(PROJECT["optional-dependencies"][part])
    imported = {
        OTHER_NAMES.get(name, name.replace("_", "-")) for path in SOURCES for name in imports(path)
    }
    assert imported - OF_DEVELOPERS == required


def test_the_build_needs_only_what_it_imports():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]
    hook = ROOT / "callpath_modeler" / "modeling" / "compiled" / "build.py"
    assert names(build["requires"]) == imports(hook) == {"hatchling"}


def test_the_pinned_libraries_are_all_that_tests_need_and_have_hashes():
    entries = [entry for entry in re.split(r"\n(?=\S)", LOCK.strip()) if entry]
    assert all(re.match(r"[\w.-]+==\S+", entry) for entry in entries)
    assert all("--hash=sha256:" in entry for entry in entries)
    pinned = names(entry.partition("==")[0] for entry in entries)
    wanted = names(PROJECT["dependencies"])
    for part in ("dev", "docs", "release"):
        wanted |= names(PROJECT["optional-dependencies"][part])
    assert wanted <= pinned


@pytest.mark.parametrize("page", ["continuous-integration", "watch"])
def test_workflows_name_actions_by_commit_and_state_permissions(page):
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text("utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    workflows = [each for each in map(yaml.safe_load, blocks) if "permissions" in each]
    assert workflows
    assert text.count("runs-on:") == len(workflows)
    for workflow in workflows:
        assert workflow["permissions"] == {"contents": "read"}
    used = re.findall(r"uses: (\S+)@(\S+)", text)
    assert used
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for _, commit in used)
