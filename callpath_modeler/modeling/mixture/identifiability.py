"""Shapes that the measured points can distinguish.

See docs/explanation/hypotheses.md, 'Hypotheses'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.breaks import Break, at_last
from callpath_modeler.modeling.constants.priors import ALIKE
from callpath_modeler.modeling.evaluation import shape_table
from callpath_modeler.modeling.products import Shape

S = TypeVar("S", bound=Shape)


def identifiable_shapes(
    candidates: Sequence[S], points: FloatArray
) -> tuple[list[S], FloatArray, FloatArray]:
    """Return the shapes that vary over the points, their scaled table [S, K] and their scale [S].

    A break that equals another break or a term at the points is left out, unless it differs in
    pairs or beyond the last point.
    """
    table = shape_table(candidates, points)[:-1]
    size, least = np.abs(table).max(axis=1), table.min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        reach = table.max(axis=1) - least[:, 0]
        varies = np.isfinite(size) & (reach > ALIKE * size)
        forms = np.round((table - least) / reach[:, None] / ALIKE)
    kept, seen, late = [], set(), at_last(points)
    for k in np.flatnonzero(varies).tolist():
        form = forms[k].tobytes()
        shape = candidates[k]
        if (
            not isinstance(shape, Break)
            or form not in seen
            or shape.in_pairs_only(float(points[-1]))
            or shape in late
        ):
            kept.append(k)
        seen.add(form)
    kept.sort(key=lambda k: candidates[k].growth.order)
    return [candidates[k] for k in kept], table[kept] / size[kept, None], size[kept]
