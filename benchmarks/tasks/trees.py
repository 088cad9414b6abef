"""A generated call tree with the shape of large applications."""

import numpy as np

from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Region


def tree_of(size: int, rng: np.random.Generator) -> CallTree:
    """Return a tree with up to 40 levels of calls, where few functions have most call paths."""
    steps = rng.choice([1, 0, -1, -2, -3], size, p=[0.5, 0.2, 0.15, 0.1, 0.05]).tolist()
    parents, callers, depth = [], [], 0
    for row, step in enumerate(steps):
        depth = min(40, max(1, depth + step)) if row else 0
        del callers[depth:]
        parents.append(callers[-1] if callers else ROOT)
        callers.append(row)
        depth = len(callers) - 1
    functions = min(20_000, max(10, size // 50))
    region = np.minimum((rng.pareto(0.8, size) * 3).astype(int), functions - 1)
    return CallTree.from_parents(parents, region, [Region(f"f{k}") for k in range(functions)])
