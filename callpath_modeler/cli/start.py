"""Start of the `cpmodel` command: the search path, limits of memory, and the first imports.

Some libraries end the process with status 1 when the system refuses them memory; the linear algebra
of numpy ends this way while it is imported. Status 1 means a broken expectation, so such an end
needs another status.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from callpath_modeler.cli import EXIT_BUG, EXIT_MEMORY
from callpath_modeler.errors import is_lack_of_memory

Interruption = Callable[[int, FrameType | None], None]

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


_NEW_OBJECTS = 50_000
"""Number of new objects from which on Python looks for unused ones; its default is 700."""


def run(interrupt: Interruption | None) -> None:
    """Run the command, and end with a status of its own if memory is refused.

    Parameters
    ----------
    interrupt : what Ctrl-C does after the first imports; None where this process ignores it
    """
    try:
        if memory_can_be_refused():
            _run_within_limits(interrupt)
        _run(interrupt)
    except (MemoryError, ImportError, OSError) as error:
        _end_without_memory(error)
        raise


def _run_within_limits(interrupt: Interruption | None) -> NoReturn:
    kept = end_with_own_status()
    try:
        _run(interrupt)
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else EXIT_BUG)
    finally:
        del kept
    leave(0)


def _run(interrupt: Interruption | None) -> None:
    import gc
    import warnings

    # Modules, widgets and models stay until the end. The search for cycles among them takes a tenth
    # of a start, so it waits for more of them.
    gc.set_threshold(_NEW_OBJECTS)
    # Users cannot act on overflow warnings of numpy; a model without a number has its own message.
    warnings.simplefilter("ignore", RuntimeWarning, append=True)
    # For matrices as small as ours, further threads of the linear algebra only wait: on a login
    # node as many as it has cores. They are made when numpy is imported.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from callpath_modeler.cli.console import run as run_group
    from callpath_modeler.cli.group import cpmodel

    if interrupt is not None:
        signal.signal(signal.SIGINT, interrupt)
    run_group(cpmodel)


def _end_without_memory(error: Exception) -> None:
    """End this process if an error of the first imports is a lack of memory."""
    if is_lack_of_memory(error):
        os.write(2, b"cpmodel: there is too little memory to start\n")
        os._exit(EXIT_MEMORY)
