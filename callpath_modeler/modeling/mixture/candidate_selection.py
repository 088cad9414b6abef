"""Candidates: the hypotheses of each row that pass the screening, with their evidence.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.modeling.mixture.candidates import Candidates, candidates
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, fitted_values, posterior
from callpath_modeler.modeling.mixture.rounding import EXACTLY, as_rounded, with_rounded
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.mixture.screened_hypotheses import (
    ScreenedHypotheses,
    screen,
    smoothed,
)


def select_candidates(
    data: ScaledRows, hypotheses: Hypotheses, ways: Deviations, beliefs: LogPriors
) -> Candidates:
    """Return the hypotheses of each row that pass the screening, with their evidence.

    Rows of small whole numbers are evaluated twice: as exact values and as rounded ones.
    """
    chosen = _chosen(data, hypotheses, ways, beliefs)
    found = candidates(data, chosen, hypotheses, ways)
    whole = data.rounding > 0
    if not whole.any():
        return found
    rows, place = np.flatnonzero(whole), whole.cumsum() - 1
    its = whole[found.row]
    of_whole, others = (found.take(np.flatnonzero(each)) for each in (its, ~its))
    of_whole = replace(of_whole, row=place[of_whole.row])
    exact = data.take(rows), of_whole, chosen.fitted[rows]
    half = as_rounded(exact[0])
    chosen = screen(half, hypotheses, beliefs.hypotheses, EXACTLY.drifts)
    rounded = half, candidates(half, chosen, hypotheses, EXACTLY), chosen.fitted
    both = with_rounded(exact, rounded, hypotheses, ways, beliefs)
    return Candidates.joined([others, replace(both, row=rows[both.row])])


def _chosen(
    data: ScaledRows, hypotheses: Hypotheses, ways: Deviations, beliefs: LogPriors
) -> ScreenedHypotheses:
    """Return the hypotheses that pass the screening, and the values that errors are relative to.

    If measurements scatter about every model, these values come from an additional evaluation
    without drift.
    """
    chosen = screen(data, hypotheses, beliefs.hypotheses, ways.extremes)
    rows = chosen.scattered
    if not rows.size:
        return chosen
    some, steady = data.take(rows), ways.steady()
    few = LogPriors(beliefs.hypotheses, beliefs.deviations[: len(steady.deviation)])
    found = posterior(candidates(some, chosen.take(rows), hypotheses, steady), some, steady, few)
    fitted = chosen.fitted.copy()
    fitted[rows] = smoothed(some, fitted_values(found, hypotheses))
    return replace(chosen, fitted=fitted)
