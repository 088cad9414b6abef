"""Both implementations of kernels have the same methods, with the same parameters."""

from __future__ import annotations

import inspect

from callpath_modeler.modeling.compiled.c_kernels import CompiledKernels
from callpath_modeler.modeling.numpy_kernels import ReferenceKernels
from cells import cells

NAMES = sorted(
    name for name in {*dir(CompiledKernels), *dir(ReferenceKernels)} if not name.startswith("_")
)


@cells("name", NAMES)
def test_both_implementations_have_the_same_parameters(name):
    ours, theirs = (getattr(kind(), name) for kind in (CompiledKernels, ReferenceKernels))
    assert callable(ours) is callable(theirs)
    if callable(ours):
        assert [*inspect.signature(ours).parameters] == [*inspect.signature(theirs).parameters]
