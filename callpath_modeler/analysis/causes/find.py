"""The causes of growth of call paths: probabilities of hypotheses, one label, and shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler.analysis.causes.families import Family
from callpath_modeler.analysis.causes.hypotheses import Driver, Hypothesis, Kind, hypotheses
from callpath_modeler.analysis.causes.needs import Needs, times_of, with_needs
from callpath_modeler.analysis.causes.regressions import Regression, regress
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.call_class import CallClass

NOTHING = "-"
"""Label of call paths whose time does not grow."""
IMBALANCE = "imbalance"
UNEXPLAINED = "unexplained"
COLLECTIVE = "collective"
"""Label of a collective operation whose growth may be logarithmic or linear."""

_GROWS = 1.1
"""Factor between base and target from which on a time grows."""
_SURE = 2.6
"""Growth in standard errors that chance does not explain (99 %, two sides)."""
_VERY_SURE = 4.0
"""Growth in standard errors from which on it counts even if the band of the model is wide."""
_CLEAR = 0.6
"""Probability from which on requirements, or waiting, are the cause."""
_MOSTLY = 0.5
"""Share of the growth from which on a driver is the cause."""
_FEWEST = 3
"""Number of scales from which on a growth has a cause."""
_UNEVEN = 1.25
"""Growth of the ratio of largest to mean from which on imbalance may be a cause."""
_BEYOND_CHANCE = 1.5
"""Growth of the imbalance relative to that of random delays from which on it counts."""
_STEADY = 0.2
"""Relative scatter of the excess of the slowest process between runs up to which it is the same."""
_TOLD = 0.95
"""Probability from which on the algorithm of a collective operation is named."""
_FITS = 2.33
"""Standard score of a misfit above which noise does not explain it (99 %)."""
_DELAY_COST = (0.4, 1.6)
"""Range of the wait per second of delay; a process waits for at most the whole delay."""
_DRAWS = 400
_LEAST_PROBABILITY = 1e-3


@dataclass(frozen=True, slots=True)
class Share:
    """A value at the target with a band.

    Attributes
    ----------
    value, low, high : median and ends of the band
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """Time of a call path at the target, by cause.

    Attributes
    ----------
    time : predicted through the hypotheses, seconds
    required : part that requirements explain, as a fraction of the time
    delayed : part that delays by computation explain, as a fraction
    rest : part that neither explains, as a fraction
    """

    time: Share
    required: Share
    delayed: Share
    rest: Share


@dataclass(frozen=True, slots=True, eq=False)
class LawTerm:
    """A term of the most probable hypothesis.

    Attributes
    ----------
    text : the feature as a formula
    coefficient, error : seconds per unit of the feature, and its standard error
    at_target : predicted time at the target, seconds
    """

    text: str
    coefficient: float
    error: float
    at_target: float


@dataclass(frozen=True, slots=True, eq=False)
class Imbalance:
    """Imbalance of a call path.

    Attributes
    ----------
    ratio : [K] largest over mean time of the processes; NaN = not known
    processes : [K] number of processes that would have all time if it were equal; NaN = not known
    grows : whether the largest time grows more than the mean
    """

    ratio: FloatArray
    processes: FloatArray
    grows: bool


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Causes of growth of n call paths of an experiment.

    Attributes
    ----------
    fitted : models of the time
    needs : times and requirements of the call paths
    classes : [n] class of each call path
    grows : [n] whether the time grows
    labels : [n] cause, or `NOTHING`
    source : [n] call path that is waited for, if the label says so; -1 = none
    groups : hypotheses and regressions of each class with the call paths [m] of that class, and
        the probabilities [m, hypotheses]
    inflation : [n] variance of the residuals relative to the noise; 1 = noise explains them
    """

    fitted: Fitted
    needs: Needs
    classes: tuple[CallClass, ...]
    grows: BoolArray
    labels: tuple[str, ...]
    source: IntArray
    groups: tuple[_Group, ...]
    inflation: FloatArray

    def at(self, row: int) -> Cause | None:
        """Return the cause of one call path; None = it was not examined."""
        found = np.flatnonzero(self.needs.rows == row)
        return Cause(self, int(found[0])) if len(found) else None


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Call paths of one class with their hypotheses.

    Attributes
    ----------
    places : [m] positions in the arrays of n call paths
    hypotheses : H hypotheses
    regressions : one per hypothesis
    probability : [m, H]; 0 = the hypothesis does not hold
    """

    places: IntArray
    hypotheses: tuple[Hypothesis, ...]
    regressions: tuple[Regression, ...]
    probability: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """Cause of the growth of one call path, with all numbers.

    Attributes
    ----------
    causes : causes of several call paths
    place : position of this one
    """

    causes: Causes
    place: int

    @property
    def row(self) -> int:
        """Number of the call path."""
        return int(self.causes.needs.rows[self.place])

    @property
    def label(self) -> str:
        """The cause, or `NOTHING`."""
        return self.causes.labels[self.place]

    @property
    def call_class(self) -> CallClass:
        """Class of the call path."""
        return self.causes.classes[self.place]

    @property
    def grows(self) -> bool:
        """True if the time grows."""
        return bool(self.causes.grows[self.place])

    @property
    def base(self) -> int:
        """Position of the first point at which the call path occurs."""
        return int(np.argmax(np.isfinite(self.causes.needs.error[self.place])))

    @property
    def target(self) -> float:
        """Target, or far beyond the largest scale instead of infinity."""
        return float(self.causes.needs.points[-1])

    @property
    def has_needs(self) -> bool:
        """True if calls, bytes or operations of the call path are counted."""
        found = self.causes.needs.found
        return any(need.amounts.values[self.place].any() for need in found)

    @property
    def is_required(self) -> bool:
        """True if requirements are the cause."""
        return self.label == COLLECTIVE or self.label in {d for d in Driver if d.is_required}

    @property
    def is_clear(self) -> bool:
        """True if the data tell whether requirements or waiting are the cause."""
        required = self.probability(Kind.REQUIRED)
        return not 1 - _CLEAR < required < _CLEAR

    @property
    def best_probability(self) -> float:
        """Probability of the most probable hypothesis."""
        group, k = self._group()
        return float(group.probability[k].max())

    def _group(self) -> tuple[_Group, int]:
        for group in self.causes.groups:
            found = np.flatnonzero(group.places == self.place)
            if len(found):
                return group, int(found[0])
        raise UsageError("the call path has no hypotheses", hint="choose one with a time")

    @property
    def is_examined(self) -> bool:
        """True if there are hypotheses about the call path."""
        return any((group.places == self.place).any() for group in self.causes.groups)

    def probability(self, kind: Kind) -> float:
        """Return the probability that a kind of hypotheses explains the time."""
        group, k = self._group()
        of_kind = [h.kind is kind for h in group.hypotheses]
        return float(group.probability[k, of_kind].sum())

    @property
    def agrees(self) -> bool:
        """True if requirements alone explain the time within its noise."""
        group, k = self._group()
        of_kind = np.array([h.kind is Kind.REQUIRED for h in group.hypotheses])
        if not group.probability[k, of_kind].any():
            return False
        best = int(np.argmax(np.where(of_kind, group.probability[k], -1.0)))
        size = len(group.hypotheses[best].features)
        used = int(np.isfinite(self.causes.needs.error[self.place]).sum())
        misfit = float(group.regressions[best].misfit[k])
        return self.probability(Kind.REQUIRED) >= _MOSTLY and fits(misfit, used - size)

    def families(self) -> list[tuple[Family, float]]:
        """Return algorithms with their probabilities among all algorithms, most probable first.

        Empty without algorithms, or if requirements alone hardly explain the time.
        """
        group, k = self._group()
        found: dict[Family, float] = {}
        for h, probability in zip(group.hypotheses, group.probability[k].tolist(), strict=True):
            if h.family is not None:
                # All algorithms are as probable before the times are known.
                found[h.family] = found.get(h.family, 0.0) + probability / h.family.prior
        whole = sum(found.values())
        if whole < _LEAST_PROBABILITY:
            return []
        ordered = sorted(found.items(), key=lambda each: -each[1])
        return [(family, probability / whole) for family, probability in ordered]

    @property
    def family(self) -> Family | None:
        """The algorithm of a collective operation; None = none, or the data cannot tell which."""
        found = self.families()
        sure = found and found[0][1] >= _TOLD and self.probability(Kind.REQUIRED) >= _MOSTLY
        return found[0][0] if sure else None

    def terms(self) -> tuple[Hypothesis, list[LawTerm]]:
        """Return the most probable hypothesis and its terms."""
        group, k = self._group()
        best = int(np.argmax(group.probability[k]))
        h, fit = group.hypotheses[best], group.regressions[best]
        covariance = fit.root[k] @ fit.root[k].T * self.causes.inflation[self.place]
        terms = []
        for f, each in enumerate(h.features):
            coefficient = float(fit.coefficients[k, f])
            error = float(np.sqrt(covariance[f, f]))
            terms.append(
                LawTerm(each.text, coefficient, error, coefficient * float(each.values[k, -1]))
            )
        return h, terms

    def imbalance(self) -> Imbalance:
        """Return the imbalance of the call path."""
        needs = self.causes.needs
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = needs.largest[self.place] / needs.mean[self.place]
        grows = self.label == IMBALANCE
        return Imbalance(ratio, needs.processes[:-1] / ratio, grows)

    def explained(self) -> Explained:
        """Return the time at the target by cause, with bands of the confidence of the models.

        The bands contain the doubts about hypotheses, coefficients and requirements at the target.
        Coefficients are drawn from their posterior, with a fixed seed.
        """
        group, k = self._group()
        probability = group.probability[k]
        random = np.random.default_rng(0)
        parts, weights = [], []
        widen = float(np.sqrt(self.causes.inflation[self.place]))
        for h in np.flatnonzero(probability > _LEAST_PROBABILITY).tolist():
            hypothesis, fit = group.hypotheses[h], group.regressions[h]
            size = len(hypothesis.features)
            normal = random.standard_normal((_DRAWS, size))
            drawn = fit.coefficients[k] + widen * normal @ fit.root[k].T
            kept = (drawn > 0).all(axis=1)
            drawn = drawn[kept] if kept.sum() > _DRAWS // 10 else np.maximum(drawn, 0.0)
            at = np.array([each.values[k, -1] for each in hypothesis.features])
            error = np.array([each.error[k] for each in hypothesis.features])
            amounts = at * np.exp(error * random.standard_normal((len(drawn), 1)))
            times = drawn * amounts
            last = times[:, -1].copy()
            required = times.sum(axis=1)
            delayed, rest = np.zeros_like(last), np.zeros_like(last)
            if hypothesis.kind is Kind.DELAYED:
                delayed = last
            elif hypothesis.kind is Kind.WAITING:
                rest = last
            required = required - delayed - rest
            parts.append(np.array([required, delayed, rest]))
            weights.append(np.full(len(drawn), probability[h] / len(drawn)))
        joined, weight = np.concatenate(parts, axis=1), np.concatenate(weights)
        confidence = self.causes.fitted.models.confidence
        time = joined.sum(axis=0)
        share = joined / np.maximum(time, np.finfo(float).tiny)
        found = [_quantiles(each, weight, confidence) for each in (time, *share)]
        return Explained(*found)


def _quantiles(values: FloatArray, weight: FloatArray, confidence: float) -> Share:
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weight[order]) / weight.sum()
    at = [0.5, 0.5 - confidence / 2, 0.5 + confidence / 2]
    places = np.minimum(np.searchsorted(running, at), len(values) - 1)
    middle, low, high = (float(values[order[place]]) for place in places)
    return Share(middle, low, high)


def fits(misfit: float, freedom: int) -> bool:
    """Return whether noise explains a sum of squared residuals (Wilson and Hilferty, 1931)."""
    if freedom < 1:
        return True
    spread = 2 / (9 * freedom)
    return bool((misfit / freedom) ** (1 / 3) <= 1 - spread + _FITS * np.sqrt(spread))


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
            labels[place] = found[k]
            if labels[place] == Driver.SOURCE.value:
                source[place] = part.source[k]
                labels[place] = f"{Driver.SOURCE.value} {tree.name(int(part.source[k]))}"
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
    much = (of_ratio >= np.log(_UNEVEN)) & (of_ratio >= _MOSTLY * of_largest)
    return np.asarray(known & rising & much & (of_largest >= np.log(_GROWS)))


def _weighed(needs: Needs, kind: CallClass, places: IntArray) -> tuple[_Group, FloatArray]:
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
    return _Group(places, tuple(made), tuple(regressions), probability), inflation


def _labels(group: _Group, needs: Needs, kind: CallClass) -> list[str]:
    """Return the causes of the growth of the call paths of a group."""
    shares = _growth_shares(group, needs)
    total = np.sum([*shares.values()], axis=0)
    labels = []
    for k in range(len(needs.rows)):
        if not total[k] > 0:
            labels.append(UNEXPLAINED)
            continue
        part = {driver: float(share[k] / total[k]) for driver, share in shares.items()}
        labels.append(_label(part, kind))
    return labels


def _label(part: dict[Driver, float], kind: CallClass) -> str:
    """Return the cause, given the shares of drivers in the growth."""
    required = sum(share for driver, share in part.items() if driver.is_required)
    if required >= _CLEAR:
        return _required_label(part)
    if required > 1 - _CLEAR:
        return UNEXPLAINED
    if part.get(Driver.SOURCE, 0.0) >= _MOSTLY:
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


def _growth_shares(group: _Group, needs: Needs) -> dict[Driver, FloatArray]:
    """Return the expected share of each driver in the growth from the base to the target, [m]."""
    first = np.argmax(np.isfinite(needs.error), axis=1)
    at = np.arange(len(first))
    found: dict[Driver, FloatArray] = {}

    def ends(values: FloatArray) -> tuple[FloatArray, FloatArray]:
        return values[at, first], values[:, -1]

    for h, (hypothesis, fit) in enumerate(zip(group.hypotheses, group.regressions, strict=True)):
        probability = group.probability[:, h]
        if not (probability > _LEAST_PROBABILITY).any():
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
        counts = np.where((total > 0) & (probability > _LEAST_PROBABILITY), probability, 0.0)
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
