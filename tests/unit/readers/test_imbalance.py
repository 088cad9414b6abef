"""Imbalance of call paths, from readers to all outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler import store
from callpath_modeler.analysis.answer import answer_at, rank
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.profile.schema import Extent
from callpath_modeler.profile.tree_views import TopDown
from callpath_modeler.readers.assemble import ReadOptions, assemble
from callpath_modeler.report.layout import TextStyle
from callpath_modeler.report.model_tables import values_table
from callpath_modeler.report.model_text import model_text
from callpath_modeler.report.node import NodeReport
from callpath_modeler.studies import pipeline
from synthetic import TIME, FakeReader, FakeSource, call_tree, registry

NAN = float("nan")
PATHS = ["main", "main/f", "main/f/g"]
POINTS = (1, 2, 4, 8, 16)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    """Two repetitions: f has 1 + p / 100, and 1.5 times this in the second; g is not known."""
    reader, folder = FakeReader(), tmp_path_factory.mktemp("runs")
    files = []
    for p in POINTS:
        for repetition in (0, 1):
            uneven = None if p == 1 else [1.0, (1 + p / 100) * (1 + repetition / 2), NAN]
            source = FakeSource(
                call_tree(PATHS), {TIME: [1.0, 2.0 * p, 3.0]}, Extent(p), imbalance=uneven
            )
            files.append(reader.add(folder, f"app.p{p}.r{repetition + 1}", source))
    return assemble(files, registry(reader), ReadOptions())


@pytest.fixture(scope="module")
def fit(experiment):
    return pipeline.fit(experiment)


def test_imbalance_is_known_of_the_runs_whose_readers_return_it(experiment):
    known = experiment.columns["time"].imbalance
    assert known.shape == (3, 10)
    assert known.dtype == np.float32
    assert np.isnan(known[:, :2]).all()
    assert not known.flags.writeable
    assert experiment.where(np.arange(10) >= 8).columns["time"].imbalance.shape == (3, 2)


def test_repetitions_give_their_median(experiment):
    assert experiment.imbalance("time", 1, {"p": 16}) == pytest.approx(1.16 * 1.25)
    assert np.isnan(experiment.imbalance("time", 2, {"p": 16}))
    assert np.isnan(experiment.imbalance("time", 1, {"p": 1}))


def test_of_siblings_that_are_one_call_path_the_largest_counts(tmp_path):
    reader = FakeReader()
    tree = call_tree(["main", "main/f", "main/f"])
    source = FakeSource(tree, {TIME: [1, 2, 3]}, Extent(4), imbalance=[1.0, 1.5, 1.25])
    files = [reader.add(tmp_path, f"app.p{p}", source) for p in (4, 8)]
    made = assemble(files, registry(reader), ReadOptions())
    assert made.columns["time"].imbalance[:, 0].tolist() == [1.0, 1.5]


def test_a_store_keeps_it_and_one_without_it_is_read(fit, tmp_path):
    store.write([fit], tmp_path / "a.cpm")
    read = store.read_experiment(tmp_path / "a.cpm").columns["time"].imbalance
    np.testing.assert_array_equal(read, fit.experiment.columns["time"].imbalance)
    columns = {"time": replace(fit.experiment.columns["time"], imbalance=None)}
    bare = replace(fit, experiment=replace(fit.experiment, columns=columns))
    store.write([bare], tmp_path / "b.cpm")
    assert store.read_experiment(tmp_path / "b.cpm").columns["time"].imbalance is None


def test_show_tells_it_per_scale(fit):
    told = model_text(rank(fit, 64.0), 1, style=TextStyle(width=100, ascii_only=True), linear=False)
    (line,) = (line for line in told if line.startswith("imbalance"))
    assert line.startswith("imbalance p = 2: 1.27   4: 1.30   8: 1.35   16: 1.45   (largest / mean")
    told = model_text(rank(fit, 64.0), 2, style=TextStyle(width=100, ascii_only=True), linear=False)
    assert not any(line.startswith("imbalance") for line in told)


def test_the_browser_tells_it_of_a_single_call_path(fit):
    ahead = answer_at(AnswerInputs(fit), 64.0)
    view = TopDown(fit.experiment.tree)

    def told(nodes):
        facts = NodeReport(ahead, view, np.array(nodes), inclusive=True).facts()
        return [line for line in facts if line.startswith("imbalance")]

    (line,) = told([1])
    assert line.startswith("imbalance  p = 2: 1.27, 4: 1.30, 8: 1.35, 16: 1.45 (largest / mean")
    assert line.endswith(", of the exclusive cost)")
    assert told([1, 2]) == []


def test_values_that_are_exported_have_it_beside_them(fit):
    columns = values_table(fit.experiment, fit.metric).columns
    assert columns["imbalance"][-1] != columns["imbalance"][-1]  # of g it is not known
    assert columns["imbalance"][columns["callpath"].index("main/f") + 9] == pytest.approx(1.74)
    assert "imbalance" not in values_table(fit.experiment, fit.metric, inclusive=True).columns
