"""Data without a law in several parameters: protocols that depend on the message size."""

from __future__ import annotations

import numpy as np

from callpath_modeler.modeling import FitStatus, fit, slice_along
from surfaces import grid, measured


def protocols(p, n):
    """Return the time of messages that are eager up to 35, plus nodes that fill from 8 or 30 on."""
    eager = 1e-4 * n**2 * np.where(p > 30, 20, 1)
    return np.where(n > 35, 4e-3 * n**2 * np.where(p > 8, 6, 1), eager)


def test_bands_are_as_wide_as_what_no_law_explains():
    points = grid((8.0, 27.0, 64.0, 125.0), (10.0, 20.0, 30.0, 40.0, 50.0))
    models = fit(points, measured(points, [protocols] * 6, noise=0.02, repetitions=5))
    assert (models.status == FitStatus.OUTSIDE).all()
    target = np.array([1000.0, 50.0])
    band = slice_along(models, 0, target).predict(target[:1])
    truth = protocols(*target)
    assert ((band.low <= truth) & (truth <= band.high)).all()
