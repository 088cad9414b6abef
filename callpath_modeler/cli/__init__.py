"""The `cpmodel` command: a click group whose subcommands are imported only when they run."""

from __future__ import annotations

from callpath_modeler.cli.exit_status import EXIT_INTERRUPT

_NEW_OBJECTS = 10_000
"""Number of new objects from which on Python looks for unused ones; its default is 700."""


def main() -> None:
    """Run `cpmodel` with the arguments of this process."""
    import gc
    import os
    import warnings

    from callpath_modeler.program_path import leave_working_directory

    leave_working_directory()
    # Modules, widgets and models stay until the end. The search for cycles among them takes a tenth
    # of a start, so it waits for more of them.
    gc.set_threshold(_NEW_OBJECTS)
    # Users cannot act on overflow warnings of numpy; a model without a number has its own message.
    warnings.simplefilter("ignore", RuntimeWarning, append=True)
    # For matrices as small as ours, further threads of the linear algebra only wait: on a login
    # node as many as it has cores. They are made when numpy is imported.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from callpath_modeler.cli.console import run
        from callpath_modeler.cli.group import cpmodel
    except KeyboardInterrupt:
        # The imports take a few tenths of a second, longer on a slow file system.
        raise SystemExit(EXIT_INTERRUPT) from None
    run(cpmodel)
