"""The call-path graph as a networkx graph, and its GraphML and DOT text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from callpath_modeler.printable import dot_string
from callpath_modeler.profile.calltree import ROOT, CallTree

if TYPE_CHECKING:
    import networkx as nx

Attribute = str | int | float


def call_path_graph(
    tree: CallTree, attributes: Mapping[str, Sequence[Attribute | None]] | None = None
) -> nx.DiGraph[str]:
    """Return the call tree as a directed graph from callers to callees.

    Parameters
    ----------
    tree : n call paths
    attributes : further node attributes, each of length n; None = the node lacks the attribute

    Returns
    -------
    networkx.DiGraph
        The nodes are call-path ids with the attributes ``callpath``, ``region``, ``file``, ``line``
        and ``paradigm``, and `attributes`.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    ids, paths = tree.ids(), tree.paths(range(len(tree)))
    extra = attributes or {}
    for row in range(len(tree)):
        region = tree.regions[tree.region[row]]
        known = {
            "callpath": paths[row],
            "region": region.name,
            "file": region.file,
            "line": region.line,
            "paradigm": region.paradigm,
        }
        given = {name: column[row] for name, column in extra.items() if column[row] is not None}
        graph.add_nodes_from([(ids[row], {**known, **given})])
    graph.add_edges_from(
        (ids[caller], ids[row]) for row, caller in enumerate(tree.parent.tolist()) if caller != ROOT
    )
    return graph


def to_graphml(graph: nx.DiGraph[str]) -> str:
    """Return a graph as GraphML text."""
    import networkx as nx

    return "\n".join(nx.generate_graphml(graph)) + "\n"


def to_dot(graph: nx.DiGraph[str], name: str) -> str:
    """Return a graph in the DOT language, with all attributes of the nodes."""
    lines = [f"digraph {dot_string(name)} {{", "  node [shape=box];"]
    for node, data in graph.nodes(data=True):
        shown = {"label": data["region"], **data}
        pairs = ", ".join(f"{key}={dot_string(str(value))}" for key, value in shown.items())
        lines.append(f"  {dot_string(node)} [{pairs}];")
    lines += [f"  {dot_string(a)} -> {dot_string(b)};" for a, b in graph.edges]
    return "\n".join([*lines, "}"]) + "\n"
