"""Two experiments of one program on one call tree, with known laws and noise."""

from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.pairing import common_line, pair_up
from callpath_modeler.studies.pipeline import FitOptions, fit
from synthetic import POINTS, experiment

P = np.array(POINTS)
LAWS = {
    "main": 1.0 + 0 * P,
    "main/solve": 4.0 + 0 * P,
    "main/solve/MPI_Wait": 0.5 * P**0.5,
    "main/halo": 2.0 + 0 * P,
    "main/halo/MPI_Send": 0.1 * P,
    "main/io": 0.001 + 0 * P,
}


def runs(laws, seed, *, noise=0.02, repetitions=3, points=POINTS, **options):
    """Return an experiment with known laws and noise."""
    rng = np.random.default_rng(seed)
    values = {
        path: (law[:, None] * np.exp(noise * rng.standard_normal((len(law), repetitions)))).tolist()
        for path, law in laws.items()
    }
    return experiment(values, points, **options)


def pair(base, new, *, modelled=True):
    how = FitOptions(aggregate="mean")
    sides = [(e, fit(e, None, how) if modelled else None) for e in (base, new)]
    return pair_up(sides[0], sides[1], None, common_line(base, new, None))


def changed(**laws):
    """Return the laws with some call paths changed; two underscores stand for a slash."""
    return {**LAWS, **{path.replace("__", "/"): law for path, law in laws.items()}}


def row(found, path):
    return next(k for k in range(len(found.pair.tree)) if found.pair.tree.path(k) == path)
