"""A look at rows: what is worth it is chosen of all hypotheses, and regressed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.modeling.mixture.candidates import Candidates, candidates
from callpath_modeler.modeling.mixture.data import Data
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Beliefs, fitted_values, posterior
from callpath_modeler.modeling.mixture.rounding import EXACTLY, as_rounded, with_rounded
from callpath_modeler.modeling.mixture.screen import Chosen, screen, smoothed


def looked_at(data: Data, known: Hypotheses, ways: Deviations, beliefs: Beliefs) -> Candidates:
    """Look at what is worth it of each row, by what is believed."""
    chosen = _chosen(data, known, ways, beliefs)
    found = candidates(data, chosen, known, ways)
    whole = data.rounding > 0
    if not whole.any():
        return found
    rows, place = np.flatnonzero(whole), whole.cumsum() - 1
    its = whole[found.row]
    of_whole, others = (found.take(np.flatnonzero(each)) for each in (its, ~its))
    of_whole = replace(of_whole, row=place[of_whole.row])
    exact = data.take(rows), of_whole, chosen.fitted[rows]
    half = as_rounded(exact[0])
    chosen = screen(half, known, beliefs.hypotheses, EXACTLY.drifts)
    rounded = half, candidates(half, chosen, known, EXACTLY), chosen.fitted
    both = with_rounded(exact, rounded, known, ways, beliefs)
    return Candidates.joined([others, replace(both, row=rows[both.row])])


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
