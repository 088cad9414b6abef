"""Marks of trust of published laws: data decide on most of them, but not on one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from results import Table

from callpath_modeler import modeling
from callpath_modeler.analysis.uncertain import at_most, is_unknown, limited, marks_of_trust
from callpath_modeler.arrays import FloatArray, Int8Array

NOTES = """\
The laws are those of Calotoiu et al. (SC13): HOMME up to 15,000 processes, seen at seven scales,
and the tables of Sweep3D, MILC and HOMME up to 43,350 processes. Values have five repetitions with
normal noise. Targets are p = 130,000 for HOMME, p = 262,144 for Sweep3D and MILC, and 4 times the
largest size for MILC over sizes. Reduce is the only growing law of the first table. Holds: the
share of 95 % bands that contain the law. Or one mark: or the prediction has at most one mark of
trust. Marks: the mean number. Before: without the laws that fit as well as the model.
"""

_SEEDS = range(90)
_NOISES = 0.01, 0.02, 0.05, 0.1
_REPETITIONS = 5

Law = Callable[[FloatArray], FloatArray]


def _constant(value: float) -> Law:
    return lambda p: np.full_like(p, value)


def _squares(base: float, factor: float) -> Law:
    return lambda p: base + factor * p**2


@dataclass(frozen=True, slots=True)
class _Published:
    """Laws of one program.

    Attributes
    ----------
    points : measured scales
    target : value of the parameter of predictions
    laws : laws by call path
    """

    points: FloatArray
    target: float
    laws: Mapping[str, Law]

    def marks(self, noise: float, seed: int) -> tuple[FloatArray, Int8Array]:
        """Return whether bands contain the laws, and marks of trust, each [laws]."""
        random = np.random.default_rng(seed)
        values = np.array([law(self.points) for law in self.laws.values()])
        scatter = random.normal(0, noise, (*values.shape, _REPETITIONS))
        models = modeling.fit(self.points, np.abs(values[..., None] * (1 + scatter)))
        at = np.array([self.target])
        truth = np.array([law(at)[0] for law in self.laws.values()])
        band = models.predict(at)
        value, low, high = (each[:, 0] for each in (band.value, band.low, band.high))
        limits = limited(models, value, self.target / float(self.points[-1]))
        marks = at_most(marks_of_trust(value, low, high), value, limits)
        return (low <= truth) & (truth <= high), marks


_P4 = np.array([600, 1176, 4056, 7776, 13824, 14406, 15000.0])
_P5 = np.append(_P4, [15606, 16224, 23814, 31974, 43350])
_REDUCE = "HOMME up to 15,000: Reduce"
_CONSTANTS = (49.53, 44.08, 34.40, 16.88, 9.74, 15.36, 14.77, 9.76, 48.68, 28.08)
_SQUARES = {
    24.44: 2.26e-7,
    21.84: 1.96e-7,
    17.92: 1.57e-7,
    8.02: 7.56e-8,
    6.51: 7.09e-8,
    7.74: 6.91e-8,
    6.33: 6.88e-8,
    5.5: 3.91e-8,
}
_PROGRAMS = {
    "HOMME up to 15,000": _Published(
        _P4,
        130_000.0,
        {
            "Reduce": lambda p: 0.026 + 2.53e-6 * p**1.5 + 1.24e-12 * p**3,
            **{str(value): _constant(value) for value in _CONSTANTS},
        },
    ),
    "HOMME up to 43,350": _Published(
        _P5,
        130_000.0,
        {
            "Reduce": lambda p: 3.63e-6 * p**1.5 + 7.21e-13 * p**3,
            **{str(base): _squares(base, factor) for base, factor in _SQUARES.items()},
            **{str(value): _constant(value) for value in (49.09, 28.13)},
        },
    ),
    "Sweep3D": _Published(
        2.0 ** np.arange(6, 14),
        262_144.0,
        {
            "Recv": lambda p: 4.03 * p**0.5,
            "sweep": _constant(582.19),
            "Allreduce": lambda p: 1.06 * p**0.5 + 0.03 * p**0.5 * np.log2(p),
            "Send": lambda p: 11.49 + 0.09 * p**0.5 * np.log2(p),
            "source": lambda p: 6.86 + 9.13e-5 * np.log2(p),
        },
    ),
    "MILC": _Published(
        2.0 ** np.arange(7, 17),
        262_144.0,
        {
            "staple": _constant(0.024),
            "Allreduce": lambda p: 6.30e-6 * np.log2(p) ** 2,
            "su3": _constant(0.004),
        },
    ),
    "MILC over sizes": _Published(
        np.array([81, 256, 400, 625, 900, 1080, 1296, 1512, 1764, 2058, 2401.0]),
        9604.0,
        {
            "bytes": lambda v: 72 * v**0.75,
            "lnglinks": lambda v: 5.64e4 * v,
            "fatlinks": lambda v: 1.95e6 * v,
            "congrad": lambda v: 1.16e8 + 3.24e5 * v**1.25,
            "calls": lambda v: 5.11e4 + 1.38e4 * v**0.25,
            "invocations": _constant(2310.0),
        },
    ),
}


def table(_: Path) -> Table:
    """Measure marks and bands with the laws that fit as well, and without."""
    with patch("callpath_modeler.modeling.fitting.with_rival_laws"):
        before = _measured()
    now = _measured()
    lines = [
        (what, f"{noise:.0%}", *_cells(*before[what, noise]), *_cells(*now[what, noise]))
        for what, noise in now
    ]
    columns = "holds", "holds or one mark", "marks"
    head = ("laws", "noise", *(f"before: {each}" for each in columns), *columns)
    return Table(head, lines, range(1, len(head)))


def _measured() -> dict[tuple[str, float], tuple[FloatArray, Int8Array]]:
    """Return whether bands contain the laws, and marks, of each table and noise."""
    found = {}
    for name, program in _PROGRAMS.items():
        for noise in _NOISES:
            drawn = [program.marks(noise, seed) for seed in _SEEDS]
            inside, marks = (np.array(each) for each in zip(*drawn, strict=True))
            if name in _REDUCE:
                found[_REDUCE, noise] = inside[:, 0], marks[:, 0]
                inside, marks = inside[:, 1:], marks[:, 1:]
            found[name, noise] = inside.ravel(), marks.ravel()
    return dict(sorted(found.items(), key=lambda each: each[0][0] != _REDUCE))


def _cells(inside: FloatArray, marks: Int8Array) -> tuple[str, ...]:
    unknown = np.array([is_unknown(each) for each in marks.tolist()])
    return f"{inside.mean():.0%}", f"{(inside | unknown).mean():.0%}", f"{marks.mean():.2f}"
