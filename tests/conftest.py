from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Profiles of other people and further measurements, which are not part of the repository."""
    data = ROOT.parent / "shared" / "data"
    if not data.is_dir():
        pytest.skip("needs the measured profiles in ../shared/data")
    return data


@pytest.fixture(scope="session")
def samples() -> Path:
    """The sample profiles of the repository."""
    return ROOT / "sample_profiles"
