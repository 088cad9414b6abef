from __future__ import annotations

import os
from pathlib import Path

import pytest

from callpath_modeler.errors import InputError, PluginError, UsageError
from callpath_modeler.readers import registry as home
from callpath_modeler.readers.base import API_VERSION, Match, ProfileReader
from callpath_modeler.readers.registry import Registry
from callpath_modeler.support.program_path import EntryPoint
from cells import cells
from synthetic import FakeReader, registry


class OfAnotherVersion(FakeReader):
    api_version = API_VERSION + 1


class Surer(FakeReader):
    def match(self, path):
        return Match.CONTENT if super().match(path) else Match.NO


def offer(monkeypatch, **readers):
    entries = {name: EntryPoint(name, f"{__name__}:{value}", "") for name, value in readers.items()}
    monkeypatch.setattr(home, "installed", lambda: entries)


def test_the_reader_of_score_p_is_installed():
    reader: ProfileReader = home.load("scorep")
    assert ".cubex" in reader.suffixes


def test_an_unknown_reader_is_a_usage_error_that_lists_the_known():
    with pytest.raises(UsageError) as caught:
        home.load("nope")
    assert "scorep" in caught.value.hint


def test_a_reader_that_does_not_load_is_a_plugin_error(monkeypatch):
    offer(monkeypatch, broken="Missing")
    with pytest.raises(PluginError, match="does not load") as caught:
        home.load("broken")
    assert caught.value.exit_code == 5


def test_a_reader_of_another_contract_is_a_plugin_error(monkeypatch):
    offer(monkeypatch, old="OfAnotherVersion")
    with pytest.raises(PluginError, match="plugin API"):
        home.load("old")


def test_a_broken_reader_keeps_nobody_else_from_reading(monkeypatch, tmp_path):
    offer(monkeypatch, broken="Missing", fake="FakeReader")
    known = Registry.of_installed()
    assert [reader.name for reader in known.readers] == ["fake"]
    (tmp_path / "a.unknown").write_text("x")
    with pytest.raises(InputError) as caught:
        known.find(tmp_path / "a.unknown")
    assert "broken" in caught.value.hint
    with pytest.raises(PluginError):
        Registry.of_installed("broken")


def test_the_surest_reader_is_taken(tmp_path):
    (tmp_path / "a.fake").write_text("x")
    by_name, by_content = FakeReader("first"), Surer("second")
    assert registry(by_name, by_content).find(tmp_path / "a.fake") is by_content


@cells(
    ("make", "words"),
    [
        (Path, "no such file"),
        (lambda path: path.write_bytes(b""), "empty file"),
        (lambda path: path.write_text("hello"), "not a profile"),
        (os.mkfifo, "neither a file nor a directory"),
        (os.mkdir, "not a profile"),
        (lambda path: path.symlink_to(path.parent / "nowhere"), "no such file"),
    ],
)
def test_what_no_reader_knows_is_an_input_error_that_says_what_it_is(tmp_path, make, words):
    path = tmp_path / "a.other"
    make(path)
    with pytest.raises(InputError, match=words) as caught:
        registry(FakeReader()).find(path)
    assert caught.value.hint


def test_what_may_not_be_read_is_said(tmp_path, monkeypatch):
    (tmp_path / "a.other").write_text("x")
    # Root may read everything, so the test simulates the answer of the system.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="no permission to read"):
        registry(FakeReader()).find(tmp_path / "a.other")


def test_a_named_pipe_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "a.fake")
    assert registry(FakeReader()).match(tmp_path / "a.fake") is None
