from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from callpath_modeler.errors import OutputError
from callpath_modeler.support import atomic
from callpath_modeler.support.atomic import new_directory, write_file


def listed(directory):
    return sorted(path.name for path in directory.iterdir())


def test_a_file_appears_with_its_content(tmp_path):
    write_file(tmp_path / "a.csv", b"x", overwrite=False)
    assert (tmp_path / "a.csv").read_bytes() == b"x"
    assert listed(tmp_path) == ["a.csv"]


def test_a_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_file(tmp_path / "ours", b"x", overwrite=False)
    usual, ours = ((tmp_path / name).stat().st_mode for name in ("usual", "ours"))
    assert stat.S_IMODE(ours) == stat.S_IMODE(usual)


def test_a_file_is_replaced_only_when_told(tmp_path):
    path = tmp_path / "a.csv"
    write_file(path, b"old", overwrite=False)
    with pytest.raises(OutputError, match="exists") as caught:
        write_file(path, b"new", overwrite=False)
    assert "--force" in caught.value.hint
    assert path.read_bytes() == b"old"
    write_file(path, b"new", overwrite=True)
    assert path.read_bytes() == b"new"


def test_a_directory_is_never_replaced_by_a_file(tmp_path):
    with pytest.raises(OutputError):
        write_file(tmp_path, b"x", overwrite=True)


def test_a_missing_directory_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match="No such file or directory"):
        write_file(tmp_path / "no" / "a.csv", b"x", overwrite=False)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")

    def full(self, target):  # noqa: ARG001
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match="the disk is full"):
        write_file(path, b"new", overwrite=True)
    assert path.read_bytes() == b"old"
    assert listed(tmp_path) == ["a.csv"]


def test_a_device_is_written_to_and_a_full_one_is_an_output_error():
    write_file(Path(os.devnull), b"x", overwrite=False)
    with pytest.raises(OutputError, match="the disk is full"):
        write_file(Path("/dev/full"), b"x", overwrite=False)


def fill(path, *, overwrite=False, in_the_way=False, fail=False):
    with new_directory(path, in_the_way=in_the_way, overwrite=overwrite) as folder:
        (folder / "one").write_text("new")
        if fail:
            raise KeyboardInterrupt
        (folder / "two").write_text("new")


def test_a_directory_appears_when_it_is_complete(tmp_path):
    with new_directory(tmp_path / "a", in_the_way=False, overwrite=False) as folder:
        assert not (tmp_path / "a").exists()
        (folder / "one").write_text("x")
    assert listed(tmp_path) == ["a"]


def test_a_directory_that_was_not_completed_does_not_appear(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "a", fail=True)
    assert listed(tmp_path) == []


def test_the_old_directory_stays_when_the_new_one_was_not_completed(tmp_path):
    fill(tmp_path / "a")
    (tmp_path / "a" / "old").write_text("x")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "a", overwrite=True, fail=True)
    assert listed(tmp_path / "a") == ["old", "one", "two"]
    fill(tmp_path / "a", overwrite=True)
    assert listed(tmp_path / "a") == ["one", "two"]
    assert listed(tmp_path) == ["a"]


def test_a_directory_is_not_replaced_unasked_nor_one_that_is_in_the_way(tmp_path):
    fill(tmp_path / "a")
    with pytest.raises(OutputError, match="exists"):
        fill(tmp_path / "a")
    with pytest.raises(OutputError, match="in the way"):
        fill(tmp_path / "a", overwrite=True, in_the_way=True)
    with pytest.raises(OutputError):
        fill(tmp_path / "no" / "a")


def test_a_directory_is_replaced_by_one_exchange_of_names(tmp_path, monkeypatch):
    fill(tmp_path / "a")
    made = (tmp_path / "a").stat().st_ino
    renamed = []
    monkeypatch.setattr(Path, "rename", lambda *names: renamed.append(names))
    fill(tmp_path / "a", overwrite=True)
    assert (tmp_path / "a").stat().st_ino != made
    assert not renamed
    assert listed(tmp_path) == ["a"]


def cannot(*names):  # noqa: ARG001
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def test_two_renames_replace_a_directory_where_names_cannot_be_exchanged(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_exchange", cannot)
    fill(tmp_path / "a")
    (tmp_path / "a" / "old").write_text("x")
    fill(tmp_path / "a", overwrite=True)
    assert listed(tmp_path / "a") == ["one", "two"]
    assert listed(tmp_path) == ["a"]


def test_the_old_directory_comes_back_where_the_second_rename_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "_exchange", cannot)
    fill(tmp_path / "a")
    (tmp_path / "a" / "old").write_text("x")
    rename = Path.rename

    def failing(self, target):
        if self.name == "new":
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OutputError, match="Input/output error"):
        fill(tmp_path / "a", overwrite=True)
    assert listed(tmp_path / "a") == ["old", "one", "two"]
    assert listed(tmp_path) == ["a"]


def test_an_exchange_that_fails_is_an_output_error(tmp_path, monkeypatch):
    def full(*names):  # noqa: ARG001
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    fill(tmp_path / "a")
    monkeypatch.setattr(atomic, "_exchange", full)
    with pytest.raises(OutputError, match="the disk is full"):
        fill(tmp_path / "a", overwrite=True)
    assert listed(tmp_path) == ["a"]
