"""Selection of the implementation of the inner loops of models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from callpath_modeler.modeling import kernels as door
from callpath_modeler.modeling.compiled.c_kernels import CompiledKernels
from callpath_modeler.modeling.numpy_kernels import ReferenceKernels

COMPILED = isinstance(door.kernels(), CompiledKernels)
"""Whether the compiled library is installed and used."""

needs_library = pytest.mark.skipif(not COMPILED, reason="the compiled library is not installed")


@contextmanager
def in_numpy(*names: str) -> Iterator[None]:
    """Use the kernels of these names in numpy inside of the context; without names all of them."""
    reference = ReferenceKernels()
    some = {name: staticmethod(getattr(reference, name)) for name in names}
    mixed = type("Mixed", (type(door.kernels()),), some)() if names else reference
    with patch.object(door, "_chosen", lambda: mixed):
        yield
