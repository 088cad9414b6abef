"""Array types by element type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]

IntArray = npt.NDArray[np.intp]
"""Rows, positions and counts."""

Int64Array = npt.NDArray[np.int64]
"""Numbers as files store them: identifiers, times in ticks, ranks."""

Int32Array = npt.NDArray[np.int32]

Int16Array = npt.NDArray[np.int16]
"""Codes of shapes; -1 = none."""

Int8Array = npt.NDArray[np.int8]
UInt64Array = npt.NDArray[np.uint64]
ByteArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]
