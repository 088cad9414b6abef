from __future__ import annotations

from collections.abc import Iterator

import pytest

from callpath_modeler.modeling.compiled.c_kernels import CompiledKernels
from callpath_modeler.modeling.kernels import kernels
from implementations import in_numpy


@pytest.fixture(params=["in C", "in numpy"])
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run a test with the C library and without it."""
    if request.param == "in numpy":
        with in_numpy():
            yield
        return
    if not isinstance(kernels(), CompiledKernels):
        pytest.skip("the compiled library is not installed")
    yield
