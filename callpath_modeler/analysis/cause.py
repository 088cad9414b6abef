"""The cause of growth of a call path: probabilities of hypotheses, and shares at the target.

The evidence of a hypothesis is the probability of the measured times if its coefficients are
unknown: each coefficient is uniform between zero and the value at which its feature alone explains
the time of some point. With normal noise, it is the integral over the coefficients (Laplace's
method; Bishop: Pattern recognition and machine learning, 2006, section 4.4). It prefers the simpler
of two hypotheses that fit as well. A hypothesis with a coefficient that is not positive is left
out, because the one without this feature is a hypothesis of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from callpath_modeler.analysis.cause_needs import Amounts, Needs
from callpath_modeler.analysis.laws_of_time import Driver, Family, Hypothesis, Kind
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.call_class import CallClass
from callpath_modeler.profile.schema import Metric

_PARALLEL = 1e-7
"""Squared sine between features below which they are the same but for rounding."""


class Regression(Struct, frozen=True):
    """Regressions of n call paths on the same F features.

    Attributes
    ----------
    coefficients : [n, F], in seconds per unit of a feature
    root : [n, F, F] root of their covariance, which is ``root @ root.T``
    misfit : [n] sum of squared residuals in units of the noise
    volume : [n] logarithm of the posterior volume of the coefficients relative to their prior
    holds : [n] whether all coefficients are positive and the features differ
    """

    coefficients: FloatArray
    root: FloatArray
    misfit: FloatArray
    volume: FloatArray
    holds: BoolArray


def regress(time: FloatArray, weight: FloatArray, features: FloatArray) -> Regression:
    """Return weighted least squares of times on features.

    Parameters
    ----------
    time : [n, K], seconds; 0 where the weight is 0
    weight : [n, K] inverse standard deviations; 0 = no value
    features : [n, K, F] values of features, not negative

    Returns
    -------
    Regression
        Without inflation of the noise.
    """
    count = features.shape[2]
    used = weight > 0
    share = np.divide(features, time[..., None], out=np.zeros_like(features), where=used[..., None])
    scale = share.max(axis=1)  # [n, F]: 1 / largest coefficient of the prior
    known = (scale > 0).all(axis=1) & np.isfinite(scale).all(axis=1)
    scale = np.where(known[:, None], scale, 1.0)
    design = np.where(known[:, None, None], features / scale[:, None, :], 0.0) * weight[..., None]
    columns = [np.ascontiguousarray(design[..., f]) for f in range(count)]
    wanted = time * weight
    lower, differ = _cholesky(columns, known)
    inverse = _inverse(lower)
    # Solve L L' c = X' y by both triangular systems.
    right = [np.einsum("nk,nk->n", column, wanted) for column in columns]
    half = [_sum(inverse[f][g] * right[g] for g in range(f + 1)) for f in range(count)]
    found = [_sum(inverse[g][f] * half[g] for g in range(f, count)) for f in range(count)]
    residual = wanted - _sum(c[:, None] * column for c, column in zip(found, columns, strict=True))
    coefficients = np.stack(found, axis=1)
    holds = differ & (coefficients > 0).all(axis=1)
    root = np.zeros((len(time), count, count))
    for f in range(count):
        for g in range(f, count):
            root[:, f, g] = inverse[g][f] / scale[:, f]
    determinant = _sum(-np.log(lower[f][f]) for f in range(count))
    volume = determinant + 0.5 * count * np.log(2 * np.pi)
    misfit = np.einsum("nk,nk->n", residual, residual)
    return Regression(coefficients / scale, root, misfit, np.minimum(volume, 0.0), holds)


_Triangle = list[list[FloatArray]]
"""Elements [n] of the rows of lower triangular matrices."""


def _cholesky(columns: list[FloatArray], known: BoolArray) -> tuple[_Triangle, BoolArray]:
    """Return Cholesky factors of normal matrices, and which of them are regular, [n].

    There are few columns and many rows, so loops over columns are faster than a call for each row.
    """
    lower: _Triangle = []
    regular = known
    for f, column in enumerate(columns):
        row: list[FloatArray] = []
        for g in range(f):
            product = np.einsum("nk,nk->n", column, columns[g])
            product -= _sum((row[h] * lower[g][h] for h in range(g)), like=product)
            row.append(product / lower[g][g])
        square = np.einsum("nk,nk->n", column, column)
        rest = square - _sum((each**2 for each in row), like=square)
        regular = regular & (rest > _PARALLEL * square)
        row.append(np.sqrt(np.where(regular, rest, 1.0)))
        lower.append(row)
    return lower, regular


def _inverse(lower: _Triangle) -> _Triangle:
    """Return the inverses of lower triangular matrices."""
    found: _Triangle = []
    for f, row in enumerate(lower):
        inverse: list[FloatArray] = []
        for g in range(f):
            product = _sum((row[h] * found[h][g] for h in range(g, f)), like=row[f])
            inverse.append(-product / row[f])
        inverse.append(1 / row[f])
        found.append(inverse)
    return found


def _sum(parts: Iterable[FloatArray], like: FloatArray | None = None) -> FloatArray:
    """Return the sum of arrays; of none, zeros `like` an array."""
    total: FloatArray | None = None
    for part in parts:
        total = part if total is None else total + part
    if total is None:
        assert like is not None  # only sums over earlier columns are empty
        return np.zeros_like(like)
    return total


NOTHING = "-"
"""Label of call paths whose time does not grow."""
IMBALANCE = "imbalance"
UNEXPLAINED = "unexplained"
COLLECTIVE = "collective"
"""Label of a collective operation whose growth may be logarithmic or linear."""

CLEAR = 0.6
"""Probability from which on requirements, or waiting, are the cause."""
MOSTLY = 0.5
"""Share of the growth from which on a driver is the cause."""
_TOLD = 0.98
"""Probability from which on the algorithm of a collective operation is named."""
_FITS = 2.33
"""Standard score of a misfit above which noise does not explain it (99 %)."""
_DRAWS = 400
LEAST_PROBABILITY = 1e-3
"""Probability below which a hypothesis is left out of sums."""


class Share(Struct, frozen=True):
    """A value at the target with a band.

    Attributes
    ----------
    value, low, high : median and ends of the band
    """

    value: float
    low: float
    high: float


class Explained(Struct, frozen=True, eq=False):
    """Time of a call path at the target, by cause.

    Attributes
    ----------
    time : that of the ranking, seconds
    required : part that requirements explain, as a fraction of the time
    delayed : part that delays by computation explain, as a fraction
    rest : part that neither explains, as a fraction
    """

    time: float
    required: Share
    delayed: Share
    rest: Share


class LawTerm(Struct, frozen=True, eq=False):
    """A term of the most probable hypothesis.

    Attributes
    ----------
    text : the feature as a formula
    coefficient, error : seconds per unit of the feature, and its standard error
    at_largest : its time at the largest measured scale, seconds
    """

    text: str
    coefficient: float
    error: float
    at_largest: float


class Imbalance(Struct, frozen=True, eq=False):
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


class Group(Struct, frozen=True, eq=False):
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


class Causes(Struct, frozen=True, eq=False):
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
    groups: tuple[Group, ...]
    inflation: FloatArray

    def at(self, row: int) -> Cause | None:
        """Return the cause of one call path; None = it was not examined."""
        found = np.flatnonzero(self.needs.rows == row)
        return Cause(self, int(found[0])) if len(found) else None


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
    def wrapped(self) -> tuple[Metric, float] | None:
        """A counter that is wrapped, and from which point; None = the counts can be compared."""
        return self.causes.needs.take(np.array([self.place])).wrapped()[0]

    @property
    def is_required(self) -> bool:
        """True if requirements are the cause."""
        return self.label == COLLECTIVE or self.label in {d for d in Driver if d.is_required}

    @property
    def is_clear(self) -> bool:
        """True if the data tell whether requirements or waiting are the cause."""
        required = self.probability(Kind.REQUIRED)
        return not 1 - CLEAR < required < CLEAR

    @property
    def is_probably_required(self) -> bool:
        """True if requirements are at least as probable as all other causes together."""
        return self.probability(Kind.REQUIRED) >= MOSTLY

    @property
    def best_probability(self) -> float:
        """Probability of the most probable hypothesis."""
        group, k = self._group()
        return float(group.probability[k].max())

    @property
    def number_of_hypotheses(self) -> int:
        """Number of hypotheses that share the probability."""
        return len(self._group()[0].hypotheses)

    def _group(self) -> tuple[Group, int]:
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
        return self.is_probably_required and fits(misfit, used - size)

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
        if whole < LEAST_PROBABILITY:
            return []
        ordered = sorted(found.items(), key=lambda each: -each[1])
        return [(family, probability / whole) for family, probability in ordered]

    @property
    def family(self) -> Family | None:
        """The algorithm of a collective operation; None = none, or the data cannot tell which."""
        found = self.families()
        sure = found and found[0][1] >= _TOLD and self.is_probably_required
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
                LawTerm(each.text, coefficient, error, coefficient * float(each.values[k, -2]))
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
        """Return the time at the target by cause; shares have bands of the models' confidence.

        The bands contain the doubts about hypotheses, coefficients and requirements at the target.
        Coefficients are drawn from their posterior, with a fixed seed. If a computation is named,
        its delay at the target is the one that the ranking predicts, and the hypotheses divide the
        rest of the time.
        """
        group, k = self._group()
        probability = group.probability[k]
        random = np.random.default_rng(0)
        parts, weights = [], []
        widen = float(np.sqrt(self.causes.inflation[self.place]))
        for h in np.flatnonzero(probability > LEAST_PROBABILITY).tolist():
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
        if self.causes.source[self.place] >= 0:
            joined = self._beside_the_delay(joined, random)
        share = joined / np.maximum(joined.sum(axis=0), np.finfo(float).tiny)
        time = float(self.causes.needs.at_target[self.place])
        return Explained(time, *(_quantiles(each, weight, confidence) for each in share))

    def _beside_the_delay(self, drawn: FloatArray, random: np.random.Generator) -> FloatArray:
        """Return draws [3, n] of the parts of the time, with the delay of the ranking."""
        needs, place = self.causes.needs, self.place
        if needs.delay is None or needs.beside is None:
            return drawn

        def draws(amounts: Amounts) -> FloatArray:
            errors = amounts.error[place] * random.standard_normal(drawn.shape[1])
            return np.asarray(amounts.values[place, -1] * np.exp(errors))

        required, _, rest = drawn
        others, left = required + rest, draws(needs.beside)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_others = np.where(others > 0, required / others, 0.0)
        return np.array([of_others * left, draws(needs.delay), (1 - of_others) * left])


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
