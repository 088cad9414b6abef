"""`Study`: runs are read and models made when a question needs them, once."""

from __future__ import annotations

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler import store
from callpath_modeler.errors import UsageError
from callpath_modeler.studies import study
from synthetic import POINTS, experiment

LAWS = {"main": [1.0] * len(POINTS), "main/solve": [0.1 * p for p in POINTS]}


@pytest.fixture
def counted(monkeypatch):
    """Count how often runs are read and models made."""
    counts = {"load": 0, "fit": 0}

    def counting(name, function):
        def call(*words, **options):
            counts[name] += 1
            return function(*words, **options)

        return call

    for name in counts:
        monkeypatch.setattr(study, name, counting(name, getattr(study, name)))
    return counts


def test_questions_share_runs_and_models(counted, samples):
    asked = cpm.Study(samples / "stencil")
    assert counted == {"load": 0, "fit": 0}
    first = asked.ranking(target=1024)
    assert counted == {"load": 1, "fit": 1}
    second = asked.ranking(target=2048, inclusive=True)
    asked.baseline()
    asked.losses(pairs=[(8, 128)])
    assert second.fitted is first.fitted
    assert counted == {"load": 1, "fit": 1}


def test_another_metric_is_read_if_the_runs_lack_it(counted, samples):
    asked = cpm.Study(samples / "stencil")
    asked.models()
    assert asked.models("visits").metric.name == "visits"
    assert counted == {"load": 2, "fit": 2}
    everything = cpm.Study(samples / "stencil", cpm.LoadOptions(cpm.ReadOptions(metrics=None)))
    everything.models("visits")
    everything.models()
    assert counted == {"load": 3, "fit": 4}


def test_models_of_a_store_are_not_made_again(counted, tmp_path):
    path = tmp_path / "app.cpm"
    store.write([cpm.fit(experiment(LAWS))], path)
    assert cpm.Study(path).ranking(target=64).order[0] == 1
    assert counted == {"load": 1, "fit": 0}
    other = cpm.Study(path, fit_options=cpm.FitOptions(confidence=0.5))
    other.models()
    assert counted == {"load": 2, "fit": 1}


def test_runs_in_memory_need_no_files(counted):
    asked = cpm.Study(experiment(LAWS))
    fitted, target = asked.at(target=64)
    assert target == 64
    assert fitted is asked.models()
    assert counted == {"load": 0, "fit": 1}
    with pytest.raises(UsageError, match="no metric"):
        asked.models("bytes")


@pytest.mark.parametrize(
    "words", [{"target": 64}, {"target": "64"}, {"at": "p=64"}, {"at": {"p": 64}}]
)
def test_a_target_is_a_number_or_text(words):
    ranking = cpm.Study(experiment(LAWS)).ranking(**words)
    assert ranking.target == 64
    assert ranking.value[1] == pytest.approx(6.4, rel=0.01)


def test_pairs_are_numbers_or_text():
    asked = cpm.Study(experiment(LAWS))
    first, second = (asked.at(pairs=[pair])[0] for pair in ((2, 16), "2,16"))
    assert first.points.tolist() == second.points.tolist() == [2, 16]
    assert first.is_measured_only


def test_a_field_that_questions_do_not_have_is_an_error():
    with pytest.raises(TypeError, match="goal"):
        cpm.Study(experiment(LAWS)).ranking(goal=64)


def test_an_unknown_order_is_an_error_with_the_known_ones():
    with pytest.raises(UsageError, match="no order 'growht'"):
        cpm.Study(experiment(LAWS)).ranking(target=64, by="growht")


def test_two_studies_are_compared(samples):
    asked = cpm.Study(samples / "stencil")
    found = asked.difference(samples / "stencil", target=1024)
    assert np.nanmax(np.abs(found.difference.changes.change)) == 0
    assert found.difference.at_target.scale == 1024


def test_a_notebook_shows_the_runs(samples):
    asked = cpm.Study(samples / "stencil")
    html = asked._repr_html_()
    assert asked.experiment()._repr_html_() == html
    assert repr(asked) == f"<Study of {samples / 'stencil'}>"
    assert repr(cpm.Study(asked.experiment())) == "<Study of stencil>"
