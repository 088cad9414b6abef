"""Comparison of models with growth limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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


@dataclass(frozen=True, eq=False)
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

    # A file has up to 10^5 expectations of one call path each: lists are read faster than arrays.

    @cached_property
    def within(self) -> list[float]:
        """Probability that the growth is within the limit, [n]; NaN = no model."""
        within: list[float] = self.verdicts.within.tolist()
        return within

    @cached_property
    def is_doubtful(self) -> list[bool]:
        """True if no law explains the measurements, or a model and its parts disagree, [n]."""
        doubtful: list[bool] = (self.verdicts.outside | self.disagrees).tolist()
        return doubtful

    @cached_property
    def is_open(self) -> BoolArray:
        """True if the data do not decide, [n]."""
        return ~(self.verdicts.kept | self.verdicts.broken)

    @cached_property
    def _in_order(self) -> tuple[IntArray, list[int]]:
        """Growths from the most probable to the least, and how many of them are named, [n]."""
        table = self.growth.table
        least = np.minimum(_SHOWN, table.max(axis=1, keepdims=True))
        return np.argsort(-table, axis=1, kind="stable"), (table >= least).sum(axis=1).tolist()

    def probable_growths(self, place: int) -> list[int]:
        """Return the growths of a subject that are named, the most probable first."""
        order, count = self._in_order
        found: list[int] = order[place, : count[place]].tolist()
        return found


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
    its = places.tolist()
    known = [check.within[k] == check.within[k] for k in its]
    beyond = [
        1 - check.within[k] if is_known else 1.0 for k, is_known in zip(its, known, strict=True)
    ]
    surely_out, open_ = check.verdicts.broken[places], check.is_open[places]
    within = all(known) and not any(check.is_doubtful[k] for k in its)
    kept = within and sum(beyond) <= (1 - confidence) * len(subjects)
    broken, unsure = surely_out.any(), not kept
    verdict = Verdict.BROKEN if broken else Verdict.UNSURE if unsure else Verdict.KEPT
    growths, worst = check.models.shapes.growths, 0
    if len(subjects) > 1:
        fastest = check.growth.table[places] @ np.arange(len(growths))
        worst = int(np.lexsort((fastest, np.array(beyond), open_, surely_out))[-1])
    named, probability = list[int](), check.growth.table[its[worst]]
    if known[worst]:
        named = check.probable_growths(its[worst])
        # Rankings show the growth of the model, which need not be the most probable one.
        own = int(check.growth.rank[its[worst]])
        if verdict is not Verdict.BROKEN or limit.limits.side(growths[own]):
            named = [own, *(each for each in named if each != own)]
    decides, place = None, its[worst]
    disagrees = bool(check.disagrees[place]) and check.growth.part[place] >= 0
    if verdict is Verdict.UNSURE and not disagrees:
        undecided = check.models.take([place])
        run = float(deciding_run(undecided, limit.limits, confidence)[0])
        decides = scale_to_run(undecided.points, run) if np.isfinite(run) else None
    return Judgement(
        limit,
        verdict,
        subjects.row(worst),
        judged=len(subjects),
        broken=int(surely_out.sum()),
        unsure=int(open_.sum()),
        unmodelled=float(not known[worst]),
        outside=bool(check.verdicts.outside[place]),
        growths=tuple((growths[k], float(probability[k])) for k in named),
        meaning=subjects.meaning(worst, of_growth=True),
        beyond=beyond[worst] if known[worst] else None,
        decides=decides,
        alone=growths[int(check.models.growth_rank()[place])] if disagrees else None,
        part=int(check.growth.part[place]) if disagrees else None,
        each=SubjectVerdicts(subjects.rows, surely_out, open_),
    )
