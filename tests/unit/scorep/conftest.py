from __future__ import annotations

import pytest

from cpmodel_scorep import CubexReader


@pytest.fixture
def reader():
    return CubexReader()
