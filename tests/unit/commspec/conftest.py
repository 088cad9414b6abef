from __future__ import annotations

import pytest

from communication import HALVES, everything, recorded, traced


@pytest.fixture(scope="session")
def all_kinds(tmp_path_factory):
    """The trace of a program with all kinds of operations."""
    return traced(tmp_path_factory.mktemp("kinds") / "trace", 4, everything, HALVES)


@pytest.fixture
def recording(tmp_path):
    """Record the operations of a program on a number of ranks."""

    def recording(ranks, program, communicators=None):
        return recorded(traced(tmp_path / "trace", ranks, program, communicators))

    return recording
