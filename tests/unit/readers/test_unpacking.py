"""Limits for unpacked data."""

from __future__ import annotations

import gzip
import io

import pytest

from callpath_modeler.errors import InputError, UsageError
from callpath_modeler.support.input_limits import (
    UNPACKING_VARIABLE,
    BoundedStream,
    budget_of,
    unpacked_pieces,
)

MIB = 2**20


@pytest.fixture(autouse=True)
def unset(monkeypatch):
    monkeypatch.delenv(UNPACKING_VARIABLE, raising=False)


def packed(path, content):
    path.write_bytes(gzip.compress(content, 9))
    return path


def test_a_small_file_may_unpack_to_16_mib_or_in_memory_to_64_mib(tmp_path):
    path = packed(tmp_path / "a.gz", b"x")
    assert budget_of(path).limit == 16 * MIB
    assert budget_of(path, in_memory=True).limit == 64 * MIB


def test_the_budget_grows_with_the_file_and_ends(tmp_path):
    path = tmp_path / "a.gz"
    with path.open("wb") as file:
        file.truncate(MIB)
    assert budget_of(path).limit == 150 * MIB
    with path.open("wb") as file:
        file.truncate(2**40)
    assert budget_of(path).limit == 16 * 2**30
    assert budget_of(path, in_memory=True).limit == 192 * MIB


def test_the_user_sets_the_budget(tmp_path, monkeypatch):
    path = packed(tmp_path / "a.gz", bytes(1000))
    monkeypatch.setenv(UNPACKING_VARIABLE, "999")
    with path.open("rb") as file, pytest.raises(InputError, match="unpacks to more than"):
        list(unpacked_pieces(file, budget_of(path)))
    monkeypatch.setenv(UNPACKING_VARIABLE, "1000")
    with path.open("rb") as file:
        assert b"".join(unpacked_pieces(file, budget_of(path))) == bytes(1000)
    monkeypatch.setenv(UNPACKING_VARIABLE, "9" * 5000)
    with pytest.raises(UsageError, match="not a number of bytes"):
        budget_of(path)


def bounded(content, path, budget=None):
    return io.BufferedReader(BoundedStream(io.BytesIO(content), path, budget))


def test_text_is_read_as_it_is(tmp_path):
    content = b"a,b\r\n\n1,2\n" * 50_000
    assert bounded(content, tmp_path).read() == content


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"x" * (9 * MIB), "a line is longer than 8 MiB"), (b"\n" * (5 * MIB), "blank lines")],
)
def test_a_line_without_end_and_endless_blank_lines_are_refused(tmp_path, content, complaint):
    with pytest.raises(InputError, match=complaint):
        bounded(content, tmp_path).read()


def test_the_memory_of_what_is_unpacked_is_limited(tmp_path, monkeypatch):
    path = packed(tmp_path / "a.gz", b"x")
    budget = budget_of(path)
    budget.check_memory(256 * MIB)
    with pytest.raises(InputError, match="more than 256 MiB of memory") as caught:
        budget.check_memory(256 * MIB + 1)
    assert UNPACKING_VARIABLE in (caught.value.hint or "")
    with path.open("wb") as file:
        file.truncate(10 * MIB)
    assert budget_of(path).memory == 320 * MIB
    monkeypatch.setenv(UNPACKING_VARIABLE, str(MIB))
    assert budget_of(path).memory == 32 * MIB
