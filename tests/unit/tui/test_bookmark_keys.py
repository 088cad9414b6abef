"""Bookmarks in the browser."""

from __future__ import annotations

from dataclasses import replace

import pytest
from driver import GIVEN, drive
from test_session import text

from callpath_modeler.profile.bookmarks import NAME, Bookmark, BookmarkFile
from callpath_modeler.profile.tree_views import ViewKind


@pytest.fixture
def file(tmp_path):
    return BookmarkFile.of([tmp_path])


@pytest.fixture
def given(file):
    return replace(GIVEN, bookmarks=file)


def test_a_call_path_is_bookmarked_with_a_note_and_found_from_the_list(given, file):
    async def steps(screen):
        await screen.press("slash", *"MPI_Wait", "enter", "escape")
        await screen.press("B", *"ask Jane", "enter")
        screen.says("bookmark kept in ")
        assert [mark.note for mark in file.read()] == ["ask Jane"]
        screen.says("note: ask Jane")
        place = text(screen.session)[screen.session.cursor]
        await screen.press("home", "B", "enter")
        assert len(file.read()) == 2
        await screen.press("end")
        assert sum(line.startswith("*") for line in screen.lines) == 2
        await screen.press("2", "apostrophe")
        assert not any(line.startswith("*") for line in screen.lines)
        screen.says("MPI_Wait")
        screen.says("ask Jane")
        screen.says(file.read()[0].id)
        await screen.press("enter")
        assert screen.session.kind is ViewKind.TOP_DOWN
        assert text(screen.session)[screen.session.cursor] == place

    drive(steps, given=given, size=(140, 24))


def test_a_note_is_changed_and_a_bookmark_removed(given, file):
    async def steps(screen):
        await screen.press("B", *"one", "enter")
        await screen.press("B", "end", *" two", "enter")
        (mark,) = file.read()
        assert mark.note == "one two"
        await screen.press("B", "escape")
        assert file.read() == [mark]
        await screen.press("apostrophe", "x")
        assert file.read() == []
        screen.says("no bookmarks: press B")
        await screen.press("x", "enter", "q")
        screen.says("[1 top-down]")
        assert not any("note: " in line for line in screen.lines)

    drive(steps, given=given)


def test_bookmarks_are_there_again_and_those_of_other_programs_stay(given, file):
    file.write([Bookmark("main/grows", "again\x1b[1m"), Bookmark("other/\x1b[31mpath", "x")])

    async def steps(screen):
        screen.says("note: again")
        await screen.press("apostrophe", "down")
        screen.says("not in this experiment")
        await screen.press("enter", "q")
        await screen.press("home", "B", "enter")
        assert [mark.callpath for mark in file.read()][:2] == ["main/grows", "other/\x1b[31mpath"]

    drive(steps, given=given)


def test_a_file_of_something_else_is_told_and_stays(given, tmp_path):
    (tmp_path / NAME).write_text("schema = 'x'")

    async def steps(screen):
        screen.says(f"{NAME}:1: ")
        await screen.press("B", "a", "enter")
        screen.says(f"{NAME}:1: ")
        await screen.press("j", "apostrophe")
        screen.says(f"{NAME}:1: ")
        screen.says("[1 top-down]")
        assert (tmp_path / NAME).read_text() == "schema = 'x'"

    drive(steps, given=given, size=(200, 24))


def test_lines_of_several_call_paths_have_no_bookmark(given):
    async def steps(screen):
        await screen.press("end", "B")
        screen.says("a bookmark needs one call path of the top-down view")
        await screen.press("3", "B")
        screen.says("a bookmark needs one call path of the top-down view")
        assert not screen.app.query_one("#prompt").display

    drive(steps, given=given)
