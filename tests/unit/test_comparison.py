from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import UsageError
from synthetic import POINTS, experiment

P = np.array(POINTS)


def runs(factor, seed):
    rng = np.random.default_rng(seed)
    noise = np.exp(0.02 * rng.standard_normal((2, 5, 3)))
    values = {"main": P[:, None] * noise[0], "main/f": factor * P[:, None] ** 0.5 * noise[1]}
    return experiment({path: times.tolist() for path, times in values.items()})


def test_models_and_experiments_are_compared_from_python():
    base, new = runs(1.0, 1), runs(4.0, 2)
    measured = cpm.compare(base, new)
    modelled = cpm.compare(cpm.fit(base), cpm.fit(new), target=256)
    assert measured.difference.predicted is None
    assert measured.difference.growth is None
    assert modelled.difference.predicted.mark[:-1].tolist() == [0, 1]
    frame = cpm.difference_table(modelled).to_frame()
    assert frame.callpath.tolist() == ["main/f", "main"]
    assert frame["verdict_at_target"].tolist() == ["worse", "not shown"]
    with pytest.raises(UsageError, match="no models"):
        cpm.compare(base, cpm.fit(new), target=256)


def test_models_of_another_centre_are_made_again():
    base = cpm.fit(runs(1.0, 1), options=cpm.FitOptions(aggregate="min"))
    new = cpm.fit(runs(1.0, 2), options=cpm.FitOptions(aggregate="mean", confidence=0.9))
    pair = cpm.compare(base, new).difference.pair
    assert pair.base.fitted is base
    assert pair.new.fitted.models.aggregate == "min"
    assert pair.new.fitted.models.confidence == 0.9


def test_findings_name_the_side_that_they_are_about():
    base, new = runs(1.0, 1), runs(1.0, 2)
    compared = cpm.compare(cpm.fit(base), cpm.fit(new), target=1024)
    subjects = [f.subject for f in compared.findings if f.code == "CPM205"]
    assert subjects == ["base, target", "new, target"]
