"""A series of runs, and the configuration in a directory above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from configured import trust, write


@pytest.fixture
def runs(series, tmp_path) -> Path:
    """A small series, in a directory below the configuration."""
    assert series().parent == tmp_path
    return tmp_path / "series"


@pytest.fixture
def trusted(tmp_path, monkeypatch) -> Path:
    """A directory that the user trusts, and nothing else in the file of the user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "me"))
    trust(tmp_path)
    return tmp_path


@pytest.fixture
def ours(trusted):
    """Write the `cpmodel.toml` above the series, in a directory that the user trusts."""
    return lambda text: write(trusted / "cpmodel.toml", text)


@pytest.fixture
def mine(trusted) -> Path:
    """The file of the user, which says what is trusted."""
    return trusted / "me" / "cpmodel" / "config.toml"
