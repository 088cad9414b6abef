"""Lines through the parameter space: one parameter varies, the others are fixed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray

_WORKERS = (
    (
        "p",
        "np",
        "proc",
        "procs",
        "processes",
        "processors",
        "ranks",
        "tasks",
        "pe",
        "pes",
        "mpi",
        "prozesse",
        "prozessoren",
        "processus",
        "procesos",
        "processi",
    ),
    ("core", "cores", "cpu", "cpus", "kerne", "coeurs"),
    ("gpu", "gpus", "gcd", "gcds", "devices", "accelerators"),
    ("thread", "threads", "workers", "omp"),
    ("nodes", "hosts", "knoten", "noeuds", "nodos", "instances"),
)
"""Words for workers. The first groups divide a program most finely, so they have priority."""
_COUNTS = frozenset(
    {"n", "nb", "num", "nr", "no", "number", "of", "count", "total", "mpi", "used", "requested",
     "allocated", "anzahl", "nombre", "de", "numero"}
)  # fmt: skip
"""Words that do not change what is counted."""
_BRACKETS = re.compile(r"[\[(][^\[(\])]*[\])]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_NO_LETTERS = re.compile(r"[^a-z]+")


def worker_parameter(varying: Iterable[str]) -> str | None:
    """Return the parameter that counts workers; None = none.

    Processes have priority, then cores, GPUs, threads and nodes.

    >>> [worker_parameter([name]) for name in ("p", "nGPUs", "num_nodes", "cores_per_node", "size")]
    ['p', 'nGPUs', 'num_nodes', None, None]
    """
    found = {name: _worker_group(name) for name in varying}
    counting = [name for name, group in found.items() if group is not None]
    return min(counting, key=lambda name: found[name] or 0, default=None)


def _worker_group(name: str) -> int | None:
    """Return the number of the group in `_WORKERS` to which the workers belong; None = none."""
    bare = _BRACKETS.sub(" ", name)
    words = _NO_LETTERS.sub(" ", _CAMEL.sub(" ", bare).lower()).split()
    words = [word for word in words if word not in _COUNTS] or words[-1:]
    if len(words) != 1:
        return None
    spelled = {words[0], *(words[0].removeprefix(start) for start in ("n", "num", "nb"))}
    return next((k for k, group in enumerate(_WORKERS) if not spelled.isdisjoint(group)), None)


def main_parameter(names: Iterable[str]) -> str | None:
    """Return the default parameter: p, or else the first one; None = no parameters."""
    listed = list(names)
    return "p" if "p" in listed else next(iter(listed), None)


class ParameterLine(Struct, frozen=True):
    """A varying parameter, and the fixed values of the others.

    Attributes
    ----------
    parameter : the varying parameter
    held : fixed values of the other parameters
    measured_at : measured values nearest to `held`
    assumed : fixed parameters whose value the user did not give
    """

    parameter: str
    held: Mapping[str, float] = msgspec.field(default_factory=dict)
    measured_at: Mapping[str, float] = msgspec.field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All parameters, the varying one first."""
        return self.parameter, *self.held

    def at(self, scale: float) -> dict[str, float]:
        """Return the values of all parameters at a scale."""
        return {self.parameter: scale, **self.held}


def nearest_line(
    names: Sequence[str], settings: FloatArray, held: Mapping[str, float]
) -> ParameterLine:
    """Return the line with fixed values, and the measured settings nearest to them.

    Parameters
    ----------
    names : the varying parameter, then the others
    settings : [m, names] measured settings, above zero; m > 0
    held : fixed values; the default is the largest measured value
    """
    parameter, *others = names
    largest = dict(zip(others, settings[:, 1:].max(axis=0).tolist(), strict=True))
    at = {name: held.get(name, value) for name, value in largest.items()}
    near = _nearest(settings[:, 1:], np.array([*at.values()]))
    measured_at = dict(zip(others, near, strict=True))
    return ParameterLine(
        parameter, at, measured_at, tuple(name for name in others if name not in held)
    )


def _nearest(settings: FloatArray, at: FloatArray) -> list[float]:
    """Return the setting nearest to `at` [D] by ratio; of two equally near ones, the larger."""
    distance = np.abs(np.log(settings / at)).sum(axis=1)
    near = settings[distance <= distance.min() + 1e-9]
    nearest: list[float] = near[np.lexsort(near.T[::-1])[-1]].tolist() if len(at) else []
    return nearest
