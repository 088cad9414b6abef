"""Accuracy and cost of models of sums of products in two to five parameters, on sparse designs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

import extrap_models
import numpy as np
from environments import EXTRAP
from results import Table

from callpath_modeler.analysis.uncertain import MARKS, WITHIN, marks_of_trust
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Term, fit, slice_with_line_models
from callpath_modeler.modeling.product_sums import partitions

NOTES = """\
Laws are a constant and a sum of products, in which each parameter has one term of the 42 classes of
Extra-P. All divisions of the parameters into products are equally frequent. The logarithms of all
coefficients are uniform from 0.001 to 1000, so some terms are far below the noise. The design has a
line of five values of each parameter, the others at their smallest values, and one inner point with
the second value of all. There are 2 seeds with 100 laws for each cell, which are one experiment.
With noise there are five repetitions times 1 + U(-1/2, 1/2) of the percentage. Targets are the next
value of all parameters (256, 60, 14, 64, 13), and twice their largest values. The columns are the
shares of predictions with an error up to 1e-6, 5 % and 20 %, and of bands that contain the truth.
Sure and wrong: the share of predictions with three or four marks that are farther from the truth
than these marks state. Extra-P uses its default modeler for several parameters. The cost is
processor time per model, ours with its band.
"""

AXES = (
    (8.0, 16.0, 32.0, 64.0, 128.0),
    (10.0, 20.0, 30.0, 40.0, 50.0),
    (4.0, 6.0, 8.0, 10.0, 12.0),
    (2.0, 4.0, 8.0, 16.0, 32.0),
    (3.0, 5.0, 7.0, 9.0, 11.0),
)
NEXT = (256.0, 60.0, 14.0, 64.0, 13.0)
"""The next value of each parameter."""
NOISES = (0.0, 0.01, 0.02, 0.05, 0.1)
REPETITIONS = 5
SEEDS = (11, 12)
EACH = 100
"""Laws of a cell, for each seed."""
_COUNTS, _OF_PEER = (2, 3, 4, 5), 3
"""Numbers of parameters; Extra-P knows all products and sums of up to three."""
_LIMITS = (1e-6, 0.05, 0.2)
_SURE = 3

_CLASSES = (
    *((power, log) for power in ("0", "1/4", "1/3", "1/2", "2/3", "3/4") for log in (0, 1, 2)),
    *((power, log) for power in ("1", "3/2", "2", "5/2") for log in (0, 1, 2)),
    *((power, log) for power in ("5/4", "4/3", "3") for log in (0, 1)),
    *((power, 0) for power in ("4/5", "5/3", "7/4", "9/4", "7/3", "8/3", "11/4")),
)
CLASSES = tuple(Term(Fraction(power), log) for power, log in _CLASSES if (power, log) != ("0", 0))
"""The classes of terms of Extra-P."""

Law = Callable[[FloatArray], FloatArray]


def sparse(count: int) -> FloatArray:
    """Return a line of each of `count` parameters and one inner point, [K, count]."""
    least = [axis[0] for axis in AXES[:count]]
    lines = [
        [*least[:place], value, *least[place + 1 :]]
        for place, axis in enumerate(AXES[:count])
        for value in axis[1:]
    ]
    return np.array([least, *lines, [axis[1] for axis in AXES[:count]]])


def draw(random: np.random.Generator, count: int) -> Law:
    """Return a constant and a sum of products, in which each parameter has one term."""
    every = list(partitions(range(count)))
    groups = every[int(random.integers(len(every)))]
    terms = [CLASSES[k] for k in random.integers(len(CLASSES), size=count)]
    numbers = 10.0 ** random.uniform(-3, 3, 1 + len(groups))

    def law(points: FloatArray) -> FloatArray:
        value = np.full(len(points), numbers[0])
        for number, group in zip(numbers[1:], groups, strict=True):
            value += number * np.prod([terms[axis](points[:, axis]) for axis in group], axis=0)
        return value

    return law


def measured(
    random: np.random.Generator, laws: list[Law], points: FloatArray, noise: float
) -> FloatArray:
    """Return measurements of laws, [n, K, R]; one repetition without noise."""
    exact = np.array([law(points) for law in laws])[:, :, None]
    scatter = random.uniform(-0.5, 0.5, (len(laws), len(points), REPETITIONS if noise else 1))
    return np.asarray(exact * (1 + noise * scatter))


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predictions at a target with bands, [n], and the processor time of a model in ms."""

    value: FloatArray
    low: FloatArray
    high: FloatArray
    cost: float


def predictions(points: FloatArray, values: FloatArray, target: FloatArray) -> Predicted:
    """Return predictions at a target [D] of laws that are one experiment."""
    start = time.process_time()
    models, _ = slice_with_line_models(fit(points, values), 0, target, points, values)
    band = models.predict(target[:1])
    cost = 1000 * (time.process_time() - start) / len(values)
    return Predicted(band.value[:, 0], band.low[:, 0], band.high[:, 0], cost)


def table(_: Path) -> Table:
    """Measure, and return the table."""
    shares = "1e-6", "5 %", "20 %"
    head = (
        *("parameters", "noise", "target", *shares, "held", "sure and wrong", "cost"),
        *(f"{EXTRAP.name} {shares[0]}", *(f"{share} " for share in shares[1:])),
    )
    return Table(head, list(_lines()), range(3, len(head)))


def _lines() -> Iterator[tuple[str, ...]]:
    for count, noise in product(_COUNTS, NOISES):
        points = sparse(count)
        targets = {"next": np.array(NEXT[:count]), "twice": 2 * points.max(axis=0)}
        for name, target in targets.items() if not noise else [("next", targets["next"])]:
            yield str(count), f"{100 * noise:g} %", name, *_line(points, noise, target)


def _line(points: FloatArray, noise: float, target: FloatArray) -> tuple[str, ...]:
    ours, theirs, held, wrong, costs = [], [], [], [], []
    for seed in SEEDS:
        random = np.random.default_rng([seed, points.shape[1], int(1000 * noise)])
        laws = [draw(random, points.shape[1]) for _ in range(EACH)]
        values = measured(random, laws, points, noise)
        truth = np.array([law(target[None])[0] for law in laws])
        found = predictions(points, values, target)
        ours.append(np.abs(found.value / truth - 1))
        held.append((found.low <= truth * (1 + 1e-6)) & (found.high >= truth * (1 - 1e-6)))
        marks = marks_of_trust(found.value, found.low, found.high)
        off = np.maximum(found.value / truth, truth / found.value)
        most = np.array(WITHIN)[MARKS - np.maximum(marks, 1)]
        wrong.append((off > most)[marks >= _SURE])
        costs.append(found.cost)
        if points.shape[1] <= _OF_PEER:
            peer = extrap_models.predict(points, values, target[None])[0][:, 0]
            theirs.append(np.abs(peer / truth - 1))
    return (
        *_shares(ours),
        f"{100 * np.concatenate(held).mean():.1f} %",
        f"{100 * np.concatenate(wrong).mean():.1f} %",
        f"{np.mean(costs):.3g} ms",
        *(_shares(theirs) if theirs else [""] * len(_LIMITS)),
    )


def _shares(errors: list[FloatArray]) -> list[str]:
    return [f"{100 * (np.concatenate(errors) <= limit).mean():.1f} %" for limit in _LIMITS]
