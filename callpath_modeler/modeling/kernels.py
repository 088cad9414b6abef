"""The door to the inner loops of models, which are in C.

The module `compiled.c_kernels` is imported when it is used. So its functions can take the types of
the modules that call them.

See docs/explanation/architecture.md, 'The engine in C'.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def kernels() -> Any:
    """Return the `CompiledKernels`; their type is not named, because its module uses this one."""
    return import_module(f"{__package__}.compiled.c_kernels").CompiledKernels()
