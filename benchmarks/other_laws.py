"""Laws that no hypothesis contains by formula, small whole numbers, and laws of rare rules."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from programs import Draw, Law, Programs

_POINTS = 24 * 2.0 ** np.arange(6)
_FEW_POINTS = 16 * 2.0 ** np.arange(4)
_MANY_POINTS = 8 * 2.0 ** np.arange(8)
_LARGEST = _POINTS[-1]
_SEEDS, _NOISE, _LITTLE_NOISE = (81, 82, 83), 0.03, 0.01


def _log_uniform(rng: np.random.Generator, least: float, most: float) -> float:
    return float(np.exp(rng.uniform(np.log(least), np.log(most))))


def _power(rng: np.random.Generator) -> Law:
    power, rest = rng.uniform(0.1, 2.2), _log_uniform(rng, 0.01, 10)
    return lambda p: rest + (p / _LARGEST) ** power


def _falling_power(rng: np.random.Generator) -> Law:
    power, rest = rng.uniform(0.3, 1.7), _log_uniform(rng, 0.01, 1)
    return lambda p: (_LARGEST / p) ** power + rest * np.log2(p)


def _saturation(rng: np.random.Generator) -> Law:
    half, rest = _log_uniform(rng, 24, 1500), _log_uniform(rng, 0.03, 3)
    return lambda p: rest + p / (p + half)


def _late_logarithm(rng: np.random.Generator) -> Law:
    late, rest = _log_uniform(rng, 12, 800), _log_uniform(rng, 0.03, 3)
    return lambda p: rest + np.log2(1 + p / late)


def _gradual_rise(rng: np.random.Generator) -> Law:
    full, sharp = _log_uniform(rng, 48, 700), rng.uniform(1.5, 8)
    return lambda p: (1 + (p / full) ** sharp) ** (1 / sharp)


def _gradual_floor(rng: np.random.Generator) -> Law:
    full, sharp = _log_uniform(rng, 48, 700), rng.uniform(1.5, 8)
    return lambda p: (1 + (full / p) ** sharp) ** (1 / sharp)


def _three_terms(rng: np.random.Generator) -> Law:
    tree, messages = _log_uniform(rng, 0.003, 0.3), _log_uniform(rng, 0.01, 1)
    return lambda p: _LARGEST / p + tree * np.log2(p) + messages * p / _LARGEST


def _another_algorithm(rng: np.random.Generator) -> Law:
    place, factor = _log_uniform(rng, 60, 600), rng.uniform(1.2, 3)
    power = rng.uniform(0.2, 1)
    return lambda p: np.where(p > place, factor * (p / place) ** power, 1 + 0.1 * np.log2(p / 24))


def _dearer_term(rng: np.random.Generator) -> Law:
    place, factor, power = _log_uniform(rng, 60, 600), rng.uniform(1.3, 4), rng.uniform(-1.2, 1.2)
    return lambda p: np.where(p > place, factor, 1) * (p / 24) ** power


def _sorted_share(rng: np.random.Generator) -> Law:
    items, rest = 2.0 ** rng.uniform(18, 34), _log_uniform(rng, 0.003, 0.3)
    return lambda p: np.log2(items / p) / np.log2(items) * _LARGEST / p + rest


def _slow_root(rng: np.random.Generator) -> Law:
    rest = _log_uniform(rng, 0.03, 3)
    return lambda p: rest + np.sqrt(p / _LARGEST) * np.log2(p) ** 0.7


_OTHER_LAWS: Mapping[str, Draw] = {
    "a power between those tried": _power,
    "a falling power, and a collective": _falling_power,
    "saturation": _saturation,
    "a logarithm that begins late": _late_logarithm,
    "a gradual rise": _gradual_rise,
    "a gradual floor": _gradual_floor,
    "three terms": _three_terms,
    "another algorithm from some p on": _another_algorithm,
    "a term that costs more from some p on": _dearer_term,
    "each process sorts its share": _sorted_share,
    "a root times a power of a logarithm": _slow_root,
}

OTHER_PROGRAMS = Programs(_OTHER_LAWS, _POINTS, _NOISE, _SEEDS)
"""Programs of laws that no hypothesis contains."""


def _levels(rng: np.random.Generator) -> Law:
    fan, each = int(rng.integers(2, 17)), int(rng.integers(1, 20))
    return lambda p: each * np.ceil(np.log(p) / np.log(fan) - 1e-9)


def _iterations(rng: np.random.Generator) -> Law:
    few, more, power = _log_uniform(rng, 1, 30), _log_uniform(rng, 0.3, 10), rng.uniform(0.2, 0.6)
    return lambda p: np.round(few + more * p**power)


def _blocks(rng: np.random.Generator) -> Law:
    cells = _log_uniform(rng, 600, 30000)
    return lambda p: np.ceil(cells / p)


def _messages(rng: np.random.Generator) -> Law:
    few, each = int(rng.integers(0, 20)), int(rng.integers(1, 7))
    return lambda p: few + each * np.round(np.log2(p))


def _same(rng: np.random.Generator) -> Law:
    number = int(rng.integers(1, 300))
    return lambda p: np.full(len(p), float(number))


_COUNTS: Mapping[str, Draw] = {
    "levels of a tree": _levels,
    "iterations": _iterations,
    "blocks of a process": _blocks,
    "messages": _messages,
    "the same number": _same,
}

COUNTS = tuple(Programs(_COUNTS, points, 0.0, _SEEDS) for points in (_FEW_POINTS, _POINTS))
"""Programs of small whole numbers without noise, at four and at six points."""


def _of_neighbours(rng: np.random.Generator) -> Law:
    dimensions = int(rng.integers(2, 4))
    return lambda p: p - p ** (1 - 1 / dimensions)


def _electrons(rng: np.random.Generator) -> Law:
    power = int(rng.integers(4, 8))
    return lambda n: (n / _MANY_POINTS[-1]) ** power


def _step_down(rng: np.random.Generator) -> Law:
    place, rest = _log_uniform(rng, 12, 200), _log_uniform(rng, 0.1, 3)
    return lambda p: rest + (p <= place)


def _plateau(rng: np.random.Generator) -> Law:
    place, power = float(rng.choice(_MANY_POINTS[2:5])), float(rng.choice([0.5, 1.0]))
    return lambda p: np.minimum(1, p / place) ** power


def _floor(rng: np.random.Generator) -> Law:
    place, power = float(rng.choice(_MANY_POINTS[2:5])), float(rng.choice([0.5, 1.0]))
    return lambda p: np.maximum(1, place / p) ** power


def _two_laws(rng: np.random.Generator) -> Law:
    place, after = _log_uniform(rng, 20, 60), _log_uniform(rng, 1, 4)
    return lambda p: np.where(p > place, after * place + np.sqrt(p), p)


_RARE_LAWS: Mapping[str, Draw] = {
    "messages between neighbours": _of_neighbours,
    "correlated electrons": _electrons,
    "a step down": _step_down,
    "a plateau": _plateau,
    "a floor": _floor,
    "two laws": _two_laws,
}

RARE_PROGRAMS = Programs(_RARE_LAWS, _MANY_POINTS, _LITTLE_NOISE, _SEEDS)
"""Programs of laws that one rule of the method exists for, and that other programs lack."""
