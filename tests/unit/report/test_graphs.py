"""Graphs of experiments and rankings for networkx."""

from __future__ import annotations

import io
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.profile.schema import Metric
from synthetic import experiment, fitted

NAN = float("nan")
VALUES = {
    "main": [5.0] * 5,
    "main/MPI_Wait": [1.0, 2.0, 4.0, 8.0, 16.0],
    "main/f": [3.0] * 5,
    "main/rare": [NAN, 1.0, NAN, NAN, NAN],
}


def written(graph):
    """Return a graph as GraphML."""
    return nx.read_graphml(io.StringIO("\n".join(nx.generate_graphml(graph))))


def by_path(graph):
    return {data["callpath"]: data for _, data in graph.nodes(data=True)}


def test_nodes_of_a_ranking_have_rank_loss_and_trust():
    ranking = cpm.rank(fitted(VALUES), target=64)
    nodes = by_path(cpm.graph(ranking))
    wait = nodes["main/MPI_Wait"]
    assert wait["rank"] == 1
    assert wait["loss"] == pytest.approx(31, rel=0.01)
    assert 0 <= wait["trust"] <= 4
    assert isinstance(wait["trust"], int)
    assert "verdict" not in wait


def test_what_is_not_known_of_a_node_is_no_attribute():
    graph = cpm.graph(cpm.rank(fitted(VALUES), target=64))
    rare = by_path(graph)["main/rare"]
    assert not {"rank", "value_at_target", "low", "trust"} & {*rare}
    for _, data in graph.nodes(data=True):
        assert not [key for key, value in data.items() if value is None or repr(value) == "nan"]


def test_nodes_that_an_expectation_names_have_a_verdict(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(
        'schema = 1\n[[expect]]\ncallpath = "**/MPI_Wait"\ngrowth = "<= O(1)"\n'
        'name = "no waits"\n[[expect]]\ncallpath = "main/*"\ngrowth = "<= O(p^3)"\n'
    )
    models = fitted(VALUES)
    graph = cpm.graph(cpm.rank(models, target=64), cpm.check(models, path))
    nodes = by_path(graph)
    assert (nodes["main/MPI_Wait"]["verdict"], nodes["main/MPI_Wait"]["expectation"]) == (
        "fail",
        "no waits",
    )
    assert nodes["main/f"]["verdict"] == "pass"
    assert "verdict" not in nodes["main"]
    assert by_path(written(graph))["main/MPI_Wait"]["verdict"] == "fail"


def test_nodes_of_an_experiment_have_what_the_largest_runs_measured():
    graph = cpm.graph(experiment(VALUES))
    assert nx.is_arborescence(graph)
    nodes = by_path(graph)
    assert nodes["main/MPI_Wait"]["time_at_largest"] == 16.0
    assert "time_at_largest" not in nodes["main/rare"]
    assert by_path(written(graph))["main"]["time_at_largest"] == 5.0


def test_a_metric_may_be_called_as_an_attribute_is():
    graph = cpm.graph(experiment(VALUES, metric=Metric("region", "s", "run time")))
    main = by_path(graph)["main"]
    assert (main["region"], main["region_at_largest"]) == ("main", 5.0)


def test_a_single_run_and_repetitions_of_several_parameters_have_graphs():
    alone = experiment({"main": [2.0]}, [4.0])
    assert by_path(cpm.graph(alone))["main"]["time_at_largest"] == 2.0
    made = experiment({"main": [[1.0, 3.0, 2.0]] * 5})
    assert by_path(cpm.graph(made))["main"]["time_at_largest"] == pytest.approx(2.0)
    runs = tuple(
        replace(run, parameters={**run.parameters, "n": float(k % 3 + 1)})
        for k, run in enumerate(made.runs)
    )
    values = replace(made.columns["time"], exclusive=np.arange(15.0)[None])
    n = replace(made.parameters[0], name="n", values=(1.0, 2.0, 3.0))
    several = replace(made, runs=runs, parameters=(*made.parameters, n), columns={"time": values})
    assert by_path(cpm.graph(several))["main"]["time_at_largest"] == 14.0


@pytest.mark.parametrize("target", [64.0, float("inf")])
def test_graphml_of_a_ranking_reads_back_with_all_its_attributes(target):
    graph = cpm.graph(cpm.rank(fitted(VALUES), target=target))
    again = written(graph)
    for node, data in graph.nodes(data=True):
        assert {k: repr(v) for k, v in again.nodes[node].items()} == {
            k: repr(v) for k, v in data.items()
        }
