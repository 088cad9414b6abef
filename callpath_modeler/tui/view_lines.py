"""Lines of a view with their values, computed on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from callpath_modeler.analysis.forecast import Forecast
from callpath_modeler.analysis.forecast_bands import NodeForecasts
from callpath_modeler.analysis.pair_forecast import NodeDifferences, ViewForecast
from callpath_modeler.profile.groups import Rows
from callpath_modeler.profile.outline import Outline

NodeValues = NodeForecasts | NodeDifferences
"""Values of nodes in one experiment, or in two."""


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
        self._types: dict[str, np.dtype[Any]] = {}

    def values(self, places: Rows) -> tuple[NodeValues, NodeValues]:
        """Return exclusive and inclusive values of lines; computed values are kept."""
        missing = [place for place in places.tolist() if place not in self._known]
        if missing or not self._types:
            found = self._forecast.of_outline(self.outline, np.array(missing, np.intp))
            self._types = {
                each.name: getattr(found[0], each.name).dtype for each in fields(found[0])
            }
            self._known |= zip(missing, zip(*map(_rows_of, found), strict=True), strict=True)
        kept = [self._known[place] for place in places.tolist()]
        own, whole = (self._columns_of([row[kind] for row in kept]) for kind in (0, 1))
        return own, whole

    def _columns_of(self, rows: Sequence[tuple[Any, ...]]) -> NodeValues:
        kind = NodeForecasts if isinstance(self._forecast, Forecast) else NodeDifferences
        columns = zip(*rows, strict=True) if rows else ((),) * len(self._types)
        return kind(
            **{
                name: np.array(column, dtype)
                for (name, dtype), column in zip(self._types.items(), columns, strict=True)
            }
        )


def _rows_of(values: NodeValues) -> list[tuple[Any, ...]]:
    columns = [getattr(values, column.name).tolist() for column in fields(values)]
    return list(zip(*columns, strict=True))
