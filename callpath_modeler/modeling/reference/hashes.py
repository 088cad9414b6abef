"""Hashes of call paths.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from callpath_modeler.arrays import ByteArray, IntArray

_SIZE = 16
"""Bytes of a hash."""


def path_hashes(names: Sequence[bytes], name: IntArray, depth: IntArray, program: int) -> ByteArray:
    """Return the hash of each call path, [n, 16]; see `kernels.Kernels.path_hashes`."""
    # The hash of a callee continues a copy of its caller's state, so no path is built as text.
    below = [b"/" + each for each in names]
    found: list[bytes] = []
    stack: list[hashlib.blake2b | None] = []
    for number, level in zip(name.tolist(), depth.tolist(), strict=True):
        del stack[level:]
        above = stack[-1] if stack else None
        if above is None:
            state = hashlib.blake2b(names[number], digest_size=_SIZE)
        else:
            state = above.copy()
            state.update(below[number])
        found.append(state.digest())
        stack.append(state if stack or number != program else None)
    return np.frombuffer(b"".join(found), np.uint8).reshape(len(found), _SIZE)
