"""Memory that is no longer used is given back to the system."""

from __future__ import annotations

import ctypes


def trim_heap() -> bool:
    """Give back what freed arrays have left; tell if that can be.

    The GNU C library keeps freed arrays of up to 32 MB. Of 10^6 call paths every temporary is that
    small, so as much would be kept as is in use. Other C libraries are left as they are.
    """
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library of no name
        return False
    malloc_trim(0)
    return True
