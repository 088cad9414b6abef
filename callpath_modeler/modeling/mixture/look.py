"""A look at rows: what is worth it is chosen of all hypotheses, and regressed."""

from __future__ import annotations

from dataclasses import replace

from callpath_modeler.modeling.mixture.candidates import Candidates, candidates
from callpath_modeler.modeling.mixture.data import Data
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Beliefs, fitted_values, posterior
from callpath_modeler.modeling.mixture.screen import Chosen, screen, smoothed


def looked_at(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> Candidates:
    """Look at what is worth it of each row, by what is believed."""
    return candidates(data, _chosen(data, known, ways, beliefs), known, ways)


def _chosen(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> Chosen:
    """Choose what is worth a look, and the values that weights are made of.

    Where measurements scatter about any model these take a fit; for it drifts do not matter.
    """
    chosen = screen(data, known, beliefs.hypotheses, ways.extremes)
    rows = chosen.scattered
    if not rows.size:
        return chosen
    some, steady = data.take(rows), ways.steady()
    few = Beliefs(beliefs.hypotheses, beliefs.deviations[: len(steady.deviation)])
    found = posterior(candidates(some, chosen.take(rows), known, steady), some, steady, few)
    fitted = chosen.fitted.copy()
    fitted[rows] = smoothed(some, fitted_values(found, known))
    return replace(chosen, fitted=fitted)
