"""Comparison of models with growth limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.expectations.expectation import GrowthLimit
from callpath_modeler.analysis.expectations.growth_of_sums import GrowthOfSubjects
from callpath_modeler.analysis.expectations.subjects import Subjects
from callpath_modeler.analysis.expectations.verdicts import Judgement, SubjectVerdicts, Verdict
from callpath_modeler.analysis.scales import scale_to_run
from callpath_modeler.arrays import BoolArray, IntArray
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.validation import (
    DeviationLimits,
    GrowthVerdicts,
    deciding_run,
    judge,
)

_SHOWN = 0.05
"""Smallest probability of a growth that is named."""


@dataclass(frozen=True, slots=True, eq=False)
class GrowthCheck:
    """Models compared with growth limits.

    Attributes
    ----------
    models : [n]
    verdicts : [n] by the models and by the parts of sums
    growth : [n] probabilities of growths
    disagrees : [n] True if the model of a sum decides, but not together with its parts
    """

    models: Models
    verdicts: GrowthVerdicts
    growth: GrowthOfSubjects
    disagrees: BoolArray

    @classmethod
    def of(
        cls, subjects: Subjects, models: Models, limits: DeviationLimits, confidence: float
    ) -> GrowthCheck:
        """Return the models of subjects compared with limits."""
        alone, growth = judge(models, limits, confidence), GrowthOfSubjects.of(subjects, models)
        side = np.array([limits.side(each) for each in models.shapes.growths])
        raised = (growth.table != growth.alone).any(axis=1)
        below, within, above = (
            np.where(raised, np.where(side == which, growth.table, 0.0).sum(axis=1), by_model)
            for which, by_model in ((-1, alone.below), (0, alone.within), (1, alone.above))
        )
        # Neither witness decides against the other one.
        kept = alone.kept & (within >= confidence)
        broken = alone.broken & (np.where(alone.outside, above, below + above) >= confidence)
        found = GrowthVerdicts(limits, below, within, above, alone.outside, kept, broken)
        disagrees = (alone.kept & ~kept) | (alone.broken & ~broken)
        return cls(models, found, growth, disagrees)


def judge_growth(
    limit: GrowthLimit,
    subjects: Subjects,
    confidence: float,
    check: GrowthCheck,
    places: IntArray,
) -> Judgement:
    """Return the judgement of a growth limit.

    A limit is broken if one subject exceeds it with a probability of at least `confidence`. It is
    met if the probabilities of exceeding it, summed over subjects, are at most 1 - `confidence`.

    Parameters
    ----------
    check : models compared with the limit, those of these subjects among them
    places : their places in it
    """
    found, within_limit = check.verdicts, check.verdicts.within[places]
    surely_in, surely_out, outside = (
        each[places] for each in (found.kept, found.broken, found.outside)
    )
    known = ~np.isnan(within_limit)
    beyond = np.where(known, 1 - within_limit, 1.0)
    within = known.all() and not outside.any() and not check.disagrees[places].any()
    kept = within and beyond.sum() <= (1 - confidence) * len(subjects)
    broken, unsure = surely_out.any(), not kept
    verdict = Verdict.BROKEN if broken else Verdict.UNSURE if unsure else Verdict.KEPT
    table, growths = check.growth.table[places], check.models.shapes.growths
    open_ = ~(surely_in | surely_out)
    worst = 0
    if len(subjects) > 1:
        fastest = table @ np.arange(len(growths))
        worst = int(np.lexsort((fastest, beyond, open_, surely_out))[-1])
    probability, named = table[worst], np.empty(0, np.intp)
    if known[worst]:
        order = np.argsort(-probability, kind="stable")
        named = order[probability[order] >= min(_SHOWN, probability.max())]
        # Rankings show the growth of the model, which need not be the most probable one.
        own = int(check.growth.rank[places[worst]])
        if verdict is not Verdict.BROKEN or limit.limits.side(growths[own]):
            named = np.concatenate([[own], named[named != own]])
    decides, place = None, places[worst]
    disagrees = bool(check.disagrees[place]) and check.growth.part[place] >= 0
    if verdict is Verdict.UNSURE and not disagrees:
        undecided = check.models.take([int(places[worst])])
        run = float(deciding_run(undecided, limit.limits, confidence)[0])
        decides = scale_to_run(undecided.points, run) if np.isfinite(run) else None
    return Judgement(
        limit,
        verdict,
        subjects.row(worst),
        judged=len(subjects),
        broken=int(surely_out.sum()),
        unsure=int(open_.sum()),
        unmodelled=float(~known[worst]),
        outside=bool(outside[worst]),
        growths=tuple((growths[k], float(probability[k])) for k in named),
        meaning=subjects.meaning(worst, of_growth=True),
        beyond=float(beyond[worst]) if known[worst] else None,
        decides=decides,
        alone=growths[int(check.models.growth_rank()[place])] if disagrees else None,
        part=int(check.growth.part[place]) if disagrees else None,
        each=SubjectVerdicts(subjects.rows, surely_out, open_),
    )
