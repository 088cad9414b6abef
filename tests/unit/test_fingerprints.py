from __future__ import annotations

import hashlib

import pytest

from callpath_modeler.support.atomic import Fingerprint, fingerprints


def test_a_file_has_its_size_and_hash(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    digest = hashlib.sha256(b"abc").hexdigest()
    assert fingerprints([str(path)]) == (Fingerprint(str(path), 3, digest),)


@pytest.mark.parametrize("change", ["content", "name"])
def test_the_hash_of_a_directory_tells_what_is_in_its_files_and_what_they_are_called(
    tmp_path, change
):
    folder = tmp_path / "d" / "e"
    folder.mkdir(parents=True)
    (folder / "f").write_bytes(b"abc")
    (before,) = fingerprints([str(tmp_path / "d")])
    assert before.size == 3
    if change == "content":
        (folder / "f").write_bytes(b"abd")
    else:
        (folder / "f").rename(folder / "g")
    (after,) = fingerprints([str(tmp_path / "d")])
    assert after.sha256 != before.sha256


def test_what_is_not_there_has_neither_size_nor_hash(tmp_path):
    missing = str(tmp_path / "gone")
    assert fingerprints([missing]) == (Fingerprint(missing, None, ""),)


def test_beyond_a_limit_there_are_sizes_alone(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(b"1234")
    found = fingerprints([str(tmp_path / name) for name in "abc"], most=9)
    assert [bool(one.sha256) for one in found] == [True, True, False]
    assert [one.size for one in found] == [4, 4, 4]
