"""Kinds of scaling that profiles state: in words, by a total size, or by a size per process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

import numpy as np
from msgspec import Struct

from callpath_modeler.arrays import FloatArray
from callpath_modeler.profile.experiment import Scaling
from callpath_modeler.profile.parameter_line import worker_parameter
from callpath_modeler.profile.runs import Run
from callpath_modeler.units import parameter_value

_KINDS = {"strong": Scaling.STRONG, "weak": Scaling.WEAK}
_LETTERS = re.compile(r"[a-z]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SIZES = frozenset(
    {"size", "sizes", "elements", "elems", "cells", "points", "atoms", "particles", "bodies", "dof",
     "dofs", "unknowns", "rows", "grid", "mesh", "zones", "problem", "work", "n", "items", "edges",
     "vertices", "samples", "sites"}
)  # fmt: skip
_TOTAL = frozenset({"total", "global", "overall", "whole", "all"})
_INPUT = frozenset({"input"})
_OWN = frozenset({"local", "per"})
_NO_SIZES = frozenset(
    {"world", "comm", "job", "jobsize", "block", "message", "msg", "cache", "memory", "mem", "page",
     "datatype", "type", "buffer", "chunk", "stack", "heap", "line", "communicator", "pool", "file",
     "window", "font", "step", "steps", "time"}
)  # fmt: skip
_SAME = 0.02
"""Largest relative difference of sizes that are the same, such as after rounding."""
_GROWTHS = (1.0, 0.5, 1 / 3)
"""Powers of the number of workers at which sizes of 1, 2 and 3 dimensions grow or fall."""
_RANGE = 2.0
"""Smallest ratio of the largest to the smallest size that changes with the number of workers."""


class Statement(Struct, frozen=True):
    """A kind of scaling that the runs state.

    Attributes
    ----------
    kind : weak or strong
    reason : the statement, such as ``scalability = strong``
    is_explicit : the statement is about the scaling; otherwise, it is a name, or a size whose
        meaning is likely, and it only decides if nothing else does
    is_name : the statement is a word in the names of the runs
    """

    kind: Scaling
    reason: str
    is_explicit: bool = False
    is_name: bool = False


def stated_scaling(runs: Sequence[Run]) -> Statement | None:
    """Return the kind of scaling that the runs state; None = they state none, or several."""
    if not runs:
        return None
    by_key = {key: [run.metadata.get(key, "") for run in runs] for key in _keys(runs)}
    said = [each for key, values in by_key.items() if (each := _in_words(key, values))]
    if said:
        return _agreed(said)
    by_size = _by_sizes(runs, by_key)
    explicit = [each for each in by_size if each.is_explicit]
    if explicit:
        return _agreed(explicit)
    return _agreed(by_size) or _by_name(runs)


def _keys(runs: Sequence[Run]) -> list[str]:
    """Return the metadata keys of all runs."""
    return list(dict.fromkeys(key for run in runs for key in run.metadata))


def _agreed(found: Sequence[Statement]) -> Statement | None:
    """Return the first statement if all are of one kind."""
    return found[0] if len({each.kind for each in found}) == 1 else None


def _words(text: str) -> list[str]:
    return _LETTERS.findall(_CAMEL.sub(" ", text).lower())


def _in_words(key: str, values: Sequence[str]) -> Statement | None:
    """Return the kind that an entry such as ``scalability = strong`` names in every run."""
    if not any(word.startswith(("scal", "weak", "strong")) for word in _words(key)):
        return None
    kinds = {_kind_in(value) for value in values if value}
    if len(kinds) != 1 or None in kinds:
        return None
    shown = next(value for value in values if value)
    return Statement(kinds.pop() or Scaling.WEAK, f"{key} = {shown}", is_explicit=True)


def _kind_in(text: str) -> Scaling | None:
    """Return the kind whose word a text contains; None = none, or both."""
    found = {_KINDS[word] for word in _words(text) if word in _KINDS}
    return found.pop() if len(found) == 1 else None


def _by_name(runs: Sequence[Run]) -> Statement | None:
    """Return the kind whose word the names of all runs contain."""
    names = [PurePath(run.source) for run in runs]
    kinds = {_kind_in(" ".join(name.parts[-3:])) for name in names}
    kind = kinds.pop() if len(kinds) == 1 else None
    return Statement(kind, f"the names of the runs say {kind}", is_name=True) if kind else None


def _workers(runs: Sequence[Run]) -> FloatArray | None:
    """Return the varying number of workers of each run; None = it is not known."""
    names = runs[0].parameters
    varying = [name for name in names if len({run.parameters[name] for run in runs}) > 1]
    name = worker_parameter(varying)
    if name is None:
        return None
    found = np.array([run.parameters[name] for run in runs])
    return found if found.min() > 0 else None


def _numbers(values: Sequence[str]) -> FloatArray | None:
    """Return entries as numbers; None = one is none, or not above zero."""
    try:
        found = np.array([float(value) for value in values])
    except ValueError:
        return None
    return found if np.isfinite(found).all() and found.min() > 0 else None


def _by_sizes(runs: Sequence[Run], by_key: Mapping[str, Sequence[str]]) -> list[Statement]:
    """Return the kinds that sizes in metadata and parameters tell."""
    workers = _workers(runs)
    if workers is None:
        return []
    columns = {name: [str(run.parameters[name]) for run in runs] for name in runs[0].parameters}
    found = []
    for name, texts in {**by_key, **columns}.items():
        values = _numbers(texts)
        each = None if values is None else _by_size(name, values, workers)
        found += [] if each is None else [each]
    return found


def _by_size(name: str, values: FloatArray, workers: FloatArray) -> Statement | None:
    """Return the kind that a size tells by its change with the number of workers."""
    words = {*_words(name)}
    if not words & _SIZES or words & _NO_SIZES or worker_parameter([name]) is not None:
        return None
    if np.allclose(values, values[0], rtol=_SAME):
        return _by_constant(name, words, float(values[0]))
    if values.max() < _RANGE * values.min() or (values == workers).all():
        return None
    for power in _GROWTHS:
        for sign, kind in ((1, Scaling.WEAK), (-1, Scaling.STRONG)):
            ratio = values / workers ** (sign * power)
            if np.allclose(ratio, ratio[0], rtol=_SAME):
                how = "grows" if sign > 0 else "falls"
                return Statement(kind, f"{name} {how} with the number of workers", is_explicit=True)
    return None


def _by_constant(name: str, words: set[str], value: float) -> Statement | None:
    """Return the kind that a constant size tells; None = the name does not tell its meaning."""
    said = f"{name} = {parameter_value(value)} at every scale"
    if words & _OWN:
        return Statement(Scaling.WEAK, said, is_explicit=True)
    if words & _TOTAL:
        return Statement(Scaling.STRONG, said, is_explicit=True)
    if words & _INPUT:
        return Statement(Scaling.STRONG, said)
    return None
