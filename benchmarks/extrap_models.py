"""Models of Extra-P, from a separate environment and with a cache under ``.work``."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from environments import EXTRAP, WORK
from measure import TASKS, Cost, run
from numpy.typing import ArrayLike

from callpath_modeler.arrays import FloatArray

_REMEMBERED = WORK / "extrap"
_FITTED = "fitted.npz"


def cost(p: ArrayLike, y: ArrayLike, targets: ArrayLike) -> Cost:
    """Return the cost of Extra-P models of values [n, K, R] at points [K], without the cache."""
    WORK.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=WORK) as scratch:
        return _fit(p, y, targets, Path(scratch))


def predict(p: ArrayLike, y: ArrayLike, targets: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return predictions [n, m] of Extra-P and its leading exponents [n, 2].

    Results are cached, because 10,000 models take minutes.
    """
    _REMEMBERED.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(EXTRAP.version.encode())
    for array in (p, y, targets):
        digest.update(np.ascontiguousarray(array, dtype=np.float64))
    fitted = _REMEMBERED / f"{digest.hexdigest()[:32]}.npz"
    if not fitted.exists():
        print(f"  {EXTRAP.name}: {len(np.asarray(y))} models ...", file=sys.stderr, flush=True)
        with TemporaryDirectory(dir=WORK) as scratch:
            _fit(p, y, targets, Path(scratch))
            (Path(scratch) / _FITTED).rename(fitted)
    with np.load(fitted) as found:
        return found["value"], found["lead"]


def _fit(p: ArrayLike, y: ArrayLike, targets: ArrayLike, scratch: Path) -> Cost:
    python = EXTRAP.executable()
    measured = scratch / "measured.npz"
    np.savez(measured, p=p, y=y, targets=targets)
    return run([python, TASKS / "fit_extrap.py", measured, scratch / _FITTED])
