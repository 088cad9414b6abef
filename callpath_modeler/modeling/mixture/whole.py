"""The evidence of all hypotheses of a row together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.modeling.mixture.candidates import absolute_candidates
from callpath_modeler.modeling.mixture.data import Data
from callpath_modeler.modeling.mixture.deviations import Deviations
from callpath_modeler.modeling.mixture.hypotheses import Hypotheses
from callpath_modeler.modeling.mixture.posterior import Beliefs, Posterior
from callpath_modeler.modeling.mixture.screen import Chosen

FloatArray = npt.NDArray[np.float64]


def log_probability_of_all(
    found: Posterior,
    data: Data,
    fitted: FloatArray,
    variance: FloatArray,
    known: Hypotheses,
    ways: Deviations,
    beliefs: Beliefs,
) -> FloatArray:
    """Return the log probability of the values of rows under all hypotheses together, [n].

    It follows from the evidence of the most probable hypothesis of each row and its posterior
    probability. Weights of points are those of `fitted` [n, K]: only evidence with the same weights
    compares.

    Parameters
    ----------
    found : what is believed of the rows
    data : n rows
    fitted : [n, K] what errors are relative to
    variance : [n] roughly that of a point
    known, ways, beliefs : the hypotheses, the deviations, and their priors
    """
    rows, size = len(data.values), len(known.shapes)
    order = np.lexsort((found.weight, found.row))
    best = order[np.searchsorted(found.row[order], np.arange(rows), side="right") - 1]
    code = found.chosen[best]
    single, pair = np.flatnonzero((code > 0) & (code <= 3 * size)), np.flatnonzero(code > 3 * size)
    family, shape = np.divmod(code[single] - 1, size)
    chosen = Chosen(
        single,
        shape,
        tuple(np.flatnonzero(family == each) for each in range(3)),
        pair,
        code[pair] - 1 - 3 * size,
        variance,
        fitted,
        np.zeros(0, dtype=np.intp),
    )
    every = absolute_candidates(data, chosen, known, ways)
    of_best = np.flatnonzero(every.chosen == code[every.row])
    of_best = of_best[np.argsort(every.row[of_best])]
    of_each = every.log_evidence[:, of_best] + beliefs.deviations[:, None]
    together = np.logaddexp.reduce(of_each, axis=0) + beliefs.hypotheses[code]
    return np.asarray(together - np.log(found.weight[best]))
