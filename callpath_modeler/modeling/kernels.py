"""The door to the inner loops of models, which exist in numpy and in C.

Everything else in `callpath_modeler` calls `kernels`, which chooses once: the compiled library if
there is one for this machine, else numpy. The module `numpy_kernels` defines the results, and
`compiled.c_kernels` computes the same in C. Both are loaded by name, so that they can use the types
of the other modules, and the other modules need neither.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

_IMPLEMENTATIONS = ("compiled.c_kernels", "numpy_kernels")
"""Modules with kernels, the preferred one first."""


def kernels() -> Any:
    """Return the kernels for this machine; the first call chooses.

    They are `ReferenceKernels` or `CompiledKernels`, which have the same methods. The door does not
    name their types, because the modules of these types use the door.
    """
    return _chosen()


@cache
def _chosen() -> Any:
    for name in _IMPLEMENTATIONS:
        found = import_module(f"{__package__}.{name}").available()
        if found is not None:
            return found
    raise AssertionError("numpy is always available")


def choose_again() -> None:
    """Let the next call of `kernels` choose, because the environment has changed."""
    _chosen.cache_clear()
