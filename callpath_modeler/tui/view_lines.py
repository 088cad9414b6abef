"""Lines of a view with their values, computed on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from callpath_modeler.analysis.node_values import NodeValues
from callpath_modeler.analysis.pair_forecast import NodeDifferences, ViewForecast
from callpath_modeler.profile.groups import Rows
from callpath_modeler.profile.outline import Outline

LineValues = NodeValues | NodeDifferences
"""Values of lines in one experiment, or in two."""


class ViewLines:
    """The lines of a view.

    Parameters
    ----------
    forecast : the values of call paths
    outline : the lines
    """

    def __init__(self, forecast: ViewForecast, outline: Outline) -> None:
        self.outline = outline
        self._forecast = forecast
        self._known: dict[int, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
        self._kind: type[NodeValues] | type[NodeDifferences] = NodeValues
        self._types: dict[str, np.dtype[Any]] = {}

    def values(self, places: Rows) -> tuple[LineValues, LineValues]:
        """Return exclusive and inclusive values of lines; computed values are kept."""
        missing = [place for place in places.tolist() if place not in self._known]
        if missing or not self._types:
            found = self._forecast.of_outline(self.outline, np.array(missing, np.intp))
            self._kind = type(found[0])
            self._types = {name: getattr(found[0], name).dtype for name in self._kind.COLUMNS}
            rows = (_rows_of(each) for each in found)
            self._known |= zip(missing, zip(*rows, strict=True), strict=True)
        kept = [self._known[place] for place in places.tolist()]
        own, whole = (self._columns_of([row[kind] for row in kept]) for kind in (0, 1))
        return own, whole

    def _columns_of(self, rows: Sequence[tuple[Any, ...]]) -> LineValues:
        columns = zip(*rows, strict=True) if rows else ((),) * len(self._types)
        return self._kind.of_columns(
            {
                name: np.array(column, dtype)
                for (name, dtype), column in zip(self._types.items(), columns, strict=True)
            }
        )


def _rows_of(values: LineValues) -> list[tuple[Any, ...]]:
    return list(zip(*(getattr(values, name).tolist() for name in values.COLUMNS), strict=True))
