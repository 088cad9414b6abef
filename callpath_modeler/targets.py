"""Targets: the values of parameters that models are asked about, from wherever they come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError

LIMITS = (1e-30, 1e30)
"""Bounds of a finite target: powers of it are to remain numbers."""

_EXAMPLES = "e.g. 4096, 1e6 or inf"


def target_of(value: object, text: str | None = None, what: str = "target") -> float:
    """Return a target as a number, if models can be asked about it.

    Parameters
    ----------
    value : above zero, or infinite
    text : how it was written
    what : the name of it, for people

    Raises
    ------
    UsageError
        If it is no number, or is not above zero, or is out of bounds.
    """
    said = f"{what} {text or repr(value)}"
    number = _numbers(value, said)
    if number.ndim:
        raise UsageError(f"{said} is not one number", hint=_EXAMPLES)
    return _checked(float(number), said, text)


def targets_of(values: object) -> FloatArray:
    """Return one target or several, [targets], as `target_of` does each."""
    numbers = np.atleast_1d(_numbers(values, f"target {values!r}"))
    if numbers.ndim > 1:
        raise UsageError("targets are not one list of numbers", hint="e.g. [4096, 8192]")
    if not len(numbers):
        raise UsageError("there is no target", hint=_EXAMPLES)
    return np.array([_checked(each, f"target {each:g}") for each in numbers.tolist()])


def settings_of(values: Mapping[str, object], what: str = "target") -> dict[str, float]:
    """Return values of parameters by name, each as `target_of` does."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{what} {values!r} names no parameters", hint="e.g. {'n': 1000}")
    return {name: target_of(value, what=f"{what} {name} =") for name, value in values.items()}


def _numbers(values: object, said: str) -> FloatArray:
    try:
        found = np.asarray(values)
    except ValueError:
        # Lists of different lengths.
        found = np.array("")
    # Texts could be read, and Nones be taken for NaN; neither is what a caller means.
    if found.dtype.kind not in "iuf" and found.size:
        raise UsageError(f"{said} is not a number", hint=_EXAMPLES)
    return found.astype(np.float64)


def _checked(value: float, said: str, text: str | None = None) -> float:
    if not value > 0:
        raise UsageError(f"{said} is not positive", hint=_EXAMPLES)
    # A number that is too large to be one was not meant to be infinite.
    is_meant = np.isinf(value) and (text is None or "inf" in text.lower())
    if not (LIMITS[0] <= value <= LIMITS[1] or is_meant):
        raise UsageError(f"{said} is out of bounds", hint="inf ranks by growth alone")
    return value
