"""Excess work between a measured scale and a target whose costs are predicted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import ModelBands
from callpath_modeler.analysis.bands import Band
from callpath_modeler.analysis.ensemble import Losses, PredictedTarget, relative_excess
from callpath_modeler.analysis.excess import per_process
from callpath_modeler.analysis.excess_bands import excess_band, expected_band
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling.constants.sums import COLUMNS
from callpath_modeler.profile.groups import Costs
from callpath_modeler.profile.outline import Outline
from callpath_modeler.units import parameter_value, setting_text


def with_target(losses: Losses, fitted: Fitted, target: float) -> Losses:
    """Return excess work with one more pair: the base of the last pair, and a target.

    The cost at the target is predicted. Call paths without a model are excluded from this pair at
    both scales.

    Parameters
    ----------
    losses : excess work between measured scales
    fitted : models of the same runs, with the same values of the other parameters
    target : a scale that was not measured

    Raises
    ------
    UsageError
        If the target was measured, is infinite or is not above the base, or if no cost is expected
        there.
    DataError
        If the predicted total is zero.
    """
    base, parameter = losses.pairs[-1][0], losses.parameter
    at, pair = setting_text({parameter: target}), (base, target)
    if not np.isfinite(target):
        raise UsageError("no excess work at infinity", hint="--target with a number")
    if target <= base:
        raise UsageError(
            f"the target {at} is not above the base, {setting_text({parameter: base})}",
            hint="a larger --target, or a smaller --base",
        )
    if target in fitted.points:
        scales = f"{parameter_value(base)},{parameter_value(target)}"
        raise UsageError(f"{at} was measured", hint=f"--pair {scales} compares the measurements")
    if gap := losses.ideal.gap(*pair):
        raise UsageError(f"no excess work at the target: {gap}", hint="another --expect")
    found = answer_at(fitted, target)
    assert isinstance(found.bands, ModelBands)
    after = per_process(losses.experiment, parameter, found.costs.value.exclusive[:, 0], target)
    before = losses.costs.exclusive[:, losses.columns(len(losses.pairs) - 1)[0]]
    before = np.where(fitted.modelled, before, np.nan)
    tree, cost = losses.experiment.tree, np.column_stack([before, after])
    expected, excess = relative_excess(losses.ideal, pair, cost, (0, 1), losses.metric, parameter)
    expected = np.where(fitted.modelled, expected, 0.0)
    excess = np.where(fitted.modelled, excess, np.nan)
    costs = Costs.of(tree, cost)
    run_time = np.nan if found.run_time is None else found.run_time.total[0]
    count = len(losses.points)
    return replace(
        losses,
        pairs=(*losses.pairs, pair),
        points=np.array([*losses.points, *pair]),
        places=(*losses.places, (count, count + 1)),
        costs=_beside(losses.costs, costs),
        run_time=np.concatenate([losses.run_time, costs.total]),
        slowest=np.array([*losses.slowest, np.nan, run_time]),
        expected=_beside(losses.expected, Costs.of(tree, expected)),
        excess=_beside(losses.excess, Costs.of(tree, excess)),
        prediction=PredictedTarget(
            target,
            found.costs.value,
            found.bands.costs,
            fitted.modelled,
            found.inputs.unmodelled_share,
            fitted.models.confidence,
        ),
    )


def _beside(first: Costs, second: Costs) -> Costs:
    """Return the columns of both."""
    return Costs(
        np.asfortranarray(np.column_stack([first.exclusive, second.exclusive])),
        np.asfortranarray(np.column_stack([first.inclusive, second.inclusive])),
    )


def bands_at_target(losses: Losses, outline: Outline) -> tuple[Band, Band]:
    """Return the excess work of lines at the target with bands, exclusive and inclusive.

    Parameters
    ----------
    losses : result of `with_target`
    outline : the lines
    """
    both = [outline.values(costs) for costs in _columns(losses)]
    own, whole = (_band(losses, *(values[kind] for values in both)) for kind in (0, 1))
    return own, whole


def band_of_total(losses: Losses) -> Band:
    """Return the excess work of the whole program at the target with its band, [1].

    Parameters
    ----------
    losses : result of `with_target`
    """
    return _band(losses, *(costs.total[None] for costs in _columns(losses)))


def _columns(losses: Losses) -> tuple[Costs, Costs, Costs, Costs]:
    """Return additive columns: predictions, their addends, expected costs, and their addends."""
    found, tree = losses.prediction, losses.experiment.tree
    assert found is not None
    modelled = found.modelled[:, None]
    addends = losses.ideal.added(found.target)
    expected = np.zeros((len(tree), COLUMNS)) if addends is None else addends
    return (
        found.value,
        found.addends,
        losses.expected.only(len(losses.pairs) - 1),
        Costs.of(tree, np.where(modelled, expected, 0.0)),
    )


def _band(
    losses: Losses,
    value: FloatArray,
    addends: FloatArray,
    expected: FloatArray,
    expected_addends: FloatArray,
) -> Band:
    """Return excess work with its band, [n], from sums of `_columns`, each [n, columns]."""
    found = losses.prediction
    assert found is not None
    total = float(found.value.total[0]), found.addends.total
    one = float(per_process(losses.experiment, losses.parameter, np.ones(1), found.target)[0])
    has_band = losses.ideal.added(found.target) is not None
    spent = expected_band(expected[:, 0], expected_addends if has_band else None, one)
    return excess_band(value[:, 0], addends, total, spent, one)
