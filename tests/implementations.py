"""The equations in place of the engine in C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from types import SimpleNamespace
from unittest.mock import patch

from callpath_modeler.modeling.compiled import c_kernels
from oracle import kernels as oracle

CALLERS = (
    *("distributions", "model_columns", "sums", "mixture.candidates"),
    *("mixture.posterior", "mixture.residuals", "mixture.row_models", "mixture.scaled_rows"),
)
"""Modules that call kernels."""


@contextmanager
def in_numpy(*names: str) -> Iterator[None]:
    """Use the equations of these names inside of the context; without names all of them."""
    some = {name: getattr(oracle, name) for name in names}
    mixed = SimpleNamespace(**{**vars(c_kernels), **some}) if names else oracle
    with ExitStack() as stack:
        for caller in CALLERS:
            module = import_module(f"callpath_modeler.modeling.{caller}")
            stack.enter_context(patch.object(module, "kernels", lambda: mixed))
        yield
