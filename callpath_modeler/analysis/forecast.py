"""Predictions at a target in any of the three views.

Predictions, shares and excess work are exclusive values of call paths that add up, so the value of
a node of a view is the sum that its measured value is. Of bands, squares of widths add up, as in
`analysis.predict`: errors of different call paths are taken as independent. What moves all call
paths alike, a slower machine say, is in no band, neither of a call path nor of a sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.predict import Predicted, predict, squared_widths, with_callees
from callpath_modeler.analysis.rank import Ranking, rank
from callpath_modeler.analysis.trust import marks_of_trust
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.groups import Costs, Rows, Values
from callpath_modeler.profile.views import View

SHARE = 4
"""The column that decides which nodes are large: the share at the target."""


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """Values of nodes, exclusive or inclusive, each [nodes].

    Attributes
    ----------
    at_largest : measured at the largest scale; NaN = did not occur there
    value, low, high : predicted, with band; NaN = no model
    share_at_largest, share : fractions of the total
    excess : excess work between the smallest scale and the target
    trust : marks of trust, by how far the band reaches; -1 = no model
    """

    at_largest: Values
    value: Values
    low: Values
    high: Values
    share_at_largest: Values
    share: Values
    excess: Values
    trust: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Forecast:
    """What views show of an experiment at a target.

    Attributes
    ----------
    ranking : the exclusive predictions of all call paths
    costs : [call paths, columns]: measured, predicted, squared widths down and up, share,
        excess
    own, whole : predictions of each call path by itself, and with what it calls
    """

    ranking: Ranking
    costs: Costs
    own: Predicted
    whole: Predicted

    @property
    def fitted(self) -> Fitted:
        """The models."""
        return self.ranking.fitted

    def of_lines(self, own: Values, whole: Values) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of nodes, given the columns of `costs`."""
        return self._foreseen(own), self._foreseen(whole)

    def of_nodes(self, view: View, nodes: Rows) -> tuple[Foreseen, Foreseen]:
        """Return exclusive and inclusive values of nodes."""
        return self.of_lines(*view.values(nodes, self.costs))

    def _foreseen(self, columns: Values) -> Foreseen:
        at_largest, value, below, above, share, excess = columns.T
        total = self.ranking.total_at_largest
        low, high = np.maximum(value - np.sqrt(below), 0.0), value + np.sqrt(above)
        return Foreseen(
            at_largest,
            value,
            low,
            high,
            at_largest / total if total > 0 else np.full_like(at_largest, np.nan),
            share,
            excess,
            marks_of_trust(value, low, high),
        )

    def leader(self, rows: Rows, *, inclusive: bool) -> int:
        """Return the call path whose model grows fastest in the value of `rows`; -1 = no model.

        Parameters
        ----------
        rows : the call paths of a node
        inclusive : of its inclusive value
        """
        predicted = self.whole if inclusive else self.own
        order = np.lexsort((predicted.lead[rows], predicted.growth[rows]))
        return int(predicted.leader[rows[order[-1]]])


def forecast(fitted: Fitted, target: float) -> Forecast:
    """Predict what every call path will cost at `target`, in columns that add up.

    Raises
    ------
    UsageError
        If the metric does not add up over call paths.
    """
    if not fitted.metric.additive:
        raise UsageError(
            f"no view: {fitted.metric.name} does not add up over call paths",
            hint="`cpmodel rank` shows such metrics",
        )
    tree = fitted.experiment.tree
    ranking = rank(fitted, target)
    own = predict(fitted, target)
    below, above = squared_widths(ranking.value, ranking.low, ranking.high)
    columns = (
        ranking.at_largest,
        ranking.value,
        below,
        above,
        ranking.own_share,
        ranking.excess.exclusive,
    )
    costs = Costs.of(tree, np.column_stack(columns))
    return Forecast(ranking, costs, own, with_callees(tree, own))
