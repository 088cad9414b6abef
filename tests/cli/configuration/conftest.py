"""A series of runs, and the configuration in a directory above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from configured import write


@pytest.fixture
def runs(series, tmp_path) -> Path:
    """A small series, in a directory below the configuration."""
    assert series().parent == tmp_path
    return tmp_path / "series"


@pytest.fixture
def ours(tmp_path):
    """Write the `cpmodel.toml` above the series."""
    return lambda text: write(tmp_path / "cpmodel.toml", text)
