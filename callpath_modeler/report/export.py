"""Models, measured values and the call-path graph for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from callpath_modeler.analysis.rank import Ranking
from callpath_modeler.choices import check_kind
from callpath_modeler.fitted import Fitted
from callpath_modeler.modeling import changes_since
from callpath_modeler.profile.experiment import Experiment
from callpath_modeler.profile.graph import Attribute, call_path_graph, to_dot, to_graphml
from callpath_modeler.profile.schema import Metric
from callpath_modeler.report.formats import Cell, Table
from callpath_modeler.report.ranking_table import fit_settings, formula_texts, growth_texts

if TYPE_CHECKING:
    import networkx as nx


def models_table(fitted: Fitted) -> Table:
    """Return one row per call path with its model and how good it is."""
    tree, models = fitted.experiment.tree, fitted.models
    rows = range(len(tree))
    modelled = fitted.modelled.tolist()
    growths = models.growth_texts(rows, fitted.parameter)
    formulas = fitted.whole.formulas(rows, fitted.parameters, exact=True)
    columns: dict[str, list[Cell]] = {
        "callpath": [*tree.paths(rows)],
        "id": [f"@{short}" for short in tree.ids()],
        "metric": [fitted.metric.name for _ in rows],
        "growth": [text if known else None for text, known in zip(growths, modelled, strict=True)],
        "model": [text if known else None for text, known in zip(formulas, modelled, strict=True)],
        "since": [at or None for at in changes_since(models).tolist()],
        "status": [*fitted.statuses(rows)],
        "points": models.used.tolist(),
        "cv_error": models.cv_error.tolist(),
        "adjusted_r2": models.adjusted_r2.tolist(),
        "rss": models.rss.tolist(),
        "noise": models.noise.tolist(),
    }
    header = {
        "experiment": fitted.experiment.name,
        "parameter": fitted.parameter,
        "parameters": list(fitted.parameters),
        "fit": fit_settings(fitted),
    }
    return Table(columns, {}, header)


def values_table(experiment: Experiment, metric: Metric, *, inclusive: bool = False) -> Table:
    """Return one row per call path and run in which it occurred: a long table.

    The column of inclusive values is called ``value_inclusive``. Beside exclusive ones stands how
    unevenly the processes share them, where it is known.
    """
    tree, value = experiment.tree, "value_inclusive" if inclusive else "value"
    values = experiment.values(metric.name, inclusive=inclusive)
    rows, runs = (index.tolist() for index in np.nonzero(~np.isnan(values)))
    paths, ids = tree.paths(range(len(tree))), tree.ids()
    columns: dict[str, list[Cell]] = {
        "callpath": [paths[row] for row in rows],
        "id": [f"@{ids[row]}" for row in rows],
        "metric": [metric.name] * len(rows),
        **{
            name: [experiment.runs[run].parameters[name] for run in runs]
            for name in experiment.runs[0].parameters
        },
        "repetition": [experiment.runs[run].repetition for run in runs],
        value: values[rows, runs].tolist(),
    }
    uneven = experiment.columns[metric.name].imbalance
    if uneven is not None and not inclusive:
        columns["imbalance"] = uneven[rows, runs].tolist()
    flavour = "inclusive" if inclusive else "exclusive"
    header = {"experiment": experiment.name, "values": flavour, "locations": experiment.reduction}
    return Table(columns, {value: metric.unit}, header)


def graph(ranking: Ranking) -> nx.DiGraph[str]:
    """Return the call-path graph with what was measured, modelled and predicted.

    Nodes are call-path ids, edges go from callers to callees. Attributes of a node are
    those of `call_path_graph` and the columns of the ranking.
    """
    check_kind(ranking, Ranking, "ranking")
    fitted = ranking.fitted
    attributes: dict[str, list[Attribute]] = {
        "value_at_largest": _numbers(ranking.at_largest),
        "value_at_target": _numbers(ranking.value),
        "low": _numbers(ranking.low),
        "high": _numbers(ranking.high),
        "share_at_target": _numbers(ranking.share),
        "excess_inclusive": _numbers(ranking.excess.inclusive),
        "excess_exclusive": _numbers(ranking.excess.exclusive),
        "predicted": _numbers(ranking.predicted.value),
    }
    rows = np.arange(len(fitted.experiment.tree))
    attributes["growth"] = [*growth_texts(ranking, rows)]
    attributes["model"] = [*formula_texts(ranking, rows)]
    attributes["status"] = [*fitted.statuses(rows)]
    return call_path_graph(fitted.experiment.tree, attributes)


def graph_text(ranking: Ranking, form: str) -> str:
    """Return the call-path graph as ``"graphml"`` or ``"dot"``."""
    made = graph(ranking)
    return to_graphml(made) if form == "graphml" else to_dot(made, ranking.fitted.experiment.name)


def _numbers(values: np.ndarray) -> list[Attribute]:
    return [*values.tolist()]
