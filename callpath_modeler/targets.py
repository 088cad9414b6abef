"""Targets: values of parameters at which models are evaluated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError

LIMITS = (1e-30, 1e30)
"""Bounds of a finite target, so that its powers do not overflow."""

_EXAMPLES = "e.g. 4096, 1e6 or inf"


def target_of(value: object, text: str | None = None, what: str = "target") -> float:
    """Return a target as a number at which models can be evaluated.

    Parameters
    ----------
    value : a number above zero, or infinity
    text : the number as the user wrote it
    what : name of the value for messages

    Raises
    ------
    UsageError
        If it is not a number, not above zero, or out of bounds.
    """
    said = f"{what} {text or repr(value)}"
    number = _numbers(value, said)
    if number.ndim:
        raise UsageError(f"{said} is not one number", hint=_EXAMPLES)
    return _checked(float(number), said, text)


def targets_of(values: object) -> FloatArray:
    """Return one target or several, [targets], each checked by `target_of`."""
    numbers = np.atleast_1d(_numbers(values, f"target {values!r}"))
    if numbers.ndim > 1:
        raise UsageError("targets must be one list of numbers", hint="e.g. [4096, 8192]")
    if not len(numbers):
        raise UsageError("there is no target", hint=_EXAMPLES)
    return np.array([_checked(each, f"target {each:g}") for each in numbers.tolist()])


def settings_of(values: Mapping[str, object], what: str = "target") -> dict[str, float]:
    """Return values of parameters by name, each checked by `target_of`."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{what} {values!r} names no parameters", hint="e.g. {'n': 1000}")
    return {name: target_of(value, what=f"{what} {name} =") for name, value in values.items()}


def _numbers(values: object, said: str) -> FloatArray:
    try:
        found = np.asarray(values)
    except ValueError:
        # The lists have different lengths.
        found = np.array("")
    # numpy would convert texts, and None to NaN, but a caller does not mean that.
    if found.dtype.kind not in "iuf" and found.size:
        raise UsageError(f"{said} is not a number", hint=_EXAMPLES)
    return found.astype(np.float64)


def _checked(value: float, said: str, text: str | None = None) -> float:
    if not value > 0:
        raise UsageError(f"{said} is not positive", hint=_EXAMPLES)
    # A number that overflows was not meant to be infinite.
    is_meant = np.isinf(value) and (text is None or "inf" in text.lower())
    if not (LIMITS[0] <= value <= LIMITS[1] or is_meant):
        raise UsageError(f"{said} is out of bounds", hint="inf ranks by growth alone")
    return value
