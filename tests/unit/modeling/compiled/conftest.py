from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def way():
    """These tests select the library themselves."""
