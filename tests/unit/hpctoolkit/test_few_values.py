"""Processes with few values are read without a value for every call path."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies.loading import LoadOptions, load
from callpath_modeler.testing.hpctoolkit import Kind, Measured, Scope, write_database
from cpmodel_hpctoolkit import version4

RANKS, THREADS = 5, 2


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Return a database in which each thread has values in a few contexts of forty."""
    contexts = [Scope(-1, Kind.FUNCTION, "main thread"), Scope(0, Kind.FUNCTION, "main")]
    rng = np.random.default_rng(4)
    for k in range(38):
        caller = int(rng.integers(1, len(contexts)))
        contexts.append(Scope(caller, Kind.FUNCTION, f"f{k % 9}"))
    measured = []
    for rank in range(RANKS):
        for thread in range(THREADS):
            costs = np.zeros((2, len(contexts)))
            costs[0, rng.integers(2, len(contexts), 3)] = rng.exponential(1, 3)
            costs[1, rng.integers(2, len(contexts), 3)] = rng.integers(1, 9, 3)
            ids = {"NODE": 0, "RANK": rank, "THREAD": thread}
            named = {"CPUTIME (sec)": costs[0], "PAPI_FP_OPS": costs[1]}
            measured.append(Measured(ids, named))
    return write_database(tmp_path_factory.mktemp("few") / "app.p5", contexts, measured)


def read(database, reduction, few, monkeypatch):
    monkeypatch.setattr(version4, "_FEW", few)
    return load([database], LoadOptions(read=ReadOptions(locations=reduction, requirements=True)))


@pytest.mark.parametrize("reduction", ["max", "min", "sum", "mean", "median", "geomean"])
def test_every_statistic_is_the_same(database, reduction, monkeypatch):
    few = read(database, Reduction(reduction), 0, monkeypatch)
    all_of_them = read(database, Reduction(reduction), 10**9, monkeypatch)
    assert few.columns.keys() == all_of_them.columns.keys()
    assert len(few.columns) == 2
    for name, column in all_of_them.columns.items():
        found = few.columns[name]
        assert np.array_equal(found.exclusive, column.exclusive, equal_nan=True)
        assert np.array_equal(found.total, column.total)
        if column.imbalance is not None:
            assert np.array_equal(found.imbalance, column.imbalance, equal_nan=True)


def test_most_call_paths_cost_nothing_in_most_processes(database, monkeypatch):
    mean = read(database, Reduction.MEAN, 0, monkeypatch).values()[:, 0]
    largest = read(database, Reduction.MAX, 0, monkeypatch).values()[:, 0]
    smallest = read(database, Reduction.MIN, 0, monkeypatch).values()[:, 0]
    costs = largest > 0
    assert 3 < costs.sum() < len(costs)
    assert (smallest[costs] < largest[costs]).all()
    assert (mean[costs] < largest[costs]).all()
