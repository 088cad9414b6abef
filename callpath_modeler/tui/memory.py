"""Memory that is no longer used is given back at once."""

from __future__ import annotations

import ctypes

_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of <malloc.h> of the GNU C library
_LARGE = 1 << 20
"""Bytes from which an array has pages of its own."""


def give_back_early() -> bool:
    """Let large arrays be given back to the system as soon as they are let go; tell if that can be.

    By default the GNU C library keeps arrays of up to 32 MB once the first was freed, for each
    thread by itself. Of 10^6 call paths every temporary is that small, so as much would be kept
    as is in use. Other C libraries are left as they are.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # TypeError: Windows has no library of no name
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGE))
