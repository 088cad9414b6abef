"""Temporary files of killed processes are removed, those of living ones stay."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from callpath_modeler.support import atomic
from callpath_modeler.support.atomic import new_directory, write_file

_WRITER = """
import os, signal, sys, time
from pathlib import Path
from callpath_modeler.support.atomic import new_directory, write_file

def pieces():
    yield b"first"
    print("begun", flush=True)
    {end}

path = Path(sys.argv[1])
if sys.argv[2] == "file":
    write_file(path, pieces(), overwrite=True)
else:
    with new_directory(path, in_the_way=False, overwrite=True) as folder:
        (folder / "part").write_bytes(b"".join(pieces()))
"""
_KILLED = "os.kill(os.getpid(), signal.SIGKILL)"


def writer(path, kind, end):
    words = [sys.executable, "-c", _WRITER.format(end=end), str(path), kind]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def temporary(folder):
    return [each for each in folder.iterdir() if each.name.startswith(".")]


def write(path):
    write_file(path, b"x", overwrite=True)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_next_run_removes_what_a_killed_run_left(tmp_path, kind):
    with writer(tmp_path / "s.cpm", kind, _KILLED) as process:
        process.wait()
    (left,) = temporary(tmp_path)
    assert left.name.startswith(".s.cpm-")
    write(tmp_path / "another.csv")
    assert [each.name for each in tmp_path.iterdir()] == ["another.csv"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_the_temporary_files_of_a_living_run_stay(tmp_path, kind):
    with writer(tmp_path / "s.cpm", kind, "time.sleep(600)") as process:
        assert process.stdout.readline() == "begun\n"
        (left,) = temporary(tmp_path)
        write(tmp_path / "s.cpm") if kind == "file" else write(tmp_path / "t")
        assert temporary(tmp_path) == [left]
        process.kill()


def renamed(path, pattern, replacement):
    other = path.with_name(re.sub(pattern, replacement, path.name))
    path.rename(other)
    return other


@pytest.fixture
def left(tmp_path):
    """A temporary folder of a killed process."""
    with writer(tmp_path / "s.cpm", "folder", _KILLED) as process:
        process.wait()
    (left,) = temporary(tmp_path)
    return left


def test_a_later_process_with_the_same_number_keeps_nothing(left):
    here = renamed(left, r"-\d+-(\d+)-(\w{8})$", rf"-{os.getpid()}-1-\2")
    write(left.with_name("t"))
    assert not here.exists()


def test_files_of_another_machine_stay_for_a_day(left):
    there = renamed(left, r"-[0-9a-f]{8}-(\d+-\d+-\w{8})$", r"-00000000-\1")
    write(left.with_name("t"))
    assert there.exists()
    yesterday = time.time() - 100_000
    os.utime(there, (yesterday, yesterday))
    write(left.with_name("t"))
    assert there.exists()  # its content is newer
    for each in there.rglob("*"):
        os.utime(each, (yesterday, yesterday))
    os.utime(there, (yesterday, yesterday))
    write(left.with_name("t"))
    assert not there.exists()


def test_the_only_copy_of_a_store_stays(left):
    (left / atomic.OLD).mkdir()
    write(left.with_name("t"))
    assert left.exists()
    left.with_name("s.cpm").mkdir()
    write(left.with_name("t"))
    assert not left.exists()


def test_files_of_another_user_and_other_hidden_files_stay(left, monkeypatch):
    others = [left.with_name(name) for name in (".profile-abcdefgh", ".s.cpm-1", ".x-1-2-3")]
    for each in others:
        each.touch()
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    write(left.with_name("t"))
    assert left.exists()
    monkeypatch.undo()
    write(left.with_name("t"))
    assert not left.exists()
    assert all(each.exists() for each in others)


def test_a_name_of_any_length_and_any_bytes_is_written(tmp_path):
    for name in ("n" * 250, "\u00e4" * 120, os.fsdecode(b"\xff\xfe" * 60)):
        write(tmp_path / name)
        with new_directory(tmp_path / f"{name}d", in_the_way=False, overwrite=False):
            pass
    assert len(list(tmp_path.iterdir())) == 6


def test_a_file_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: events.append("sync") or sync(handle))
    monkeypatch.setattr(os, "replace", lambda *names: events.append("name") or replace(*names))
    write(tmp_path / "a")
    assert events == ["sync", "name", "sync"]
