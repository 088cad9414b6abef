"""Whether enough repetitions were made.

The field's rule of thumb: a mean is known well enough where its 95 % confidence interval, by
Student's t, lies within 5 % of it. It is asked of the call paths that carry cost; the worst of a
point decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.excess import CARRIES_COST
from callpath_modeler.diagnostics import Finding
from callpath_modeler.modeling.distributions import student_quantile
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.groups import Rows, Values
from callpath_modeler.profile.pattern import short_name
from callpath_modeler.units import counted, setting_text

CONFIDENCE = 0.95
WITHIN = 0.05

_MOST = 1000
"""More repetitions than these are not worth a number."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """A point that was repeated too few times.

    Attributes
    ----------
    setting : values of the varying parameters
    made : repetitions
    needed : repetitions by which the rule should hold, if they scatter as these do
    row : the call path that is known least
    within : half the width of its interval, as fraction of its mean
    """

    setting: tuple[float, ...]
    made: int
    needed: int
    row: int
    within: float


def shortages(experiment: Experiment, metric: str | None = None) -> list[Shortage]:
    """Return the points that were repeated too few times; those measured once cannot be judged.

    Parameters
    ----------
    metric : None = the run time
    """
    values = experiment.values(metric)
    reach = _reach(np.arange(2, _MOST + 1))
    found = []
    for setting, runs in experiment.runs_by_setting().items():
        at_point = values[:, runs]
        rows = _costly(at_point, additive=experiment.metric(metric).additive)
        made = (~np.isnan(at_point[rows])).sum(axis=1)
        rows, made = rows[made > 1], made[made > 1]
        if not len(rows):
            continue
        spread = np.nanstd(at_point[rows], axis=1, ddof=1) / np.nanmean(at_point[rows], axis=1)
        width = _reach(made) * spread
        worst = int(np.argmax(width))
        if width[worst] > WITHIN:
            needed = int(np.searchsorted(-reach * spread[worst], -WITHIN)) + 2
            found.append(
                Shortage(setting, int(made[worst]), needed, int(rows[worst]), float(width[worst]))
            )
    return found


def _costly(values: Values, *, additive: bool) -> Rows:
    """Return the rows that carry cost, of values [call paths, repetitions]."""
    present = ~np.isnan(values)
    mean = np.nansum(values, axis=1) / np.maximum(present.sum(axis=1), 1)
    least = CARRIES_COST * mean.sum() if additive else 0.0
    return np.flatnonzero((mean > 0) & (mean >= least))


def _reach(number: Rows) -> Values:
    """Return half the width of an interval in standard deviations, by number of repetitions."""
    freedom = np.asarray(number - 1, np.float64)
    return student_quantile(freedom, 0.5 + CONFIDENCE / 2) / np.sqrt(number)


def repetition_findings(experiment: Experiment, metric: str | None = None) -> list[Finding]:
    """Say in one finding how many repetitions are missing, and where."""
    short = shortages(experiment, metric)
    if not short:
        return []
    worst = max(short, key=lambda shortage: shortage.within)
    names = [parameter.name for parameter in experiment.parameters]

    def where(shortage: Shortage) -> str:
        return setting_text(dict(zip(names, shortage.setting, strict=True)))

    def more(shortage: Shortage) -> str:
        add = shortage.needed - shortage.made
        amount = f"{add}" if shortage.needed <= _MOST else f"over {_MOST}"
        return f"{amount} at {where(shortage)}" if names else amount

    path = "/".join(short_name(name) for name in experiment.tree.names(worst.row))
    place = f" at {where(worst)}" if names else ""
    message = (
        f"{counted(len(short), 'point')}: the mean of a call path that carries cost is known to "
        f"{worst.within:.0%} at worst ({path}{place}); "
        f"repetitions to add: {'; '.join(more(shortage) for shortage in short)}"
    )
    return [Finding("CPM134", experiment.metric(metric).name, message, len(short))]
