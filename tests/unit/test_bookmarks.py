"""The file of bookmarks: its place, its content, and hostile content."""

from __future__ import annotations

import os

import pytest

from callpath_modeler.errors import InputError, OutputError
from callpath_modeler.profile.bookmarks import LONGEST_NOTE, NAME, Bookmark, BookmarkFile
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import PROGRAM, Region
from callpath_modeler.studies.loading import load
from synthetic import call_tree

MARKS = [Bookmark("main/solve", "ask Jane"), Bookmark('main/"a\\/b"\x7f\u202e', ""), Bookmark("f")]


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "app.p8.r1"
    folder.mkdir()
    return folder


def read_only(monkeypatch, folder):
    """Make a directory read-only, also for the root user, who may write everywhere."""
    usual = os.access

    def access(path, mode, **others):
        inside = os.fspath(path).startswith(os.fspath(folder))
        return usual(path, mode, **others) and not (mode & os.W_OK and inside)

    monkeypatch.setattr(os, "access", access)


def test_what_is_written_is_read(runs):
    file = BookmarkFile.of([runs])
    assert file.read() == []
    file.write(MARKS)
    assert BookmarkFile.of([str(runs)]).read() == MARKS
    assert [path.name for path in runs.iterdir()] == [NAME]


def test_the_file_is_in_the_directory_that_the_profiles_share(runs, tmp_path):
    profiles = [runs / "a.cubex", runs / "b.cubex"]
    for profile in profiles:
        profile.touch()
    (tmp_path / "x.cpm").mkdir()
    for sources in ([runs], profiles, [runs / "*.cubex"], [runs / "*" / "profile.cubex"]):
        assert BookmarkFile.of(sources).path == runs / NAME
    for sources in ([tmp_path / "x.cpm"], [runs, tmp_path / "app.p16.r1"], [tmp_path]):
        assert BookmarkFile.of(sources).path == tmp_path / NAME


def test_bookmarks_of_a_read_only_directory_are_kept_in_the_state_of_the_user(
    runs, state, monkeypatch
):
    BookmarkFile.of([runs]).write(MARKS[:1])
    read_only(monkeypatch, runs)
    file = BookmarkFile.of([runs])
    assert file.path.parent == state / "cpmodel" / "bookmarks"
    assert file.read() == MARKS[:1]
    again = file.write(MARKS)
    assert again.read() == BookmarkFile.of([runs]).read() == MARKS
    other = BookmarkFile.of([runs.parent / "other" / "app.p8.r1"])
    assert other.path != file.path


def test_a_note_is_one_line_without_control_characters(runs):
    file = BookmarkFile.of([runs])
    file.write([Bookmark("main", "\x1b[31mred\nnext " + "x" * 2000)])
    (mark,) = file.read()
    assert mark.note.isprintable()
    assert mark.note.startswith("[31mred next x")
    assert len(mark.note) <= LONGEST_NOTE


@pytest.mark.parametrize(
    "content",
    [
        b"schema = 2",
        b"bookmark = 3",
        b"schema = 1\n[[bookmark]]\nnote = 'x'",
        b"schema = 1\n[[bookmark]]\ncallpath = 3",
        b"schema = 1\n[[bookmark]]\ncallpath = 'f'\nrun = 'rm'",
        b"schema = 1\nbookmark = " + b"[" * 100_000,
        b"\xff\xfe\x00",
        b"schema = " + b"9" * 10_000,
        b"#" * 2_000_000,
    ],
)
def test_something_else_in_the_file_is_one_clear_error_and_stays(runs, content):
    (runs / NAME).write_bytes(content)
    with pytest.raises(InputError) as caught:
        BookmarkFile.of([runs]).read()
    assert NAME in caught.value.message
    assert caught.value.hint
    assert caught.value.message.isprintable()
    assert (runs / NAME).read_bytes() == content


def test_a_pipe_is_not_waited_for(runs):
    os.mkfifo(runs / NAME)
    with pytest.raises(InputError, match="no file of bookmarks"):
        BookmarkFile.of([runs]).read()


def test_what_cannot_be_written_is_one_clear_error(runs, monkeypatch, tmp_path):
    long = [Bookmark("/".join([f"f{k}"] * 50_000)) for k in range(9)]
    BookmarkFile.of([runs]).write(long[:1])
    with pytest.raises(OutputError, match="more than 1 MB of bookmarks"):
        BookmarkFile.of([runs]).write(long)
    assert BookmarkFile.of([runs]).read() == long[:1]
    read_only(monkeypatch, runs)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(OutputError) as caught:
        BookmarkFile.of([runs]).write(MARKS)
    assert "XDG_STATE_HOME" in caught.value.hint


def test_the_file_among_profiles_is_no_profile(tmp_path):
    BookmarkFile.of([tmp_path]).write(MARKS)
    (tmp_path / "t.csv").write_text(
        "callpath,p,time[s]\n" + "".join(f"main,{p},{p}\n" for p in (2, 4, 8))
    )
    assert len(load(sorted(tmp_path.iterdir())).tree) == 1
    assert len(load(tmp_path).tree) == 1


def trees():
    """Trees with an artificial root, slashes, equal names and names of several builds."""
    regions = [
        Region(PROGRAM),
        Region("main"),
        Region("a/b"),
        Region("f(int)", key="f"),
        Region(""),
    ]
    parents = [ROOT, 0, 1, 2, 2, 1, 1, ROOT]
    return [
        CallTree.from_parents(parents, [0, 1, 2, 3, 3, 1, 4, 1], regions),
        CallTree.from_parents([ROOT, 0], [1, 2], regions),
        call_tree(["main", "main/f", "main/f", "main/f/g", "main/g"], ["", "", "#2", "", ""]),
    ]


@pytest.mark.parametrize("tree", trees())
def test_a_bookmark_finds_its_call_path_and_has_its_id(tree):
    ids = tree.ids()
    paths = [tree.common_path(row) for row in range(len(tree))]
    for row, path in enumerate(paths):
        assert tree.rows_of(path) == [k for k, one in enumerate(paths) if one == path]
        assert row in tree.rows_of(path)
        assert ids[row].startswith(Bookmark(path).id[1:])
    for strange in ("", "/", "main/", "/main", "main/a/b", "nothing", "main//"):
        assert tree.rows_of(strange) == [k for k, one in enumerate(paths) if one == strange]
