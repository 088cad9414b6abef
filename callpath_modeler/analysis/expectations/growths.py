"""Limits of growth: how probable it is that something grows out of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from callpath_modeler.analysis.expectations.reading import GrowthLimit
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.verdicts import Judgement, Verdict
from callpath_modeler.modeling import Growth, Models
from callpath_modeler.modeling.growth import CONSTANT_GROWTH

Values = NDArray[np.float64]

_SHOWN = 0.05
"""Growths less probable than this are not named."""


def judge_growth(limit: GrowthLimit, subjects: Subjects, confidence: float) -> Judgement:
    """Judge a limit of growth.

    One subject is out of it where that is as probable as `confidence`; all are within where the
    probabilities of being out of it do not add up to more than what is left of that for each.
    """
    models = subjects.models()
    growths, probability = growth_probabilities(models)
    out = np.array([not _within(growth, limit) for growth in growths])
    beyond = probability[:, out].sum(axis=1)
    known = probability.sum(axis=1) > 0
    beyond = np.where(known, beyond, np.nan)
    broken = beyond >= confidence
    doubtful = ~known | (beyond > 1 - confidence)
    kept = known.all() and beyond.sum() <= (1 - confidence) * len(subjects)
    verdict = Verdict.BROKEN if broken.any() else Verdict.KEPT if kept else Verdict.UNSURE
    fastest = probability @ np.arange(len(growths))
    worst = int(np.lexsort((fastest, beyond, ~known))[-1])
    order = np.argsort(-probability[worst], kind="stable")
    named = order[probability[worst][order] >= min(_SHOWN, probability[worst].max())]
    return Judgement(
        limit,
        verdict,
        None if subjects.is_program else int(subjects.rows[worst]),
        judged=len(subjects),
        broken=int(broken.sum()),
        unsure=int((doubtful & ~broken).sum()),
        unmodelled=float(~known[worst]),
        growths=tuple((growths[k], float(probability[worst, k])) for k in named if known[worst]),
        beyond=float(beyond[worst]) if known[worst] else None,
    )


def _within(growth: Growth, limit: GrowthLimit) -> bool:
    if limit.least is not None and growth < limit.least:
        return False
    return limit.most is None or growth <= limit.most


def growth_probabilities(models: Models) -> tuple[list[Growth], Values]:
    """Return growths, ascending, and how probable each is, [n, growths]; all 0 without a model."""
    growths = sorted({CONSTANT_GROWTH, *(shape.growth for shape in models.shapes)})
    constant = growths.index(CONSTANT_GROWTH)
    code = np.array([growths.index(shape.growth) for shape in models.shapes] + [-1])
    terms = np.concatenate([models.terms[:, None], models.alternative_terms], axis=1)
    numbers = np.concatenate([models.coefficients[:, None], models.alternative_coefficients], 1)
    weight = np.concatenate([models.weight[:, None], models.alternative_weight], axis=1)
    fastest = code[terms].max(axis=2, initial=-1)
    # A constant is more than whatever vanishes, unless it is zero.
    settles = (fastest < constant) & ((numbers[..., 0] != 0) | (fastest < 0))
    fastest = np.where(settles, constant, fastest)
    modelled = ~np.isnan(models.coefficients[:, 0])
    weight = np.where(modelled[:, None], weight, 0.0)
    weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    table = np.zeros((len(models), len(growths)))
    np.add.at(table, (np.arange(len(models))[:, None], fastest), weight)
    return growths, table
