"""Rankings as graphs and tables, for notebooks."""

from __future__ import annotations

import networkx as nx

import callpath_modeler as cpm
from synthetic import fitted


def ranked():
    values = {"main": [5] * 5, "main/MPI_Wait": [1, 2, 4, 8, 16], "main/f": [3] * 5}
    return cpm.rank(fitted(values), target=64)


def test_the_graph_carries_models_and_predictions():
    graph = cpm.graph(ranked())
    assert nx.is_arborescence(graph)
    nodes = {data["callpath"]: data for _, data in graph.nodes(data=True)}
    assert nodes["main/MPI_Wait"]["growth"] == "O(p)"
    assert nodes["main/MPI_Wait"]["value_at_target"] > 16
    assert nodes["main/f"]["status"] == "constant"


def test_the_table_becomes_a_data_frame_of_all_call_paths():
    frame = cpm.ranking_table(ranked()).to_frame()
    assert frame["callpath"].tolist()[0] == "main/MPI_Wait"
    assert len(frame) == 3
    assert "value_at_target[s]" in frame.columns
