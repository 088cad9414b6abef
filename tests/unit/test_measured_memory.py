"""The memory of a child in benchmarks does not include that of the parent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

MB = 10**6


@pytest.fixture
def measure(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "benchmarks"))
    import measure

    monkeypatch.setattr(measure, "WORK", tmp_path)
    return measure


def taking(size):
    return [
        sys.executable,
        "-I",
        "-c",
        f"x = bytearray({size}); x[::4096] = x[::4096]; print({{}})",
    ]


def test_the_memory_of_a_child_leaves_out_that_of_a_larger_parent(measure):
    held = bytearray(300 * MB)
    held[::4096] = b"x" * len(held[::4096])
    small = measure.run(taking(0)).resident
    large = measure.run(taking(100 * MB)).resident
    assert len(held) == 300 * MB
    assert small < 100 * MB
    assert 90 * MB < large - small < 150 * MB


def test_a_child_that_fails_is_an_error_with_what_it_said(measure):
    with pytest.raises(measure.TaskError, match="it broke"):
        measure.run([sys.executable, "-c", "raise SystemExit('it broke')"])
    with pytest.raises(measure.TaskError, match="No such file"):
        measure.run(["/nowhere/to/be/found", "x"])
