"""Evidence of all hypotheses of a row together.

See docs/explanation/hypotheses.md, 'Evidence'.
"""

from __future__ import annotations

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.mixture.candidates import absolute_candidates
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import LogPriors, Posterior
from callpath_modeler.modeling.mixture.scaled_rows import ScaledRows
from callpath_modeler.modeling.mixture.screened_hypotheses import ScreenedHypotheses


def log_probability_of_all(
    found: Posterior,
    data: ScaledRows,
    fitted: FloatArray,
    variance: FloatArray,
    hypotheses: Hypotheses,
    ways: Deviations,
    beliefs: LogPriors,
) -> FloatArray:
    """Return the log probability of the values of rows under all hypotheses together, [n].

    It follows from the evidence of the most probable hypothesis of each row and its posterior
    probability. Points have the weights that follow from `fitted` [n, K], because only evidence
    with equal weights can be compared.

    Parameters
    ----------
    found : posterior of the rows
    data : n rows
    fitted : [n, K] values that errors are relative to
    variance : [n] rough variance of a point
    hypotheses, ways, beliefs : hypotheses, deviations, and their priors
    """
    rows, size = len(data.values), len(hypotheses.shapes)
    order = np.lexsort((found.weight, found.row))
    best = order[np.searchsorted(found.row[order], np.arange(rows), side="right") - 1]
    code = found.chosen[best]
    single, pair = np.flatnonzero((code > 0) & (code <= 3 * size)), np.flatnonzero(code > 3 * size)
    family, shape = np.divmod(code[single] - 1, size)
    chosen = ScreenedHypotheses(
        single,
        shape,
        tuple(np.flatnonzero(family == each) for each in range(3)),
        pair,
        code[pair] - 1 - 3 * size,
        variance,
        fitted,
        np.zeros(0, dtype=np.intp),
    )
    every = absolute_candidates(data, chosen, hypotheses, ways)
    of_best = np.flatnonzero(every.chosen == code[every.row])
    of_best = of_best[np.argsort(every.row[of_best])]
    of_each = every.log_evidence[:, of_best] + beliefs.deviations[:, None]
    together = np.logaddexp.reduce(of_each, axis=0) + beliefs.hypotheses[code]
    return np.asarray(together - np.log(found.weight[best]))
