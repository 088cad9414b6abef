"""Accuracy and cost of models of laws in two and in three parameters."""

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

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling import Term, fit, slice_with_line_models

Law = Callable[[FloatArray], FloatArray]

P = (8.0, 16.0, 32.0, 64.0, 128.0)
N = (10.0, 20.0, 30.0, 40.0, 50.0)
M = (2.0, 4.0, 8.0, 16.0)
REPETITIONS = 3
SEEDS = (1, 2, 3, 4, 5, 6)
EACH = 40
"""Laws of each kind, for each seed."""
NOISES = (0.02, 0.1, 0.3)

_POWERS = [Fraction(text) for text in ["1/3", "1/2", "2/3", "1", "3/2", "2", "3"]]
_LOGS = (0, 1, 2)

NOTES = """\
Two parameters: the grid has p = 8, 16, ..., 128 and n = 10, 20, ..., 50, with three repetitions.
The noise is a factor 1 + U(-1/2, 1/2) times the percentage. There are 6 seeds with 40 laws of each
kind. Terms are p^i log2(p)^j with i of 0, 1/3, 1/2, 2/3, 1, 3/2, 2, 3 and j of 0, 1, 2, and
likewise in n. The growth is 20 to 95 % of the value at the largest p and n. The target is p = 2048
and n = 200. Three parameters, in the lower part: p up to 64, n up to 40 and m = 2, 4, 8, 16. Laws
depend on one or two of them, and there are 2 seeds. The target is p = 1024, n = 160 and m = 64.
Errors are medians. "x 2" is the share of predictions within a factor of two, and "held" is the
share of bands that contain the truth. Extra-P uses its default modeler for several parameters,
which has no decreasing terms. Off: all measurements at one p are off by the same factor of 10 %.
Hidden: n^3/p plus a part n^3 p^i with i of 0, 1/2, 1, whose share at the largest p is between a
thousandth and all. Programs of these two kinds are separate, and have constants. The cost is the
processor time of a model, ours with its band.
"""


@dataclass(frozen=True, slots=True)
class Design:
    """Measured settings [K, D], the target [1, D], the number of draws, and the kinds of laws."""

    name: str
    points: FloatArray
    target: FloatArray
    seeds: tuple[int, ...]
    kinds: dict[str, Callable[[np.random.Generator, FloatArray], Law]]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Laws of one kind: values at the points [n, K, R] and the truth at the target [n]."""

    values: FloatArray
    truth: FloatArray


def table(_: Path) -> Table:
    """Measure, and return the table."""
    head = ("noise", "law", "ours", "x 2", "held", EXTRAP.name, "x 2 ")
    return Table(head, list(_lines()), range(2, 7))


def _lines() -> Iterator[tuple[str, ...]]:
    for design, noise in product(DESIGNS, NOISES):
        yield from _of(design, noise)


def _of(design: Design, noise: float) -> Iterator[tuple[str, ...]]:
    points, target = design.points, design.target
    drawn = {name: draw_laws(design, make, noise) for name, make in design.kinds.items()}
    values = np.concatenate([each.values for each in drawn.values()])
    start = time.process_time()
    models, _ = slice_with_line_models(fit(points, values), 0, target[0], points, values)
    band = models.predict(target[:, 0])
    ours = time.process_time() - start
    cost = extrap_models.cost(points, values[:: len(values) // 200], target)
    peer = extrap_models.predict(points, values, target)[0][:, 0]
    stop = 0
    for name, each in drawn.items():
        rows = slice(stop, stop := stop + len(each.truth))
        low, value, high = (column[rows, 0] for column in (band.low, band.value, band.high))
        held = (low <= each.truth) & (each.truth <= high)
        us, them = _figures(value, each.truth), _figures(peer[rows], each.truth)
        yield f"{100 * noise:g} %", name, us[0], us[1], f"{100 * held.mean():.0f} %", *them
    spent = (1000 * ours / len(values), 1000 * cost.report["seconds"] / cost.report["rows"])
    name = f"cost{design.name}"
    yield f"{100 * noise:g} %", name, f"{spent[0]:.3g} ms", "", "", f"{spent[1]:.3g} ms", ""


def _figures(value: FloatArray, truth: FloatArray) -> tuple[str, str]:
    error = np.abs(value / truth - 1)
    near = (value > truth / 2) & (value < truth * 2)
    return f"{np.median(error):.3f}", f"{100 * near.mean():.0f} %"


def draw_laws(
    design: Design, make: Callable[[np.random.Generator, FloatArray], Law], noise: float
) -> Drawn:
    """Return laws of one kind with their measurements."""
    values, truth = [], []
    for seed in design.seeds:
        random = np.random.default_rng([seed, int(1000 * noise)])
        for _ in range(EACH):
            law = make(random, design.points[-1:])
            scatter = random.uniform(-0.5, 0.5, (len(design.points), REPETITIONS))
            values.append(law(design.points)[:, None] * (1 + noise * scatter))
            truth.append(float(law(design.target)[0]))
    return Drawn(np.array(values), np.array(truth))


def _term(random: np.random.Generator, axis: int) -> Law:
    shapes = [Term(power, log) for power in [Fraction(0), *_POWERS] for log in _LOGS]
    shape = shapes[int(random.integers(1, len(shapes)))]
    return lambda points: shape(points[:, axis])


def _grown(parts: list[Law], random: np.random.Generator, end: FloatArray) -> Law:
    """Return a constant and growing parts with random shares of the value at the end."""
    share = random.uniform(0.2, 0.95)
    shares = share * random.dirichlet(np.full(len(parts), 3.0))
    ends = [float(part(end)[0]) for part in parts]
    factors = [100 * each / end for each, end in zip(shares, ends, strict=True)]
    return lambda points: (
        100 * (1 - share)
        + sum(factor * part(points) for factor, part in zip(factors, parts, strict=True))
    )


def _constant(random: np.random.Generator, _: FloatArray) -> Law:
    value = random.uniform(1, 100)
    return lambda points: np.full(len(points), value)


def _one(random: np.random.Generator, end: FloatArray) -> Law:
    return _grown([_term(random, int(random.integers(end.shape[1])))], random, end)


def _product(random: np.random.Generator, end: FloatArray) -> Law:
    first, second = _term(random, 0), _term(random, 1)
    return _grown([lambda points: first(points) * second(points)], random, end)


def sum_of_terms(random: np.random.Generator, end: FloatArray) -> Law:
    """Return the sum of a constant and a growing term of each parameter."""
    return _grown([_term(random, axis) for axis in range(end.shape[1])], random, end)


def _sum(random: np.random.Generator, end: FloatArray) -> Law:
    return sum_of_terms(random, end[:, :2])


def _shared(random: np.random.Generator, end: FloatArray) -> Law:
    """Return work that is divided among processes, and communication that grows."""
    power = float(random.integers(1, 4))
    fall = float(random.choice([-1, -0.5]))
    second = _term(random, 0)
    return _grown(
        [lambda points: points[:, 1] ** power * points[:, 0] ** fall, second], random, end
    )


def _beside(random: np.random.Generator, end: FloatArray) -> Law:
    first, second, other = _term(random, 0), _term(random, 1), _term(random, 0)
    return _grown([lambda points: first(points) * second(points), other], random, end)


def _off(random: np.random.Generator, end: FloatArray) -> Law:
    """Return a program with all measurements at one p wrong by the same factor."""
    exact = _product(random, end)
    factor = dict(zip(P, np.exp(0.1 * random.standard_normal(len(P))), strict=True))
    return lambda points: exact(points) * [factor.get(p, 1.0) for p in points[:, 0]]


def _hidden(random: np.random.Generator, end: FloatArray) -> Law:
    """Return shared work plus a growing part with any share at the largest p."""
    part, power = np.exp(random.uniform(np.log(1e-3), 0)), float(random.choice([0, 0.5, 1]))

    def law(points: FloatArray) -> FloatArray:
        p, n = (points / end).T
        return n**3 * (1 / p + part * p**power)

    return law


_OF_TWO = np.array(list(product(P, N))), np.array([[16 * P[-1], 4 * N[-1]]])
"""Measured settings, and the target."""

DESIGNS = (
    Design(
        "",
        *_OF_TWO,
        SEEDS,
        {
            "constant": _constant,
            "c0 + f(p) or c0 + g(n)": _one,
            "c0 + f(p) g(n)": _product,
            "c0 + f(p) + g(n)": _sum,
            "c0 + n^k / p^a + f(p)": _shared,
            "c0 + f(p) g(n) + h(p)": _beside,
        },
    ),
    Design(
        " (off)",
        *_OF_TWO,
        SEEDS,
        {"c0 + f(p) g(n), off": _off, "constant (off)": _constant},
    ),
    Design(
        " (hidden)",
        *_OF_TWO,
        SEEDS,
        {"n^3 / p, hidden": _hidden, "constant (hidden)": _constant},
    ),
    Design(
        " (three)",
        np.array(list(product(P[:4], N[:4], M))),
        np.array([[16 * P[3], 4 * N[3], 4 * M[-1]]]),
        SEEDS[:2],
        {
            "one of three": _one,
            "c0 + f(p) g(n) (three)": _product,
            "c0 + f(p) + g(n) (three)": _sum,
        },
    ),
)
