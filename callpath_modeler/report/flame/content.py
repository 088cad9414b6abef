"""Contents of a flame graph: costs at a scale, and the meaning of colours."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from callpath_modeler.analysis.ensemble import Losses
from callpath_modeler.analysis.excess import excess_beyond, per_process
from callpath_modeler.analysis.ideals import ideal_of
from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.ideal import Ideal
from callpath_modeler.modeling import Growth
from callpath_modeler.modeling.growth import CONSTANT_GROWTH
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.growths import model_range_texts
from callpath_modeler.report.headline import target_text
from callpath_modeler.report.ranking_text import unmodelled_notes
from callpath_modeler.units import counted, parameter_value, percent, setting_text

STEPS = 10
"""Steps of a colour scale on either side of its middle."""
NO_MODEL = -1
"""Stands for the colour of call paths without a model."""
GROWTHS = ("O(1) or falling", "up to log", "slower than linear", "linear", "faster than linear")
"""Classes of growths, slowest first."""


class ColorBy(StrEnum):
    """Meaning of the colours of a flame graph.

    Attributes
    ----------
    EXCESS : the part of the cost beyond the expected cost
    SHARE : the change of the share of the total since a smaller scale
    GROWTH : the growth of the exclusive cost of a call path
    NONE : no meaning
    """

    EXCESS = "excess"
    SHARE = "share"
    GROWTH = "growth"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Flame:
    """Contents of a flame graph.

    Attributes
    ----------
    tree : n call paths
    metric : what widths are
    title : of what, and at which scale
    inclusive, exclusive : [n] costs, none below zero
    color_by : what colours show
    colours : [n] steps of the scale, from -`STEPS` to `STEPS`; or numbers of `GROWTHS`, or
        `NO_MODEL`
    meaning : what colours show, in words
    texts : further lines about frames: each [n]
    notes : sentences about costs without a frame
    """

    tree: CallTree
    metric: Metric
    title: str
    inclusive: FloatArray
    exclusive: FloatArray
    color_by: ColorBy
    colours: IntArray
    meaning: str
    texts: tuple[list[str], ...] = ()
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Scales:
    """Exclusive costs per process at two scales, each [call paths]; NaN = not known.

    The run time is that at the larger scale; None = the sum of the costs.
    """

    experiment: Experiment
    parameter: str
    base: float
    scale: float
    before: FloatArray
    after: FloatArray
    ideal: Ideal
    run_time: float | None = None


def plain(experiment: Experiment, metric: Metric, costs: FloatArray) -> Flame:
    """Return the flame graph of one profile, without a meaning of colours."""
    title = f"{experiment.name} · {metric.name}, {experiment.reduction.words}"
    nothing = np.zeros(len(costs), np.intp)
    return _made(experiment, metric, title, costs, ColorBy.NONE, nothing, "")


def of_losses(losses: Losses, color_by: ColorBy) -> Flame:
    """Return the flame graph of the largest measured scale against the base of the losses."""
    (p, q), k = losses.pairs[-1], len(losses.pairs) - 1
    before, after = (losses.costs.exclusive[:, column] for column in losses.columns(k))
    run_time = float(losses.run_time[losses.columns(k)[1]])
    scales = _Scales(
        losses.experiment, losses.parameter, p, q, before, after, losses.ideal, run_time
    )
    at = setting_text(losses.line.at(q))
    title = f"{losses.experiment.name} · {_measure(losses.experiment, losses.metric)} at {at}"
    return _compared(scales, losses.metric, f"{title} (measured)", color_by)


def of_ranking(
    ranking: Ranking, color_by: ColorBy, base: float | None, *, at_largest: bool
) -> Flame:
    """Return the flame graph of a target.

    Parameters
    ----------
    ranking : of exclusive values
    base : a measured scale; None = the smallest
    at_largest : show the largest measured scale in place of the target, for growths
    """
    fitted = ranking.fitted
    costs = fitted.measured[:, -1] if at_largest else ranking.value
    at, known = target_text(ranking), [] if ranking.repetitions else unmodelled_notes(ranking)
    if at_largest:
        at, known = f"{setting_text(fitted.at(float(fitted.points[-1])))} (measured)", []
    title = f"{fitted.experiment.name} · {_measure(fitted.experiment, fitted.metric)} at {at}"
    if color_by is ColorBy.GROWTH:
        return _by_growth(fitted, title, costs, known)
    if color_by is ColorBy.NONE:
        nothing = np.zeros(len(costs), np.intp)
        return _made(
            fitted.experiment, fitted.metric, title, costs, color_by, nothing, "", notes=known
        )
    first = fitted.base if base is None else base
    before = _at_base(fitted, first, ranking.target)
    if not ranking.repetitions:
        before = np.where(fitted.modelled, before, np.nan)
    experiment, parameter = fitted.experiment, fitted.parameter
    before = per_process(experiment, parameter, before, first)
    after = per_process(experiment, parameter, costs, ranking.target)
    scales = _Scales(
        experiment,
        parameter,
        first,
        ranking.target,
        before,
        after,
        ideal_of(fitted),
        ranking.cost_per_process,
    )
    return _compared(scales, fitted.metric, title, color_by, known)


def _at_base(fitted: Fitted, base: float, target: float) -> FloatArray:
    """Return exclusive costs at a measured scale below the target."""
    found = np.flatnonzero(fitted.points == base)
    name = fitted.parameter
    if not len(found) or base >= target:
        listed = ", ".join(parameter_value(at) for at in fitted.points if at < target)
        raise UsageError(
            f"no measured scale below the target is {name} = {parameter_value(base)}",
            hint=f"--base with one of {listed}" if listed else "--color-by none",
        )
    if fitted.held == fitted.measured_at:
        return np.asarray(fitted.measured[:, found[0]])
    return np.asarray(fitted.models.values(np.array([base]))[:, 0])


def _measure(experiment: Experiment, metric: Metric) -> str:
    return ", ".join(part for part in (metric.name, experiment.reduction.words) if part)


def _compared(
    scales: _Scales, metric: Metric, title: str, color_by: ColorBy, notes: list[str] | None = None
) -> Flame:
    """Return a flame graph whose colours compare two scales."""
    if color_by is ColorBy.NONE:
        nothing = np.zeros(len(scales.after), np.intp)
        return _made(scales.experiment, metric, title, scales.after, color_by, nothing, "")
    by = _by_share if color_by is ColorBy.SHARE else _by_excess
    return by(scales, metric, title, notes or [])


def _by_excess(scales: _Scales, metric: Metric, title: str, notes: list[str]) -> Flame:
    tree, ideal = scales.experiment.tree, scales.ideal
    if gap := ideal.gap(scales.base, scales.scale):
        raise UsageError(f"no excess work: {gap}", hint="--base with another scale")
    expected = ideal.cost(scales.base, scales.scale, np.nan_to_num(scales.before))
    # Call paths without a model are excluded, so nothing is expected of them.
    expected = np.where(np.isnan(scales.after) & np.isnan(scales.before), 0.0, expected)
    found = excess_beyond(
        tree, (scales.base, scales.scale), expected, scales.after, scales.run_time
    )
    part = 1 - np.nan_to_num(found.efficiency, nan=1.0)
    pairs = zip(found.inclusive.tolist(), found.exclusive.tolist(), strict=True)
    since = f" since {scales.parameter} = {parameter_value(scales.base)}" * ideal.is_relative
    texts = [
        f"excess work{since}: {percent(whole, 1)} of the total, {percent(own, 1)} exclusive"
        for whole, own in pairs
    ]
    meaning = f"part of the cost that is excess work{since} ({ideal.meaning})"
    vanished = _vanished(scales, notes)
    return _made(
        scales.experiment, metric, title, scales.after, ColorBy.EXCESS, _steps(part), meaning,
        (texts,), vanished,
    )  # fmt: skip


def _by_share(scales: _Scales, metric: Metric, title: str, notes: list[str]) -> Flame:
    tree = scales.experiment.tree
    before, after = (_shares(tree, np.fmax(costs, 0.0)) for costs in (scales.before, scales.after))
    larger = np.maximum(before, after)
    change = np.divide(after - before, larger, out=np.zeros_like(after), where=larger > 0)
    first, last = (parameter_value(at) for at in (scales.base, scales.scale))
    name = scales.parameter
    texts = [
        f"share: {percent(was, 1)} at {name} = {first}, {percent(now, 1)} at {name} = {last}"
        for was, now in zip(before.tolist(), after.tolist(), strict=True)
    ]
    meaning = f"change of the share of the total since {name} = {first}; red has grown"
    return _made(
        scales.experiment, metric, title, scales.after, ColorBy.SHARE, _steps(change), meaning,
        (texts,), _vanished(scales, notes),
    )  # fmt: skip


def _shares(tree: CallTree, costs: FloatArray) -> FloatArray:
    whole = float(np.nansum(costs))
    return tree.inclusive(np.nan_to_num(costs)) / whole if whole > 0 else np.zeros(len(costs))


def _vanished(scales: _Scales, notes: list[str]) -> list[str]:
    """Count the call paths that have a cost at the base only, and so have no width."""
    gone = (np.nan_to_num(scales.before) > 0) & ~(np.nan_to_num(scales.after) > 0)
    if not gone.any():
        return notes
    share = float(np.nansum(scales.before[gone]) / np.nansum(np.fmax(scales.before, 0.0)))
    base, scale = (
        f"{scales.parameter} = {parameter_value(at)}" for at in (scales.base, scales.scale)
    )
    count = counted(int(gone.sum()), "call path")
    return [*notes, f"no width: {count} without own cost at {scale}, {percent(share)} at {base}"]


def _by_growth(fitted: Fitted, title: str, costs: FloatArray, notes: list[str]) -> Flame:
    classes = np.full(len(costs), NO_MODEL)
    texts = ["no model"] * len(costs)
    modelled = np.flatnonzero(fitted.modelled)
    said = model_range_texts(fitted, modelled, pretty=True)
    for row, text in zip(modelled.tolist(), said, strict=True):
        classes[row] = growth_class(fitted.models.growth(row))
        texts[row] = f"exclusive cost grows as {text}"
    meaning = f"growth of exclusive costs with {fitted.parameter}"
    return _made(
        fitted.experiment, fitted.metric, title, costs, ColorBy.GROWTH, classes, meaning,
        (texts,), notes,
    )  # fmt: skip


def growth_class(growth: Growth) -> int:
    """Return which of `GROWTHS` a growth is one of."""
    if growth <= CONSTANT_GROWTH:
        return 0
    rate, exponent, log = growth.order
    if rate > 0 or exponent > 1 or (exponent == 1 and log > 0):
        return 4
    if exponent == 1 and log == 0:
        return 3
    return 1 if exponent == 0 else 2


def _steps(values: FloatArray) -> IntArray:
    return np.rint(np.clip(np.nan_to_num(values), -1, 1) * STEPS).astype(np.intp)


def check_additive(metric: Metric) -> None:
    """Raise `UsageError` where a metric does not add up over call paths."""
    if not metric.additive:
        raise UsageError(
            f"no flame graph: {metric.name} does not add up over call paths",
            hint="-m with one that does",
        )


def _made(
    experiment: Experiment,
    metric: Metric,
    title: str,
    costs: FloatArray,
    color_by: ColorBy,
    colours: IntArray,
    meaning: str,
    texts: tuple[list[str], ...] = (),
    notes: list[str] | None = None,
) -> Flame:
    check_additive(metric)
    found = list(notes or [])
    below = int((costs < 0).sum())
    if below:
        found.append(f"no width: {counted(below, 'call path')} with own values below zero")
    own = np.fmax(np.nan_to_num(costs, posinf=0.0, neginf=0.0), 0.0)
    if not own.any():
        raise UsageError(
            f"no flame graph: {metric.name} is zero everywhere", hint="-m with another metric"
        )
    tree = experiment.tree
    return Flame(
        tree, metric, title, tree.inclusive(own), own, color_by, colours, meaning, texts, found
    )
