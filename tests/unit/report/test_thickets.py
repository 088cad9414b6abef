"""Experiments are exchanged with Thicket and Hatchet."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import DataError, UsageError

TABLE = pd.DataFrame(
    [
        (path, p, run, cost * p * (1 + 0.01 * run))
        for path, cost in {"main": 1.0, "main/b": 2.0, "main/a": 3.0, "main/a/c": 4.0}.items()
        for p in (8, 16, 32)
        for run in (1, 2)
    ],
    columns=["callpath", "p", "repetition", "time"],
)


@pytest.fixture
def experiment():
    return cpm.from_frame(TABLE, parameters=["p"], repetition="repetition")


@dataclass(frozen=True)
class Node:
    """A node with the part of Hatchet's interface that is used."""

    names: tuple[str, ...]
    frame: dict[str, str] = field(default_factory=dict, compare=False)

    def path(self):
        return [Node(self.names[: k + 1], {"name": name}) for k, name in enumerate(self.names)]


def thicket_like(columns, metadata, *, exclusive):
    """Return an object with the part of Thicket's interface that is used."""
    nodes = [Node(("main",)), Node(("main", "a/b"))]
    index = pd.MultiIndex.from_product([nodes, metadata.index], names=["node", "profile"])
    frame = pd.DataFrame(columns, index=index)
    return SimpleNamespace(
        dataframe=frame, metadata=metadata, exc_metrics=exclusive, inc_metrics=[]
    )


def profiles(**columns):
    return pd.DataFrame(columns, index=pd.Index([71, 5], name="profile"))


def test_metrics_that_names_show_to_be_exclusive_count_first():
    """Thicket lists the inclusive times of Caliper as exclusive ones."""
    known = thicket_like(
        {"Total time": [9.0, 18.0, 4.0, 8.0], "Total time (exc)": [5.0, 10.0, 4.0, 8.0]},
        profiles(**{"mpi.world.size": [8, 16]}),
        exclusive=["Total time", "Total time (exc)"],
    )
    found = cpm.from_thicket(known)
    assert list(found.columns) == ["Total time"]
    assert [p.name for p in found.parameters] == ["p"]
    names = [found.tree.names(row) for row in range(2)]
    assert names == [("main",), ("main", "a/b")]
    assert found.values("Total time").tolist() == [[5.0, 10.0], [4.0, 8.0]]


def test_parameters_are_columns_of_the_metadata():
    known = thicket_like(
        {"time": [1.0, 2.0, 3.0, 4.0]}, profiles(size=[10, 20]), exclusive=["time"]
    )
    with pytest.raises(UsageError, match="no column of the metadata is named like") as caught:
        cpm.from_thicket(known)
    assert "size" in str(caught.value.hint)
    with pytest.raises(UsageError, match="no column 'n'"):
        cpm.from_thicket(known, parameters=["n"])
    found = cpm.from_thicket(known, parameters=["size"])
    assert found.points("size").tolist() == [10.0, 20.0]


def test_without_an_exclusive_metric_nothing_is_read():
    known = thicket_like({"time": [1.0, 2.0, 3.0, 4.0]}, profiles(p=[1, 2]), exclusive=[])
    with pytest.raises(UsageError, match="no exclusive metric"):
        cpm.from_thicket(known)


def test_a_package_that_is_missing_is_named(experiment, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "hatchet", None)
    with pytest.raises(DataError, match="Hatchet is not installed"):
        experiment.to_hatchet()


def test_a_run_that_does_not_exist_is_named(experiment):
    with pytest.raises(UsageError, match="no run 9"):
        experiment.to_hatchet(9)


def test_thicket_gives_back_what_it_got(experiment):
    pytest.importorskip("thicket", reason="Thicket is not installed")
    made = experiment.to_thicket()
    assert made.metadata["p"].tolist() == [8.0, 8.0, 16.0, 16.0, 32.0, 32.0]
    assert len(made.filter_metadata(lambda run: run["p"] > 8).profile) == 4
    again = cpm.from_thicket(made)
    ours, theirs = (each.dataframe.sort_index().to_numpy() for each in (experiment, again))
    assert np.array_equal(ours, theirs)


def test_hatchet_gets_one_run(experiment):
    pytest.importorskip("hatchet", reason="Hatchet is not installed")
    frame = experiment.to_hatchet().dataframe
    assert frame.set_index("name")["time"].to_dict() == pytest.approx(
        {"main": 32.64, "b": 65.28, "a": 97.92, "c": 130.56}
    )
    assert frame["time (inc)"].max() == pytest.approx(326.4)
