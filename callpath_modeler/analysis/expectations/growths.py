"""Limits of growth, held against models."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.expectations.expectation import GrowthLimit
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.verdicts import Judgement, Verdict
from callpath_modeler.modeling.validation import deciding_run, growth_probabilities, judge

_SHOWN = 0.05
"""Growths less probable than this are not named."""


def judge_growth(limit: GrowthLimit, subjects: Subjects, confidence: float) -> Judgement:
    """Judge a limit of growth.

    One subject is out of it where that is as probable as `confidence`; all are within where the
    probabilities of being out of it do not add up to more than what is left of that for each.
    """
    models = subjects.models()
    found = judge(models, limit.limits, confidence)
    known = ~np.isnan(found.within)
    beyond = np.where(known, 1 - found.within, 1.0)
    within = known.all() and not found.outside.any()
    kept = within and beyond.sum() <= (1 - confidence) * len(subjects)
    broken, unsure = found.broken.any(), not kept
    verdict = Verdict.BROKEN if broken else Verdict.UNSURE if unsure else Verdict.KEPT
    table, growths = growth_probabilities(models), models.shapes.growths
    fastest = table @ np.arange(len(growths))
    open_ = ~(found.kept | found.broken)
    worst = int(np.lexsort((fastest, beyond, open_, found.broken))[-1])
    probability = table[worst]
    order = np.argsort(-probability, kind="stable")
    named = order[probability[order] >= min(_SHOWN, probability.max())]
    decides = np.inf
    if verdict is Verdict.UNSURE:
        decides = float(deciding_run(models.take([worst]), limit.limits, confidence)[0])
    return Judgement(
        limit,
        verdict,
        subjects.row(worst),
        judged=len(subjects),
        broken=int(found.broken.sum()),
        unsure=int(open_.sum()),
        unmodelled=float(~known[worst]),
        outside=bool(found.outside[worst]),
        growths=tuple((growths[k], float(probability[k])) for k in named if known[worst]),
        beyond=float(beyond[worst]) if known[worst] else None,
        decides=decides if np.isfinite(decides) else None,
    )
