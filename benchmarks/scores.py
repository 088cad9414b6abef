"""Scores of predictions of known laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from laws import MULTIPLES, Draw, Fitted
from numpy.typing import NDArray

from callpath_modeler.arrays import FloatArray

_SURE = 1.96
"""Half width of a 95 % band in standard deviations, if these are known."""

_TOP = 10


Case = tuple[Draw, Fitted]


@dataclass(frozen=True, slots=True)
class Score:
    """A measure of the accuracy of a fitted draw.

    Attributes
    ----------
    what : name in tables
    of : function that returns a number per row, or one per draw
    summary : function that reduces the rows of all draws
    percent : True if the score is a percentage
    rises : True if larger is better
    """

    what: str
    of: Callable[[Draw, Fitted], NDArray[np.generic]]
    summary: Callable[[FloatArray], np.floating]
    percent: bool = True
    rises: bool = True

    def over(self, cases: Sequence[Case]) -> float:
        """Return the score over some draws."""
        return float(self.summary(np.concatenate([self.of(*case) for case in cases])))

    def text(self, value: float) -> str:
        """Return a score as text."""
        if self.percent:
            return f"{100 * value:.{1 if 0 < value < 0.1 else 0}f}%"
        return f"{value:.3f}" if value < 1 else f"{value:.3g}"


def _share(
    what: str, of: Callable[[Draw, Fitted], NDArray[np.generic]], *, rises: bool = True
) -> Score:
    return Score(what, of, np.mean, rises=rises)


def _median(what: str, of: Callable[[Draw, Fitted], NDArray[np.generic]]) -> Score:
    return Score(what, of, np.median, percent=False, rises=False)


def _at(multiple: int) -> int:
    return MULTIPLES.index(multiple)


def _grows(_: Draw, fitted: Fitted) -> NDArray[np.bool_]:
    power, log = fitted.lead.T
    return (power > 0) | ((power == 0) & (log > 0))


def _constant_grows(draw: Draw, fitted: Fitted) -> NDArray[np.bool_]:
    return _grows(draw, fitted)[draw.truth[:, -1] == draw.truth[:, 0]]


def _errors(draw: Draw, fitted: Fitted) -> FloatArray:
    error = np.abs(fitted.value - draw.truth) / draw.truth
    # Without a model, there is no prediction and no credit.
    return np.where(np.isfinite(error), error, np.inf)


def _within_double(draw: Draw, fitted: Fitted) -> NDArray[np.bool_]:
    ratio = fitted.value / draw.truth
    return (ratio >= 0.5) & (ratio <= 2)


def _held(fitted: Fitted, values: FloatArray) -> NDArray[np.bool_]:
    # A law without noise is found except for the last digit.
    slack = 1e-9 * np.abs(values)
    return (fitted.low <= values + slack) & (values - slack <= fitted.high)


def _told(draw: Draw, fitted: Fitted) -> NDArray[np.bool_]:
    return fitted.outside | _held(fitted, draw.truth)[:, _at(16)]


def _widths(draw: Draw, fitted: Fitted) -> FloatArray:
    return (fitted.high - fitted.low) / least_width(draw)


def least_width(draw: Draw) -> FloatArray:
    """Return the width of 95 % bands for the truth, if class and noise are known, [n, m].

    The method is relative least squares of the means of the repetitions.
    """
    points, repetitions = draw.y.shape[1:]
    deviation = draw.noise / 100 / np.sqrt(12 * repetitions)  # of a mean, uniform noise
    shapes = draw.shapes.swapaxes(1, 2)
    measured, wanted = shapes[:, :points], shapes[:, points:]
    relative = measured / draw.y.mean(axis=2)[..., None]
    # The columns differ by many orders of magnitude.
    scale = np.linalg.norm(relative, axis=1, keepdims=True)
    leverage = (wanted / scale) @ np.linalg.pinv(relative / scale)
    return 2 * _SURE * deviation * np.linalg.norm(leverage, axis=2)


def _top(values: FloatArray) -> set[int]:
    return set(np.argsort(-values)[:_TOP].tolist())


def _same_top(truth: FloatArray, found: FloatArray) -> FloatArray:
    return np.array([len(_top(truth) & _top(np.nan_to_num(found))) / _TOP])


def _ranked(draw: Draw, fitted: Fitted) -> FloatArray:
    return _same_top(draw.truth[:, _at(16)], fitted.value[:, _at(16)])


def _ranked_by_excess(draw: Draw, fitted: Fitted) -> FloatArray:
    far, here = _at(16), _at(1)
    return _same_top(
        draw.truth[:, far] - draw.truth[:, here], fitted.value[:, far] - fitted.value[:, here]
    )


def _total_error(draw: Draw, fitted: Fitted) -> FloatArray:
    truth = draw.truth[:, _at(128)].sum()
    found = np.maximum(np.nan_to_num(fitted.value[:, _at(128)]), 0).sum()
    return np.array([abs(found - truth) / truth])


EXACT = _share("exact class", lambda d, f: (np.abs(d.lead - f.lead) < 1e-6).all(axis=1))
GROWS = _share("growth found", _grows)
FALSE_GROWTH = _share("constants that 'grow'", _constant_grows, rises=False)
ERROR_16 = _median("error at 16 x", lambda d, f: _errors(d, f)[:, _at(16)])
ERROR_128 = _median("error at 128 x", lambda d, f: _errors(d, f)[:, _at(128)])
DOUBLE_128 = _share("within 2 x at 128 x", lambda d, f: _within_double(d, f)[:, _at(128)])
NOT_POSITIVE = _share("predictions <= 0", lambda _, f: (f.value <= 0).any(axis=1), rises=False)
TOLD = _share("called outside, or band holds at 16 x", _told)
HELD_4 = _share("truth at 4 x", lambda d, f: _held(f, d.truth)[:, _at(4)])
HELD_16 = _share("truth at 16 x", lambda d, f: _held(f, d.truth)[:, _at(16)])
AGAIN_4 = _share("measurement at 4 x", lambda d, f: _held(f, d.again)[:, _at(4)])
AGAIN_16 = _share("measurement at 16 x", lambda d, f: _held(f, d.again)[:, _at(16)])
WIDTH_16 = _median("width at 16 x", lambda d, f: _widths(d, f)[:, _at(16)])
TOP = _share("top 10 at 16 x", _ranked)
TOP_EXCESS = _share("top 10 by excess at 16 x", _ranked_by_excess)
TOTAL = _median("total at 128 x", _total_error)
