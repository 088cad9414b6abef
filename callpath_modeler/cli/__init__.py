"""The `cpmodel` command: a click group whose subcommands are imported only when they run."""

from __future__ import annotations


def main() -> None:
    """Run `cpmodel` with the arguments of this process."""
    import os

    # For matrices as small as ours, further threads of the linear algebra only wait: on a login
    # node as many as it has cores. They are made when numpy is imported.
    if "OMP_NUM_THREADS" not in os.environ:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from callpath_modeler.cli.console import run
    from callpath_modeler.cli.group import cpmodel

    run(cpmodel)
