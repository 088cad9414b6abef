from __future__ import annotations

import os

import pytest

from callpath_modeler.modeling.compiled import library


@pytest.fixture(scope="module", params=["in C", "in numpy"], autouse=True)
def way(request):
    """Run each test with the C library and without it."""
    if request.param == "in C":
        if not library.compiled():
            pytest.skip("the compiled library is not installed")
        yield
        return
    before = os.environ.get(library.VARIABLE)
    os.environ[library.VARIABLE] = "0"
    library.reload()
    yield
    if before is None:
        del os.environ[library.VARIABLE]
    else:
        os.environ[library.VARIABLE] = before
    library.reload()
