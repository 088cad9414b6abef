"""Known laws of programs, mostly outside the normal form: nodes, switches, files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from programs import Draw, FloatArray, Law, Programs
from results import Table

NOTES = """\
The programs have 12 call paths of each mechanism, at p = 24, 48, ..., 768 on nodes of 48 cores,
with three repetitions, 3 % log-normal noise and 3 seeds. All other numbers are random, such as the
scale at which a file system or a network is full, the sizes at which algorithms change, and the
share of work that is not divided. Error: the median at 16 times the largest scale. Held: the share
of 95 % bands there that contain the truth. Sure and wrong: predictions with two marks of trust or
more that are further off than the marks state.
"""

_POINTS = 24 * 2.0 ** np.arange(6)
_NODE, _LARGEST = 48, _POINTS[-1]
_SEEDS, _NOISE = (71, 72, 73), 0.03


def _drawn(rng: np.random.Generator, least: float, most: float) -> float:
    return float(np.exp(rng.uniform(np.log(least), np.log(most))))


def _largest_of(p: FloatArray) -> FloatArray:
    """Return an approximation of the largest of p standard normal times."""
    return np.asarray(np.sqrt(2 * np.log(p)))


def _levels(p: FloatArray) -> FloatArray:
    return np.asarray(np.ceil(np.log2(p) - 1e-9))


def _constant(_: np.random.Generator) -> Law:
    return np.ones_like


def _amdahl(rng: np.random.Generator) -> Law:
    rest = _drawn(rng, 0.003, 1)
    return lambda p: _LARGEST / p + rest


def _work_and_collectives(rng: np.random.Generator) -> Law:
    collective = _drawn(rng, 0.003, 0.1)
    return lambda p: _LARGEST / p + collective * np.log2(p)


def _work_and_messages(rng: np.random.Generator) -> Law:
    messages = _drawn(rng, 0.03, 1)
    return lambda p: _LARGEST / p + messages * p / _LARGEST


def _ghost_cells(rng: np.random.Generator) -> Law:
    edge = _drawn(rng, 8, 64)
    return lambda p: (edge * np.cbrt(_LARGEST / p) + 2) ** 3


def _imbalance(rng: np.random.Generator) -> Law:
    spread = _drawn(rng, 0.03, 0.5)
    return lambda p: 1 + spread * _largest_of(p)


def _waiting(rng: np.random.Generator) -> Law:
    spread, least = _drawn(rng, 0.1, 1), _drawn(rng, 0.01, 0.3)
    return lambda p: least + spread * _largest_of(p)


def _halo(rng: np.random.Generator) -> Law:
    startup = _drawn(rng, 0.01, 1)
    return lambda p: (_LARGEST / p) ** (2 / 3) + startup


def _outside_of_a_node(rng: np.random.Generator) -> Law:
    slower = _drawn(rng, 0.3, 10)
    return lambda p: 1 + slower * np.maximum(0.0, 1 - _NODE / p)


def _tapered_network(rng: np.random.Generator) -> Law:
    pod, slower = _drawn(rng, 96, 500), _drawn(rng, 1, 3)
    return lambda p: 1 + slower * np.maximum(0.0, 1 - pod / p)


def _levels_above_a_node(rng: np.random.Generator) -> Law:
    within = _drawn(rng, 0.03, 0.3)
    return lambda p: within * _levels(np.minimum(p, _NODE)) + _levels(np.maximum(1, p / _NODE))


def _full_file_system(rng: np.random.Generator) -> Law:
    full, rest = _drawn(rng, 48, 700), _drawn(rng, 0.1, 3)
    return lambda p: rest + np.maximum(1.0, p / full)


def _file_system_that_fills(rng: np.random.Generator) -> Law:
    full, rest = _drawn(rng, 96, 1500), _drawn(rng, 0.1, 3)
    return lambda p: rest + (1 + (p / full) ** 4) ** 0.25


def _transposition(rng: np.random.Generator) -> Law:
    startup = _drawn(rng, 0.03, 3) / _LARGEST**2
    return lambda p: (p - 1) * (startup + 1 / p**2)


def _ring(rng: np.random.Generator) -> Law:
    startup = _drawn(rng, 0.001, 0.1)
    return lambda p: 1 + startup * (p - 1)


def _iterations(rng: np.random.Generator) -> Law:
    few, more, collective = _drawn(rng, 3, 30), _drawn(rng, 1, 10), _drawn(rng, 0.01, 0.2)
    return lambda p: np.round(few + more * np.cbrt(p)) * (1 + collective * np.log2(p))


_MECHANISMS: Mapping[str, Draw] = {
    "constant": _constant,
    "shared work, and what is not shared": _amdahl,
    "shared work and collectives": _work_and_collectives,
    "shared work and messages to all": _work_and_messages,
    "ghost cells": _ghost_cells,
    "surfaces and start-up times": _halo,
    "imbalance: the slowest of p": _imbalance,
    "waiting for the slowest of p": _waiting,
    "partners outside of a node": _outside_of_a_node,
    "a network tapered beyond a pod": _tapered_network,
    "levels of a tree, dearer above a node": _levels_above_a_node,
    "a file system, full from some p on": _full_file_system,
    "a file system that fills gradually": _file_system_that_fills,
    "transposition of shared data": _transposition,
    "ring of all": _ring,
    "iterations, p^(1/3), with a collective": _iterations,
}


PROGRAMS = Programs(_MECHANISMS, _POINTS, _NOISE, _SEEDS)
"""Programs of these mechanisms; those of one seed are modelled as one program."""


def table(_: Path) -> Table:
    """Measure all mechanisms."""
    return PROGRAMS.table("mechanism")
