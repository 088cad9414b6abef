"""Candidates: the hypotheses of each row that pass the screening, with their evidence.

See docs/explanation/hypotheses.md, 'Screening'.
"""

from __future__ import annotations

from msgspec import structs

from callpath_modeler.modeling.mixture.candidates import Candidates, candidates
from callpath_modeler.modeling.mixture.one_parameter import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, fitted_values, posterior
from callpath_modeler.modeling.mixture.residuals import ScreenedHypotheses, screen, smoothed
from callpath_modeler.modeling.mixture.scaled_rows import (
    Deviations,
    ScaledRows,
)


def select_candidates(
    data: ScaledRows, hypotheses: Hypotheses, ways: Deviations, beliefs: LogPriors
) -> Candidates:
    """Return the hypotheses of each row that pass the screening, with their evidence."""
    return candidates(data, _chosen(data, hypotheses, ways, beliefs), hypotheses, ways)


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
    return structs.replace(chosen, fitted=fitted)
