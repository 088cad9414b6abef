"""Lines of a view with their values, computed on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from callpath_modeler.analysis.forecast import Forecast, NodeForecasts
from callpath_modeler.profile.groups import Rows
from callpath_modeler.profile.outline import Outline


class ViewLines:
    """The lines of a view.

    Parameters
    ----------
    forecast : the predictions
    outline : the lines
    """

    def __init__(self, forecast: Forecast, outline: Outline) -> None:
        self.outline = outline
        self._forecast = forecast
        self._known: dict[int, tuple[tuple[float, ...], tuple[float, ...]]] = {}

    def values(self, places: Rows) -> tuple[NodeForecasts, NodeForecasts]:
        """Return exclusive and inclusive values of lines; computed values are kept."""
        missing = [place for place in places.tolist() if place not in self._known]
        if missing:
            found = self._forecast.of_outline(self.outline, np.array(missing))
            self._known |= zip(missing, zip(*map(_rows_of, found), strict=True), strict=True)
        kept = [self._known[place] for place in places.tolist()]
        own, whole = (_columns_of([row[kind] for row in kept]) for kind in (0, 1))
        return own, whole


def _rows_of(values: NodeForecasts) -> list[tuple[float, ...]]:
    columns = [getattr(values, column.name).tolist() for column in fields(NodeForecasts)]
    return list(zip(*columns, strict=True))


def _columns_of(rows: Sequence[tuple[float, ...]]) -> NodeForecasts:
    table = np.array(rows, float).reshape(len(rows), len(fields(NodeForecasts)))
    whole_numbers = {"growth": np.int16, "trust": np.int8, "doubted": np.bool_}
    return NodeForecasts(
        **{
            column.name: table[:, k].astype(whole_numbers.get(column.name, np.float64))
            for k, column in enumerate(fields(NodeForecasts))
        }
    )
