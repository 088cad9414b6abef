"""The call-path graph as a networkx graph, and its GraphML and DOT text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from callpath_modeler.arrays import IntArray
from callpath_modeler.printable import dot_string
from callpath_modeler.profile.calltree import ROOT, CallTree

if TYPE_CHECKING:
    import networkx as nx

Attribute = str | int | float

_BLOCK = 8192
"""Call paths whose attributes are in memory at a time."""
_TYPES = {str: "string", bool: "boolean", int: "long", float: "double"}
_SCHEMA = "http://graphml.graphdrawing.org/xmlns"
_GRAPHML = (
    f'<graphml xmlns="{_SCHEMA}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    f'xsi:schemaLocation="{_SCHEMA} {_SCHEMA}/1.0/graphml.xsd">\n'
)


@dataclass(frozen=True, slots=True)
class CallPathGraph:
    """The call tree as a graph from callers to callees, which is written block by block.

    Nodes are call-path ids with the attributes ``callpath``, ``region``, ``file``, ``line`` and
    ``paradigm``, and further ones.

    Attributes
    ----------
    tree : the call paths
    attributes : function that returns further attributes of some call paths, by name; None = the
        node lacks the attribute
    """

    tree: CallTree
    attributes: Callable[[IntArray], Mapping[str, Sequence[Attribute | None]]]

    def networkx(self) -> nx.DiGraph[str]:
        """Return the graph for networkx."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        for nodes in self._nodes():
            graph.add_nodes_from(nodes)
        graph.add_edges_from(edge for edges in self._edges() for edge in edges)
        return graph

    def graphml(self) -> Iterator[str]:
        """Yield the graph as GraphML text."""
        types = self._types()
        keys = {name: f"d{number}" for number, name in enumerate(types)}
        yield _GRAPHML
        for name, kind in reversed(types.items()):
            yield f'  <key id="{keys[name]}" for="node" attr.name="{name}" attr.type="{kind}" />\n'
        yield '  <graph edgedefault="directed">\n'
        for nodes in self._nodes():
            yield "".join(_graphml_node(node, data, keys) for node, data in nodes)
        for edges in self._edges():
            yield "".join(f'    <edge source="{a}" target="{b}" />\n' for a, b in edges)
        yield "  </graph>\n</graphml>\n"

    def dot(self, name: str) -> Iterator[str]:
        """Yield the graph in the DOT language, with all attributes of the nodes."""
        yield f"digraph {dot_string(name)} {{\n  node [shape=box];\n"
        for nodes in self._nodes():
            yield "".join(_dot_node(node, data) for node, data in nodes)
        for edges in self._edges():
            yield "".join(f"  {dot_string(a)} -> {dot_string(b)};\n" for a, b in edges)
        yield "}\n"

    def _types(self) -> dict[str, str]:
        """Return the types of the attributes of nodes, in the order of their first node."""
        types: dict[str, str] = {}
        for nodes in self._nodes():
            for _, data in nodes:
                if data.keys() - types.keys():
                    types |= {
                        name: _TYPES[type(value)]
                        for name, value in data.items()
                        if name not in types
                    }
            if len(types) == len(self._names()):
                break
        return types

    def _names(self) -> list[str]:
        """Return the names of all attributes that nodes may have."""
        none = np.arange(0)
        return [*self._known(none), *self.attributes(none)]

    def _known(self, rows: IntArray) -> dict[str, list[Attribute]]:
        regions = [self.tree.regions[region] for region in self.tree.region[rows].tolist()]
        return {
            "callpath": [*self.tree.paths(rows)],
            "region": [region.name for region in regions],
            "file": [region.file for region in regions],
            "line": [region.line for region in regions],
            "paradigm": [region.paradigm for region in regions],
        }

    def _nodes(self) -> Iterator[list[tuple[str, dict[str, Attribute]]]]:
        """Yield the ids of call paths and their attributes, block by block."""
        ids = self.tree.ids()
        for start in range(0, len(ids), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, len(ids)))
            columns = {**self._known(rows), **self.attributes(rows)}
            found = []
            for node, cells in zip(
                ids[start : start + _BLOCK], zip(*columns.values(), strict=True), strict=True
            ):
                data = {
                    name: cell
                    for name, cell in zip(columns, cells, strict=True)
                    if cell is not None
                }
                found.append((node, data))
            yield found

    def _edges(self) -> Iterator[list[tuple[str, str]]]:
        """Yield the ids of callers and callees, block by block."""
        ids, parent = self.tree.ids(), self.tree.parent
        callees = np.argsort(parent, kind="stable")[int((parent == ROOT).sum()) :]
        for start in range(0, len(callees), _BLOCK):
            rows = callees[start : start + _BLOCK]
            pairs = zip(parent[rows].tolist(), rows.tolist(), strict=True)
            yield [(ids[caller], ids[row]) for caller, row in pairs]


def call_path_graph(
    tree: CallTree, attributes: Mapping[str, Sequence[Attribute | None]] | None = None
) -> CallPathGraph:
    """Return the graph of a call tree.

    Parameters
    ----------
    tree : n call paths
    attributes : further node attributes, each of length n; None = the node lacks the attribute
    """
    known = attributes or {}
    return CallPathGraph(
        tree, lambda rows: {name: [of[k] for k in rows.tolist()] for name, of in known.items()}
    )


def _graphml_node(node: str, data: Mapping[str, Attribute], keys: Mapping[str, str]) -> str:
    lines = [
        f'      <data key="{keys[name]}">{escape(text)}</data>\n'
        if (text := str(value))
        else f'      <data key="{keys[name]}" />\n'
        for name, value in data.items()
    ]
    return f'    <node id="{node}">\n{"".join(lines)}    </node>\n'


def _dot_node(node: str, data: Mapping[str, Attribute]) -> str:
    shown = {"label": data["region"], **data}
    pairs = ", ".join(f"{key}={dot_string(str(value))}" for key, value in shown.items())
    return f"  {dot_string(node)} [{pairs}];\n"
