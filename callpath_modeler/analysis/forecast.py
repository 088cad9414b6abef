"""Predictions at a target in any of the three views.

Predictions, shares and excess work are exclusive values of call paths that add up, so the value of
a node of a view is the sum that its measured value is. Of bands, squares of widths add up, as in
`analysis.predict`: errors of different call paths are taken as independent. What moves all call
paths alike, a slower machine say, is in no band, neither of a call path nor of a sum.

Predicted values of 10^6 call paths take a tenth of a second, their bands some seconds; so a
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
    Loss,
    loss_at,
    share_at_target,
    total_at_largest,
    unmodelled,
)
from callpath_modeler.analysis.trust import marks_of_trust
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Growth
from callpath_modeler.profile.groups import Codes, Costs, Rows, Values
from callpath_modeler.profile.outline import Outline, SumCheck
from callpath_modeler.profile.views import View
from callpath_modeler.profile.wanted import Sort

_CHUNK = 4_096
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
        self.modelled = fitted.modelled
        self.total_at_largest = total_at_largest(fitted)
        self.unmodelled, self.unmodelled_share = unmodelled(fitted)

    @cached_property
    def at_largest(self) -> Costs:
        """Measured values at the largest scale, [call paths, 1]."""
        return Costs.of(self.fitted.experiment.tree, np.asarray(self.fitted.measured[:, -1]))

    @cached_property
    def at_base(self) -> Costs:
        """Values at the smallest scale of what has a model, [call paths, 1]."""
        measured = np.where(self.modelled, np.nan_to_num(self.fitted.at_smallest()), 0.0)
        return Costs.of(self.fitted.experiment.tree, measured)

    @cached_property
    def _is_without(self) -> NDArray[np.bool_] | None:
        """Tell which call paths have no model, nor anything below them; None = every one has."""
        if self.modelled.all():
            return None
        largest = self.fitted.experiment.tree.largest_below(self.modelled.astype(np.int8))
        return np.asarray(largest == 0)

    def summed(self, own: Values) -> Costs:
        """Return one column of predictions with their sums; NaN = no model."""
        whole = self.fitted.experiment.tree.inclusive(np.nan_to_num(own, posinf=np.inf))
        if self._is_without is not None:
            whole[self._is_without] = np.nan
        return Costs(own[:, None], whole[:, None])

    @cached_property
    def growth(self) -> tuple[Codes, Codes]:
        """Codes of growth of call paths by themselves, and with what they call; -1 = no model."""
        own = np.where(self.modelled, self.fitted.models.growth_rank(), -1).astype(np.int16)
        return Codes(own), Codes(self.fitted.experiment.tree.largest_below(own))

    @cached_property
    def _of_code(self) -> dict[int, Growth]:
        codes, rows = np.unique(self.growth[0].numbers, return_index=True)
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
    value : predictions, [call paths, 1]
    decides : what tells which nodes are large, [call paths, 1]: the value; in the limit, the share
    whole : 100 % of that; 0 = of nothing
    widths : squared widths of the bands down and up, [call paths, 2]; None = not made, and at
        infinity, where nothing has a band
    total : sum of all predictions, with its band
    """

    known: Known
    target: float
    value: Costs
    decides: Costs
    whole: float
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

    @property
    def has_bands(self) -> bool:
        """Whether all bands there can be were made."""
        return self.widths is not None or bool(np.isinf(self.target))

    @cached_property
    def _loss(self) -> Loss | None:
        return loss_at(self.fitted, self.target, self.total[0])

    @property
    def total_excess(self) -> float:
        """Excess work of the whole program; NaN where it has no meaning."""
        if self._loss is None:
            return float("nan")
        base = np.array([self.known.at_base.total[0]])
        return float(self._loss.excess(np.array([self.total[0]]), np.ones(1), base)[0])

    def of_nodes(self, view: View, nodes: Rows) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of nodes."""
        return self._both(
            lambda costs: view.values(nodes, costs), lambda codes: view.largest(nodes, codes)
        )

    def of_siblings(self, view: View, nodes: Rows) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of several siblings as if they were one node."""

        def together(costs: Costs) -> tuple[Values, Values]:
            own, whole = view.together(nodes, costs)
            return own[None], whole[None]

        return self._both(together, lambda codes: view.largest(nodes, codes).max(keepdims=True))

    def of_outline(self, outline: Outline, places: Rows | None = None) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of lines; of all unless `places` tells which."""
        lines = np.arange(len(outline)) if places is None else places
        return self._both(
            lambda costs: outline.values_of(lines, costs),
            lambda codes: outline.largest_of(lines, codes),
        )

    def _both(
        self,
        of: Callable[[Costs], tuple[Values, Values]],
        largest: Callable[[Codes], NDArray[np.integer]],
    ) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values, given what sums columns over nodes."""
        known = self.known
        value, measured, before = of(self.value), of(known.at_largest), of(known.at_base)
        decides = value if self.decides is self.value else of(self.decides)
        widths = None if self.widths is None else of(self.widths)
        own, whole = (
            self._foreseen(
                value=value[kind][:, 0],
                at_largest=measured[kind][:, 0],
                at_base=before[kind][:, 0],
                decides=decides[kind][:, 0],
                widths=None if widths is None else widths[kind],
                codes=largest(known.growth[kind]),
            )
            for kind in (0, 1)
        )
        return own, whole

    def _foreseen(
        self,
        value: Values,
        at_largest: Values,
        at_base: Values,
        decides: Values,
        widths: Values | None,
        codes: NDArray[np.integer],
    ) -> Foreseen:
        total, nothing = self.known.total_at_largest, np.full(len(value), np.nan)
        low = high = nothing
        if widths is not None:
            low = np.maximum(value - np.sqrt(widths[:, 0]), 0.0)
            high = value + np.sqrt(widths[:, 1])
        trust = np.where(np.isnan(low), -1, marks_of_trust(value, low, high)).astype(np.int8)
        share = decides / self.whole if self.whole > 0 else nothing
        return Foreseen(
            at_largest=at_largest,
            value=value,
            low=low,
            high=high,
            share_at_largest=at_largest / total if total > 0 else nothing,
            share=share,
            excess=nothing if self._loss is None else self._loss.excess(value, share, at_base),
            growth=codes.astype(np.int16),
            trust=trust,
        )

    def order(self, view: View, sort: Sort, *, inclusive: bool) -> Callable[[Rows], Values] | None:
        """Return what siblings are ordered by, [nodes] -> [nodes]; None: by what decides."""
        which = 1 if inclusive else 0

        def by_name(nodes: Rows) -> Values:
            place = {name: k for k, name in enumerate(sorted(map(view.name, nodes.tolist())))}
            return np.array([-place[view.name(node)] for node in nodes.tolist()], float)

        orders: dict[Sort, Callable[[Rows], Values]] = {
            Sort.NAME: by_name,
            Sort.GROWTH: lambda nodes: view.largest(nodes, self.known.growth[which]).astype(float),
            Sort.MEASURED: lambda nodes: view.values(nodes, self.known.at_largest)[which][:, 0],
            Sort.EXCESS: lambda nodes: self.of_nodes(view, nodes)[which].excess,
        }
        if self.widths is not None:
            orders[Sort.TRUST] = lambda nodes: self.of_nodes(view, nodes)[which].trust.astype(float)
            orders[Sort.HIGH] = lambda nodes: self.of_nodes(view, nodes)[which].high
        return orders.get(sort)

    def check(self, outline: Outline) -> SumCheck:
        """Tell whether lines add up to what was measured at the largest scale, and is predicted."""
        measured, predicted = (outline.check(c) for c in (self.known.at_largest, self.value))
        return SumCheck(
            np.concatenate([measured.counted, predicted.counted]),
            np.concatenate([measured.total, predicted.total]),
            measured.holds and predicted.holds,
        )

    def with_bands(self, is_wanted: Callable[[], bool] = lambda: True) -> Forecast | None:
        """Return the forecast with its bands; None where they are no longer wanted.

        Parameters
        ----------
        is_wanted : asked again and again: bands of 10^6 call paths take a while
        """
        if np.isinf(self.target):
            return self
        models, value = self.fitted.models, self.value.exclusive[:, 0]
        widths = np.zeros((len(value), 2), order="F")
        for start in range(0, len(value), _CHUNK):
            if not is_wanted():
                return None
            part = slice(start, start + _CHUNK)
            rows = np.arange(start, min(start + _CHUNK, len(value)))
            band = models.take(rows).predict(np.array([self.target]))
            reach = squared_widths(value[part], band.low[:, 0], band.high[:, 0])
            widths[part, 0], widths[part, 1] = reach
        below, above = np.sqrt(widths.sum(axis=0)).tolist()
        total = self.total[0]
        bands = Costs.of(self.fitted.experiment.tree, widths)
        return replace(self, widths=bands, total=(total, max(0.0, total - below), total + above))


def forecast(fitted: Fitted | Known, target: float, *, bands: bool = True) -> Forecast:
    """Predict what every call path will cost at `target`, in columns that add up.

    Parameters
    ----------
    fitted : the models, or what was made of them for other targets
    target : value of the parameter, which may be infinite
    bands : make bands, too, which takes far longer

    Raises
    ------
    UsageError
        If the metric does not add up over call paths.
    """
    known = fitted if isinstance(fitted, Known) else Known(fitted)
    models = known.fitted.models
    predicted = np.where(known.modelled, models.values(np.array([target]))[:, 0], np.nan)
    total = float(np.nansum(predicted))
    value = decides = known.summed(predicted)
    whole = total
    if np.isinf(target) and not 0 < total < np.inf:
        decides = known.summed(share_at_target(known.fitted, predicted, total, target))
        whole = 1.0
    band = (total, total) if np.isinf(target) else (np.nan, np.nan)
    made = Forecast(known, target, value, decides, whole, None, (total, *band))
    complete = made.with_bands() if bands else made
    assert complete is not None
    return complete
