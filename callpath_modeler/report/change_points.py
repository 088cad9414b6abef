"""Change points as text: the scale from which a model holds, and the law before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import change_point, changes_since
from callpath_modeler.units import parameter_value

if TYPE_CHECKING:
    from numpy.typing import NDArray


def from_text(fitted: Fitted, row: int) -> str:
    """Return the scale from which the model of a call path holds: `` from p = 256 on``, or ""."""
    since = float(changes_since(fitted.models.take([row]))[0])
    return f" from {fitted.parameter} = {parameter_value(since)} on" if since else ""


def formula_from_text(fitted: Fitted, rows: NDArray[np.integer]) -> str:
    """Return the scale from which the formula of a sum of call paths holds, or "".

    Formulas with a break hold for all scales.
    """
    since = float(fitted.models.since[rows].max(initial=0.0))
    return f"  from {fitted.parameter} = {parameter_value(since)} on" if since else ""


def from_texts(fitted: Fitted, rows: IntArray) -> list[str]:
    """Return the first scales of models for cells of a table: `` from 256``; rows of -1 give ""."""
    since = np.where(rows >= 0, changes_since(fitted.models.take(rows)), 0.0)
    return [f" from {parameter_value(at)}" if at else "" for at in since.tolist()]


def law_text(fitted: Fitted, row: int, *, pretty: bool) -> str:
    """Return both laws of a call path with a change point, "" for other call paths.

    ``200 + 20 p^½ from p = 256 on; 2 p before``
    """
    found = change_point(fitted.models, row, fitted.parameter, pretty=pretty)
    if found is None:
        return ""
    return f"{found.law}{from_text(fitted, row)}; {found.before} before"
