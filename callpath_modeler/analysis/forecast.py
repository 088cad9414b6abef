"""Predictions at a target in any of the three views.

Predictions, shares and excess work are exclusive values of call paths that add up, so the value of
a node of a view is the sum that its measured value is. Of bands, squares of widths add up, as in
`analysis.predict`: errors of different call paths are taken as independent. What moves all call
paths alike, a slower machine say, is in no band, neither of a call path nor of a sum.

Predicted values of 10^6 call paths take a tenth of a second, their bands tens of seconds; so a
forecast may be made without bands, which come later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.predict import squared_widths
from callpath_modeler.analysis.rank import (
    excess_at,
    share_at_target,
    total_at_largest,
    unmodelled,
)
from callpath_modeler.analysis.trust import marks_of_trust
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.profile.experiment import inclusive_values
from callpath_modeler.profile.groups import Costs, Rows, Values
from callpath_modeler.profile.outline import Outline
from callpath_modeler.profile.views import View
from callpath_modeler.profile.wanted import Sort

AT_LARGEST, VALUE, SHARE, EXCESS = range(4)
"""The columns of `Forecast.costs`; the share at the target decides which nodes are large."""

_CHUNK = 65_536
"""Rows whose bands are made before anyone is asked whether they are still wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """Values of nodes, exclusive or inclusive, each [nodes].

    Attributes
    ----------
    at_largest : measured at the largest scale; NaN = did not occur there
    value, low, high : predicted, with band; NaN = no model, of the band: not made
    share_at_largest, share : fractions of the total
    excess : excess work between the smallest scale and the target
    growth : code of the fastest growth in the value; -1 = no model
    trust : marks of trust, by how far the band reaches; -1 = no model, or no band
    """

    at_largest: Values
    value: Values
    low: Values
    high: Values
    share_at_largest: Values
    share: Values
    excess: Values
    growth: NDArray[np.int16]
    trust: NDArray[np.int8]


class Known:
    """What is known of an experiment before any target is.

    Parameters
    ----------
    fitted : the models

    Raises
    ------
    UsageError
        If the metric does not add up over call paths.
    """

    def __init__(self, fitted: Fitted) -> None:
        if not fitted.metric.additive:
            raise UsageError(
                f"no view: {fitted.metric.name} does not add up over call paths",
                hint="`cpmodel rank` shows such metrics",
            )
        self.fitted = fitted
        self.at_largest = Costs.of(fitted.experiment.tree, np.asarray(fitted.measured[:, -1]))
        self.total_at_largest = total_at_largest(fitted)
        self.modelled = fitted.modelled
        self.unmodelled, self.unmodelled_share = unmodelled(fitted)

    @cached_property
    def growth(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Codes of growth of call paths by themselves, and with what they call; -1 = no model."""
        own = np.where(self.modelled, self.fitted.models.growth_rank(), -1).astype(np.int16)
        return own, self.fitted.experiment.tree.largest_below(own)

    @cached_property
    def _of_code(self) -> dict[int, Growth]:
        codes, rows = np.unique(self.growth[0], return_index=True)
        models = self.fitted.models
        pairs = zip(codes.tolist(), rows.tolist(), strict=True)
        return {code: models.growth(row) for code, row in pairs if code >= 0}

    def growth_of(self, code: int) -> Growth | None:
        """Return the growth of a code; None = no model."""
        return self._of_code.get(code)

    def growth_text(self, code: int, *, pretty: bool = False) -> str | None:
        """Write the growth of a code; None = no model."""
        found = self._of_code.get(code)
        return None if found is None else found.text(self.fitted.parameter, pretty=pretty)


@dataclass(frozen=True, eq=False)
class Forecast:
    """What views show of an experiment at a target.

    Attributes
    ----------
    known : what does not depend on the target
    target : value of the parameter; ``inf`` = by growth alone
    costs : [call paths, columns]: measured, predicted, share, excess
    widths : squared widths of the bands down and up, [call paths, 2]; None = not made, and at
        infinity, where nothing has a band
    total : sum of all predictions, with its band
    """

    known: Known
    target: float
    costs: Costs
    widths: Costs | None
    total: tuple[float, float, float]

    @property
    def fitted(self) -> Fitted:
        """The models."""
        return self.known.fitted

    @property
    def base(self) -> float:
        """The smallest measured scale, against which excess work is counted."""
        return float(self.fitted.points[0])

    def of_nodes(self, view: View, nodes: Rows) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of nodes."""
        widths = None if self.widths is None else view.values(nodes, self.widths)
        codes = [view.largest(nodes, codes) for codes in self.known.growth]
        return self._both(view.values(nodes, self.costs), widths, codes)

    def of_siblings(self, view: View, nodes: Rows) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of several siblings as if they were one node."""
        values, widths = (
            None if costs is None else view.together(nodes, costs)
            for costs in (self.costs, self.widths)
        )
        codes = [view.largest(nodes, codes).max(keepdims=True) for codes in self.known.growth]
        assert values is not None
        one = (values[0][None], values[1][None])
        wide = None if widths is None else (widths[0][None], widths[1][None])
        return self._both(one, wide, codes)

    def of_outline(self, outline: Outline, places: Rows | None = None) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of lines; of all unless `places` tells which."""
        places = np.arange(len(outline)) if places is None else places
        widths = None if self.widths is None else outline.values_of(places, self.widths)
        codes = [outline.largest_of(places, codes) for codes in self.known.growth]
        return self._both(outline.values_of(places, self.costs), widths, codes)

    def _both(
        self,
        values: tuple[Values, Values],
        widths: tuple[Values, Values] | None,
        codes: list[NDArray[np.integer]],
    ) -> tuple[Foreseen, Foreseen]:
        nothing = np.full((len(values[0]), 2), np.nan)
        wide = (nothing, nothing) if widths is None else widths
        own, whole = (self._foreseen(*parts) for parts in zip(values, wide, codes, strict=True))
        return own, whole

    def _foreseen(self, columns: Values, widths: Values, codes: NDArray[np.integer]) -> Foreseen:
        at_largest, value, share, excess = columns.T
        total = self.known.total_at_largest
        low, high = np.maximum(value - np.sqrt(widths[:, 0]), 0.0), value + np.sqrt(widths[:, 1])
        trust = np.where(np.isnan(low), -1, marks_of_trust(value, low, high)).astype(np.int8)
        return Foreseen(
            at_largest=at_largest,
            value=value,
            low=low,
            high=high,
            share_at_largest=at_largest / total if total > 0 else np.full_like(value, np.nan),
            share=share,
            excess=excess,
            growth=codes.astype(np.int16),
            trust=trust,
        )

    def order(self, view: View, sort: Sort, *, inclusive: bool) -> Callable[[Rows], Values] | None:
        """Return what siblings are ordered by, [nodes] -> [nodes]; None: by what decides."""
        which = 1 if inclusive else 0

        def of_column(costs: Costs, column: int) -> Callable[[Rows], Values]:
            only = costs.only(column)
            return lambda nodes: view.values(nodes, only)[which][:, 0]

        def by_name(nodes: Rows) -> Values:
            place = {name: k for k, name in enumerate(sorted(map(view.name, nodes.tolist())))}
            return np.array([-place[view.name(node)] for node in nodes.tolist()], float)

        if sort is Sort.NAME:
            return by_name
        if sort is Sort.GROWTH:
            return lambda nodes: view.largest(nodes, self.known.growth[which]).astype(float)
        if sort is Sort.TRUST:
            return lambda nodes: self.of_nodes(view, nodes)[which].trust.astype(float)
        if sort is Sort.HIGH and self.widths is not None:
            return lambda nodes: self.of_nodes(view, nodes)[which].high
        columns = {Sort.MEASURED: AT_LARGEST, Sort.EXCESS: EXCESS}
        return of_column(self.costs, columns[sort]) if sort in columns else None

    def with_bands(self, is_wanted: Callable[[], bool] = lambda: True) -> Forecast | None:
        """Return the forecast with its bands; None where they are no longer wanted.

        Parameters
        ----------
        is_wanted : asked again and again: bands of 10^6 call paths take a while
        """
        if np.isinf(self.target):
            return self
        models, count = self.fitted.models, len(self.costs.exclusive)
        value = self.costs.exclusive[:, VALUE]
        below, above = np.zeros(count), np.zeros(count)
        for start in range(0, count, _CHUNK):
            if not is_wanted():
                return None
            part = np.arange(start, min(start + _CHUNK, count))
            band = models.take(part).predict(np.array([self.target]))
            widths = squared_widths(value[part], band.low[:, 0], band.high[:, 0])
            below[part], above[part] = widths
        widths_of = Costs.of(self.fitted.experiment.tree, np.column_stack([below, above]))
        low = max(0.0, self.total[0] - float(np.sqrt(below.sum())))
        high = self.total[0] + float(np.sqrt(above.sum()))
        return replace(self, widths=widths_of, total=(self.total[0], low, high))


def forecast(fitted: Fitted | Known, target: float, *, bands: bool = True) -> Forecast:
    """Predict what every call path will cost at `target`, in columns that add up.

    Parameters
    ----------
    fitted : the models, or what was made of them for other targets
    target : value of the parameter, which may be infinite
    bands : make bands, too, which takes a hundred times as long

    Raises
    ------
    UsageError
        If the metric does not add up over call paths.
    """
    known = fitted if isinstance(fitted, Known) else Known(fitted)
    tree, fitted = known.fitted.experiment.tree, known.fitted
    value = np.where(known.modelled, fitted.models.values(np.array([target]))[:, 0], np.nan)
    total = float(np.nansum(value))
    share = share_at_target(fitted, value, total, target)
    excess = excess_at(fitted, target, value, share)
    own = np.column_stack([known.at_largest.exclusive[:, 0], value, share, excess.exclusive])
    whole_value = inclusive_values(tree, value)
    whole_share = (
        whole_value / total if np.isfinite(total) and total > 0 else inclusive_values(tree, share)
    )
    whole = np.column_stack(
        [known.at_largest.inclusive[:, 0], whole_value, whole_share, excess.inclusive]
    )
    costs = Costs(np.asfortranarray(own), np.asfortranarray(whole))
    made = Forecast(known, target, costs, None, (total, np.nan, np.nan))
    complete = made.with_bands() if bands else made
    assert complete is not None
    return complete
