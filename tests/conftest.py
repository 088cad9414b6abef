from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from callpath_modeler import config

ROOT = Path(__file__).resolve().parents[1]

# In CI, property tests draw the same examples in each run, so that only a change can break them.
# Elsewhere they draw new ones. The time of an example depends on the machine.
settings.register_profile("ci", derandomize=True, database=None, deadline=None)
settings.register_profile("dev", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session", autouse=True)
def unconfigured(tmp_path_factory) -> Iterator[None]:
    """Hide the configuration of the user who runs the tests."""
    nowhere = tmp_path_factory.getbasetemp() / "nowhere"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(nowhere))
        patch.setattr(config, "SITE", nowhere / "config.toml")
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of profiles of other projects, which are not part of the repository."""
    data = ROOT.parent / "shared" / "data"
    if not data.is_dir():
        pytest.skip("needs the measured profiles in ../shared/data")
    return data


@pytest.fixture(scope="session")
def samples() -> Path:
    """Return the folder of sample profiles in the repository."""
    return ROOT / "sample_profiles"
