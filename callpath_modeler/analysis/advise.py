"""Advice on the next scale to run: the effect of one more run on the band at a target.

The result of a run is not known in advance, but the mixture of models gives its probability
distribution. So outcomes are drawn from it, models are made with each outcome as if it had been
measured, and the bands of the total at the target are compared. This is a preposterior analysis
(Raiffa, Schlaifer: *Applied statistical decision theory*, 1961).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from callpath_modeler import modeling
from callpath_modeler.analysis.predict import total_of
from callpath_modeler.analysis.scales import power_of
from callpath_modeler.argument_checks import check_type
from callpath_modeler.arrays import FloatArray
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import Models
from callpath_modeler.modeling.distributions import normal_share
from callpath_modeler.printable import shell_word
from callpath_modeler.targets import target_of, targets_of
from callpath_modeler.units import as_option, setting_text

OUTCOMES = 16
"""How many outcomes of each run are drawn."""
_ROWS = 1000
"""Call paths that outcomes are drawn for: the costliest at the target, by the ends of bands."""
_STEPS = 2.0, 4.0, 8.0, 16.0
"""Scales that are asked about, in multiples of the largest that was run."""
_SEED = 20


@dataclass(frozen=True, slots=True)
class NextRun:
    """One more scale, and its effect on the band of the total at the target.

    Attributes
    ----------
    scale : value of the parameter
    time : predicted run time, per process
    apart : ratio of the ends of the band after this run: the median over the drawn outcomes
    least, most : the same ratio for the outcomes that narrow the band most and least
    """

    scale: float
    time: float
    apart: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Advice:
    """Scales to measure next, with their effect on the band at a target.

    Attributes
    ----------
    target : the target
    value, low, high : total at the target with its band, from the present runs, SI base units
    repetitions : number of runs of each scale that are assumed
    runs : the scales that were tried, ascending
    """

    target: float
    value: float
    low: float
    high: float
    repetitions: int
    runs: tuple[NextRun, ...]

    @property
    def apart(self) -> float:
        """Upper end of the band over its lower end."""
        return self.high / self.low


def advise(fitted: Fitted, target: float, scales: Sequence[float] = ()) -> Advice:
    """Return the effect of one more scale on the band of the total at a target.

    Parameters
    ----------
    fitted : models of an additive metric along one parameter, by the mixture method
    target : a finite scale
    scales : scales to try; by default multiples of the largest one, below the target. They are
        cubes or squares if all measured scales are

    Returns
    -------
    Advice
        Band of the total at the target after one more run at each scale, in SI base units.

    Raises
    ------
    DataError
        If there is no scale between the largest run and the target, several parameters vary, the
        models are classic, or the total is not above zero.
    UsageError
        If the target or a scale is not positive and finite, or if a scale was already run.

    References
    ----------
    Raiffa, Schlaifer: Applied statistical decision theory (1961), preposterior analysis.
    """
    _check(fitted)
    models = fitted.models
    target, largest = _finite(target), {fitted.parameter: float(fitted.points[-1])}
    chosen = _scales(fitted, scales) if np.size(scales) else between(fitted.points, target)
    if not chosen:
        raise DataError(
            f"there is no scale between the largest run, {setting_text(largest)}, and the target",
            hint="ask about a larger one with --target",
        )
    rows = np.flatnonzero(fitted.modelled)
    rows = rows[np.argsort(-models.take(rows).predict([target]).high[:, 0], kind="stable")[:_ROWS]]
    points, values = fitted.line.by_point(fitted.metric.name, fitted.parameter)
    now, known = models.take(rows), values[rows]
    value, low, high = _band(now, target)
    if not low > 0:
        raise DataError(
            f"{fitted.metric.name} may be nothing at the target: no band to narrow",
            hint="see `cpmodel rank`, or measure with a finer clock",
        )
    found = []
    for scale in chosen:
        drawn = np.random.default_rng(_SEED)
        outcomes = [_outcome(now, scale, known.shape[2], drawn) for _ in range(OUTCOMES)]
        bands = [_band(_with_run(now, points, known, scale, each), target) for each in outcomes]
        time = float(np.nansum(models.values([scale])[rows]))
        apart = [high / low if low > 0 else np.inf for _, low, high in bands]
        found.append(NextRun(float(scale), time, float(np.median(apart)), min(apart), max(apart)))
    return Advice(target, value, low, high, known.shape[2], tuple(found))


def _check(fitted: Fitted) -> None:
    """Raise an error for models without probabilities or without a total above zero."""
    check_type(fitted, Fitted, "fitted")
    if fitted.surface is not None:
        raise DataError(
            f"several parameters vary: {', '.join(fitted.parameters)}; advice is about one",
            hint=f"hold the others, e.g. --where {shell_word(as_option(dict(fitted.measured_at)))}",
        )
    if fitted.models.method == "classic":
        raise DataError(
            "models of the classic method do not say how probable each outcome of a run is",
            hint="give the profiles, or a store of `cpmodel fit --method mixture`",
        )
    if not fitted.metric.additive:
        raise DataError(
            f"{fitted.metric.name} does not add up over call paths: it has no total",
            hint="advice is about the run time",
        )


def _finite(target: float) -> float:
    found = target_of(target)
    if np.isinf(found):
        raise UsageError("--advise: growth alone has no band", hint="--target with a number")
    return found


def _scales(fitted: Fitted, scales: Sequence[float]) -> list[float]:
    """Return the scales that may be run, if none of them was."""
    wanted: list[float] = targets_of(scales).tolist()
    for scale in wanted:
        if np.isinf(scale) or scale in fitted.points:
            raise UsageError(
                f"no run to advise at {setting_text({fitted.parameter: scale})}",
                hint="scales that were not run yet",
            )
    return wanted


def between(points: FloatArray, target: float) -> list[float]:
    """Return scales to run, above all `points` and below the target, ascending.

    They are whole numbers, or cubes or squares, if the points are.
    """
    power = power_of(points)
    wanted = points[-1] * np.array(_STEPS)
    if power is not None:
        wanted = np.round(wanted ** (1 / power)) ** power
    return sorted({float(each) for each in wanted if points[-1] < each < target})


def _outcome(
    models: Models, scale: float, repetitions: int, drawn: np.random.Generator
) -> FloatArray:
    """Draw what a run may measure, [n, R].

    Call paths are wrong alike as far as their errors are known to be.
    """
    mixture = models.mixture([scale])
    centre, below, above = (each[..., 0] for each in (mixture.centre, mixture.below, mixture.above))
    alike = models.correlation
    own = np.sqrt(1 - alike) * drawn.standard_normal(len(models))
    rank = normal_share(np.sqrt(alike) * drawn.standard_normal() + own)
    order = np.argsort(centre, axis=1)
    running = np.take_along_axis(mixture.weight, order, axis=1).cumsum(axis=1)
    place = (running < (rank * running[:, -1])[:, None]).sum(axis=1)
    true = np.take_along_axis(order, place[:, None], axis=1)
    level, less, more = (
        np.take_along_axis(each, true, axis=1)[:, 0] for each in (centre, below, above)
    )
    off = drawn.standard_normal(len(models))
    noise = np.nan_to_num(models.noise)[:, None] * drawn.standard_normal((len(models), repetitions))
    noise -= noise.mean(axis=1, keepdims=True)
    return np.asarray(
        (level * np.exp(off * np.where(off < 0, less, more)))[:, None] * np.exp(noise)
    )


def _with_run(
    models: Models, points: FloatArray, known: FloatArray, scale: float, outcome: FloatArray
) -> Models:
    """Model rows anew, with one more scale."""
    return modeling.fit(
        np.append(points, scale),
        np.concatenate([known, outcome[:, None]], axis=1),
        space=models.space,
        aggregate=models.aggregate,
        confidence=models.confidence,
    )


def _band(models: Models, target: float) -> tuple[float, float, float]:
    """Return value, low and high of the sum of rows at the target."""
    modelled = ~np.isnan(models.coefficients[:, 0])
    value, low, high = total_of(models.take(modelled), np.array([target]))
    return float(value[0]), float(low[0]), float(high[0])
