"""Outlier scales with the C library and without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.modeling.compiled.library import compiled
from callpath_modeler.modeling.mixture import outlier_scale as module
from callpath_modeler.modeling.mixture.candidates import candidates
from callpath_modeler.modeling.mixture.outlier_scale import estimate_scale_factor, without_points
from callpath_modeler.modeling.mixture.posterior import LogPriors, posterior
from many_rows import KINDS, many_rows, screened

pytestmark = pytest.mark.skipif(not compiled(), reason="the compiled library is not installed")


@pytest.mark.parametrize("points", [(4,), (2, 3)])
@pytest.mark.parametrize("name", ["usual", "noisy"])
def test_the_library_finds_the_factor_that_numpy_finds(name, points, monkeypatch):
    p, y = many_rows(KINDS[name], 80)
    y[:, points] *= 1.5
    data, chosen, known, ways = screened(p, y)
    found = candidates(data, chosen, known, ways)
    beliefs = LogPriors(known.log_prior, ways.log_prior)
    believed = posterior(found, without_points(data, points), ways, beliefs)
    # One row without information.
    believed.coefficients[:, believed.row == 7] = 0.0
    here = estimate_scale_factor(believed, data, known, points)
    monkeypatch.setattr(module, "compiled", lambda: False)
    there = estimate_scale_factor(believed, data, known, points)
    assert here.nats == pytest.approx(there.nats, rel=1e-9)
    assert replace(here, nats=0.0) == replace(there, nats=0.0)
    assert np.isfinite(here.nats)
    assert here.nats != 0
