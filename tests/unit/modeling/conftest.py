from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from implementations import in_numpy


@pytest.fixture(params=["in C", "in numpy"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test with the engine, and with the equations that it is compared with."""
    with in_numpy() if request.param == "in numpy" else nullcontext():
        yield
