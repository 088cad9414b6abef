"""Hashes of models, to show that a change keeps every bit: run it before and after the change.

python tools/model_hashes.py > before, from the folder of tests.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from callpath_modeler.modeling import Models, fit
from callpath_modeler.modeling.stored import to_arrays
from callpath_modeler.studies import pipeline
from callpath_modeler.studies.loading import LoadOptions, load
from many_rows import KINDS, many_rows

SAMPLES = Path(__file__).parents[2] / "sample_profiles"


def digest(models: Models) -> str:
    """Return a hash of the columns of models and, in one parameter, of their bands."""
    columns = list(to_arrays(models)[0].values())
    if models.points.ndim == 1:
        found = models.predict([300.0, 1e4, 4e6])
        columns += [found.value, found.low, found.high]
    made = hashlib.sha256()
    for column in columns:
        made.update(np.ascontiguousarray(column).tobytes())
    return made.hexdigest()[:16]


def models() -> Iterator[tuple[str, Models]]:
    """Return models of the tests' series and of the sample profiles, with their names."""
    for name, kind in KINDS.items():
        yield name, fit(*many_rows(kind, 300))
    grid = np.array(list(product((8.0, 16, 32, 64), (10.0, 20, 30, 40))))
    p, n = grid.T
    laws = np.array([n**3 / p + n + p, n * np.log2(p) + 5 + n * n, n**2 / p + 0.2 * p])
    noise = np.random.default_rng(3).standard_normal((*laws.shape, 3))
    yield "two parameters", fit(grid, laws[..., None] * np.exp(0.05 * noise))
    for name in ("lulesh", "snap", "stencil"):
        experiment = load([SAMPLES / name], LoadOptions())
        yield name, pipeline.fit(experiment, None, pipeline.FitOptions()).models


if __name__ == "__main__":
    for name, made in models():
        sys.stdout.write(f"{name}: {digest(made)}\n")
