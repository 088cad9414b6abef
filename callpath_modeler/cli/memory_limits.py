"""Libraries that end the process with status 1 when the system refuses them memory.

Status 1 means a broken expectation, so such an end needs another status. The linear algebra of
numpy ends this way while it is imported.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

from callpath_modeler.cli.exit_status import EXIT_MEMORY

_STRICT = "2"
"""Setting of Linux with which the system refuses memory even without a limit of the process."""


def memory_can_be_refused() -> bool:
    """Return whether this process has a limit of memory, or the system one."""
    try:
        import resource
    except ImportError:
        return False
    limits = (resource.getrlimit(each)[0] for each in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if any(each != resource.RLIM_INFINITY for each in limits):
        return True
    # `pathlib` would take longer to import than all of this.
    with suppress(OSError), open("/proc/sys/vm/overcommit_memory", encoding="ascii") as file:  # noqa: PTH123
        return file.read(1) == _STRICT
    return False


def end_with_own_status() -> Any:
    """Give the process `EXIT_MEMORY` if a library ends it; return an object to keep.

    Afterwards, `leave` has to end the process: the end of Python looks the same to the system.
    """
    import ctypes

    def ended(_argument: object) -> None:
        os.write(2, b"cpmodel: there is too little memory for this command\n")
        os._exit(EXIT_MEMORY)

    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ended)
    with suppress(AttributeError):
        register = getattr(ctypes.CDLL(None), "__cxa_atexit")
        register(callback, None, None)
    return callback


def leave(status: int) -> NoReturn:
    """End the process with a status, after the functions that Python calls at its end."""
    import atexit

    atexit._run_exitfuncs()  # noqa: SLF001 - the end of Python calls them as well
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)
