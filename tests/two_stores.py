"""Comparison of two stored experiments."""

from __future__ import annotations


def check_same_stores(one, two):
    """Check that two stores have the same files with the same bytes."""
    files = sorted(file.relative_to(one) for file in one.rglob("*") if file.is_file())
    assert len(files) > 2
    assert files == sorted(file.relative_to(two) for file in two.rglob("*") if file.is_file())
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file
