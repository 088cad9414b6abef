"""Special functions, elementwise: calls into ``distributions.c``.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from callpath_modeler.arrays import FloatArray
from callpath_modeler.modeling.compiled.library import call, float64_arrays


def elementwise(name: str, *columns: npt.ArrayLike, results: int = 1) -> list[FloatArray]:
    """Return the results of a function of columns that broadcast against each other."""
    shape = np.broadcast_shapes(*map(np.shape, columns))
    found = [np.empty(shape) for _ in range(results)]
    given = float64_arrays(*(np.broadcast_to(column, shape).ravel() for column in columns))
    call(name, found[0].size, *given, *(each.reshape(-1) for each in found))
    return found
