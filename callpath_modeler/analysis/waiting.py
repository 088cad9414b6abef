"""Models of the time of call paths that wait: the delays that they wait for, and the rest.

The time of a call path that waits has two parts. It spends delays of computation
(`analysis.spent_delays`). The rest is transfer and waiting of other kinds. The slowest process
computes longer than the mean by the delay. There are three models of a delay: of the delay itself,
of the largest time less the mean, and of the mean times the ratio of both. Each extrapolates
another quantity, so each errs in another way. Their geometric mean is closer than each of them. The
band is wider if they differ. See docs/explanation/requirements.md, 'Waiting is predicted from what
delays it'.

The sum of both parts becomes the model of the call path if it is more certain than the model of the
measured times, which stays as an alternative. The sum is written with two terms
(`modeling.sums_of_parts`). So the code after it treats it as any other model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from msgspec import Struct

from callpath_modeler import modeling
from callpath_modeler.analysis.spent_delays import SpentDelays
from callpath_modeler.arrays import FloatArray, IntArray
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Prediction
from callpath_modeler.modeling.distributions import normal_quantile
from callpath_modeler.modeling.shapes import doublings
from callpath_modeler.modeling.sums_of_parts import SumsOfParts, with_sums_of_parts
from callpath_modeler.profile.schema import Reduction

_PART = 0.1
"""Part of the time at the largest scale from which on delays decide how it grows."""
_SMALL = 1e-3
"""Part of all waiting below which a call path keeps the model of its times."""
_AHEAD = np.array([2.0**0.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
"""Multiples of the largest scale for which a sum of parts is made."""
_LEAST = 1e-3
"""Smallest delay, as a part of the measured one, whose logarithm counts in a mean."""
_UNKNOWN = 3.0
"""Standard deviation of a logarithm that stands for not known."""


class Parts(Struct, frozen=True, eq=False):
    """Time of m call paths that wait, at S scales.

    Attributes
    ----------
    delay : [m, S] delays of computation that they wait for
    rest : [m, S] the rest: transfer and other waiting
    of_delay, of_rest : [m, S] variances of their logarithms
    """

    delay: FloatArray
    rest: FloatArray
    of_delay: FloatArray
    of_rest: FloatArray

    @property
    def time(self) -> FloatArray:
        """The sum of both parts, [m, S]."""
        return self.delay + self.rest

    @property
    def variance(self) -> FloatArray:
        """Variance of the logarithm of the sum, [m, S]."""
        whole = np.where(self.time > 0, self.time, 1.0)
        square = self.delay**2 * self.of_delay + self.rest**2 * self.of_rest
        return np.asarray(square / whole**2)


def with_waiting(fitted: Fitted) -> Fitted:
    """Return models in which call paths wait for what delays them.

    Parameters
    ----------
    fitted : models of a time along one parameter, each of its call path alone

    Returns
    -------
    Fitted
        Call paths whose delays are not known keep their values, with wider bands. Models that have
        no such bands stay as they are.
    """
    if not fitted.widened.any():
        return fitted
    models = fitted.models
    if fitted.experiment.reduction is Reduction.MEAN and fitted.metric.additive:
        spent = SpentDelays.of(fitted)
        which = _delayed(fitted, spent)
        if len(which):
            models = with_sums_of_parts(models, *_known_better(fitted, spent, which))
    return replace(fitted, models=models.waiting(fitted.widened))


def _delayed(fitted: Fitted, spent: SpentDelays) -> IntArray:
    """Return the places in `spent` of call paths that wait for computation, and take time."""
    time, delay = (fitted.means_of(each)[:, -1] for each in (spent.time, spent.delay))
    chosen = (delay >= _PART * time) & (time > _SMALL * time.sum())
    return np.flatnonzero(chosen & fitted.modelled[spent.rows])


def _known_better(
    fitted: Fitted, spent: SpentDelays, which: IntArray
) -> tuple[IntArray, SumsOfParts]:
    """Return the call paths whose parts are known better than their times, and the sums of these.

    Parameters
    ----------
    fitted : models of the times, each of its call path alone
    spent : the delays that they wait for
    which : their places in `spent`
    """
    largest = fitted.points[-1]
    scales = np.concatenate([fitted.points, largest * _AHEAD])
    parts = parts_of(fitted, spent, which, scales)
    own = _variance(fitted.models.take(spent.rows[which]).predict(scales))
    ahead = scales > largest
    # An operation that spends another part of the delay at each scale has another law.
    variance = parts.variance + _misfit(fitted, spent.time[which], parts.time[:, ~ahead])
    better = variance[:, ahead].mean(axis=1) < own[:, ahead].mean(axis=1)
    sums = SumsOfParts(scales, parts.time[better], variance[better])
    return spent.rows[which[better]], sums


def _misfit(fitted: Fitted, runs: FloatArray, said: FloatArray) -> FloatArray:
    """Return the mean square of the logarithm of measured times [n, runs] over others, [n, 1].

    Parameters
    ----------
    said : [n, K] the others, at the points of the models
    """
    measured = fitted.means_of(runs)
    weight = (measured > 0) / (1 + doublings(fitted.points))
    with np.errstate(divide="ignore", invalid="ignore"):
        away = np.where(weight > 0, np.log(measured / said), 0.0)
    away = np.clip(away, -_UNKNOWN, _UNKNOWN)
    return np.asarray(
        (weight * away**2).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    )


def parts_of(fitted: Fitted, spent: SpentDelays, which: IntArray, scales: FloatArray) -> Parts:
    """Return the parts of the time of call paths that wait.

    Parameters
    ----------
    fitted : models of the times
    spent : the delays that they wait for
    which : [m] their places in `spent`
    scales : [S] values of the parameter, ascending
    """
    used = np.flatnonzero((spent.share[which] > 0).any(axis=0))
    share = spent.share[which][:, used]
    late, of_late = delays_at(fitted, spent, used, scales)
    rest = predicted_runs(fitted, spent.rest[which], scales)
    delay = share @ late
    square = np.where(delay > 0, delay, 1.0) ** 2
    of_delay = share**2 @ (late**2 * of_late) / square
    return Parts(delay, np.nan_to_num(rest.value), of_delay, _variance(rest))


def delays_at(
    fitted: Fitted, spent: SpentDelays, places: IntArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return delays by computation at scales [n, S], and the variance of their logarithms.

    Parameters
    ----------
    fitted : models of the times
    spent : delays, of which `places` [n] are chosen in `spent.late`
    scales : [S] values of the parameter, ascending
    """
    mean, largest = spent.mean[places], spent.largest[places]
    late = np.fmax(largest - mean, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(mean > 0, largest / mean, np.nan)
    of_mean, of_largest, of_late, of_ratio = (
        predicted_runs(fitted, each, scales) for each in (mean, largest, late, ratio)
    )
    beyond, above = of_largest.value - of_mean.value, of_ratio.value - 1.0
    opinions = np.array([of_late.value, beyond, of_mean.value * above])
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.array(
            [
                _variance(of_late),
                _errors(of_largest) / beyond**2 + _errors(of_mean) / beyond**2,
                _variance(of_mean) + _errors(of_ratio) / above**2,
            ]
        )
    # A difference of two models may be anything near zero.
    measured = fitted.means_of(np.nan_to_num(late))[:, -1]
    floor = np.maximum(_LEAST * measured, np.finfo(float).tiny)
    known = np.isfinite(opinions)
    logs = np.log(np.maximum(np.nan_to_num(opinions), floor[:, None]))
    count = np.maximum(known.sum(axis=0), 1)
    middle = (known * logs).sum(axis=0) / count
    between = (known * (logs - middle) ** 2).sum(axis=0) / count
    within = np.where(known & np.isfinite(errors), errors, np.inf).min(axis=0)
    return np.exp(middle), between + np.minimum(within, _UNKNOWN**2)


def predicted_runs(fitted: Fitted, runs: FloatArray, scales: FloatArray) -> Prediction:
    """Return predictions of quantities [n, runs] at scales, each [n, S]."""
    return modeling.fit(fitted.points, fitted.repetitions_of(runs)).predict(scales)


def _errors(band: Prediction) -> FloatArray:
    """Return squared errors of predictions."""
    return band.value**2 * _variance(band)


def _variance(band: Prediction) -> FloatArray:
    """Return the variance of the logarithm of predictions; 0 = not known."""
    reach = 2 * float(normal_quantile(0.975))
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.log(band.high / np.maximum(band.low, band.value / 100)) / reach
    return np.where(np.isfinite(width), np.clip(width, 0.0, _UNKNOWN) ** 2, 0.0)
