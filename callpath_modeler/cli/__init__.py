"""The `cpmodel` command: a click group whose subcommands are imported only when they run."""

from __future__ import annotations


def main() -> None:
    """Run `cpmodel` with the arguments of this process."""
    from callpath_modeler.cli.console import run
    from callpath_modeler.cli.group import cpmodel

    run(cpmodel)
