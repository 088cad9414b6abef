"""Models, measured values and the call-path graph for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from callpath_modeler.analysis.answer import Ranking
from callpath_modeler.analysis.expectations.check_result import Check
from callpath_modeler.arrays import BoolArray, FloatArray, IntArray
from callpath_modeler.errors import check_type
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import centre, changes_since
from callpath_modeler.printable import dot_string
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.further_columns import verdict_columns
from callpath_modeler.report.ranking_columns import AFTER_PAIRS, BEFORE_PAIRS, RankedRows
from callpath_modeler.report.ranking_table import fit_settings
from callpath_modeler.report.table_formats import Cell, RowColumns, Table, blocks, file_cells

if TYPE_CHECKING:
    import networkx as nx


Attribute = str | int | float

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
        for rows in blocks(len(self.tree)):
            columns = {**self._known(rows), **self.attributes(rows)}
            found = []
            for node, cells in zip(
                self.tree.ids(rows), zip(*columns.values(), strict=True), strict=True
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
        parent = self.tree.parent
        callees = np.argsort(parent, kind="stable")[int((parent == ROOT).sum()) :]
        for places in blocks(len(callees)):
            rows = callees[places]
            yield [*zip(self.tree.ids(parent[rows]), self.tree.ids(rows), strict=True)]


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


def models_table(fitted: Fitted) -> Table:
    """Return a table with one row per call path: its model and the quality of the model."""
    tree = fitted.experiment.tree
    known = changes_since(fitted.models), fitted.modelled
    header = {
        "experiment": fitted.experiment.name,
        "parameter": fitted.parameter,
        "parameters": list(fitted.parameters),
        "fit": fit_settings(fitted),
    }
    return Table(RowColumns(np.arange(len(tree)), partial(_models_of, fitted, *known)), {}, header)


def _models_of(
    fitted: Fitted, since: FloatArray, modelled: BoolArray, rows: IntArray
) -> dict[str, list[Cell]]:
    """Return the columns of some call paths in a table of models."""
    tree, models = fitted.experiment.tree, fitted.models
    growths = models.growth_texts(rows, fitted.parameter)
    formulas = fitted.whole.formulas(rows, fitted.parameters, exact=True)
    is_known = modelled[rows].tolist()
    return {
        "callpath": [*tree.paths(rows)],
        "id": [f"@{each}" for each in tree.ids(rows)],
        "metric": [fitted.metric.name] * len(rows),
        "growth": [text if known else None for text, known in zip(growths, is_known, strict=True)],
        "model": [text if known else None for text, known in zip(formulas, is_known, strict=True)],
        "since": [at or None for at in since[rows].tolist()],
        "status": [*fitted.statuses(rows)],
        "points": models.used[rows].tolist(),
        "cv_error": models.cv_error[rows].tolist(),
        "adjusted_r2": models.adjusted_r2[rows].tolist(),
        "rss": models.rss[rows].tolist(),
        "noise": models.noise[rows].tolist(),
    }


def values_table(experiment: Experiment, metric: Metric, *, inclusive: bool = False) -> Table:
    """Return a table with one row per call path and run in which it occurred.

    A value that is not known has a row if a repetition of the run has a value. Without a row, it
    would count as 0.

    The column of inclusive values is called ``value_inclusive``. A table of exclusive values also
    has the imbalance, if it is known.
    """
    tree, value = experiment.tree, "value_inclusive" if inclusive else "value"
    values = experiment.values(metric.name, inclusive=inclusive)
    is_told = ~np.isnan(values)
    for repetitions in experiment.runs_by_setting().values():
        is_told[:, repetitions] = is_told[:, repetitions].any(axis=1, keepdims=True)
    uneven = None if inclusive else experiment.columns[metric.name].imbalance
    number = len(experiment.runs)

    def cells(places: IntArray) -> dict[str, list[Cell]]:
        rows, runs = places // number, places % number
        distinct, which = np.unique(rows, return_inverse=True)
        paths, of_runs = tree.paths(distinct), [experiment.runs[run] for run in runs.tolist()]
        columns: dict[str, list[Cell]] = {
            "callpath": [paths[k] for k in which.tolist()],
            "id": [f"@{each}" for each in tree.ids(rows)],
            "metric": [metric.name] * len(rows),
            **{
                name: [run.parameters[name] for run in of_runs]
                for name in experiment.runs[0].parameters
            },
            "repetition": [run.repetition for run in of_runs],
            value: values[rows, runs].tolist(),
        }
        if uneven is not None:
            columns["imbalance"] = uneven[rows, runs].tolist()
        return columns

    flavour = "inclusive" if inclusive else "exclusive"
    header = {"experiment": experiment.name, "values": flavour, "locations": experiment.reduction}
    return Table(RowColumns(np.flatnonzero(is_told), cells), {value: metric.unit}, header)


def graph(source: Ranking | Experiment, check: Check | None = None) -> nx.DiGraph[str]:
    """Return the call-path graph of a ranking or of an experiment.

    Nodes are call-path ids. Edges go from callers to callees. Each node has the attributes of
    `call_path_graph`. Unknown numbers are left out, so that every writer of networkx accepts the
    graph.

    Parameters
    ----------
    source : a ranking or an experiment. Nodes of a ranking have its columns: ``rank`` (1 = worst),
        ``value_at_base`` (at the smallest scale), ``value_at_largest``, ``value_at_target``,
        ``low``, ``high``, ``predicted``, ``loss``,
        ``share_at_target``, ``excess_inclusive``, ``excess_exclusive``, ``trust`` (marks, 0 to 4),
        ``growth``, ``model``, ``status``. Nodes of an experiment have ``time_at_largest`` and so
        on: the exclusive value of each metric at the largest setting of the parameters, in SI base
        units. Repetitions are combined as in models
    check : results of expectations about the models of the ranking; nodes that an expectation
        selects have ``verdict`` and ``expectation``

    Returns
    -------
    networkx.DiGraph
        One node per call path, one edge from each caller to each callee.

    Raises
    ------
    UsageError
        If `source` is neither a ranking nor an experiment.
    """
    check_type(source, (Ranking, Experiment), "source")
    check_type(check, (Check, NoneType), "check")
    if isinstance(source, Experiment):
        return _graph_of_experiment(source).networkx()
    return _graph_of_ranking(source, check).networkx()


def _graph_of_experiment(experiment: Experiment) -> CallPathGraph:
    settings = experiment.runs_by_setting()
    runs = settings[max(settings)]
    attributes = {}
    for name in experiment.columns:
        values = experiment.values(name)[:, runs]
        attributes[f"{name}_at_largest"] = _known(centre(values[:, None])[:, 0])
    return call_path_graph(experiment.tree, attributes)


def _graph_of_ranking(ranking: Ranking, check: Check | None) -> CallPathGraph:
    """Return the graph of a ranking, whose attributes are columns of its table."""
    columns = [each for each in (*BEFORE_PAIRS, *AFTER_PAIRS) if each.key in _ATTRIBUTES]
    columns.sort(key=lambda each: _ATTRIBUTES.index(each.key))
    columns += () if check is None else verdict_columns(check)

    def attributes(rows: IntArray) -> dict[str, list[Attribute | None]]:
        of = file_cells(columns, RankedRows.of(ranking, rows))
        of |= {name: [text or "" for text in of[name]] for name in ("growth", "model")}
        ranking.fitted.give_back()
        return {name: [*map(_known_cell, cells)] for name, cells in of.items()}

    return CallPathGraph(ranking.fitted.experiment.tree, attributes)


_ATTRIBUTES = (
    *("rank", "value_at_largest", "value_at_base", "value_at_target", "low", "high", "loss"),
    *("share_at_target", "excess_inclusive", "excess_exclusive", "predicted", "trust", "why"),
    *("growth", "model", "status"),
)
"""Columns of a ranking that are attributes of nodes, in order."""


def graph_pieces(ranking: Ranking, form: str, check: Check | None = None) -> Iterator[str]:
    """Yield the call-path graph as ``"graphml"`` or ``"dot"``."""
    made = _graph_of_ranking(ranking, check)
    return made.graphml() if form == "graphml" else made.dot(ranking.fitted.experiment.name)


def _known_cell(cell: Cell) -> Attribute | None:
    """Return a cell as an attribute; None = its number is not known."""
    return None if cell != cell else cell  # noqa: PLR0124 - only NaN differs from itself


def _known(values: np.ndarray) -> list[Attribute | None]:
    return [*map(_known_cell, values.tolist())]
