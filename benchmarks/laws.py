"""Known laws with noise, and the fits of cpmodel and Extra-P, for the accuracy benchmark.

Laws and noise come from ``bench_accuracy.py``, which implements the usual protocol of the field.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import extrap_models
import numpy as np
from numpy.typing import NDArray

from callpath_modeler import modeling
from callpath_modeler.arrays import FloatArray

Law = Callable[[FloatArray], FloatArray]

MULTIPLES = (1, 4, 16, 128)
"""Targets, as multiples of the largest point."""

APPLICATION = "application"
"""Law of a call path of a program with mostly constant and a few steeply growing call paths."""

REST = "rest"
"""Law of shared work plus a rest that is not shared, however small."""

_APPLICATIONS, _CALL_PATHS = 10, 200
_LAWS = 300


class AbsentError(Exception):
    """A file that a benchmark needs is absent."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """The parameters of a draw.

    Attributes
    ----------
    law : class of the laws in ``bench_accuracy.py``, or `APPLICATION`
    regime : set of points: ``"P5"`` = 8 ... 128, ``"P8"`` = 8 ... 1024
    repetitions : number per point
    noise : percent
    alone : True: each law is a separate experiment; False: all laws are one experiment
    """

    law: str
    regime: str
    repetitions: int
    noise: float
    alone: bool = False

    def __str__(self) -> str:
        alone = ", one by one" * self.alone
        return f"{self.regime} x {self.repetitions}, {self.noise:g} % noise{alone}"


@dataclass(frozen=True, slots=True)
class Draw:
    """Measurements of known laws in one experiment.

    Attributes
    ----------
    p : [K] points
    y : [n, K, R] measurements
    targets : [m] `MULTIPLES` of the largest point
    truth : [n, m] laws at the targets
    again : [n, m] medians of R fresh measurements at the targets
    lead : [n, 2] exponents of the fastest growing term; NaN = the law has no such term
    shapes : [n, 1 + terms, K + m] a constant and the terms of the law, at points and targets
    noise : percent
    """

    p: FloatArray
    y: FloatArray
    targets: FloatArray
    truth: FloatArray
    again: FloatArray
    lead: FloatArray
    shapes: FloatArray
    noise: float

    def alone(self) -> list[Draw]:
        """Return a separate experiment for every row."""
        names = ("y", "truth", "again", "lead", "shapes")
        return [
            replace(self, **{name: getattr(self, name)[row : row + 1] for name in names})
            for row in range(len(self.y))
        ]


@dataclass(frozen=True, slots=True)
class Fitted:
    """The predictions of a modeller for a draw.

    Attributes
    ----------
    value : [n, m] predictions at the targets
    lead : [n, 2] exponents of the fastest growing term
    low, high : [n, m] ends of bands; NaN = no band
    outside : [n] True if the modeller reports that no model of its class fits
    """

    value: FloatArray
    lead: FloatArray
    low: FloatArray
    high: FloatArray
    outside: NDArray[np.bool_]


def protocol(path: Path) -> ModuleType:
    """Return the module ``bench_accuracy.py``.

    Raises
    ------
    AbsentError
        If the file is absent.
    """
    if not path.exists():
        raise AbsentError(f"{path} is not there: the laws and their noise come from it")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AbsentError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(bench: Any, scenario: Scenario, seed: int) -> list[Draw]:
    """Return laws and their measurements, one draw per experiment."""
    p = bench.REGIMES[scenario.regime]
    # The spelling is that of the protocol's command line, because it seeds the noise.
    about = scenario.regime, scenario.repetitions, float(scenario.noise), "uniform", seed
    if scenario.law != APPLICATION:
        if scenario.law == REST:
            truths = _with_rests(bench, p, seed)
        else:
            truths = bench.make_truths(scenario.law, _LAWS, p, seed)
        noise = bench.seed_of("noise", scenario.law, *about)
        drawn = _measured(bench, scenario, truths, noise)
        return drawn.alone() if scenario.alone else [drawn]
    found = []
    for number in range(_APPLICATIONS):
        laws = application(bench, p, number, seed)
        truths = [bench.Truth(law, (np.nan, np.nan)) for law in laws]
        noise = bench.seed_of("appnoise", number, *about)
        found.append(_measured(bench, scenario, truths, noise))
    return found


def application(bench: Any, p: FloatArray, number: int, seed: int) -> list[Law]:
    """Return the laws of the call paths of application `number` of a seed."""
    rng = np.random.default_rng(bench.seed_of("app", number, seed))
    found: list[Law] = bench.make_app(rng, _CALL_PATHS, p)
    return found


def _with_rests(bench: Any, p: FloatArray, seed: int) -> list[Any]:
    """Return laws of shared work plus a rest with any share at the largest point."""
    rng = np.random.default_rng(bench.seed_of(REST, seed))
    shares, kinds = 10 ** rng.uniform(-3, 0, _LAWS), rng.integers(4, size=_LAWS)
    found = []
    for share, kind in zip(shares, kinds, strict=True):
        lead = ((0, 0), (0, 1), (0.5, 0), (1, 0))[kind]
        shared, rest = (1 - share) * p[-1], share / bench.term(p[-1], *lead)
        law = partial(_shared, bench, shared, rest, lead)
        found.append(bench.Truth(law, lead, terms=((rest, *lead),)))
    return found


def _shared(
    bench: Any, shared: float, rest: float, lead: tuple[float, float], p: FloatArray
) -> FloatArray:
    law: FloatArray = shared / p + rest * bench.term(p, *lead)
    return law


def _measured(bench: Any, scenario: Scenario, truths: Sequence[Any], seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    p = bench.REGIMES[scenario.regime]
    targets = p[-1] * np.array(MULTIPLES, float)
    places = np.concatenate([p, targets])
    constant = np.ones_like(places)
    exact = np.array([truth.f(places) * constant for truth in truths])
    # The points are drawn first, so that their noise is that of the protocol.
    y = bench.noisy(exact[:, : len(p)], scenario.noise, scenario.repetitions, rng)
    again = bench.noisy(exact[:, len(p) :], scenario.noise, scenario.repetitions, rng)
    two = scenario.law == "pmnf2"
    shapes = [
        _two_shapes(bench, places, values, truth.lead)
        if two
        else [constant, *(bench.term(places, i, j) for _, i, j in truth.terms)]
        for truth, values in zip(truths, exact, strict=True)
    ]
    return Draw(
        p=p,
        y=y,
        targets=targets,
        truth=exact[:, len(p) :],
        again=np.median(again, axis=2),
        lead=np.array([truth.lead for truth in truths], float),
        shapes=np.array(shapes),
        noise=scenario.noise,
    )


def _two_shapes(
    bench: Any, places: FloatArray, exact: FloatArray, lead: tuple[float, float]
) -> FloatArray:
    """Return the terms of a law of two terms; the protocol states only the leading term.

    The other term is the one that reproduces the law to the last digits.
    """
    shapes = np.array(
        [
            [np.ones_like(places), bench.term(places, i, j), bench.term(places, *lead)]
            for i, j in bench.REALISTIC
            if (i, j) != lead
        ]
    )
    relative = shapes / exact
    relative /= np.linalg.norm(relative, axis=2, keepdims=True)
    inverse = np.linalg.pinv(relative)
    misfit = np.abs(inverse.sum(axis=1)[:, None] @ relative - 1).max(axis=(1, 2))
    found: FloatArray = shapes[misfit.argmin()]
    return found


def ours(given: Draw) -> Fitted:
    """Fit with `callpath_modeler.modeling` and its default options."""
    models = modeling.fit(given.p, given.y)
    predicted = models.predict(given.targets)
    growths = [models.growth(row) for row in range(len(models))]
    return Fitted(
        value=predicted.value,
        lead=np.array([(float(growth.exponent), float(growth.log)) for growth in growths]),
        low=predicted.low,
        high=predicted.high,
        outside=models.status == modeling.FitStatus.OUTSIDE,
    )


def extrap(given: Draw) -> Fitted:
    """Fit with Extra-P."""
    value, lead = extrap_models.predict(given.p, given.y, given.targets)
    nothing = np.full_like(value, np.nan)
    return Fitted(value, lead, nothing, nothing, np.zeros(len(value), np.bool_))
