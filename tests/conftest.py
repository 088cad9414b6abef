from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callpath_modeler import config

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session", autouse=True)
def unconfigured(tmp_path_factory) -> Iterator[None]:
    """No configuration of whoever runs the tests decides how they end."""
    nowhere = tmp_path_factory.getbasetemp() / "nowhere"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(nowhere))
        patch.setattr(config, "SITE", nowhere / "config.toml")
        yield


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
