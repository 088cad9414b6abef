"""Return of unused heap memory to the system."""

from __future__ import annotations

import ctypes


def trim_heap() -> bool:
    """Return freed memory to the system; the result is whether the C library can do that.

    The GNU C library keeps freed arrays of up to 32 MB. With 10^6 call paths every temporary array
    is that small, so it would keep as much memory as is in use. Other C libraries are not touched.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (
        AttributeError,
        OSError,
        TypeError,
    ):  # TypeError: Windows does not accept None as a name
        return False
    malloc_trim(0)
    return True
