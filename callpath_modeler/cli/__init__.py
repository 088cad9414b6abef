"""The `cpmodel` command: a click group whose subcommands are imported only when they run.

This module imports almost nothing, so that Ctrl-C ends the command without a traceback as early as
possible.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

EXIT_NO = 1
"""Status of a negative answer, for `click.Context.exit` after the output."""

EXIT_MEMORY = 8
"""Status of a command that needs more memory than there is."""

EXIT_BUG = 70
EXIT_INTERRUPT = 130
EXIT_CLOSED_PIPE = 141

_IMPORTING = "<frozen importlib"
"""Start of the names that Python gives to the files of its import system."""


def main() -> None:
    """Run `cpmodel` with the arguments of this process."""
    # The imports take a few tenths of a second, longer on a slow file system. Some libraries turn
    # an interruption of their imports into an error of their own. There is nothing to clean up.
    is_heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_heeded:
        signal.signal(signal.SIGINT, _leave)
    try:
        # A module beside the profiles must not run in place of one that is imported from here on.
        from callpath_modeler.support.program_path import leave_working_directory

        leave_working_directory()
        from callpath_modeler.cli.start import run

        run(interrupt if is_heeded else None)
    except KeyboardInterrupt:
        raise SystemExit(EXIT_INTERRUPT) from None
    finally:
        # The answer is written, so what Python still does can be cut short.
        if is_heeded:
            signal.signal(signal.SIGINT, _leave)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but end this process at once during an import.

    Compiled modules turn an interruption of their import into an error of their own, which would be
    reported as a broken plugin. The locks of imports drop it.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            _leave(number, frame)
        frame = frame.f_back
    raise KeyboardInterrupt


def _leave(_signal: int, _frame: object) -> None:
    """End this process at once, as one that was interrupted."""
    os._exit(EXIT_INTERRUPT)
