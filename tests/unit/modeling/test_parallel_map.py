"""Models are bit-identical for every division of the rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from callpath_modeler.modeling import fit
from callpath_modeler.modeling.stored import to_arrays

P = np.array([4.0, 8.0, 16.0, 32.0, 64.0])
GRID = np.array([(p, n) for p in P for n in (10.0, 20.0, 40.0, 80.0)])


def backwards(function, parts):
    """Process parts as separate processes would: in any order, without shared state."""
    sent = [pickle.dumps((function, part)) for part in parts]
    results = []
    for pickled in reversed(sent):
        function, part = pickle.loads(pickled)  # noqa: S301 - our own
        results.append(pickle.dumps(function(part)))
    return map(pickle.loads, reversed(results))


def measured(points, rows, seed=1):
    rng = np.random.default_rng(seed)
    scale = points.reshape(len(points), -1).prod(axis=1) ** rng.choice([0.0, 0.5, 1.0], (rows, 1))
    values = (rng.uniform(0.1, 10, (rows, 1)) + scale)[:, :, None]
    values = values * rng.normal(1, 0.03, (rows, len(points), 3))
    values[1], values[2, :4], values[3, 0, 0], values[4] = 0.0, np.nan, np.inf, -1.0
    return values


@pytest.mark.parametrize(
    ("points", "rows", "method"),
    [(P, 5000, "mixture"), (P, 2500, "classic"), (GRID, 280, "mixture")],
    ids=["one parameter", "classic", "two parameters"],
)
def test_models_do_not_depend_on_what_goes_through_the_parts(points, rows, method):
    values = measured(points, rows)
    here = fit(points, values, method=method)
    seen = []

    def each(function, parts):
        seen.extend(parts)
        return backwards(function, seen)

    elsewhere = fit(points, values, method=method, each=each)
    assert len(seen) > 1
    for name, column in to_arrays(here)[0].items():
        other = to_arrays(elsewhere)[0][name]
        assert column.dtype == other.dtype, name
        assert column.tobytes() == other.tobytes(), name
