"""The model of a call path and its alternatives: what is listed, and how probable it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Alternative, FitStatus
from callpath_modeler.units import percent

_WORTH_A_WORD = 0.01
"""Relative weight from which on another hypothesis is listed."""
_MUCH_ALIKE = 1.1
"""Hypotheses whose predictions at the target differ by this factor at most are one."""
NO_OTHER = "no other compared model fits as well"
"""Stands in place of alternatives where there are none."""
_SUMS = {1: "single terms", 2: "sums of two terms"}


@dataclass(frozen=True, slots=True)
class HypothesisSummary:
    """What a call path may follow.

    Attributes
    ----------
    weight : probability of the model, with all that predict nearly the same at the target
    others : the alternatives, each with all that predict nearly the same, the most probable first
    is_outside : whether no law of the model class fits
    """

    weight: float
    others: Sequence[Alternative]
    is_outside: bool

    @property
    def sentence(self) -> str:
        """Say how probable the model is, and what its value is where others are more so."""
        text = f"probability {percent(self.weight)}"
        if self.is_outside:
            # Of forms that were tried for want of a law, a share says nothing of the next scale.
            text = "closest form tried, no law fits"
        if any(other.weight > self.weight for other in self.others):
            text += "; its value is in the middle of all that could be"
        return text


def hypotheses(fitted: Fitted, row: int, target: float, *, ascii_only: bool) -> HypothesisSummary:
    """Return what a call path may follow, as far as that is worth a word.

    Hypotheses in several parameters that are the same along one are listed once.
    """
    models = fitted.models
    of_classic = models.method == "classic"
    weight, value = float(models.weight[row]), np.nan
    if np.isfinite(target) and not of_classic:
        value = float(models.take([row]).values([target])[0, 0])
    found: list[tuple[Alternative, float]] = []
    for other in models.alternatives(row, fitted.parameter, pretty=not ascii_only):
        its = np.nan if np.isnan(value) else float(other.values([target])[0])
        if _alike(its, value):
            weight += other.weight
            continue
        for place, (first, at) in enumerate(found):
            if first.formula == other.formula or _alike(its, at):
                found[place] = replace(first, weight=first.weight + other.weight), at
                break
        else:
            found.append((other, its))
    ordered = sorted((other for other, _ in found), key=lambda other: -other.weight)
    outside = FitStatus(int(models.status[row])) is FitStatus.OUTSIDE
    listed = [other for other in ordered if other.weight >= _WORTH_A_WORD]
    return HypothesisSummary(min(weight, 1.0), listed, outside and not of_classic)


def _alike(one: float, other: float) -> bool:
    """Tell whether predictions are nearly the same; unknown ones are not."""
    # No number is smaller than one that is none.
    return one <= _MUCH_ALIKE * other and other <= _MUCH_ALIKE * one


def compared_text(fitted: Fitted) -> str:
    """Name the kinds of models that were compared, and the kind that needs an option.

    ``compared: powers, logarithms, sums of two terms, breaks; not compared: exponentials``
    """
    models, space = fitted.models, fitted.models.space
    kinds = ["powers", *["logarithms"] * any(space.logs)]
    kinds.append(_SUMS.get(space.max_terms, f"sums of up to {space.max_terms} terms"))
    kinds += ["breaks"] * (models.method != "classic")
    if space.exponential:
        return f"compared: {', '.join([*kinds, 'exponentials'])}"
    return f"compared: {', '.join(kinds)}; not compared: exponentials"
