from __future__ import annotations

from pathlib import Path

import pytest

from cpmodel_scorep import CubexReader

SHARED = Path(__file__).resolve().parents[3].parent / "shared"


@pytest.fixture
def reader():
    return CubexReader()


@pytest.fixture(scope="session")
def shared_data():
    """The measured profiles, which are not part of the repository."""
    if not (SHARED / "data").is_dir():
        pytest.skip("needs the measured profiles in ../shared/data")
    return SHARED / "data"
