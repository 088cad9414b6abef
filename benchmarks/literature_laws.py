"""Accuracy of models of products and sums in two to four parameters, on sparse designs.

python literature_laws.py [--peer] [--each N] [--seed N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from fractions import Fraction

import extrap_models
import numpy as np

from callpath_modeler.analysis.trust import marks_of_trust
from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Term, fit, slice_with_line_models

AXES = (
    (8.0, 16.0, 32.0, 64.0, 128.0),
    (10.0, 20.0, 30.0, 40.0, 50.0),
    (4.0, 6.0, 8.0, 10.0, 12.0),
    (2.0, 4.0, 8.0, 16.0, 32.0),
    (3.0, 5.0, 7.0, 9.0, 11.0),
)
NEXT = (256.0, 60.0, 14.0, 64.0, 13.0)
"""The next value of each parameter."""
NOISES = (0.01, 0.02, 0.05, 0.1)
REPETITIONS = 5

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


def partition(random: np.random.Generator, count: int) -> list[list[int]]:
    """Return a division of `count` parameters into groups, all with the same probability."""
    every = list(_partitions(list(range(count))))
    return every[int(random.integers(len(every)))]


def _partitions(axes: list[int]) -> Iterator[list[list[int]]]:
    if not axes:
        yield []
        return
    for rest in _partitions(axes[1:]):
        yield [[axes[0]], *rest]
        for place, group in enumerate(rest):
            yield [*rest[:place], [axes[0], *group], *rest[place + 1 :]]


def draw(random: np.random.Generator, count: int) -> Law:
    """Return a constant and a sum of products, in which each parameter has one term."""
    groups = partition(random, count)
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


def predictions(
    points: FloatArray, values: FloatArray, target: FloatArray, together: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values and bands at a target [D], [n]; `together` laws are one experiment."""
    found = []
    for start in range(0, len(values), together):
        some = values[start : start + together]
        models, _ = slice_with_line_models(fit(points, some), 0, target, points, some)
        band = models.predict(target[:1])
        found.append([each[:, 0] for each in (band.value, band.low, band.high)])
    return tuple(np.concatenate(each) for each in zip(*found, strict=True))  # type: ignore[return-value]


def main() -> None:
    """Print a line for each number of parameters, noise and target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--each", type=int, default=200)
    parser.add_argument("--together", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--counts", type=int, nargs="*", default=[2, 3, 4])
    parser.add_argument("--noises", type=float, nargs="*", default=[0.0, *NOISES])
    options = parser.parse_args()
    print("D noise  target  1e-6  5%  20%  held  marked wrong  width   ms | peer 1e-6 5% 20%")
    for count in options.counts:
        points = sparse(count)
        for noise in options.noises:
            random = np.random.default_rng([options.seed, count, int(1000 * noise)])
            laws = [draw(random, count) for _ in range(options.each)]
            values = measured(random, laws, points, noise)
            for name, target in (
                ("next", np.array(NEXT[:count])),
                ("twice", 2 * points.max(axis=0)),
            ):
                if noise and name == "twice":
                    continue
                _line(options, count, noise, name, points, values, laws, target)


def _line(
    options: argparse.Namespace,
    count: int,
    noise: float,
    name: str,
    points: FloatArray,
    values: FloatArray,
    laws: list[Law],
    target: FloatArray,
) -> None:
    truth = np.array([law(target[None])[0] for law in laws])
    start = time.process_time()
    value, low, high = predictions(points, values, target, options.together)
    cost = 1000 * (time.process_time() - start) / len(laws)
    error = np.abs(value / truth - 1)
    held = (low <= truth * (1 + 1e-6)) & (truth * (1 - 1e-6) <= high)
    marked = marks_of_trust(value, low, high) >= 3
    shares = [100 * (error <= limit).mean() for limit in (1e-6, 0.05, 0.2)]
    text = (
        f"{count} {noise:5.2f} {name:>6}  "
        + " ".join(f"{each:5.1f}" for each in shares)
        + f"  {100 * held.mean():5.1f}  {marked.sum():4d} {(marked & ~held).sum():4d}"
        + f"  {np.median(high / low):6.3f} {cost:6.1f}"
    )
    if options.peer:
        peer = extrap_models.predict(points, values, target[None])[0][:, 0]
        error = np.abs(peer / truth - 1)
        text += " | " + " ".join(f"{100 * (error <= x).mean():5.1f}" for x in (1e-6, 0.05, 0.2))
    print(text, flush=True)


if __name__ == "__main__":
    main()
