"""The search path of programs leaves the working directory out, and nothing else."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from callpath_modeler.support import program_path
from callpath_modeler.support.program_path import safe_environment, safe_variables

LIBRARY = str(Path(os.__file__).parent)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    return str(tmp_path)


def left(*path):
    return program_path.program_path(path)


def test_entries_that_python_inserts_for_the_working_directory_are_left_out(here):
    for entry in ("", ".", "sub", here, f"{here}/", f"{here}/sub/.."):
        assert left(entry, "/opt/tools", LIBRARY, "/site") == ["/opt/tools", LIBRARY, "/site"]


def test_a_link_to_the_working_directory_is_the_working_directory(here, tmp_path_factory):
    link = tmp_path_factory.mktemp("links") / "link"
    link.symlink_to(here)
    assert left(str(link), LIBRARY) == [LIBRARY]


def test_an_installation_in_the_working_directory_stays(here, monkeypatch):
    # An entry behind the standard library is one of an installation.
    assert left("", LIBRARY, here) == [LIBRARY, here]
    monkeypatch.setattr(program_path, "_OURS", here)
    assert left(here, LIBRARY) == [here, LIBRARY]
    assert left("", LIBRARY) == [here, LIBRARY]


def test_an_entry_that_the_user_names_in_full_stays(here, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{here}::sub")
    assert left(here, LIBRARY) == [here, LIBRARY]
    assert safe_variables() == {"PYTHONSAFEPATH": "1", "PYTHONPATH": here}


def test_other_processes_are_safe_within_the_block_only(here, monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.setenv("PYTHONPATH", ":/opt")
    with safe_environment():
        assert (os.environ["PYTHONSAFEPATH"], os.environ["PYTHONPATH"]) == ("1", "/opt")
    assert "PYTHONSAFEPATH" not in os.environ
    assert os.environ["PYTHONPATH"] == ":/opt"
    assert here


def test_packages_of_the_working_directory_have_no_entry_points(here, monkeypatch):
    info = Path(here, "beside-1.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: beside\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[callpath_modeler.readers]\nbeside = x:Y\n")
    ours = {each.name for each in program_path.installed_entry_points("callpath_modeler.readers")}
    assert "scorep" in ours
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    found = {each.name for each in program_path.installed_entry_points("callpath_modeler.readers")}
    assert found == ours


PACKAGES = {
    "one-1.dist-info": "[callpath_modeler.readers]\n# a comment\na = pkg.mod : Reader [extra]\n",
    "Two_Words-2.0.egg-info": "[console_scripts]\nb = x:y\n\n[callpath_modeler.readers]\nc=z:W\n",
}


def test_entry_points_are_those_that_python_finds(tmp_path, monkeypatch):
    for folder, text in PACKAGES.items():
        Path(tmp_path, "later", folder).mkdir(parents=True)
        Path(tmp_path, "later", folder, "entry_points.txt").write_text(
            "[callpath_modeler.readers]\nd = e:F\n"
        )
        Path(tmp_path, "first", folder).mkdir(parents=True)
        Path(tmp_path, "first", folder, "entry_points.txt").write_text(text)
        name, _, version = folder.rpartition(".")[0].partition("-")
        metadata = "METADATA" if "dist" in folder else "PKG-INFO"
        Path(tmp_path, "first", folder, metadata).write_text(f"Name: {name}\nVersion: {version}\n")
    path = [str(tmp_path / "first"), str(tmp_path / "later")]
    monkeypatch.setattr(sys, "path", [*path, *sys.path])
    group = "callpath_modeler.readers"
    expected = {(e.name, e.value, e.dist.name, e.dist.version) for e in entry_points(group=group)}
    found = program_path.installed_entry_points(group)
    assert {(e.name, e.value, e.package, e.version) for e in found} == expected
    assert {"a", "c"} <= {e.name for e in found}
