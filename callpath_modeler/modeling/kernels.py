"""The door to the engine of models, which is in C.

The engine is imported when it is used. So its functions can take the types of the modules that call
them.

See docs/explanation/architecture.md, 'The engine in C'.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


@cache
def kernels() -> Any:
    """Return the module of the engine, which has no type here, because it uses this module."""
    return import_module(f"{__package__}.compiled.c_kernels")
