from __future__ import annotations

import os

import pytest

from callpath_modeler.modeling.compiled import library


@pytest.fixture(scope="module", params=["in C", "in numpy"], autouse=True)
def way(request):
    """Models are made with the library and without it; what is tested holds of both."""
    if request.param == "in C":
        if not library.compiled():
            pytest.skip("there is no compiled library here")
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
