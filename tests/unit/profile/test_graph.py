from __future__ import annotations

import io
import re

import networkx as nx

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Region
from callpath_modeler.report.model_tables import call_path_graph
from cells import cells
from synthetic import call_tree

TREE = call_tree(["main", "main/f@7", "main/f@7/MPI_Send", "main/g", "main/g/MPI_Send"])


def test_nodes_are_call_paths_with_what_is_known_of_them():
    graph = call_path_graph(TREE, {"value": [0.5, 1.5, 2.5, 3.5, 4.5]}).networkx()
    node = TREE.ids()[1]
    assert graph.nodes[node] == {
        "callpath": "main/f",
        "region": "f",
        "file": "f.c",
        "line": 7,
        "paradigm": "compiler",
        "value": 1.5,
    }


def test_edges_lead_from_callers_to_callees():
    graph = call_path_graph(TREE).networkx()
    ids = TREE.ids()
    assert set(graph.edges) == {
        (ids[0], ids[1]),
        (ids[1], ids[2]),
        (ids[0], ids[3]),
        (ids[3], ids[4]),
    }
    assert nx.is_arborescence(graph)


def test_graphml_reads_back_as_it_was():
    made = call_path_graph(TREE, {"value": [float("inf"), float("nan"), 0.0, 1e-300, -1.5]})
    graph, again = made.networkx(), nx.read_graphml(io.StringIO("".join(made.graphml())))
    assert set(again.edges) == set(graph.edges)
    for node, data in graph.nodes(data=True):
        assert {k: repr(v) for k, v in again.nodes[node].items()} == {
            k: repr(v) for k, v in data.items()
        }


@cells("name", ['say "hi"', "a\\b", "f<int>&", "é ü", r"line\nbreak"])
def test_names_with_special_signs_survive_in_both_formats(name):
    tree = CallTree.from_parents([ROOT], [0], [Region(name)])
    graph = call_path_graph(tree)
    again = nx.read_graphml(io.StringIO("".join(graph.graphml())))
    assert again.nodes[tree.ids()[0]]["region"] == name
    strings = re.findall(r'"(?:[^"\\]|\\.)*"', "".join(graph.dot(name)), flags=re.DOTALL)
    values = [text[1:-1].replace('\\"', '"').replace("\\\\", "\\") for text in strings]
    assert values.count(name) >= 3  # the graph, the label, the region


def test_dot_is_one_digraph_with_a_line_per_node_and_edge():
    text = "".join(call_path_graph(TREE).dot("app"))
    lines = text.splitlines()
    assert lines[0] == 'digraph "app" {'
    assert lines[-1] == "}"
    quoted = r'"(?:[^"\\]|\\.)*"'
    node = rf"  {quoted} \[\w+={quoted}(, \w+={quoted})*\];"
    edge = rf"  {quoted} -> {quoted};"
    assert sum(bool(re.fullmatch(node, line)) for line in lines) == 5
    assert sum(bool(re.fullmatch(edge, line)) for line in lines) == 4
    assert len(lines) == 1 + 1 + 5 + 4 + 1
