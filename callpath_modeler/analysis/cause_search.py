"""The search for causes of growth: one label for each call path.

The data flow is

1. `callpath_modeler.profile.call_class` tells which cost law can hold for a call path;
2. `cause_needs` collects time, noise, requirements and delays of some call paths, at all points and
   at the target;
3. `laws_of_time` lists the cost laws of a class, such as ``t = m (c1 + c2 s)`` for messages, with
   their sources, and turns them into regressions: requirements alone, with a delay, or with
   waiting;
4. `cause` gives every hypothesis a probability and non-negative coefficients, for all call paths at
   once;
5. this module decides on one label for each call path, or none;
6. `cause` predicts the explained and the unexplained time of one call path at the target, with
   bands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.analysis.cause import (
    CLEAR,
    COLLECTIVE,
    IMBALANCE,
    LEAST_PROBABILITY,
    MOSTLY,
    NOTHING,
    UNEXPLAINED,
    Causes,
    Group,
    regress,
)
from callpath_modeler.analysis.cause_needs import Needs, times_of, with_needs
from callpath_modeler.analysis.laws_of_time import Driver, Kind, hypotheses
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.call_class import CallClass

_GROWS = 1.1
"""Factor between base and target from which on a time grows."""
_SURE = 2.6
"""Growth in standard errors that chance does not explain (99 %, two sides)."""
_VERY_SURE = 4.0
"""Growth in standard errors from which on it counts even if the band of the model is wide."""
_FEWEST = 3
"""Number of scales from which on a growth has a cause."""
_UNEVEN = 1.25
"""Growth of the ratio of largest to mean from which on imbalance may be a cause."""
_BEYOND_CHANCE = 1.5
"""Growth of the imbalance relative to that of random delays from which on it counts."""
_STEADY = 0.2
"""Relative scatter of the excess of the slowest process between runs up to which it is the same."""
_DELAY_COST = (0.4, 1.6)
"""Range of the wait per second of delay; a process waits for at most the whole delay."""


def find_causes(
    fitted: Fitted,
    target: float,
    rows: Sequence[int] | IntArray,
    *,
    examine_all: bool = False,
) -> Causes | None:
    """Return the causes of growth of some call paths.

    Parameters
    ----------
    fitted : models of a time
    target : value of the parameter, may be infinite
    rows : [n] call paths
    examine_all : True = hypotheses about call paths that do not grow as well

    Returns
    -------
    Causes or None
        None if the metric is no time that adds up over call paths.
    """
    if not (fitted.metric.is_time and fitted.metric.additive):
        return None
    chosen = np.asarray(rows, np.intp)
    tree = fitted.experiment.tree
    of_region = [region.call_class for region in tree.regions]
    classes = np.array([of_region[region] for region in tree.region[chosen]], object)
    bare = times_of(fitted, target, chosen)
    grows, uneven = _grows(bare, fitted), _uneven(bare, classes)
    # The mean over all processes of what a group does falls with its part of them.
    uneven &= ~tree.in_groups[chosen]
    labels = np.where(uneven, IMBALANCE, NOTHING).astype(object)
    worth = np.flatnonzero(bare.time.any(axis=1) if examine_all else grows & ~uneven)
    needs = with_needs(bare.take(worth), fitted)
    inflation = np.ones(len(chosen))
    source = np.full(len(chosen), -1, np.intp)
    groups = []
    for kind in dict.fromkeys(classes[worth].tolist()):
        here = np.flatnonzero(classes[worth] == kind)
        part = needs.take(here)
        group, inflation[worth[here]] = _weighed(part, kind, worth[here])
        groups.append(group)
        if not part.found and not (part.source >= 0).any():
            continue
        found = _labels(group, part, kind)
        for k, place in enumerate(worth[here].tolist()):
            if not grows[place] or uneven[place]:
                continue
            waits = found[k] in {Driver.SOURCE.value, Driver.WAITS.value}
            # Waiting by another law than that of the delay may still be caused by it.
            if waits and part.delays_mostly(k):
                source[place] = part.source[k]
                labels[place] = f"{Driver.SOURCE.value} {tree.name(int(part.source[k]))}"
            elif part.found:
                # Without requirements, nothing tells waiting from longer transfers.
                labels[place] = Driver.WAITS.value if waits else found[k]
    whole = bare.filled(worth, needs)
    return Causes(
        *(fitted, whole, tuple(classes.tolist()), grows | uneven, tuple(labels.tolist())),
        *(source, tuple(groups), inflation),
    )


def _grows(needs: Needs, fitted: Fitted) -> BoolArray:
    """Return which times grow beyond perfect scaling, at the scales and up to the target, [n]."""
    used = np.isfinite(needs.error)
    score = _rise(needs.time * needs.ideal[:-1], needs.error, needs.points[:-1])
    first = np.argmax(used, axis=1)
    at = np.arange(len(needs.rows))
    with np.errstate(divide="ignore", invalid="ignore"):
        base = needs.time[at, first] * needs.ideal[first]
        factor = needs.at_target * needs.ideal[-1] / base
    # Any two times lie on many laws, so they tell no cause.
    later = (needs.points[first] < needs.points[-1]) & (used.sum(axis=1) >= _FEWEST)
    found = (score > _SURE) & later & (np.nan_to_num(factor) >= _GROWS)
    doubtful = np.flatnonzero(found & (score <= _VERY_SURE))
    if len(doubtful):
        models = fitted.models.take(needs.rows[doubtful])
        low = models.predict(needs.points[-1:]).low[:, 0] * needs.ideal[-1]
        found[doubtful] = low > base[doubtful]
    return np.asarray(found)


def _rise(values: FloatArray, error: FloatArray, x: FloatArray) -> FloatArray:
    """Return the rise of values [n, K] with relative errors in standard errors, [n]."""
    weight = np.where((values > 0) & np.isfinite(error), error, np.inf) ** -2.0
    log_y = np.log(np.where(values > 0, values, 1.0))
    log_x = np.broadcast_to(np.log(x), values.shape)
    total = np.maximum(weight.sum(axis=1), np.finfo(float).tiny)
    away = log_x - (weight * log_x).sum(axis=1, keepdims=True) / total[:, None]
    square = (weight * away**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (weight * away * log_y).sum(axis=1) / square
        score = slope * np.sqrt(square)
    return np.asarray(np.nan_to_num(score))


def _uneven(needs: Needs, classes: FloatArray) -> BoolArray:
    """Return in which computations the largest time grows and the mean hardly does, [n]."""
    computes = np.array([kind.computes for kind in classes.tolist()], bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = needs.largest / needs.mean
    is_long = ratio.shape[1] >= _FEWEST
    known: BoolArray = np.isfinite(ratio).all(axis=1) & computes & is_long
    if not known.any():
        return np.asarray(known)
    ratio = np.where(known[:, None], ratio, 1.0)
    largest = np.where(known[:, None], needs.largest, 1.0) * needs.ideal[:-1]
    error = np.where(np.isfinite(needs.ratio_error), needs.ratio_error, np.inf)
    rising = _rise(ratio, np.hypot(error, needs.error), needs.points[:-1]) > _SURE
    rising &= _rise(largest, np.hypot(error, needs.error), needs.points[:-1]) > _SURE
    # The largest of p random delays is larger than the mean by log p times their scatter, that of p
    # normal times by sqrt(2 log p) times it. Random delays differ between repetitions.
    chance = np.log(max(needs.processes[-2], 2.0)) / np.log(max(needs.processes[0], 2.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        scatter = needs.ratio_scatter * ratio[:, -1] / (ratio[:, -1] - 1)
    by_chance = np.where(scatter <= _STEADY, np.sqrt(chance), _BEYOND_CHANCE * chance)
    rising &= ratio[:, -1] - 1 > by_chance * (ratio[:, 0] - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_ratio = np.log(ratio[:, -1] / ratio[:, 0])
        of_largest = np.log(largest[:, -1] / largest[:, 0])
    much = (of_ratio >= np.log(_UNEVEN)) & (of_ratio >= MOSTLY * of_largest)
    return np.asarray(known & rising & much & (of_largest >= np.log(_GROWS)))


def _weighed(needs: Needs, kind: CallClass, places: IntArray) -> tuple[Group, FloatArray]:
    """Return the hypotheses about call paths of one class, and the inflation of their noise."""
    made = hypotheses(needs, kind)
    sigma = np.where(np.isfinite(needs.error), needs.error, 0.0) * needs.time
    regressions = []
    for each in made:
        spread = sigma
        scatter = each.features[-1].scatter
        if scatter is not None:
            spread = np.hypot(sigma, scatter)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = np.where(np.isfinite(spread) & (spread > 0), 1 / spread, 0.0)
        features = np.stack([f.values[:, :-1] for f in each.features], axis=2)
        regressions.append(regress(needs.time, weight, features))
    used = np.isfinite(needs.error).sum(axis=1)
    holds = np.stack([fit.holds for fit in regressions], axis=1)
    for h, (each, fit) in enumerate(zip(made, regressions, strict=True)):
        holds[:, h] &= used >= len(each.features)
        if each.kind is Kind.DELAYED:
            cost = fit.coefficients[:, -1]
            holds[:, h] &= (cost >= _DELAY_COST[0]) & (cost <= _DELAY_COST[1])
            holds[:, h] &= needs.source >= 0
    misfit = np.stack([fit.misfit for fit in regressions], axis=1)
    volume = np.stack([fit.volume for fit in regressions], axis=1)
    size = np.array([len(each.features) for each in made])
    prior = np.log([each.prior for each in made])
    evidence = np.where(holds, prior - misfit / 2 + volume, -np.inf)
    best = np.argmax(evidence, axis=1)
    at = np.arange(len(best))
    freedom = np.maximum(used - size[best], 0)
    inflation = np.maximum((misfit[at, best] + 3.0) / (freedom + 3.0), 1.0)
    inflation = np.where(holds.any(axis=1), inflation, 1.0)
    evidence = np.where(holds, prior - misfit / (2 * inflation[:, None]) + volume, -np.inf)
    highest = evidence.max(axis=1, keepdims=True)
    probability = np.exp(evidence - np.where(np.isfinite(highest), highest, 0.0))
    total = probability.sum(axis=1, keepdims=True)
    probability = np.where(total > 0, probability / np.where(total > 0, total, 1.0), 0.0)
    return Group(places, tuple(made), tuple(regressions), probability), inflation


def _labels(group: Group, needs: Needs, kind: CallClass) -> list[str]:
    """Return the causes of the growth of the call paths of a group."""
    shares = _growth_shares(group, needs)
    total = np.sum([*shares.values()], axis=0)
    labels = []
    for k, counter in enumerate(needs.wrapped()):
        if counter is not None or not total[k] > 0:
            labels.append(UNEXPLAINED)
            continue
        part = {driver: float(share[k] / total[k]) for driver, share in shares.items()}
        labels.append(_label(part, kind))
    return labels


def _label(part: dict[Driver, float], kind: CallClass) -> str:
    """Return the cause, given the shares of drivers in the growth."""
    required = sum(share for driver, share in part.items() if driver.is_required)
    if required >= CLEAR:
        return _required_label(part)
    if required > 1 - CLEAR:
        return UNEXPLAINED
    if part.get(Driver.SOURCE, 0.0) >= MOSTLY:
        return Driver.SOURCE.value
    return Driver.WAITS.value if kind.waits else UNEXPLAINED


def _required_label(part: dict[Driver, float]) -> str:
    collective = {d: part.get(d, 0.0) for d in (Driver.LOG, Driver.LINEAR)}
    alone = {d: s for d, s in part.items() if d.is_required and d not in collective}
    together = sum(collective.values())
    first = max(alone, key=lambda d: alone[d]) if alone else None
    if first is not None and alone[first] >= together:
        return first.value
    clear = max(collective, key=lambda d: collective[d])
    return clear.value if collective[clear] >= 0.8 * together else COLLECTIVE


def _growth_shares(group: Group, needs: Needs) -> dict[Driver, FloatArray]:
    """Return the expected share of each driver in the growth from the base to the target, [m]."""
    first = np.argmax(np.isfinite(needs.error), axis=1)
    at = np.arange(len(first))
    found: dict[Driver, FloatArray] = {}

    def ends(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        return values[at, first], values[:, -1]

    for h, (hypothesis, fit) in enumerate(zip(group.hypotheses, group.regressions, strict=True)):
        probability = group.probability[:, h]
        if not (probability > LEAST_PROBABILITY).any():
            continue
        gains: dict[Driver, FloatArray] = {}
        for f, each in enumerate(hypothesis.features):
            low, high = ends(each.values * needs.ideal)
            gain = np.maximum(fit.coefficients[:, f] * (high - low), 0.0)
            logs = [np.maximum(_log_growth(*ends(factor.values)), 0.0) for factor in each.factors]
            whole = np.sum(logs, axis=0)
            # Work that is not divided among more processes grows in total.
            logs[0] = np.where(whole > 0, logs[0], 1.0)
            whole = np.where(whole > 0, whole, 1.0)
            for factor, log in zip(each.factors, logs, strict=True):
                so_far = gains.get(factor.driver, np.zeros_like(gain))
                gains[factor.driver] = so_far + gain * log / whole
        total = np.sum([*gains.values()], axis=0)
        counts = np.where((total > 0) & (probability > LEAST_PROBABILITY), probability, 0.0)
        total = np.where(total > 0, total, 1.0)
        for driver, gain in gains.items():
            share = np.where(counts > 0, counts * gain / total, 0.0)
            found[driver] = found.get(driver, np.zeros(len(at))) + share
    return found


def _log_growth(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return logarithms of growth; from zero, a large one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(high / low)
    return np.where(high <= 0, 0.0, np.where(low > 0, log, 10.0))
