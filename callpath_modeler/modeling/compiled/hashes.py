"""Hashes of call paths: calls into ``hashes.c``.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import ByteArray, IntArray
from callpath_modeler.modeling.compiled.library import call, int32_arrays

_SIZE = 16
"""Bytes of a hash."""


def path_hashes(names: Sequence[bytes], name: IntArray, depth: IntArray, program: int) -> ByteArray:
    """Return the same as `reference.hashes.path_hashes`."""
    text = np.frombuffer(b"".join(names), np.int8)
    start = np.zeros(len(names) + 1, np.int64)
    np.cumsum([len(each) for each in names], out=start[1:])
    (number, level), digest = int32_arrays(name, depth), np.empty((len(name), _SIZE), np.int8)
    deepest = int(level.max(initial=0))
    call("path_hashes", len(name), deepest, program, text, start, number, level, digest)
    return digest.view(np.uint8)
