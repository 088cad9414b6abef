"""The model of a call path and its alternatives, with probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import structs

from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Alternative, FitStatus
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.units import percent

_WORTH_A_WORD = 0.01
"""Relative weight from which another hypothesis is listed."""
_MUCH_ALIKE = 1.1
"""Hypotheses whose predictions at the target differ by at most this factor are merged."""
NO_OTHER = "no other compared model fits as well"
"""Text in place of an empty list of alternatives."""
_SUMS = {1: "single terms", 2: "sums of two terms"}


@dataclass(frozen=True, slots=True)
class HypothesisSummary:
    """The possible models of a call path.

    Attributes
    ----------
    weight : probability of the model and all hypotheses with nearly the same prediction at the
        target
    others : alternatives, the most probable first; each includes all hypotheses with nearly the
        same prediction
    is_outside : whether no law of the model class fits
    """

    weight: float
    others: Sequence[Alternative]
    is_outside: bool

    @property
    def sentence(self) -> str:
        """Return the probability of the model, with a note if another model is more probable."""
        text = f"probability {percent(self.weight)}"
        if self.is_outside:
            # If no law fits, the weight of the closest form is no probability for the next scale.
            text = "no law fits; the closest form is shown"
        if any(other.weight > self.weight for other in self.others):
            text += "; chosen because its prediction is in the middle of all"
        return text


def hypotheses(fitted: Fitted, row: int, target: float, *, style: TextStyle) -> HypothesisSummary:
    """Return the possible models of a call path that are probable enough to list.

    Hypotheses in several parameters that are the same along one parameter are listed once.
    """
    models = fitted.models
    of_classic = models.method == "classic"
    weight, value = float(models.weight[row]), np.nan
    if np.isfinite(target) and not of_classic:
        value = float(models.take([row]).values([target])[0, 0])
    found: list[tuple[Alternative, float]] = []
    for other in models.alternatives(row, fitted.parameter, pretty=not style.ascii_only):
        its = np.nan if np.isnan(value) else float(other.values([target])[0])
        if _alike(its, value):
            weight += other.weight
            continue
        for place, (first, at) in enumerate(found):
            if first.formula == other.formula or _alike(its, at):
                found[place] = structs.replace(first, weight=first.weight + other.weight), at
                break
        else:
            found.append((other, its))
    ordered = sorted((other for other, _ in found), key=lambda other: -other.weight)
    outside = FitStatus(int(models.status[row])) is FitStatus.OUTSIDE
    listed = [other for other in ordered if other.weight >= _WORTH_A_WORD]
    return HypothesisSummary(min(weight, 1.0), listed, outside and not of_classic)


def _alike(one: float, other: float) -> bool:
    """Return whether two predictions are nearly the same; unknown predictions are not."""
    # Comparisons with NaN are false.
    return one <= _MUCH_ALIKE * other and other <= _MUCH_ALIKE * one


def compared_text(fitted: Fitted) -> str:
    """Return the kinds of models that were compared, and the kind that needs an option.

    ``compared: powers, logarithms, sums of two terms, breaks; not compared: exponentials``
    """
    models, space = fitted.models, fitted.models.space
    kinds = ["powers", *["logarithms"] * any(space.logs)]
    kinds.append(_SUMS.get(space.max_terms, f"sums of up to {space.max_terms} terms"))
    kinds += ["breaks"] * (models.method != "classic")
    if space.exponential:
        return f"compared: {', '.join([*kinds, 'exponentials'])}"
    return f"compared: {', '.join(kinds)}; not compared: exponentials"
