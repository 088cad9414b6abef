"""Source files that a profile names: where they are searched, and what is never read."""

from __future__ import annotations

import os

import pytest

from callpath_modeler.errors import UsageError
from callpath_modeler.tui.services import SourceFiles, source_replacements


def written(path, text="int main()\n"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def profile(tmp_path):
    return written(tmp_path / "app.p4" / "meta.db").parent


def test_a_relative_name_is_a_copy_in_the_database(profile):
    written(profile / "src" / "main.c")
    assert SourceFiles([profile]).lines("src/main.c")[0] == "int main()"
    assert SourceFiles([profile]).lines("./src/main.c")[0] == "int main()"
    assert SourceFiles([profile / "meta.db"]).lines("src/main.c")[0] == "int main()"


def test_an_absolute_name_is_searched_in_the_copies_first(profile, tmp_path):
    there = written(tmp_path / "build" / "main.c", "new\n")
    assert SourceFiles([profile]).lines(str(there))[0] == "new"
    written(profile / "src" / str(there)[1:], "as measured\n")
    assert SourceFiles([profile]).lines(str(there))[0] == "as measured"


def test_a_replacement_of_the_user_comes_first(profile, tmp_path):
    written(profile / "src" / "build" / "app" / "main.c", "copy\n")
    written(tmp_path / "home" / "main.c", "mine\n")
    given = source_replacements([f"/build/app={tmp_path / 'home'}"])
    files = SourceFiles([profile], given)
    assert files.lines("/build/app/main.c")[0] == "mine"
    assert files.lines("/build/application/main.c") == ()
    assert SourceFiles([profile]).lines("/build/app/main.c")[0] == "copy"


@pytest.mark.parametrize(
    "name", ["../secret.c", "src/../../secret.c", "src/link.c", "src/up/secret.c"]
)
def test_a_relative_name_does_not_leave_the_database(profile, tmp_path, monkeypatch, name):
    monkeypatch.chdir(profile)
    secret = written(tmp_path / "secret.c", "secret\n")
    written(profile / "src" / "main.c")
    (profile / "src" / "link.c").symlink_to(secret)
    (profile / "src" / "up").symlink_to(tmp_path)
    assert SourceFiles([profile]).lines(name) == ()


@pytest.mark.parametrize("name", ["/build/../secret.c", "/build/link.c", "/build//../secret.c"])
def test_a_name_does_not_leave_the_directory_of_a_replacement(profile, tmp_path, name):
    secret = written(tmp_path / "secret.c", "secret\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "link.c").symlink_to(secret)
    files = SourceFiles([profile], source_replacements([f"/build={tmp_path / 'home'}"]))
    assert files.lines(name) == ()


@pytest.mark.parametrize(
    "name", ["", "a\0b", "x" * 5000, "src", "src/pipe", "src/large.c", "/proc/version"]
)
def test_what_is_no_text_file_has_no_lines(profile, name):
    written(profile / "src" / "large.c", "x\n" * 1_500_000)
    os.mkfifo(profile / "src" / "pipe")
    assert SourceFiles([profile]).lines(name) == ()


def test_control_characters_of_a_source_do_not_reach_the_terminal(profile):
    written(profile / "src" / "main.c", "\tint a;\x1b[31m\r\nb\u202e\x85c\n")
    assert SourceFiles([profile]).lines("src/main.c") == [
        "    int a;\\x1b[31m",
        "b\\u202e\\x85c",
        "",
    ]


@pytest.mark.parametrize("given", ["/build", "=x", "/build=", " = "])
def test_a_malformed_replacement_is_refused(given):
    with pytest.raises(UsageError, match=r"--source-path .* is malformed"):
        source_replacements([given])
