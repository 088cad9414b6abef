"""Views of a generated call tree, and losses at five scales; print the cost of each step.

python views_ours.py CALL_PATHS
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from trees import tree_of

from callpath_modeler.analysis.ensemble import losses
from callpath_modeler.profile.calltree import CallTree
from callpath_modeler.profile.experiment import Experiment, Scaling
from callpath_modeler.profile.groups import Costs, MetricValues
from callpath_modeler.profile.outline import hot_path, outline
from callpath_modeler.profile.runs import Run, split_parameters
from callpath_modeler.profile.schema import Extent, Metric, Reduction
from callpath_modeler.profile.tree_views import View, ViewKind, open_view
from callpath_modeler.profile.view_request import ViewRequest

T = TypeVar("T")
SCALES = (8, 16, 32, 64, 128)
ENSEMBLE = 10_000
COLUMNS = 4
"""Measured, predicted, and the squares of a band."""
ON_SCREEN = 50

took: dict[str, float] = {}


def timed(name: str, step: Callable[[], T]) -> T:
    start = time.process_time()
    result = step()
    took[name] = time.process_time() - start
    return result


def ensemble(tree: CallTree, rng: np.random.Generator) -> Experiment:
    cost = rng.exponential(size=(len(tree), 1)) * (1 + 0.1 * np.log2(SCALES))
    metric = Metric("time", "s")
    runs = tuple(Run(f"p{p}", "none", Extent(p), {"p": float(p)}, 1) for p in SCALES)
    varying, constants = split_parameters(runs, {"p": "name"})
    values = {"time": MetricValues(metric, cost, cost.sum(axis=0))}
    return Experiment("app", tree, runs, varying, constants, values, {"time": ""},
                      Reduction.MEAN, Scaling.WEAK, "as told", ())  # fmt: skip


def first_screen(view: View, costs: Costs) -> np.ndarray:
    """Return the first screen of a browser: the costliest nodes at the top."""
    nodes = view.roots
    own, whole = view.values(nodes, costs.only(0))
    decides = whole if view.kind is ViewKind.TOP_DOWN else own
    shown = nodes[np.argsort(-decides[:, 0])[:ON_SCREEN]]
    view.values(shown, costs)
    view.has_children(shown)
    for node in shown.tolist():
        view.name(node)
    return shown


def hot(view: View, costs: Costs) -> list[int]:
    decides = costs.only(0)
    return hot_path(view, lambda nodes: view.values(nodes, decides)[1][:, 0])


def main() -> None:
    rng = np.random.default_rng(1)
    tree = tree_of(int(sys.argv[1]), rng)
    values = rng.exponential(size=(len(tree), COLUMNS))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    costs = timed("inclusive", lambda: Costs.of(tree, values))
    again = timed("retarget", lambda: Costs.of(tree, values[::-1]))
    for kind in ViewKind:
        view = open_view(tree, kind)
        shown = timed(f"{kind} start", lambda view=view: first_screen(view, costs))
        most = max(shown.tolist(), key=lambda node, view=view: len(view.rows(node)))
        below = timed(f"{kind} open", lambda view=view, node=most: view.children(node))
        nodes = np.concatenate([shown, below[:ON_SCREEN]])
        timed(f"{kind} values", lambda view=view, nodes=nodes: view.values(nodes, again))

        timed(f"{kind} hot path", lambda view=view: hot(view, costs))
        selection = ViewRequest(kind, least=0.001, top=20).selection(view, 0, costs.total[0])
        lines = timed(f"{kind} write", lambda v=view, s=selection: outline(v, costs, s))
        assert lines.check(costs).holds
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    small = ensemble(tree_of(ENSEMBLE, rng), rng)
    timed("losses", lambda: losses(small))
    print(json.dumps({"seconds": took, "memory": memory * 1024}))


main()
